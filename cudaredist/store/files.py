"""Atomic writes, reads with a size limit, and removal of temporary files."""

import contextlib
import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

from cudaredist.errors import STANDARD_INPUT, ReadError, ReadingFrom, WritingTo
from cudaredist.formats.names import ManifestStatus
from cudaredist.jsontext import OWN_FILE_LIMIT
from cudaredist.locks import one_write
from cudaredist.primitives import Sha256
from cudaredist.private import open_file

_unless_missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
_is_temporary = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}\.tmp", re.DOTALL).fullmatch
"""Matches the names that `new_content` gives to temporary files."""
_USUAL, _OWNER_ONLY = 0o666, 0o600
DASH = Path("-")
"""How users name the standard input in place of a file."""


def write_file(path: Path, data: bytes, *, durable: bool = True) -> bool:
    """Write a file atomically, and return True if it changed.

    An existing file keeps its mode, and a link is replaced. Creates the folder if it is missing.
    Raises `WriteError`. If `durable`, the bytes reach the disk before the new name does, so that a
    power failure cannot damage the file. Caches do not need that.
    """
    with WritingTo(path):
        mode = _mode_of(path)
    if mode is not None and has_bytes(path, data):
        return False
    with WritingTo(path), one_write(), new_content(path) as temporary:
        # Until it has its mode, other users must not read the new content of a private file.
        with _create(temporary, _USUAL if mode is None else _OWNER_ONLY) as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
    return True


def _mode_of(path: Path) -> int | None:
    """Return the mode of a regular file, None for anything else. Raises `OSError`."""
    with _unless_missing:
        mode = path.lstat().st_mode
        return stat.S_IMODE(mode) if stat.S_ISREG(mode) else None
    return None


@contextlib.contextmanager
def new_content(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of a file, and then give it the file's name.

    If the block fails, the temporary file is removed. `sweep` removes those of killed runs.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_output(path: Path, data: bytes, root: Path | None = None) -> None:
    """Write a file that the user named, or of a folder `root` that the user named.

    It is `linked_file` that is written. First removes the temporary files of killed runs next to
    it. Raises `WriteError`, also for a device or a pipe, which are not replaced.
    """
    file = linked_file(path, root)
    sweep_file(file)
    with WritingTo(path):
        if file.exists() and not file.is_file() and not file.is_dir():
            raise OSError("not a regular file")
    write_file(file, data)


def write_or_remove(path: Path, data: bytes | None, root: Path) -> None:
    """Write a file of a folder as `write_output` does, or remove it if there is no data.

    Raises `WriteError`.
    """
    if data is None:
        remove_file(path)
    else:
        write_output(path, data, root)


def remove_file(path: Path) -> None:
    """Remove a file or a link, if there is one. Raises `WriteError`."""
    with WritingTo(path):
        path.unlink(missing_ok=True)


def linked_file(path: Path, root: Path | None = None) -> Path:
    """Return the file to write at a path: for a link, the file to which it points.

    A link that leads out of `root` is not followed. It can be part of data of other people, who
    must not select the file to write.
    """
    file = Path(os.path.realpath(path))
    is_link = str(file) != os.path.abspath(path)  # noqa: PTH100 - the same form as realpath
    is_followed = is_link and (root is None or is_inside(path, root))
    # Messages name the path as the user typed it.
    return file if is_followed else path


def is_inside(path: Path, root: Path) -> bool:
    """Check if a path leads to a file below a folder.

    A path in a document stays below the folder, but a link can lead out of it. Such a file is not
    read or removed.
    """
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def update_output(
    path: Path, data: bytes, *, may_write: bool, root: Path | None = None
) -> ManifestStatus:
    """Write a file as `write_output` does if its bytes differ, and return the outcome."""
    if read_file(path) == data:
        return "unchanged"
    if not may_write:
        return "would-write"
    write_output(path, data, root)
    return "written"


def sweep(folder: Path, is_selected: Callable[[str], bool] = lambda _: True) -> None:
    """Remove the temporary files of killed runs for files with selected names."""
    with contextlib.suppress(ReadError):
        for path in temporary_files(folder, is_selected):
            with contextlib.suppress(OSError):
                path.unlink()


def sweep_file(path: Path) -> None:
    """Remove the temporary files of killed runs for one file."""
    sweep(path.parent, lambda name: name == path.name)


def temporary_files(
    folder: Path, is_selected: Callable[[str], bool] = lambda _: True
) -> Iterator[Path]:
    """Yield the temporary files for files with selected names.

    Other programs have temporary files, too, but no names of this form. Raises `ReadError`.
    """
    for name in names_in(folder):
        match = _is_temporary(name)
        if match is not None and is_selected(match["name"]):
            yield folder / name


def has_bytes(path: Path, data: bytes) -> bool:
    """Check if a path is a regular file with these bytes, not a link."""
    try:
        with open_file(path) as file:
            return os.fstat(file.fileno()).st_size == len(data) and file.read() == data
    except OSError:
        return False


def _create(path: Path, mode: int) -> BinaryIO:
    opener = partial(os.open, mode=mode)
    try:
        return open(path, "xb", opener=opener)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "xb", opener=opener)


def read_file(path: Path, limit: int = OWN_FILE_LIMIT) -> bytes | None:
    """Return a file's bytes, or None if it is missing. The path `-` is the standard input.

    Raises `ReadError`, also if the path is not a regular file or has more bytes than the limit.
    """
    if path == DASH:
        data = read_standard_input(limit)
        with ReadingFrom(STANDARD_INPUT):
            if len(data) > limit:
                raise OSError(f"larger than {limit:,} bytes")
        return data
    with ReadingFrom(path), _unless_missing, open_file(path, follow=True) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise OSError(f"larger than {limit:,} bytes")
        return file.read()
    return None


@cache
def read_standard_input(limit: int) -> bytes:
    """Return the bytes of the standard input, which can be read once only.

    There are at most `limit + 1`. Raises `ReadError`.
    """
    with ReadingFrom(STANDARD_INPUT):
        return sys.stdin.buffer.read(limit + 1)


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
