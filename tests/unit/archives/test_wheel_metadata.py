"""Tests of reading the metadata of wheels."""

import zipfile
from pathlib import Path

import pytest

from cudaredist.archives.wheel_metadata import metadata_in
from cudaredist.errors import InvalidArchiveError


@pytest.mark.parametrize(("folders", "reason"), [([], "no METADATA"), (["a", "b"], "2 METADATA")])
def test_wheel_without_exactly_one_metadata_is_refused(
    folders: list[str], reason: str, tmp_path: Path
) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in folders:
            archive.writestr(f"{name}-1.dist-info/METADATA", b"Name: a\n")
    with pytest.raises(InvalidArchiveError, match=reason):
        metadata_in(wheel, wheel.name)


def test_wheel_with_damaged_lzma_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a-1.dist-info/METADATA", b"Name: a\n" * 50)
    data = bytearray(wheel.read_bytes())
    begin = data.index(b"METADATA") + len(b"METADATA") + 9
    data[begin : begin + 4] = b"\xff" * 4
    wheel.write_bytes(data)
    with pytest.raises(InvalidArchiveError, match="not a valid wheel"):
        metadata_in(wheel, wheel.name)
