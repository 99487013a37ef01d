"""Tests of later materialize runs: repeated, resumed, offline and failing."""

import json
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from conftest import Run
from support import server as faults
from support.patching import Patch
from support.running import expect_error, expect_output
from support.server import FaultServer
from support.toolkits import MadeSet, Materialize, assert_nothing_left, listing, modes, put_packages

from cudaredist.archives.members import Members
from cudaredist.archives.open_archive import open_archive
from cudaredist.primitives import sha256_of

pytestmark = pytest.mark.usefixtures("made_set")

# -- repeated runs


def test_second_materialize_sends_no_request_and_changes_nothing(
    materialize: Materialize, run: Run, server: FaultServer, patch: Patch
) -> None:
    server.add_folder(Path("source"))
    hashed = patch.count("cudaredist.commands.materialize.root.hash_of")
    assert materialize(base=server.url).exit_code == 0
    assert run("materialize", "--output", "root", "--verify").exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in Path("root").rglob("*")}
    server.requests.clear()
    number = hashed.number
    result = expect_output(materialize(base=server.url), 0)
    assert result.stdout.startswith("root: unchanged; CUDA 13.0.2 for linux-x86_64, 4 packages")
    assert not server.requests
    assert hashed.number == number
    assert {path: path.stat().st_mtime_ns for path in Path("root").rglob("*")} == before


def test_unchanged_root_needs_no_source_offline(materialize: Materialize) -> None:
    materialize()
    assert materialize("--offline", base=None).stdout.startswith("root: unchanged")
    Path("root/bin/nvcc").unlink()
    message = "--offline requires --archives or --base-url FOLDER"
    expect_error(materialize("--offline", base=None), 2, message)
    assert_nothing_left("root")


def test_archives_of_a_folder_are_not_downloads(
    materialize: Materialize, server: FaultServer
) -> None:
    server.add_folder(Path("source"))
    assert "downloaded" not in expect_output(materialize(), 0).stdout
    result = expect_output(materialize(base=server.url, root="other"), 0)
    assert "bytes downloaded" in result.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--component", "cuda_cudart", "--replace"],
        ["--layout", "split"],
        ["--no-static"],
        ["--exclude", "cuda_crt", "--replace"],
    ],
)
def test_other_selection_replaces_root(
    materialize: Materialize, run: Run, options: list[str]
) -> None:
    materialize()
    expect_output(materialize(*options), 0, "root: written")
    expect_output(materialize(*options, root="other"), 0)
    assert listing(Path("root")) == listing(Path("other"))
    assert materialize(*options).stdout.startswith("root: unchanged")
    assert_nothing_left("root", "other")


def test_root_with_foreign_files_is_not_replaced(materialize: Materialize) -> None:
    materialize("--component", "cuda_cudart")
    Path("root/lib/mine.so").write_bytes(b"mine")
    before = listing(Path("root"))
    expect_error(materialize(), 2, "has files that cudaredist did not install: lib/mine.so")
    assert listing(Path("root")) == before
    assert_nothing_left("root")
    # The same selection keeps the root.
    assert materialize("--component", "cuda_cudart").exit_code == 0


def relink(path: str, target: str) -> None:
    Path(path).unlink()
    Path(path).symlink_to(target)


@pytest.mark.parametrize(
    "damage",
    [
        lambda: Path("root/bin/nvcc").unlink(),
        lambda: Path("root/bin/nvcc").write_bytes(b"x"),
        lambda: relink("root/lib64", "bin"),
        lambda: shutil.rmtree("root/include"),
    ],
    ids=["missing", "size", "link", "folder"],
)
def test_damaged_root_is_created_again(
    materialize: Materialize, damage: Callable[[], object]
) -> None:
    materialize()
    expected = listing(Path("root"))
    damage()
    expect_error(materialize(), 0, "creating it again")
    assert listing(Path("root")) == expected


def test_root_is_the_same_for_every_kind_of_source_and_any_jobs(
    made_set: MadeSet, materialize: Materialize, server: FaultServer
) -> None:
    materialize("-j", 1, root="folder")
    materialize("-j", 8)
    assert listing(Path("root")) == listing(Path("folder"))
    assert modes(Path("root")) == modes(Path("folder"))
    server.add_folder(Path("source"))
    materialize(base=server.url, root="http")
    made_set.put_archives(Path("flat"), is_flat=True)
    assert (
        materialize("--archives", "flat", "--offline", base=None, root="flat-root").exit_code == 0
    )
    assert listing(Path("folder")) == listing(Path("http")) == listing(Path("flat-root"))


# -- local archives


@pytest.mark.parametrize("is_flat", [True, False])
def test_local_archives_are_not_downloaded(
    made_set: MadeSet, materialize: Materialize, server: FaultServer, *, is_flat: bool
) -> None:
    server.add_folder(Path("source"))
    made_set.put_archives(Path("local"), is_flat=is_flat)
    next(Path("local").rglob("libcublas*.xz")).unlink()
    size = made_set.packages["libcublas"]["archive"]["size"]
    # Only downloaded bytes count.
    options = ("--archives", "local", "--max-download", size, "--json")
    result = expect_output(materialize(*options, base=server.url), 0)
    assert [path.rpartition("/")[2].partition("-")[0] for path in server.requests] == ["libcublas"]
    assert json.loads(result.stdout)["fetched_bytes"] == size
    assert f"4 archives, 3 of them local; {size:,} bytes to download" in result.stderr


def test_local_archive_with_wrong_content_is_downloaded(
    made_set: MadeSet, materialize: Materialize, server: FaultServer
) -> None:
    server.add_folder(Path("source"))
    made_set.put_archives(Path("local"), is_flat=True)
    for path in Path("local").iterdir():
        path.write_bytes(bytes(path.stat().st_size))
    assert materialize("--archives", "local", base=server.url).exit_code == 0
    assert server.requests.total() == 4
    assert materialize("--archives", "local", "--offline", base=None, root="two").exit_code == 4
    # A wrong archive is a more severe failure than a missing one.
    for path in Path("source").rglob("*.xz"):
        path.unlink()
    assert materialize("--archives", "local", root="two").exit_code == 4
    assert not Path("two").exists()


def test_offline_run_names_missing_archive(made_set: MadeSet, materialize: Materialize) -> None:
    made_set.put_archives(Path("local"), is_flat=True)
    next(Path("local").glob("cuda_crt*")).unlink()
    expect_error(
        materialize("--archives", "local", "--offline", base=None),
        3,
        "cuda_crt-linux-x86_64-1.2.3-archive.tar.xz",
    )
    # Complete archives are kept for the next run.
    expect_output(materialize("--archives", "local", "--offline"), 0)


# -- limits and resumed runs


def test_archives_before_download_limit_are_kept(
    run: Run, materialize: Materialize, server: FaultServer
) -> None:
    made_set = put_packages(MadeSet())
    for package in made_set.packages.values():
        if package["archive"]:
            package["archive"]["size"] = None
    made_set.put()
    server.add_folder(Path("source"))
    limit = len(made_set.archives[made_set.packages["cuda_crt"]["archive"]["relative_path"]])
    expect_error(
        materialize("--max-download", limit, "-j", 1, base=server.url),
        3,
        f"the download exceeds --max-download {limit:,} bytes",
        "4 of unknown size",
    )
    assert not Path("root").exists()
    staging = Path(".root.cudaredist")
    # Another archive is downloaded at the same time, and the limit is for both.
    kept = len(list(staging.glob("archives/*")))
    assert kept <= 1
    assert not staging.exists() or stat.S_IMODE(staging.stat().st_mode) == 0o700
    server.requests.clear()
    assert materialize(base=server.url).exit_code == 0
    assert server.requests.total() <= 4 - kept
    assert not staging.exists()


def after_the_others(behaviour: faults.Behaviour) -> faults.Behaviour:
    """Return a behaviour of one archive after the three others are unpacked."""

    def behave(handler: faults.Handler, data: bytes) -> None:
        while len(list(Path(".root.cudaredist/archives").glob("*/index.json"))) < 3:
            time.sleep(0.01)
        behaviour(handler, data)

    return behave


@pytest.mark.parametrize("is_altered", [False, True])
def test_partial_archive_is_resumed(
    materialize: Materialize, server: FaultServer, *, is_altered: bool
) -> None:
    server.add_folder(Path("source"))
    path = next(path for path in server.files if "libcublas" in path)
    size, sha256 = len(server.files[path]), sha256_of(server.files[path])
    server.misbehave(path, after_the_others(faults.truncated))
    assert materialize("--retries", 0, base=server.url).exit_code == 3
    (part,) = Path(".root.cudaredist/fetched").glob(f"{sha256}*")
    half = part.stat().st_size
    assert 0 < half < size
    if is_altered:
        part.write_bytes(bytes(half))
    server.behave()
    server.headers.clear()
    result = materialize("--json", base=server.url)
    assert result.exit_code == 0, result.output
    assert f"4 archives, 3 of them local; {size - half:,} bytes to download" in result.stderr
    ranges = [headers.get("Range") for _, headers in server.headers]
    # An archive with a wrong hash is downloaded again in full.
    assert ranges == [f"bytes={half}-", *[None] * is_altered]
    fetched = size - half + size * is_altered
    assert json.loads(result.stdout)["fetched_bytes"] == fetched
    materialize(root="other")
    assert listing(Path("root")) == listing(Path("other"))
    assert_nothing_left("root", "other")


@pytest.mark.parametrize("jobs", [1, 2])
def test_next_archive_is_downloaded_while_one_is_unpacked(
    materialize: Materialize, server: FaultServer, patch: Patch, jobs: int
) -> None:
    server.add_folder(Path("source"))
    reading: list[int] = []
    most = 0

    def open_slowly(name: str, file: BinaryIO) -> Members:
        nonlocal most
        reading.append(1)
        most = max(most, len(reading))
        deadline = time.monotonic() + 300
        while len(server.headers) <= jobs and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(server.headers) > jobs, "no other archive was requested"
        yield from open_archive(name, file)
        reading.pop()

    patch("cudaredist.store.archive_service.open_archive", open_slowly)
    assert materialize("-j", jobs, base=server.url).exit_code == 0
    assert most <= jobs


def test_archives_of_source_folder_are_not_copied(
    materialize: Materialize, server: FaultServer, patch: Patch
) -> None:
    stored = patch.count("cudaredist.store.fetch_archive.PartialArchive")
    assert materialize().exit_code == 0
    assert stored.number == 0
    server.add_folder(Path("source"))
    assert materialize(base=server.url, root="other").exit_code == 0
    assert stored.number == 4


def test_archives_of_interrupted_run_are_verified_again(
    materialize: Materialize, server: FaultServer
) -> None:
    server.add_folder(Path("source"))
    missing = next(path for path in server.files if "libcublas" in path)
    server.misbehave(missing, after_the_others(faults.status(404)))
    assert materialize(base=server.url).exit_code == 3
    (staging,) = Path().glob(".root*")
    stored = sorted((staging / "archives").iterdir())
    assert len(stored) == 3
    # After a power failure, files exist without their contents.
    next(path for path in stored[0].iterdir() if path.name.isdigit()).write_bytes(b"")
    next(path for path in stored[1].iterdir() if path.name.isdigit()).unlink()
    (stored[2] / "index.json").write_bytes(b"{}")
    server.behave()
    server.requests.clear()
    assert materialize(base=server.url).exit_code == 0
    assert server.requests.total() == 4
    assert materialize(root="other").exit_code == 0
    assert listing(Path("root")) == listing(Path("other"))


def test_root_set_aside_by_killed_run_is_restored(materialize: Materialize, run: Run) -> None:
    materialize()
    expected = listing(Path("root"))

    def kill_between_both_steps() -> None:
        Path(".root.cudaredist").mkdir()
        Path("root").rename(".root.cudaredist/old")

    kill_between_both_steps()
    result = run("materialize", "--output", "root", "--verify")
    assert "interrupted" in result.stderr
    # Even a run without any work restores the root.
    assert materialize("--max-download", "1", "--layout", "split").exit_code == 2
    assert listing(Path("root")) == expected
    kill_between_both_steps()
    assert materialize().stdout.startswith("root: unchanged")
    kill_between_both_steps()
    assert materialize("--layout", "split").exit_code == 0
    assert Path("root/cuda_nvcc/out/bin/nvcc").is_file()
    kill_between_both_steps()
    assert run("materialize", "--output", "root", "--remove").exit_code == 0
    assert_nothing_left()


def test_staging_directory_of_killed_run_is_removed(materialize: Materialize) -> None:
    materialize()
    staging = Path(".root.cudaredist")
    shutil.copytree("root", staging / "old")
    (staging / "trash/half").mkdir(parents=True)
    assert materialize().stdout.startswith("root: unchanged")
    assert_nothing_left("root")


# -- a broken network


@pytest.mark.parametrize(
    ("behaviour", "times", "code"),
    [
        pytest.param(faults.reset_in_the_middle, 1, 0, id="reset"),
        pytest.param(faults.status(404), None, 3, id="missing"),
        pytest.param(faults.body(b"other bytes"), None, 4, id="other bytes"),
    ],
)
def test_failing_server_is_retried_or_reported(
    materialize: Materialize, server: FaultServer, behaviour: Any, times: int | None, code: int
) -> None:
    server.add_folder(Path("source"))
    path = next(path for path in server.files if "libcublas" in path)
    server.misbehave(path, behaviour, times)
    expect_output(materialize("--retries", 1, base=server.url), code)
    assert Path("root").exists() is (code == 0)
    if code == 4:
        assert_nothing_left()
    server.behave()
    assert materialize(base=server.url).exit_code == 0
    materialize(root="other")
    assert listing(Path("root")) == listing(Path("other"))
