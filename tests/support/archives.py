"""Valid archives for tests, and archives that break one rule each.

The standard library writes valid tars and zips. Other tars are written header by header, and
`RawZip` writes zips with arbitrary fields.
"""

import gzip
import io
import lzma
import stat
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cudaredist.archives.members import Limits, Member
from cudaredist.archives.open_archive import open_archive

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCK = 512
END_OF_TAR = bytes(2 * BLOCK)
MIB = 1 << 20
TAR_KINDS = {
    tarfile.REGTYPE: "file",
    tarfile.DIRTYPE: "directory",
    tarfile.SYMTYPE: "symlink",
    tarfile.LNKTYPE: "hardlink",
}


# -- reading


def in_chunks(data: bytes, size: int) -> Iterator[bytes]:
    """Cut bytes into chunks of one size."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


def read_with_tarfile(data: bytes) -> list[tuple[Member, bytes]]:
    """Read a tar with the standard library."""
    members = []
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            content = tar.extractfile(info) if info.isreg() else None
            member = Member(
                name=info.name,
                kind=TAR_KINDS[info.type],  # type: ignore[arg-type]
                mode=info.mode,
                size=info.size if info.isreg() else 0,
                target=info.linkname if info.issym() or info.islnk() else None,
            )
            members.append((member, content.read() if content else b""))
    return members


def read_with_zipfile(data: bytes) -> list[tuple[Member, bytes]]:
    """Read a zip with the standard library."""
    members = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            mode, content = info.external_attr >> 16, archive.read(info)
            is_link = stat.S_ISLNK(mode)
            member = Member(
                name=info.filename.rstrip("/"),
                kind="directory" if info.is_dir() else "symlink" if is_link else "file",
                mode=stat.S_IMODE(mode),
                size=0 if is_link else info.file_size,
                target=content.decode() if is_link else None,
            )
            members.append((member, content))
    return members


def read_all(name: str, data: bytes, *, limits: Limits | None = None) -> list[tuple[Member, bytes]]:
    """Read a whole archive and return its members with their contents."""
    members = open_archive(name, io.BytesIO(data), limits or Limits())
    return [(member, b"".join(content)) for member, content in members]


def read_quickly(name: str, data: bytes) -> int:
    """Read a whole archive and count its members."""
    return sum(1 for _ in open_archive(name, io.BytesIO(data)))


# -- tar


def tar_header(
    name: str | bytes = "top/file",
    *,
    size: int = 0,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o644,
    target: str = "",
    edits: dict[int, bytes] | None = None,
) -> bytes:
    """Return a header block. `edits` puts bytes at offsets before the checksum is computed."""
    info = tarfile.TarInfo("x")
    info.size, info.type, info.mode, info.linkname = size, kind, mode, target
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    raw = name.encode() if isinstance(name, str) else name
    block[:100] = raw.ljust(100, b"\0")
    for offset, patch in (edits or {}).items():
        block[offset : offset + len(patch)] = patch
    return with_checksum(bytes(block))


def with_checksum(block: bytes) -> bytes:
    """Set the checksum of a header."""
    total = sum(block[:148]) + 8 * 0x20 + sum(block[156:])
    return block[:148] + b"%06o\0 " % total + block[156:]


def padded(content: bytes) -> bytes:
    """Pad content to whole blocks."""
    return content + bytes(-len(content) % BLOCK)


def tar_member(name: str | bytes = "top/file", content: bytes = b"", **header: Any) -> bytes:
    """Return a member: header and content."""
    return tar_header(name, **{"size": len(content), **header}) + padded(content)


def tar_of(*members: bytes) -> bytes:
    """Return a tar of whole members with its end mark."""
    return b"".join(members) + END_OF_TAR


def pax(*records: tuple[str, bytes], kind: bytes = tarfile.XHDTYPE) -> bytes:
    """Return a pax header with given records."""
    return tar_member("pax", b"".join(pax_record(*record) for record in records), kind=kind)


def pax_record(key: str, value: bytes) -> bytes:
    """Return a pax record: `<length> <key>=<value>` and a newline."""
    rest = b" " + key.encode() + b"=" + value + b"\n"
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return str(length).encode() + rest


def gnu_long_name(name: bytes, kind: bytes = tarfile.GNUTYPE_LONGNAME) -> bytes:
    """Return a GNU tar header for a long name or link target."""
    return tar_member("././@LongLink", name + b"\0", kind=kind)


def plain_tar(form: int = tarfile.GNU_FORMAT, *, bulk: int = 1300) -> bytes:
    """Return a valid tar: a folder, small and large files, links, a long name."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=form) as tar:
        for info, content in honest_members(bulk):
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return output.getvalue()


def honest_members(bulk: int) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield the members of a valid archive."""

    def info(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644) -> tarfile.TarInfo:
        member = tarfile.TarInfo(name)
        member.type, member.mode = kind, mode
        return member

    yield info("top", tarfile.DIRTYPE, 0o755), b""
    yield info("top/LICENSE"), b"read me\n"
    yield info("top/empty"), b""
    yield info("top/lib/libx.so.1.2", mode=0o755), bytes(range(256)) * bulk
    link = info("top/lib/libx.so", tarfile.SYMTYPE, 0o777)
    link.linkname = "libx.so.1.2"
    yield link, b""
    link = info("top/lib/again", tarfile.LNKTYPE)
    link.linkname = "top/LICENSE"
    yield link, b""
    yield info(f"top/{'long/' * 40}grün"), b"deep" * 300


# -- compression


def xz(data: bytes, **options: Any) -> bytes:
    """Compress as one xz stream of one block."""
    return lzma.compress(data, **options)


def gz(data: bytes) -> bytes:
    """Compress as one gzip member."""
    return gzip.compress(data, mtime=0)


def zst(data: bytes) -> bytes:
    """Compress as one zstd frame with a checksum."""
    return zstd.compress(data, options={int(zstd.CompressionParameter.checksum_flag): 1})


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.xz": xz,
    ".tar.gz": gz,
    ".tgz": gz,
    ".tar.zst": zst,
}


def repeated(pattern: bytes, count: int) -> Iterator[bytes]:
    """Yield `count` bytes without storing all of them."""
    block = pattern * (MIB // len(pattern))
    while count > 0:
        yield block[:count]
        count -= len(block)


def xz_of_stream(chunks: Iterable[bytes]) -> bytes:
    """Compress a stream that is too large for memory."""
    packer = lzma.LZMACompressor(preset=0)
    return b"".join([*(packer.compress(chunk) for chunk in chunks), packer.flush()])


# -- zip


@dataclass
class ZipEntry:
    """Fields of a raw zip member. None means the true value."""

    name: bytes = b"top/file"
    content: bytes = b"content"
    method: int = 8
    flags: int = 0
    crc: int | None = None
    packed_size: int | None = None
    size: int | None = None
    extra: bytes = b""
    descriptor: bytes | None = None
    """Bytes after the content. If set, the local header contains sizes only if given."""
    raw: bytes | None = None
    """Packed content, if it is not compressed from `content`."""
    system: int = 3
    mode: int = 0o100644
    directory: dict[str, Any] = field(default_factory=dict)
    """Other values in the directory: fields by name, and `offset`, `disk`, `extra`."""
    in_directory: int = 1
    """Number of directory entries of the member."""

    def packed(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.method == 0:
            return self.content
        packer = zlib.compressobj(wbits=-15)
        return packer.compress(self.content) + packer.flush()


@dataclass
class RawZip:
    """A zip with arbitrary fields."""

    entries: list[ZipEntry]
    front: bytes = b""
    before_directory: bytes = b""
    before_end: bytes = b""
    comment: bytes = b""
    behind: bytes = b""
    zip64: bool = False
    end: dict[str, int] = field(default_factory=dict)
    """Other values in the end record: `disk`, `disks`, `here`, `total`, `size`, `offset`."""
    end64: dict[str, int] = field(default_factory=dict)
    """Other values in the zip64 end record, also `length`, `record` and `locator_disks`."""

    def bytes(self) -> bytes:
        output = bytearray(self.front)
        places = []
        for entry in self.entries:
            places.append(len(output))
            output += _local(entry)
        output += self.before_directory
        start = len(output)
        count = 0
        for entry, place in zip(self.entries, places, strict=True):
            output += _central(entry, place) * entry.in_directory
            count += entry.in_directory
        size = len(output) - start
        output += self.before_end
        truth = {"disk": 0, "disks": 0, "here": count, "total": count, "size": size}
        truth["offset"] = start
        if self.zip64:
            here = len(output)
            values = truth | self.end64
            output += struct.pack(
                "<4sQ2H2I4Q", b"PK\6\6", values.pop("length", 44), 45, 45,
                *(values[key] for key in truth),
            )  # fmt: skip
            disks = values.get("locator_disks", 1)
            output += struct.pack("<4sIQI", b"PK\6\7", 0, values.get("record", here), disks)
        values = truth | self.end
        output += struct.pack("<4s4H2IH", b"PK\5\6", *(values[key] for key in truth),
                              len(self.comment))  # fmt: skip
        return bytes(output) + self.comment + self.behind


def _stated(entry: ZipEntry) -> tuple[int, int, int]:
    crc = zlib.crc32(entry.content) if entry.crc is None else entry.crc
    packed = len(entry.packed()) if entry.packed_size is None else entry.packed_size
    return crc, packed, len(entry.content) if entry.size is None else entry.size


def _local(entry: ZipEntry) -> bytes:
    crc, packed, size = _stated(entry)
    flags = entry.flags
    if entry.descriptor is not None:
        flags |= 8
        crc, packed, size = entry.crc or 0, entry.packed_size or 0, entry.size or 0
    head = struct.pack(
        "<4s5H3I2H", b"PK\3\4", 20, flags, entry.method, 0, 33, crc, packed, size,
        len(entry.name), len(entry.extra),
    )  # fmt: skip
    return head + entry.name + entry.extra + entry.packed() + (entry.descriptor or b"")


def _central(entry: ZipEntry, place: int) -> bytes:
    crc, packed, size = zlib.crc32(entry.content), len(entry.packed()), len(entry.content)
    if entry.descriptor is None:
        crc, packed, size = _stated(entry)
    values: dict[str, Any] = {
        "name": entry.name, "flags": entry.flags | (8 if entry.descriptor is not None else 0),
        "method": entry.method, "crc": crc, "packed": packed, "size": size, "extra": entry.extra,
        "disk": 0, "offset": place, "comment": b"",
    } | entry.directory  # fmt: skip
    head = struct.pack(
        "<4s2B5H3I5H2I", b"PK\1\2", 20, entry.system, 20, values["flags"], values["method"], 0, 33,
        values["crc"], values["packed"], values["size"], len(values["name"]),
        len(values["extra"]), len(values["comment"]), values["disk"], 0, entry.mode << 16,
        values["offset"],
    )  # fmt: skip
    return b"".join([head, values["name"], values["extra"], values["comment"]])


def descriptor(content: bytes, packed: int, *, signature: bool = True, wide: bool = False) -> bytes:
    """Return a data descriptor: checksum and sizes after a member."""
    form = struct.Struct("<I2Q" if wide else "<3I")
    fields = form.pack(zlib.crc32(content), packed, len(content))
    return (b"PK\7\b" if signature else b"") + fields


def zip64_extra(*sizes: int) -> bytes:
    """Return the extra field for sizes of eight bytes."""
    return struct.pack(f"<2H{len(sizes)}Q", 1, 8 * len(sizes), *sizes)


def raw_zip(*entries: ZipEntry, **options: Any) -> bytes:
    """Return a zip of raw entries. `options` change other fields."""
    return RawZip(list(entries), **options).bytes()


def plain_zip(*, bulk: int = 1300) -> bytes:
    """Return a valid zip: a folder, stored and deflated files, a link, a comment."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zip_info("top/", 0o40755), b"")
        archive.writestr(zip_info("top/LICENSE"), b"read me\n")
        archive.writestr(zip_info("top/empty"), b"")
        stored = zip_info("top/stored")
        archive.writestr(stored, b"as it is", zipfile.ZIP_STORED)
        archive.writestr(zip_info("top/bin/x.dll", 0o100755), bytes(range(256)) * bulk)
        archive.writestr(zip_info("top/link", 0o120777), b"bin/x.dll")
        archive.writestr(zip_info("top/grün"), b"green")
        archive.comment = b"made for tests"
    return output.getvalue()


def zip_info(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    """Return the description of a member written on Unix."""
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info
