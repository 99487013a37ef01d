"""The index of a data folder: its facts in SQLite, derived from its files.

The files are the only source. Their sizes and times are compared with those in the index at each
start, and the rows of changed files are replaced. A changed index replaces its file as a whole, so
that it needs no locks: several processes can read and refresh it at once. If its checksum shows
that it is damaged or edited, it is made again. If the cache cannot be written, the index is in
memory.
"""

import json
import os
import sqlite3
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, suppress
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from cudaredist import __version__
from cudaredist.errors import CudaRedistError, InvalidFileError, ReadError
from cudaredist.formats.base import OwnModel
from cudaredist.formats.features import ExaminedArchive
from cudaredist.formats.registry import read_own_file
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import ArchiveId, Version, parse_label, sha256_of
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.similar_names import misspelled_names
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Layer, Store, layer_of, shipped_data
from cudaredist.store.files import read_file
from cudaredist.store.index_checksum import has_checksum, write_checksum
from cudaredist.store.index_rows import add_release, add_row, add_symbols, add_table
from cudaredist.store.read_data import load_features, load_manifest, require_manifests
from cudaredist.store.symbol_folder import SymbolFolder
from cudaredist.store.table_registry import TABLES
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.words import printable

_SETTLED_NS = 2 * 10**9
"""Nanoseconds after which a further change has another time. FAT counts in steps of two seconds."""

_SAME_LETTERS = 4
"""First letters that similar symbols have in common."""

_Result = TypeVar("_Result")


class _Document(NamedTuple):
    """The files of a release, the table of a library's symbols, or another table."""

    layer: Layer
    kind: Literal["release", "symbols", "table"]
    name: str
    label: str


class IndexedArchive(NamedTuple):
    """An archive of a manifest with its release, as the index has it."""

    redist: str
    label: Version
    archive: Archive
    contents: int
    """The row of its contents, 0 if it was not examined."""
    date: str | None
    """The day of the release, if the manifest states it."""


class Index:
    """The facts of a data folder and of the layers below it."""

    def __init__(self, store: Store, cache: Cache, progress: Progress = NO_PROGRESS) -> None:
        """Open the index, and replace the rows of changed files."""
        self.store = store
        self._progress = progress
        self._cache = cache
        self._stores = {layer_of(layer.root): layer for layer in store.layers}
        self._symbols = {layer_of(path.parent): SymbolFolder(path) for path in store.symbol_paths}
        self._key = index_key(store)
        self._states = dict(self._read_states())
        path = self._undamaged_index()
        self._is_new = False
        if path is None:
            self._make()
        else:
            self._use(_open_file(path))
        try:
            self._refresh()
        except sqlite3.DatabaseError:
            self._renew()

    def _undamaged_index(self) -> Path | None:
        """Return a stored index: of all layers, else of the shipped data."""
        for store in (self.store, self.store.base):
            path = None if store is None else self._cache.stored_index(index_key(store))
            if path is not None and has_checksum(path):
                return path
        return None

    def state(self) -> str:
        """Return the state of the data and the program, empty if a file changed just now."""
        package = Path(str(resources.files("cudaredist")))
        policies = [layer.root / "policy" for layer in self.store.layers]
        folders = [package, shipped_data() / "policy", *policies]
        files = [path for folder in folders for path in folder.rglob("*.*")]
        program = _state(*(path for path in files if path.suffix != ".pyc"))
        if not program or not all(self._states.values()):
            return ""
        documents = map(repr, sorted(self._states.items()))
        return sha256_of(repr((self._key, [program, *documents])).encode())

    def rows(self, query: str, *values: str | Collection[object]) -> list[Any]:
        """Return the rows of a query, each as a tuple.

        A collection is passed as a JSON array, for `json_each(?)`.
        """
        bound = [value if isinstance(value, str) else json.dumps([*value]) for value in values]
        return self.read(lambda database: database.execute(query, bound).fetchall())

    def read(self, function: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Call a function with the database, again with a new one if it is damaged."""
        try:
            return function(self._database)
        except sqlite3.DatabaseError:
            if self._is_new:
                raise
            self._renew()
            return function(self._database)

    def labels(self, redist: str) -> tuple[Version, ...]:
        """Return the labels of a redistributable's manifests, in ascending order.

        Raises the error of the first release with a file that cannot be read.
        """
        broken = [text for _, name, text in self._unreadable("release") if name == redist]
        for label in sorted(map(parse_label, broken)):
            if self.store.manifests(redist).path_of(label).exists():
                load_manifest(self.store, redist, label)
            load_features(self.store, redist, label)
        return self.store.manifests(redist).labels()

    def _unreadable(self, kind: str) -> list[tuple[Layer, str, str]]:
        """Return layer, name and label of the files that cannot be read, sorted."""
        query = "SELECT layer, name, label FROM documents WHERE kind = ? AND NOT is_readable"
        return sorted(self.rows(query, kind))

    def redists(self) -> tuple[str, ...]:
        """Return the redistributables with manifests, after a check of all their files.

        Raises `UsageError` if there are none, and the error of a file that cannot be read.
        """
        redists = require_manifests(self.store)
        for redist in redists:
            self.labels(redist)
        return redists

    def archives(
        self, redists: Collection[str], condition: str = "TRUE", *values: str | Collection[object]
    ) -> Iterator[IndexedArchive]:
        """Yield the archives of manifests that fulfill a condition, in the manifests' order.

        The condition can have the columns of `current_releases`, `archives` and `contents`.
        """
        query = f"""
            SELECT redist, label, package, version, platform, variant, relative_path, sha256, md5,
                size, coalesce(contents, 0), date
            FROM (SELECT key AS place, value AS name FROM json_each(?))
            JOIN current_releases ON redist = name
            JOIN archives ON release = current_releases.id AND relative_path IS NOT NULL
            LEFT JOIN contents ON contents.id = contents
            WHERE {condition}
            ORDER BY place, sort_key, archives.id"""
        rows = self.rows(query, redists, *values)
        for redist, label, package, version, *more, contents, date in rows:
            archive = Archive(package, Version.parse(version), *more)
            yield IndexedArchive(redist, Version.parse(label), archive, contents, date)

    def examined(self, contents: Collection[int]) -> dict[int, ExaminedArchive]:
        """Return the contents of archives by their rows."""
        query = "SELECT id, facts FROM contents WHERE id IN (SELECT value FROM json_each(?))"
        rows = self.rows(query, contents)
        return {row: ExaminedArchive.model_validate_json(facts) for row, facts in rows}

    def device_code(self) -> Iterator[tuple[str, Version, ArchiveId, int]]:
        """Yield the archives with device code, each with the row of its contents.

        Each release has the features of its highest layer. Raises the error of the first feature
        file that cannot be read.
        """
        for layer, redist, label in self._unreadable("release"):
            load_features(self._stores[layer], redist, parse_label(label))
        query = """
            SELECT redist, label, package, platform, variant, contents
            FROM releases JOIN archives ON release = releases.id JOIN contents
                ON contents.id = contents AND has_code
            WHERE layer = (
                SELECT min(layer) FROM releases AS layers -- `local` is less than `shipped`
                WHERE (layers.redist, layers.label) = (releases.redist, releases.label)
                    AND layers.has_features)
            ORDER BY redist, sort_key, package, archives.id"""
        for redist, label, *archive, row in self.rows(query):
            yield redist, Version.parse(label), ArchiveId(*archive), row

    def without_device_code(self) -> dict[tuple[str, str], list[Version]]:
        """Return the releases whose examined archives have no device code, by package.

        Keys are the redistributable and the package.
        """
        query = """
            SELECT redist, package, label
            FROM releases JOIN archives ON release = releases.id JOIN contents
                ON contents.id = contents
            WHERE layer = (
                SELECT min(layer) FROM releases AS layers
                WHERE (layers.redist, layers.label) = (releases.redist, releases.label)
                    AND layers.has_features)
            GROUP BY redist, package, label HAVING NOT max(has_code)
            ORDER BY redist, package, sort_key"""
        found: dict[tuple[str, str], list[Version]] = {}
        for redist, package, label in self.rows(query):
            found.setdefault((redist, package), []).append(Version.parse(label))
        return found

    def exporting(self, pattern: SymbolPattern) -> tuple[str, ...]:
        """Return the libraries that export a symbol that fits, sorted.

        Raises the error of the first table that cannot be read.
        """
        self.check_symbols()
        query = """
            SELECT library, name FROM symbols JOIN symbol_groups ON id = symbol_group
            WHERE imported_from IS NULL AND name GLOB ?"""
        rows = self.rows(query, pattern.glob)
        return tuple(sorted({library for library, name in rows if pattern.fits(name)}))

    def similar_symbols(self, name: str) -> tuple[str, ...]:
        """Return exported symbols with a similar name, the most similar first.

        They begin with the same letters, because a comparison with all symbols takes seconds.
        """
        start = name[:_SAME_LETTERS]
        if len(name) <= _SAME_LETTERS or not start.isalnum():
            return ()
        query = """
            SELECT DISTINCT name FROM symbols JOIN symbol_groups ON id = symbol_group
            WHERE imported_from IS NULL AND name GLOB ?"""
        names = [known for (known,) in self.rows(query, f"{start}*")]
        return misspelled_names(name, names)

    def exporters(self, libraries: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the C functions that some libraries export in any release, with the libraries.

        Raises the error of the first of their tables that cannot be read.
        """
        self.check_symbols(libraries)
        query = """
            SELECT name, library FROM symbol_groups CROSS JOIN symbols
            WHERE symbol_group = id AND imported_from IS NULL
                AND library IN (SELECT value FROM json_each(?))
                AND NOT (name GLOB '_Z*' OR name GLOB 'Py*' OR name GLOB '_Py*')"""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for name, library in self.rows(query, libraries):
            found[name][library] = None
        return found

    def check_symbols(self, libraries: Collection[str] | None = None) -> None:
        """Raise the error of the first table of symbols that cannot be read.

        `libraries` limits the check to the tables of these libraries.
        """
        for layer, soname, _ in self._unreadable("symbols"):
            if libraries is None or soname in libraries:
                table = self._symbols[layer].document(soname)
                groups = () if table is None else (*table.exports, *table.imports)
                for group in groups:
                    group.symbols()

    def _use(self, database: sqlite3.Connection) -> None:
        """Use a database, and close it at the end of this object's life."""
        self._database = database
        weakref.finalize(self, database.close)

    def _make(self) -> None:
        """Use a new database."""
        self._is_new = True
        self._use(_open_memory())
        self._database.executescript(index_schema())

    def _renew(self) -> None:
        """Make the index again."""
        self._database.close()
        self._make()
        self._refresh()

    def _refresh(self) -> None:
        """Replace the rows of changed files, and store the index if there are any."""
        query = "SELECT layer, kind, name, label, state FROM documents"
        indexed = {_Document(*row[:4]): row[4] for row in self._database.execute(query)}
        unchanged = {
            one for one, state in indexed.items() if state and self._states.get(one) == state
        }
        changed, outdated = self._states.keys() - unchanged, indexed.keys() - unchanged
        if not changed and not outdated:
            return
        if not self._is_new:
            with closing(self._database) as file:
                self._use(_open_memory())
                file.backup(self._database)
        self._database.execute("PRAGMA foreign_keys = ON")
        with self._database:
            query = "DELETE FROM documents WHERE (layer, kind, name, label) = (?, ?, ?, ?)"
            self._database.executemany(query, outdated)
            self._progress.expect(len(changed))
            for document in self._progress.each(sorted(changed)):
                self._add(document)
            if outdated:
                self._database.execute(
                    "DELETE FROM contents WHERE id NOT IN"
                    " (SELECT contents FROM archives WHERE contents IS NOT NULL)"
                )
                self._database.execute(
                    "DELETE FROM folders WHERE id NOT IN (SELECT folder FROM contents_folders)"
                )
        self._cache.store_index(self._key, self.write)

    def write(self, path: Path) -> None:
        """Write the index to a new file. Raises `OSError`."""
        try:
            with closing(sqlite3.connect(path)) as file:
                file.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
                self._database.backup(file)
        except sqlite3.Error as error:
            raise OSError(str(error)) from error
        write_checksum(path)

    def _add(self, document: _Document) -> None:
        """Add the rows of a document. A broken file has none."""
        errors: list[CudaRedistError] = []

        def read(function: Callable[..., _Result], *values: object) -> _Result | None:
            try:
                return function(*values)
            except CudaRedistError as error:
                errors.append(error)
                return None

        layer, kind, name, label = document
        values = (*document, self._states[document], True, None)
        row = add_row(self._database, "documents", values)
        if kind == "symbols":
            table = read(self._symbols[layer].document, name)
            if table is not None:
                read(add_symbols, self._database, row, layer, table)
        elif kind == "table":
            content = read(self._read_table, self._table_path(layer, name))
            if content is not None:
                add_table(self._database, row, layer, content)
        else:
            store, version = self._stores[layer], parse_label(label)
            is_there = store.manifests(name).path_of(version).exists()
            manifest = read(load_manifest, store, name, version) if is_there else None
            features = read(load_features, store, name, version)
            about = (layer, name, label, _sort_key(version))
            add_release(self._database, row, about, manifest, features)
        if errors:
            query = "UPDATE documents SET is_readable = FALSE, error = ? WHERE id = ?"
            self._database.execute(query, [printable(errors[0].message), row])

    def _read_states(self) -> Iterator[tuple[_Document, str]]:
        """Yield the sizes and times of all documents, empty for those that changed just now."""
        for layer, store in self._stores.items():
            for redist in {*store.redists(), *store.feature_redists()}:
                with suppress(ReadError):
                    for label, paths in _paths_by_release(store, redist).items():
                        # A local manifest that the shipped data describes needs no rows.
                        if layer == "shipped" or not self.store.is_described_below(redist, label):
                            yield _Document(layer, "release", redist, str(label)), _state(*paths)
        for layer, symbols in self._symbols.items():
            with suppress(ReadError):
                for soname in symbols.sonames():
                    yield _Document(layer, "symbols", soname, ""), _state(symbols.place(soname))
            for table in TABLES:
                path = self._table_path(layer, table.name)
                if path.exists():
                    yield _Document(layer, "table", table.name, ""), _state(path)

    @staticmethod
    def _read_table(path: Path) -> OwnModel | None:
        model = next(table.model for table in TABLES if table.name == path.stem)
        data = read_file(path)
        try:
            return None if data is None else read_own_file(data, model)
        except InvalidFileError as error:
            raise InvalidFileError(f"table ({path})", error.problems) from None

    def _table_path(self, layer: Layer, name: str) -> Path:
        return self._symbols[layer].path.with_name(f"{name}.json")


def _paths_by_release(store: Store, redist: str) -> dict[Version, list[str]]:
    """Return the paths of each release's manifest and feature file."""
    paths: dict[Version, list[str]] = defaultdict(list)
    for folder in (store.manifests(redist), store.features(redist)):
        for label, name in folder.files():
            paths[label].append(f"{folder.path}/{name}")
    return paths


def index_key(store: Store) -> str:
    """Return the name of an index in the cache."""
    folders = [*(layer.root for layer in store.layers), *store.symbol_paths]
    names = [str(folder.resolve()) for folder in folders]
    return sha256_of(repr((__version__, index_schema(), store.channel, names)).encode())


def index_schema() -> str:
    """Return the commands that create the tables of the index, with their comments."""
    return (resources.files("cudaredist.store") / "facts_index.sql").read_text("utf-8")


def _state(*paths: Path | str) -> str:
    states = []
    for path in paths:
        with suppress(OSError):
            about = os.stat(path)  # noqa: PTH116 - a path of each file takes longer
            newest = max(about.st_mtime_ns, about.st_ctime_ns)
            if newest > time.time_ns() - _SETTLED_NS:
                return ""
            states.append((about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino))
    return repr(sorted(states))


def _open_file(path: Path) -> sqlite3.Connection:
    # No process changes the file, so that it needs no locks, which not all file systems have.
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def _open_memory() -> sqlite3.Connection:
    # The collector closes the database in any thread.
    return sqlite3.connect(":memory:", check_same_thread=False)


def _sort_key(label: Version) -> str:
    """Return a text that sorts labels by their numbers."""
    numbers = (*label.components, 0, 0, 0, 0)[:4] + label.suffix
    return ".".join(f"{number:018}" for number in numbers)
