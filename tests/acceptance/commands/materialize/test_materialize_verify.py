"""Tests of verifying and removing a toolkit root."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run
from support.patching import Patch, patching
from support.running import expect_error, expect_output
from support.toolkits import FOLDER, Materialize, assert_nothing_left, record

pytestmark = pytest.mark.usefixtures("made_set")


def altered(path: str) -> None:
    file = Path("root") / path
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)


def swapped(path: str) -> None:
    file = Path("root") / path
    file.rename("elsewhere")
    file.symlink_to(Path("elsewhere").resolve())


def replaced(path: str, target: str | None) -> None:
    file = Path("root") / path
    file.unlink()
    if target is None:
        file.write_bytes(b"")
    else:
        file.symlink_to(target)


DAMAGES: dict[str, tuple[Callable[[], object], str]] = {
    "altered": (lambda: altered("bin/nvcc"), "bin/nvcc: was changed"),
    "longer": (lambda: Path("root/include/cuda.h").write_bytes(b"//"), "cuda.h: was changed"),
    "missing": (lambda: Path("root/bin/ptxas").unlink(), "bin/ptxas: is missing"),
    "not executable": (lambda: Path("root/bin/nvcc").chmod(0o644), "nvcc: its mode was changed"),
    "executable": (lambda: Path("root/include/cuda.h").chmod(0o755), "cuda.h: its mode was"),
    "set-user-id": (lambda: Path("root/bin/nvcc").chmod(0o4755), "nvcc: its mode was changed"),
    "file is a link": (lambda: swapped("bin/nvcc"), "bin/nvcc: is not a regular file"),
    "folder is a link": (lambda: swapped("include"), "include/cuda.h: is missing"),
    "missing link": (lambda: Path("root/lib64").unlink(), "lib64: is not a link to lib"),
    "link to another folder": (lambda: replaced("lib64", "bin"), "lib64: is not a link to lib"),
    "link is a file": (lambda: replaced("lib64", None), "lib64: is not a link to lib"),
    "version": (lambda: altered("version.json"), "version.json: was changed"),
}


def test_verify_names_damaged_files(materialize: Materialize, run: Run) -> None:
    materialize(root="whole")
    for change, words in DAMAGES.values():
        shutil.copytree("whole", "root", symlinks=True)
        result = run("materialize", "--output", "root", "--verify")
        assert result.stdout.startswith("root: verified; CUDA 13.0.2"), words
        change()
        result = expect_output(run("materialize", "--output", "root", "--verify", "--json"), 4)
        report = json.loads(result.stdout)
        assert report["status"] == "altered"
        assert words in " ".join(report["problems"])
        assert report["exit_code"] == 4
        shutil.rmtree("root")
        shutil.rmtree("elsewhere", ignore_errors=True)
        Path("elsewhere").unlink(missing_ok=True)


def test_verify_reports_unreadable_file(materialize: Materialize, run: Run, patch: Patch) -> None:
    materialize()

    def refuse(_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    patch("cudaredist.commands.materialize.root.hash_of", refuse)
    expect_output(
        run("materialize", "--output", "root", "--verify"),
        4,
        "bin/nvcc: cannot be read: Permission denied",
    )


def test_remove_reports_and_keeps_foreign_files(materialize: Materialize, run: Run) -> None:
    materialize()
    Path("root/lib/mine").mkdir()
    for number in range(25):
        Path(f"root/lib/mine/{number:02}").write_bytes(b"mine")
    Path("root/lib/link").symlink_to("/etc")
    Path("root/empty/inner").mkdir(parents=True)
    expect_output(
        run("materialize", "--output", "root", "--verify"),
        0,
        "not installed by cudaredist: empty/inner/",
        "not installed by cudaredist: and 7 more",
    )
    expect_output(run("materialize", "--output", "root", "--remove"), 1, "root: removed")
    paths = {path.relative_to("root").as_posix() for path in Path("root").rglob("*")}
    assert paths == {"lib", "lib/mine", "lib/link", "empty", "empty/inner"} | {
        f"lib/mine/{number:02}" for number in range(25)
    }
    assert_nothing_left("root")


def test_remove_keeps_altered_files_and_names_them(materialize: Materialize, run: Run) -> None:
    materialize()
    record_path = Path("root/.cudaredist.json")
    file, other, *_ = sorted(json.loads(record_path.read_text())["files"])
    Path("root", file).write_text("mine")
    Path("root", other).chmod(0o600)
    expect_output(
        run("materialize", "--output", "root", "--remove"),
        1,
        f"{file}: was changed, so it is kept",
    )
    assert [path for path in Path("root").rglob("*") if path.is_file()] == [Path("root", file)]
    assert Path("root", file).read_text() == "mine"
    assert_nothing_left("root")


def test_remove_deletes_whole_root(materialize: Materialize, run: Run) -> None:
    materialize()
    expect_output(run("materialize", "--output", "root", "--remove"), 0)
    assert_nothing_left()


def test_remove_deletes_files_of_interrupted_run(materialize: Materialize, run: Run) -> None:
    archive = next(Path("source", FOLDER).glob("libcublas/*/*"))
    archive.unlink()
    archive.mkdir()
    assert materialize().exit_code == 3
    assert list(Path().glob(".root*"))
    result = expect_output(run("materialize", "--output", "root", "--remove"), 0)
    assert result.stdout == "root: removed; remains of an interrupted run\n"
    assert_nothing_left()


def test_remove_of_immovable_root_deletes_each_file(materialize: Materialize, run: Run) -> None:
    materialize()

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    with patching() as patch:
        patch(Path, "rename", busy)
        expect_error(materialize("--layout", "split"), 3, "busy")
        assert run("materialize", "--output", "root", "--verify").exit_code == 0
        assert run("materialize", "--output", "root", "--remove").exit_code == 0
    assert_nothing_left()


def forge_record(path: str) -> None:
    """Write a file next to a root, and name it in the root's record."""
    Path("precious").write_bytes(b"precious")
    Path("root/link").symlink_to("..")
    document = record()
    document["files"][path] = document["files"]["bin/nvcc"]
    Path("root/.cudaredist.json").write_text(json.dumps(document))


@pytest.mark.parametrize("path", ["../precious", "/precious"])
def test_record_with_a_path_outside_of_the_root_is_refused(
    materialize: Materialize, run: Run, path: str
) -> None:
    materialize()
    forge_record(path)
    for option in ("--verify", "--remove"):
        result = run("materialize", "--output", "root", option)
        expect_error(result, 5, "is not a relative path without `..`")
    assert Path("precious").read_bytes() == b"precious"
    assert Path("root/bin/nvcc").exists()


def test_record_with_a_path_behind_a_link_removes_nothing_outside_of_the_root(
    materialize: Materialize, run: Run
) -> None:
    materialize()
    forge_record("link/precious")
    result = run("materialize", "--output", "root", "--verify")
    assert "link/precious: is missing" in result.stdout
    assert run("materialize", "--output", "root", "--remove").exit_code == 1
    assert Path("precious").read_bytes() == b"precious"
