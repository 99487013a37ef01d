"""The database of an index: how its file is created, verified, updated and recovered.

The files of the data folder are the only source. Their sizes and times are compared with those in
the index at each start, and the rows of changed files are replaced. A note in the cache has the
signature of all files at the last comparison: if it is the same, nothing changed. A changed index
replaces its file as a whole, so that it needs no locks: several processes can read and refresh it
at once. If its checksum shows that it is damaged or edited, it is made again. If the cache cannot
be written, the index is in memory.
"""

import errno
import os
import sqlite3
import weakref
import zlib
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import BinaryIO, TypeVar

from cudaredist import __version__
from cudaredist.formats.names import Channel
from cudaredist.primitives import sha256_of
from cudaredist.progress import Progress
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.documents import Document, Documents, is_settled, state_of

_CHECKSUM = slice(60, 64)
"""The bytes of `user_version` in the header of an SQLite file, which are the checksum's."""
_CHUNK = 1 << 18
_verified: set[tuple[int, ...]] = set()
"""Files that this process has verified, by device, inode, size and times."""

_Result = TypeVar("_Result")


class IndexDatabase:
    """The database with the facts of a data folder and of the layers below it.

    It has the releases of all channels. Queries see those of some channels only.
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
        signature = self.documents.signature()
        verified, _, compared = self._cache.index_note(self._key).decode().partition("\n")
        path = self._undamaged_file(verified)
        self._is_new = False
        if path is None:
            self._create()
        else:
            self._use(_open_file(path))
        self.is_unchanged = path is not None and signature == compared != ""
        """Whether no file differs from those of the last comparison."""
        try:
            if not self.is_unchanged and not self._update() and path is not None:
                self._store_note(path, signature)
        except sqlite3.DatabaseError:
            self._recover()
        else:
            self._hide_other_channels()

    @cached_property
    def _states(self) -> dict[Document, str]:
        """The states of all documents."""
        return dict(self.documents.states())

    def _undamaged_file(self, verified: str) -> Path | None:
        """Return the path of a stored index: of all layers, else of the shipped data.

        To read the whole file takes longer than most answers, so the file with the identity
        `verified` is not verified again. Every later change gives it another identity.
        """
        for store in (self._store, self._store.base):
            path = None if store is None else self._cache.stored_index(index_key(store))
            with suppress(OSError):
                if path is not None and (_identity_of(path) == verified or _is_undamaged(path)):
                    return path
        return None

    def _store_note(self, path: Path, signature: str) -> None:
        """Note the identity of the index, unless it changed just now, and the signature."""
        with suppress(OSError):
            about = path.stat()
            if is_settled(about.st_mtime_ns, about.st_ctime_ns):
                note = f"{_identity(about)}\n{signature}"
                self._cache.store_index_note(self._key, note.encode())

    def state(self) -> str:
        """Return the state of the data and the program, empty if a file changed just now.

        Equal states give equal answers.
        """
        package = Path(str(resources.files("cudaredist")))
        policies = [layer.root / "policy" for layer in self._store.layers]
        folders = [package, shipped_data() / "policy", *policies]
        files = [path for folder in folders for path in folder.rglob("*.*")]
        program = state_of(*(path for path in files if path.suffix != ".pyc"))
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

    def _update(self) -> bool:
        """Replace the rows of changed files, and store the database if there are any.

        Return whether there were any.
        """
        query = "SELECT layer, channel, kind, name, label, state FROM documents"
        indexed = {
            Document(*document): state for *document, state in self._connection.execute(query)
        }
        unchanged = {
            document
            for document, state in indexed.items()
            if state and self._states.get(document) == state
        }
        changed, outdated = self._states.keys() - unchanged, indexed.keys() - unchanged
        if not changed and not outdated:
            return False
        if not self._is_new:
            with closing(self._connection) as stored:
                self._use(_open_memory())
                stored.backup(self._connection)
        # Lookups import no models, and most of them find no changes.
        from cudaredist.store.index_update import update_rows  # noqa: PLC0415

        states = {document: self._states[document] for document in changed}
        update_rows(self._connection, self.documents, states, outdated, self._progress)
        self._cache.store_index(self._key, self.write)
        return True

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


def index_key(store: Store) -> str:
    """Return the name of an index in the cache."""
    folders = [*(layer.root for layer in store.layers), *store.symbol_paths]
    names = [str(folder.resolve()) for folder in folders]
    return sha256_of(repr((__version__, index_schema(), names)).encode())


def index_schema() -> str:
    """Return the commands that create the tables of the index, with their comments."""
    return (resources.files("cudaredist.store") / "facts_index.sql").read_text("utf-8")


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
