"""export: convert a package set to the formats of its consumers."""

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    between_option,
    cache_dir_option,
    check_option,
    folder_option,
    none_for_standard_output,
    nvidia_channels_of,
    output_flag,
    output_option,
    output_path_option,
    read_data_dir_option,
    safety_option,
    shipped_data_option,
)
from cudaredist.cli.session import PUBLIC_BASE_URL, PUBLIC_WHEEL_BASE, Refusal, Session, command
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, UsageError
from cudaredist.hints import again
from cudaredist.words import listed, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cudaredist.exporters.export_format import Exporter, Files
    from cudaredist.exporters.rules_ml_toolchain import (
        ExportedManifest,
        NcclWheel,
        ToolchainFacts,
    )
    from cudaredist.formats.package_vulnerability import PackageVulnerability
    from cudaredist.formats.packageset import PackageSet
    from cudaredist.formats.toolkit_record import ToolkitRecord


def complete_format(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a format in a shell."""
    from cudaredist.exporters import EXPORTERS

    return [(e.name, e.title) for e in EXPORTERS.values() if e.name.startswith(incomplete)]


class ExportOptions(Options):
    """Options of export."""

    typical = ("output", "list", "root", "wheel_base", "resolve")

    form: str = argument(
        "Format: one of those above.", metavar="FORMAT", autocompletion=complete_format, default=""
    )
    package_set: Path | None = argument(
        "Package set from `build` (*.json). For template: FILE.", metavar="[SET]", default=None
    )
    template_set: Path | None = argument(
        "Package set for template.", metavar="[TEMPLATE_SET]", default=None
    )
    list: bool = output_flag("List the formats, and the templates with their queries.")
    between: tuple[str, str] | None = between_option()
    cache_dir: Path | None = cache_dir_option()
    output: Path | None = output_path_option(
        "File or folder. Default: standard output, for one file.",
        metavar="PATH",
        callback=none_for_standard_output,
    )
    root: str | None = folder_option(
        "Toolkit root for env, cmake, cyclonedx and spdx.", metavar="DIR"
    )
    target_set: Path | None = folder_option(
        "Package set of the platform to compile for, for env and cmake.", metavar="TARGET_SET"
    )
    wheel_base: str | None = output_option(
        "Base URL of wheels, for sets without addresses.", metavar="URL"
    )
    base_url: str | None = output_option(
        "Base URL of a mirror, for sets of NVIDIA's archives.", metavar="URL"
    )
    nvidia_channel: str | None = output_option(
        "Channel of releases.json to write, for redistrib.", metavar="NAME"
    )
    resolve: bool = output_flag("Take the URLs and sizes of wheels from the package index.")
    data_dir: Path | None = read_data_dir_option()
    shipped_data: bool = shipped_data_option()
    advisories: bool = output_flag("Export known vulnerabilities, for nix and cyclonedx.")
    strict: bool = safety_option("Exit 1 if a requested release is not in the set.")
    check: bool = check_option()

    @property
    def selects_addresses(self) -> bool:
        """Whether an option selects the addresses of archives."""
        return self.resolve or self.wheel_base is not None or self.base_url is not None

    @property
    def has_advisories(self) -> bool:
        """Whether known vulnerabilities are exported."""
        return self.advisories or self.form == "vex"

    @property
    def exporter(self) -> "Exporter":
        """The exporter of the format. Raises `UnknownNameError`."""
        from cudaredist.exporters import EXPORTERS, TEMPLATE, find_exporter
        from cudaredist.exporters.template import shipped_templates

        if self.form == TEMPLATE.name:
            return TEMPLATE
        template = shipped_templates().get(self.form)
        if template is not None and self.form not in EXPORTERS:
            hint = f"run `{template.command_line}`"
            raise UsageError(f"{self.form} is a template, not a format", hint=hint)
        return find_exporter(self.form)


def _is_relative(root: str) -> bool:
    return not (PurePosixPath(root).is_absolute() or PureWindowsPath(root).is_absolute())


def _with_addresses_only(name: str) -> Refusal[ExportOptions]:
    option = f"--{name.replace('_', '-')}"
    return (
        lambda o: getattr(o, name) not in {None, False} and not o.exporter.takes_addresses,
        f"{option} cannot be combined with the format {{form}}",
        [option],
    )


REFUSED: tuple[Refusal[ExportOptions], ...] = (
    (
        lambda o: bool(o.list) != (not o.form),
        "expected either FORMAT or --list",
        "run `cudaredist export --list`",
    ),
    (
        lambda o: o.form == "template" and o.package_set is None,
        "missing FILE of the template",
        "run `cudaredist export template FILE SET`",
    ),
    (
        lambda o: o.form != "template" and o.template_set is not None,
        "{form} takes one package set",
        "run `cudaredist export {form} {package_set}`",
    ),
    (
        lambda o: o.between is not None and (o.form != "template" or o.output is None),
        "--between requires the format template and --output",
        ["--between"],
    ),
    (
        lambda o: not o.list and o.package_set is None and not o.exporter.reads_manifests,
        "missing SET",
        "run `cudaredist export --help`",
    ),
    (
        lambda o: not o.list and o.package_set is not None and o.exporter.reads_manifests,
        "{form} exports all local manifests, not a package set",
        "run `cudaredist export {form}`",
    ),
    (
        lambda o: not o.list and o.output is None and o.exporter.file is None,
        "{form} writes several files",
        "run `{call} --output {form}`",
    ),
    (lambda o: o.output is None and o.check, "--check requires --output", ["--check"]),
    (lambda o: o.output is None and o.json and not o.list, "--json requires --output", ["--json"]),
    (
        lambda o: o.nvidia_channel is not None and o.form != "redistrib",
        "--nvidia-channel requires the format redistrib",
        "run `cudaredist export redistrib {package_set} --nvidia-channel {nvidia_channel}`",
    ),
    PUBLIC_WHEEL_BASE,
    (
        lambda o: o.resolve and o.wheel_base is not None,
        "--resolve cannot be combined with --wheel-base",
        ["--resolve"],
    ),
    _with_addresses_only("wheel_base"),
    PUBLIC_BASE_URL,
    (
        lambda o: o.base_url is not None and (o.resolve or o.wheel_base is not None),
        "--base-url cannot be combined with --wheel-base or --resolve",
        ["--base-url"],
    ),
    _with_addresses_only("base_url"),
    (
        lambda o: o.resolve and not (o.exporter.takes_addresses or o.exporter.takes_index),
        "--resolve cannot be combined with the format {form}",
        ["--resolve"],
    ),
    (
        lambda o: o.advisories and not o.exporter.takes_advisories,
        "--advisories cannot be combined with the format {form}",
        ["--advisories"],
    ),
    (
        lambda o: (
            o.typed & {"data_dir", "shipped_data"}
            and not (o.exporter.reads_data or o.has_advisories)
        ),
        "--data-dir requires rules-ml-toolchain, template, vex or --advisories",
        ["--data-dir", "--no-shipped-data"],
    ),
    (
        lambda o: o.root is not None and not o.exporter.takes_root,
        "--root cannot be combined with the format {form}",
        "run `cudaredist export cmake {package_set} --root {root}`",
    ),
    (
        lambda o: o.target_set is not None and not o.exporter.takes_target,
        "{form} has no form for a cross toolkit: --target-set requires bazel, cmake or env",
        "run `cudaredist export cmake {package_set} --target-set {target_set}`",
    ),
    (
        lambda o: o.root is not None and _is_relative(o.root),
        "--root {root}: expected an absolute path",
        'run `cudaredist export {form} {package_set} --root "$PWD"/{root}`',
    ),
)


@command(ExportOptions, REFUSED)
def export(options: ExportOptions, session: Session) -> int:
    """Convert a package set to the format of another tool.

    Examples:

        cudaredist build --cuda 13.0.2 --platform linux-x86_64 -o set.json
        cudaredist export nix set.json --wheel-base https://wheels.example.org -o cuda
        cudaredist export requirements set.json -o requirements.txt

    - **nix**: the set's document, with Nix code for builds with or without nixpkgs.
    - **redistrib**: NVIDIA's manifests for one platform.
    - **bazel**: components and toolkit for rules_cuda.
    - **rules-ml-toolchain**: tables of Bazel's rules_ml_toolchain, from all local manifests.
    - **pylock**, **requirements**: the set's wheels for pip and uv.
    - **cyclonedx**, **spdx**: bills of materials.
    - **vex**: the states of packages for each known vulnerability.
    - **urls**, **sha256sums**: lists to download and verify archives.
    - **outputs**, **ignore-missing**: tables that nixpkgs maintains by hand.
    - **env**, **cmake**: a toolkit's root, architectures and host compiler.
    - **template** FILE: your own Jinja template, with `sets` and `query("SELECT ...")`.

    Templates for conda-forge, Spack and others render the rows of `query`: `export --list` has
    their queries.

    SET can be the index.json of several sets. Each gets a folder such as linux-sbsa/cuda-13.0.2.
    """
    from cudaredist.exporters.export_format import ExportedSet
    from cudaredist.sets.cross import read_target_set
    from cudaredist.sets.read_set import indexed_sets, read_package_set
    from cudaredist.sets.request_options import PairOptions

    if options.list:
        return _list(session)
    exporter, path = options.exporter, options.package_set
    if options.form == "template":
        return _render(options, session)
    if options.nvidia_channel is not None:
        nvidia_channels_of(pre=False, names=[options.nvidia_channel])
    if path is None:
        return _finish(exporter.files(_toolchain_facts(options)), options, session)
    paths = indexed_sets(path)
    if paths != [path]:
        return _export_index(path, paths, options, session)
    package_set, sha256 = read_package_set(path)
    has_all = _warn_about_requests(path, package_set, session)
    if options.selects_addresses:
        package_set = _with_addresses(package_set, options, session)
    host = None
    if options.target_set is not None:
        # The set to export is the target's, and SET is that of its compilers.
        host = package_set
        package_set, _ = read_target_set(
            host, options.target_set, PairOptions("SET", "--target-set")
        )
    record = _root_record(options, sha256)
    exported = ExportedSet(
        package_set,
        options.root,
        host=host,
        record=record,
        vulnerabilities=_vulnerabilities(package_set, options),
        nvidia_channel=options.nvidia_channel,
    )
    files = exporter.files(exported)
    skipped = exporter.skipped(exported)
    if skipped:
        session.console.warning(f"skipped {plural(len(skipped), 'package')} without features")
    return _finish(files, options, session, has_all=has_all)


def _list(session: Session) -> int:
    """Print the formats, and the templates with their queries."""
    from cudaredist.commands.export.report import ExportReport, ListedFormat
    from cudaredist.commands.export.text import formats_text
    from cudaredist.exporters import EXPORTERS, TEMPLATE
    from cudaredist.exporters.template import shipped_templates

    formats = [ListedFormat(name=one.name, title=one.title) for one in EXPORTERS.values()]
    formats.append(ListedFormat(name=TEMPLATE.name, title=TEMPLATE.title))
    formats += [
        ListedFormat(name=one.name, title=one.title, command_line=one.command_line)
        for one in shipped_templates().values()
    ]
    return session.finish(ExportReport(formats=tuple(formats), exit_code=EXIT_OK), formats_text)


def _render(options: ExportOptions, session: Session) -> int:
    """Render a template with the package sets of a file, and print or write the text."""
    import json

    from cudaredist.commands.query.template_rows import TemplateQueries
    from cudaredist.exporters.template import MAX_ROWS, MAX_SECONDS, Ask, read_template
    from cudaredist.exporters.template_output import between_markers
    from cudaredist.sets.read_set import indexed_sets, read_package_set

    template = read_template(str(options.package_set))
    sets = []
    has_all = True
    for path in indexed_sets(options.template_set) if options.template_set else ():
        package_set, _ = read_package_set(path)
        has_all &= _warn_about_requests(path, package_set, session)
        if options.selects_addresses:
            package_set = _with_addresses(package_set, options, session)
        sets.append(json.loads(package_set.canonical()))

    def no_index(_: str, __: float) -> "Sequence[Mapping[str, object]]":
        raise AssertionError("a template without this word asks no query")

    ask: Ask = no_index
    if "query" in template.text:
        data = Data(data_dir=options.data_dir, shipped_data=options.shipped_data)
        index = session.open_index(data, options.cache_dir)
        ask = TemplateQueries(index, MAX_ROWS, MAX_SECONDS).ask
    files = options.exporter.files(template, sets, ask)
    if options.output is not None and options.between is not None:
        text = between_markers(options.output, files["text"], *options.between)
        files = {"text": text}
    return _finish(files, options, session, has_all=has_all)


def _vulnerabilities(
    package_set: "PackageSet", options: ExportOptions
) -> "dict[str, tuple[PackageVulnerability, ...]]":
    """Return the known vulnerabilities to export, by attribute."""
    from cudaredist.store.known_vulnerabilities import known_vulnerabilities
    from cudaredist.store.locate import store_to_read
    from cudaredist.tables.advisories.answers import vulnerabilities_by_attr
    from cudaredist.tables.advisories.states import STATES

    if not options.has_advisories:
        return {}
    use_shipped = options.shipped_data
    store = store_to_read(options.data_dir, package_set.channel, use_shipped=use_shipped)
    return vulnerabilities_by_attr(known_vulnerabilities(store), package_set, STATES)


def _warn_about_requests(path: Path, package_set: "PackageSet", session: Session) -> bool:
    """Warn about requested releases that a set cannot use, and check that there are none."""
    from cudaredist.sets.requested_releases import UNUSABLE

    unusable = [entry for entry in package_set.diagnostics if entry.code == UNUSABLE]
    for entry in unusable:
        session.console.warning(f"{path}: {entry.subject}: {entry.text}")
    return not unusable


def _export_index(
    index: Path, paths: "Sequence[Path]", options: ExportOptions, session: Session
) -> int:
    """Export each set of an index to a folder of its own, such as `linux-sbsa/cuda-13.0.2`."""
    from cudaredist.exporters.export_format import ExportedSet
    from cudaredist.exporters.nix_set import nix_index
    from cudaredist.sets.read_set import read_package_set

    if options.output is None:
        call = again(output=options.form)
        raise UsageError(f"{index} has several package sets", hint=f"run `{call}`")
    for option, value in (("--root", options.root), ("--target-set", options.target_set)):
        if value is not None:
            hint = f"run `{again(without=[option])}`, or export one of its sets"
            raise UsageError(f"{option} cannot be combined with an index of sets", hint=hint)
    files: dict[str, bytes] = {}
    sets = {}
    has_all = True
    for path in paths:
        package_set, _ = read_package_set(path)
        has_all &= _warn_about_requests(path, package_set, session)
        if options.selects_addresses:
            package_set = _with_addresses(package_set, options, session)
        folder = path.relative_to(index.parent).with_suffix("").as_posix()
        sets[folder] = package_set
        of_set = options.exporter.files(
            ExportedSet(
                package_set,
                vulnerabilities=_vulnerabilities(package_set, options),
                nvidia_channel=options.nvidia_channel,
            )
        )
        files |= {f"{folder}/{name}": content for name, content in of_set.items()}
    if options.form == "nix":
        files["default.nix"] = nix_index(sets)
    return _finish(files, options, session, has_all=has_all)


def _finish(
    files: "Files", options: ExportOptions, session: Session, *, has_all: bool = True
) -> int:
    """Print a file, or write files and report them.

    `has_all` is whether the set has all requested releases.
    """
    from cudaredist.commands.export.report import ExportReport
    from cudaredist.commands.export.text import export_text
    from cudaredist.formats.report import ExportedFile
    from cudaredist.primitives import sha256_of
    from cudaredist.store.files import is_folder, update_output

    if options.output is None:
        (content,) = files.values()
        session.console.result(content.decode())
        return EXIT_FINDINGS if options.strict and not has_all else EXIT_OK
    written = []
    for name, content in files.items():
        is_named = name == options.exporter.file and not is_folder(options.output)
        root = None if is_named else options.output
        path = options.output if root is None else root / name
        status = update_output(path, content, may_write=not options.check, root=root)
        size, sha256 = len(content), sha256_of(content)
        written.append(ExportedFile(path=str(path), status=status, size=size, sha256=sha256))
    is_stale = any(file.status == "would-write" for file in written)
    code = EXIT_FINDINGS if is_stale or (options.strict and not has_all) else EXIT_OK
    report = ExportReport(format=options.form, files=tuple(written), exit_code=code)
    return session.finish(report, export_text)


def _root_record(options: ExportOptions, set_sha256: str) -> "ToolkitRecord | None":
    """Return the record of the toolkit root.

    Raises `UsageError` if the format requires the root, and it is of another package set.
    """
    from cudaredist.store.read_data import read_record

    if options.root is None:
        return None
    record = read_record(Path(options.root))
    if options.exporter.reads_root and (record is None or record.set_sha256 != set_sha256):
        hint = f"run `cudaredist materialize {options.package_set} --output {options.root}`"
        raise UsageError(f"{options.root} is not a toolkit root of this package set", hint=hint)
    return record


def _manifests(options: ExportOptions) -> "Iterator[ExportedManifest]":
    """Yield the local manifests of NVIDIA's redistributables."""
    from cudaredist.exporters.rules_ml_toolchain import ExportedManifest
    from cudaredist.primitives import sha256_of
    from cudaredist.store.local_manifests import load_manifest, require_manifests
    from cudaredist.store.locate import store_to_read

    store = store_to_read(options.data_dir, "redist", use_shipped=options.shipped_data)
    for redist in require_manifests(store):
        folder = store.manifests(redist)
        for label in folder.labels():
            sha256 = sha256_of(folder.read(label) or b"")
            manifest, address = load_manifest(store, redist, label), store.address_of(redist, label)
            is_preview = folder.is_preview(label) or address is not None
            yield ExportedManifest(redist, manifest, sha256, is_preview)


def _toolchain_facts(options: ExportOptions) -> "ToolchainFacts":
    """Return the facts for rules_ml_toolchain."""
    from cudaredist.exporters.rules_ml_toolchain import ToolchainFacts

    return ToolchainFacts(_manifests(options), _nccl_wheels(options), _ptx_versions(options))


def _nccl_wheels(options: ExportOptions) -> "list[NcclWheel]":
    """Return the wheels of NCCL in the package index, if --resolve selects them."""
    import contextlib

    from cudaredist.commands.export.wheel_addresses import index_addresses
    from cudaredist.exporters.rules_ml_toolchain import NcclWheel
    from cudaredist.sources.protocol import Settings
    from cudaredist.sources.wheel_source import WheelSource
    from cudaredist.store.local_manifests import load_manifest
    from cudaredist.store.locate import store_to_read

    if not options.resolve:
        return []
    store = store_to_read(
        options.data_dir, "wheels", use_shipped=options.shipped_data, with_unexamined=True
    )
    archives = [
        archive
        for label in store.manifests("nccl").labels()
        for archive in load_manifest(store, "nccl", label).archives
    ]
    with contextlib.closing(WheelSource(Settings())) as source:
        hashes = {archive.relative_path: archive.sha256 for archive in archives}
        addresses, _ = index_addresses(hashes, source)
    return [
        NcclWheel(
            archive.variant.removeprefix("cuda"),
            archive.platform,
            archive.relative_path.rpartition("/")[2].split("-")[1],
            addresses[archive.relative_path],
            archive.sha256,
        )
        for archive in sorted(archives, key=lambda one: one.variant or "")
        if archive.variant is not None and archive.relative_path in addresses
    ]


def _ptx_versions(options: ExportOptions) -> "dict[str, dict[str, str]]":
    """Return the newest version of PTX by compiler and its release."""
    from cudaredist.formats.driver_policy import DriverPolicy
    from cudaredist.formats.registry import read_own_file
    from cudaredist.store.locate import store_to_read

    store = store_to_read(options.data_dir, "redist", use_shipped=options.shipped_data)
    policy = read_own_file(store.read_policy("drivers"), DriverPolicy)
    return {
        "clang": {release: one.version for release, one in policy.clang_ptx.items()},
        "cuda": {release: one.version for release, one in policy.ptx.items()},
    }


def _with_addresses(
    package_set: "PackageSet", options: ExportOptions, session: Session
) -> "PackageSet":
    """Return a set with the addresses that the options select."""
    from cudaredist.commands.export.wheel_addresses import with_index_addresses
    from cudaredist.exporters.export_format import with_addresses
    from cudaredist.sources.protocol import Settings

    is_wheels = package_set.channel == "wheels"
    if options.base_url is not None and is_wheels:
        hint = f"run `{again(without=['--base-url'], wheel_base=options.base_url)}`"
        raise UsageError("--base-url requires a set of NVIDIA's archives", hint=hint)
    if options.base_url is None and not is_wheels:
        name = "--resolve" if options.resolve else "--wheel-base"
        hint = f"the addresses of NVIDIA's archives are known: run `{again(without=[name])}`"
        raise UsageError(f"{name} requires a set of the wheels channel", hint=hint)
    if options.resolve:
        return with_index_addresses(package_set, Settings())
    mirrored = with_addresses(package_set, options.base_url or options.wheel_base or "")
    changes = zip(mirrored.packages.values(), package_set.packages.values(), strict=True)
    kept = [new.attr for new, old in changes if new.archive and new.archive == old.archive]
    if kept and not is_wheels:
        session.console.warning(f"kept the URLs of {listed(kept)}: they are not on NVIDIA's server")
    return mirrored
