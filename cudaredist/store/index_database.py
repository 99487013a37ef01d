"""The database of an index: how its file is created, verified, updated and recovered.

The files of the data folder are the only source. Their sizes and times are compared with those in
the index at each start, and the rows of changed files are replaced. A changed index replaces its
file as a whole, so that it needs no locks: several processes can read and refresh it at once. If
its checksum shows that it is damaged or edited, it is made again. If the cache cannot be written,
the index is in memory.
"""

import errno
import os
import sqlite3
import time
import weakref
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from functools import partial
from importlib import resources
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeVar, get_args

from cudaredist import __version__
from cudaredist.errors import CudaRedistError, InvalidFileError, ReadError, WriteError
from cudaredist.formats.base import OwnModel
from cudaredist.formats.jetpack import JetPackPolicy
from cudaredist.formats.names import Channel
from cudaredist.formats.policy import DriverPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.runfile_records import Runfiles
from cudaredist.primitives import Version, parse_label, sha256_of
from cudaredist.progress import Progress
from cudaredist.store.api_folder import ApiFolder
from cudaredist.store.archive_address import archive_address
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Layer, Store, layer_of, shipped_data
from cudaredist.store.files import read_file, write_file
from cudaredist.store.index_rows import add_api, add_release, add_row, add_symbols, add_table
from cudaredist.store.read_data import RUNFILES, load_features, load_manifest
from cudaredist.store.symbol_folder import SymbolFolder
from cudaredist.store.table_registry import TABLES
from cudaredist.words import printable

_TABLES: dict[str, type[OwnModel]] = {
    **{table.name: table.model for table in TABLES},
    "policy/drivers": DriverPolicy,
    "policy/jetpack": JetPackPolicy,
    RUNFILES: Runfiles,
}
"""The models of tables by path in the data folder, without suffix."""

_SETTLED_NS = 2 * 10**9
"""Nanoseconds after which a further change has another time. FAT counts in steps of two seconds."""

_CHECKSUM = slice(60, 64)
"""The bytes of `user_version` in the header of an SQLite file, which are the checksum's."""
_CHUNK = 1 << 18
_verified: set[tuple[int, ...]] = set()
"""Files that this process has verified, by device, inode, size and times."""
_VERIFIED = ".verified"
"""The suffix of the file with the state of a verified index."""

_Result = TypeVar("_Result")


class _Document(NamedTuple):
    """The files of a release, the table of a library's symbols or an API, or another table."""

    layer: Layer
    channel: Channel | Literal[""]
    """Empty: the document is for both channels."""
    kind: Literal["release", "symbols", "api", "table"]
    name: str
    label: str


class IndexDatabase:
    """The database with the facts of a data folder and of the layers below it.

    It has the releases of all channels. Queries see those of some channels only.
    """

    def __init__(
        self, store: Store, channels: Collection[Channel], cache: Cache, progress: Progress
    ) -> None:
        """Open the database, and replace the rows of changed files."""
        self.stores = {
            (layer_of(layer.root), channel): Store(layer.root, channel)
            for layer in store.layers
            for channel in get_args(Channel)
        }
        """The data folders by layer and channel."""
        self.symbols = {layer_of(path.parent): SymbolFolder(path) for path in store.symbol_paths}
        """The folders with tables of symbols by layer."""
        self.apis = {layer_of(layer.root): ApiFolder(layer.api_path) for layer in store.layers}
        """The folders with tables of APIs by layer."""
        self._store = store
        self._channels = channels
        self._progress = progress
        self._cache = cache
        self._key = index_key(store)
        self._states = dict(self._read_states())
        path = self._undamaged_file()
        self._is_new = False
        if path is None:
            self._create()
        else:
            self._use(_open_file(path))
        try:
            self._update()
        except sqlite3.DatabaseError:
            self._recover()
        else:
            self._hide_other_channels()

    def _undamaged_file(self) -> Path | None:
        """Return the path of a stored index: of all layers, else of the shipped data."""
        for store in (self._store, self._store.base):
            path = None if store is None else self._cache.stored_index(index_key(store))
            if path is not None and _is_undamaged(path):
                return path
        return None

    def state(self) -> str:
        """Return the state of the data and the program, empty if a file changed just now.

        Equal states give equal answers.
        """
        package = Path(str(resources.files("cudaredist")))
        policies = [layer.root / "policy" for layer in self._store.layers]
        folders = [package, shipped_data() / "policy", *policies]
        files = [path for folder in folders for path in folder.rglob("*.*")]
        program = _state(*(path for path in files if path.suffix != ".pyc"))
        if not program or not all(self._states.values()):
            return ""
        documents = map(repr, sorted(self._states.items()))
        return sha256_of(repr((self._key, [program, *documents])).encode())

    def read(self, function: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Call a function with the connection, again with that of a new database if it is damaged.

        Raises `sqlite3.DatabaseError` if the function fails with the new one, too.
        """
        try:
            return function(self._connection)
        except sqlite3.DatabaseError:
            if self._is_new:
                raise
            self._recover()
            return function(self._connection)

    def _use(self, connection: sqlite3.Connection) -> None:
        """Use a connection, and close it at the end of this object's life."""
        self._connection = connection
        weakref.finalize(self, connection.close)

    def _create(self) -> None:
        """Create an empty database in memory."""
        self._is_new = True
        self._use(_open_memory())
        self._connection.executescript(index_schema())

    def _recover(self) -> None:
        """Create the database again, from all files."""
        self._connection.close()
        self._create()
        self._update()
        self._hide_other_channels()

    def _hide_other_channels(self) -> None:
        """Let queries see only the releases of the selected channels.

        Temporary views hide the table and the view of the same name.
        """
        channels = ", ".join(f"'{channel}'" for channel in self._channels)
        for name in ("releases", "current_releases", "downloads"):
            self._connection.execute(
                f"CREATE TEMP VIEW {name} AS"
                f" SELECT * FROM main.{name} WHERE channel IN ({channels})"
            )

    def _update(self) -> None:
        """Replace the rows of changed files, and store the database if there are any."""
        query = "SELECT layer, channel, kind, name, label, state FROM documents"
        indexed = {
            _Document(*document): state for *document, state in self._connection.execute(query)
        }
        unchanged = {
            document
            for document, state in indexed.items()
            if state and self._states.get(document) == state
        }
        changed, outdated = self._states.keys() - unchanged, indexed.keys() - unchanged
        if not changed and not outdated:
            return
        if not self._is_new:
            with closing(self._connection) as stored:
                self._use(_open_memory())
                stored.backup(self._connection)
        self._connection.execute("PRAGMA foreign_keys = ON")
        with self._connection:
            query = """
                DELETE FROM documents
                WHERE (layer, channel, kind, name, label) = (?, ?, ?, ?, ?)"""
            self._connection.executemany(query, outdated)
            self._progress.expect(len(changed))
            for document in self._progress.each(sorted(changed)):
                self._add(document)
            if outdated:
                self._connection.execute(
                    "DELETE FROM contents WHERE id NOT IN"
                    " (SELECT contents FROM archives WHERE contents IS NOT NULL)"
                )
                self._connection.execute(
                    "DELETE FROM folders WHERE id NOT IN (SELECT folder FROM contents_folders)"
                )
        self._cache.store_index(self._key, self.write)

    def write(self, path: Path) -> None:
        """Write the database to a new file. Raises `OSError`."""
        try:
            with closing(sqlite3.connect(path)) as file:
                file.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
                self._connection.backup(file)
        except sqlite3.Error as error:
            # The hint of the error depends on its number.
            is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            raise OSError(errno.ENOSPC if is_full else errno.EIO, str(error)) from error
        _write_checksum(path)

    def _add(self, document: _Document) -> None:
        """Add the rows of a document. A broken file has none."""
        errors: list[CudaRedistError] = []

        def read(function: Callable[..., _Result], *values: object) -> _Result | None:
            try:
                return function(*values)
            except CudaRedistError as error:
                errors.append(error)
                return None

        layer, channel, kind, name, label = document
        values = (*document, self._states[document], True, None)
        row = add_row(self._connection, "documents", values)
        if kind == "symbols":
            table = read(self.symbols[layer].document, name)
            if table is not None:
                read(add_symbols, self._connection, row, layer, table)
        elif kind == "api":
            api = read(self.apis[layer].document, name)
            if api is not None:
                add_api(self._connection, row, layer, api)
        elif kind == "table":
            content = read(self._read_table, name, self._table_path(layer, name))
            if content is not None:
                add_table(self._connection, row, layer, content)
        else:
            store, version = self.stores[layer, channel], parse_label(label)
            is_there = store.manifests(name).path_of(version).exists()
            manifest = read(load_manifest, store, name, version) if is_there else None
            features = read(load_features, store, name, version)
            about = (layer, channel, name, label, _sort_key(version))
            address = store.address_of(name, version)
            # A product of the user's own has no address here: the policy with it can change later.
            address_of = partial(archive_address, name, urls={}, address=address)
            add_release(self._connection, row, about, manifest, features, address_of)
        if errors:
            query = "UPDATE documents SET is_readable = FALSE, error = ? WHERE id = ?"
            self._connection.execute(query, [printable(errors[0].message), row])

    def _read_states(self) -> Iterator[tuple[_Document, str]]:
        """Yield the sizes and times of all documents, empty for those that changed just now."""
        for (layer, channel), store in self.stores.items():
            whole = self._store.of_channel(channel)
            for redist in {*store.redists(), *store.feature_redists()}:
                with suppress(ReadError):
                    for label, paths in _paths_by_release(store, redist).items():
                        # A local manifest that the shipped data describes needs no rows.
                        if layer == "shipped" or not whole.is_described_below(redist, label):
                            document = _Document(layer, channel, "release", redist, str(label))
                            yield document, _state(*paths)
        for layer, apis in self.apis.items():
            with suppress(ReadError):
                for package in apis.packages():
                    yield _Document(layer, "", "api", package, ""), _state(apis.place(package))
        yield from self._states_of_tables()

    def _states_of_tables(self) -> Iterator[tuple[_Document, str]]:
        """Yield the sizes and times of symbols and other tables."""
        for layer, symbols in self.symbols.items():
            with suppress(ReadError):
                for soname in symbols.sonames():
                    document = _Document(layer, "", "symbols", soname, "")
                    yield document, _state(symbols.place(soname))
            for name in _TABLES:
                path = self._table_path(layer, name)
                if path.exists():
                    yield _Document(layer, "", "table", name, ""), _state(path)

    @staticmethod
    def _read_table(name: str, path: Path) -> OwnModel | None:
        data = read_file(path)
        try:
            return None if data is None else read_own_file(data, _TABLES[name])
        except InvalidFileError as error:
            raise InvalidFileError(f"table ({path})", error.problems) from None

    def _table_path(self, layer: Layer, name: str) -> Path:
        return self.symbols[layer].path.parent / f"{name}.json"


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
    return sha256_of(repr((__version__, index_schema(), names)).encode())


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


def _write_checksum(path: Path) -> None:
    """Write the checksum into a new index. Raises `OSError`."""
    with path.open("r+b") as file:
        checksum = _checksum(file)
        file.seek(_CHECKSUM.start)
        file.write(checksum)
    _verified.add(_identity(path.stat()))


def _is_undamaged(path: Path) -> bool:
    """Check the checksum of an index, once for each state of the file.

    To read the whole file takes longer than most answers. So the state of a verified file is stored
    next to it, unless the file changed just now. Every later change gives it another state.
    """
    note = path.with_name(f"{path.name}{_VERIFIED}")
    try:
        about = path.stat()
        state = repr(_identity(about))
        if read_file(note) == state.encode():
            return True
        if not _has_checksum(path):
            return False
    except (OSError, ReadError):
        return False
    if max(about.st_mtime_ns, about.st_ctime_ns) < time.time_ns() - _SETTLED_NS:
        with suppress(WriteError):  # the next call reads the whole file again
            write_file(note, state.encode(), durable=False)
    return True


def _has_checksum(path: Path) -> bool:
    """Check if the checksum of an index is right. Raises `OSError`."""
    with path.open("rb") as file:
        identity = _identity(os.fstat(file.fileno()))
        if identity not in _verified:
            if file.read(_CHECKSUM.stop)[_CHECKSUM] != _checksum(file):
                return False
            _verified.add(identity)
    return True


def _checksum(file: BinaryIO) -> bytes:
    """Return the checksum of an index: the CRC-32 of all other bytes.

    A cryptographic hash would take longer than most queries, and nobody else can write the cache.
    """
    file.seek(0)
    checksum = zlib.crc32(file.read(_CHECKSUM.start))
    file.seek(_CHECKSUM.stop)
    while chunk := file.read(_CHUNK):
        checksum = zlib.crc32(chunk, checksum)
    return checksum.to_bytes(4, "big")


def _identity(about: os.stat_result) -> tuple[int, ...]:
    times = about.st_mtime_ns, about.st_ctime_ns
    return about.st_dev, about.st_ino, about.st_size, *times
