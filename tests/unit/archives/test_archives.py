"""Tests of reading valid archives."""

import errno
import io
import lzma
import struct
import tarfile
import zlib
from collections.abc import Callable

import pytest
from support import archives
from support.archives import ZipEntry, raw_zip, read_all, read_with_tarfile, read_with_zipfile

from cudaredist.archives.members import Limits, Member
from cudaredist.archives.open_archive import SUFFIXES, open_archive
from cudaredist.archives.stream import Stream
from cudaredist.errors import InvalidArchiveError

SKIPPABLE_FRAME = struct.pack("<2I", 0x184D2A50, 5) + b"hello"


TAR_FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


@pytest.mark.parametrize("suffix", archives.COMPRESSIONS)
@pytest.mark.parametrize("form", TAR_FORMATS)
def test_tar_members_equal_those_of_standard_library(suffix: str, form: str) -> None:
    tar = archives.plain_tar(TAR_FORMATS[form])
    assert read_all(f"a{suffix}", archives.COMPRESSIONS[suffix](tar)) == read_with_tarfile(tar)


@pytest.mark.parametrize("suffix", [".zip", ".whl", ".ZIP"])
def test_zip_members_equal_those_of_standard_library(suffix: str) -> None:
    data = archives.plain_zip()
    assert read_all(f"a{suffix}", data) == read_with_zipfile(data)


@pytest.mark.parametrize("name", ["a.tar.bz2", "a.7z", "a", "tar.xz.txt", ""])
def test_unsupported_suffix_is_refused(name: str) -> None:
    with pytest.raises(InvalidArchiveError, match=r"not a supported archive; supported: \.tar"):
        open_archive(name, io.BytesIO())


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"<html>not here</html>" * 100], ids=["empty", "html"])
def test_content_of_other_format_is_refused(suffix: str, content: bytes) -> None:
    with pytest.raises(InvalidArchiveError):
        read_all(f"a{suffix}", content)


class Unreadable(io.BytesIO):
    """A file on a damaged disk."""

    def __init__(self, data: bytes, at: int, error: Exception) -> None:
        super().__init__(data)
        self._at, self._error = at, error

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if self.tell() > self._at:
            raise self._error
        return data


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_error_of_the_file_is_raised_unchanged(suffix: str) -> None:
    whole = archives.plain_zip()
    if suffix in archives.COMPRESSIONS:
        whole = archives.COMPRESSIONS[suffix](archives.plain_tar())
    for at in (0, len(whole) // 2, len(whole) - 1):
        error = OSError(errno.EIO, "damaged")
        with pytest.raises(OSError, match="damaged") as raised:
            list(open_archive(f"a{suffix}", Unreadable(whole, at, error)))
        assert raised.value is error


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.tar.xz", archives.xz(archives.plain_tar())), ("a.zip", archives.plain_zip())],
    ids=["tar", "zip"],
)
def test_unread_content_is_skipped(name: str, data: bytes) -> None:
    whole = [member.name for member, _ in read_all(name, data)]
    begun = []
    for index, (member, content) in enumerate(open_archive(name, io.BytesIO(data))):
        if index % 2:
            next(content, None)
        begun.append(member.name)
    assert begun == whole


def test_content_of_earlier_member_cannot_be_read() -> None:
    tar = archives.tar_of(archives.tar_member(content=bytes(900_000)), archives.tar_member())
    members = open_archive("a.tar", io.BytesIO(tar))
    _, content = next(members)
    next(content)
    next(members)
    with pytest.raises(RuntimeError, match="after a later member"):
        next(content)


def test_unread_content_of_zip_is_verified() -> None:
    members = open_archive("a.zip", io.BytesIO(raw_zip(ZipEntry(crc=1), ZipEntry(name=b"b"))))
    next(members)
    with pytest.raises(InvalidArchiveError, match="Bad CRC-32"):
        next(members)


# -- compression


@pytest.mark.parametrize(
    ("suffix", "parts"),
    [
        (".tar.xz", lambda half: [archives.xz(half[0]), archives.xz(half[1], check=4)]),
        (".tar.xz", lambda half: [archives.xz(half[0]), bytes(8), archives.xz(half[1]), bytes(4)]),
        (".tar.xz", lambda half: [archives.xz(half[0]), archives.xz(b""), archives.xz(half[1])]),
        (".tar.gz", lambda half: [archives.gz(half[0]), archives.gz(b""), archives.gz(half[1])]),
        (".tar.gz", lambda half: [archives.gz(half[0]), archives.gz(half[1]), bytes(10_001)]),
        (".tar.zst", lambda half: [archives.zst(half[0]), archives.zst(half[1])]),
        (
            ".tar.zst",
            lambda half: [
                SKIPPABLE_FRAME,
                archives.zst(half[0]),
                SKIPPABLE_FRAME,
                archives.zst(half[1]),
                SKIPPABLE_FRAME,
            ],
        ),
    ],
    ids=["streams", "padding", "empty", "gzip", "gzip padding", "zstd", "skippable"],
)
@pytest.mark.parametrize("chunk", [1, 7, 100_000])
def test_concatenated_streams_are_read_as_one(
    suffix: str,
    parts: Callable[[tuple[bytes, bytes]], list[bytes]],
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cudaredist.archives.decompress._INPUT", chunk)
    tar = archives.plain_tar()
    data = b"".join(parts((tar[:5000], tar[5000:])))
    assert read_all(f"a{suffix}", data) == read_with_tarfile(tar)


@pytest.mark.parametrize(
    ("suffix", "data", "reason"),
    [
        (".tar.xz", lambda tar: archives.xz(tar) + bytes(6), "extra data after its end"),
        (".tar.xz", lambda tar: archives.xz(tar) + b"garbage" * 2, "not valid xz"),
        (".tar.xz", lambda tar: bytes(4) + archives.xz(tar), "not valid xz"),
        (".tar.xz", lambda tar: lzma.compress(tar, lzma.FORMAT_ALONE), "not valid xz"),
        (".tar.xz", lambda tar: archives.xz(tar)[:-40], "is truncated"),
        (".tar.gz", lambda tar: archives.gz(tar) + b"garbage", "not valid gzip"),
        (".tar.gz", lambda tar: archives.gz(tar) + b"\0garbage", "extra data after its end"),
        (
            ".tar.gz",
            lambda tar: archives.gz(tar[:512]) + bytes(9) + archives.gz(tar[512:]),
            "extra data after its end",
        ),
        (".tar.gz", lambda tar: archives.gz(tar) + b"\x1f", "is truncated"),
        (".tar.gz", lambda tar: archives.gz(tar)[:-1], "is truncated"),
        (".tar.zst", lambda tar: archives.zst(tar) + b"garbage", "not valid zstd"),
        (".tar.zst", lambda tar: archives.zst(tar)[:-1], "is truncated"),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_damaged_stream_end_is_refused(
    suffix: str, data: Callable[[bytes], bytes], reason: str
) -> None:
    with pytest.raises(InvalidArchiveError, match=reason):
        read_all(f"a{suffix}", data(archives.plain_tar()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".tgz", archives.gz), (".tar.xz", archives.xz), (".tar.zst", archives.zst)],
)
def test_number_of_streams_is_limited(suffix: str, pack: Callable[[bytes], bytes]) -> None:
    tar = archives.tar_of(archives.tar_member())
    parts = [*map(pack, archives.in_chunks(tar, 512)), pack(b"")]
    count = len(parts)
    assert read_all(f"a{suffix}", b"".join(parts), limits=Limits(streams=count))
    with pytest.raises(InvalidArchiveError, match=f"more than {count - 1} .* streams"):
        read_all(f"a{suffix}", b"".join(parts), limits=Limits(streams=count - 1))
    with pytest.raises(InvalidArchiveError, match=r"more than 100,000 .* streams"):
        read_all(f"a{suffix}", b"".join([*parts, parts[-1] * 100_000]))


@pytest.mark.parametrize("suffix", [".tar.xz", ".tgz", ".tar.zst"])
def test_ratio_of_unpacked_bytes_is_limited(suffix: str) -> None:
    tar = archives.tar_of(archives.tar_member(content=bytes(1 << 20)))
    name, data = f"a{suffix}", archives.COMPRESSIONS[suffix](tar)
    assert read_all(name, data, limits=Limits(ratio=2 * len(tar) // len(data), floor=0))
    with pytest.raises(InvalidArchiveError, match="unpacks to more than 10 times its"):
        read_all(name, data, limits=Limits(ratio=10, floor=1 << 19))
    assert read_all(name, data, limits=Limits(ratio=10))


def test_gzip_output_after_the_last_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudaredist.archives.decompress._OUTPUT", 10)
    tar = archives.tar_of(archives.tar_member(content=bytes(3000)))
    assert read_all("a.tgz", archives.gz(tar)) == read_with_tarfile(tar)


# -- tar


def test_old_directories_and_links_with_sizes_are_read() -> None:
    tar = archives.tar_of(
        archives.tar_member("top/", kind=tarfile.AREGTYPE),
        archives.tar_header("top/dir/", kind=tarfile.DIRTYPE, size=900),
        archives.tar_header("top/link", kind=tarfile.LNKTYPE, size=900, target="top/file"),
        archives.tar_member("top/contiguous", b"abc", kind=tarfile.CONTTYPE),
        archives.tar_member("label", b"passed over", kind=b"V"),
        archives.tar_member("top/dumped", b"Yname\0\0", kind=b"D"),
        archives.tar_member("top/slash/"),
    )
    found = read_all("a.tar", tar)
    assert [(member.name, member.kind, member.size) for member, _ in found] == [
        ("top", "directory", 0),
        ("top/dir", "directory", 0),
        ("top/link", "hardlink", 0),
        ("top/contiguous", "file", 3),
        ("top/dumped", "directory", 0),
        ("top/slash", "directory", 0),
    ]
    assert [content for _, content in found] == [b"", b"", b"", b"abc", b"", b""]


def test_tape_labels_count_as_members() -> None:
    tar = archives.tar_of(*[archives.tar_member("label", kind=b"V")] * 3)
    assert read_all("a.tar", tar, limits=Limits(members=3)) == []
    with pytest.raises(InvalidArchiveError, match="more than 2 members"):
        read_all("a.tar", tar, limits=Limits(members=2))


@pytest.mark.parametrize(
    ("headers", "member"),
    [
        ([archives.pax(("path", b"pax/name"))], {"name": "pax/name"}),
        ([archives.pax(("path", b"x")), archives.pax(("size", b"3"))], {"name": "x", "size": 3}),
        ([archives.pax(("size", b"3"), kind=b"X")], {"size": 3}),
        ([archives.pax(("comment", b"a commit"), kind=b"g")], {}),
        ([archives.pax(("mtime", b"1.5"), ("SCHILY.xattr.user", b"\n = \n"))], {}),
        ([archives.gnu_long_name(b"gnu/name")], {"name": "gnu/name"}),
        ([archives.gnu_long_name(b"unused", b"K")], {}),
        ([archives.pax(("path", b"\xff"))], {"name": "\udcff"}),
        ([archives.pax()], {}),
    ],
    ids=["path", "two", "Solaris", "global", "other", "long", "long link", "not UTF-8", "empty"],
)
def test_extended_headers_apply_to_next_member(
    headers: list[bytes], member: dict[str, object]
) -> None:
    size = 0 if "size" in member else 3
    tar = archives.tar_of(*headers, archives.tar_header(size=size), archives.padded(b"abc"))
    members = read_all("a.tar", tar)
    expected = {"name": "top/file", "kind": "file", "mode": 0o644, "size": 3} | member
    assert members == [(Member(**expected), b"abc")]  # type: ignore[arg-type]


def test_base_256_numbers_and_signed_checksums_are_read() -> None:
    large = archives.tar_header(edits={124: b"\x80" + (3).to_bytes(11, "big"), 108: b"1 \0"})
    header = bytearray(archives.tar_header(b"gr\xfcn", size=3))
    unsigned = sum(header) - sum(header[148:156]) + 256
    header[148:156] = b"%06o\0 " % (unsigned - 256)
    content = archives.padded(b"abc")
    tar = archives.tar_of(large, content, bytes(header), content)
    assert [(member.name, content) for member, content in read_all("a.tar", tar)] == [
        ("top/file", b"abc"),
        ("gr\udcfcn", b"abc"),
    ]


def test_gnu_headers_have_no_prefix() -> None:
    gnu = archives.tar_header("file", edits={257: b"ustar  \0", 345: b"12345670123"})
    posix = archives.tar_header("file", edits={345: b"front"})
    names = [member.name for member, _ in read_all("a.tar", archives.tar_of(gnu, posix))]
    assert names == ["file", "front/file"]


def test_long_padding_at_end_is_accepted() -> None:
    assert read_all("a.tar", archives.plain_tar() + bytes(1_000_001))


# -- zip


@pytest.mark.parametrize("signature", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("content", [b"", b"content" * 99], ids=["empty", "full"])
def test_data_descriptor_is_read(
    signature: bool,  # noqa: FBT001 - a parameter of the test
    wide: bool,  # noqa: FBT001 - likewise
    content: bytes,
) -> None:
    entry = ZipEntry(content=content)
    packed = len(entry.packed())
    entry.descriptor = archives.descriptor(content, packed, signature=signature, wide=wide)
    data = raw_zip(ZipEntry(name=b"a"), entry, ZipEntry(name=b"z"))
    expected = Member(name="top/file", kind="file", mode=0o644, size=len(content))
    assert read_all("a.zip", data)[1] == (expected, content)


def test_stored_content_with_data_descriptor_is_read() -> None:
    behind = archives.descriptor(b"abc", 3)
    entry = ZipEntry(
        content=b"abc", method=0, descriptor=behind, crc=zlib.crc32(b"abc"), packed_size=3, size=3
    )
    assert [content for _, content in read_all("a.zip", raw_zip(entry))] == [b"abc"]


def test_zip64_archive_is_read() -> None:
    full = 0xFFFFFFFF
    packed = len(ZipEntry().packed())
    entry = ZipEntry(
        packed_size=full,
        size=full,
        extra=struct.pack("<2H", 0x5455, 0) + archives.zip64_extra(7, packed),
        directory={"extra": archives.zip64_extra(7, packed, 0), "offset": full},
    )
    data = raw_zip(
        entry,
        zip64=True,
        end={"total": 0xFFFF, "here": 0xFFFF, "offset": full, "size": full},
        end64={"locator_disks": 0},
    )
    assert read_all("a.zip", data) == read_with_zipfile(data)


def test_empty_zip_and_reordered_directory_are_read() -> None:
    assert read_all("a.zip", raw_zip()) == []
    assert read_all("a.zip", raw_zip(zip64=True)) == []
    first, second = ZipEntry(name=b"first"), ZipEntry(name=b"second", mode=0o100755)
    data = raw_zip(first, second)
    start = data.index(b"PK\1\2")
    middle = data.index(b"PK\1\2", start + 1)
    end = data.index(b"PK\5\6")
    turned = data[:start] + data[middle:end] + data[start:middle] + data[end:]
    assert read_all("a.zip", turned) == read_all("a.zip", data)


@pytest.mark.parametrize(
    ("entry", "member"),
    [
        ({"system": 0, "mode": 0o100755}, {}),
        ({"system": 19, "mode": 0o100755}, {"mode": 0o755}),
        ({"mode": 0o104755}, {"mode": 0o4755}),
        ({"mode": 0o120777}, {"mode": 0o777, "kind": "symlink", "size": 0, "target": "content"}),
        # A FIFO, a socket and a folder with a file's name. pip writes them as files.
        ({"mode": 0o010644}, {"mode": 0o644}),
        ({"mode": 0o140644}, {"mode": 0o644}),
        ({"mode": 0o040755}, {"mode": 0o755}),
        ({"mode": 0o755}, {"mode": 0o755}),
        ({"name": b"top\\file"}, {"name": "top\\file", "mode": 0o644}),
        ({"name": b"gr\x81n"}, {"name": "grün", "mode": 0o644}),
        ({"name": "grün".encode(), "flags": 1 << 11}, {"name": "grün", "mode": 0o644}),
    ],
    ids=str,
)
def test_directory_entry_sets_mode_and_kind(
    entry: dict[str, object], member: dict[str, object]
) -> None:
    data = raw_zip(ZipEntry(**entry))  # type: ignore[arg-type]
    expected = {"name": "top/file", "kind": "file", "mode": 0, "size": 7} | member
    assert read_all("a.zip", data) == [(Member(**expected), b"content")]  # type: ignore[arg-type]


def test_directory_size_is_limited() -> None:
    limits = Limits(directory=100)
    assert read_all("a.zip", raw_zip(ZipEntry()), limits=limits)
    for is_zip64 in (False, True):
        data = raw_zip(ZipEntry(), ZipEntry(name=b"b"), zip64=is_zip64)
        with pytest.raises(InvalidArchiveError, match="directory takes more than 100 bytes"):
            read_all("a.zip", data, limits=limits)


# -- the byte stream


def test_stream_reads_over_chunks() -> None:
    stream = Stream("a", [b"ab", b"", b"cde", b"f"])
    assert (stream.read(3), stream.position) == (b"abc", 3)
    assert (stream.piece(100), stream.position) == (b"de", 5)
    assert (stream.read(0), stream.read(1), stream.piece(1)) == (b"", b"f", b"")
    assert stream.position == 6
    with pytest.raises(InvalidArchiveError, match="is truncated"):
        stream.skip(1)
