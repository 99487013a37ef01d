"""Tests of whole files of sources: restarts, limits, and files that are read in place."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.patching import Patch

from cudaredist.errors import CannotResumeError, SourceError, TooLargeError, WriteError
from cudaredist.sources import whole_file
from cudaredist.sources.protocol import SourceFile
from cudaredist.sources.whole_file import open_whole

PLACE = "https://host/x"


class Broken:
    """A remote file whose download breaks some times."""

    def __init__(self, breaks: int) -> None:
        self._breaks = breaks

    def stream(self, start: int) -> Iterator[bytes]:
        assert start == 0
        yield b"whole"
        if self._breaks:
            self._breaks -= 1
            raise CannotResumeError(PLACE, "broken")
        yield b" file"


def test_download_that_cannot_resume_restarts() -> None:
    with open_whole(SourceFile(PLACE, Broken(3).stream), None) as file:
        assert file.read() == b"whole file"
    with pytest.raises(CannotResumeError):
        open_whole(SourceFile(PLACE, Broken(4).stream), None)


def test_local_file_is_read_in_place(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"local")
    with open_whole(SourceFile(str(path), Broken(0).stream, path), None) as file:
        assert file.name == str(path) or isinstance(file.name, int)
        assert file.read() == b"local"
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        open_whole(SourceFile(str(path), Broken(0).stream, path), None)


def test_file_above_limit_is_refused(tmp_path: Path, patch: Patch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"local file")
    patch(whole_file, "MAX_ARCHIVE", 9)
    for source in (SourceFile(PLACE, Broken(0).stream), SourceFile(PLACE, Broken(0).stream, path)):
        with pytest.raises(TooLargeError, match="larger than the limit of 9 bytes"):
            open_whole(source, None)


def test_missing_temporary_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="nowhere"):
        open_whole(SourceFile(PLACE, Broken(0).stream), tmp_path / "nowhere")
