"""Files and folders that only this user can have written, on systems with POSIX permissions.

A cache decides what is believed of an archive, and a run may write to it with more rights than the
user who prepared a trap there. So a link is never followed at the last step of a path, a file of
another user counts as missing, and a folder that others can write to is refused.
"""

import contextlib
import errno
import logging
import os
import shlex
import stat
from pathlib import Path
from typing import BinaryIO

from cudaredist.errors import UsageError, WritingTo

_log = logging.getLogger(__name__)

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OWNER_ONLY = 0o700
_ROOT = 0


class ForeignFileError(OSError):
    """What is at a path is not a regular file of this user."""


def open_file(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a regular file, not following a link at the last step.

    Raises `ForeignFileError` for anything else, and `OSError`.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for its other end for ever.
    safe = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        handle = os.open(path, flags | safe, 0o644)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENXIO}:
            raise ForeignFileError(error.errno, "is a link or no regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ForeignFileError(errno.EINVAL, "is no regular file")
    return os.fdopen(handle, "rb" if flags == os.O_RDONLY else "a+b")


def open_private(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a regular file of this user or of root; to write, also one without a second name.

    Raises `ForeignFileError` for anything else, and `OSError`.
    """
    file = open_file(path, flags)
    about = os.fstat(file.fileno())
    if not _is_own(about) or (flags != os.O_RDONLY and about.st_nlink > 1):
        file.close()
        raise ForeignFileError(
            errno.EPERM, "belongs to another user, or has more than one hard link"
        )
    return file


def private_size(path: Path) -> int | None:
    """Return the size of a file that `open_private` would read; None for anything else."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode) and _is_own(about):
            return about.st_size
    return None


def discard(path: Path) -> None:
    """Remove what is in the way of a file of ours, such as a link. Raises `WriteError`."""
    if not os.path.lexists(path):
        return
    _log.warning("removing %s: it is a link, or was not made by this user", path)
    with WritingTo(path):
        path.unlink(missing_ok=True)


def make_private_folders(root: Path, folder: Path) -> None:
    """Make a folder and its parents up to `root`, accessible by this user only.

    Existing ones stay as they are. Raises `WriteError`, and what `refuse_shared_folder` raises.
    """
    below = folder.relative_to(root)
    with WritingTo(folder):
        root.parent.mkdir(parents=True, exist_ok=True)
        for part in reversed([below, *below.parents]):
            (root / part).mkdir(mode=_OWNER_ONLY, exist_ok=True)
    # Another user may have been faster.
    refuse_shared_folder(root)


def refuse_shared_folder(root: Path) -> None:
    """Raise `UsageError` for a folder of another user, or that others can write to.

    A sticky bit does not help: others cannot remove files then, and can still add some.
    """
    if not hasattr(os, "geteuid"):
        return
    try:
        places = (root.lstat(), root.stat())
    except OSError:
        return
    name = shlex.quote(str(root))
    hint = "choose another folder with --cache-dir"
    for about in places:
        if not _is_own(about):
            raise UsageError(
                f"the cache folder {root} belongs to another user (uid {about.st_uid})",
                hint=f"run `chown -R root {name}`, or {hint}" if os.geteuid() == _ROOT else hint,
            )
    mode = places[-1].st_mode
    if stat.S_ISDIR(mode) and mode & _WRITABLE_BY_OTHERS:
        raise UsageError(
            f"others can write to the cache folder {root} (mode {stat.S_IMODE(mode):04o})",
            hint=f"run `chmod -R go-w {name}`, or {hint}",
        )


def _is_own(about: os.stat_result) -> bool:
    """Say whether a file belongs to this user or to root; everywhere, if there are no users."""
    return not hasattr(os, "geteuid") or about.st_uid in {os.geteuid(), _ROOT}
