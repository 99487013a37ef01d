"""Tests of the service that reads archives."""

import contextlib
import random
import threading
from functools import cache, partial
from pathlib import Path

import pytest
from support.archives import ZipEntry, gz, raw_zip, tar_member, tar_of
from support.server import FaultServer, Handler

from cudaredist.archives.members import Members
from cudaredist.errors import InvalidArchiveError
from cudaredist.primitives import sha256_of
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.tasks import each

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


@pytest.mark.parametrize(
    ("jobs", "downloads", "expected"),
    [
        pytest.param(4, None, 2, id="at least two"),
        pytest.param(12, None, 3, id="a quarter of the jobs"),
        pytest.param(8, 3, 3, id="stated number"),
    ],
)
def test_archives_are_downloaded_so_many_at_a_time(
    server: FaultServer, tmp_path: Path, jobs: int, downloads: int | None, expected: int
) -> None:
    """Each answer waits for the others of the same time, or a limit ends the test."""
    together, active, peaks = threading.Barrier(expected), list[str](), list[int]()

    def answer(handler: Handler, data: bytes) -> None:
        active.append(handler.path)
        peaks.append(len(active))
        together.wait(300)
        active.remove(handler.path)
        handler.answer(200, data)

    names = [f"archive_{n}.tar.xz" for n in range(6)]
    for name in names:
        server.files[f"/{name}"] = name.encode()
        server.answers[f"/{name}"] = answer
    requests = [ArchiveRequest(x, (x,), sha256_of(x.encode()), len(x)) for x in names]
    with contextlib.closing(open_sources([server.url], Settings())) as sources:
        service = ArchiveService(chains={(): sources}, jobs=jobs, downloads=downloads)
        fetch = partial(_fetch_to, service, tmp_path)
        assert each(requests, fetch, service.threads, service.stop) == [None] * len(names)
    assert max(peaks) == expected


def _fetch_to(service: ArchiveService, folder: Path, request: ArchiveRequest) -> None:
    service.fetch(request, folder / request.name)
