"""Tests of the service that reads archives."""

import contextlib
import random
from functools import cache
from pathlib import Path

import pytest
from support.archives import ZipEntry, gz, raw_zip, tar_member, tar_of

from cudaredist.archives.members import Members
from cudaredist.errors import InvalidArchiveError
from cudaredist.primitives import sha256_of
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest

NAMES = ("x.zip", "x.whl", "x.tar", "x.tar.gz")


@cache
def damaged_archive(name: str) -> bytes:
    """Return an archive with wrong checksums."""
    bulk = random.Random(1).randbytes(3 << 20)
    if ".tar" not in name:
        return raw_zip(ZipEntry(b"top/file", bulk, crc=1), ZipEntry(b"top/other", bulk))
    tar = tar_of(tar_member(content=bulk), tar_member("top/other", bulk))
    data = tar.replace(b"top/other", b"top/ether")
    return gz(data) if name.endswith(".gz") else data


def read_members(members: Members) -> None:
    for _, content in members:
        for _ in content:
            pass


@pytest.mark.parametrize("is_kept", [False, True], ids=["at the source", "kept"])
@pytest.mark.parametrize("name", NAMES)
def test_invalid_archive_with_right_hash_is_the_publishers_fault(
    tmp_path: Path, name: str, *, is_kept: bool
) -> None:
    """A kept copy stays."""
    data = damaged_archive(name)
    archive, kept = tmp_path / name, tmp_path / "kept"
    archive.write_bytes(data)
    kept.write_bytes(data)
    kept.chmod(0o600)
    request = ArchiveRequest(name, (name,), sha256_of(data), len(data))
    with contextlib.closing(open_sources([str(tmp_path)], Settings())) as sources:
        service = ArchiveService(chains={(): sources})
        with pytest.raises(InvalidArchiveError):
            service.read(request, read_members, keep_at=kept if is_kept else None)
    assert kept.read_bytes() == data
