"""Releases of NVIDIA's libraries that programs contain copies of."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.programs import audit_data, defined, file, known, table

from cudaredist.binaries.file_facts import DeviceImages
from cudaredist.programs.copied_releases import originals_of

JPEG = "libnvjpeg.so.12"
VERSIONS = {"12.0.1": "12.0.0.28", "12.1.0": "12.1.0.39", "12.1.1": "12.1.1.14"}
LIBRARIES = [
    known(JPEG, label, "libnvjpeg", "nvidia-nvjpeg-cu12", version=version)
    for label, version in VERSIONS.items()
]
TABLES = {JPEG: table(JPEG, {"12.0.1": ["a"], "12.1.0": ["a", "b"], "12.1.1": ["a", "b"]})}
CODE = {"12.1.0": {frozenset({("sm_80", 10)})}, "12.1.1": {frozenset({("sm_80", 20)})}}
RENAMED = "x.libs/libnvjpeg.f00ca762.so.12"
WITH_VERSION = "x.libs/libnvjpeg-f00ca762.so.12.1.0.39"


@pytest.mark.parametrize(
    ("path", "exports", "size", "labels"),
    [
        (RENAMED, ["a"], 0, ["12.0.1"]),
        (RENAMED, ["a", "b"], 20, ["12.1.1"]),
        (RENAMED, ["a", "b"], 30, []),
        (RENAMED, ["a", "b", "c"], 20, []),
        (RENAMED, ["b"], 20, []),
        (WITH_VERSION, ["a", "b"], 10, ["12.1.0"]),
        (WITH_VERSION.replace(".39", ".40"), ["a", "b"], 10, ["12.1.0"]),
    ],
    ids=[
        "symbols",
        "device code",
        "other device code",
        "other symbol",
        "fewer symbols",
        "version",
        "unknown version",
    ],
)
def test_copy_is_of_the_release_with_its_symbols_and_device_code(
    path: str, exports: Sequence[str], size: int, labels: Sequence[str]
) -> None:
    """torchvision 0.19.1 for CUDA 12.1 contains nvJPEG of 12.1.1, by its device code."""
    images = DeviceImages(sizes={"sm_80": (size, size)}, modules={}) if size else None
    copy = file(path, soname=path.rpartition("/")[2], symbols=defined(*exports), images=images)
    data = audit_data(LIBRARIES, TABLES)._replace(device_code=lambda _: CODE)
    assert [str(library.label) for library in originals_of(copy, data)] == labels


def test_copy_is_of_all_releases_with_its_symbols_if_the_device_code_is_unknown() -> None:
    copy = file(RENAMED, soname=JPEG, symbols=defined("a", "b"))
    data = audit_data(LIBRARIES, TABLES)
    assert [str(library.label) for library in originals_of(copy, data)] == ["12.1.0", "12.1.1"]


def test_release_of_a_copy_without_read_symbols_is_unknown() -> None:
    copy = file(RENAMED, soname=JPEG)
    copy = replace(copy, binary=replace(copy.binary, unread=("symbols",)))
    assert originals_of(copy, audit_data(LIBRARIES, TABLES)) == ()
