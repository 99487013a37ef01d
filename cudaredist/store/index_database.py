"""The database of an index: how its file is created, verified, updated and recovered.

The files of the data folder are the only source. Their sizes and times are compared with those in
the index at each start, and the rows of changed files are replaced. A note in the cache has the
signature of all files at the last comparison: if it is the same, nothing changed. A changed index
is written to a new file, which replaces the old one as a whole, so that it needs no locks: several
processes can read and refresh it at once, and a killed one leaves no half of it. If its checksum
shows that it is damaged or edited, it is created again. If neither the cache nor the user's
temporary folder can be written, the index is in memory.
"""

import errno
import os
import shutil
import sqlite3
import weakref
import zlib
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeVar

from cudaredist import __version__
from cudaredist.formats.names import Channel
from cudaredist.primitives import sha256_of
from cudaredist.progress import Progress
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.documents import (
    Document,
    Documents,
    is_settled,
    program_state,
    state_of,
)
from cudaredist.store.index_schema import (
    PARTS,
    Part,
    create_tables,
    index_schema,
    missing_part,
    stored_parts,
)

_CHECKSUM = slice(60, 64)
"""The bytes of `user_version` in the header of an SQLite file, which are the checksum's."""
_CHUNK = 1 << 18
_FOR_NEW_FILE = """
    PRAGMA page_size = 16384; -- most of the bytes are in long texts
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -32768; -- kB of memory
"""
"""Settings for a file that is removed if it cannot be completed."""
_verified: set[tuple[int, ...]] = set()
"""Files that this process has verified, by device, inode, size and times."""

_Result = TypeVar("_Result")


class IndexDatabase:
    """The database with the facts of a data folder and of the layers below it.

    It has the releases of all channels. Queries see those of some channels only. It begins without
    the parts that no question required so far.
    """

    def __init__(
        self, store: Store, channels: Collection[Channel], cache: Cache, progress: Progress
    ) -> None:
        """Open the database, and replace the rows of changed files."""
        self.documents = Documents(store)
        self._store = store
        self._channels = channels
        self._progress = progress
        self._cache = cache
        self._key = index_key(store)
        # A file that changes after this line has another signature at the next start.
        signature = self._signature = self.documents.signature()
        path, compared = self._undamaged_file()
        self._is_new = False
        self._close: Callable[[], object] = lambda: None
        self.is_unchanged = path is not None and signature == compared != ""
        """Whether no file differs from those of the last comparison."""
        try:
            if path is None:
                self._create()
            else:
                self._use(_open_file(path), path)
                if not self.is_unchanged and not self._update():
                    self._store_note(path, signature)
        except sqlite3.DatabaseError:
            self._create()

    @cached_property
    def _states(self) -> dict[Document, str]:
        """The states of all documents."""
        return {document: state_of(*paths) for document, paths in self.documents.paths.items()}

    def _undamaged_file(self) -> tuple[Path | None, str]:
        """Return the path of a stored index: of all layers, else of the shipped data.

        The second value is the signature at its last comparison. To read the whole file takes
        longer than most answers, so the file with the identity in its note is not verified again.
        Every later change gives it another identity, for which there is no signature.
        """
        for store in filter(None, (self._store, self._store.base)):
            path = self._cache.stored_index(index_key(store))
            if path is not None:
                verified, _, compared = self._cache.index_note(path).decode().partition("\n")
                with suppress(OSError):
                    if _identity_of(path) == verified:
                        return path, compared
                    if _is_undamaged(path):
                        return path, ""
        return None, ""

    def _store_note(self, path: Path, signature: str) -> None:
        """Note the identity of the index, unless it changed just now, and the signature."""
        with suppress(OSError):
            about = path.stat()
            if is_settled(about.st_mtime_ns, about.st_ctime_ns):
                note = f"{_identity(about)}\n{signature}"
                self._cache.store_index_note(path, note.encode())

    def state(self) -> str:
        """Return the state of the data and the program, empty if a file changed just now.

        Equal states give equal answers.
        """
        policies = state_of(*(shipped_data() / "policy").glob("*.json"))
        states = [self._signature, policies, program_state()]
        return sha256_of(repr((self._key, states)).encode()) if all(states) else ""

    def read(self, function: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Call a function with the connection, and again if the database changes.

        A part that the function requires is added, and a damaged database is created again. Raises
        `sqlite3.DatabaseError` if the function fails with a new database, too.
        """
        while True:
            try:
                return function(self._connection)
            except sqlite3.DatabaseError as error:
                part = missing_part(error, self._connection)
                if part is not None:
                    self._add_parts({part})
                elif self._is_new:
                    raise
                else:
                    self._create()

    def write(self, path: Path) -> None:
        """Write the database with all parts to a new file. Raises `OSError`."""
        self.add_parts(PARTS)
        _write_database(path, self._connection.backup)

    def add_answers(self, add: Callable[[sqlite3.Connection], object]) -> None:
        """Add answers to the database, unless its data changed since it was opened."""
        documents = self.read(_documents_in)

        def add_if_unchanged(connection: sqlite3.Connection) -> None:
            # Another process can have replaced the file.
            if _documents_in(connection) == documents:
                with connection:
                    add(connection)

        try:
            self._change(add_if_unchanged)
        except sqlite3.DatabaseError:
            self._create()

    def add_parts(self, parts: AbstractSet[Part]) -> None:
        """Add the parts that the database does not have yet."""
        if missing := parts - self.read(stored_parts):
            self._add_parts(missing)

    def _create(self, parts: AbstractSet[Part] = frozenset()) -> None:
        """Create the database with some parts from all files."""

        def create(connection: sqlite3.Connection) -> None:
            for part in (None, *sorted(parts)):
                create_tables(connection, part)
            self._unpack(connection)
            self._replace_rows(connection)

        self._is_new = True
        connection, path = self._stored(create)
        if path is None:
            create(connection)
        self._use(connection, path)

    def _unpack(self, connection: sqlite3.Connection) -> None:
        """Add the packed rows of the shipped data, if the folder or a layer below it is that."""
        from cudaredist.store.packed_index import packed_path, unpack  # noqa: PLC0415 - only for new ones

        packed = packed_path()
        if self._store.layers[-1].root == shipped_data() and packed.exists():
            unpack(packed.read_bytes(), connection, self.documents.paths, self._states)

    def _update(self) -> bool:
        """Replace the rows of changed files, and return whether there were any."""
        has_changed = any(self._differences(self._connection))
        if has_changed:
            self._change(self._replace_rows)
        return has_changed

    def _add_parts(self, parts: AbstractSet[Part]) -> None:
        """Add parts to the database. A damaged one is created again."""
        # Lookups import no models, and most of them need no further rows.
        from cudaredist.store.index_update import add_part  # noqa: PLC0415

        def add(connection: sqlite3.Connection) -> None:
            # Another process can have added one.
            for part in sorted(parts - stored_parts(connection)):
                add_part(connection, self.documents, part, self._progress)

        try:
            self._change(add)
        except sqlite3.DatabaseError:
            self._create(parts)

    def _replace_rows(self, connection: sqlite3.Connection) -> None:
        """Replace the rows of all changed files in a database, which can be empty.

        A part with files of the data folder is added, because every question reports their errors.
        """
        required = {document.kind for document in self._states if document.layer == "local"}
        parts = PARTS & required - stored_parts(connection)
        changed, outdated = self._differences(connection)
        if not (parts or changed or outdated):
            return
        # Lookups import no models, and most of them find no changes.
        from cudaredist.store.index_update import add_part, update_rows  # noqa: PLC0415

        states = {document: self._states[document] for document in changed}
        update_rows(connection, self.documents, states, outdated, self._progress)
        # The outdated documents of a part are removed. Their folders may not exist any more.
        for part in sorted(parts):
            add_part(connection, self.documents, part, self._progress)

    def _differences(
        self, connection: sqlite3.Connection
    ) -> tuple[Collection[Document], Collection[Document]]:
        """Return the changed documents, and those with outdated rows."""
        query = "SELECT layer, channel, kind, name, label, state FROM documents"
        indexed = {Document(*document): state for *document, state in connection.execute(query)}
        unchanged = {
            document
            for document, state in indexed.items()
            if state and self._states.get(document) == state
        }
        return self._states.keys() - unchanged, indexed.keys() - unchanged

    def _change(self, change: Callable[[sqlite3.Connection], None]) -> None:
        """Store and use a changed copy of the database. If it cannot be stored, it is in memory.

        Raises `sqlite3.DatabaseError` if the database is damaged.
        """
        if self._path is None:
            change(self._connection)
            return
        connection, path = self._stored(change, self._path)
        if path is None:
            self._connection.backup(connection)
            change(connection)
        self._use(connection, path)

    def _stored(
        self, change: Callable[[sqlite3.Connection], None], source: Path | None = None
    ) -> tuple[sqlite3.Connection, Path | None]:
        """Store a changed copy of a file, by default of an empty one, and open it.

        If it cannot be stored, return an empty database in memory, and no path.
        """

        def write(path: Path) -> None:
            if source is not None:
                shutil.copyfile(source, path)
                if not _is_undamaged(path):
                    raise sqlite3.DatabaseError(f"{source} is damaged")
            _write_database(path, change)

        path = self._cache.store_index(self._key, write)
        return _open_memory() if path is None else _open_file(path), path

    def _use(self, connection: sqlite3.Connection, path: Path | None) -> None:
        """Use a connection to a file or, without a path, to memory.

        It is closed when another one is used, or at the end of this object.
        """
        self._close()
        self._connection, self._path = connection, path
        self._close = weakref.finalize(self, connection.close)
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


def _documents_in(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT * FROM documents ORDER BY id").fetchall()


def index_key(store: Store) -> str:
    """Return the name of an index in the cache."""
    folders = [*(layer.root for layer in store.layers), *store.symbol_paths]
    names = [str(folder.resolve()) for folder in folders]
    return sha256_of(repr((__version__, index_schema(), names)).encode())


def _write_database(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Write a database that a function fills to a new file. Raises `OSError`."""
    try:
        with closing(sqlite3.connect(path)) as file:
            file.executescript(_FOR_NEW_FILE)
            fill(file)
    except sqlite3.OperationalError as error:
        # The hint of the error depends on its number.
        is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise OSError(errno.ENOSPC if is_full else errno.EIO, str(error)) from error
    _write_checksum(path)


def _open_file(path: Path) -> sqlite3.Connection:
    # No process changes the file, so that it needs no locks, which not all file systems have.
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def _open_memory() -> sqlite3.Connection:
    # The collector closes the database in any thread.
    return sqlite3.connect(":memory:", check_same_thread=False)


def _write_checksum(path: Path) -> None:
    """Write the checksum into a new index. Raises `OSError`."""
    with path.open("r+b") as file:
        checksum = _checksum(file)
        file.seek(_CHECKSUM.start)
        file.write(checksum)
    _verified.add(_identity(path.stat()))


def _is_undamaged(path: Path) -> bool:
    """Check the checksum of an index, once for each state of the file. Raises `OSError`."""
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


def _identity_of(path: Path) -> str:
    return repr(_identity(path.stat()))


def _identity(about: os.stat_result) -> tuple[int, ...]:
    times = about.st_mtime_ns, about.st_ctime_ns
    return about.st_dev, about.st_ino, about.st_size, *times
