"""Tests of archives that process-manifests keeps and resumes."""

import contextlib
import errno
import io
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
from conftest import Run, Start
from support import server as faults
from support.patching import Patch
from support.processing import FEATURES, FOLDER, LINUX, archives_read
from support.releases import put
from support.running import expect_error, expect_output, report
from support.server import FaultServer

from cudaredist.errors import CannotResumeError
from cudaredist.store.kept_archive import PartialArchive

MANIFEST = f"{FOLDER}redistrib_12.9.1.json"
ONLY = ("--package", "cuda_cudart", "--platform", "linux-x86_64")


def part_of(server: FaultServer, tmp_path: Path) -> Path:
    """Return the path of the partial archive and create its folder."""
    manifest = json.loads(server.files[MANIFEST])
    sha256: str = manifest["cuda_cudart"]["linux-x86_64"]["sha256"]
    part = tmp_path / "cache" / "archives" / sha256[:2] / f"{sha256}.tar.xz.part"
    part.parent.mkdir(parents=True)
    return part


@pytest.mark.slow
@pytest.mark.parametrize("has_locks", [True, False])
def test_parallel_runs_keep_one_archive(
    cuda_archives: FaultServer,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_locks: bool,
) -> None:
    if not has_locks:
        put(tmp_path, {"sitecustomize.py": b"import fcntl\nfcntl.flock = lambda *_: None\n"})
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("one", "two"):
        put(
            tmp_path / name / "manifests/cuda",
            {"redistrib_12.9.1.json": cuda_archives.files[MANIFEST]},
        )
    cuda_archives.delay = 1.0
    only = (*ONLY, "--keep-archives")
    runs = [
        start("process-manifests", "--base-url", cuda_archives.url, "--data-dir", name, *only)
        for name in ("one", "two")
    ]
    for process in runs:
        _, stderr = process.communicate()
        assert process.returncode == 0, stderr
    assert cuda_archives.count(".tar.xz") == 1 or not has_locks
    (archive,) = stored(tmp_path)
    assert archive.read_bytes() == cuda_archives.files[LINUX]


def test_complete_partial_archive_is_not_downloaded_again(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    part = part_of(cuda_archives, tmp_path)
    part.write_bytes(cuda_archives.files[LINUX])
    assert process(*ONLY, "--keep-archives").exit_code == 0
    assert archives_read(cuda_archives) == 0
    assert part.with_suffix("").exists()


def test_unwritable_cache_fails_kept_archive(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/archives").write_bytes(b"a file where a folder should be")
    result = process("--keep-archives")
    assert result.exit_code == 3
    assert "hint: select another folder, or change its permissions: `ls -ld " in result.stderr


def test_kept_archives_are_read_without_network(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    process("--keep-archives")
    archives = sorted((tmp_path / "cache" / "archives").rglob("*.*"))
    assert len(archives) == 5
    good, requests = FEATURES.read_bytes(), cuda_archives.requests.copy()
    shutil.rmtree(tmp_path / "cache" / "facts")
    FEATURES.unlink()
    result = expect_output(process("--max-download", "0", "--json"), 0)
    assert report(result)["fetched_bytes"] == 0
    assert cuda_archives.requests == requests
    assert FEATURES.read_bytes() == good


def test_broken_kept_archive_is_downloaded_again(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    process("--keep-archives", "--package", "cuda_cccl", "--platform", "linux-sbsa")
    archive = next((tmp_path / "cache" / "archives").rglob("*.tar.xz"))
    good = archive.read_bytes()
    archive.write_bytes(b"broken")
    shutil.rmtree(tmp_path / "cache" / "facts")
    FEATURES.unlink()
    assert process("--package", "cuda_cccl", "--platform", "linux-sbsa").exit_code == 0
    assert archive.read_bytes() == good


def test_partial_kept_archive_is_resumed(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    data = cuda_archives.files[LINUX]
    part = part_of(cuda_archives, tmp_path)
    part.write_bytes(data[:200])
    assert process(*ONLY, "--keep-archives").exit_code == 0
    assert cuda_archives.headers[-1][1]["Range"] == "bytes=200-"
    assert part.with_suffix("").read_bytes() == data
    assert not part.exists()


@pytest.mark.parametrize("options", [(), ("--keep-archives",)])
@pytest.mark.parametrize("content", [b"x" * 200, b"x" * 100_000])
def test_wrong_partial_archive_is_downloaded_again(
    cuda_archives: FaultServer,
    process: Run,
    tmp_path: Path,
    content: bytes,
    options: tuple[str, ...],
) -> None:
    part_of(cuda_archives, tmp_path).write_bytes(content)
    assert process(*ONLY, *options).exit_code == 0
    kept = [cuda_archives.files[LINUX]] if options else []
    assert [path.read_bytes() for path in stored(tmp_path)] == kept


# -- archives that are not kept


def stored(tmp_path: Path) -> list[Path]:
    """Return the complete and partial archives in the cache."""
    return [path for path in (tmp_path / "cache/archives").rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_archive_is_resumed_by_next_run(
    cuda_archives: FaultServer, start: Start, process: Run, tmp_path: Path, number: signal.Signals
) -> None:
    data = cuda_archives.files[LINUX]
    half = len(data) // 2
    put(tmp_path / "data/manifests/cuda", {"redistrib_12.9.1.json": cuda_archives.files[MANIFEST]})
    cuda_archives.misbehave(LINUX, faults.stalling_after(half), times=1)
    running = start("process-manifests", "--base-url", cuda_archives.url, *ONLY)
    while [path.stat().st_size for path in stored(tmp_path)] != [half]:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    running.communicate(timeout=300)
    result = expect_output(process(*ONLY, "--json"), 0)
    assert cuda_archives.headers[-1][1]["Range"] == f"bytes={half}-"
    assert report(result)["fetched_bytes"] == len(data) - half
    assert stored(tmp_path) == []


class FullDisk(io.FileIO):
    """A file on a disk without space."""

    def write(self, _: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("options", [(), ("--keep-archives",)])
def test_full_cache_disk_is_reported(
    cuda_archives: FaultServer, process: Run, tmp_path: Path, patch: Patch, options: tuple[str, ...]
) -> None:
    part = part_of(cuda_archives, tmp_path)
    patch(PartialArchive, "_open", lambda _: FullDisk(part, "a+"))
    result = expect_error(process(*ONLY, *options), 3, "No space left on device")
    assert f"free disk space: `df -h {part.parent}`" in result.stderr


@pytest.mark.parametrize("options", [(), ("--keep-archives",)])
def test_archive_larger_than_free_space_is_refused_before_it_is_written(
    cuda_archives: FaultServer, process: Run, tmp_path: Path, patch: Patch, options: tuple[str, ...]
) -> None:
    size = len(cuda_archives.files[LINUX])
    part = part_of(cuda_archives, tmp_path)
    patch(shutil, "disk_usage", lambda _: Mock(free=size - 1))
    result = process(*ONLY, *options)
    assert result.exit_code == 3
    assert f"{size:,} bytes required, {size - 1:,} bytes free" in result.stderr
    assert f"`df -h {part.parent}`" in result.stderr
    assert part.read_bytes() == b""
    part.write_bytes(cuda_archives.files[LINUX][:1])
    assert process(*ONLY, *options).exit_code == 0


def test_archive_locked_by_another_run_is_downloaded_separately(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    part = part_of(cuda_archives, tmp_path)
    with contextlib.closing(PartialArchive(part.with_suffix(""))):
        assert process(*ONLY).exit_code == 0
    assert archives_read(cuda_archives) == 1


# -- network file systems without locks between machines


def test_archive_that_another_run_changed_does_not_get_its_name(tmp_path: Path) -> None:
    """Without locks between machines, two runs may write to one file."""
    path = tmp_path / "x.whl"
    with contextlib.closing(PartialArchive(path)) as archive:
        archive.file.write(b"whole")
        archive.file.flush()
        archive.part.unlink()
        archive.part.write_bytes(b"whole and more")
        with pytest.raises(CannotResumeError):
            archive.complete()
        archive.part.unlink()
    assert list(tmp_path.iterdir()) == []


def refused(number: int) -> Callable[..., None]:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return flock


@pytest.fixture(params=["ENOLCK", "EOPNOTSUPP", "one machine only"])
def _no_locks(request: pytest.FixtureRequest, patch: Patch) -> None:
    """Let locks fail or affect one machine only, and let new files replace others."""
    fcntl = pytest.importorskip("fcntl")
    number = getattr(errno, request.param, None)
    patch(fcntl, "flock", refused(number) if number else lambda *_: None)
    open_file = Path.open

    def open_any(path: Path, mode: str = "r", *more: Any, **options: Any) -> Any:
        return open_file(path, mode.replace("x", "w"), *more, **options)

    patch(Path, "open", open_any)


def replace(part: Path) -> None:
    part.unlink()
    part.write_bytes(b"x" * 300)


def finish_another(part: Path) -> None:
    part.rename(part.with_suffix(""))


def finish_own(part: Path) -> None:
    """Replace the partial archive with a complete one, as another run does."""
    part.unlink()
    part.with_suffix("").write_bytes(b"damaged")


def append(part: Path) -> None:
    with part.open("ab") as file:
        file.write(b"x" * 100_000)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_locks")
@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("meddle", [Path.unlink, replace, finish_another, finish_own, append])
def test_run_on_another_machine_does_not_damage_archive(
    cuda_archives: FaultServer,
    process: Run,
    tmp_path: Path,
    meddle: Callable[[Path], None],
    *,
    is_kept: bool,
) -> None:
    data, part = cuda_archives.files[LINUX], part_of(cuda_archives, tmp_path)
    half = len(data) // 2

    def stop_in_the_middle(handler: faults.Handler, _: bytes) -> None:
        handler.begin(200, len(data))
        handler.wfile.write(data[:half])
        handler.wfile.flush()
        while part.stat().st_size < half:
            time.sleep(0.01)
        meddle(part)
        handler.wfile.write(data[half:])

    cuda_archives.misbehave(LINUX, stop_in_the_middle, times=1)
    expect_output(process(*ONLY, *(["--keep-archives"] if is_kept else [])), 0)
    features = FEATURES.read_bytes()
    shutil.rmtree(tmp_path / "cache" / "facts")
    FEATURES.unlink()
    if is_kept:
        assert part.with_suffix("").read_bytes() == data
        assert not part.exists()
    assert process(*ONLY).exit_code == 0
    assert FEATURES.read_bytes() == features


def test_file_of_another_run_is_kept_after_own_one_was_forgotten(tmp_path: Path) -> None:
    archive = PartialArchive(tmp_path / "x.whl")
    replace(archive.part)
    archive.forget()
    archive.forget()
    assert archive.part.read_bytes() == b"x" * 300


@pytest.mark.parametrize("name", ["read", "write"])
def test_stale_partial_archive_is_downloaded_again(
    cuda_archives: FaultServer,
    process: Run,
    tmp_path: Path,
    patch: Patch,
    name: str,
) -> None:
    part = part_of(cuda_archives, tmp_path)
    stale = io.FileIO(part, "w+")
    setattr(stale, name, refused(errno.ESTALE))
    files = iter([stale])
    open_part = PartialArchive._open
    patch(PartialArchive, "_open", lambda self: next(files, None) or open_part(self))
    assert process(*ONLY, "--keep-archives").exit_code == 0
    assert part.with_suffix("").read_bytes() == cuda_archives.files[LINUX]
