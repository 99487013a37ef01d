"""Tests of the headers in archives."""

import io
import zipfile

import pytest
from support.archives import read_all
from support.patching import Patch
from support.releases import Files, packed

from cudaredist.archives.header_members import (
    header_path,
    headers_from_bytes,
    headers_in,
    headers_of_wheel,
    headers_to_bytes,
)
from cudaredist.errors import InvalidArchiveError

FILES = {
    "include/cuda.h": b"int f(void);",
    "include/nv/target": b"#pragma once",
    "include/README.txt": b"text",
    "lib/libcudart.so.12": b"binary",
}


def wheel(files: dict[str, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(f"nvidia/cuda_runtime/{path}", data)
    return file


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("top/include/cuda.h", "cuda.h"),
        ("nvidia/cu13/include/crt/host_config.h", "crt/host_config.h"),
        ("include/nv/target", "nv/target"),
        ("top/include/thrust/detail/a.inl", "thrust/detail/a.inl"),
        ("top/lib/cuda.h", None),
        ("top/include/", None),
        ("top/include/a.py", None),
        ("top/include/../../etc/passwd.h", None),
        ("top/include/a\nb.h", None),
        (f"top/include/{'a' * 300}.h", None),
    ],
)
def test_header_path_is_below_include(name: str, path: str | None) -> None:
    assert header_path(name) == path


def test_headers_of_both_kinds_of_archives_are_the_same() -> None:
    expected = {"cuda.h": FILES["include/cuda.h"], "nv/target": FILES["include/nv/target"]}
    name = "cuda_cudart-linux-x86_64-12.9.79-archive.tar.xz"
    members = ((member, iter((data,))) for member, data in read_all(name, packed(name, FILES)))
    assert headers_in(members, name) == expected
    assert headers_of_wheel(wheel(FILES), "a.whl") == expected
    assert headers_from_bytes(headers_to_bytes(expected)) == expected


def test_link_is_the_header_that_it_leads_to() -> None:
    name = "cudnn-linux-x86_64-9.9.0-archive.tar.xz"
    files: Files = {"include/cudnn_v9.h": b"int f(void);", "include/cudnn.h": "cudnn_v9.h"}
    members = ((member, iter((data,))) for member, data in read_all(name, packed(name, files)))
    headers = headers_in(members, name)
    assert headers == dict.fromkeys(("cudnn.h", "cudnn_v9.h"), b"int f(void);")


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("_FILE_LIMIT", 3, "header 'cuda.h' has more than 3 bytes"),
        ("_TOTAL_LIMIT", 12, "its headers have more than 12 bytes"),
        ("_COUNT_LIMIT", 1, "has more than 1 headers"),
    ],
)
def test_headers_beyond_a_limit_are_refused(
    limit: str, value: int, reason: str, patch: Patch
) -> None:
    patch(f"cudaredist.archives.header_members.{limit}", value)
    with pytest.raises(InvalidArchiveError, match=reason):
        headers_of_wheel(wheel(FILES), "a.whl")


def test_damaged_wheel_is_refused() -> None:
    data = bytearray(wheel(FILES).getvalue())
    data[60] ^= 0xFF
    with pytest.raises(InvalidArchiveError, match="not a valid wheel"):
        headers_of_wheel(io.BytesIO(bytes(data)), "a.whl")
    with pytest.raises(InvalidArchiveError, match="not a valid wheel"):
        headers_of_wheel(io.BytesIO(b"text"), "a.whl")
