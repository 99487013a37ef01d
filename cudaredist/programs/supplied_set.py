"""The libraries of a package set, which replace the wheels of NVIDIA that a program requires."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cudaredist.formats.coverage import Coverage
from cudaredist.formats.features import ExaminedArchive
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.grouping import grouped
from cudaredist.primitives import parse_label
from cudaredist.programs.program import KnownLibrary
from cudaredist.sets.library_names import key_of, stem_of
from cudaredist.store.examined_contents import examined_contents
from cudaredist.store.facts_index import Index, Question
from cudaredist.store.symbol_folder import name_in_tables
from cudaredist.tables.gpus.coverage import CoverageRules, cuda_major_of
from cudaredist.tables.symbols.label_ranges import KEY_SIZE


class SuppliedLibrary(NamedTuple):
    """A library of the set."""

    soname: str
    package: SetPackage
    archives: tuple[str, ...]
    """Beginnings of the hashes of archives with this library: its own, and that of the wheel."""

    @property
    def title(self) -> str:
        """The package and its version."""
        return f"{self.package.attr} {self.package.version or self.package.release}"


class _ArchiveRow(NamedTuple):
    contents: int
    redist: str
    label: str
    package: str
    version: str
    platform: str
    variant: str | None
    sha256: str


_EXAMINED_ARCHIVES = Question(
    _ArchiveRow,
    """
    SELECT DISTINCT contents, redist, label, package, version, platform, variant, sha256
    FROM main.releases AS all_releases JOIN archives ON release = all_releases.id
    WHERE contents IS NOT NULL AND sha256 IS NOT NULL AND version IS NOT NULL
    ORDER BY archives.id""",
)
"""The releases of both channels: the set may be of the other one than the data."""


class SuppliedSet:
    """A package set, and the facts of its archives.

    An archive that was not examined has the facts of the wheel of the same version, which has the
    same libraries.
    """

    def __init__(
        self, path: Path, package_set: PackageSet, index: Index, rules: CoverageRules | None
    ) -> None:
        self.path, self.package_set, self.rules = path, package_set, rules
        self.platform = package_set.platform.redist_system
        rows = index.ask(_EXAMINED_ARCHIVES)
        self._by_key = {row.sha256[:KEY_SIZE]: row for row in rows}
        self._by_version = grouped(
            ((row.redist, row.package, row.version, row.platform, row.variant), row) for row in rows
        )
        self._examined = cache(lambda contents: examined_contents(index, [contents]).get(contents))
        self.libraries: dict[str, SuppliedLibrary] = {}
        """Its libraries by the key of the name, without stubs."""
        self.unexamined: list[SetPackage] = []
        """The packages whose libraries are unknown."""
        self._opens: dict[str, set[str]] = {}
        """The names that the libraries of each package open, by attribute."""
        for package in package_set.available.values():
            self._add(package)

    @property
    def title(self) -> str:
        """The file, the release and the platform."""
        return f"{self.path} (CUDA {self.package_set.cuda.release}, {self.platform})"

    def find(self, soname: str) -> SuppliedLibrary | None:
        """Return the library with a soname, None if there is none."""
        return self.libraries.get(key_of(soname))

    def unexamined_package(self, libraries: Iterable[KnownLibrary]) -> SetPackage | None:
        """Return an unexamined package of the set that has one of some libraries elsewhere."""
        names = {(library.redist, library.package) for library in libraries}
        packages = (each for each in self.unexamined if (each.redist, each.pname) in names)
        return next(packages, None)

    def package_of(self, libraries: Iterable[KnownLibrary]) -> SetPackage | None:
        """Return the package of the set, available or not, that has some libraries elsewhere."""
        names = {(library.redist, library.package) for library in libraries}
        packages = self.package_set.own.values()
        return next((each for each in packages if (each.redist, each.pname) in names), None)

    def parts(
        self, library: SuppliedLibrary, stems: Collection[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the libraries of its own package that a package opens, and those that it lacks.

        `stems` are the names of the libraries in all releases of the package.
        """
        own = {
            stem_of(each.soname)
            for each in self.libraries.values()
            if each.package.pname == library.package.pname
        }
        opened = sorted(self._opens[library.package.attr])
        parts = [name for name in opened if stem_of(name) in stems]
        return tuple(parts), tuple(name for name in parts if stem_of(name) not in own)

    def coverage(self, library: SuppliedLibrary, gpus: Collection[str]) -> Mapping[str, Coverage]:
        """Return the coverage of GPUs by the package of a library, without unknown ones."""
        for key in library.archives:
            found = self.coverage_of_archive(key, gpus)
            if found is not None:
                return found
        return library.package.coverage

    def coverage_of_archive(self, key: str, gpus: Collection[str]) -> Mapping[str, Coverage] | None:
        """Return the coverage of GPUs by an archive, None if its device code is unknown.

        `key` is the beginning of its hash.
        """
        row = self._by_key.get(key)
        examined = None if row is None else self._examined(row.contents)
        if row is None or examined is None or examined.code_by_file is None or self.rules is None:
            return None
        major = cuda_major_of(row.redist, parse_label(row.label), row.variant)
        return self.rules.cover(tuple(examined.code_by_file.values()), gpus, major)

    def _add(self, package: SetPackage) -> None:
        """Add the libraries of an available package."""
        archive = package.archive
        if archive is None:
            return
        version = (
            package.redist or "",
            package.pname,
            package.version or "",
            self.platform,
            archive.cuda_variant,
        )
        own = self._by_key.get(archive.sha256[:KEY_SIZE])
        rows = [*([own] if own else []), *self._by_version.get(version, ())]
        keys = [archive.sha256[:KEY_SIZE], *(row.sha256[:KEY_SIZE] for row in rows)]
        if package.contents:
            names = {
                name_in_tables(provided.path, provided.soname)
                for provided in package.provides
                if not provided.stub
            }
            opens = {opened.soname for opened in package.opens}
            opens |= {need.soname for need in package.needs if need.kind == "dlopen"}
        else:
            examined = next(filter(None, (self._examined(row.contents) for row in rows)), None)
            if examined is None:
                self.unexamined.append(package)
                return
            names, opens = set(_names_in(examined)), _opened_in(examined)
        self._opens[package.attr] = opens
        for name in sorted(names):
            library = SuppliedLibrary(name, package, tuple(dict.fromkeys(keys)))
            # Additional versions of a package follow the chosen one.
            self.libraries.setdefault(key_of(name), library)


def _names_in(examined: ExaminedArchive) -> Iterator[str]:
    for library in examined.libraries:
        if not library.stub:
            yield name_in_tables(library.path, library.soname)


def _opened_in(examined: ExaminedArchive) -> set[str]:
    return {name for library in examined.libraries for name in library.opens}
