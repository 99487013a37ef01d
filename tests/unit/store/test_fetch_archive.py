"""Tests of fetching archives to files: limits, space, other runs and changed files."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from unittest.mock import Mock

import pytest
from support import server as faults
from support.archives import tar_member, tar_of, xz
from support.patching import Patch
from support.server import FaultServer

from cudaredist.archives.members import Members
from cudaredist.archives.open_archive import open_archive
from cudaredist.errors import ArchiveMismatchError, IntegrityError, TooLargeError, WriteError
from cudaredist.primitives import sha256_of
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.cache import Cache
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.kept_archive import PartialArchive

NAME = "x.tar.xz"
DATA = xz(tar_of(tar_member(content=b"content" * 999)))
SHA256 = sha256_of(DATA)
SIZED = ArchiveRequest(NAME, (NAME,), SHA256, len(DATA))
UNSIZED = SIZED._replace(size=None)


@pytest.fixture(params=["server", "folder"])
def base(request: pytest.FixtureRequest, server: FaultServer, tmp_path: Path) -> str:
    """Return a server or folder with the archive."""
    server.files[f"/{NAME}"] = DATA
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / NAME).write_bytes(DATA)
    return server.url if request.param == "server" else str(tmp_path / "source")


@contextlib.contextmanager
def service_of(
    base: str, cache: Path | None = None, max_archive: int = 1 << 30
) -> Iterator[ArchiveService]:
    settings = Settings(retries=0)
    with contextlib.closing(open_sources([base], settings)) as sources:
        of_run = Cache(cache) if cache is not None else None
        yield ArchiveService(chains={(): sources}, cache=of_run, max_archive=max_archive)


def names(members: Members) -> list[str]:
    return [member.name for member, _ in members]


@pytest.mark.parametrize("request_", [SIZED, UNSIZED, SIZED._replace(sha256=None)])
@pytest.mark.parametrize("keep_at", [None, "kept"])
def test_archive_is_read(
    base: str, tmp_path: Path, request_: ArchiveRequest, keep_at: str | None
) -> None:
    kept = None if keep_at is None else tmp_path / keep_at
    with service_of(base) as service:
        assert service.read(request_, names, keep_at=kept) == ["top/file"]
        assert service.fetched == len(DATA)
        assert kept is None or kept.read_bytes() == DATA


def test_wrong_archive_is_never_opened(base: str, patch: Patch) -> None:
    opened = patch.count("cudaredist.store.archive_service.open_archive")
    with service_of(base) as service:
        for wrong in (SIZED._replace(sha256="0" * 64), UNSIZED._replace(sha256="0" * 64)):
            with pytest.raises(ArchiveMismatchError, match="SHA-256"):
                service.read(wrong, names)
        with pytest.raises(ArchiveMismatchError, match="size"):
            service.read(SIZED._replace(size=1), names)
        assert opened.number == 0
        service.read(SIZED, names)
        assert opened.number == 1


@pytest.mark.parametrize("is_temporary", [False, True])
def test_endless_answer_ends_after_stated_size(
    server: FaultServer, tmp_path: Path, *, is_temporary: bool
) -> None:
    server.files[f"/{NAME}"] = DATA
    server.misbehave(f"/{NAME}", faults.two_gigabytes(with_length=False))
    kept = tmp_path / "kept"
    with service_of(server.url, max_archive=1 << 20) as service:
        for request, error in ((SIZED, ArchiveMismatchError), (UNSIZED, TooLargeError)):
            with pytest.raises(error, match="larger"):
                service.read(request, names, keep_at=kept, is_temporary=is_temporary)
        assert service.fetched < 2 << 20
    assert list(tmp_path.iterdir()) == []


def test_archive_of_unknown_size_is_limited_by_free_space(
    server: FaultServer, tmp_path: Path, patch: Patch
) -> None:
    server.files[f"/{NAME}"] = DATA
    server.misbehave(f"/{NAME}", faults.two_gigabytes(with_length=False))
    patch(shutil, "disk_usage", lambda _: Mock(free=1 << 20))
    with (
        service_of(server.url) as service,
        pytest.raises(WriteError, match="unknown size, 1,048,576 bytes free"),
    ):
        service.read(UNSIZED, names, keep_at=tmp_path / "kept")
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.part")) <= 1 << 20


def test_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, patch: Patch) -> None:
    (tmp_path / NAME).write_bytes(DATA)

    def open_and_change(name: str, file: BinaryIO) -> Members:
        with (tmp_path / NAME).open("ab") as other:
            other.write(b"more")
        return open_archive(name, file)

    with service_of(str(tmp_path)) as service:
        assert service.read(SIZED, names) == ["top/file"]
        patch("cudaredist.store.archive_service.open_archive", open_and_change)
        with pytest.raises(IntegrityError, match="changed while it was read"):
            service.read(SIZED, lambda _: None)


def test_same_bytes_that_another_run_writes_again_are_no_change(
    tmp_path: Path, patch: Patch
) -> None:
    path = tmp_path / NAME
    path.write_bytes(DATA)

    def open_and_rewrite(name: str, file: BinaryIO) -> Members:
        with path.open("r+b") as other:
            other.write(DATA)
        os.utime(path, ns=(0, 0))
        return open_archive(name, file)

    patch("cudaredist.store.archive_service.open_archive", open_and_rewrite)
    with service_of(str(tmp_path)) as service:
        assert service.read(SIZED, names) == ["top/file"]
        path.write_bytes(DATA)
        with pytest.raises(IntegrityError, match="changed while it was read"):
            service.read(SIZED._replace(sha256=None), names)


def test_archive_of_another_run_is_used_after_waiting(server: FaultServer, tmp_path: Path) -> None:
    server.files[f"/{NAME}"] = DATA
    kept = tmp_path / "kept"
    other = PartialArchive(kept)
    with service_of(server.url) as service:
        reading = threading.Thread(target=service.fetch, args=(SIZED, kept))
        reading.start()
        other.file.write(DATA)
        other.file.flush()
        other.complete()
        other.close()
        reading.join(300)
        assert service.fetched in {0, len(DATA)}
    assert kept.read_bytes() == DATA


def test_damaged_archive_of_another_run_is_fetched_again(
    server: FaultServer, tmp_path: Path, patch: Patch
) -> None:
    server.files[f"/{NAME}"] = DATA
    kept = tmp_path / "kept"
    original = PartialArchive._open

    def finish_first(self: PartialArchive) -> BinaryIO:
        if not finished:
            finished.append(1)
            kept.write_bytes(b"damaged")
            kept.chmod(0o600)
        return original(self)

    finished: list[int] = []
    patch(PartialArchive, "_open", finish_first)
    with service_of(server.url) as service:
        service.fetch(SIZED, kept)
    assert kept.read_bytes() == DATA


def test_unwritable_cache_does_not_fail_examination(server: FaultServer, tmp_path: Path) -> None:
    server.files[f"/{NAME}"] = DATA
    (tmp_path / "archives").write_bytes(b"a file where a folder should be")
    with service_of(server.url, cache=tmp_path) as service:
        assert service.examine(SIZED).is_read
