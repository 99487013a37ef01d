"""Tests of makeself archives: verification, and hostile files."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runfiles import runfile

from cudaredist.archives.makeself import check_makeself
from cudaredist.errors import IntegrityError, InvalidArchiveError
from cudaredist.formats.runfile_records import RunfileName


def check(data: bytes) -> None:
    check_makeself("x.run", io.BytesIO(data))


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=4))
def test_valid_archive_is_accepted(parts: list[bytes]) -> None:
    check(runfile(*parts))


def test_large_part_is_accepted() -> None:
    check(runfile(bytes(700_000)))


def test_header_of_older_makeself_is_accepted() -> None:
    check(runfile(b"content", skip='offset=`head -n 6 "$0" | wc -c | tr -d " "`'))


def test_zero_md5_is_not_compared() -> None:
    check(runfile(b"content", md5="0" * 32))


SECOND = f"{'0' * 32} {'1' * 32}"
INVALID: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "truncated"),
    "other": (b"\x7fELF" + bytes(9000), "not a makeself script"),
    "shell": (b"#!/bin/sh\necho\n" + bytes(9000), "not a makeself script"),
    "cut": (runfile(b"content")[:40], "truncated"),
    "-1": (runfile(b"content")[:-1], "its script states"),
    "+1": (runfile(b"content") + b"x", "script states"),
    "md5": (runfile(b"a", md5="1" * 32), "MD5"),
    "second md5": (runfile(b"a", b"b", md5=SECOND), "MD5"),
    "huge": (runfile(b"a", sizes="9" * 400), "its script states 10,000"),
    "no sizes": (runfile(b"a", sizes="many"), "truncated"),
    "lines": (runfile(b"a", skip='skip="99999"'), "truncated"),
    "endless": (runfile(bytes(5 << 20), skip='skip="999999999"'), "is larger than"),
}


@pytest.mark.parametrize(("data", "message"), INVALID.values(), ids=INVALID)
def test_invalid_archive_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(IntegrityError if message == "MD5" else InvalidArchiveError, match=message):
        check(data)


@given(st.binary(max_size=6000))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidArchiveError):
        check(data)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("cuda_12.9.1_575.57.08_linux.run", ("12.9.1", "575.57.08", "linux-x86_64")),
        ("cuda_12.9.1_575.57.08_linux_sbsa.run", ("12.9.1", "575.57.08", "linux-sbsa")),
        ("cuda_11.8.0_520.61.05_linux_ppc64le.run", ("11.8.0", "520.61.05", "linux-ppc64le")),
        ("cuda_13.9.0_linux.run", ("13.9.0", None, "linux-x86_64")),
        ("cuda_12.9.1_576.57_windows.exe", None),
        ("cuda_012.9.1_575.57.08_linux.run", None),
        ("cuda_9999999999999999999.9.1_575.57.08_linux.run", None),
        ("cuda_12.9_575.57.08_linux.run", None),
        ("NVIDIA-Linux-x86_64-575.57.08.run", None),
        ("cuda_12.9.1_575.57.08_linux.run.part", None),
    ],
)
def test_runfile_name_contains_release_driver_and_platform(
    name: str, parts: tuple[str, str | None, str] | None
) -> None:
    assert RunfileName.parse(name) == parts
