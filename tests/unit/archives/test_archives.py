"""Tests of reading valid archives, whole and in chunks."""

import gc
import lzma
import struct
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator

import pytest
from support import archives
from support.archives import ZipEntry, raw_zip, read_all, read_with_tarfile, read_with_zipfile
from support.patching import Patch

from cudaredist.archives.members import Limits, Member
from cudaredist.archives.memory import SharedMemory
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
        open_archive(name, [])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"<html>not here</html>" * 100], ids=["empty", "html"])
def test_content_of_other_format_is_refused(suffix: str, content: bytes) -> None:
    with pytest.raises(InvalidArchiveError):
        read_all(f"a{suffix}", content)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_source_error_is_raised_unchanged(suffix: str) -> None:
    whole = archives.plain_zip()
    if suffix in archives.COMPRESSIONS:
        whole = archives.COMPRESSIONS[suffix](archives.plain_tar())

    def failing(at: int, error: Exception) -> Iterator[bytes]:
        yield whole[:at]
        raise error

    for at in range(0, len(whole), max(1, len(whole) // 50)):
        for error in (OSError("gone"), ValueError("odd"), EOFError(), tarfile.ReadError("odd")):
            with pytest.raises(type(error)) as raised:
                read_all(f"a{suffix}", failing(at, error))
            assert raised.value is error


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.tar.xz", archives.xz(archives.plain_tar())), ("a.zip", archives.plain_zip())],
    ids=["tar", "zip"],
)
def test_unread_content_is_skipped(name: str, data: bytes) -> None:
    whole = [member.name for member, _ in read_all(name, data)]
    begun = []
    for index, (member, content) in enumerate(open_archive(name, archives.in_chunks(data, 1000))):
        if index % 2:
            next(content, None)
        begun.append(member.name)
    assert begun == whole


def test_content_of_earlier_member_cannot_be_read() -> None:
    tar = archives.tar_of(archives.tar_member(content=bytes(9000)), archives.tar_member())
    members = iter(open_archive("a.tar", archives.in_chunks(tar, 1000)))
    _, content = next(members)
    next(content)
    next(members)
    with pytest.raises(RuntimeError, match="after a later member"):
        next(content)


def test_ignored_error_is_raised_again() -> None:
    data = raw_zip(ZipEntry(crc=1), ZipEntry(name=b"b"))
    members = iter(open_archive("a.zip", [data]))
    _, content = next(members)
    with pytest.raises(InvalidArchiveError, match="does not match its header"):
        list(content)
    with pytest.raises(InvalidArchiveError, match="was not read to its end"):
        next(members)


def test_tars_need_no_corrections() -> None:
    reader = open_archive("a.tar", [archives.plain_tar()])
    assert list(reader)
    assert not reader.corrections


# -- compression


@pytest.mark.parametrize(
    ("suffix", "parts"),
    [
        (".tar.xz", lambda half: [archives.xz(half[0]), archives.xz(half[1], check=4)]),
        (".tar.xz", lambda half: [archives.xz(half[0]), bytes(8), archives.xz(half[1]), bytes(4)]),
        (".tar.xz", lambda half: [archives.xz(half[0]), archives.xz(b""), archives.xz(half[1])]),
        (".tar.xz", lambda half: [archives.xz_blocks(b"".join(half), 10_000)]),
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
    ids=["streams", "padding", "empty", "blocks", "gzip", "gzip padding", "zstd", "skippable"],
)
@pytest.mark.parametrize("chunk", [1, 7, 100_000])
@pytest.mark.parametrize("jobs", [1, 3])
def test_concatenated_streams_are_read_as_one(
    suffix: str, parts: Callable[[tuple[bytes, bytes]], list[bytes]], chunk: int, jobs: int
) -> None:
    tar = archives.plain_tar()
    data = b"".join(parts((tar[:5000], tar[5000:])))
    assert read_all(f"a{suffix}", data, chunk=chunk, jobs=jobs) == read_with_tarfile(tar)


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
    # A stream of xz counts with each of its blocks.
    count = 2 * len(parts) - 1 if suffix == ".tar.xz" else len(parts)
    assert read_all(f"a{suffix}", b"".join(parts), limits=Limits(parts=count))
    with pytest.raises(InvalidArchiveError, match=f"more than {count - 1} .* streams or blocks"):
        read_all(f"a{suffix}", b"".join(parts), limits=Limits(parts=count - 1))
    with pytest.raises(InvalidArchiveError, match=r"more than 100,000 .* streams or blocks"):
        read_all(f"a{suffix}", b"".join([*parts, parts[-1] * 100_000]))


def test_ratio_of_unknown_size_uses_received_bytes() -> None:
    data = archives.xz(archives.tar_of(archives.tar_member(content=bytes(1 << 20))))
    limits = Limits(floor=1 << 19)
    assert read_all("a.tar.xz", data, size=len(data) * 10, limits=limits)
    for size in (None, len(data)):
        with pytest.raises(InvalidArchiveError, match="unpacks to more than 400 times its"):
            read_all("a.tar.xz", data, size=size, limits=limits)
    assert read_all("a.tar.xz", data, size=len(data), limits=Limits())


# -- blocks of xz on several threads


def blocks_of_tar() -> bytes:
    return archives.xz_blocks(archives.plain_tar(), 50_000)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], SharedMemory]:
    """Return a function that sets the shared memory of all archives."""

    def of(size: int) -> SharedMemory:
        memory = SharedMemory(size)
        for module in ("xz_blocks", "decompress"):
            monkeypatch.setattr(f"cudaredist.archives.{module}.SHARED", memory)
        return memory

    return of


class Watched(SharedMemory):
    """Shared memory that records its peak use."""

    peak = 0

    def reserve(self, count: int) -> bool:
        is_reserved = super().reserve(count)
        self.peak = max(self.peak, self.in_use)
        return is_reserved


def test_memory_of_blocks_is_limited_for_any_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    data = archives.xz_blocks(archives.plain_tar(bulk=400), 50_000)
    expected = read_all("a.tar.xz", data)
    for jobs in (2, 64):
        memory = Watched(1_000_000)
        monkeypatch.setattr("cudaredist.archives.xz_blocks.SHARED", memory)
        assert read_all("a.tar.xz", data, jobs=jobs) == expected
        assert 100_000 < memory.peak <= memory.size
        assert memory.in_use == 0


@pytest.mark.parametrize("size", [0, 100_000, 420_000])
def test_archives_share_memory_without_waiting(
    shared: Callable[[int], SharedMemory], size: int
) -> None:
    memory = shared(size)
    data = archives.xz_blocks(archives.plain_tar(bulk=400), 50_000)
    readers = [iter(open_archive("a.tar.xz", [data], jobs=8)) for _ in range(5)]
    # One thread reads all archives in turn. If one waited for another, the test would not end.
    for members in zip(*readers, strict=True):
        assert len({member.name for member, _ in members}) == 1
    assert memory.in_use == 0


def test_large_blocks_are_unpacked_in_pieces(shared: Callable[[int], SharedMemory]) -> None:
    expected = read_all("a.tar.xz", blocks_of_tar())
    memory = shared(100_000)
    assert read_all("a.tar.xz", blocks_of_tar(), jobs=2) == expected
    with pytest.raises(InvalidArchiveError, match="is truncated"):
        read_all("a.tar.xz", blocks_of_tar()[:300], jobs=2)
    assert memory.in_use == 0


def test_memory_is_released_by_closed_reader(shared: Callable[[int], SharedMemory]) -> None:
    memory = shared(1 << 30)
    reader = open_archive("a.tar.xz", [blocks_of_tar()], jobs=4)
    next(iter(reader))
    assert memory.in_use > 0
    reader.close()
    assert memory.in_use == 0


def test_memory_is_released_after_damaged_block(shared: Callable[[int], SharedMemory]) -> None:
    memory = shared(1 << 30)
    damaged = blocks_of_tar()[:60] + b"\xaa" + blocks_of_tar()[61:]
    with pytest.raises(InvalidArchiveError, match="Corrupt"):
        read_all("a.tar.xz", damaged, jobs=4)
    assert memory.in_use == 0


def test_large_dictionary_waits_for_free_memory(shared: Callable[[int], SharedMemory]) -> None:
    memory = shared(100 << 20)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]
    data = lzma.compress(archives.plain_tar(), filters=filters)
    assert memory.reserve(50 << 20)
    members: list[object] = []
    reading = threading.Thread(target=lambda: members.append(read_all("a.tar.xz", data)))
    reading.start()
    # No reader gets memory while another one waits. Otherwise there would never be enough.
    while memory.reserve(0):
        threading.Event().wait(0.01)
    assert not members
    memory.release(50 << 20)
    reading.join(60)
    assert members == [read_all("a.tar.xz", archives.xz(archives.plain_tar()))]
    assert memory.in_use == 0


@pytest.mark.parametrize("sizes", [0, archives.PACKED_SIZE, archives.UNPACKED_SIZE])
@pytest.mark.parametrize("jobs", [1, 2])
def test_blocks_with_and_without_sizes_are_read_for_any_jobs(sizes: int, jobs: int) -> None:
    tar = archives.plain_tar()
    parts = list(archives.in_chunks(tar, len(tar) // 5))
    blocks = [archives.XzBlock(part, sizes if n % 2 else 0xC0) for n, part in enumerate(parts)]
    for selected in (blocks, blocks[1:]):
        content = b"".join(block.content for block in selected)
        first = archives.xz(tar[: len(tar) - len(content)]) if len(content) < len(tar) else b""
        data = first + archives.xz_stream(selected)
        assert read_all("a.tar.xz", data, jobs=jobs) == read_with_tarfile(tar)


@pytest.mark.parametrize("check", [lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_SHA256])
def test_blocks_with_every_check_type_are_read(check: int) -> None:
    tar = archives.plain_tar()
    data = archives.xz_blocks(tar, 50_000, check=check)
    assert read_all("a.tar.xz", data, jobs=2) == read_with_tarfile(tar)


def test_threads_end_with_reader() -> None:
    before = threading.active_count()
    reader = iter(open_archive("a.tar.xz", [blocks_of_tar()], jobs=4))
    for _ in range(4):
        next(reader)
    assert threading.active_count() > before
    del reader
    gc.collect()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:100], "is truncated"),
        (lambda data: data[: data.rindex(b"\0\x07")], "is truncated in its xz stream"),
        (lambda data: data[:-1], "is truncated"),
        (lambda data: data[:-9] + b"\0" + data[-8:], "its index does not match its blocks"),
        (lambda data: data[:-20] + b"\xaa" + data[-19:], "its index does not match its blocks"),
        (lambda data: data[:60] + b"\xaa" + data[61:], "not valid xz: Corrupt input data"),
        (lambda data: data[:470] + b"\xaa" + data[471:], "the header of a block is damaged"),
        (lambda data: data + b"x", "is truncated"),
        (lambda data: data + b"garbage" * 9, "not valid xz"),
        (lambda data: data[:7] + b"\x44" + data[8:], "not valid xz"),
    ],
)
def test_damaged_block_is_refused(damage: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(InvalidArchiveError, match=reason):
        read_all("a.tar.xz", damage(blocks_of_tar()), jobs=2)
    with pytest.raises(InvalidArchiveError, match=reason):
        read_all("a.tar.xz", damage(blocks_of_tar()), jobs=1)


def test_blocks_with_wrong_sizes_are_refused() -> None:
    tar = archives.plain_tar()
    for delta in (-1, 1, 1 << 20, 1 << 40):
        data = archives.xz_blocks(tar, 50_000, lie=delta)
        with pytest.raises(InvalidArchiveError, match=r"not valid xz: Corrupt|is truncated"):
            read_all("a.tar.xz", data, jobs=2)


def test_number_and_output_of_blocks_are_limited() -> None:
    tar = archives.tar_of(archives.tar_member(content=bytes(9 << 20)))
    data = archives.xz_blocks(tar, 1 << 20)
    for jobs in (1, 2):
        with pytest.raises(InvalidArchiveError, match="more than 5 xz"):
            read_all("a.tar.xz", data, jobs=jobs, limits=Limits(parts=5))
    with pytest.raises(InvalidArchiveError, match="unpacks to more than 400 times"):
        read_all("a.tar.xz", data, jobs=2, limits=Limits(floor=1 << 20), size=len(data))


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
@pytest.mark.parametrize("chunk", [1, 1000])
def test_data_descriptor_is_read(
    signature: bool,  # noqa: FBT001 - a parameter of the test
    wide: bool,  # noqa: FBT001 - likewise
    content: bytes,
    chunk: int,
) -> None:
    entry = ZipEntry(content=content)
    packed = len(entry.packed())
    entry.descriptor = archives.descriptor(content, packed, signature=signature, wide=wide)
    data = raw_zip(ZipEntry(name=b"a"), entry, ZipEntry(name=b"z"))
    expected = Member(name="top/file", kind="file", mode=0o644, size=len(content))
    assert read_all("a.zip", data, chunk=chunk)[1] == (expected, content)


@pytest.mark.parametrize("size", [(1 << 18) + 1, 700_000])
def test_data_descriptor_after_several_chunks_is_read(size: int) -> None:
    # Bytes left over from an earlier chunk were counted twice.
    content = bytes(size)
    entry = ZipEntry(content=content)
    entry.descriptor = archives.descriptor(content, len(entry.packed()))
    members = read_all("a.zip", raw_zip(entry, ZipEntry(name=b"z")), chunk=1 << 16)
    assert [content for _, content in members] == [content, b"content"]


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
    assert read_all("a.zip", data, chunk=5) == read_with_zipfile(data)


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
        ({"name": b"\xff", "flags": 1 << 11}, {"name": "\udcff", "mode": 0o644}),
    ],
    ids=str,
)
def test_directory_entry_sets_mode_and_kind(
    entry: dict[str, object], member: dict[str, object]
) -> None:
    data = raw_zip(ZipEntry(**entry))  # type: ignore[arg-type]
    expected = {"name": "top/file", "kind": "file", "mode": 0, "size": 7} | member
    assert read_all("a.zip", data) == [(Member(**expected), b"content")]  # type: ignore[arg-type]


def test_link_after_too_many_small_files_is_refused(patch: Patch) -> None:
    small = [ZipEntry(name=b"%d" % number) for number in range(10)]
    link = ZipEntry(name=b"link", mode=0o120777)
    patch("cudaredist.archives.zip._SMALL_CONTENTS", 11 * 157)
    assert len(read_all("a.zip", raw_zip(*small, link))) == 11
    patch("cudaredist.archives.zip._SMALL_CONTENTS", 11 * 157 - 1)
    with pytest.raises(InvalidArchiveError, match="is a link after too many small files"):
        read_all("a.zip", raw_zip(*small, link))


def test_directory_size_is_limited(patch: Patch) -> None:
    patch("cudaredist.archives.zip._DIRECTORY_LIMIT", 100)
    assert read_all("a.zip", raw_zip(ZipEntry()))
    with pytest.raises(InvalidArchiveError, match="directory takes more than 100 bytes"):
        read_all("a.zip", raw_zip(ZipEntry(), ZipEntry(name=b"b")))


# -- the byte stream


def test_stream_reads_ahead_and_back_over_chunks() -> None:
    stream = Stream("a", [b"ab", b"", b"cde", b"f"])
    assert stream.ahead(1) == b"a"
    assert stream.ahead(4) == b"abcd"
    assert (stream.read(3), stream.position) == (b"abc", 3)
    assert (stream.piece(100), stream.position) == (b"de", 5)
    stream.give_back(1)
    assert stream.ahead(9) == b"ef"
    stream.skip(1)
    assert (stream.read(0), stream.read(1), stream.piece(1), stream.ahead(1)) == (
        b"",
        b"f",
        b"",
        b"",
    )
    assert stream.position == 6
    with pytest.raises(InvalidArchiveError, match="is truncated"):
        stream.skip(1)
