"""Tests of atomic writes, modes, links and temporary files."""

import os
import stat
from pathlib import Path

import pytest

from cudaredist.errors import WriteError
from cudaredist.store.files import (
    linked_file,
    new_content,
    sweep,
    sweep_file,
    write_file,
    write_output,
)

OWN = ".notes.0123456789ab.tmp"
"""The name of a temporary file of this program."""
FOREIGN = (
    *("notes.tmp", ".notes.tmp", ".notes.abc.tmp", "notes.0123456789ab.tmp"),
    *(".notes.0123456789AB.tmp", ".notes.0123456789ab.tmp.bak", ".0123456789ab.tmp"),
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mode", [0o444, 0o600, 0o640, 0o755])
@pytest.mark.parametrize("write", [write_file, write_output])
def test_written_file_keeps_its_mode(tmp_path: Path, write: object, mode: int) -> None:
    path = tmp_path / "notes"
    path.write_text("old")
    path.chmod(mode)
    assert callable(write)
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode_of(path) == mode
    assert [one.name for one in tmp_path.iterdir()] == ["notes"]


def test_private_file_is_never_open_to_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notes"
    path.write_text("old")
    path.chmod(0o600)
    modes = []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(os.fstat(file).st_mode & 0o777))
    write_file(path, b"new")
    assert modes == [0o600]


def test_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_file(tmp_path / "notes", b"new")
    assert mode_of(tmp_path / "notes") == mode_of(tmp_path / "other")


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("real", id="same folder"),
        pytest.param("folder/real", id="other folder"),
        pytest.param("missing/folder/real", id="missing folder"),
        pytest.param("second", id="link to a link"),
    ],
)
def test_output_that_is_a_link_writes_its_target(tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "second").symlink_to("folder/third")
    link = tmp_path / "link"
    link.symlink_to(target)
    write_output(link, b"new")
    assert link.readlink() == Path(target)
    assert link.read_bytes() == b"new"
    assert (tmp_path / "second").is_symlink()


def test_link_out_of_the_named_folder_is_replaced(tmp_path: Path) -> None:
    root, victim = tmp_path / "root", tmp_path / "victim"
    root.mkdir()
    victim.write_text("mine")
    for name, target in (("outside", victim), ("inside", root / "real")):
        (root / name).symlink_to(target)
        write_output(root / name, b"new", root)
    assert victim.read_text() == "mine"
    assert not (root / "outside").is_symlink()
    assert (root / "inside").is_symlink()
    assert (root / "real").read_bytes() == b"new"


def test_link_below_a_link_to_the_named_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    (tmp_path / "real/link").symlink_to("file")
    assert linked_file(tmp_path / "root/link", tmp_path / "root") == tmp_path / "real/file"


def test_output_that_is_a_pipe_or_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "folder", "link"):
        with pytest.raises(WriteError):
            write_output(tmp_path / name, b"new")
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]


def test_failed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    def fail() -> None:
        with new_content(tmp_path / "notes") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not list(tmp_path.iterdir())


def test_sweep_removes_own_temporary_files_only(tmp_path: Path) -> None:
    for name in (OWN, *FOREIGN):
        (tmp_path / name).touch()
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*FOREIGN}


def test_sweep_of_a_file_keeps_temporary_files_of_others(tmp_path: Path) -> None:
    others = (".notes.old.0123456789ab.tmp", ".note.0123456789ab.tmp")
    for name in (OWN, *others):
        (tmp_path / name).touch()
    sweep_file(tmp_path / "notes")
    assert {path.name for path in tmp_path.iterdir()} == {*others}
