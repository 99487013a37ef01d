"""Tests of temporary folders and of those that killed runs leave."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from cudaredist.locks import locked_folder
from cudaredist.store.temporary_folders import temporary_folder

NAME = "cudaredist.0123456789ab.tmp"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_temporary_folder_is_private_and_removed(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "file").touch()
    assert not names(tmp_path)


def test_temporary_folder_is_removed_after_an_interruption(tmp_path: Path) -> None:
    def interrupt() -> None:
        with temporary_folder(tmp_path) as folder:
            (folder / "file").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert not names(tmp_path)


def test_interrupted_removal_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, calls = shutil.rmtree, []

    def interrupted(path: Path, *, ignore_errors: bool) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt), temporary_folder(tmp_path) as folder:
        (folder / "file").touch()
    assert not names(tmp_path)


def test_temporary_folder_is_in_the_system_folder_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder() as folder:
        assert folder.parent == tmp_path


def test_folder_of_a_killed_run_is_removed(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "file").touch()
    with temporary_folder(tmp_path) as folder:
        assert names(tmp_path) == {folder.name}


def test_folder_of_an_active_run_stays(tmp_path: Path) -> None:
    handle = locked_folder(tmp_path / NAME)
    assert handle is not None
    with temporary_folder(tmp_path):
        assert (tmp_path / NAME).exists()
    os.close(handle)
    with temporary_folder(tmp_path):
        assert not (tmp_path / NAME).exists()


def test_files_links_and_folders_of_others_stay(tmp_path: Path) -> None:
    others = tmp_path / "others"
    (others / "cudaredist.mine.tmp").mkdir(parents=True)
    (others / "cudaredist-1000").mkdir()
    (others / NAME).touch()
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").touch()
    (others / NAME.replace("a", "c")).symlink_to(victim)
    before = names(others)
    with temporary_folder(others):
        pass
    assert names(others) == before
    assert names(victim) == {"file"}
