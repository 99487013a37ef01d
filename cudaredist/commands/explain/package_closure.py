"""The closure of a package: the size of its libraries and of all that they need."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cudaredist.commands.explain.package_report import PackageClosure
from cudaredist.grouping import grouped
from cudaredist.sets.library_names import key_of
from cudaredist.store.facts_index import Index, IndexedArchive, Question


class _Neighbor(NamedTuple):
    package: str
    contents: int


_NEIGHBORS = Question(
    _Neighbor,
    """
    SELECT package, coalesce(contents, 0) AS contents
    FROM current_releases JOIN archives ON release = current_releases.id
    WHERE (channel, redist, label, platform, coalesce(variant, '')) = (?, ?, ?, ?, ?)""",
)


class _Library(NamedTuple):
    contents: int
    soname: str
    output: str


_LIBRARIES = Question(
    _Library,
    """
    SELECT contents, coalesce(soname, '') AS soname, output FROM binaries
    WHERE kind = 'library' AND contents IN (SELECT value FROM json_each(?))""",
)


class _Need(NamedTuple):
    contents: int
    name: str
    way: str


_NEEDS = Question(
    _Need,
    """
    SELECT DISTINCT contents, name, way FROM binaries JOIN needs ON binary = binaries.id
    WHERE kind = 'library' AND contents IN (SELECT value FROM json_each(?))""",
)


class _Soname(NamedTuple):
    soname: str


_SONAMES = Question(
    _Soname,
    """
    SELECT DISTINCT soname FROM binaries
    WHERE kind = 'library' AND soname IN (SELECT value FROM json_each(?))
    ORDER BY soname""",
)


class _Output(NamedTuple):
    contents: int
    output: str
    bytes: int


_OUTPUTS = Question(
    _Output,
    """
    SELECT contents, output, bytes FROM outputs
    WHERE contents IN (SELECT value FROM json_each(?))""",
)


def closure_of_archive(one: IndexedArchive, index: Index) -> PackageClosure | None:
    """Return the closure of an archive in its release.

    It has the outputs with libraries, of the package and of the packages that they need. None: the
    archive has no libraries, or an archive of the release and platform was not examined.
    """
    archive = one.archive
    variant = archive.variant or ""
    place = (one.channel, one.redist, str(one.label), archive.platform, variant)
    neighbors = index.ask(_NEIGHBORS, *place)
    if not all(row.contents for row in neighbors):
        return None
    packages = {row.contents: row.package for row in neighbors}
    libraries = index.ask(_LIBRARIES, packages)
    outputs = grouped((row.contents, row.output) for row in libraries)
    if one.contents not in outputs:
        return None
    providers = {key_of(row.soname): row.contents for row in libraries}
    needs = index.ask(_NEEDS, packages)
    needed = _required(one.contents, (need for need in needs if need.way == "needed"), providers)
    opened = _required(one.contents, needs, providers) - needed
    sizes = dict.fromkeys(packages, 0)
    for row in index.ask(_OUTPUTS, packages):
        if row.output in outputs.get(row.contents, ()):
            sizes[row.contents] += row.bytes
    others = {need.name for need in needs if need.contents in needed | opened}
    outside = index.ask(_SONAMES, [name for name in others if key_of(name) not in providers])
    return PackageClosure(
        channel=one.channel,
        redist=one.redist,
        release=str(one.label),
        place=archive.id.place,
        size=sum(sizes[contents] for contents in needed),
        packages=tuple(sorted({packages[contents] for contents in needed} - {archive.package})),
        opened_size=sum(sizes[contents] for contents in opened),
        opened_packages=tuple(sorted(packages[contents] for contents in opened)),
        outside=tuple(row.soname for row in outside),
    )


def _required(start: int, needs: Iterable[_Need], providers: Mapping[str, int]) -> set[int]:
    """Return the contents that some contents need, directly or indirectly, with themselves."""
    names = grouped((need.contents, key_of(need.name)) for need in needs)
    required: set[int] = set()
    pending = [start]
    while pending:
        contents = pending.pop()
        if contents not in required:
            required.add(contents)
            pending += (providers[name] for name in names.get(contents, ()) if name in providers)
    return required
