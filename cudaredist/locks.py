"""Locks on folders, which leave no file behind."""

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from cudaredist.errors import WriteError

_log = logging.getLogger(__name__)

_ATTEMPTS = 100


@contextlib.contextmanager
def writing(root: Path) -> Iterator[Callable[[], None]]:
    """Keep other runs from writing to the same folder meanwhile.

    Yields a function to call before the first write, which makes the folder if it is missing. An
    existing folder is locked at once. Folders that this run made and left empty are removed, so
    that a run that brings nothing leaves nothing. Raises `WriteError`.
    """
    missing = [folder for folder in (root, *root.parents) if not os.path.lexists(folder)]
    mutex = threading.Lock()
    handles: list[int | None] = []

    def begin() -> None:
        with mutex:
            if not handles:
                handles.append(locked_folder(root))

    if not missing:
        begin()
    try:
        yield begin
    finally:
        if missing and handles:
            below = [Path(folder) for folder, *_ in os.walk(root, topdown=False)]
            for folder in (*below, *missing):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        for handle in handles:
            if handle is not None:
                os.close(handle)


def locked_folder(root: Path, *, mode: int = 0o777, made: Path | None = None) -> int | None:
    """Make a folder if it is missing, and return its descriptor once it is locked.

    The folder itself is locked, which leaves no file behind. Without locks (Windows, some network
    file systems) the run continues without one: None. `made` is what other runs make in the folder,
    for messages. Raises `WriteError`.
    """
    failure = FileNotFoundError(errno.ENOENT, "is taken away again and again")
    for _ in range(_ATTEMPTS):
        try:
            root.mkdir(mode=mode, parents=True, exist_ok=True)
        except FileNotFoundError as error:
            # Another run has just removed a parent, if it could be made at all.
            failure = error
            continue
        except OSError as error:
            raise WriteError(root, error) from error
        try:
            import fcntl  # noqa: PLC0415 - not on Windows

            handle = os.open(root, os.O_RDONLY)
        except FileNotFoundError:
            continue
        except (ImportError, OSError) as error:
            _log.warning("going on without a lock on %s: %s", root, error)
            return None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                does = f"writes to {root}" if made is None else f"makes {made}"
                _log.warning("waiting for another run that %s", does)
                fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            os.close(handle)
            _log.warning("going on without a lock on %s: %s", root, error)
            return None
        if is_at(root, handle):
            return handle
        # The run that was waited for brought nothing and has removed the folder.
        os.close(handle)
    raise WriteError(root, failure)


def is_at(folder: Path, handle: int) -> bool:
    """Check if a descriptor is that of the folder which is there now."""
    try:
        return os.path.samestat(os.fstat(handle), folder.stat())
    except FileNotFoundError:
        return False


def lock_if_free(folder: Path) -> int | None:
    """Lock a folder and return its descriptor; None if another run has it, or without locks."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
