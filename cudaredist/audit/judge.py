"""Judge a program by the known libraries, their symbols, and the known GPUs."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cudaredist.audit.cuda_majors import FileMajors, file_majors, major_groups, needs_of
from cudaredist.audit.gates import Gates, gate_findings, program_findings
from cudaredist.audit.lowest_release import RequiredRelease, required_releases
from cudaredist.audit.needs import LibraryNeed, is_bundled_copy, library_needs
from cudaredist.audit.program import Catalog, KnownLibrary, ProgramFile
from cudaredist.audit.run_paths import RunPathGap, run_path_gaps
from cudaredist.audit.unlinked import with_unlinked
from cudaredist.audit.wheel_requirements import pip_requirements
from cudaredist.binaries.file_facts import Binary
from cudaredist.errors import worst_exit_code
from cudaredist.features.library_symbols import imports_of
from cudaredist.primitives import Platform, Version, natural_order
from cudaredist.reports.audit_reports import (
    AuditedLibrary,
    AuditedRelease,
    AuditInput,
    AuditReport,
    CudaRuntime,
    DeviceFile,
    Floor,
    LibraryProvider,
    PipRequirement,
)
from cudaredist.reports.report import ErrorReport
from cudaredist.schema.features import FileCode
from cudaredist.schema.packageset import Coverage
from cudaredist.schema.policy import LibraryPolicy
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.symbols.symbol_table import SymbolColumns

_REGISTER = "__cudaRegisterFatBinary"
"""The function of the CUDA runtime that all device code compiled by nvcc is passed to."""
_DRIVER = frozenset({"libcuda.so", "libcuda.so.1", "nvcuda.dll"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The data that programs are compared with."""

    title: str
    """The package set or the data, in words."""
    channel: str
    catalog: Catalog
    policy: LibraryPolicy
    rules: CoverageRules | None
    tables: Callable[[Sequence[str]], Mapping[str, SymbolColumns]]
    """Returns the symbol tables of libraries."""


def judge_program(
    program: Sequence[ProgramFile],
    knowledge: Knowledge,
    gates: Gates,
    *,
    inputs: Sequence[AuditInput] = (),
    notes: Iterable[str] = (),
    errors: Sequence[ErrorReport] = (),
) -> AuditReport:
    """Return the report on a program."""
    catalog = knowledge.catalog
    program = with_unlinked(program, catalog, knowledge.tables)
    needs = library_needs(program, catalog, knowledge.policy)
    tables = _tables(needs, knowledge)
    majors = file_majors(program, needs, catalog)
    groups = major_groups(majors)
    all_majors = tuple(sorted({major for group in groups for major in group}))
    releases, requirements = _requirements(program, needs, tables, majors, groups)
    gaps = list(run_path_gaps(program, needs))
    copies = [file for file in program if is_bundled_copy(file, catalog)]
    copied = {file.shown for file in copies}
    own = [file for file in program if file.shown not in copied] or list(program)
    platforms = tuple(dict.fromkeys(file.platforms[0] for file in program if file.platforms))
    coverage = _coverage(own, knowledge.rules, platforms, gates.gpus)
    glibc = _floor(program, "glibc")
    findings = (
        *program_findings(program, needs, releases, majors, gaps, catalog),
        *gate_findings(
            gates, coverage, glibc, releases, copies, catalog.labels("cuda"), knowledge.channel
        ),
    )
    return AuditReport(
        inputs=tuple(inputs),
        platforms=platforms,
        channel=knowledge.channel,
        judged_by=knowledge.title,
        libraries=(
            *(_library(need, all_majors, gaps) for need in needs),
            *_unneeded(copies, needs, catalog),
        ),
        cuda_majors=all_majors,
        releases=tuple(map(_release, releases)),
        requirements=tuple(requirements),
        runtime=_runtime(own),
        glibc=glibc,
        libstdcxx=_floor(program, "libstdcxx"),
        coverage=coverage,
        device_code=tuple(_device_code(own)),
        unread=_paths(file for file in program if "needed" in file.binary.unread),
        findings=findings,
        notes=(*notes, *_notes(program)),
        errors=tuple(errors),
        exit_code=worst_exit_code(
            [*(one.exit_code for one in findings), *(one.exit_code for one in errors)]
        ),
    )


def _tables(needs: Iterable[LibraryNeed], knowledge: Knowledge) -> dict[str, SymbolColumns]:
    """Return the symbol tables of provided libraries.

    Programs for Windows name DLLs in any case.
    """
    provided = [one for one in needs if one.status == "provided" and one.kind != "opened"]
    names = {one.soname: one.providers[-1].soname for one in provided}
    tables = knowledge.tables(sorted({*names.values()}))
    return {soname: tables[name] for soname, name in names.items() if name in tables}


def _requirements(
    program: Sequence[ProgramFile],
    needs: Sequence[LibraryNeed],
    tables: Mapping[str, SymbolColumns],
    majors: Sequence[FileMajors],
    groups: Sequence[frozenset[int]],
) -> tuple[list[RequiredRelease], list[PipRequirement]]:
    """Return the releases and wheels that each part of a program requires."""
    releases: list[RequiredRelease] = []
    requirements: list[PipRequirement] = []
    for group in groups:
        part = needs_of(needs, group, majors)
        excluded = {one.file.shown for one in majors if group and not one.common & group}
        files = [file for file in program if file.shown not in excluded]
        required = required_releases(part, files, tables, group)
        releases += required
        requirements += pip_requirements(part, required, group)
    return releases, requirements


def _library(
    need: LibraryNeed, majors: Collection[int], gaps: Iterable[RunPathGap]
) -> AuditedLibrary:
    fitting = [one for one in need.providers if one.major is None or one.major in majors]
    return AuditedLibrary(
        soname=need.soname,
        kind=need.kind,
        status=need.status,
        cuda=need.is_cuda,
        by=_paths(need.by),
        bundled=_paths(need.bundled),
        providers=tuple(_providers(fitting or need.providers)),
        owner=need.owner,
        not_found_by=_paths(gap.file for gap in gaps if gap.need is need),
    )


def _unneeded(
    copies: Iterable[ProgramFile], needs: Iterable[LibraryNeed], catalog: Catalog
) -> Iterator[AuditedLibrary]:
    """Yield the copies of NVIDIA's libraries that no file needs."""
    used = {file.shown for need in needs for file in need.bundled}
    found: dict[str, list[ProgramFile]] = defaultdict(list)
    for file in copies:
        if file.shown not in used:
            found[catalog.soname_of(file.name) or file.name].append(file)
    for soname, files in sorted(found.items()):
        yield AuditedLibrary(
            soname=soname, kind="bundled", status="bundled", cuda=True, by=(), bundled=_paths(files)
        )


def _providers(libraries: Iterable[KnownLibrary]) -> Iterator[LibraryProvider]:
    groups: dict[tuple[str, str, str, str | None, str | None], list[Version]] = defaultdict(list)
    for one in libraries:
        key = (one.redist, one.package, one.platform, one.variant, one.project)
        groups[key].append(one.label)
    for (redist, package, platform, variant, project), labels in groups.items():
        yield LibraryProvider(
            redist=redist,
            package=package,
            platform=platform,
            variant=variant,
            project=project,
            first=str(min(labels)),
            last=str(max(labels)),
        )


def _release(release: RequiredRelease) -> AuditedRelease:
    labels = release.labels
    return AuditedRelease(
        redist=release.redist,
        cuda_majors=tuple(sorted(release.majors)),
        sonames=release.sonames,
        lowest=None if release.lowest is None else str(release.lowest),
        first=str(labels[0]) if labels else None,
        last=str(labels[-1]) if labels else None,
        unknown=tuple(map(str, release.unknown)),
        not_fitting=tuple(map(str, release.lacking)),
        decisive=release.decisive,
        unresolved=release.unresolved,
    )


def _floor(program: Sequence[ProgramFile], fact: str) -> Floor:
    by_version: dict[str, list[ProgramFile]] = defaultdict(list)
    for file in program:
        version: str | None = getattr(file.binary, fact)
        if version is not None:
            by_version[version].append(file)
    newest = max(by_version, key=natural_order, default=None)
    return Floor(
        version=newest,
        by=_paths(by_version[newest]) if newest is not None else (),
        unread=_paths(file for file in program if fact in file.binary.unread),
    )


def _coverage(
    program: Sequence[ProgramFile],
    rules: CoverageRules | None,
    platforms: Iterable[str],
    required: Iterable[str],
) -> dict[str, Coverage] | None:
    """Return the coverage of the GPUs on the program's platforms, and of required ones.

    It is unknown if no readable file has device code and another one cannot be read.
    """
    if rules is None:
        return None
    files = [code for file in program if (code := _file_code(file.binary)) is not None]
    known = [gpu for one in platforms for gpu in rules.capabilities_on(Platform(one))]
    chosen = {*(known or rules.capabilities), *map(Capability.parse, required)}
    names = [str(gpu) for gpu in sorted(chosen) if gpu in rules.capabilities]
    if not files and any(_is_unreadable(file.binary) for file in program):
        return {name: Coverage(value="unknown") for name in names}
    return rules.cover(files, names)


def _is_unreadable(binary: Binary) -> bool:
    return binary.kind in {"elf", "pe"} and "needed" in binary.unread


def _file_code(binary: Binary) -> FileCode | None:
    if binary.images is None:
        return None
    sizes = binary.images.sizes
    return FileCode(
        output="lib",
        modules=binary.images.modules,
        bytes={name: packed for name, (packed, _) in sizes.items()},
        unpacked={name: unpacked for name, (_, unpacked) in sizes.items()},
    )


def _device_code(program: Iterable[ProgramFile]) -> Iterator[DeviceFile]:
    for file in sorted(program, key=lambda file: file.shown):
        names = {name for section in file.binary.device_code for name in section.counts}
        if names:
            yield DeviceFile(path=file.shown, architectures=tuple(sorted(names, key=natural_order)))


def _runtime(program: Iterable[ProgramFile]) -> CudaRuntime:
    """Return how files are linked with the CUDA runtime.

    Code compiled by nvcc calls a function of the runtime, which opens the driver. If no other
    library provides it, the file contains the runtime, or a substitute that loads it.
    """
    static, shared, unknown = [], [], []
    for file in sorted(program, key=lambda file: file.shown):
        binary = file.binary
        if binary.kind not in {"elf", "pe"}:
            continue
        if any(name.lower().startswith(("libcudart.so", "cudart64_")) for name in binary.needed):
            shared.append(file.shown)
        elif any(section.is_declared for section in binary.device_code):
            if {"symbols", "needed"} & {*binary.unread}:
                unknown.append(file.shown)
            elif any(one.name == _REGISTER for one in imports_of(binary)):
                # Another library of the program may contain the runtime, or a substitute.
                unknown.append(file.shown)
            elif any(name.lower() in _DRIVER for name in (*binary.opens, *binary.needed)):
                static.append(file.shown)
            else:
                unknown.append(file.shown)
    return CudaRuntime(static=tuple(static), shared=tuple(shared), unknown=tuple(unknown))


def _notes(program: Iterable[ProgramFile]) -> Iterator[str]:
    for file in sorted(program, key=lambda file: file.shown):
        if file.binary.unread:
            yield f"{file.shown}: not read: {', '.join(file.binary.unread)}"


def _paths(files: Iterable[ProgramFile]) -> tuple[str, ...]:
    return tuple(sorted(file.shown for file in files))
