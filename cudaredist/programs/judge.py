"""Judge a program by the known libraries, their symbols, and the known GPUs."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter

from cudaredist.binaries.file_facts import Binary
from cudaredist.features.library_symbols import import_groups
from cudaredist.grouping import grouped
from cudaredist.primitives import Version, find_release, natural_order
from cudaredist.programs.alternatives import (
    alternatives,
    audited_alternatives,
    best_coverage,
    fitting,
    gpus_on,
)
from cudaredist.programs.copied_releases import originals_of
from cudaredist.programs.cuda_majors import file_majors, major_groups, needs_of
from cudaredist.programs.gpu_coverage import Code, cover
from cudaredist.programs.library_names import original_name
from cudaredist.programs.lowest_release import RequiredRelease, required_releases
from cudaredist.programs.needs import library_needs
from cudaredist.programs.program import (
    AuditData,
    AuditRequirements,
    KnownLibrary,
    Majors,
    ProgramFile,
    paths_of,
)
from cudaredist.programs.report import (
    AuditedLibrary,
    CudaRuntime,
    DeviceFile,
    Floor,
    LibraryProvider,
    PipRequirement,
)
from cudaredist.programs.run_paths import run_path_gaps
from cudaredist.programs.unlinked import with_unlinked
from cudaredist.programs.wheel_requirements import pip_requirements
from cudaredist.tables.symbols.symbol_table import SymbolColumns
from cudaredist.wheel_projects import other_projects
from cudaredist.words import shortened

_REGISTER = "__cudaRegisterFatBinary"
"""The function of the CUDA runtime that all device code compiled by nvcc is passed to."""
_NOTES = 3
"""Notes of a file that are shown."""
_RUNTIME = ("libcudart.so", "cudart64_")
_runtime_version = re.compile(r"libcudart\.so\.([0-9]+\.[0-9]+\.[0-9]+)").fullmatch
_DRIVER = frozenset({"libcuda.so", "libcuda.so.1", "nvcuda.dll"})
_path_of = attrgetter("display_path")


class JudgedProgram:
    """A program, compared with the data."""

    def __init__(
        self, files: Sequence[ProgramFile], data: AuditData, required: AuditRequirements
    ) -> None:
        catalog = data.catalog
        self.data, self.required = data, required
        self.files = with_unlinked(files, data)
        self.needs = library_needs(self.files, data)
        self.majors = file_majors(self.files, self.needs, catalog)
        self.gaps = tuple(run_path_gaps(self.files, self.needs, self.majors))
        self.copies = [file for file in self.files if catalog.is_copy(file)]
        nvidia = catalog.nvidia_build(self.files)
        others = [file for file in self.files if not catalog.is_copy(file)]
        self.own = self.files if nvidia is not None else others or self.files
        platforms = (file.platforms[0] for file in self.files if file.platforms)
        self.platforms = tuple(dict.fromkeys(platforms))
        groups = major_groups(self.majors)
        self.cuda_majors = tuple(sorted({major for group in groups for major in group}))
        known = catalog.labels("cuda") if required.cuda is not None else ()
        self.cuda = find_release(required.cuda or "", known)
        """The required release of CUDA."""
        labels = [label for label in known if label.begins_with(Version.parse(required.cuda or ""))]
        self.releases: list[RequiredRelease] = []
        self.requirements: list[PipRequirement] = []
        self._require(groups, labels)
        gpus = gpus_on(self.platforms, required.gpus, data.rules)
        parts = () if nvidia is not None else alternatives(self.own)
        self.alternatives = audited_alternatives(parts, gpus, data.rules, self.cuda)
        chosen = fitting(parts, self.cuda)
        self.codes = [Code(part.loaded) for part in chosen] or [Code(self.own, nvidia)]
        """The files with device code that are loaded together, for each alternative."""
        best = best_coverage(audited_alternatives(chosen, gpus, data.rules, self.cuda))
        self.coverage = best or cover(self.codes[0], gpus, data.rules, self.cuda)
        self.glibc, self.libstdcxx = (_floor(self.files, fact) for fact in ("glibc", "libstdcxx"))

    def _require(self, groups: Iterable[Majors], labels: Collection[Version]) -> None:
        """Add the releases and wheels that each part of the program requires.

        Only wheels of some CUDA releases count if there are labels. Files that need several majors
        at once are a part of their own, without releases.
        """
        tables = self._tables()
        mixed = {file.path for file in self.majors if not file.common}
        for group in groups:
            others = [file for file in self.majors if group and file.common.isdisjoint(group)]
            excluded = mixed | {file.path for file in others}
            part = needs_of(self.needs, group, excluded)
            files = [file for file in self.files if file.display_path not in excluded]
            releases = required_releases(part, files, tables, group)
            self.releases += releases
            self.requirements += pip_requirements(part, releases, group, labels)
        all_paths = {file.display_path for file in self.files}
        part = needs_of(self.needs, frozenset(), all_paths - mixed)
        for wheel in pip_requirements(part, (), frozenset(), labels):
            self.requirements.append(wheel.model_copy(update={"is_mixed": True}))

    def _tables(self) -> dict[str, SymbolColumns]:
        """Return the symbol tables of provided libraries.

        Programs for Windows name DLLs in any case.
        """
        names = {
            need.soname: need.libraries[-1].soname
            for need in self.needs
            if need.status == "provided" and need.kind != "opened"
        }
        tables = self.data.tables(sorted({*names.values()}))
        return {soname: tables[name] for soname, name in names.items() if name in tables}

    def libraries(self) -> Iterator[AuditedLibrary]:
        """Yield the needed libraries, and the copies of NVIDIA's libraries that no file needs."""
        majors = self.cuda_majors
        for need in self.needs:
            fitting = [library for library in need.libraries if library.major in {None, *majors}]
            projects = other_projects(need.soname, majors) if need.status == "unknown" else ()
            yield AuditedLibrary(
                soname=need.soname,
                kind=need.kind,
                status=need.status,
                cuda=need.cuda,
                by=need.by,
                bundled=tuple(sorted(need.bundled)),
                releases=self._releases_of(need.bundled),
                providers=tuple(_providers(fitting or need.libraries)),
                owner=need.owner,
                projects=projects,
                not_found_by=paths_of(gap.file for gap in self.gaps if gap.need is need),
            )
        used = {path for need in self.needs for path in need.bundled}
        for soname, files in self.copies_by_soname().items():
            unused = paths_of(file for file in files if file.display_path not in used)
            if unused:
                yield AuditedLibrary(
                    soname=soname,
                    kind="bundled",
                    status="bundled",
                    cuda=True,
                    by=(),
                    bundled=unused,
                    releases=self._releases_of(unused),
                )

    def _releases_of(self, paths: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the releases of the copies of NVIDIA's libraries among some files."""
        copies = (file for file in self.copies if file.display_path in paths)
        originals = {file.display_path: originals_of(file, self.data) for file in copies}
        return {
            path: tuple(dict.fromkeys(f"{library.redist} {library.label}" for library in libraries))
            for path, libraries in originals.items()
        }

    def copies_by_soname(self) -> dict[str, list[ProgramFile]]:
        """Return the copies of each of NVIDIA's libraries, sorted by soname."""
        soname_of = self.data.catalog.soname_of
        copies = grouped((soname_of(file) or file.name, file) for file in self.copies)
        return dict(sorted(copies.items()))

    def device_code(self) -> Iterator[DeviceFile]:
        """Yield the architectures of the program's own device code."""
        for file in sorted(self.own, key=_path_of):
            parts = (file.binary.images, file.binary.cubins)
            names = {name for part in parts if part is not None for name in part.sizes}
            if names:
                architectures = tuple(sorted(names, key=natural_order))
                yield DeviceFile(path=file.display_path, architectures=architectures)

    def runtime(self) -> CudaRuntime:
        """Return how files are linked with the CUDA runtime."""
        files = grouped((_linking(file.binary), file.display_path) for file in self.own)
        names = (original_name(name) for copy in self.copies for name in copy.names)
        versions = {match[1] for match in map(_runtime_version, names) if match is not None}
        # The names of the kinds of linking are those of the report's fields.
        return CudaRuntime(
            **{linking: tuple(sorted(paths)) for linking, paths in files.items() if linking},
            versions=tuple(sorted(versions, key=natural_order)),
        )

    def notes(self) -> Iterator[str]:
        """Yield the irregularities of files."""
        for file in sorted(self.files, key=_path_of):
            binary = file.binary
            if binary.unread:
                yield f"{file.display_path}: not read: {', '.join(binary.unread)}"
            elif binary.notes:
                yield f"{file.display_path}: {'; '.join(shortened(binary.notes, _NOTES))}"


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
    by = paths_of(by_version[newest]) if newest is not None else ()
    unread = paths_of(file for file in program if fact in file.binary.unread)
    return Floor(version=newest, by=by, unread=unread)


def _linking(binary: Binary) -> str | None:
    """Return how a file is linked with the CUDA runtime, None if it does not need the runtime.

    Code compiled by nvcc calls a function of the runtime, which opens the driver. If no other
    library provides it, the file contains the runtime, or a substitute that loads it.
    """
    if binary.kind not in {"elf", "pe"}:
        return None
    if any(original_name(name).lower().startswith(_RUNTIME) for name in binary.needed):
        return "shared"
    if not any(section.is_declared for section in binary.device_code):
        return None
    # Another library of the program may contain the runtime, or a substitute.
    is_static = (
        {"symbols", "needed"}.isdisjoint(binary.unread)
        and all(_REGISTER not in names for names, *_ in import_groups(binary))
        and any(name.lower() in _DRIVER for name in (*binary.opens, *binary.needed))
    )
    return "static" if is_static else "unknown"
