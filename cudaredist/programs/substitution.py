"""Compare the libraries that a program requires with those of a package set.

A distribution replaces the wheels of NVIDIA that a wheel pins by its own packages. The program runs
with them if the set has libraries of the same names, with the symbols that files use, and with
device code for the same GPUs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import InvalidVersion
from packaging.version import Version as WheelVersion

from cudaredist.formats.coverage import Coverage
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.primitives import Platform, Version
from cudaredist.programs.alternatives import groups_of_alternatives
from cudaredist.programs.declared import Declared, without_major
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.gpu_coverage import RUNS
from cudaredist.programs.judge import JudgedProgram
from cudaredist.programs.library_names import family_of
from cudaredist.programs.lowest_release import symbols_by_library
from cudaredist.programs.needs import LibraryNeed
from cudaredist.programs.program import KnownLibrary, ProgramFile
from cudaredist.programs.repair import Repair
from cudaredist.programs.report import (
    RequiredLibrary,
    Substitution,
    SubstitutionAnswer,
    VersionChange,
)
from cudaredist.programs.supplied_set import SuppliedLibrary, SuppliedSet
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.redists import CUDA
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.symbols.symbol_table import Import, LibraryRelease
from cudaredist.wheel_projects import METAPACKAGES, other_project
from cudaredist.wheels import applies_on

_RUNS = RUNS | {"host-only"}
"""Coverage by libraries that run on a GPU."""


class _Pin(NamedTuple):
    """A requirement for the wheel with a library."""

    declared: Declared
    wheels: Sequence[KnownLibrary]
    """The library in all known versions of the wheel."""

    @property
    def version(self) -> WheelVersion | None:
        """The only version that the requirement allows, None for a range."""
        parts = list(self.declared.requirement.specifier)
        if len(parts) != 1 or parts[0].operator not in {"==", "==="}:
            return None
        try:
            return WheelVersion(parts[0].version)
        except InvalidVersion:  # such as ==12.*
            return None

    @property
    def newest(self) -> KnownLibrary | None:
        """The library in the newest wheel that the requirement allows, as far as it is known."""
        allowed = filter(self.declared.allows, self.wheels)
        return max(allowed, key=lambda library: library.label, default=None)


def compare_with_set(
    judged: JudgedProgram,
    declared: Iterable[Declared],
    supplied: SuppliedSet,
    skipped: Sequence[str],
) -> tuple[Substitution, list[Finding]]:
    """Return the entry of the report, and the findings.

    `declared` are the requirements of the program's wheels, or the installed wheels of an
    environment. `skipped` are files that could not be read.
    """
    comparison = _Comparison(judged, declared, supplied)
    if comparison.is_for_other_machine:
        message = f"{supplied.path} is for {supplied.platform}, the program for "
        finding = Finding("missing-library", message + " and ".join(judged.platforms))
        return Substitution(supplied_by=supplied.title, answer="no", libraries=()), [finding]
    rows = list(comparison.rows())
    repair = comparison.repair(rows)
    findings = [finding for row in rows for finding in comparison.findings(row, repair)]
    findings += comparison.gpu_findings(rows)
    findings += comparison.major_findings(rows)
    unread = [*skipped, *(file.display_path for file in comparison.files if file.is_unread)]
    if unread:
        message = f"--supplied-by is unknown: {some_of(unread)} cannot be read"
        findings.append(Finding("unknown", message))
    with_code = [file.path for file in judged.device_code()]
    if with_code and not rows:
        # The plugin of JAX opens libraries by names that it composes, which are not in its bytes.
        message = f"--supplied-by is unknown: {some_of(with_code)} may load libraries whose names "
        message += "are neither in the files nor in a requirement"
        findings.append(Finding("unknown", message))
    kinds = {finding.kind for finding in findings if not finding.is_warning}
    answer: SubstitutionAnswer = "yes"
    if kinds:
        answer = "unknown" if kinds == {"unknown"} else "no"
    report = Substitution(supplied_by=supplied.title, answer=answer, libraries=tuple(rows))
    return report, findings


class _Comparison:
    """The libraries of a program, and the set that supplies them."""

    def __init__(
        self, judged: JudgedProgram, declared: Iterable[Declared], supplied: SuppliedSet
    ) -> None:
        self.judged, self.supplied = judged, supplied
        self.catalog = judged.data.catalog
        self.platforms = judged.platforms or (supplied.platform,)
        projects = self.catalog.projects() | METAPACKAGES.keys()
        applying = (each for each in declared if applies_on(each.requirement, self.platforms[0]))
        self.declared = [each for each in applying if each.project in projects]
        cuda = Version.parse(supplied.package_set.cuda.release)
        others = [file for file in judged.files if not _is_for(file, supplied.platform)]
        self.is_for_other_machine = bool(others) and not any(
            file.platforms for file in judged.files if file not in others
        )
        """Whether no file of the program runs on the platform of the set."""
        unused = {file.display_path for file in _unused_alternatives(judged.files, cuda)}
        unused |= {file.display_path for file in others}
        self.files = [file for file in judged.files if file.display_path not in unused]
        used = (
            need._replace(by=tuple(path for path in need.by if path not in unused))
            for need in judged.needs
        )
        self.needs = [need for need in used if need.by and self._may_be_supplied(need)]
        rules = supplied.rules
        known = () if rules is None else rules.capabilities_on(Platform(supplied.platform))
        self.gpus = list(map(str, known))
        own = (judged.coverage or {}).items()
        self.own_gpus = [gpu for gpu, part in own if part.value in RUNS]
        """The GPUs that run the device code of the program itself."""

    def _may_be_supplied(self, need: LibraryNeed) -> bool:
        """Check if a library is one that a set may have."""
        if need.status == "external":
            return False
        is_in_set = self.supplied.find(need.soname) is not None
        return need.cuda or is_in_set or other_project(need.soname) is not None

    # -- the libraries

    def rows(self) -> Iterator[RequiredLibrary]:
        """Yield the libraries that files need or may open, and those of other declared wheels."""
        needs = [need for need in self.needs if need.kind != "opened"]
        releases, symbols = self._symbols(needs)
        named: set[str] = set()
        for need in (*needs, *self._opened()):
            pins = self._pins(self._known(need))
            named |= {pin.declared.project for pin in pins}
            yield self._row(need, pins, releases, symbols.get(need.soname, set()))
        yield from self._declared(named)

    def _symbols(
        self, needs: Sequence[LibraryNeed]
    ) -> tuple[dict[str, LibraryRelease], dict[str, set[Import]]]:
        """Return the symbols of supplied libraries, and those that files use of each library."""
        libraries = {need.soname: self.supplied.find(need.soname) for need in needs}
        names: dict[str, str] = {}
        for need in needs:
            library = libraries[need.soname]
            if library is not None:
                names[need.soname] = library.soname
            elif need.libraries:
                names[need.soname] = need.libraries[-1].soname
        known = self.judged.data.tables(sorted({*names.values()}))
        tables = {soname: known[name] for soname, name in names.items() if name in known}
        releases: dict[str, LibraryRelease] = {}
        for soname, table in tables.items():
            library = libraries[soname]
            archives = () if library is None else library.archives
            release = next(filter(None, map(table.in_archive, archives)), None)
            if release is not None:
                releases[soname] = release
        return releases, symbols_by_library(self.files, [*names], tables)

    def _row(
        self,
        need: LibraryNeed,
        pins: Sequence[_Pin],
        releases: Mapping[str, LibraryRelease],
        symbols: Collection[Import],
    ) -> RequiredLibrary:
        """Return the entry of a library that files name."""
        library = self.supplied.find(need.soname)
        row = RequiredLibrary(
            soname=need.soname,
            kind=need.kind,
            by=need.by,
            pinned=tuple(dict.fromkeys(str(pin.declared) for pin in pins)),
            status="missing",
            is_optional=need.kind == "opened" and not pins and not self._others(need.soname),
        )
        if need.status == "bundled":
            return row.model_copy(update={"status": "bundled"})
        if library is None:
            package = self.supplied.unexamined_package(self._known(need))
            return row if package is None else row.model_copy(update={"status": "unknown"})
        own = releases.get(need.soname)
        missing = {symbol.name for symbol in symbols if not _is_exported(symbol, own, releases)}
        is_known = need.kind == "opened" or own is not None
        update = {
            "status": "supplied" if is_known else "unknown",
            "symbols": len({symbol.name for symbol in symbols}),
            "missing_symbols": tuple(sorted(missing)) if own is not None else (),
        }
        return self._supplied(row, library, pins).model_copy(update=update)

    def _supplied(
        self, row: RequiredLibrary, library: SuppliedLibrary, pins: Sequence[_Pin]
    ) -> RequiredLibrary:
        """Return an entry with the package of the set."""
        package = library.package
        parts, missing_parts = self.supplied.parts(library, self.catalog.stems_of(package.pname))
        update = {
            "status": "supplied",
            "package": package.attr,
            "version": package.version or package.release,
            "change": _change(library, pins),
            "parts": parts,
            "missing_parts": missing_parts,
            "gpus_lost": self._gpus_lost(library, pins),
        }
        return row.model_copy(update=update)

    def _known(self, need: LibraryNeed) -> Sequence[KnownLibrary]:
        """Return the known libraries with a name, also if the program contains its own copy."""
        return need.libraries or self.catalog.providers(need.soname, self.platforms)

    def _pins(self, libraries: Sequence[KnownLibrary]) -> list[_Pin]:
        """Return the requirements for wheels with a library, in any version."""
        pairs = ((each, list(filter(each.names, libraries))) for each in self.declared)
        return [_Pin(each, wheels) for each, wheels in pairs if wheels]

    def _opened(self) -> Iterator[LibraryNeed]:
        """Yield the libraries that files may open, one version of each.

        A file may have the names of several versions, and opens the first one that it finds.
        """
        opened = [need for need in self.needs if need.kind == "opened"]
        for needs in grouped((family_of(need.soname), need) for need in opened).values():
            supplied = [need for need in needs if self.supplied.find(need.soname) is not None]
            pinned = [need for need in needs if self._pins(self._known(need))]
            yield (supplied or pinned or needs)[-1]

    def _declared(self, named: Collection[str]) -> Iterator[RequiredLibrary]:
        """Yield the libraries of declared wheels that no file names.

        The program may load them when it runs. A wheel may have extras for several CUDA majors, so
        one wheel of each product is enough.
        """
        others = [each for each in self.declared if each.project not in named]
        for of_product in grouped((without_major(each.project), each) for each in others).values():
            found = (self._declared_row(each, has_names=bool(named)) for each in of_product)
            rows = {row.soname: row for row in found if row is not None}.values()
            yield from [row for row in rows if row.status == "supplied"] or rows

    def _declared_row(self, declared: Declared, *, has_names: bool) -> RequiredLibrary | None:
        """Return the main library of a declared wheel, None if its libraries are unknown.

        An extra is optional if files name other libraries (`has_names`).
        """
        known = self.catalog.on_platforms(self.platforms)
        wheels = _nearest(_Pin(declared, list(filter(declared.names, known))))
        # Those of further libraries are longer, such as libcublasLt.so.12.
        main = min(wheels, key=lambda library: (len(library.soname), library), default=None)
        if main is None:
            return None
        row = RequiredLibrary(
            soname=main.soname,
            kind="declared",
            by=(declared.package,),
            pinned=(str(declared),),
            status="missing",
            is_optional=has_names and "extra" in str(declared.requirement.marker or ""),
        )
        library = self.supplied.find(main.soname)
        if library is not None:
            return self._supplied(row, library, [_Pin(declared, [main])])
        is_unknown = self.supplied.unexamined_package([main]) is not None
        return row.model_copy(update={"status": "unknown"}) if is_unknown else row

    def _gpus_lost(self, library: SuppliedLibrary, pins: Sequence[_Pin]) -> tuple[str, ...] | None:
        """Return the GPUs that run the required wheel, but not the supplied library.

        If the device code of the required wheel is unknown, they are those of the program. None if
        the answer is unknown.
        """
        supplied = self.supplied.coverage(library, self.gpus)
        newest = [pin.newest for pin in pins]
        keys = [each.archive for each in newest if each is not None]
        coverage: list[Mapping[str, Coverage]] = list(
            filter(None, (self.supplied.coverage_of_archive(key, self.gpus) for key in keys))
        )
        before = self.own_gpus or (self.gpus if coverage else [])
        if not before or not supplied:
            return None
        for part in coverage:
            before = [gpu for gpu in before if gpu in part and part[gpu].value in _RUNS]
        return tuple(
            gpu
            for gpu in before
            if gpu in supplied and supplied[gpu].value not in {*_RUNS, "unknown"}
        )

    # -- the findings

    def findings(self, row: RequiredLibrary, repair: Repair | None) -> Iterator[Finding]:
        """Yield the findings about a library, with the command that builds a set with it."""
        path = None if row.kind == "declared" else row.by[0]
        package = f"{row.package} {row.version}"
        if row.status == "missing":
            message = self._absence(row)
            fix = None if row.is_optional else repair
            yield Finding("missing-library", message, path, fix, is_warning=row.is_optional)
        if row.status == "unknown":
            yield self._unknown(row, path)
        if row.missing_symbols:
            names = some_of(row.missing_symbols)
            message = f"{row.soname} of {package} does not export {names}, which {_users(row)}"
            yield Finding("missing-symbols", message, path, repair)
        if row.missing_parts:
            names = some_of(row.missing_parts)
            message = f"{package} opens {names}, which {self.supplied.path} does not have"
            yield Finding("missing-library", message, path)

    def gpu_findings(self, rows: Iterable[RequiredLibrary]) -> Iterator[Finding]:
        """Yield a finding for each package without code for GPUs of the set, or for required GPUs.

        It is a warning for other GPUs.
        """
        names = self.judged.required.gpus or self.supplied.package_set.capabilities.effective
        of_set = {str(Capability.parse(name).base) for name in names}
        lost = {f"{row.package} {row.version}": row for row in rows if row.gpus_lost}
        for package, row in lost.items():
            gpus = row.gpus_lost or ()
            critical = [gpu for gpu in gpus if gpu in of_set]
            before = " and ".join(row.pinned) or "the program"
            message = f"{package} does not run on GPUs of capability {', '.join(critical or gpus)}"
            yield Finding("gpu", f"{message}, unlike {before}", is_warning=not critical)

    def major_findings(self, rows: Iterable[RequiredLibrary]) -> Iterator[Finding]:
        """Yield a warning if the wheels of supplied libraries are for another CUDA major."""
        major = self.supplied.package_set.cuda.major
        others: dict[str, None] = {}
        for row in rows:
            pinned = [each for each in self.declared if str(each) in row.pinned]
            majors = [each.project.rpartition("-cu")[2] for each in pinned]
            is_other = majors and all(map(str.isdecimal, majors)) and major not in majors
            if is_other and row.status == "supplied":
                others |= dict.fromkeys(row.pinned)
        if others:
            message = f"the set is for CUDA {major}, unlike {some_of(list(others))}"
            yield Finding("mixed-cuda", message, is_warning=True)

    def _absence(self, row: RequiredLibrary) -> str:
        """Describe a library that the set lacks, with the nearest one that it has."""
        message = f"{self.supplied.path} has no {row.soname}, which {_users(row)}"
        others = [f"{other.soname} of {other.title}" for other in self._others(row.soname)]
        known = self.catalog.providers(row.soname, self.platforms)
        package = self.supplied.package_of(known)
        if package is not None and package.status != "available":
            reasons = [reason.text for reason in package.reasons[:1]]
            return (
                f"{message}: {package.attr} is {package.status}{''.join(f', {r}' for r in reasons)}"
            )
        return f"{message}; it has {some_of(others)}" if others else message

    def _others(self, soname: str) -> list[SuppliedLibrary]:
        """Return the libraries of the set that are other versions of a library."""
        family = family_of(soname)
        libraries = self.supplied.libraries.values()
        return [library for library in libraries if family_of(library.soname) == family]

    def _unknown(self, row: RequiredLibrary, path: str | None) -> Finding:
        """Return the finding about a library of the set that was not examined."""
        channel = self.supplied.package_set.channel
        known = self.catalog.providers(row.soname, self.platforms)
        if row.package is None:
            package = self.supplied.unexamined_package(known)
            command, message = "process-manifests", f"it is unknown if the set has {row.soname}"
        else:
            package = self.supplied.package_set.packages[row.package]
            command, message = "update-symbols", f"the symbols of {row.soname} are unknown"
        if package is None:
            return Finding("unknown", message, path)
        message += f", because {package.attr} {package.version} was not examined"
        about = {"redist": package.redist, "version": package.release}
        line = command_line(command, channel=channel, platform=self.supplied.platform, **about)
        return Finding("unknown", message, path, Repair(commands=(line,)))

    def repair(self, rows: Iterable[RequiredLibrary]) -> Repair | None:
        """Return the command that builds a set with all libraries and symbols, None if unknown.

        Of each redistributable that lacks some, it selects the release that is the nearest to that
        of the set.
        """
        package_set = self.supplied.package_set
        if package_set.channel != self.judged.data.channel:
            # The other channel has other labels.
            return None
        labels = {
            name: chosen.release
            for name, chosen in package_set.redists.items()
            if chosen.mode == "pinned" or name == CUDA
        }
        lacking = [row for row in rows if _is_lacking(row)]
        for redist, fitting in self._fitting_labels(lacking).items():
            if not fitting:
                return None
            chosen = package_set.redists.get(redist)
            label = None if chosen is None else chosen.release
            labels[redist] = str(_nearest_label(fitting, label))
        cuda = labels.pop(CUDA, package_set.cuda.release)
        flags = [f"--redist {name}={label}" for name, label in sorted(labels.items())]
        flags += [f"--gpu {name}" for name in package_set.capabilities.requested]
        line = command_line(
            "build", *flags, channel=package_set.channel, cuda=cuda, platform=self.supplied.platform
        )
        return Repair(commands=(line,))

    def _fitting_labels(self, rows: Iterable[RequiredLibrary]) -> dict[str, set[Version]]:
        """Return the releases with some libraries and their symbols, by redistributable."""
        fits = {
            (release.redist, soname): {label for label, is_fitting in labels.items() if is_fitting}
            for release in self.judged.releases
            for soname, labels in release.fits_of.items()
        }
        labels_of: dict[str, set[Version]] = {}
        for row in rows:
            known = grouped(
                (library.redist, library.label)
                for library in self.catalog.providers(row.soname, self.platforms)
            )
            for redist, labels in known.items():
                fitting = fits.get((redist, row.soname), set(labels))
                labels_of[redist] = labels_of.get(redist, fitting) & fitting
            if not known:
                labels_of[row.soname] = set()
        return labels_of


def _is_lacking(row: RequiredLibrary) -> bool:
    """Check if the set lacks a library or some of its symbols."""
    is_missing = row.status == "missing" and not row.is_optional
    return is_missing or bool(row.missing_symbols)


def _nearest_label(labels: Collection[Version], current: str | None) -> Version:
    """Return the first release after the current one, or else the newest."""
    later = [label for label in labels if current and label >= Version.parse(current)]
    return min(later) if later else max(labels)


def _is_for(file: ProgramFile, platform: str) -> bool:
    """Check if a file runs on a platform. Device code runs on all."""
    return not file.platforms or platform in file.platforms


def _unused_alternatives(program: Iterable[ProgramFile], cuda: Version) -> Iterator[ProgramFile]:
    """Yield files for other CUDA releases than that of the set.

    A program loads the file for the release, or for the release before it. If there is no file for
    its CUDA major, all count.
    """
    for by_release in groups_of_alternatives(program):
        numbers = {release: _release_numbers(release) for release in by_release}
        same = [name for name, (major, _) in numbers.items() if major == cuda.components[0]]
        if same:
            below = [name for name in same if numbers[name] <= cuda.components[:2]]
            chosen = max(below, key=numbers.__getitem__) if below else min(same)
            yield from (file for name, file in by_release.items() if name != chosen)


def _release_numbers(release: str) -> tuple[int, int]:
    """Return the numbers of a release in a file's name, such as `124` or `12`."""
    digits = release.replace(".", "")
    return int(digits[:2]), int(digits[2:] or 0)


def _is_exported(
    symbol: Import, own: LibraryRelease | None, releases: Mapping[str, LibraryRelease]
) -> bool:
    """Check if a library exports a symbol, or another one if the symbol does not name it."""
    if own is None or own.has(symbol):
        return True
    return not symbol.library and any(release.has(symbol) for release in releases.values())


def _nearest(pin: _Pin) -> list[KnownLibrary]:
    """Return the libraries of the newest allowed wheel, or of the wheel with the nearest version.

    The nearest version has the same major if possible, and is the last one before the pinned one.
    """
    wheels = [(version, lib) for lib in pin.wheels if (version := wheel_version(lib)) is not None]
    chosen = [(version, lib) for version, lib in wheels if pin.declared.allows(lib)]
    pinned = pin.version
    if not chosen and pinned is not None:
        same = [each for each in wheels if each[0].major == pinned.major] or wheels
        older = [each for each in same if each[0] < pinned]
        lowest = min((version for version, _ in same), default=pinned)
        chosen = older or [each for each in same if each[0] == lowest]
    newest = max((version for version, _ in chosen), default=None)
    return [library for version, library in chosen if version == newest]


def _change(library: SuppliedLibrary, pins: Iterable[_Pin]) -> VersionChange | None:
    """Return whether a supplied version is newer than the only one that a requirement allows."""
    for pin in pins:
        is_metapackage = pin.declared.project in METAPACKAGES
        text = library.package.release if is_metapackage else library.package.version
        if pin.version is not None and text is not None:
            version = WheelVersion(text)
            if version == pin.version:
                return "same"
            return "newer" if version > pin.version else "older"
    return None


def _users(row: RequiredLibrary) -> str:
    """Return the files or wheel with a library, and a verb."""
    if row.kind == "opened":
        return f"{some_of(row.by)} may open"
    verb = {"needed": "need", "unlinked": "use"}.get(row.kind, "require")
    return f"{some_of(row.by)} {verb}{'s' if len(row.by) == 1 else ''}"
