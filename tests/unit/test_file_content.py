"""Tests of the storage of members, and of reading files at any position."""

import errno
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest
from support.binaries import elf, read, with_headers_at_end
from support.patching import Patch

from cudaredist.binaries import file_content
from cudaredist.binaries.examine_file import examine, examine_file
from cudaredist.binaries.file_content import MEMORY, FileContent, Scratch, UnreadableError
from cudaredist.errors import EXIT_INCOMPLETE, ReadError, WriteError

LIBRARY = with_headers_at_end(elf(soname="libx.so.1", needed=("liby.so.2",), gap=2 * MEMORY))
OTHER = elf(soname="other.so")


def test_scratch_has_one_unnamed_file_for_all_members(tmp_path: Path) -> None:
    with closing(Scratch(tmp_path)) as scratch:
        for data in (OTHER, LIBRARY, OTHER, bytes(range(256)) * 99, LIBRARY[: MEMORY + 1]):
            content = scratch.store([data])
            assert content.read(0, len(data) + 1) == data
            assert content.read(len(data) - 5, 9) == data[-5:]
            assert content.read(len(data), 9) == b""
            # Even if the process is killed now, nothing remains.
            assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 8, 4096, 4097, 9000])
def test_reads_in_any_order_return_the_bytes_there(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * 64
    with closing(Scratch(tmp_path)) as scratch:
        content = scratch.store([data])
        for start in (0, 8, 4095, 4096, 4000, len(data) - 9, 0, 4090, 2, len(data)):
            assert content.read(start, size) == data[start : start + size]


def test_table_ends_within_file(tmp_path: Path) -> None:
    with closing(Scratch(tmp_path)) as scratch:
        content = scratch.store([b"abcd"])
        assert content.table(1, 3, "names") == b"bcd"
        with pytest.raises(UnreadableError, match="names not read: it is outside the file"):
            content.table(1, 4, "names")


def test_member_after_aborted_one_is_read(tmp_path: Path) -> None:
    def cut() -> Iterator[bytes]:
        yield LIBRARY
        raise ReadError("x", OSError())

    with closing(Scratch(tmp_path)) as scratch:
        with pytest.raises(ReadError):
            examine(cut(), scratch)
        binary = examine([OTHER], scratch)
    assert binary == read(OTHER)


def test_full_disk_is_a_write_error(tmp_path: Path, patch: Patch) -> None:
    def full(*_: object, **__: object) -> IO[bytes]:
        return Path("/dev/full").open("r+b", buffering=0)

    patch(file_content, "SpooledTemporaryFile", full)
    with closing(Scratch(tmp_path)) as scratch, pytest.raises(WriteError) as caught:
        examine([LIBRARY], scratch)
    assert caught.value.exit_code == EXIT_INCOMPLETE
    assert caught.value.hint == f"free disk space: `df -h {tmp_path}`"


def test_folder_is_only_needed_for_large_member(tmp_path: Path) -> None:
    tmp_path.rmdir()
    with closing(Scratch(tmp_path)) as scratch:
        assert examine([OTHER], scratch) == read(OTHER)
        with pytest.raises(WriteError):
            examine([LIBRARY], scratch)


def test_file_on_disk_is_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "libx.so.1"
    path.write_bytes(LIBRARY)
    monkeypatch.delattr(file_content, "SpooledTemporaryFile")
    binary = examine_file(path)
    assert binary is not None
    assert (binary.soname, binary.needed, binary.unread) == ("libx.so.1", ("liby.so.2",), ())


def test_unreadable_file_is_a_read_error(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        examine_file(tmp_path / "missing")
    with (tmp_path / "x").open("wb") as file, pytest.raises(ReadError) as caught:
        FileContent(file, 9, "x").read(0, 9)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno in {errno.EBADF, None}
