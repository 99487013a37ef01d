"""audit: judge programs by the local data or by a package set."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache as cache_of_calls
from pathlib import Path

from cudaredist.commands.audit.declared import with_declared
from cudaredist.commands.audit.environment import JudgedEnvironment, with_environments
from cudaredist.commands.audit.judge import AuditData, judge_program
from cudaredist.commands.audit.program import Catalog, KnownLibrary, paths_of
from cudaredist.commands.audit.program_findings import AuditRequirements, with_ignored
from cudaredist.commands.audit.read_program import ProgramReader, size_of
from cudaredist.commands.audit.report import AuditReport, AuditReports
from cudaredist.errors import UnknownNameError, UsageError, worst_exit_code
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.policy import DriverPolicy, LibraryPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.settings import IgnoredFinding
from cudaredist.hints import again
from cudaredist.primitives import Version, find_release, parse_label
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.sets.read_set import read_package_set
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.layered_tables import read_layered
from cudaredist.store.symbol_folder import LayeredSymbols, name_in_tables
from cudaredist.store.table_registry import GPU_TABLE
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.gpus.gpu_names import capability_of
from cudaredist.tables.symbols.symbol_table import KEY_SIZE


def audit_programs(
    paths: Sequence[Path],
    store: Store,
    required: AuditRequirements,
    *,
    is_together: bool = False,
    ignored: Sequence[IgnoredFinding] = (),
    package_set: Path | None = None,
    cache: Cache,
    progress: Progress = NO_PROGRESS,
) -> AuditReport | AuditReports:
    """Return the report on the programs in some paths, or one report for each of several programs.

    Each wheel is a program, and so are all other paths together. With `is_together`, all paths are
    one program. They are compared with a package set, or else with all local releases. Raises
    `UsageError` for a gate with an unknown release or capability, and for a path that is neither a
    file nor a folder.
    """
    for path in paths:
        size_of(path)
    title = "all local releases"
    if package_set is None:
        catalog = Catalog(_known_libraries(Index(store, cache)))
    else:
        chosen = read_package_set(package_set)[0]
        catalog = Catalog(_libraries_of_set(chosen))
        title = f"{package_set} (CUDA {chosen.cuda.release}, {chosen.platform.redist_system})"
    gpus = read_layered(store, GPU_TABLE)
    rules = None if gpus is None else CoverageRules(gpus.table)
    _check_requirements(required, catalog)
    if gpus is not None:
        names = (capability_of(text, gpus.table) for text in required.gpus)
        required = replace(required, gpus=tuple(str(Capability.parse(n).base) for n in names))
    symbols = LayeredSymbols(store.symbol_paths)
    table = cache_of_calls(lambda soname: symbols.tables([soname]).get(soname))
    data = AuditData(
        title=title,
        channel=store.channel,
        catalog=catalog,
        policy=read_own_file(store.read_policy("libraries"), LibraryPolicy),
        drivers=read_own_file(store.read_policy("drivers"), DriverPolicy),
        rules=rules,
        tables=lambda names: {name: one for name in names if (one := table(name)) is not None},
    )
    reports = []
    for part in _programs(paths, is_together=is_together):
        program = ProgramReader(cache=cache, progress=progress)
        program.read_all(part)
        reports.append(_judged(program, part, data, required))
    reports = with_ignored(reports, ignored)
    if len(reports) == 1:
        return reports[0]
    return AuditReports(
        programs=tuple(reports), exit_code=worst_exit_code(report.exit_code for report in reports)
    )


def _judged(
    program: ProgramReader, paths: Sequence[Path], data: AuditData, required: AuditRequirements
) -> AuditReport:
    """Return the report on the program, and on its environments."""
    environments = [JudgedEnvironment(each, data) for each in program.environments]
    nvidias = {path for each in environments for path in each.nvidias_files()}
    unread = paths_of(file for file in program.files if file.path in nvidias and file.is_unread)
    report = judge_program(
        [file for file in program.files if file.path not in nvidias],
        data,
        required,
        paths=paths,
        inputs=program.inputs,
        notes=program.notes,
        skipped=[*program.skipped, *unread],
        errors=program.errors,
    )
    if program.has_metadata:
        report = with_declared(report, program.declared, data.catalog, data.policy.preloads)
    return with_environments(report, environments, required) if environments else report


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
            hint = f"run `{again('--max-glibc 2.28', without=['--max-glibc'])}`"
            raise UsageError(f"--max-glibc {required.max_glibc}: {error}", hint=hint) from None


def _known_libraries(index: Index) -> Iterator[KnownLibrary]:
    """Yield the libraries of all local releases, without stubs."""
    index.redists()
    query = """
        SELECT path, soname, redist, label, package, platform, variant, sha256, relative_path
        FROM releases JOIN archives ON release = releases.id JOIN binaries USING (contents)
        WHERE layer = ? AND kind = 'library' AND has_manifest
        ORDER BY redist, sort_key, archives.id, binaries.id"""
    for path, soname, redist, label, *where, sha256, file in index.rows(query, index.layer):
        package, platform, variant = where
        yield KnownLibrary(
            soname=name_in_tables(path, soname),
            redist=redist,
            label=parse_label(label),
            package=package,
            platform=platform,
            variant=variant,
            archive=(sha256 or "")[:KEY_SIZE],
            wheel=file if (file or "").endswith(".whl") else None,
        )


def _libraries_of_set(package_set: PackageSet) -> Iterator[KnownLibrary]:
    """Yield the libraries of a package set, without stubs."""
    for package in package_set.packages.values():
        archive, redist, label = package.archive, package.redist, package.release
        if package.status != "available" or archive is None or redist is None or label is None:
            continue
        is_wheel = archive.relative_path.endswith(".whl")
        for library in package.provides:
            if not library.stub:
                yield KnownLibrary(
                    soname=library.soname,
                    redist=redist,
                    label=parse_label(label),
                    package=package.pname,
                    platform=package_set.platform.redist_system,
                    variant=archive.cuda_variant,
                    archive=archive.sha256[:KEY_SIZE],
                    wheel=archive.relative_path if is_wheel else None,
                )
