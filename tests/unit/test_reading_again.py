"""Tests of tables that are read again after they have passed."""

import io
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.archives import in_chunks, raw_zip
from support.binaries import elf, with_headers_at_end

from cudaredist.archives import inflated_ranges
from cudaredist.archives.members import Limits
from cudaredist.archives.open_archive import open_archive
from cudaredist.binaries.examine_file import examine
from cudaredist.errors import InvalidArchiveError, ReadError
from cudaredist.pipeline import read_program
from cudaredist.pipeline.read_program import ProgramReader

FACTS: dict[str, Any] = {
    "soname": "libx.so.1",
    "needed": ("libcudart.so.12", "libc.so.6"),
    "runpath": "$ORIGIN",
    "glibc": ("2.17",),
}
NAME = "lib/libx.so.1"


def far_library(strings: str = "front") -> bytes:
    """Return a library with its headers at its end, far after its names."""
    return with_headers_at_end(elf(**FACTS, strings=strings, gap=20 << 20))


def random_content(size: int) -> bytes:
    """Return content that deflate makes smaller, in parts by much."""
    source = random.Random(1)
    parts = []
    while size > 0:
        length = source.choice((10_000, 300_000))
        part = (
            source.randbytes(length) if source.random() < 0.7 else b"symbol_name_" * (length // 12)
        )
        parts.append(part[:size])
        size -= len(part)
    return b"".join(parts)


def zip_of(content: bytes, method: int) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", method) as archive:
        archive.writestr(NAME, content)
    return output.getvalue()


def reading(data: bytes, counts: list[int]) -> Callable[[int, int], bytes]:
    """Return a function that reads at any position, and counts the bytes."""

    def read_at(start: int, size: int) -> bytes:
        counts.append(size)
        return data[start : start + size]

    return read_at


@pytest.mark.parametrize("strings", ["front", "before", "behind"])
def test_examine_with_reread_reads_passed_tables(strings: str) -> None:
    data = far_library(strings)
    first = examine([data])
    assert first is not None
    assert "soname" in first.unread
    counts: list[int] = []
    binary = examine([data], reread=reading(data, counts))
    assert binary is not None
    assert (binary.soname, binary.needed, binary.glibc) == ("libx.so.1", FACTS["needed"], "2.17")
    assert binary.unread == ()
    assert sum(counts) < 1 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_member_range_that_passed_is_read_again(
    method: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflated_ranges, "_STEP", 100_000)
    content = random_content(8 << 20)
    data = zip_of(content, method)
    source, counts = random.Random(2), list[int]()
    chunks = in_chunks(data, 50_000)
    with_again = open_archive("a.zip", chunks, size=len(data), read_at=reading(data, counts))
    times = 0
    for _, pieces in with_again:
        passed = 0
        assert with_again.reread is not None
        for piece in pieces:
            passed += len(piece)
            for _ in range(4):
                start = source.randrange(passed)
                size = source.randrange(min(passed - start, 400_000) + 1)
                assert with_again.reread(start, size) == content[start : start + size]
                times += 1
        # Read the ranges in order, like a large table.
        for start in range(0, passed - 100_000, 100_000):
            assert with_again.reread(start, 100_000) == content[start : start + 100_000]
    # Each range is unpacked from a copy before it, not from the beginning.
    assert sum(counts) < times * 2 * 600_000


def test_zip_without_random_access_has_no_reread() -> None:
    assert open_archive("a.zip", [zip_of(b"x", zipfile.ZIP_STORED)]).reread is None


def test_copies_of_decompressor_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflated_ranges, "_STEP", 1)
    monkeypatch.setattr(inflated_ranges, "_COPIES_LIMIT", 4)
    content = random_content(4 << 20)
    data = zip_of(content, zipfile.ZIP_DEFLATED)
    reader = open_archive("a.zip", [data], read_at=reading(data, []))
    for _, pieces in reader:
        assert b"".join(pieces) == content
        assert reader.reread is not None
        assert reader.reread(3_000_000, 7) == content[3_000_000:3_000_007]


def test_bytes_unpacked_again_count_for_the_limit_of_the_archive() -> None:
    """A file with a thousand names in reverse order unpacks its content a thousand times."""
    content = bytes(4 << 20)
    data = zip_of(content, zipfile.ZIP_DEFLATED)
    limits = Limits(floor=16 << 20, ratio=1)
    reader = open_archive("a.zip", [data], size=len(data), limits=limits, read_at=reading(data, []))
    ((_, pieces),) = [(member, list(pieces)) for member, pieces in reader]
    assert b"".join(pieces) == content
    reread = reader.reread
    assert reread is not None
    with pytest.raises(InvalidArchiveError, match="unpacks to more than 1 times"):
        [reread(start, 100) for start in (3 << 20, 0) * 8]


@pytest.mark.parametrize("after", [b"", b"\xff" * (1 << 16)], ids=["shorter", "other"])
def test_archive_changed_while_it_is_read_is_refused(after: bytes) -> None:
    data = zip_of(random_content(1 << 20), zipfile.ZIP_DEFLATED)
    reader = open_archive("a.zip", [data], read_at=lambda _, __: after)
    for _, pieces in reader:
        for _ in pieces:
            pass
        assert reader.reread is not None
        with pytest.raises(InvalidArchiveError, match="changed while it was read"):
            reader.reread(1000, 100)


def test_directory_member_has_no_bytes_to_read_again() -> None:
    reader = open_archive("a.zip", [raw_zip()], read_at=lambda _, __: b"")
    assert reader.reread is not None
    with pytest.raises(InvalidArchiveError, match="changed while it was read"):
        reader.reread(0, 1)


@pytest.mark.parametrize("kind", ["wheel", "folder", "file"])
def test_audit_reads_far_tables_without_second_pass(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x" / "libx.so.1"
    path.parent.mkdir()
    path.write_bytes(far_library())
    paths = {"wheel": tmp_path / "x-1-py3-none-any.whl", "folder": path.parent, "file": path}
    paths["wheel"].write_bytes(zip_of(path.read_bytes(), zipfile.ZIP_DEFLATED))
    passes: list[Path] = []
    chunks = read_program._chunks

    def counted(file: Path) -> Iterator[bytes]:
        passes.append(file)
        return chunks(file)

    monkeypatch.setattr(read_program, "_chunks", counted)
    program = ProgramReader()
    program.read_all([paths[kind]])
    (file,) = program.files
    assert file.binary.unread == ()
    assert file.binary.needed == FACTS["needed"]
    assert len(passes) == 1


def test_file_removed_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "libx.so.1"
    path.write_bytes(far_library())
    data = path.read_bytes()
    monkeypatch.setattr(read_program, "_chunks", lambda file: (file.unlink(), [data])[1])
    program = ProgramReader()
    program.read_all([path])
    assert [error.kind for error in program.errors] == [ReadError.kind]
