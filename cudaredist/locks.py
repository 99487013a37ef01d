"""Locks on folders, without lock files, and the end of an interrupted run."""

import contextlib
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from cudaredist.errors import EXIT_INTERRUPTED, WriteError

_log = logging.getLogger(__name__)

_ATTEMPTS = 100
_PATIENCE = 10.0
"""Seconds to wait for the writes of other threads."""

_begins = threading.RLock()
"""Held to begin a write, and by an interrupted run until its end."""
_writes = threading.Condition()
_writers: set[int] = set()
"""The threads that write a file."""


@contextlib.contextmanager
def one_write() -> Iterator[None]:
    """Let an interrupted run wait until this thread wrote its file."""
    with _begins, _writes:
        _writers.add(threading.get_ident())
    try:
        yield
    finally:
        with _writes:
            _writers.discard(threading.get_ident())
            _writes.notify_all()


def end_as_interrupted() -> None:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does, so that it removes its temporary files.

    A signal that the caller ignores, as `nohup` does, stays ignored.
    """

    def end(number: int, _: object) -> NoReturn:
        raise KeyboardInterrupt(number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def exit_interrupted(interrupt: KeyboardInterrupt) -> NoReturn:
    """End the process without waiting for other threads' requests to servers.

    Files that they are writing are completed, because temporary files would remain otherwise. They
    begin no other files. After SIGTERM or SIGHUP, the process ends by this signal, as its parent
    expects.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with _begins, _writes:
        _writes.wait_for(lambda: _writers <= {threading.get_ident()}, _PATIENCE)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError, ValueError, WriteError):
                stream.flush()
        for number in interrupt.args:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(EXIT_INTERRUPTED)


@contextlib.contextmanager
def writing(root: Path) -> Iterator[Callable[[], None]]:
    """Lock a folder against writes of other runs.

    Yields a function to call before the first write, which creates the folder if it is missing. An
    existing folder is locked at once. If this run created folders and left them empty, they are
    removed. Raises `WriteError`.
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
    """Create a folder if it is missing, lock it, and return its descriptor.

    Returns None if the system has no locks (Windows, some network file systems). The run continues
    without a lock then. `made` is the path that other runs create in the folder, for messages.
    Raises `WriteError`.
    """
    failure = FileNotFoundError(errno.ENOENT, "other runs keep removing it")
    for _ in range(_ATTEMPTS):
        try:
            root.mkdir(mode=mode, parents=True, exist_ok=True)
        except FileNotFoundError as error:
            # Either another run has just removed a parent, or it cannot be created.
            failure = error
            continue
        except OSError as error:
            raise WriteError(root, error) from error
        handle = None
        try:
            handle = os.open(root, os.O_RDONLY)
            try:
                lock_handle(handle, wait=False)
            except BlockingIOError:
                action = f"writes to {root}" if made is None else f"creates {made}"
                _log.warning("waiting for another run that %s", action)
                lock_handle(handle, wait=True)
        except FileNotFoundError:
            continue
        except OSError as error:
            if handle is not None:
                os.close(handle)
            _log.warning("continuing without a lock on %s: %s", root, error)
            return None
        if is_at(root, handle):
            return handle
        # The other run wrote nothing and has removed the folder.
        os.close(handle)
    raise WriteError(root, failure)


def lock_handle(handle: int, *, wait: bool) -> None:
    """Lock an open file or folder against other runs.

    Without `wait`, raises `BlockingIOError` if another run has the lock. Raises `OSError` if the
    system has no locks.
    """
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        raise OSError(errno.ENOSYS, "Windows has no such locks")


def is_at(folder: Path, handle: int) -> bool:
    """Check if a descriptor belongs to the current folder at a path."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), folder.stat())
    return False


def lock_if_free(folder: Path) -> int | None:
    """Lock a folder and return its descriptor, without waiting.

    Returns None if another run has the lock, or if the system has no locks.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        lock_handle(handle, wait=False)
    except OSError:
        os.close(handle)
        return None
    return handle
