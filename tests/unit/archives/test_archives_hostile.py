"""Tests of hostile and broken archives.

Each archive is refused with a reason or read without harm. Readers return names and links that
lead out of the tree unchanged. The caller reports them and never writes them to disk.
"""

import lzma
import struct
import subprocess
import sys
import tarfile
import textwrap
import zlib

import pytest
from conftest import REPOSITORY
from support import archives, cost
from support.archives import (
    MIB,
    ZipEntry,
    gnu_long_name,
    pax,
    raw_zip,
    read_all,
    tar_header,
    tar_member,
    tar_of,
)
from support.cost import bounded_cost

from cudaredist.archives.members import Limits, Member
from cudaredist.errors import InvalidArchiveError


def xz_requiring(dictionary: int, content: bytes = bytes(1000)) -> bytes:
    """Return an xz stream that requires a dictionary of a given size."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 16}]
    stream = bytearray(lzma.compress(content, filters=filters))
    # Block header: size, flags, filter number, property length, properties.
    at = 12 + 2 + 2
    bits = dictionary.bit_length() - 1
    stream[at] = (bits - 12) * 2 + (dictionary != 1 << bits)
    header = bytes(stream[12:20])
    stream[20:24] = struct.pack("<I", zlib.crc32(header))
    return bytes(stream)


TESTS = REPOSITORY / "tests"


# -- names and links


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([tar_member("top/../../x")], [("top/../../x", "file", None)]),
        ([tar_member("/etc/passwd")], [("/etc/passwd", "file", None)]),
        (
            [
                tar_header("top/lib", kind=tarfile.SYMTYPE, target="/etc"),
                tar_member("top/lib/x"),
            ],
            [("top/lib", "symlink", "/etc"), ("top/lib/x", "file", None)],
        ),
        (
            [
                tar_header("top/x", kind=tarfile.LNKTYPE, target="../../outside"),
                tar_member("top/x", b"rewritten"),
            ],
            [("top/x", "hardlink", "../../outside"), ("top/x", "file", None)],
        ),
        (
            [tar_header("top/x", kind=tarfile.LNKTYPE, target="top/missing")],
            [("top/x", "hardlink", "top/missing")],
        ),
        ([tar_header("top/fifo", kind=tarfile.FIFOTYPE)], [("top/fifo", "other", None)]),
        ([tar_header("top/sda", kind=tarfile.BLKTYPE)], [("top/sda", "other", None)]),
        ([tar_header("top/tty", kind=tarfile.CHRTYPE)], [("top/tty", "other", None)]),
        (
            [
                tar_header("top/liba.so", kind=tarfile.SYMTYPE, target="libb.so"),
                tar_header("top/libb.so", kind=tarfile.SYMTYPE, target="liba.so"),
            ],
            [("top/liba.so", "symlink", "libb.so"), ("top/libb.so", "symlink", "liba.so")],
        ),
        (
            [tar_member("one/x"), tar_member("two/x")],
            [("one/x", "file", None), ("two/x", "file", None)],
        ),
        ([tar_member("x")], [("x", "file", None)]),
        ([tar_member("top/x"), tar_member("top/x", b"2")], [("top/x", "file", None)] * 2),
        ([tar_member("")], [("", "file", None)]),
        ([tar_member(b"top/\xff\n\x1b[31m")], [("top/\udcff\n\x1b[31m", "file", None)]),
        ([pax(("path", b"top/\0/x")), tar_member()], [("top/\0/x", "file", None)]),
    ],
    ids=[
        "parent folder",
        "absolute",
        "through a link",
        "hard link outside",
        "hard link to nothing",
        "pipe",
        "block device",
        "character device",
        "loop of links",
        "two top folders",
        "no top folder",
        "twice",
        "empty name",
        "unprintable",
        "NUL",
    ],
)
def test_tar_members_are_returned_unchanged(
    headers: list[bytes], expected: list[tuple[str, str, str | None]]
) -> None:
    result = [(member.name, member.kind, member.target) for member, _ in archived(headers)]
    assert result == expected


def archived(members: list[bytes]) -> list[tuple[Member, bytes]]:
    return read_all("a.tar.xz", archives.xz(tar_of(*members)))


def test_set_id_bits_are_reported() -> None:
    assert archived([tar_member(mode=0o107755)])[0][0].mode == 0o7755


@pytest.mark.parametrize("name", ["top/../../x", "/etc/passwd", "..\\..\\x", "C:\\x", "a\nb"])
def test_zip_names_are_returned_unchanged(name: str) -> None:
    assert read_all("a.zip", raw_zip(ZipEntry(name=name.encode())))[0][0].name == name


def test_zip_with_duplicate_names_is_read() -> None:
    data = raw_zip(ZipEntry(content=b"1"), ZipEntry(content=b"2"))
    assert [content for _, content in read_all("a.zip", data)] == [b"1", b"2"]


# -- invalid tars

NEGATIVE = b"\xff" * 12


@pytest.mark.parametrize(
    ("tar", "reason"),
    [
        (b"", "is empty|is truncated"),
        (b"x" * 2000, "not a tar archive"),
        (tar_header()[:300], "is truncated"),
        (tar_header(size=5), "is truncated"),
        (tar_header(size=5) + b"abc", "is truncated"),
        (tar_member(), "is truncated"),
        (tar_member() + bytes(512), "is truncated"),
        (tar_member() + bytes(512) + tar_member(), "extra data after its end"),
        (tar_of(tar_member()) + tar_of(tar_member()), "extra data after its end"),
        (tar_of(tar_member()) + b"\0x", "extra data after its end"),
        (tar_of(tar_member(), b"y" * 512, tar_member()), "byte 512 is damaged"),
        (tar_of(tar_member(edits={124: NEGATIVE})), "negative size"),
        (tar_of(pax(("size", b"-5")), tar_member()), "size '-5'"),
        (tar_of(pax(("size", b"5.0")), tar_member()), r"size '5\.0'"),
        (tar_of(pax(("size", b"9" * 5000)), tar_member()), "has the size .* characters"),
        (tar_of(pax(("size", b"")), tar_member()), "size ''"),
        (tar_of(tar_member(edits={124: b"0000000009\0"})), "as its size"),
        (tar_of(tar_member(edits={100: b"-000001\0"})), "as its mode"),
        (tar_member()[:148] + b"\x81" + tar_member()[149:], "not a tar archive"),
        (tar_of(tar_member(edits={124: b"\x80" + b"\xff" * 11})), "is truncated"),
        (tar_of(tar_member(kind=b"S")), "is sparse"),
        (tar_of(pax(("GNU.sparse.size", b"16000000000000")), tar_member()), "sparse member"),
        (tar_of(pax(("GNU.sparse.map", b"0,1")), tar_member()), "sparse member"),
        (
            tar_of(pax(("GNU.sparse.major", b"1"), ("GNU.sparse.minor", b"0")), tar_member()),
            "sparse member",
        ),
        (tar_of(tar_header("dir/", kind=tarfile.AREGTYPE, size=5)), "directory with content"),
        (tar_of(gnu_long_name(b"x")), "long name or size that has no member"),
        (tar_of(gnu_long_name(b"x"), gnu_long_name(b"y"), tar_member()), "two long names"),
        (tar_of(gnu_long_name(b"x"), pax(("path", b"y")), tar_member()), "two long names"),
        (tar_of(pax(("path", b"x"), ("path", b"y")), tar_member()), "two long names"),
        (tar_of(pax(("path", b"x"), kind=b"g"), tar_member()), "for all members"),
        (tar_of(pax(("size", b"0"), kind=b"g"), tar_member()), "for all members"),
        (tar_of(tar_member(content=b"5 a=b\n", kind=b"x"), tar_member()), "damaged pax"),
        (tar_of(tar_member(content=b"7 a=b\n", kind=b"x"), tar_member()), "damaged pax"),
        (tar_of(tar_member(content=b"0 a=b\n", kind=b"x"), tar_member()), "damaged pax"),
        (tar_of(tar_member(content=b"6 abc\n", kind=b"x"), tar_member()), "damaged pax"),
        (tar_of(tar_member(content=b"no number", kind=b"x"), tar_member()), "damaged pax"),
        (tar_of(tar_member(content=b"1" * 600_000, kind=b"x"), tar_member()), "damaged pax"),
        (tar_of(tar_member(content=b"2 " * 300_000, kind=b"x"), tar_member()), "damaged pax"),
        (tar_of(tar_header(size=MIB, kind=b"x")), "1,048,576 bytes of headers"),
        (tar_of(tar_header(size=MIB, kind=b"L")), "1,048,576 bytes of headers"),
        (tar_of(tar_header(size=1 << 32, kind=b"g")), "1,048,576 bytes of headers"),
        (tar_of(*[pax(("a", bytes(600_000)))] * 2, tar_member()), "1,048,576 bytes of headers"),
        (tar_of(*[pax()] * 3000, tar_member()), "1,048,576 bytes of headers"),
        (tar_of(gnu_long_name(b"x" * 4097), tar_member()), "name of 4,097 bytes"),
        (tar_of(pax(("linkpath", b"x" * 4097)), tar_member(kind=b"2")), "name of 4,097 bytes"),
    ],
)
def test_invalid_tar_is_refused(tar: bytes, reason: str) -> None:
    for name, data in (("a.tar", tar), ("a.tar.xz", archives.xz(tar))):
        with bounded_cost(), pytest.raises(InvalidArchiveError, match=reason):
            read_all(name, data)


ZSTD = b"\x28\xb5\x2f\xfd"


LARGEST_WINDOW = b"\x00\x80"
"""The byte of a zstd frame's header for 64 MiB."""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tar.xz", xz_requiring(3 << 25)),
        ("a.tar.xz", xz_requiring(3 << 29)),
        ("a.tar.zst", ZSTD + b"\x00\x81" + bytes(20)),
        ("a.tar.zst", ZSTD + b"\x00\xa8" + bytes(20)),
        ("a.tar.zst", ZSTD + b"\xa0" + (3 << 29).to_bytes(4, "little") + bytes(20)),
    ],
)
def test_dictionary_above_limit_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(InvalidArchiveError, match=r"dictionary of more than 67,108,864 bytes$"):
        read_all(name, data)


def test_dictionary_within_limit_is_accepted() -> None:
    tar = tar_of(tar_member())
    assert read_all("a.tar.xz", xz_requiring(64 * MIB, tar))
    # A single stored block.
    data = ZSTD + LARGEST_WINDOW + (len(tar) << 3 | 1).to_bytes(3, "little") + tar
    assert read_all("a.tar.zst", data)


def test_members_and_names_are_limited() -> None:
    tar = tar_of(*[tar_member(b"name")] * 10)
    data = raw_zip(*[ZipEntry(name=b"name")] * 10)
    for name, archive in (("a.tar", tar), ("a.zip", data)):
        assert len(read_all(name, archive, limits=Limits(members=10, names=40, name=4))) == 10
        for limits, reason in (
            (Limits(members=9), "more than 9 members"),
            (Limits(names=39), "names take more than 39 bytes"),
            (Limits(name=3), "a name of 4 bytes: 'name'"),
        ):
            with pytest.raises(InvalidArchiveError, match=reason):
                read_all(name, archive, limits=limits)


# -- invalid zips

PACKED = len(ZipEntry().packed())
FULL = 0xFFFFFFFF


def entry(**fields: object) -> ZipEntry:
    return ZipEntry(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"PK", "not a zip archive"),
        (b"MZ" + raw_zip(entry()), "other data precede it"),
        (raw_zip(entry(), front=b"PK\7\b"), "other data precede it"),
        (raw_zip(entry(flags=1)), "is encrypted"),
        (raw_zip(entry(flags=1 << 6)), "is encrypted"),
        (raw_zip(entry(flags=1 << 13)), "is encrypted"),
        (raw_zip(entry(directory={"flags": 1})), "is encrypted"),
        (raw_zip(entry(flags=1 << 5)), "patched data"),
        (raw_zip(entry(method=9, raw=b"x")), "compressed by method 9"),
        (raw_zip(entry(method=12, raw=b"x")), "compressed by method 12"),
        (raw_zip(entry(method=14, raw=b"x")), "compressed by method 14"),
        (raw_zip(entry(raw=b"\xff" * 9)), "is damaged: Error -3"),
        (raw_zip(entry(raw=ZipEntry().packed()[:-3])), "is damaged: EOFError|has . bytes|CRC"),
        (raw_zip(entry(crc=1)), "Bad CRC-32"),
        (raw_zip(entry(size=6)), "Bad CRC-32"),
        (raw_zip(entry(size=8)), "has 7 bytes instead of 8"),
        (raw_zip(entry(size=FULL)), "400 times"),
        (raw_zip(entry(method=0, size=6)), "Bad CRC-32"),
        (raw_zip(entry(method=0))[:40], "not a zip archive"),
        (raw_zip(entry(name=b"dir/")), "directory with content"),
        (raw_zip(entry(name=b"\xff", flags=1 << 11)), "can't decode byte 0xff"),
        (raw_zip(entry(in_directory=0)), "other data precede it|end record states 1"),
        (raw_zip(entry(), end={"total": 2}), "has 1 members, but its end record states 2"),
        (raw_zip(entry(), zip64=True, end={"total": 0}), "its end record states 0"),
        (raw_zip(entry(in_directory=2)), "shares its content with another"),
        (
            raw_zip(entry(), entry(name=b"b", directory={"offset": 0})),
            "shares its content with another",
        ),
        (raw_zip(entry(directory={"offset": 1})), "other data precede it"),
        (raw_zip(entry(), entry(directory={"offset": 1})), "shares its content"),
        (raw_zip(entry(), entry(directory={"offset": 5})), "shares its content"),
        (raw_zip(entry(), entry(directory={"offset": 1 << 30})), "shares its content"),
        (raw_zip(entry(directory={"name": b"top/file2"})), "and header .* differ"),
        (raw_zip(entry(content=b"x" * 5000, mode=0o120777)), "link with a target of 5,000 bytes"),
        (raw_zip(entry(), before_end=b"gap"), "other data precede it|Bad magic number"),
        (raw_zip(entry(), behind=b"x"), "extra data after its end"),
        (raw_zip(entry(), comment=b"comment")[:-1], "is truncated"),
        (raw_zip(entry())[:-22], "not a zip archive"),
        (raw_zip(entry(), end={"size": 1}), "Truncated central directory"),
        (raw_zip(entry(), end={"offset": 1}), "other data precede it|Bad magic number|outside"),
    ],
)
def test_invalid_zip_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidArchiveError, match=reason):
        read_all("a.zip", data)


def test_overlapping_members_are_refused() -> None:
    """The content of the first member includes the second member with its header."""
    inner = ZipEntry(name=b"inner", content=b"kernel" * 99)
    inside = archives._local(inner)
    quote = (
        b"\0" + len(inside).to_bytes(2, "little") + (~len(inside) & 0xFFFF).to_bytes(2, "little")
    )
    outer = ZipEntry(
        name=b"outer",
        raw=quote + inside[: -len(inner.packed())] + inner.packed(),
        content=inside + inner.content,
    )
    place = len(archives._local(outer)) - len(inside)
    listed = archives._central(inner, place)
    data = raw_zip(outer)
    start = data.index(b"PK\1\2")
    whole = data[:-22].replace(data[start:-22], data[start:-22] + listed)
    end = bytearray(data[-22:])
    end[8:10] = end[10:12] = (2).to_bytes(2, "little")
    end[12:16] = (len(whole) - start).to_bytes(4, "little")
    with pytest.raises(InvalidArchiveError):
        read_all("a.zip", whole + bytes(end))


@pytest.mark.slow
def test_zip_bomb_is_refused_at_ratio_limit() -> None:
    data = raw_zip(entry(content=bytes(80 * MIB)))
    assert len(data) < 100_000
    with pytest.raises(InvalidArchiveError, match="unpacks to more than 400 times"):
        read_all("a.zip", data)


# -- limits of time and memory

_MEASURED = """
    import resource, sys, time
    from itertools import chain
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from support.archives import *
    from cudaredist.errors import InvalidArchiveError
    data = {data}
    here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (here + (60 << 20),) * 2)
    began = time.process_time()
    try:
        print(read_quickly({name!r}, data))
    except InvalidArchiveError as error:
        print(error.reason)
    print(time.process_time() - began)
"""


def measured(name: str, data: str) -> tuple[str, float]:
    """Read an archive in a process with 60 MiB of free memory.

    Return the output and the processor time."""
    program = textwrap.dedent(_MEASURED).format(tests=str(TESTS), data=data, name=name)
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    output, seconds = process.stdout.splitlines()
    return output, float(seconds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        (
            "a.tar.xz",
            "xz_of_stream(chain([tar_header(size=4 << 30)], repeated(b'\\0', 4 << 30)))",
            "400 times",
        ),
        ("a.tar.gz", "gz(tar_header(size=4 << 30) + bytes(300 << 20))", "400 times"),
        ("a.tar.zst", "zst(tar_header(size=4 << 30) + bytes(300 << 20))", "400 times"),
        (
            "a.tar.xz",
            "xz_of_stream(chain([tar_header(size=1 << 30, kind=b'L')], repeated(b'x', 1 << 30)))",
            "bytes of headers",
        ),
        (
            "a.tar.xz",
            "xz_of_stream(chain([tar_header(size=1 << 30, kind=b'x')], repeated(b'x', 1 << 30)))",
            "bytes of headers",
        ),
        ("a.zip", "raw_zip(ZipEntry(content=bytes(1 << 30)))", "400 times"),
        ("a.tar", "tar_header() * 300_000 + END_OF_TAR", "300000"),
        ("a.zip", "raw_zip(*[ZipEntry(content=b'')] * 100_000, zip64=True, "
                  "end={'here': 65535, 'total': 65535})", "100000"),
    ],
    ids=["4 GiB of zeros", "gzip", "zstd", "1 GiB long name", "1 GiB pax", "zip of 1 GiB",
         "many members of a tar", "many members of a zip"],
)  # fmt: skip
def test_large_archive_is_read_or_refused_within_limits(name: str, data: str, reason: str) -> None:
    output, seconds = measured(name, data)
    assert reason in output
    assert seconds < cost.SECONDS
