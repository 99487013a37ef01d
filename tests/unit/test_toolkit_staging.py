"""The staging directory of a toolkit root, and the atomic swap into place."""

import logging
import os
import sys
import threading
from pathlib import Path

import pytest

from cudaredist.errors import (
    CudaRedistError,
    UsageError,
)
from cudaredist.pipeline.toolkit.install import _link_or_copy
from cudaredist.pipeline.toolkit.staging import TEMPORARY, StagingDirectory, _exchange, remove_tree

# -- staging directory


@pytest.fixture
def staging(tmp_path: Path) -> StagingDirectory:
    return StagingDirectory(tmp_path / "deep" / "root")


def finish_archive(staging: StagingDirectory) -> None:
    (staging.archives / "abc").mkdir(parents=True)


def test_nothing_stays_of_a_run_that_finished_nothing(
    staging: StagingDirectory, tmp_path: Path
) -> None:
    with staging.locked():
        (staging.archives / "abc.tmp").mkdir(parents=True)
    assert not list(tmp_path.iterdir())
    with pytest.raises(CudaRedistError), staging.locked():
        raise UsageError("no")
    assert not list(tmp_path.iterdir())


def test_finished_archives_stay_for_the_next_run(staging: StagingDirectory) -> None:
    with staging.locked():
        finish_archive(staging)
    assert [path.name for path in staging.archives.iterdir()] == ["abc"]
    staging.clear_if_idle()
    assert not staging.exists()
    staging.clear_if_idle()


def test_what_a_killed_run_had_not_finished_goes(staging: StagingDirectory) -> None:
    finish_archive(staging)
    for left in (staging.archives / f"b{TEMPORARY}", staging.new, staging.folder / "trash"):
        (left / "half").mkdir(parents=True)
    with staging.locked():
        assert [path.name for path in staging.folder.iterdir()] == ["archives"]
        assert len(list(staging.archives.iterdir())) == 1


@pytest.mark.parametrize("can_link", [True, False])
def test_nothing_is_written_over_what_a_disk_takes_for_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_link: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    if not can_link:
        monkeypatch.setattr("os.link", refuse)
    for name in ("one", "other"):
        (tmp_path / name).write_text(name)
    _link_or_copy(tmp_path / "one", tmp_path / "place")
    assert (tmp_path / "place").read_text() == "one"
    with pytest.raises(FileExistsError):
        _link_or_copy(tmp_path / "other", tmp_path / "place")
    assert (tmp_path / "place").read_text() == "one"


def test_one_run_at_a_time(staging: StagingDirectory) -> None:
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
        # The one that waits must not go on in a folder that is gone.
        staging.clear()
    thread.join()
    assert order == ["first", "second"]
    assert not staging.exists()


def test_a_root_that_was_put_aside_comes_back(staging: StagingDirectory) -> None:
    old = staging.folder / "old"
    old.mkdir(parents=True)
    (old / "file").write_text("whole")
    staging.clear()
    assert old.exists(), "the only root there is"
    with staging.locked():
        assert (staging.root / "file").read_text() == "whole"
    assert not staging.exists()


@pytest.fixture(params=["at once", "in two steps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How two folders change places: as Linux can, and as everything else can."""
    way: str = request.param
    if way == "in two steps":
        monkeypatch.setattr("cudaredist.pipeline.toolkit.staging._exchange", lambda *_: False)
    elif sys.platform != "linux":
        pytest.skip("Linux alone can")
    return way


def test_a_new_root_takes_the_place_of_the_old_one(
    staging: StagingDirectory, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = []
    rename = Path.rename

    def watched(path: Path, to: Path) -> Path:
        moved = rename(path, to)
        absent.append(not staging.root.exists())
        return moved

    monkeypatch.setattr(Path, "rename", watched)
    for text in ("first", "second"):
        with staging.locked():
            staging.new.mkdir()
            (staging.new / "file").write_text(text)
            staging.swap_in()
        assert (staging.root / "file").read_text() == text
        assert not staging.exists()
    assert any(absent) is (way == "in two steps")


@pytest.mark.parametrize("lacking", ["no library", "no such call"])
def test_where_the_system_cannot_exchange_names_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    def load(_: None) -> object:
        if lacking == "no library":
            raise TypeError("Windows wants a name")
        return object()

    monkeypatch.setattr("ctypes.CDLL", load)
    assert not _exchange(tmp_path / "one", tmp_path / "other")


@pytest.mark.usefixtures("way")
def test_where_the_new_root_cannot_be_moved_the_old_one_stays(staging: StagingDirectory) -> None:
    staging.root.mkdir(parents=True)
    (staging.root / "file").write_text("old")
    with pytest.raises(CudaRedistError, match="root: No such file"), staging.locked():
        # There is no new one.
        staging.swap_in()
    assert (staging.root / "file").read_text() == "old"
    assert not staging.exists()


def test_a_workshop_that_is_not_ours_is_left_alone(
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
        pytest.fail("went on")
    assert (tmp_path / "elsewhere/file").exists()
    assert staging.folder.is_symlink()


def test_without_locks_work_goes_on(
    staging: StagingDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    # The program's own logging, which another test may have set up, keeps records to itself.
    monkeypatch.setattr(logging.getLogger("cudaredist"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="cudaredist")
    monkeypatch.setattr("fcntl.flock", refuse)
    with staging.locked():
        finish_archive(staging)
    assert "without a lock" in caplog.text
    staging.clear_if_idle()
    assert staging.exists(), "another run may be in it"
    monkeypatch.setitem(__import__("sys").modules, "fcntl", None)
    with staging.locked():
        staging.clear()
    assert not staging.exists()


def test_a_folder_that_goes_away_again_and_again_is_no_endless_loop(
    staging: StagingDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudaredist.locks.is_at", lambda *_: False)
    with pytest.raises(CudaRedistError, match="keep removing it"), staging.locked():
        pytest.fail("went on")


def test_a_root_needs_a_name() -> None:
    with pytest.raises(UsageError, match="cannot be a toolkit root"):
        StagingDirectory(Path("/"))


def test_read_only_folders_are_taken_away_and_links_are_not_followed(tmp_path: Path) -> None:
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
