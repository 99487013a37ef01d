"""audit: judge programs by the local data or by a package set."""

import json
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.environments.installed import Environment
from cudaredist.environments.load_all import load_all
from cudaredist.environments.read_program import ProgramReader, size_of
from cudaredist.errors import UnknownNameError, UsageError, worst_exit_code
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.grouping import grouped
from cudaredist.hints import again, command_line, quoted
from cudaredist.primitives import Version, find_release, parse_label
from cudaredist.programs.bundled_licenses import bundled_license_notes
from cudaredist.programs.declared import Declared, declared_wheels
from cudaredist.programs.finding import Finding
from cudaredist.programs.gpu_verdicts import program_verdicts, worst_verdicts
from cudaredist.programs.judge import JudgedProgram
from cudaredist.programs.program import (
    AuditData,
    AuditRequirements,
    Catalog,
    DeviceCodeSizes,
    KnownLibrary,
    ProgramFile,
    paths_of,
)
from cudaredist.programs.program_findings import program_findings
from cudaredist.programs.report import AuditReport, AuditReports, DeclaredWheel, ErrorAnswer
from cudaredist.programs.run_paths import ORIGIN
from cudaredist.programs.sizes import audited_sizes
from cudaredist.programs.vulnerabilities import ProgramVulnerabilities
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.sets.library_names import stem_of
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index, Question
from cudaredist.store.layered_tables import read_layered
from cudaredist.store.symbol_folder import LayeredSymbols, name_in_tables
from cudaredist.store.table_registry import GPU_TABLE
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.gpus.gpu_names import capability_of, is_product
from cudaredist.tables.symbols.label_ranges import KEY_SIZE

if TYPE_CHECKING:
    # Models of package sets and patterns of messages take long to import. Most audits need none.
    from cudaredist.environments.error_message import ErrorMessage
    from cudaredist.formats.packageset import PackageSet
    from cudaredist.programs.supplied_set import SuppliedSet

_TYPED_LIMIT = 200
"""Maximum characters of a message in a hint."""
_UNKNOWN_MESSAGE = "--error: the message names no symbol, library or error of CUDA"


def audit_programs(
    paths: Sequence[Path],
    store: Store,
    required: AuditRequirements,
    *,
    is_together: bool = False,
    package_set: Path | None = None,
    supplied_by: Path | None = None,
    error: str | None = None,
    cache: Cache,
    progress: Progress = NO_PROGRESS,
) -> AuditReport | AuditReports:
    """Return the report on the programs in some paths, or one report for each of several programs.

    Each wheel is a program, and so are all other paths together. With `is_together`, all paths are
    one program. They are compared with a package set, or else with all local releases. Raises
    `UsageError` for a gate with an unknown release or capability, and for a path that is neither a
    file nor a folder. `supplied_by` is a package set that replaces the required wheels of NVIDIA.
    `error` is the message of an error to answer, which requires an environment.
    """
    for path in paths:
        size_of(path)
    index = Index(store, cache, progress)
    gpus = read_layered(store, GPU_TABLE)
    data = _read_data(store, index, None if gpus is None else gpus.table, package_set)
    _check_requirements(required, data.catalog)
    if gpus is not None:
        names = {_base_of(text, gpus.table): text for text in required.gpus}
        titles = (text if is_product(text) else name for name, text in names.items())
        required = required._replace(gpus=tuple(names), gpu_names=tuple(titles))
    message = None
    if error is not None:
        from cudaredist.environments.error_message import parse_message  # noqa: PLC0415

        message = parse_message(error, index, data.catalog, data.policy)
    known = ProgramVulnerabilities(index)
    supplied = None
    if supplied_by is not None:
        from cudaredist.programs.supplied_set import SuppliedSet  # noqa: PLC0415

        supplied = SuppliedSet(supplied_by, _read_set(supplied_by), index, data.rules)
    programs = _programs(paths, is_together=is_together)
    readers = (ProgramReader(cache=cache, progress=progress, paths=part) for part in programs)
    reports = [
        audit_report(reader.read_all(), data, required, message, supplied, known)
        for reader in readers
    ]
    if message is not None and not any(report.environments for report in reports):
        raise _environment_required(message, error or "")
    reports = [_with_license_notes(report, index) for report in reports]
    findings = [finding for report in reports for finding in report.findings]
    unused = (
        entry
        for entry in required.ignored
        if not any(entry.matches(finding.kind, finding.message) for finding in findings)
    )
    notes = (f"no finding matches the audit.ignore entry `{entry}`" for entry in unused)
    is_answered = any(report.answers for report in reports)
    if message is not None and not message.is_known and not is_answered:
        reports[0] = reports[0].model_copy(update={"notes": (_UNKNOWN_MESSAGE, *reports[0].notes)})
    update = {"notes": (*reports[-1].notes, *notes)}
    reports[-1] = reports[-1].model_copy(update=update)
    if len(reports) == 1:
        return reports[0]
    code = worst_exit_code(report.exit_code for report in reports)
    return AuditReports(programs=tuple(reports), exit_code=code)


def _environment_required(message: "ErrorMessage", error: str) -> UsageError:
    """Return the error for a message without an environment, with a way to know more."""
    # A message of several lines is piped, and not typed again.
    typed = error if error.isprintable() and len(error) <= _TYPED_LIMIT else "-"
    hint = f"run `{command_line('audit', '.venv', error=typed)}`"
    names = [names[0] for names in message.libraries]
    if message.symbols:
        hint = f"run `{command_line('which', symbol=next(iter(message.symbols)))}`"
    elif names:
        hint = f"run `{command_line('which', quoted(names[0]))}`"
    text = "--error requires the folder of an environment, such as .venv"
    return UsageError(text, hint=hint)


def _read_set(path: Path) -> "PackageSet":
    from cudaredist.sets.read_set import read_package_set  # noqa: PLC0415

    return read_package_set(path)[0]


def _with_license_notes(report: AuditReport, index: Index) -> AuditReport:
    """Add notes about license texts if the program contains copies of NVIDIA's libraries."""
    notes = bundled_license_notes(report.libraries, report.platforms, index)
    return report.model_copy(update={"notes": (*report.notes, *notes)})


def _read_data(
    store: Store, index: Index, gpus: Gpus | None, package_set: Path | None
) -> AuditData:
    """Return the libraries of a package set, or of all local releases, and the other data."""
    title = "all local releases"
    policy = read_own_file(store.read_policy("libraries"), LibraryPolicy)
    if package_set is None:
        catalog = Catalog(known_libraries(index, policy))
    else:
        chosen = _read_set(package_set)
        catalog = Catalog(_libraries_of_set(chosen))
        title = f"{package_set} (CUDA {chosen.cuda.release}, {chosen.platform.redist_system})"
    symbols = LayeredSymbols(store.symbol_paths)
    return AuditData(
        title=title,
        channel=store.channel,
        catalog=catalog,
        policy=policy,
        drivers=read_own_file(store.read_policy("drivers"), DriverPolicy),
        rules=None if gpus is None else CoverageRules(gpus),
        tables=symbols.tables,
        exporters=index.exporters,
        device_code=lru_cache(maxsize=None)(partial(_device_code, index)),
    )


def audit_report(
    program: ProgramReader,
    data: AuditData,
    required: AuditRequirements,
    message: "ErrorMessage | None" = None,
    supplied: "SuppliedSet | None" = None,
    known: ProgramVulnerabilities | None = None,
) -> AuditReport:
    """Return the report on a program, and on its environments.

    `message` is the message of an error to answer. `supplied` is the package set that replaces the
    required wheels of NVIDIA.
    """
    loaded = [load_all(environment, data) for environment in program.environments]
    gpus = required.gpus
    nvidia_files = set[ProgramFile]().union(*(each.files.nvidia_files for each in loaded))
    unread = (file for file in program.files if file in nvidia_files and file.is_unread)
    skipped = (*program.skipped, *paths_of(unread))
    files = [file for file in program.files if file not in nvidia_files]
    judged = JudgedProgram(files, data, required)
    environments = [JudgedEnvironment(each, data, judged.majors) for each in loaded]
    of_environments = [
        [finding.with_reason(required.ignored) for finding in each.findings()]
        for each in environments
    ]
    verdicts = program_verdicts(judged)
    if environments:
        verdicts = [verdict for each in environments for verdict in each.gpu_verdicts(gpus)]
    of_program = [verdict.finding for verdict in verdicts if verdict.finding is not None]
    of_program += program_findings(judged, skipped, loaded)
    declared: list[DeclaredWheel] = []
    if program.declared is not None:
        declared, differences = declared_wheels(judged, program.declared)
        # A package set replaces the declared wheels.
        of_program += differences if supplied is None else []
    substitution = None
    if supplied is not None:
        from cudaredist.programs.substitution import compare_with_set  # noqa: PLC0415

        wheels = [*(program.declared or ()), *_installed_wheels(program.environments)]
        substitution, differences = compare_with_set(judged, wheels, supplied, skipped)
        of_program += differences
    vulnerabilities: list[PackageVulnerability] = []
    if known is not None:
        vulnerabilities, about = _vulnerabilities(program, judged, known, required)
        of_program += about
    if environments:
        if required.driver is not None:
            for each in environments:
                of_program += each.driver_findings(required.driver)
        # The findings about loaded files replace those about all files.
        paths = {file.display_path for each in environments for file in each.environment.files}
        of_program = [
            finding
            for finding in of_program
            if finding.kind != "missing-library"
            and not (finding.kind == "mixed-cuda" and finding.path in paths)
        ]
    findings = [*chain.from_iterable(of_environments)]
    findings += (finding.with_reason(required.ignored) for finding in of_program)
    answers: Iterable[ErrorAnswer] = ()
    if message:
        from cudaredist.environments.answers import answers_of  # noqa: PLC0415

        answers = answers_of(message, environments, data, findings, gpus)
    names = dict(zip(gpus, required.gpu_names or gpus, strict=True))
    codes = [finding.exit_code for finding in findings]
    codes += (error.exit_code for error in program.errors)
    return AuditReport(
        paths=tuple(map(str, program.paths)),
        inputs=tuple(program.inputs),
        environments=tuple(
            each.report(own) for each, own in zip(environments, of_environments, strict=True)
        ),
        answers=tuple(answers),
        substitution=substitution,
        platforms=judged.platforms,
        channel=data.channel,
        judged_by=data.title,
        required_cuda=None if judged.cuda is None else str(judged.cuda),
        libraries=tuple(judged.libraries()),
        cuda_majors=judged.cuda_majors,
        releases=tuple(release.report() for release in judged.releases),
        requirements=tuple(judged.requirements),
        declared=tuple(declared),
        runtime=judged.runtime(),
        glibc=judged.glibc,
        libstdcxx=judged.libstdcxx,
        coverage=judged.coverage,
        gpus=tuple(verdict.report(names[verdict.gpu]) for verdict in worst_verdicts(verdicts)),
        alternatives=judged.alternatives,
        device_code=tuple(judged.device_code()),
        sizes=audited_sizes(program.files, gpus, data.rules) if required.has_sizes else None,
        vulnerabilities=tuple(vulnerabilities),
        unread=paths_of(file for file in judged.files if "needed" in file.binary.unread),
        checked=tuple(_checked(program, required, supplied)),
        findings=tuple(finding.report() for finding in findings),
        notes=(*program.notes, *judged.notes()),
        skipped=skipped,
        errors=tuple(program.errors),
        exit_code=worst_exit_code(codes),
    )


def _checked(
    program: ProgramReader, required: AuditRequirements, supplied: "SuppliedSet | None"
) -> Iterator[str]:
    """Yield the properties that the findings are about."""
    yield from ("CUDA libraries", "symbols")
    if program.environments:
        yield "installed packages"
    if program.declared is not None and supplied is None:
        yield "declared wheels"
    if supplied is not None:
        yield "supplied libraries"
    if required.gpus:
        yield f"GPUs {' '.join(required.gpus)}"
    if required.max_glibc is not None:
        yield f"glibc {required.max_glibc}"
    if required.driver is not None:
        yield f"driver {required.driver}"
    if required.no_bundled:
        yield "bundled libraries"
    if required.advisories:
        yield "known vulnerabilities"


def _vulnerabilities(
    program: ProgramReader,
    judged: JudgedProgram,
    known: ProgramVulnerabilities,
    required: AuditRequirements,
) -> tuple[list[PackageVulnerability], list[Finding]]:
    """Return the known vulnerabilities of a program, and the findings about them.

    An unknown state counts only if no vulnerability is known to affect the program.
    """
    installed = (
        (package.project, package.version)
        for environment in program.environments
        for package in environment.distributions.values()
    )
    subjects = [
        *known.installed(installed),
        *known.bundled(judged.copies_by_soname(), judged.data, judged.platforms),
    ]
    entries = {subject: known.of_subject(subject, judged.platforms) for subject in subjects}
    findings = [
        finding
        for subject, own in entries.items()
        for finding in known.findings(subject, own, is_required=required.advisories)
    ]
    if any(finding.kind == "vulnerability" for finding in findings):
        findings = [
            finding.as_warning() if finding.kind == "unknown-vulnerability" else finding
            for finding in findings
        ]
    return [*chain.from_iterable(entries.values())], findings


def _installed_wheels(environments: Iterable[Environment]) -> Iterator[Declared]:
    """Yield the installed packages of environments as requirements of their versions."""
    for environment in environments:
        for package in environment.distributions.values():
            try:
                requirement = Requirement(f"{package.project}=={package.version}")
            except InvalidRequirement:
                continue
            yield Declared(environment.path, requirement)


def _base_of(text: str, gpus: Gpus) -> str:
    """Return the capability of a GPU's name, without its letter."""
    return str(Capability.parse(capability_of(text, gpus)).base)


def _programs(paths: Sequence[Path], *, is_together: bool) -> list[list[Path]]:
    """Return the paths of each program."""
    wheels = [path for path in paths if path.suffix.lower() == ".whl" and not is_together]
    others = [path for path in paths if path not in wheels]
    return [*([wheel] for wheel in wheels), *([others] if others else [])]


def _check_requirements(required: AuditRequirements, catalog: Catalog) -> None:
    if required.cuda is not None:
        labels = catalog.labels("cuda")
        if find_release(required.cuda, labels) is None:
            raise UnknownNameError("local release of CUDA", required.cuda, map(str, labels))
    if required.max_glibc is not None:
        try:
            Version.parse(required.max_glibc)
        except ValueError as error:
            hint = f"run `{again(require_glibc='2.28')}`"
            raise UsageError(f"--require-glibc {required.max_glibc}: {error}", hint=hint) from None


class _Library(NamedTuple):
    contents: int
    path: str
    soname: str | None
    redist: str
    label: str
    package: str
    platform: str
    variant: str | None
    sha256: str | None
    relative_path: str | None


_LIBRARIES = Question(
    _Library,
    """
    SELECT contents, path, soname, redist, label, package, platform, variant, sha256, relative_path
    FROM current_releases JOIN archives ON release = current_releases.id
    JOIN binaries USING (contents)
    WHERE kind = 'library'
    ORDER BY redist, sort_key, archives.id, binaries.id""",
)


def known_libraries(index: Index, policy: LibraryPolicy) -> Iterator[KnownLibrary]:
    """Yield the libraries of all local releases, without stubs."""
    index.redists()
    lost = frozenset(_without_parts(index, policy))
    # Thousands of libraries have the same labels.
    label_of = cache(parse_label)
    for row in index.ask(_LIBRARIES):
        yield KnownLibrary(
            name_in_tables(row.path, row.soname),
            row.redist,
            label_of(row.label),
            row.package,
            row.platform,
            row.variant,
            archive=_archive_key(row.sha256),
            wheel=_wheel_path(row.relative_path),
            finds_parts=(row.contents, row.path) not in lost,
        )


class _CodeSize(NamedTuple):
    sha256: str
    path: str
    architecture: str
    bytes: int


_CODE_SIZES = Question(
    _CodeSize,
    """
    SELECT DISTINCT sha256, path, architecture, bytes
    FROM binaries JOIN device_code USING (contents, path) JOIN archives USING (contents)
    WHERE library = ? AND sha256 IS NOT NULL""",
)


def _device_code(index: Index, soname: str) -> dict[str, set[DeviceCodeSizes]]:
    """Return the bytes of the device code of a library's files, by archive."""
    rows = index.ask(_CODE_SIZES, soname)
    files = grouped(
        ((row.sha256[:KEY_SIZE], row.path), (row.architecture, row.bytes)) for row in rows
    )
    by_archive: dict[str, set[DeviceCodeSizes]] = {}
    for (archive, _), sizes in files.items():
        by_archive.setdefault(archive, set()).add(frozenset(sizes))
    return by_archive


class _LibrariesOfArchive(NamedTuple):
    contents: int
    libraries: str
    """As JSON."""


_LIBRARIES_OF_PACKAGES = Question(
    _LibrariesOfArchive,
    """
    SELECT DISTINCT contents, json_extract(facts, '$.libraries') AS libraries
    FROM archives JOIN contents ON contents.id = contents
    WHERE package IN (SELECT value FROM json_each(?)) AND platform LIKE 'linux-%'""",
)


def _without_parts(index: Index, policy: LibraryPolicy) -> Iterator[tuple[int, str]]:
    """Yield the libraries that do not find others of their own archive that they load.

    A library is its contents and path. No run path leads to the folder of the other library.
    """
    packages = {rule.package for rule in policy.loaded}
    rules = {(rule.by, rule.loads) for rule in policy.loaded}
    for row in index.ask(_LIBRARIES_OF_PACKAGES, packages):
        libraries = json.loads(row.libraries)
        files = [(stem_of(posixpath.basename(library["path"])), library) for library in libraries]
        for by, library in files:
            here = posixpath.dirname(library["path"])
            own = {
                posixpath.normpath(folder.replace(ORIGIN, here, 1)) for folder in library["runpath"]
            }
            parts = [each["path"] for name, each in files if (by, name) in rules]
            if any(posixpath.dirname(path) not in own for path in parts):
                yield row.contents, library["path"]


def _libraries_of_set(package_set: "PackageSet") -> Iterator[KnownLibrary]:
    """Yield the libraries of a package set, without stubs."""
    platform = package_set.platform.redist_system
    for package in package_set.available.values():
        archive, redist, label = package.archive, package.redist, package.release
        if archive is None or redist is None or label is None:
            continue
        for library in package.provides:
            if not library.stub:
                yield KnownLibrary(
                    library.soname,
                    redist,
                    parse_label(label),
                    package.pname,
                    platform,
                    archive.cuda_variant,
                    archive=_archive_key(archive.sha256),
                    wheel=_wheel_path(archive.relative_path),
                )


def _archive_key(sha256: str | None) -> str:
    """Return the beginning of an archive's hash, as tables of symbols have it."""
    return (sha256 or "")[:KEY_SIZE]


def _wheel_path(path: str | None) -> str | None:
    """Return the path of an archive if it is a wheel."""
    return path if path is not None and path.endswith(".whl") else None
