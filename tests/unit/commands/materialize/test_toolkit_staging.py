"""Tests of the staging directory and the atomic swap into place."""

import logging
import os
import sys
import threading
from pathlib import Path

import pytest
from support.patching import Patch

from cudaredist.commands.materialize.install import _link_or_copy
from cudaredist.commands.materialize.staging import (
    TEMPORARY,
    StagingDirectory,
    _exchange,
    remove_tree,
)
from cudaredist.errors import CudaRedistError, UsageError

# -- staging directory


@pytest.fixture
def staging(tmp_path: Path) -> StagingDirectory:
    return StagingDirectory(tmp_path / "deep" / "root")


def finish_archive(staging: StagingDirectory) -> None:
    (staging.archives / "abc").mkdir(parents=True)


def test_run_without_complete_archive_leaves_no_files(
    staging: StagingDirectory, tmp_path: Path
) -> None:
    with staging.locked():
        (staging.archives / "abc.tmp").mkdir(parents=True)
    assert not list(tmp_path.iterdir())
    with pytest.raises(CudaRedistError), staging.locked():
        raise UsageError("no")
    assert not list(tmp_path.iterdir())


def test_complete_archives_are_kept_for_next_run(staging: StagingDirectory) -> None:
    with staging.locked():
        finish_archive(staging)
    assert [path.name for path in staging.archives.iterdir()] == ["abc"]
    staging.clear_if_idle()
    assert not staging.exists()
    staging.clear_if_idle()


def test_incomplete_files_of_killed_run_are_removed(staging: StagingDirectory) -> None:
    finish_archive(staging)
    for left in (staging.archives / f"b{TEMPORARY}", staging.new, staging.folder / "trash"):
        (left / "half").mkdir(parents=True)
    with staging.locked():
        assert [path.name for path in staging.folder.iterdir()] == ["archives"]
        assert len(list(staging.archives.iterdir())) == 1


@pytest.mark.parametrize("can_link", [True, False])
def test_existing_file_with_equivalent_name_is_not_overwritten(
    tmp_path: Path, patch: Patch, *, can_link: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    if not can_link:
        patch("os.link", refuse)
    for name in ("one", "other"):
        (tmp_path / name).write_text(name)
    _link_or_copy(tmp_path / "one", tmp_path / "place")
    assert (tmp_path / "place").read_text() == "one"
    with pytest.raises(FileExistsError):
        _link_or_copy(tmp_path / "other", tmp_path / "place")
    assert (tmp_path / "place").read_text() == "one"


def test_runs_on_same_root_are_serialized(staging: StagingDirectory) -> None:
    order: list[str] = []
    inside = threading.Event()

    def other() -> None:
        inside.set()
        with StagingDirectory(staging.root).locked():
            order.append("second")

    with staging.locked():
        finish_archive(staging)
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait()
        thread.join(0.2)
        StagingDirectory(staging.root).clear_if_idle()
        assert staging.exists()
        order.append("first")
        # The waiting run must not continue in a removed folder.
        staging.clear()
    thread.join()
    assert order == ["first", "second"]
    assert not staging.exists()


def test_root_set_aside_is_restored(staging: StagingDirectory) -> None:
    old = staging.folder / "old"
    old.mkdir(parents=True)
    (old / "file").write_text("whole")
    staging.clear()
    assert old.exists(), "the only existing root"
    with staging.locked():
        assert (staging.root / "file").read_text() == "whole"
    assert not staging.exists()


@pytest.fixture(params=["at once", "in two steps"])
def way(request: pytest.FixtureRequest, patch: Patch) -> str:
    """Return the way to swap two folders: atomically on Linux, or in two steps."""
    way: str = request.param
    if way == "in two steps":
        patch("cudaredist.commands.materialize.staging._exchange", lambda *_: False)
    elif sys.platform != "linux":
        pytest.skip("Linux alone can")
    return way


def test_new_root_replaces_old_root(staging: StagingDirectory, way: str, patch: Patch) -> None:
    absent = []
    rename = Path.rename

    def watched(path: Path, to: Path) -> Path:
        moved = rename(path, to)
        absent.append(not staging.root.exists())
        return moved

    patch(Path, "rename", watched)
    for text in ("first", "second"):
        with staging.locked():
            staging.new.mkdir()
            (staging.new / "file").write_text(text)
            staging.swap_in()
        assert (staging.root / "file").read_text() == text
        assert not staging.exists()
    assert any(absent) is (way == "in two steps")


@pytest.mark.parametrize("missing", ["no library", "no such call"])
def test_exchange_without_system_support_returns_false(
    tmp_path: Path, patch: Patch, missing: str
) -> None:
    def load(_: None) -> object:
        if missing == "no library":
            raise TypeError("Windows wants a name")
        return object()

    patch("ctypes.CDLL", load)
    assert not _exchange(tmp_path / "one", tmp_path / "other")


@pytest.mark.usefixtures("way")
def test_old_root_is_kept_if_new_root_cannot_be_moved(staging: StagingDirectory) -> None:
    staging.root.mkdir(parents=True)
    (staging.root / "file").write_text("old")
    with pytest.raises(CudaRedistError, match="root: No such file"), staging.locked():
        # There is no new root.
        staging.swap_in()
    assert (staging.root / "file").read_text() == "old"
    assert not staging.exists()


def test_foreign_staging_directory_is_not_changed(
    staging: StagingDirectory, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_text("mine")
    staging.folder.symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(UsageError, match="is not a folder, or another user owns it"),
        staging.locked(),
    ):
        pytest.fail("continued")
    assert (tmp_path / "elsewhere/file").exists()
    assert staging.folder.is_symlink()


def test_staging_works_without_locks(
    staging: StagingDirectory,
    monkeypatch: pytest.MonkeyPatch,
    patch: Patch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    # Logging that another test may have configured does not propagate records.
    monkeypatch.setattr(logging.getLogger("cudaredist"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="cudaredist")
    patch("fcntl.flock", refuse)
    with staging.locked():
        finish_archive(staging)
    assert "without a lock" in caplog.text
    staging.clear_if_idle()
    assert staging.exists(), "another run may be in it"
    monkeypatch.setattr("cudaredist.locks.sys.platform", "win32")
    with staging.locked():
        staging.clear()
    assert not staging.exists()


def test_repeatedly_removed_folder_is_an_error(staging: StagingDirectory, patch: Patch) -> None:
    patch("cudaredist.locks.is_at", lambda *_: False)
    with pytest.raises(CudaRedistError, match="keep removing it"), staging.locked():
        pytest.fail("continued")


def test_file_system_root_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be a toolkit root"):
        StagingDirectory(Path("/"))


def test_remove_tree_removes_read_only_folders_and_keeps_link_targets(tmp_path: Path) -> None:
    (tmp_path / "tree/inner").mkdir(parents=True)
    (tmp_path / "tree/inner/file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("x")
    (tmp_path / "tree/link").symlink_to(tmp_path / "other")
    (tmp_path / "tree/inner").chmod(0o555)
    remove_tree(tmp_path / "tree")
    assert os.listdir(tmp_path) == ["other"]  # noqa: PTH208
    (tmp_path / "link").symlink_to(tmp_path / "other")
    remove_tree(tmp_path / "link")
    assert os.listdir(tmp_path) == ["other"]  # noqa: PTH208
    assert (tmp_path / "other/file").exists()
