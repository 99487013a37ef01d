"""Whole files of sources, open on this machine."""

import contextlib
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from cudaredist.archives.members import file_size
from cudaredist.errors import CannotResumeError, TooLargeError, WritingTo
from cudaredist.private import open_file, open_unnamed
from cudaredist.sources.folder import reading
from cudaredist.sources.protocol import MAX_ARCHIVE, SourceFile

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_RESTARTS = 3
"""Maximum restarts of a download that cannot resume."""


def open_whole(
    source: SourceFile, folder: Path | None, advance: Callable[[int], None] = lambda _: None
) -> BinaryIO:
    """Open a whole file of any size up to the limit.

    A local file is read in place. Everything else is copied to an unnamed file in `folder`, by
    default the system's temporary folder. Raises `TooLargeError`, `WriteError` and the errors of
    sources.
    """
    if source.path is not None:
        with reading(source.path):
            file = open_file(source.path, follow=True)
            if file_size(file) > MAX_ARCHIVE:
                file.close()
                raise TooLargeError(source.place, MAX_ARCHIVE)
            return file
    place = Path(folder or tempfile.gettempdir(), "temporary file")
    with WritingTo(place):
        file = open_unnamed(folder)
    try:
        return restarting(source.place, lambda: _copied(source, file, place, advance))
    except BaseException:
        file.close()
        raise


def restarting(place: str, download: Callable[[], _Result]) -> _Result:
    """Call a download again if it cannot resume, for example because the file changed."""
    for _ in range(_RESTARTS):
        with contextlib.suppress(CannotResumeError):
            return download()
        _log.info("%s: restarting from the first byte", place)
    return download()


def _copied(
    source: SourceFile, file: BinaryIO, place: Path, advance: Callable[[int], None]
) -> BinaryIO:
    """Copy the file from its first byte."""
    size = 0
    file.seek(0)
    file.truncate()
    for chunk in source.stream(0):
        size += len(chunk)
        advance(len(chunk))
        if size > MAX_ARCHIVE:
            raise TooLargeError(source.place, MAX_ARCHIVE)
        with WritingTo(place):
            file.write(chunk)
    with WritingTo(place):
        file.flush()
    file.seek(0)
    return file
