"""Folders of a mirror that were moved to another disk and linked."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run
from support.mirror_damage import CUDART, MIRROR, NVCC, SAME, move_and_link
from support.mirrors import FOLDER, NEW, OLD, published, serve_releases
from support.releases import put
from support.running import expect_error, expect_output, report
from support.server import FaultServer
from typer.testing import Result

SOURCE = Path("source")
SAME_OLD = SAME.replace(NEW, OLD)


@pytest.fixture
def sync(run: Run, server: FaultServer) -> Run:
    """Mirror two releases, and return a function that runs mirror sync again."""
    put(SOURCE, serve_releases(server))

    def invoke(*options: object) -> Result:
        call = ("mirror", "sync", MIRROR, "--redist", "cuda", "--version", "all")
        return run(*call, "--base-url", SOURCE, *options)

    expect_output(invoke(), 0)
    return invoke


@pytest.fixture
def other_disk() -> Iterator[Path]:
    """Create a folder on another disk."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of the system on another disk
    if not memory.is_dir() or memory.stat().st_dev == Path().stat().st_dev:
        pytest.skip(f"{memory} is not another disk")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def assert_sound(run: Run, sync: Run) -> None:
    """Assert that sync, verify and prune have nothing to do."""
    expect_output(sync("--check"), 0)
    expect_output(run("mirror", "verify", MIRROR), 0, "no defects")
    expect_output(run("mirror", "prune", MIRROR, "--check"), 0, "0 files to remove")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        (".", "elsewhere"),
        ("compute", "elsewhere"),
        ("compute/cuda/redist", "elsewhere"),
        (f"{FOLDER}cuda_same", "elsewhere"),
        (f"{FOLDER}cuda_same", "mirror/elsewhere"),
        (".mirror", "elsewhere"),
    ],
)
def test_linked_folder_is_a_folder_of_the_mirror(
    sync: Run, run: Run, name: str, target: str
) -> None:
    before = published(MIRROR)
    (MIRROR / name).rename(target)
    (MIRROR / name).symlink_to(Path(target).absolute())
    assert_sound(run, sync)
    expect_output(run("mirror", "prune", MIRROR), 0, "0 files removed")
    (MIRROR / NVCC).unlink()
    expect_output(sync(), 0, "1 copied")
    assert_sound(run, sync)
    assert {path: (MIRROR / path).read_bytes() for path in before} == before
    assert (MIRROR / name).is_symlink()


def test_other_files_in_a_linked_folder_stay(sync: Run, run: Run) -> None:
    folder = MIRROR / FOLDER / "cuda_same"
    move_and_link(folder)
    mine = folder / "mine/notes.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert_sound(run, sync)
    only = ("--redist", "cuda", "--version", NEW)
    removed = report(expect_output(run("mirror", "prune", MIRROR, *only, "--json"), 0))["removed"]
    assert SAME_OLD in removed
    assert not (MIRROR / SAME_OLD).exists()
    assert (MIRROR / SAME).exists()
    assert mine.read_text() == "mine"
    expect_output(run("mirror", "verify", MIRROR), 0, "no defects")


def test_prune_removes_a_linked_folder_without_files_of_the_mirror(sync: Run, run: Run) -> None:
    folder = MIRROR / FOLDER / "cuda_nvcc"
    move_and_link(folder)
    target = folder.readlink()
    altered, mine = target / NVCC.rpartition("cuda_nvcc/")[2], target / "mine.txt"
    altered.write_bytes(b"another program wrote this")
    mine.write_text("mine")
    only = ("--redist", "cuda", "--package", "cuda_cudart")
    planned = report(expect_output(run("mirror", "prune", MIRROR, *only, "--check", "--json"), 1))
    pruned = report(expect_output(run("mirror", "prune", MIRROR, *only, "--json"), 0))
    assert pruned["removed"] == planned["removed"]
    assert f"{FOLDER}cuda_nvcc" in pruned["removed"]
    assert not folder.is_symlink()
    left = {path.name for path in target.rglob("*") if path.is_file()}
    assert left == {"mine.txt", altered.name}
    expect_output(run("mirror", "verify", MIRROR), 0, "no defects")


def test_link_to_a_folder_of_others_is_extra(sync: Run, run: Run) -> None:
    others = Path("others")
    others.mkdir()
    (others / "thesis.txt").write_text("mine")
    (MIRROR / FOLDER / "link").symlink_to(others.absolute())
    expect_output(sync("--check"), 0)
    extra = f"extra: {FOLDER}link: is not in mirror.json"
    expect_output(run("mirror", "verify", MIRROR), 1, extra, "1 defect")
    expect_output(run("mirror", "prune", MIRROR), 0, "1 file removed")
    assert (others / "thesis.txt").read_text() == "mine"
    assert_sound(run, sync)


def test_linked_folder_of_a_missing_disk_stays(sync: Run, run: Run) -> None:
    folder = MIRROR / FOLDER / "cuda_nvcc"
    move_and_link(folder)
    target = folder.readlink()
    target.rename("not mounted")
    result = expect_output(run("mirror", "verify", MIRROR), 3, f"missing: {NVCC}")
    assert "extra:" not in result.stdout
    for options in (("--check",), ()):
        expect_error(run("mirror", "prune", MIRROR, *options), 3, f"cannot write {folder}")
        expect_error(sync(*options), 3, f"cannot write {folder}")
    assert folder.is_symlink()
    Path("not mounted").rename(target)
    expect_output(sync(), 0)
    assert_sound(run, sync)


@pytest.mark.parametrize("name", ["compute", f"{FOLDER}cuda_same/linux-x86_64", ".mirror"])
def test_folder_on_another_disk_is_synced(sync: Run, run: Run, other_disk: Path, name: str) -> None:
    before = published(MIRROR)
    move_and_link(MIRROR / name, other_disk)
    expect_output(sync(), 0)
    assert_sound(run, sync)
    for path in (NVCC, CUDART, SAME, SAME_OLD):
        (MIRROR / path).unlink()
    check = report(expect_output(sync("--check", "--json"), 1))
    copied = report(expect_output(sync("--json"), 0))
    assert check["missing_bytes"] == copied["fetched_bytes"]
    assert (MIRROR / SAME).samefile(MIRROR / SAME_OLD)
    assert_sound(run, sync)
    assert {path: (MIRROR / path).read_bytes() for path in before} == before
