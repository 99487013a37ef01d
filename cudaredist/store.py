"""The data folder and the cache: the only module that knows where things lie in them.

Every file is written to a temporary name in its folder, flushed to disk and renamed, so that a
reader, or a run after a crash, sees the old bytes or the new ones and nothing between. A file whose
bytes would not change is not touched. Nothing here decides what to write.
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import BinaryIO

from cudaredist.errors import CudaRedistError, InvalidFileError, ReadError, UsageError, WriteError
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import (
    Sha256,
    Version,
    label_of_manifest_name,
    manifest_name,
    parse_label,
)
from cudaredist.private import (
    discard,
    make_private_folders,
    open_file,
    open_private,
    private_size,
    refuse_shared_folder,
)
from cudaredist.schema import OWN_FILE_LIMIT, Channel, Lock, LockEntry, read_own_file

_log = logging.getLogger(__name__)

_TEMPORARY = ".tmp"
_LINES_KEPT = 100
_DAY = 86400
_FEATURE_NAMES = ("feature_", "redistrib_features_")


def write_file(path: Path, data: bytes, *, durable: bool = True) -> bool:
    """Put bytes in a file as one step; return whether anything had to be written.

    The folder is made where it is missing. Raises `WriteError`. With `durable` the bytes are on the
    disk before the name is, which is what makes a power failure harmless; caches do without.
    """
    if _has_bytes(path, data):
        return False
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{_TEMPORARY}")
    try:
        try:
            with _created(temporary) as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WriteError(path, error) from error
    return True


def write_output(path: Path, data: bytes) -> bool:
    """Write a file that a user named, as `write_file` does.

    Temporary files that killed runs left next to it are removed first.
    """
    sweep(path.parent, f".{path.name}.")
    return write_file(path, data)


def sweep(folder: Path, beginning: str) -> None:
    """Remove files that a killed run left under temporary names with this beginning."""
    with contextlib.suppress(ReadError):
        for name in _names(folder):
            if name.startswith(beginning) and name.endswith(_TEMPORARY):
                with contextlib.suppress(OSError):
                    (folder / name).unlink()


def _has_bytes(path: Path, data: bytes) -> bool:
    """Say whether a path is a regular file with these bytes; a link to one is not."""
    try:
        with open_file(path) as file:
            return os.fstat(file.fileno()).st_size == len(data) and file.read() == data
    except OSError:
        return False


def _created(path: Path) -> BinaryIO:
    try:
        return path.open("xb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")


def read_file(path: Path) -> bytes | None:
    """Return a file's bytes; None where there is no such file.

    Raises `ReadError`, also for what is no regular file or larger than any file of ours may be.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for its other end for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise ReadError(path, OSError("not a regular file"))
            if about.st_size > OWN_FILE_LIMIT:
                raise ReadError(path, OSError(f"larger than {OWN_FILE_LIMIT:,} bytes"))
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ReadError(path, error) from error


class ManifestFolder:
    """One folder of manifests, `redistrib_<label>.json` each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, label: Version) -> Path:
        """Return where the manifest of that label lies or would lie."""
        return self.path / manifest_name(label)

    def labels(self) -> tuple[Version, ...]:
        """Return the labels held, in ascending order."""
        return tuple(sorted(filter(None, map(label_of_manifest_name, _names(self.path)))))

    def is_there(self) -> bool:
        """Say whether the folder exists, readable or not."""
        return self.path.exists()

    def read(self, label: Version) -> bytes | None:
        """Return a manifest's bytes; None where it is not held."""
        return read_file(self.place(label))

    def write(self, label: Version, data: bytes) -> bool:
        """Put a manifest's bytes as published; return whether that changed anything."""
        return write_file(self.place(label), data)

    def sweep(self) -> None:
        """Remove what a killed run left under temporary names."""
        sweep(self.path, ".redistrib_")


class FeatureFolder:
    """One folder of feature files, `feature_<label>.json` each; the peer's name is read too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, label: Version) -> Path:
        """Return where the feature file lies or would lie."""
        usual, other = (self.path / f"{prefix}{label}.json" for prefix in _FEATURE_NAMES)
        return other if other.exists() and not usual.exists() else usual

    def labels(self) -> tuple[Version, ...]:
        """Return the labels for which a feature file is held, in ascending order."""
        labels = set()
        for name in _names(self.path):
            for prefix in _FEATURE_NAMES:
                if name.startswith(prefix) and name.endswith(".json"):
                    with contextlib.suppress(ValueError):
                        labels.add(parse_label(name.removeprefix(prefix).removesuffix(".json")))
        return tuple(sorted(labels))

    def read(self, label: Version) -> bytes | None:
        """Return a feature file's bytes; None where it is not held."""
        return read_file(self.place(label))

    def write(self, label: Version, data: bytes) -> bool:
        """Put a feature file under its usual name; return whether that changed anything."""
        return write_file(self.path / f"{_FEATURE_NAMES[0]}{label}.json", data)

    def sweep(self) -> None:
        """Remove what a killed run left under temporary names."""
        for prefix in _FEATURE_NAMES:
            sweep(self.path, f".{prefix}")


class Store:
    """A data folder: `manifests/`, `features/`, and the tables beside them."""

    def __init__(self, root: Path, channel: Channel = "redist") -> None:
        self.root = root
        self.channel = channel
        # NVIDIA's server is the channel everyone means, so that it needs no folder of its own.
        below = "" if channel == "redist" else channel
        self._manifests = root / "manifests" / below
        self._features = root / "features" / below

    @property
    def lock_path(self) -> Path:
        """Where the record of fetched manifests lies."""
        return self._manifests / "lock.json"

    def redists(self) -> tuple[str, ...]:
        """Return the names under which the folder holds manifests, sorted."""
        return self._held_below(self._manifests, lambda name: self.manifests(name).labels())

    def sweep(self) -> None:
        """Remove what a killed run left of the lock file, and of what a bump keeps in mind."""
        for path in (self.lock_path, self._untold_path):
            sweep(path.parent, f".{path.name}.")

    def manifests(self, redist: str) -> ManifestFolder:
        """Return the folder of one redistributable's manifests."""
        return ManifestFolder(self._manifests / redist)

    def lock(self) -> Lock:
        """Return the record of fetched manifests, empty where there is none yet.

        Raises `InvalidFileError` where the file is broken.
        """
        data = read_file(self.lock_path)
        if data is None:
            return Lock(schema_version=1, redists={})
        return read_own_file(data, Lock)

    def update_lock(self, entries: Mapping[str, Mapping[str, LockEntry]]) -> bool:
        """Add to the record of fetched manifests; return whether that changed anything.

        Raises `InvalidFileError` where the file is broken.
        """
        recorded = self.lock().redists
        changed = {
            name: {**recorded.get(name, {}), **labels} for name, labels in entries.items() if labels
        }
        if not changed:
            return False
        lock = Lock(schema_version=1, redists={**recorded, **changed})
        return write_file(self.lock_path, canonical_json(lock.model_dump(mode="json")))

    def untold(self) -> frozenset[tuple[str, Version]]:
        """Return the releases that a bump began with and that no message tells of yet.

        What cannot be understood is left out: it stands for nothing that is held.
        """
        data = read_file(self._untold_path) or b""
        found = set()
        for line in data.decode(errors="replace").splitlines():
            redist, _, label = line.partition(" ")
            with contextlib.suppress(ValueError):
                found.add((redist, parse_label(label)))
        return frozenset(found)

    def write_untold(self, releases: Iterable[tuple[str, Version]]) -> None:
        """Keep in mind which releases are to be told of; the file is there only while any are."""
        lines = sorted(f"{redist} {label}\n" for redist, label in releases)
        if lines:
            write_file(self._untold_path, "".join(lines).encode())
            return
        try:
            self._untold_path.unlink(missing_ok=True)
        except OSError as error:
            raise WriteError(self._untold_path, error) from error

    @property
    def _untold_path(self) -> Path:
        return self._manifests / ".bump"

    def features(self, redist: str) -> FeatureFolder:
        """Return the folder of one redistributable's feature files."""
        return FeatureFolder(self._features / redist)

    def feature_redists(self) -> tuple[str, ...]:
        """Return the names under which the folder holds feature files, sorted."""
        return self._held_below(self._features, lambda name: self.features(name).labels())

    def _held_below(
        self, part: Path, labels: Callable[[str], Sequence[Version]]
    ) -> tuple[str, ...]:
        """Return the names in a part of the folder that hold anything, or may, being unreadable.

        `wheels` is no redistributable: the wheel channel lies there.
        """

        def may_hold(name: str) -> bool:
            try:
                return name != "wheels" and bool(labels(name))
            except ReadError:
                return True

        return tuple(filter(may_hold, sorted(_names(part))))

    def table_path(self, name: str) -> Path:
        """Return where a table, `nvcc_compat` or `gpus`, lies or would lie."""
        return self.root / f"{name}.json"

    def read_table(self, name: str) -> bytes | None:
        """Return a table's bytes; None where it is not there. Raises `ReadError`."""
        return read_file(self.table_path(name))

    def write_table(self, name: str, data: bytes) -> bool:
        """Put a table; return whether that changed anything."""
        return write_file(self.table_path(name), data)

    def sweep_table(self, name: str) -> None:
        """Remove what a killed run left of a table."""
        sweep(self.root, f".{self.table_path(name).name}.")

    def own_policy(self, name: str) -> bytes | None:
        """Return a policy file of the folder itself; None where it has none. Raises `ReadError`."""
        return read_file(self.root / "policy" / f"{name}.json")

    def read_policy(self, name: str) -> bytes:
        """Return a policy file, such as `nvcc`: the data folder's own, else the shipped one.

        Raises `ReadError`.
        """
        own = self.own_policy(name)
        shipped = shipped_data() / "policy" / f"{name}.json"
        data = own if own is not None else read_file(shipped)
        if data is None:
            raise ReadError(shipped, FileNotFoundError(errno.ENOENT, "no such file"))
        return data

    def relative(self, path: Path) -> str:
        """Return a file's path below the data folder, with slashes."""
        return path.relative_to(self.root).as_posix()


class Cache:
    """What makes later runs cheaper and can be deleted at any time."""

    def __init__(self, root: Path) -> None:
        """Raise `UsageError` for a folder of another user, or that others can write to."""
        refuse_shared_folder(root)
        self._root = root
        self._warned = threading.Event()

    def etag(self, place: str, sha256: str) -> str | None:
        """Return the ETag that a place gave for exactly these bytes."""
        data = self.get("http", _key_of(place))
        entry = None if data is None else json.loads(data)
        return entry["etag"] if entry and entry["sha256"] == sha256 else None

    def remember(self, place: str, sha256: str, etag: str) -> None:
        """Keep what a place gave for these bytes; a cache that cannot be written is no error."""
        self.put("http", _key_of(place), canonical_json({"sha256": sha256, "etag": etag}))

    def get(self, kind: str, sha256: Sha256) -> bytes | None:
        """Return what is kept of a kind, such as `facts/1`, about the bytes with that hash.

        None where there is nothing, or not exactly what was put there.
        """
        try:
            with open_private(self._entry_path(kind, sha256)) as file:
                digest, _, data = file.read().partition(b"\n")
        except OSError:
            return None
        return data if digest == _digest(data) else None

    def put(self, kind: str, sha256: Sha256, data: bytes) -> None:
        """Keep something about the bytes with that hash; failing to is a warning, once."""
        try:
            path = self._entry_path(kind, sha256)
            make_private_folders(self._root, path.parent)
            if private_size(path) is None:
                discard(path)
            write_file(path, b"%b\n%b" % (_digest(data), data), durable=False)
        except (WriteError, UsageError) as error:
            if not self._warned.is_set():
                self._warned.set()
                _log.warning("going on without a cache: %s", error)

    def sweep(self) -> None:
        """Remove what killed runs left long ago: temporary files, and archives half kept."""
        now = time.time()
        for pattern, age in ((f"*{_TEMPORARY}", _DAY), ("*.part", 30 * _DAY)):
            for path in self._root.rglob(pattern):
                with contextlib.suppress(OSError):
                    if now - path.stat().st_mtime > age:
                        path.unlink()

    def archive_path(self, sha256: Sha256, suffix: str) -> Path:
        """Return where the archive with that hash lies or would lie, as whole as published."""
        return self._root / "archives" / sha256[:2] / f"{sha256}{suffix}"

    def new_archive_path(self, sha256: Sha256, suffix: str) -> Path:
        """Return the same path, in a folder that exists. Raises `WriteError` and `UsageError`."""
        path = self.archive_path(sha256, suffix)
        make_private_folders(self._root, path.parent)
        return path

    def _entry_path(self, kind: str, key: str) -> Path:
        return self._root / kind / key[:2] / key


def _digest(data: bytes) -> bytes:
    """Return what stands in front of an entry, so that a torn or edited one does not count."""
    return hashlib.sha256(data).hexdigest().encode()


def _key_of(place: str) -> str:
    # Addresses have characters that file names may not have; their hash has none.
    return hashlib.sha256(place.encode()).hexdigest()


def shipped_data() -> Path:
    """Return the data folder that is shipped with the package, or the checkout's own."""
    package = Path(str(resources.files("cudaredist")))
    shipped = package / "data"
    return shipped if shipped.is_dir() else package.parent / "data"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long
        return False


def data_folder(given: Path | None, *, writing: bool) -> Path:
    """Return the data folder to use: the one given, else `./data`, else (to read) the shipped one.

    To write, `./data` is also taken where it is empty or not there. Raises `UsageError` where a
    folder given to be read does not exist, or `./data` is something else.
    """
    default = Path("data")
    if given is not None:
        if not writing and not _is_folder(given):
            raise UsageError(f"{given}: no such folder", hint="name the data folder in --data-dir")
        return given
    if _is_folder(default / "manifests"):
        return default
    if not writing:
        return shipped_data()
    # An empty one may be the start of another run's.
    if default.exists() and (not default.is_dir() or _names(default)):
        raise UsageError(
            "./data is no data folder (it has no manifests/)",
            hint="name one in --data-dir, or make ./data/manifests",
        )
    return default


def held_channel(root: Path) -> Channel:
    """Return the channel that a folder holds manifests of: redist, but wheels where it is alone."""
    has_wheels_only = Store(root, "wheels").redists() and not Store(root).redists()
    return "wheels" if has_wheels_only else "redist"


def held_folder(given: Path | None, *, writing: bool) -> Path:
    """Return the folder to work on what is held in, which must be there.

    Raises `UsageError` where it is not: nothing could be held in it.
    """
    root = data_folder(given, writing=writing)
    if not _is_folder(root):
        raise UsageError(
            f"{root}: no such folder", hint="cudaredist download-manifests fetches manifests first"
        )
    return root


def problems_of(error: CudaRedistError) -> tuple[str, ...]:
    """Return the single problems of an error, or its message as the only one."""
    if isinstance(error, InvalidFileError):
        return first_of([str(problem) for problem in error.problems])
    return (error.message,)


def first_of(lines: Sequence[str]) -> tuple[str, ...]:
    """Return at most a hundred lines, and how many there are beyond."""
    more = len(lines) - _LINES_KEPT
    return tuple(lines) if more <= 0 else (*lines[:_LINES_KEPT], f"and {more} more")


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ReadError(folder, error) from error
