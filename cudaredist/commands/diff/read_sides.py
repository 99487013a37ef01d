"""Read the compared fields of each kind of file."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from cudaredist.commands.diff.comparable import (
    Comparable,
    Fields,
    PackageRelease,
    Value,
    add_releases,
)
from cudaredist.commands.diff.coverage_changes import COVERAGE_PREFIX
from cudaredist.formats.coverage import Coverage
from cudaredist.formats.features import (
    ExaminedArchive,
    Features,
    Library,
    Program,
    UnexaminedArchive,
)
from cudaredist.formats.tables import CompilerAnswer, Gpus, NvccCompat, span
from cudaredist.manifests.manifest_values import Archive, Manifest
from cudaredist.primitives import ArchiveId, Place, Platform, Version, parse_label, place_name
from cudaredist.store.examined_archives import examined_archives
from cudaredist.tables.gpus.coverage import CoverageRules, cuda_major_of, describe_coverage
from cudaredist.tables.gpus.gpu_table import default_capabilities, supported_capabilities
from cudaredist.tables.nvcc.nvcc_table import newest_release

if TYPE_CHECKING:
    from cudaredist.formats.packageset import PackageSet


def of_manifest(
    name: str, manifest: Manifest, contents: Mapping[ArchiveId, Fields] = MappingProxyType({})
) -> Comparable:
    """Return the compared fields of a manifest, with those of the archives' contents, if known."""
    side = Comparable(name)
    for package in manifest.packages:
        fields = _published(", ".join(map(str, package.versions)), package.archives)
        fields["license", ""] = package.license or ""
        for archive in package.archives:
            fields |= contents.get(archive.id, {})
            if archive.size is not None:
                fields["archive size", archive.id.place] = str(archive.size)
        side.packages[package.name] = fields
    return side


def add_paths(side: Comparable, features: Features) -> None:
    """Add the paths and run paths of examined archives."""
    for archive, package, position, facts in examined_archives(features):
        files = package.files_of(position)
        if files is None:
            continue
        links = {link for library in facts.libraries for link in library.links}
        # Files at the top, such as the license, are in every package.
        paths = frozenset(path for path in (*files, *links) if "/" in path)
        side.paths.setdefault(archive.place, {})[archive.package] = paths
        binaries = (*facts.libraries, *facts.programs)
        run_paths = {binary.path: binary.runpath for binary in binaries}
        side.run_paths.setdefault(archive.place, {})[archive.package] = run_paths


def of_features(name: str, features: Features, rules: CoverageRules | None = None) -> Comparable:
    """Return the compared fields of a feature file.

    Archives that were not inspected have no fields of their contents.
    """
    side = Comparable(name, kind="feature file", redist=features.redist)
    for package, entry in features.packages.items():
        side.packages[package] = _published(entry.version or "", entry.archives)
    add_releases(side, features.redist, parse_label(features.label))
    for archive, fields in contents_of(features, rules).items():
        side.packages[archive.package] |= fields
    add_paths(side, features)
    return side


def contents_of(features: Features, rules: CoverageRules | None) -> dict[ArchiveId, Fields]:
    """Return the compared fields of archives' contents. Without `rules`, omit coverage."""
    contents: dict[ArchiveId, Fields] = {}
    label = parse_label(features.label)
    for archive, _, _, facts in examined_archives(features):
        values = _examined(facts)
        if rules is not None:
            cuda = cuda_major_of(features.redist, label, archive.variant)
            values |= archive_coverage(facts, cuda, rules)
        contents[archive] = _fields(values, archive.place)
    return contents


def of_package_set(name: str, package_set: "PackageSet") -> Comparable:
    """Return the compared fields of a package set, without aliases."""
    # Releases are compared more often than package sets, whose models are slow to import.
    from cudaredist.sets.closures import closure_of  # noqa: PLC0415

    side = Comparable(name, kind="package set")
    for attr, package in package_set.own.items():
        values: dict[str, Value] = {
            "status": package.status,
            "version": package.version or "",
            "license": package.license.short_name,
            "outputs": frozenset(package.outputs),
            "sonames": frozenset(p.soname for p in package.provides if not p.stub),
            "needed": frozenset(need.soname for need in package.needs if need.kind == "needed"),
            "architectures": frozenset().union(*package.gpu_architectures.values()),
            "depends": frozenset(entry.attr for entry in package.depends),
            **coverage_fields(package.coverage),
        }
        if package.contents:
            values["size"] = str(package.unpacked_size)
        closure = closure_of(package_set, attr) if package.status == "available" else None
        if closure is not None:
            values["closure size"] = str(closure.size)
        fields = _fields(values)
        if package.archive is not None:
            # With the place, archives of different platforms are not compared.
            place = place_name(package.archive.platform, package.archive.cuda_variant)
            fields["sha256", place] = package.archive.sha256
            if package.archive.size is not None:
                fields["archive size", place] = str(package.archive.size)
        side.packages[attr] = fields
        is_available = package.status == "available"
        if is_available and package.redist is not None and package.release is not None:
            side.releases[attr] = PackageRelease(
                package.redist,
                package.pname,
                Version.parse(package.release),
                (package_set.platform.redist_system,),
            )
    flags, gcc = package_set.capabilities, package_set.host_compiler.gcc
    runfile = package_set.runfile
    values = {
        "capabilities": frozenset(flags.effective),
        "supported capabilities": frozenset(flags.supported),
        "host gcc": "" if gcc is None else str(gcc.selected),
        "runfile": "" if runfile is None else f"{runfile.name} ({runfile.sha256})",
    }
    side.tables["set"] = _fields(values)
    if package_set.driver is not None:
        drivers = {
            "driver": package_set.driver.published,
            "lowest driver with all features": package_set.driver.native,
            "lowest driver": package_set.driver.lowest,
        }
        versions = {name: driver.version if driver else "" for name, driver in drivers.items()}
        side.tables["driver"] = _fields(versions)
    return side


def of_tables(label: str, compat: NvccCompat | None, gpus: Gpus | None) -> dict[str, Fields]:
    """Return each table's values for a CUDA release.

    Skips a table without the release.
    """
    line = parse_label(label).line
    tables: dict[str, Fields] = {}
    if compat is not None and any(parse_label(x).line == line for x in compat.releases):
        answers = compat.releases[newest_release(line, compat)].compilers
        tables["compilers"] = {
            (f"{name} accepted", ""): _accepted(a) for name, a in answers.items()
        }
    sources = [Version.parse(parse_label(source).line) for source in gpus.sources] if gpus else []
    if gpus is not None and sources and min(sources) <= Version.parse(line) <= max(sources):
        supported, default = supported_capabilities(line, gpus), default_capabilities(line, gpus)
        capabilities = {"supported": frozenset(supported), "default": frozenset(default)}
        tables["gpus"] = {(f"{k} capabilities", ""): names for k, names in capabilities.items()}
    return tables


def _accepted(answer: CompilerAnswer) -> str:
    return answer.status if answer.status != "range" else span(answer.min, answer.max)


def _fields(values: Mapping[str, Value], place: Place = "") -> Fields:
    return {(name, place): value for name, value in values.items()}


def _published(
    version: str, archives: Iterable[Archive | ExaminedArchive | UnexaminedArchive]
) -> Fields:
    hashes = {place_name(archive.platform, archive.variant): archive.sha256 for archive in archives}
    return {
        ("version", ""): version,
        ("platforms", ""): frozenset(hashes),
        **{("sha256", place): sha256 for place, sha256 in hashes.items() if sha256 is not None},
    }


def _examined(archive: ExaminedArchive) -> dict[str, Value]:
    libraries = [library for library in archive.libraries if not library.stub]
    files: list[Library | Program] = [*libraries, *archive.programs]
    floors = [file.glibc for file in files if file.glibc is not None]
    targets = (
        target
        for code in archive.device_code.values()
        for part in (code.declared, code.embedded)
        for target in (*part.sass, *part.ptx)
    )
    return {
        "outputs": frozenset(archive.outputs),
        "sonames": frozenset(library.soname for library in libraries if library.soname),
        "needed": frozenset(name for file in files for name in file.needed),
        "architectures": frozenset(targets),
        "glibc": max(floors, key=Version.parse, default=""),
        "size": str(sum(size.bytes for size in archive.outputs.values())),
    }


def coverage_fields(coverage: Mapping[str, Coverage]) -> dict[str, str]:
    """Return a field with the coverage of each capability."""
    return {f"{COVERAGE_PREFIX}{name}": describe_coverage(part) for name, part in coverage.items()}


def archive_coverage(
    archive: ExaminedArchive, cuda: int | None, rules: CoverageRules
) -> dict[str, str]:
    """Return an archive's fields for the GPUs of its platform.

    `cuda` is the CUDA major of the archive, if it is known. Returns none if the device code is
    unknown, or if there is none, whose coverage is not compared.
    """
    if not archive.code_by_file:
        return {}
    platform = Platform(archive.platform)
    names = [str(capability) for capability in rules.capabilities_on(platform)]
    return coverage_fields(rules.cover(tuple(archive.code_by_file.values()), names, cuda))
