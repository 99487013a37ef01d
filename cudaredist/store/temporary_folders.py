"""Temporary folders, without those that killed runs leave."""

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cudaredist.errors import ReadError
from cudaredist.locks import is_at, lock_if_free, locked_folder
from cudaredist.store.files import names_in

_OWNER_ONLY = 0o700
_is_own_name = re.compile(r"cudaredist\.[0-9a-f]{12}\.tmp").fullmatch


@contextlib.contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder for this user only, and remove it at the end.

    It is in `parent`, by default the system's temporary folder. It is locked, so that the next run
    recognizes and removes the folders of killed runs. Raises `WriteError`.
    """
    parent = parent or Path(tempfile.gettempdir())
    remove_unlocked(parent)
    folder = parent / f"cudaredist.{secrets.token_hex(6)}.tmp"
    handle = None
    try:
        handle = locked_folder(folder, mode=_OWNER_ONLY)
        yield folder
    finally:
        _remove(folder)
        if handle is not None:
            os.close(handle)


def user_temporary_folder() -> Path:
    """Return the path of this user's folder in the system's temporary folder.

    Another user can create it first: the caller checks its owner.
    """
    user = os.geteuid() if hasattr(os, "geteuid") else "user"
    return Path(tempfile.gettempdir(), f"cudaredist-{user}")


def remove_unlocked(parent: Path) -> None:
    """Remove the temporary folders of killed runs.

    If the system has no locks, they stay, because other runs may use them.
    """
    with contextlib.suppress(ReadError):
        for folder in (parent / name for name in names_in(parent) if _is_own_name(name)):
            handle = lock_if_free(folder) if _is_own_folder(folder) else None
            if handle is not None:
                if is_at(folder, handle):
                    _remove(folder)
                os.close(handle)


def _remove(folder: Path) -> None:
    """Remove a folder, also if Ctrl-C or another signal interrupts that."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _is_own_folder(path: Path) -> bool:
    """Check if a path is a folder of this user, not a link."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        is_own = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
        return is_own and stat.S_ISDIR(about.st_mode)
    return False
