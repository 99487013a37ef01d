"""mirror sync --check and the run after it, for any damages of a mirror."""

import os
import random
import stat
from pathlib import Path

import pytest
from conftest import Run
from support.mirror_damage import MIRROR, NOTHING, damage, store_partial
from support.mirrors import OLD, planned_paths, serve_releases
from support.releases import put
from support.running import expect_error, expect_output, report
from support.server import FaultServer
from typer.testing import Result

from cudaredist.primitives import sha256_of

SOURCE = Path("source")
PARTIAL = ".mirror/partial/"
Entry = tuple[object, ...]


@pytest.fixture
def files(server: FaultServer) -> dict[str, bytes]:
    """Create a source of two releases, and return its files."""
    files = serve_releases(server, size=3000)
    put(SOURCE, files)
    return files


@pytest.fixture
def sync(run: Run, files: dict[str, bytes]) -> Run:
    """Mirror all releases, and return a function that runs mirror sync again."""

    def invoke(*options: object) -> Result:
        selection = () if "--version" in options else ("--version", "all")
        source = ("--base-url", SOURCE, "-j", 2)
        return run("mirror", "sync", MIRROR, "--redist", "cuda", *selection, *source, *options)

    expect_output(invoke(), 0)
    return invoke


def entry_of(path: Path) -> Entry:
    """Return everything that a run can change of a file, a link or a folder."""
    about = path.lstat()
    if stat.S_ISLNK(about.st_mode):
        return ("link", str(path.readlink()), path.is_file() and path.read_bytes())
    if stat.S_ISDIR(about.st_mode):
        return ("folder", about.st_mode)
    return ("file", about.st_mode, path.read_bytes(), about.st_ino)


def entries() -> dict[str, Entry]:
    """Return all files, links and folders of the mirror, also those in linked folders."""
    found: dict[str, Entry] = {}
    for folder, folders, names in os.walk(MIRROR, followlinks=True):
        folders[:] = [name for name in folders if name != "loop"]
        for name in {*folders, *names} - {NOTHING}:
            path = Path(folder, name)
            mode = path.stat().st_mode if path.is_symlink() and path.is_dir() else None
            found[path.relative_to(MIRROR).as_posix()] = (*entry_of(path), mode)
    return found


def changed(before: dict[str, Entry], after: dict[str, Entry]) -> set[str]:
    """Return the changed paths, without new folders and partial downloads."""
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    new_folders = {name for name in names - before.keys() if after[name][0] == "folder"}
    return {name for name in names - new_folders if not name.startswith(PARTIAL)}


def assert_check_predicts_run(sync: Run, *options: object) -> None:
    before = entries()
    check = sync("--check", "--json", *options)
    assert entries() == before
    run = sync("--json", *options)
    after = entries()
    assert (check.exit_code == 0) == (run.exit_code == 0 and after == before), check.output
    if run.exit_code == 0:
        planned = {name for name in planned_paths(check) if not name.startswith(PARTIAL)}
        # Another name of a file changes its mode with the file.
        inodes = {before[name] for name in planned if name in before}
        linked = {name for name, entry in before.items() if entry in inodes}
        assert planned <= changed(before, after) <= planned | linked
        assert report(check)["missing_bytes"] == report(run)["fetched_bytes"]
        again = sync("--check", "--json", *options)
        assert (again.exit_code, planned_paths(again)) == (0, set())


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.slow if n >= 25 else ()) for n in range(150)]
)
def test_check_predicts_run_after_any_damage(sync: Run, files: dict[str, bytes], seed: int) -> None:
    choice = random.Random(seed)
    done = [damage(choice) for _ in range(choice.choice((1, 1, 2, 3)))]
    if choice.random() < 0.3:
        archives = {path: data for path, data in files.items() if path.endswith(".tar.xz")}
        done.append(store_partial(choice, archives))
    print(*done, sep="\n")  # noqa: T201 - shown if the test fails
    assert_check_predicts_run(sync, *choice.choice([(), ("--checksum",), ("--version", OLD)]))


def test_check_with_folder_in_place_of_partial_download_fails_as_the_run(sync: Run) -> None:
    archive = next(MIRROR.glob("compute/**/cuda_nvcc-*.tar.xz"))
    partial = MIRROR / ".mirror/partial" / f"{sha256_of(archive.read_bytes())}.tar.xz"
    archive.unlink()
    partial.mkdir(parents=True)
    message = f"cannot write {partial}: Is a directory"
    for options in (("--check",), ()):
        result = expect_error(sync(*options), 3, message)
        assert f"hint: move the folder of this name: `ls {partial}`" in result.stderr


def test_sync_keeps_temporary_files_of_other_programs(sync: Run) -> None:
    names = ("notes.tmp", "compute/upload.tmp", "compute/.notes.tmp", ".mirror/notes.tmp")
    own = MIRROR / "compute/.index.html.0123456789ab.tmp"
    for path in (*(MIRROR / name for name in names), own):
        path.write_text("mine")
    check = expect_output(sync("--check", "--json"), 1)
    assert report(check)["other_files"] == ["compute/.index.html.0123456789ab.tmp"]
    expect_output(sync(), 0)
    assert all((MIRROR / name).exists() for name in names)
    assert not own.exists()
    expect_output(sync("--check"), 0)


@pytest.mark.parametrize("kind", ["file", "link to nothing", "below a file"])
def test_check_and_run_of_a_path_that_cannot_be_a_folder_exit_3(
    run: Run, files: dict[str, bytes], kind: str
) -> None:
    folder = MIRROR / "below" if kind == "below a file" else MIRROR
    if kind == "link to nothing":
        MIRROR.symlink_to(NOTHING)
    else:
        MIRROR.write_text("a file")
    call = ("mirror", "sync", folder, "--redist", "cuda", "--base-url", SOURCE)
    for options in (("--check",), ()):
        expect_error(run(*call, *options), 3, "cannot write mirror")
