"""Properties of reading any archive, whole or damaged."""

import contextlib
import io
import lzma
import stat
import tarfile
import zipfile

import pytest
from conftest import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import archives
from support.archives import (
    COMPRESSIONS,
    ZipEntry,
    descriptor,
    raw_zip,
    read_all,
    read_with_tarfile,
    read_with_zipfile,
)

from cudaredist.archives.decompress import Decompressor
from cudaredist.archives.members import Limits, Member
from cudaredist.errors import InvalidArchiveError

Read = list[tuple[Member, bytes]]

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)

PACKINGS = COMPRESSIONS | {
    ".Tar.xz": lambda tar: archives.xz(tar[:700]) + bytes(8) + archives.xz(tar[700:]),
}

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
contents = st.one_of(
    st.binary(max_size=2000),
    st.builds(lambda data, times: data * times, st.binary(min_size=1, max_size=99), st.just(2000)),
)
members = st.lists(st.tuples(paths, contents, st.integers(0, 0o7777)), max_size=6)


def tar_of(entries: list[tuple[str, bytes, int]], form: int) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=form) as tar:
        for name, content, mode in entries:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            # Skip members that ustar cannot store.
            with contextlib.suppress(ValueError):
                tar.addfile(info, io.BytesIO(content))
    return output.getvalue()


def zip_of(entries: list[tuple[str, bytes, int]], method: int) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, content, mode in entries:
            info = archives.zip_info(name, stat.S_IFREG | mode)
            info.compress_type = method
            with contextlib.suppress(UserWarning):
                archive.writestr(info, content)
    return output.getvalue()


@given(members, st.sampled_from(FORMATS), st.sampled_from(sorted(PACKINGS)))
def test_any_tar_is_read(entries: list[tuple[str, bytes, int]], form: int, suffix: str) -> None:
    tar = tar_of(entries, form)
    assert read_all(f"a{suffix}", PACKINGS[suffix](tar)) == read_with_tarfile(tar)


@given(members, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_any_zip_is_read(entries: list[tuple[str, bytes, int]], method: int) -> None:
    once = list({name: (name, *rest) for name, *rest in entries}.values())
    data = zip_of(once, method)  # type: ignore[arg-type]
    assert read_all("a.zip", data) == read_with_zipfile(data)


# -- xz

xz_streams = st.builds(
    lambda data, check: archives.xz(data, check=check),
    contents,
    st.sampled_from([lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64, lzma.CHECK_SHA256]),
)
xz_padding = st.sampled_from([0, 0, 4, 8, 400, 1, 6])
xz_files = st.lists(st.tuples(xz_streams, xz_padding), min_size=1, max_size=3).map(
    lambda pairs: b"".join(stream + bytes(padding) for stream, padding in pairs)
)
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.binary(max_size=6)), max_size=3)


def edited(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    damaged = bytearray(data)
    for position, dropped, inserted in changes:
        at = int(position * len(damaged))
        damaged[at : at + dropped] = inserted
    return bytes(damaged)


def unpacked(data: bytes) -> bytes | None:
    """Return the content of an xz file, None if it is refused."""
    try:
        return b"".join(Decompressor("a.tar.xz", "xz", io.BytesIO(data), Limits()).chunks())
    except InvalidArchiveError:
        return None


def read_with_liblzma(data: bytes) -> bytes | None:
    """Return the content of an xz file as read by liblzma."""
    output = b""
    while data:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        try:
            output += decoder.decompress(data)
        except lzma.LZMAError:
            return None
        rest = decoder.unused_data.lstrip(b"\0")
        if not decoder.eof or (len(decoder.unused_data) - len(rest)) % 4:
            return None
        data = rest
    return output


@given(xz_files, edits)
def test_xz_is_read_or_refused_as_by_liblzma(
    data: bytes, changes: list[tuple[float, int, bytes]]
) -> None:
    assert unpacked(data) == read_with_liblzma(data)
    damaged = edited(data, changes)
    if damaged:
        assert unpacked(damaged) == read_with_liblzma(damaged)


# -- damage

SAMPLES = {
    **{f"a{suffix}": pack(archives.plain_tar(bulk=20)) for suffix, pack in PACKINGS.items()},
    "pax.tar": archives.plain_tar(tarfile.PAX_FORMAT, bulk=20),
    "a.zip": archives.plain_zip(bulk=20),
    "behind.zip": raw_zip(
        ZipEntry(descriptor=descriptor(b"content", len(ZipEntry().packed()))), ZipEntry(name=b"b")
    ),
    "wide.zip": raw_zip(ZipEntry(extra=archives.zip64_extra(7, 9)), zip64=True),
}
SMALL = {
    "a.tar.xz": archives.xz(archives.tar_of(archives.tar_member(content=b"content" * 9))),
    "a.tar.zst": archives.zst(archives.tar_of(archives.tar_member(content=b"content" * 9))),
    "a.tar.gz": archives.gz(archives.tar_of(archives.tar_member(content=b"content" * 9))),
    "a.zip": raw_zip(ZipEntry(), ZipEntry(name=b"top/b", method=0), zip64=True),
}
LIMITS = Limits(ratio=10, floor=4 << 20, members=1000)


def outcome(name: str, data: bytes) -> Read | str:
    """Return the contents of an archive, or "refused".

    Any other outcome fails the test."""
    try:
        return read_all(name, data, limits=LIMITS)
    except InvalidArchiveError:
        return "refused"


@settings(examples(3), suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(st.sampled_from(sorted(SAMPLES)), edits)
def test_damaged_archive_is_read_or_refused(
    name: str, changes: list[tuple[float, int, bytes]]
) -> None:
    assert outcome(name, edited(SAMPLES[name], changes))


@pytest.mark.parametrize("name", sorted(SAMPLES))
@given(position=st.floats(0, 1, exclude_max=True))
def test_truncated_archive_is_refused(name: str, position: float) -> None:
    data = SAMPLES[name]
    # A tar ends with blocks of NULs, and the first two are its end mark.
    length = len(data.rstrip(b"\0")) + 512 if name.endswith(".tar") else len(data)
    with pytest.raises(InvalidArchiveError):
        read_all(name, data[: int(position * length)])


@pytest.mark.parametrize("name", sorted(SMALL))
def test_flipped_content_bit_is_refused(name: str) -> None:
    data, whole = SMALL[name], outcome(name, SMALL[name])
    assert whole != "refused"
    # Each byte has a change, and each bit of a byte.
    for bit in range(0, len(data) * 8, 3):
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        # Changes of dates and versions do not change the contents.
        result = outcome(name, bytes(broken))
        assert result in ("refused", whole) or _differs_in_kind_only(result, whole)


def _differs_in_kind_only(result: Read | str, whole: Read | str) -> bool:
    """Check if only fields of a zip's directory differ: kinds, modes and targets."""
    return (
        not isinstance(result, str)
        and not isinstance(whole, str)
        and [(member.name, content) for member, content in result]
        == [(member.name, content) for member, content in whole]
    )
