"""Tests of the data folder: lock, full disks, parallel and failed runs."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run, Start
from support import server as faults
from support.factory import manifest
from support.patching import Patch
from support.running import FOLDER, expect_error, expect_output, files, held, lock, report
from support.server import FaultServer

from cudaredist.errors import WriteError
from cudaredist.locks import writing
from cudaredist.primitives import Version
from cudaredist.store.data_folder import ManifestFolder, Store


@pytest.mark.slow
def test_parallel_runs_with_different_caches_keep_all_lock_entries(
    server: FaultServer, start: Start, tmp_path: Path
) -> None:
    server.delay = 0.05
    for redist in ("cuda", "cudnn"):
        server.add_manifests(redist, {f"1.2.{n}": manifest(f"1.2.{n}", redist) for n in range(9)})
    runs = [
        start(
            *("download-manifests", "--base-url", server.url, "--version", "all"),
            *("--redist", redist, "--cache-dir", tmp_path / redist),
        )
        for redist in ("cuda", "cudnn")
    ]
    assert [process.wait() for process in runs] == [0, 0]
    entries = json.loads((tmp_path / "data/lock.json").read_bytes())["redists"]
    assert {name: len(labels) for name, labels in entries.items()} == {"cuda": 9, "cudnn": 9}


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_download_with_slow_disk_requests_next_manifest(
    fetch: Run, cuda: FaultServer, patch: Patch
) -> None:
    def both_requested() -> bool:
        return all(cuda.requests[f"{FOLDER}redistrib_12.9.{n}.json"] for n in (0, 1))

    def slow(_: int) -> None:
        if not wait_until(both_requested, seconds=20):
            raise OSError(5, "the disk was waited for")

    patch(os, "fsync", slow)
    expect_output(fetch("--redist", "cuda", "--version", "all", "--jobs", "1"), 0)
    assert set(lock()["cuda"]) == {"12.9.0", "12.9.1"}


def test_download_with_stalled_disk_stops_fetching(
    fetch: Run, server: FaultServer, patch: Patch
) -> None:
    labels = [f"1.2.{n}" for n in range(9)]
    server.add_manifests("cuda", {label: manifest(label) for label in labels})
    requests: list[int] = []

    def fetched() -> int:
        return sum(server.requests[f"{FOLDER}redistrib_{label}.json"] for label in labels)

    def stalled(_: int) -> None:
        if not requests:
            wait_until(lambda: fetched() > 4, seconds=1)
            requests.append(fetched())

    patch(os, "fsync", stalled)
    expect_output(fetch("--redist", "cuda", "--version", "all", "--jobs", "1"), 0)
    assert requests[0] <= 4
    assert fetched() == 9


def test_download_with_full_disk_fails_each_manifest(
    fetch: Run, cuda: FaultServer, patch: Patch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    patch(os, "fsync", full)
    result = expect_output(fetch("--version", "all", "--json"), 3)
    assert [outcome["status"] for outcome in report(result)["manifests"]] == ["failed", "failed"]
    assert "No space left on device" in result.stderr
    assert files() == set()


def test_download_with_internal_error_in_writer_exits_70(
    fetch: Run, cuda: FaultServer, patch: Patch
) -> None:
    def broken(*_: object) -> bool:
        raise ZeroDivisionError

    patch(ManifestFolder, "write", broken)
    expect_error(fetch(), 70, "ZeroDivisionError")


def test_lock_that_is_a_folder_exits_3(fetch: Run, cuda: FaultServer) -> None:
    Path("data/manifests").mkdir(parents=True)
    Path("data/lock.json/x").mkdir(parents=True)
    expect_error(fetch("--json"), 3, "cannot read")


def test_unwritable_lock_is_reported_with_written_manifests(
    fetch: Run, cuda: FaultServer, patch: Patch
) -> None:
    def refuse(self: Store, entries: object) -> bool:
        raise WriteError(self.lock_path, PermissionError(13, "Permission denied"))

    patch(Store, "update_lock", refuse)
    result = expect_output(fetch("--json"), 3)
    assert report(result)["manifests"][0]["status"] == "written"
    assert "cannot write" in report(result)["errors"][0]["message"]
    assert "error: lock: cannot write" in result.stderr
    assert held().exists()


def test_broken_lock_is_not_replaced(fetch: Run, cuda: FaultServer) -> None:
    Path("data/manifests").mkdir(parents=True)
    Path("data/lock.json").write_text('{"schema_version": 1, "redists": {"cuda": 1}}')
    expect_error(fetch(), 5, "redists.cuda")
    assert files() == {"data/lock.json"}


def test_temporary_files_of_killed_run_are_removed(fetch: Run, cuda: FaultServer) -> None:
    held().parent.mkdir(parents=True)
    leftover = held().with_name(".redistrib_12.9.1.json.0a1b2c3d4e5f.tmp")
    leftover.write_bytes(b"half")
    fetch()
    assert not leftover.exists()


UNREACHABLE = "--base-url http://127.0.0.1:9"


@pytest.fixture(
    params=[
        (None, None, UNREACHABLE),
        (None, None, "--base-url URL --redist cuda --version 1.2.3"),
        (".json", faults.status(404), "--base-url URL"),
        (".json", faults.body(b"{"), "--base-url URL"),
        ("/redist/", faults.status(404), "--base-url URL --redist cuda"),
    ],
    ids=["unreachable", "unlisted", "without manifests", "broken manifests", "without listing"],
)
def without_result(request: pytest.FixtureRequest, cuda: FaultServer) -> list[str]:
    """Return options of a run that gets no manifest."""
    suffix, behaviour, options = request.param
    if suffix is not None:
        cuda.misbehave([path for path in cuda.files if path.endswith(suffix)], behaviour)
    return ["--retries", "0", *options.replace("URL", cuda.url).split()]


@pytest.mark.parametrize("command", ["download-manifests", "bump"])
def test_run_without_manifests_creates_nothing(
    run: Run, without_result: list[str], command: str
) -> None:
    more = ["--redist", "cuda"] if command == "bump" and "--redist" not in without_result else []
    assert run(command, *without_result, *more).exit_code in {3, 5}
    assert not list(Path().iterdir())


def test_run_without_manifests_changes_no_data_folder(run: Run, without_result: list[str]) -> None:
    Path("data/policy").mkdir(parents=True)
    result = run("download-manifests", *without_result, "--data-dir", "data")
    assert result.exit_code in {3, 5}
    assert [str(path) for path in Path().rglob("*")] == ["data", "data/policy"]


def test_positional_form_without_manifests_creates_nothing(run: Run, cuda: FaultServer) -> None:
    names = [f"{FOLDER}redistrib_{label}.json" for label in ("12.9.0", "12.9.1")]
    cuda.misbehave(names, faults.status(404))
    url = f"{cuda.url}/compute/cuda/redist"
    assert run("download-manifests", "--retries", "0", url, "new/folder").exit_code == 3
    assert not list(Path().iterdir())


def test_shipped_data_is_read_after_run_without_manifests(run: Run) -> None:
    before = run("versions", "--json").stdout
    assert run("download-manifests", *UNREACHABLE.split(), "--retries", "0").exit_code == 3
    assert run("versions", "--json").stdout == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_run_interrupted_before_first_manifest_creates_nothing(
    cuda: FaultServer, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    cuda.misbehave([path for path in cuda.files if path.endswith(".json")], faults.silent)
    process = start("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    deadline = time.monotonic() + 240
    while not cuda.count(".json"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=240)
    assert process.returncode == (130 if number == signal.SIGINT else -9)
    assert not (tmp_path / "data").exists()


INTERRUPTED = """
import os, signal, sys, time
from cudaredist.__main__ import main
step, started = sys.argv.pop(1), []
def note(event, about):
    if event == step and "/.redistrib_" in str(about) and not started:
        started.append(event)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
fsync = os.fsync
os.fsync = lambda file: note("fsync", os.readlink(f"/proc/self/fd/{file}")) or fsync(file)
sys.addaudithook(note)
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["open", "fsync", "os.rename"])
def test_run_interrupted_twice_while_writing_leaves_no_temporary_file(
    server: FaultServer, tmp_path: Path, step: str
) -> None:
    server.add_manifests("cuda", {"12.9.1": manifest()})
    program = [sys.executable, "-c", INTERRUPTED, step, "download-manifests"]
    done = subprocess.run([*program, "--base-url", server.url], cwd=tmp_path, check=False)
    assert done.returncode == 130
    assert not list(tmp_path.rglob("*.tmp"))


ENDING = """
import threading
from pathlib import Path
from cudaredist import locks
begun, ending, wait_for = threading.Event(), threading.Event(), locks._writes.wait_for
def wait(*arguments):
    ending.set()
    return wait_for(*arguments)
locks._writes.wait_for = wait
def write_later():
    with locks.one_write():
        Path("later.tmp").touch()
def write():
    with locks.one_write():
        begun.set()
        ending.wait()
        later = threading.Thread(target=write_later, daemon=True)
        later.start()
        later.join(0.5)
threading.Thread(target=write, daemon=True).start()
begun.wait()
locks.exit_interrupted(KeyboardInterrupt())
"""


def test_interrupted_run_begins_no_other_writes(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], cwd=tmp_path, check=False)
    assert done.returncode == 130
    assert not list(tmp_path.iterdir())


def test_run_waiting_for_run_without_writes_creates_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("WARNING", "cudaredist")
    # Commands of other tests in this process configured their own handler.
    monkeypatch.setattr(logging.getLogger("cudaredist"), "propagate", True)
    root = tmp_path / "data"
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        begin = first.enter_context(writing(root))
        waiting = threading.Thread(target=second.enter_context(writing(root)))
        begin()
        waiting.start()
        while "waiting for another run" not in caplog.text:
            assert waiting.is_alive()
            time.sleep(0.01)
        first.close()
        waiting.join(300)
        (root / "file").touch()
    assert (root / "file").exists()


def test_run_without_writes_keeps_empty_folders_of_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "data/manifests/cuda"
    with writing(tmp_path / "data"):
        folder.mkdir(parents=True)
    assert folder.is_dir()


# -- the lock of an earlier version, in the folder of manifests


@pytest.fixture
def old_lock(cuda: FaultServer, fetch: Run) -> Path:
    """Download a manifest, and move the lock to its earlier path."""
    assert fetch("--redist", "cuda", "--version", "12.9.0").exit_code == 0
    old = Path("data/manifests/lock.json")
    Path("data/lock.json").rename(old)
    return old


def test_lock_of_earlier_version_is_read(old_lock: Path, cuda: FaultServer, run: Run) -> None:
    before = old_lock.read_bytes()
    path = held("12.9.0")
    path.write_bytes(path.read_bytes() + b"\n\n")
    check = ("check", "--base-url", cuda.url, "--redist", "cuda", "--json")
    kinds = [one["kind"] for one in report(run(*check))["findings"]]
    assert "edited-locally" in kinds
    assert (old_lock.read_bytes(), Path("data/lock.json").exists()) == (before, False)


def test_lock_of_earlier_version_moves_with_next_change(old_lock: Path, fetch: Run) -> None:
    assert fetch("--redist", "cuda", "--version", "12.9.1").exit_code == 0
    assert not old_lock.exists()
    assert sorted(lock()["cuda"]) == ["12.9.0", "12.9.1"]
    assert {path.name for path in Path("data/manifests").iterdir()} == {"cuda"}


def test_new_lock_wins_after_an_interrupted_move(old_lock: Path, fetch: Run) -> None:
    Path("data/lock.json").write_bytes(old_lock.read_bytes())
    old_lock.write_text("not JSON")
    assert fetch("--redist", "cuda", "--version", "12.9.1").exit_code == 0
    assert not old_lock.exists()
    assert sorted(lock()["cuda"]) == ["12.9.0", "12.9.1"]


def test_record_of_interrupted_bump_is_not_in_the_folder_of_manifests(run: Run) -> None:
    store = Store(Path("data"))
    store.write_pending([("cuda", Version.parse("12.9.1"))])
    assert files() == {"data/.bump"}
    assert store.pending() == {("cuda", Version.parse("12.9.1"))}


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_download_to_checkout_of_nixpkgs_follows_its_form(
    fetch: Run, cuda: FaultServer, tmp_path: Path, end: bytes
) -> None:
    assert cuda.url
    data = tmp_path / "nixpkgs/pkgs/development/cuda-modules/_cuda"
    folder = data / "manifests/cuda"
    options = ("--redist", "cuda", "--version", "all", "--data-dir", data)
    expect_output(fetch(*options), 0)
    published = folder / "redistrib_12.9.1.json"
    assert published.read_bytes().endswith(b"}\n")
    published.write_bytes(published.read_bytes().rstrip(b"\n") + end)
    (folder / "redistrib_12.9.0.json").unlink()
    expect_output(fetch(*options), 0)
    assert (folder / "redistrib_12.9.0.json").read_bytes().endswith(b"}" + end)
    again = expect_output(fetch(*options), 0)
    assert "2 unchanged" in again.stdout
    assert not (data / "lock.json").exists()
