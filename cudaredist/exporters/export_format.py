"""What an exporter is, and what it is given: a package set, and what of it can be had."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeVar

from cudaredist.errors import InvalidFileError, Problem, UsageError, shortened, shown
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import join_address, path_problem
from cudaredist.schema.packageset import PackageSet, SetArchive, SetPackage
from cudaredist.schema.tables import Gpus, NvccCompat

Files: TypeAlias = Mapping[str, bytes]
"""What a consumer reads, by relative path."""

T = TypeVar("T")

_is_plain_url = re.compile(r"[a-z][a-z0-9+.-]*://[!#-;=?-Z_a-z~\[\]]+").fullmatch
_SHOWN = 5


class ExportedPackage(NamedTuple):
    """An available package and its archive."""

    attr: str
    entry: SetPackage
    archive: SetArchive


@dataclass(frozen=True)
class SharedTables:
    """Data of a data folder that does not depend on one package set."""

    compat: NvccCompat
    gpus: Gpus
    manifests: Mapping[tuple[str, str], bytes]
    """As published, by redistributable and label."""


@dataclass(frozen=True)
class ExportedSet:
    """A package set to export. The same one gives the same bytes in every format."""

    package_set: PackageSet
    root: str | None = None
    """Where the toolkit lies, for what refers to one; None: not said."""
    tables: SharedTables | None = None
    """For formats that read tables."""
    others: tuple[PackageSet, ...] = ()
    """Further sets, for formats that describe several."""

    @cached_property
    def document(self) -> bytes:
        """The set's own document, as `build` writes it."""
        return canonical_json(self.package_set.model_dump(mode="json", by_alias=True))

    @property
    def all_sets(self) -> tuple[PackageSet, ...]:
        """The set and the others."""
        return (self.package_set, *self.others)

    @property
    def title(self) -> str:
        """What the set is, on one line."""
        text = f"CUDA {self.package_set.cuda.release} for {self.package_set.platform.redist_system}"
        return "".join(character if character.isprintable() else " " for character in text)

    @cached_property
    def packages(self) -> tuple[ExportedPackage, ...]:
        """The available packages, each once under its own name, in the order of names.

        Raises `InvalidFileError` for an archive whose path or address no exported text could hold.
        """
        found, problems = [], []
        for attr, entry in sorted(self.package_set.packages.items()):
            if entry.status != "available" or entry.alias_of is not None:
                continue
            problem = _archive_problem(entry.archive)
            if problem is not None:
                problems.append(Problem(f"packages.{attr}.archive", problem))
            if entry.archive is not None:
                found.append(ExportedPackage(attr, entry, entry.archive))
        if problems:
            raise InvalidFileError("package-set file", problems)
        return tuple(found)

    @cached_property
    def without_libraries(self) -> frozenset[str]:
        """The available packages whose libraries are not known."""
        return frozenset(p.attr for p in self.packages if not p.entry.contents)

    @cached_property
    def unexamined(self) -> frozenset[str]:
        """The available packages of which not even the outputs are known."""
        return frozenset(
            package.attr
            for package in self.packages
            if package.attr in self.without_libraries and package.entry.outputs == ("out",)
        )

    def is_available(self, name: str) -> bool:
        """Say whether a package, under this or another name, can be had."""
        package = self.package_set.packages.get(name)
        return package is not None and package.status == "available"

    def require_addresses(self) -> None:
        """Raise `UsageError`, with advice, where the address of an archive is not known."""
        unknown = [package.attr for package in self.packages if package.archive.url is None]
        if not unknown:
            return
        raise UsageError(
            f"the addresses of {len(unknown)} archives are not known: "
            f"{', '.join(shortened(unknown, _SHOWN))}",
            hint="--resolve takes them from the package index, --wheel-base URL from a mirror"
            if self.package_set.channel == "wheels"
            else "an overlay's policy/fixups.json can say, under `urls`, where they lie",
        )


@dataclass(frozen=True, slots=True)
class Exporter:
    """One format: its name, what it is for, and the function that makes its files."""

    name: str
    title: str
    files: Callable[[ExportedSet], Files]
    file: str | None
    """Name of its one file; None: there are several."""
    takes_root: bool = False
    """Whether it refers to a toolkit root."""
    reads_features: bool = False
    """Whether it skips packages that were not examined."""
    reads_libraries: bool = False
    """Whether it also skips packages of which only the outputs are known."""
    reads_tables: bool = False
    """Whether it reads the tables and manifests of a data folder, and an index of sets."""

    def skipped(self, exported: ExportedSet) -> frozenset[str]:
        """Return the available packages that the format skips."""
        if self.reads_libraries:
            return exported.without_libraries
        return exported.unexamined if self.reads_features else frozenset()


def exporter(
    name: str,
    file: str | None,
    *,
    takes_root: bool = False,
    reads_features: bool = False,
    reads_libraries: bool = False,
    reads_tables: bool = False,
) -> Callable[[Callable[[ExportedSet], Files]], Exporter]:
    """Make a format of the function that makes its files; its docstring begins with the title."""

    def make(files: Callable[[ExportedSet], Files]) -> Exporter:
        title = (files.__doc__ or "").partition("\n")[0]
        return Exporter(
            name,
            title,
            files,
            file,
            takes_root=takes_root,
            reads_features=reads_features,
            reads_libraries=reads_libraries,
            reads_tables=reads_tables,
        )

    return make


def with_addresses(package_set: PackageSet, base: str) -> PackageSet:
    """Return the set with the addresses that it lacks, each archive's path below one address."""
    base = f"{base.rstrip('/')}/"
    if not _is_plain_url(base):
        raise UsageError(f"{shown(base)} is no address", hint="write it like https://example.org/")
    packages = dict(package_set.packages)
    for attr, entry in packages.items():
        if entry.archive is not None and entry.archive.url is None:
            url = join_address(base, entry.archive.relative_path)
            archive = entry.archive.model_copy(update={"url": url})
            packages[attr] = entry.model_copy(update={"archive": archive})
    return package_set.model_copy(update={"packages": packages})


def without_nulls(fields: Mapping[str, T | None]) -> dict[str, T]:
    """Return the fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


def _archive_problem(archive: SetArchive | None) -> str | None:
    if archive is None:
        return "is null, though the package is available"
    problem = path_problem(archive.relative_path)
    if problem is not None:
        return f"the path {shown(archive.relative_path)} {problem}"
    if archive.url is not None and not _is_plain_url(archive.url):
        return f"{shown(archive.url)} is no address"
    return None
