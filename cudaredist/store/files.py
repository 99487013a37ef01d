"""Single files: written in one step, read with a limit, swept after a kill."""

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

from cudaredist.errors import ReadError, WritingTo
from cudaredist.private import open_file
from cudaredist.schema.registry import OWN_FILE_LIMIT

TEMPORARY_SUFFIX = ".tmp"


def write_file(path: Path, data: bytes, *, durable: bool = True) -> bool:
    """Put bytes in a file as one step; return whether anything had to be written.

    The folder is made where it is missing. Raises `WriteError`. With `durable` the bytes are on the
    disk before the name is, which is what makes a power failure harmless; caches do without.
    """
    if _has_bytes(path, data):
        return False
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{TEMPORARY_SUFFIX}")
    with WritingTo(path):
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
        for name in names_in(folder):
            if name.startswith(beginning) and name.endswith(TEMPORARY_SUFFIX):
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


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none if it is missing. Raises `ReadError`."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ReadError(folder, error) from error
