"""Atomic writes, reads with a size limit, and removal of temporary files."""

import contextlib
import hashlib
import os
import secrets
import stat
import sys
from functools import cache
from pathlib import Path
from typing import BinaryIO

from cudaredist.errors import ReadError, ReadingFrom, WritingTo
from cudaredist.formats.registry import OWN_FILE_LIMIT
from cudaredist.formats.report import ManifestStatus
from cudaredist.locks import one_write
from cudaredist.primitives import Sha256
from cudaredist.private import open_file

_unless_missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
TEMPORARY_SUFFIX = ".tmp"
STANDARD_INPUT = Path("-")
"""How users name the standard input in place of a file."""


def write_file(path: Path, data: bytes, *, durable: bool = True) -> bool:
    """Write a file atomically, and return True if it changed.

    Creates the folder if it is missing. Raises `WriteError`. If `durable`, the bytes reach the disk
    before the new name does, so that a power failure cannot damage the file. Caches do not need
    that.
    """
    if has_bytes(path, data):
        return False
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{TEMPORARY_SUFFIX}")
    with WritingTo(path), one_write():
        try:
            with _create(temporary) as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return True


def write_or_remove(path: Path, data: bytes | None) -> None:
    """Write a file, or remove it if there is no data. Raises `WriteError`."""
    if data is not None:
        write_file(path, data)
        return
    with WritingTo(path):
        path.unlink(missing_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write a file that the user named, as `write_file` does.

    First removes the temporary files of killed runs next to it.
    """
    sweep(path.parent, f".{path.name}.")
    write_file(path, data)


def update_output(path: Path, data: bytes, *, may_write: bool) -> ManifestStatus:
    """Write a file that the user named if its bytes differ, and return the outcome."""
    if read_file(path) == data:
        return "unchanged"
    if not may_write:
        return "would-write"
    write_output(path, data)
    return "written"


def edit_output(path: Path, data: bytes, *, may_write: bool) -> ManifestStatus:
    """Write a file as `update_output` does, but keep its mode, and the link to it."""
    with ReadingFrom(path):
        file = path.resolve()
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else None
    status = update_output(file, data, may_write=may_write)
    if status == "written" and mode is not None:
        with WritingTo(path):
            file.chmod(mode)
    return status


def sweep(folder: Path, prefix: str) -> None:
    """Remove the temporary files of killed runs that have this prefix."""
    with contextlib.suppress(ReadError):
        for name in names_in(folder):
            if name.startswith(prefix) and name.endswith(TEMPORARY_SUFFIX):
                with contextlib.suppress(OSError):
                    (folder / name).unlink()


def has_bytes(path: Path, data: bytes) -> bool:
    """Check if a path is a regular file with these bytes, not a link."""
    try:
        with open_file(path) as file:
            return os.fstat(file.fileno()).st_size == len(data) and file.read() == data
    except OSError:
        return False


def _create(path: Path) -> BinaryIO:
    try:
        return path.open("xb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")


def read_file(path: Path, limit: int = OWN_FILE_LIMIT) -> bytes | None:
    """Return a file's bytes, or None if it is missing. The path `-` is the standard input.

    Raises `ReadError`, also if the path is not a regular file or has more bytes than the limit.
    """
    if path == STANDARD_INPUT:
        return _read_standard_input(limit)
    with ReadingFrom(path), _unless_missing, open_file(path, follow=True) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise OSError(f"larger than {limit:,} bytes")
        return file.read()
    return None


@cache
def _read_standard_input(limit: int) -> bytes:
    """Return the bytes of the standard input, which can be read once only."""
    with ReadingFrom(STANDARD_INPUT):
        data = sys.stdin.buffer.read(limit + 1)
        if len(data) > limit:
            raise OSError(f"larger than {limit:,} bytes")
    return data


def foreign_text(path: Path, limit: int) -> str:
    """Return the beginning of another program's text file, or an empty text.

    Only regular files are read, because a pipe would block, and a device may not end. Bytes that
    are not UTF-8 are replaced.
    """
    try:
        with open_file(path, follow=True) as file:
            return file.read(limit).decode(errors="replace")
    except OSError:
        return ""


def require_file(path: Path) -> bytes:
    """Return a file's bytes. Raises `ReadError`, also if it is missing."""
    data = read_file(path)
    if data is None:
        raise ReadError(path, FileNotFoundError("no such file"))
    return data


def hash_of(path: Path) -> Sha256:
    """Return the SHA-256 of a file's content. Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_folder(path: Path) -> bool:
    """Check if a path is a folder that this user can reach."""
    with contextlib.suppress(OSError):  # such as a name that is too long
        return path.is_dir()
    return False


def folder_problem(path: Path) -> str | None:
    """Return why a path is not a folder, None for a folder that this user can reach."""
    if is_folder(path):
        return None
    return "not a folder" if os.path.lexists(path) else "no such folder"


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, or an empty list if it is missing.

    Raises `ReadError`.
    """
    with ReadingFrom(folder), _unless_missing:
        return os.listdir(folder)  # noqa: PTH208 - iterdir creates paths, which takes longer
    return []
