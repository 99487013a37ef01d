"""Private files and folders, on systems with POSIX permissions.

The facts of archives come from the cache, and a run can have more permissions than an attacker who
prepared files in it. Therefore, a link at the last step of a path is never followed, another user's
file counts as missing, and a folder that others can write to is rejected.
"""

import contextlib
import errno
import logging
import os
import shlex
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO, cast

from cudaredist.errors import UsageError, WritingTo
from cudaredist.hints import again

_log = logging.getLogger(__name__)

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OWNER_ONLY = 0o700
_ROOT = 0


class ForeignFileError(OSError):
    """A path is not a regular file of this user."""


def open_file(path: Path, flags: int = os.O_RDONLY, *, follow: bool = False) -> BinaryIO:
    """Open a regular file, by default without following a link at the last step.

    Raises `ForeignFileError` for anything else, and `OSError`.
    """
    # Without O_NONBLOCK, opening a named pipe would wait forever for its other end.
    names = ("O_NONBLOCK", "O_BINARY", *(() if follow else ("O_NOFOLLOW",)))
    safe = sum(getattr(os, name, 0) for name in names)
    try:
        handle = os.open(path, flags | safe, 0o644)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENXIO}:
            raise ForeignFileError(error.errno, "is a link or not a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ForeignFileError(errno.EINVAL, "not a regular file")
    return os.fdopen(handle, "rb" if flags == os.O_RDONLY else "r+b")


def open_private(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a regular file of this user or root.

    A file to write must not have a second hard link. Raises `ForeignFileError` for anything else,
    and `OSError`.
    """
    file = open_file(path, flags)
    about = os.fstat(file.fileno())
    if not _is_own(about) or (flags != os.O_RDONLY and about.st_nlink > 1):
        file.close()
        reason = "belongs to another user, or has more than one hard link"
        raise ForeignFileError(errno.EPERM, reason)
    return file


def private_size(path: Path) -> int | None:
    """Return the size of a private file, or None for anything else."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode) and _is_own(about):
            return about.st_size
    return None


def is_safe_to_trust(path: Path) -> bool:
    """Check that no other user put a file into a folder that everyone can write to."""
    return _is_own(path.stat()) or not path.parent.stat().st_mode & stat.S_IWOTH


def discard(path: Path) -> None:
    """Remove a foreign file or link from a path. Raises `WriteError`."""
    if not os.path.lexists(path):
        return
    _log.warning("removing %s: it is a link or belongs to another user", path)
    with WritingTo(path):
        path.unlink(missing_ok=True)


def make_private_folders(root: Path, folder: Path) -> None:
    """Create a folder and its parents up to `root`, for this user only.

    Existing folders keep their permissions. Raises `WriteError`, and `UsageError` if others can
    write to `root`.
    """
    below = folder.relative_to(root)
    with WritingTo(folder):
        root.parent.mkdir(parents=True, exist_ok=True)
        for part in reversed([below, *below.parents]):
            (root / part).mkdir(mode=_OWNER_ONLY, exist_ok=True)
    # Another user may have created it first.
    refuse_shared_folder(root)


def refuse_shared_folder(root: Path) -> None:
    """Raise `UsageError` if others own a folder or can write to it.

    A sticky bit is not enough: it prevents the removal of files, but not new ones.
    """
    if not hasattr(os, "geteuid"):
        return
    try:
        states = (root.lstat(), root.stat())
    except OSError:
        return
    name = shlex.quote(str(root))
    hint = f"select another folder: `{again(cache_dir='cache')}`"
    for about in states:
        if not _is_own(about):
            message = f"the cache folder {root} belongs to another user (uid {about.st_uid})"
            hint = f"run `chown -R root {name}`, or {hint}" if os.geteuid() == _ROOT else hint
            raise UsageError(message, hint=hint)
    mode = states[-1].st_mode
    if stat.S_ISDIR(mode) and mode & _WRITABLE_BY_OTHERS:
        message = f"others can write to the cache folder {root} (mode {stat.S_IMODE(mode):04o})"
        raise UsageError(message, hint=f"run `chmod -R go-w {name}`, or {hint}")


def _is_own(about: os.stat_result) -> bool:
    """Check if a file belongs to this user or root.

    Always true on systems without users.
    """
    return not hasattr(os, "geteuid") or about.st_uid in {os.geteuid(), _ROOT}


def open_unnamed(folder: Path | None) -> BinaryIO:
    """Open a file without a name in a folder, by default the system's temporary one.

    The system removes it when it is closed, even if the process is killed. Raises `OSError`.
    """
    # On Windows, the type of the standard library is a wrapper.
    return cast("BinaryIO", tempfile.TemporaryFile(dir=folder))
