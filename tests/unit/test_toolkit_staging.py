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
from cudaredist.pipeline.toolkit import staging
from cudaredist.pipeline.toolkit.install import _link_or_copy
from cudaredist.pipeline.toolkit.staging import TEMPORARY, Workshop, remove_tree

# -- the workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "deep" / "root")


def finish_archive(workshop: Workshop) -> None:
    (workshop.archives / "abc").mkdir(parents=True)


def test_nothing_stays_of_a_run_that_finished_nothing(workshop: Workshop, tmp_path: Path) -> None:
    with workshop.locked():
        (workshop.archives / "abc.tmp").mkdir(parents=True)
    assert not list(tmp_path.iterdir())
    with pytest.raises(CudaRedistError), workshop.locked():
        raise UsageError("no")
    assert not list(tmp_path.iterdir())


def test_finished_archives_stay_for_the_next_run(workshop: Workshop) -> None:
    with workshop.locked():
        finish_archive(workshop)
    assert [path.name for path in workshop.archives.iterdir()] == ["abc"]
    workshop.clear_if_idle()
    assert not workshop.is_there()
    workshop.clear_if_idle()


def test_what_a_killed_run_had_not_finished_goes(workshop: Workshop) -> None:
    finish_archive(workshop)
    for left in (workshop.archives / f"b{TEMPORARY}", workshop.new, workshop.folder / "rubbish"):
        (left / "half").mkdir(parents=True)
    with workshop.locked():
        assert [path.name for path in workshop.folder.iterdir()] == ["archives"]
        assert len(list(workshop.archives.iterdir())) == 1


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


def test_one_run_at_a_time(workshop: Workshop) -> None:
    order: list[str] = []
    inside = threading.Event()

    def other() -> None:
        inside.set()
        with Workshop(workshop.root).locked():
            order.append("second")

    with workshop.locked():
        finish_archive(workshop)
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait()
        thread.join(0.2)
        Workshop(workshop.root).clear_if_idle()
        assert workshop.is_there()
        order.append("first")
        # The one that waits must not go on in a folder that is gone.
        workshop.clear()
    thread.join()
    assert order == ["first", "second"]
    assert not workshop.is_there()


def test_a_root_that_was_put_aside_comes_back(workshop: Workshop) -> None:
    old = workshop.folder / "old"
    old.mkdir(parents=True)
    (old / "file").write_text("whole")
    workshop.clear()
    assert old.exists(), "the only root there is"
    with workshop.locked():
        assert (workshop.root / "file").read_text() == "whole"
    assert not workshop.is_there()


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
    workshop: Workshop, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = []
    rename = Path.rename

    def watched(path: Path, to: Path) -> Path:
        moved = rename(path, to)
        absent.append(not workshop.root.exists())
        return moved

    monkeypatch.setattr(Path, "rename", watched)
    for text in ("first", "second"):
        with workshop.locked():
            workshop.new.mkdir()
            (workshop.new / "file").write_text(text)
            workshop.put()
        assert (workshop.root / "file").read_text() == text
        assert not workshop.is_there()
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
    assert not staging._exchange(tmp_path / "one", tmp_path / "other")


@pytest.mark.usefixtures("way")
def test_where_the_new_root_cannot_be_moved_the_old_one_stays(workshop: Workshop) -> None:
    workshop.root.mkdir(parents=True)
    (workshop.root / "file").write_text("old")
    with pytest.raises(CudaRedistError, match="root: No such file"), workshop.locked():
        # There is no new one.
        workshop.put()
    assert (workshop.root / "file").read_text() == "old"
    assert not workshop.is_there()


def test_a_workshop_that_is_not_ours_is_left_alone(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_text("mine")
    workshop.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no folder of yours"), workshop.locked():
        pytest.fail("went on")
    assert (tmp_path / "elsewhere/file").exists()
    assert workshop.folder.is_symlink()


def test_without_locks_work_goes_on(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    # The program's own logging, which another test may have set up, keeps records to itself.
    monkeypatch.setattr(logging.getLogger("cudaredist"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="cudaredist")
    monkeypatch.setattr("fcntl.flock", refuse)
    with workshop.locked():
        finish_archive(workshop)
    assert "without a lock" in caplog.text
    workshop.clear_if_idle()
    assert workshop.is_there(), "another run may be in it"
    monkeypatch.setitem(__import__("sys").modules, "fcntl", None)
    with workshop.locked():
        workshop.clear()
    assert not workshop.is_there()


def test_a_folder_that_goes_away_again_and_again_is_no_endless_loop(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudaredist.locks.is_at", lambda *_: False)
    with pytest.raises(CudaRedistError, match="again and again"), workshop.locked():
        pytest.fail("went on")


def test_a_root_needs_a_name() -> None:
    with pytest.raises(UsageError, match="cannot be a toolkit root"):
        Workshop(Path("/"))


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
