"""The index of a data folder: questions about its facts, and the rows of their answers.

A question is a query with the class of its rows, so that callers read columns by name. The
questions of a single command are in its modules, all others are here. `index_database.py` has the
database.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Generic, Literal, NamedTuple, TypeVar

from cudaredist.formats.names import Channel
from cudaredist.grouping import grouped
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version, parse_label
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.similar_names import misspelled_names
from cudaredist.store.absence import Unexamined
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Layer, Store, layer_of
from cudaredist.store.index_database import IndexDatabase
from cudaredist.store.local_manifests import no_manifests
from cudaredist.tables.symbols.label_ranges import KEY_SIZE
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern

_SAME_LETTERS = 4
"""First letters that similar symbols have in common."""

_Row = TypeVar("_Row", bound=NamedTuple)


class Question(NamedTuple, Generic[_Row]):
    """A query of the index, and the named tuple for its rows.

    Its columns have the names and the order of the tuple's fields.
    """

    row: type[_Row]
    sql: str
    """A query with `{condition}` can only be asked after `where`."""

    def where(self, condition: str) -> "Question[_Row]":
        """Return the question with a condition in place of `{condition}`."""
        return self._replace(sql=self.sql.replace("{condition}", condition))

    def rows(self, values: Sequence[str], connection: sqlite3.Connection) -> list[_Row]:
        """Return the rows. Raises `TypeError` if a column and its field have other names."""
        cursor = connection.execute(self.sql, values)
        columns = tuple(name for name, *_ in cursor.description)
        if columns != self.row._fields:
            raise TypeError(f"columns {columns} are not the fields of {self.row.__name__}")
        # The columns are the fields, so that `_make` would only count them again for each row.
        return [*map(partial(tuple.__new__, self.row), cursor)]


class UnreadableDocument(NamedTuple):
    """A document with a file that cannot be read."""

    layer: Layer
    channel: Channel | Literal[""]
    """Empty: the document is for both channels."""
    kind: str
    """`release`, `symbols` or `table`."""
    name: str
    """The redistributable, the library or the table."""
    label: str
    error: str


_UNREADABLE = Question(
    UnreadableDocument,
    """
    SELECT layer, channel, kind, name, label, error FROM documents
    WHERE NOT is_readable
    ORDER BY layer, channel, kind, name, label""",
)


class _Redist(NamedTuple):
    redist: str


_REDISTS = Question(
    _Redist, "SELECT DISTINCT redist FROM releases WHERE has_manifest ORDER BY redist"
)


class IndexedArchive(NamedTuple):
    """An archive of a manifest with its release."""

    channel: Channel
    redist: str
    label: Version
    archive: Archive
    contents: int
    """The row of its contents, 0 if it was not examined."""
    date: str | None
    """The day of the release, if the manifest states it."""
    url: str | None
    """The address on NVIDIA's servers. None: a wheel, or a product of the user's own."""
    is_by_wheel: bool = False
    """Whether the contents are those of the wheel of the same version."""


class _ArchiveRow(NamedTuple):
    channel: Channel
    redist: str
    label: str
    package: str
    version: str
    platform: str
    variant: str | None
    relative_path: str
    sha256: str | None
    md5: str | None
    size: int | None
    contents: int
    date: str | None
    url: str | None


_ARCHIVES = Question(
    _ArchiveRow,
    """
    SELECT channel, redist, label, package, version, platform, variant, relative_path, sha256, md5,
        size, coalesce(contents, 0) AS contents, date, url
    FROM (SELECT key AS place, value AS name FROM json_each(?))
    JOIN current_releases ON redist = name
    JOIN archives ON release = current_releases.id AND relative_path IS NOT NULL
    LEFT JOIN contents ON contents.id = contents
    WHERE {condition}
    ORDER BY place, sort_key, channel, archives.id""",
)


_ARCHIVES_BY_WHEEL = Question(
    _ArchiveRow,
    """
    SELECT DISTINCT channel, redist, label, package, version, platform, variant, relative_path,
        sha256, md5, size, wheel_contents.contents, date, archives.url
    FROM wheel_contents JOIN archives ON archives.id = archive AND relative_path IS NOT NULL
    JOIN current_releases ON release = current_releases.id
    JOIN (SELECT key AS place, value AS name FROM json_each(?)) ON redist = name
    WHERE wheel IN (
        -- Releases share wheels. One of them is enough.
        SELECT min(archives.id) FROM archives JOIN main.releases AS own ON own.id = release
        WHERE own.channel = 'wheels' AND contents IS NOT NULL AND {condition}
        GROUP BY own.redist, package, version, platform, variant, contents)
    ORDER BY place, sort_key, archives.id""",
)


class _ExaminedRelease(NamedTuple):
    channel: Channel
    redist: str
    label: str


_EXAMINED_RELEASES = Question(
    _ExaminedRelease,
    """
    SELECT DISTINCT channel, redist, label FROM releases
    WHERE has_features AND redist IN (SELECT value FROM json_each(?))
    ORDER BY channel, redist, sort_key""",
)

_UNEXAMINED = Question(
    Unexamined,
    """
    SELECT channel, layer, redist, label, count(*) AS archives,
        count(*) FILTER (WHERE contents IS NULL) AS unread
    FROM (SELECT value AS name FROM json_each(?))
    JOIN current_releases ON redist = name
    JOIN archives ON release = current_releases.id AND relative_path IS NOT NULL
    LEFT JOIN contents ON contents.id = contents
    WHERE {condition}
    GROUP BY current_releases.id
    ORDER BY channel, layer, redist, sort_key""",
)
WITHOUT_FILES = "(contents IS NULL OR NOT has_files OR unlisted > 0)"
"""The condition that not all files of an archive are known."""
# The view `wheel_contents` would be read as a whole, which takes long if there are many releases.
_WITHOUT_WHEEL = """NOT (
    archives.contents IS NULL AND current_releases.channel = 'redist' AND EXISTS (
        SELECT 1 FROM archives AS wheel JOIN main.releases AS own ON own.id = wheel.release
        WHERE (wheel.package, wheel.version, wheel.platform)
                = (archives.package, archives.version, archives.platform)
            AND wheel.variant IS archives.variant AND wheel.contents IS NOT NULL
            AND own.channel = 'wheels' AND own.redist = current_releases.redist
    ))"""
WITHOUT_LIBRARIES = f"({WITHOUT_FILES} AND {_WITHOUT_WHEEL})"
"""The condition that not all libraries of an archive are known, not even by a wheel."""
WITHOUT_SYMBOLS = f"""(
    contents IS NULL AND {_WITHOUT_WHEEL}
    OR contents IN (SELECT contents FROM binaries WHERE kind = 'library')
        AND substr(sha256, 1, {KEY_SIZE}) NOT IN (SELECT archive FROM symbol_archives))"""
"""The condition that the symbols of an archive's libraries are not known."""


_OF_HIGHEST_LAYER = """
    layer = (
        SELECT min(layer) FROM releases AS layers -- `local` is less than `shipped`
        WHERE (layers.redist, layers.label, layers.channel)
                = (releases.redist, releases.label, releases.channel)
            AND layers.has_features)"""
"""The condition that a release has the features that commands read."""


class ArchiveWithCode(NamedTuple):
    """An archive with device code."""

    redist: str
    label: str
    package: str
    platform: str
    variant: str | None
    contents: int


_WITH_CODE = Question(
    ArchiveWithCode,
    f"""
    SELECT redist, label, package, platform, variant, contents
    FROM releases JOIN archives ON release = releases.id
    JOIN contents ON contents.id = contents AND has_code
    WHERE {_OF_HIGHEST_LAYER}
    ORDER BY redist, sort_key, package, archives.id""",
)


class _PackageWithoutCode(NamedTuple):
    redist: str
    package: str
    label: str


_WITHOUT_CODE = Question(
    _PackageWithoutCode,
    f"""
    SELECT redist, package, label
    FROM releases JOIN archives ON release = releases.id
    JOIN contents ON contents.id = contents
    WHERE {_OF_HIGHEST_LAYER}
    GROUP BY redist, package, label HAVING NOT max(has_code)
    ORDER BY redist, package, sort_key""",
)


class _PackageRelease(NamedTuple):
    redist: str
    package: str
    label: str
    variant: str | None


_PACKAGE_RELEASES = Question(
    _PackageRelease,
    """
    SELECT DISTINCT redist, package, label, variant
    FROM archives JOIN current_releases ON release = current_releases.id""",
)


class Soname(NamedTuple):
    """A library or stub in the contents of an archive."""

    contents: int
    kind: str
    """`library` or `stub`."""
    soname: str


_SONAMES = Question(
    Soname,
    "SELECT contents, kind, soname FROM binaries WHERE soname IS NOT NULL",
)


class _Export(NamedTuple):
    library: str
    name: str


_EXPORTS_LIKE = Question(
    _Export,
    """
    SELECT library, name FROM symbols JOIN symbol_groups ON id = symbol_group
    WHERE imported_from IS NULL AND {condition}""",
)
_EXPORTED_FUNCTIONS = Question(
    _Export,
    """
    SELECT library, name FROM symbol_groups CROSS JOIN symbols
    WHERE symbol_group = id AND imported_from IS NULL
        AND library IN (SELECT value FROM json_each(?))
        AND NOT (name GLOB '_Z*' OR name GLOB 'Py*' OR name GLOB '_Py*')""",
)


class _SymbolGroup(NamedTuple):
    symbol_group: int
    names: str
    """With a space between two names."""


_SYMBOL_NAMES = Question(
    _SymbolGroup,
    """
    SELECT symbol_group, group_concat(name, ' ') AS names FROM symbols
    WHERE symbol_group IN (SELECT value FROM json_each(?))
    GROUP BY symbol_group""",
)


def condition_of_names(glob: str) -> str:
    """Return the condition that the name of a symbol matches a pattern, which is its only value.

    With the condition of the table's index, SQLite uses it. Names of C++ are not in this index.
    """
    can_be_mangled = glob.startswith("_Z") or not {"*", "?"}.isdisjoint(glob[:2])
    return "name GLOB ?" if can_be_mangled else "name GLOB ? AND name NOT GLOB '_Z*'"


def _indexed(row: _ArchiveRow) -> IndexedArchive:
    """Return the archive of a row with its release."""
    # Arguments by position take half of the time, and long histories have thousands of rows.
    version, label = Version.parse(row.version), Version.parse(row.label)
    file = (row.relative_path, row.sha256, row.md5, row.size)
    archive = Archive(row.package, version, row.platform, row.variant, *file)
    return IndexedArchive(row.channel, row.redist, label, archive, row.contents, row.date, row.url)


class Index:
    """The facts of a data folder and of the layers below it."""

    def __init__(
        self,
        store: Store,
        cache: Cache,
        progress: Progress = NO_PROGRESS,
        channels: Collection[Channel] = (),
    ) -> None:
        """Open the index, and replace the rows of changed files.

        The answers are about the releases of some channels, by default of the store's channel.
        """
        self.store = store
        self.channels = tuple(channels) or (store.channel,)
        self.stores = tuple(map(store.of_channel, self.channels))
        """The data of each channel."""
        self.database = IndexDatabase(store, self.channels, cache, progress)

    def ask(self, question: Question[_Row], *values: str | Collection[object]) -> list[_Row]:
        """Return the rows of a question.

        `values` are those of `?` in the query. A collection is passed as a JSON array, for
        `json_each(?)`.
        """
        texts = [value if isinstance(value, str) else json.dumps([*value]) for value in values]
        return self.database.read(partial(question.rows, texts))

    def unreadable(self) -> list[UnreadableDocument]:
        """Return the documents that cannot be read, sorted."""
        return self.ask(_UNREADABLE)

    def labels(self, redist: str) -> tuple[Version, ...]:
        """Return the labels of a redistributable's manifests, in ascending order.

        Raises the error of the first release with a file that cannot be read.
        """
        labels: set[Version] = set()
        for store in self.stores:
            broken = {
                parse_label(document.label)
                for document in self.unreadable()
                if (document.kind, document.channel) == ("release", store.channel)
                and document.name == redist
            }
            for label in sorted(broken):
                _broken().raise_release_error(store, redist, label)
            labels.update(store.manifests(redist).labels())
        return tuple(sorted(labels))

    def redists(self) -> tuple[str, ...]:
        """Return the redistributables with manifests, after a check of all their files.

        Raises `UsageError` if there are none, and the error of a file that cannot be read.
        """
        is_whole = not any(store.examined_only for own in self.stores for store in own.layers)
        if is_whole and self.database.is_unchanged and not self.unreadable():
            redists = tuple(row.redist for row in self.ask(_REDISTS))
        else:
            redists = tuple(sorted({redist for store in self.stores for redist in store.redists()}))
            for redist in redists:
                self.labels(redist)
        if not redists:
            raise no_manifests(self.store)
        return redists

    def archives(
        self, redists: Collection[str], condition: str = "TRUE", *values: str | Collection[object]
    ) -> Iterator[IndexedArchive]:
        """Yield the archives of manifests that fulfill a condition, in the manifests' order.

        The condition can have the columns of `current_releases`, `archives` and `contents`.
        """
        for row in self.ask(_ARCHIVES.where(condition), redists, *values):
            yield _indexed(row)

    def archives_by_wheel(
        self, redists: Collection[str], condition: str = "TRUE", *values: str | Collection[object]
    ) -> Iterator[IndexedArchive]:
        """Yield unexamined archives with the contents of the wheel of the same version.

        They are in the manifests' order. The condition is about the wheels, and can have the
        columns of `archives`.
        """
        for row in self.ask(_ARCHIVES_BY_WHEEL.where(condition), redists, *values):
            yield _indexed(row)._replace(is_by_wheel=True)

    def examined_releases(
        self, redists: Collection[str]
    ) -> dict[Channel, dict[str, tuple[str, ...]]]:
        """Return the labels with feature files by channel and redistributable, oldest first."""
        rows = self.ask(_EXAMINED_RELEASES, redists)
        by_channel = grouped((row.channel, (row.redist, row.label)) for row in rows)
        return {
            channel: {redist: tuple(labels) for redist, labels in grouped(releases).items()}
            for channel, releases in by_channel.items()
        }

    def unexamined(
        self,
        redists: Collection[str],
        condition: str = WITHOUT_FILES,
        *values: str | Collection[object],
    ) -> list[Unexamined]:
        """Return the releases with archives that fulfill a condition, by default without files.

        The condition can have the columns of `current_releases`, `archives` and `contents`. The
        layer of a release is `local` if the data folder has its manifest, even if the shipped data
        has, too.
        """
        rows = self.ask(_UNEXAMINED.where(condition), redists, *values)
        of_shipped = {(row.channel, row.redist) for row in rows if row.layer == "shipped"}
        own = {
            (store.channel, redist): set(map(str, store.layers[0].manifests(redist).labels()))
            for store in self.stores
            for channel, redist in of_shipped
            if channel == store.channel and layer_of(store.root) == "local"
        }
        return [
            row._replace(layer="local")
            if row.label in own.get((row.channel, row.redist), ())
            else row
            for row in rows
        ]

    def with_device_code(self) -> list[ArchiveWithCode]:
        """Return the archives with device code.

        Each release has the features of its highest layer. Raises the error of the first feature
        file that cannot be read.
        """
        for document in self.unreadable():
            if document.channel in self.channels:
                store = self.database.documents.stores[document.layer, document.channel]
                _broken().raise_feature_error(store, document.name, parse_label(document.label))
        return self.ask(_WITH_CODE)

    def without_device_code(self) -> dict[tuple[str, str], list[Version]]:
        """Return the releases whose examined archives have no device code, by package.

        Keys are the redistributable and the package.
        """
        labels: dict[tuple[str, str], list[Version]] = defaultdict(list)
        for row in self.ask(_WITHOUT_CODE):
            labels[row.redist, row.package].append(Version.parse(row.label))
        return labels

    def package_releases(self) -> dict[tuple[str, str], list[tuple[Version, str | None]]]:
        """Return the releases with a package and its variants, examined or not.

        Keys are the redistributable and the package.
        """
        found: dict[tuple[str, str], list[tuple[Version, str | None]]] = defaultdict(list)
        for row in self.ask(_PACKAGE_RELEASES):
            found[row.redist, row.package].append((Version.parse(row.label), row.variant))
        return found

    def sonames(self) -> list[Soname]:
        """Return the sonames in the contents of all archives, with those of stubs."""
        return self.ask(_SONAMES)

    def exporting(self, pattern: SymbolPattern) -> tuple[str, ...]:
        """Return the libraries that export a symbol that fits, sorted.

        Raises the error of the first table that cannot be read.
        """
        self.check_symbols()
        exports = self.ask(_EXPORTS_LIKE.where(condition_of_names(pattern.glob)), pattern.glob)
        return tuple(sorted({row.library for row in exports if pattern.fits(row.name)}))

    def similar_symbols(self, name: str) -> tuple[str, ...]:
        """Return exported symbols with a similar name, the most similar first.

        They begin with the same letters, because a comparison with all symbols takes seconds.
        """
        start = name[:_SAME_LETTERS]
        if len(name) <= _SAME_LETTERS or not start.isalnum():
            return ()
        glob = f"{start}*"
        exports = self.ask(_EXPORTS_LIKE.where(condition_of_names(glob)), glob)
        names = {row.name for row in exports}
        return misspelled_names(name, names)

    def exporters(self, libraries: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the C functions that some libraries export in any release, with the libraries.

        Raises the error of the first of their tables that cannot be read.
        """
        self.check_symbols(libraries)
        exporters: dict[str, dict[str, None]] = defaultdict(dict)
        for row in self.ask(_EXPORTED_FUNCTIONS, libraries):
            exporters[row.name][row.library] = None
        return exporters

    def symbol_names(self, groups: Collection[int]) -> dict[int, list[str]]:
        """Return the names of groups of symbols."""
        return {row.symbol_group: row.names.split(" ") for row in self.ask(_SYMBOL_NAMES, groups)}

    def check_symbols(self, libraries: Collection[str] | None = None) -> None:
        """Raise the error of the first table of symbols that cannot be read.

        `libraries` limits the check to the tables of these libraries.
        """
        self.database.add_parts({"symbols"})
        for document in self.unreadable():
            if document.kind == "symbols" and (libraries is None or document.name in libraries):
                folder = self.database.documents.symbols[document.layer]
                _broken().raise_symbol_error(folder, document.name)


def _broken() -> ModuleType:
    """Return the module that raises errors. Its models are slow to import."""
    return import_module("cudaredist.store.broken_documents")
