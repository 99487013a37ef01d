"""site: exported symbols, and their changes from release to release."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from cudaredist.formats.base import Channel
from cudaredist.formats.features import Features
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Place
from cudaredist.store.read_data import examined_archives
from cudaredist.store.symbol_folder import LayeredSymbols, table_name
from cudaredist.tables.symbols.library_exports import LibraryExports


class ExportingArchive(NamedTuple):
    """An archive that has shared libraries, or was not examined."""

    package: str
    place: Place
    sha256: str
    libraries: tuple[str, ...] | None
    """The names of their tables. None if the archive was not examined."""


class ExportChange(NamedTuple):
    """Names that a library of a package no longer exports, and new ones."""

    package: str
    library: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    places: tuple[Place, ...]


class ExportChanges(NamedTuple):
    """The changes of exports since the release before."""

    changes: tuple[ExportChange, ...]
    """Libraries with removed symbols are first."""
    unknown: tuple[str, ...]
    """Packages with symbols that are unknown in one of the two releases."""


def read_exports(
    symbols: LayeredSymbols, channel: Channel, releases: Collection[tuple[str, str]]
) -> dict[str, LibraryExports]:
    """Return the exports of each library in some releases of redistributables.

    Raises `ReadError` and `InvalidFileError`.
    """
    libraries = {}
    for soname in symbols.sonames():
        table = symbols.tables([soname])[soname]
        table.drop(
            lambda column: (
                column.provider.channel != channel
                or (column.provider.redist, column.label) not in releases
            )
        )
        if table.columns:
            libraries[soname] = LibraryExports(table)
    return libraries


def exporting_archives(
    archives: Iterable[Archive], features: Features | None
) -> Iterator[ExportingArchive]:
    """Yield the archives of a release that have shared libraries, or were not examined."""
    examined = {identity: archive for identity, _, _, archive in examined_archives(features)}
    for archive in archives:
        key = archive.package, archive.id.place
        if archive.id not in examined:
            yield ExportingArchive(*key, "", None)
            continue
        found = examined[archive.id]
        names = {table_name(library) for library in found.libraries if not library.stub}
        if names:
            yield ExportingArchive(*key, found.sha256 or "", tuple(sorted(names)))


def changed_exports(
    old: Iterable[ExportingArchive],
    new: Iterable[ExportingArchive],
    libraries: Mapping[str, LibraryExports],
) -> ExportChanges:
    """Return the changes of libraries that both releases have for a platform and variant."""
    before = {(one.package, one.place): one for one in old}
    places: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], list[Place]] = defaultdict(list)
    unknown = set()
    for after in new:
        earlier = before.get((after.package, after.place))
        if earlier is None:
            continue
        if earlier.libraries is None or after.libraries is None:
            unknown.add(after.package)
            continue
        for soname in sorted({*earlier.libraries} & {*after.libraries}):
            library = libraries.get(soname)
            if library is None or not library.knows(earlier.sha256, after.sha256):
                unknown.add(after.package)
                continue
            removed, added = map(tuple, library.changes(earlier.sha256, after.sha256))
            if removed or added:
                places[after.package, soname, removed, added].append(after.place)
    changes = [ExportChange(*key, tuple(sorted(names))) for key, names in places.items()]
    changes.sort(key=lambda change: (not change.removed, change))
    return ExportChanges(tuple(changes), tuple(sorted(unknown)))


def unknown_libraries(
    archives: Iterable[ExportingArchive], libraries: Mapping[str, LibraryExports]
) -> tuple[str, ...]:
    """Return the libraries whose symbols are unknown in an archive, sorted."""
    unknown = {
        soname
        for archive in archives
        for soname in archive.libraries or ()
        if soname not in libraries or not libraries[soname].knows(archive.sha256)
    }
    return tuple(sorted(unknown))
