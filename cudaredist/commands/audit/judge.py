"""Judge a program by the known libraries, their symbols, and the known GPUs."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from cudaredist.cli.text import grouped
from cudaredist.commands.audit.alternatives import alternatives, best_coverage, cover
from cudaredist.commands.audit.cuda_majors import FileMajors, file_majors, major_groups, needs_of
from cudaredist.commands.audit.library_names import original_name
from cudaredist.commands.audit.lowest_release import RequiredRelease, required_releases
from cudaredist.commands.audit.needs import LibraryNeed, is_bundled_copy, library_needs
from cudaredist.commands.audit.program import Catalog, KnownLibrary, ProgramFile, paths_of
from cudaredist.commands.audit.program_findings import (
    AuditRequirements,
    driver_findings,
    program_findings,
    requirement_findings,
    unread_findings,
)
from cudaredist.commands.audit.report import (
    AuditedLibrary,
    AuditInput,
    AuditReport,
    CudaRuntime,
    DeviceFile,
    Floor,
    LibraryProvider,
    PipRequirement,
)
from cudaredist.commands.audit.run_paths import RunPathGap, run_path_gaps
from cudaredist.commands.audit.unlinked import with_unlinked
from cudaredist.commands.audit.wheel_requirements import pip_requirements
from cudaredist.errors import shortened, worst_exit_code
from cudaredist.features.library_symbols import import_groups
from cudaredist.formats.policy import DriverPolicy, LibraryPolicy
from cudaredist.formats.report import ErrorReport
from cudaredist.primitives import Version, find_release, natural_order
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.symbols.symbol_table import SymbolColumns
from cudaredist.wheels import other_projects

_REGISTER = "__cudaRegisterFatBinary"
"""The function of the CUDA runtime that all device code compiled by nvcc is passed to."""
_NOTES = 3
"""Notes of a file that are shown."""
_RUNTIME = ("libcudart.so", "cudart64_")
_runtime_version = re.compile(r"libcudart\.so\.([0-9]+\.[0-9]+\.[0-9]+)").fullmatch
_DRIVER = frozenset({"libcuda.so", "libcuda.so.1", "nvcuda.dll"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditData:
    """The data that programs are compared with."""

    title: str
    """The package set or the data, in words."""
    channel: str
    catalog: Catalog
    policy: LibraryPolicy
    drivers: DriverPolicy
    rules: CoverageRules | None
    tables: Callable[[Sequence[str]], Mapping[str, SymbolColumns]]
    """Returns the symbol tables of libraries."""


def judge_program(
    program: Sequence[ProgramFile],
    data: AuditData,
    required: AuditRequirements,
    *,
    paths: Iterable[object] = (),
    inputs: Sequence[AuditInput] = (),
    notes: Iterable[str] = (),
    skipped: Sequence[str] = (),
    errors: Sequence[ErrorReport] = (),
) -> AuditReport:
    """Return the report on a program."""
    catalog = data.catalog
    program = with_unlinked(program, catalog, data.tables)
    needs = library_needs(program, catalog, data.policy)
    groups = major_groups(majors := file_majors(program, needs, catalog))
    cuda = None if required.cuda is None else find_release(required.cuda, catalog.labels("cuda"))
    labels = _labels_like(required.cuda, catalog)
    releases, requirements = _requirements(program, needs, data, majors, groups, labels)
    gaps = list(run_path_gaps(program, needs))
    copies = [file for file in program if is_bundled_copy(file, catalog)]
    own = [file for file in program if file not in copies] or list(program)
    platforms = tuple(dict.fromkeys(file.platforms[0] for file in program if file.platforms))
    parts = alternatives(own, data.rules, platforms, required.gpus)
    coverage = best_coverage(parts, cuda) or cover(own, data.rules, platforms, required.gpus)
    glibc = _floor(program, "glibc")
    findings = (
        *program_findings(program, needs, releases, majors, gaps, catalog),
        *requirement_findings(required, coverage, glibc, releases, copies, cuda, data.channel),
        *driver_findings(required, data.drivers, cuda, releases, own),
        *unread_findings(required, program, skipped),
    )
    all_majors = tuple(sorted({major for group in groups for major in group}))
    return AuditReport(
        paths=tuple(map(str, paths)),
        inputs=tuple(inputs),
        platforms=platforms,
        channel=data.channel,
        judged_by=data.title,
        required_cuda=None if cuda is None else str(cuda),
        libraries=(
            *(_library(need, all_majors, gaps) for need in needs),
            *_unneeded(copies, needs, catalog),
        ),
        cuda_majors=all_majors,
        releases=tuple(releases),
        requirements=tuple(requirements),
        runtime=_runtime(own, copies),
        glibc=glibc,
        libstdcxx=_floor(program, "libstdcxx"),
        coverage=coverage,
        alternatives=parts,
        device_code=tuple(_device_code(own)),
        unread=paths_of(file for file in program if "needed" in file.binary.unread),
        findings=findings,
        notes=(*notes, *_notes(program)),
        skipped=tuple(skipped),
        errors=tuple(errors),
        exit_code=worst_exit_code([n.exit_code for n in findings] + [n.exit_code for n in errors]),
    )


def _tables(needs: Iterable[LibraryNeed], data: AuditData) -> dict[str, SymbolColumns]:
    """Return the symbol tables of provided libraries.

    Programs for Windows name DLLs in any case.
    """
    provided = [need for need in needs if need.status == "provided" and need.kind != "opened"]
    names = {need.soname: need.libraries[-1].soname for need in provided}
    tables = data.tables(sorted({*names.values()}))
    return {soname: tables[name] for soname, name in names.items() if name in tables}


def _requirements(
    program: Sequence[ProgramFile],
    needs: Sequence[LibraryNeed],
    data: AuditData,
    majors: Sequence[FileMajors],
    groups: Sequence[frozenset[int]],
    labels: Collection[Version],
) -> tuple[list[RequiredRelease], list[PipRequirement]]:
    """Return the releases and wheels that each part of a program requires.

    Only wheels of some CUDA releases count if there are labels. Files of several majors are a part
    of their own, without releases.
    """
    releases: list[RequiredRelease] = []
    requirements: list[PipRequirement] = []
    tables = _tables(needs, data)
    mixed = {file.path for file in majors if not file.common}
    for group in groups:
        excluded = mixed | {file.path for file in majors if group and not file.common & group}
        part = needs_of(needs, group, excluded)
        files = [file for file in program if file.display_path not in excluded]
        required = required_releases(part, files, tables, group)
        releases += required
        requirements += pip_requirements(part, required, group, labels)
    part = needs_of(needs, frozenset(), {file.display_path for file in program} - mixed)
    for wheel in pip_requirements(part, (), frozenset(), labels):
        requirements.append(wheel.model_copy(update={"is_mixed": True}))
    return releases, requirements


def _labels_like(prefix: str | None, catalog: Catalog) -> frozenset[Version]:
    """Return the releases of CUDA that begin with a prefix such as `12.9`."""
    labels = catalog.labels("cuda") if prefix is not None else ()
    return frozenset(n for n in labels if n.begins_with(Version.parse(prefix or "")))


def _library(
    need: LibraryNeed, majors: Collection[int], gaps: Iterable[RunPathGap]
) -> AuditedLibrary:
    """Return a library's report, with the providers for the program's CUDA majors."""
    fitting = [lib for lib in need.libraries if lib.major is None or lib.major in majors]
    return need.model_copy(
        update={
            "bundled": tuple(sorted(need.bundled)),
            "providers": tuple(_providers(fitting or need.libraries)),
            "projects": other_projects(need.soname, majors) if need.status == "unknown" else (),
            "not_found_by": tuple(sorted(gap.path for gap in gaps if gap.need is need)),
        }
    )


def _unneeded(
    copies: Iterable[ProgramFile], needs: Iterable[LibraryNeed], catalog: Catalog
) -> Iterator[AuditedLibrary]:
    """Yield the copies of NVIDIA's libraries that no file needs."""
    used = {path for need in needs for path in need.bundled}
    unused = grouped(
        (catalog.soname_of(file.name) or file.name, file)
        for file in copies
        if file.display_path not in used
    )
    for soname, files in sorted(unused.items()):
        yield AuditedLibrary(
            soname=soname,
            kind="bundled",
            status="bundled",
            cuda=True,
            by=(),
            bundled=paths_of(files),
        )


def _providers(libraries: Iterable[KnownLibrary]) -> Iterator[LibraryProvider]:
    names = ("redist", "package", "platform", "variant", "project")
    key = attrgetter(*names)
    labels_of = grouped((key(library), library.label) for library in libraries)
    for values, labels in labels_of.items():
        fields = dict(zip(names, values, strict=True))
        yield LibraryProvider(**fields, first=str(min(labels)), last=str(max(labels)))


def _floor(program: Sequence[ProgramFile], fact: str) -> Floor:
    by_version = grouped((getattr(file.binary, fact), file) for file in program)
    newest = max(filter(None, by_version), key=natural_order, default=None)
    return Floor(
        version=newest,
        by=paths_of(by_version[newest]) if newest is not None else (),
        unread=paths_of(file for file in program if fact in file.binary.unread),
    )


def _device_code(program: Iterable[ProgramFile]) -> Iterator[DeviceFile]:
    for file in sorted(program, key=lambda file: file.display_path):
        names = {name for section in file.binary.device_code for name in section.counts}
        if names:
            architectures = tuple(sorted(names, key=natural_order))
            yield DeviceFile(path=file.display_path, architectures=architectures)


def _runtime(program: Iterable[ProgramFile], copies: Iterable[ProgramFile]) -> CudaRuntime:
    """Return how files are linked with the CUDA runtime.

    Code compiled by nvcc calls a function of the runtime, which opens the driver. If no other
    library provides it, the file contains the runtime, or a substitute that loads it.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for file in sorted(program, key=lambda file: file.display_path):
        binary = file.binary
        if binary.kind not in {"elf", "pe"}:
            continue
        if any(original_name(name).lower().startswith(_RUNTIME) for name in binary.needed):
            files["shared"].append(file.display_path)
        elif any(section.is_declared for section in binary.device_code):
            # Another library of the program may contain the runtime, or a substitute.
            is_static = (
                {"symbols", "needed"}.isdisjoint(binary.unread)
                and all(_REGISTER not in names for names, *_ in import_groups(binary))
                and any(name.lower() in _DRIVER for name in (*binary.opens, *binary.needed))
            )
            files["static" if is_static else "unknown"].append(file.display_path)
    versions = (_runtime_version(original_name(path)) for copy in copies for path in copy.names)
    known = {match[1] for match in versions if match is not None}
    parts = {key: tuple(paths) for key, paths in files.items()}
    return CudaRuntime(**parts, versions=tuple(sorted(known, key=natural_order)))


def _notes(program: Iterable[ProgramFile]) -> Iterator[str]:
    for file in sorted(program, key=lambda file: file.display_path):
        binary = file.binary
        if binary.unread:
            yield f"{file.display_path}: not read: {', '.join(binary.unread)}"
        elif binary.notes:
            yield f"{file.display_path}: {'; '.join(shortened(binary.notes, _NOTES))}"
