"""Tests of conflicts, hostile archives, full disks and refused roots."""

import errno
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import archives
from support.patching import Patch
from support.running import WITHOUT_OVERRIDE, expect_error, expect_output
from support.server import FaultServer
from support.toolkits import FOLDER, MadeSet, Materialize, assert_nothing_left, listing

from cudaredist.commands.materialize import unpack

pytestmark = pytest.mark.usefixtures("made_set")

# -- conflicts and refusals


def tar_with(*members: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)) if member.isreg() else None)
    return archives.gz(out.getvalue())


def info(name: str, **fields: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    return member


HONEST = info("top/include/a.h", size=3)
HOSTILE = {
    "name above": (tar_with(HONEST, info("top/../../evil", size=1)), "unsafe name"),
    "link above": (
        tar_with(HONEST, info("top/x", type=tarfile.SYMTYPE, linkname="../../../evil")),
        "link leaves the archive",
    ),
    "through a link": (
        tar_with(
            HONEST,
            info("top/x", type=tarfile.SYMTYPE, linkname="include"),
            info("top/x/evil", size=1),
        ),
        "below a path that is not a folder",
    ),
    "hard link above": (
        tar_with(HONEST, info("top/x", type=tarfile.LNKTYPE, linkname="../evil")),
        "link leaves the archive",
    ),
    "pipe": (tar_with(HONEST, info("top/pipe", type=tarfile.FIFOTYPE)), "neither file"),
    "set-group-id": (tar_with(HONEST, info("top/bin/x", mode=0o2755, size=1)), "set-id bit"),
    "cut": (archives.gz(archives.plain_tar()[:2000]), "is truncated"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_archive_leaves_no_files(run: Run, materialize: Materialize, case: str) -> None:
    data, words = HOSTILE[case]
    made_set = MadeSet()
    made_set.add("honest", {"include/b.h": b"x"})
    made_set.add("hostile", data=data, suffix="tar.gz")
    made_set.write(Path("set.json"))
    made_set.put_archives(Path("source"))
    expect_error(materialize(root="deep/root"), 5, words, "hostile-linux-x86_64")
    assert_nothing_left()
    assert not Path("../evil").exists()


def test_hostile_archive_keeps_existing_root(run: Run, materialize: Materialize) -> None:
    made_set = MadeSet()
    made_set.add("honest", {"include/b.h": b"x"})
    made_set.add("hostile", data=HOSTILE["link above"][0], suffix="tar.gz")
    made_set.write(Path("set.json"))
    made_set.put_archives(Path("source"))
    assert materialize("--component", "honest").exit_code == 0
    before = listing(Path("root"))
    assert materialize().exit_code == 5
    assert listing(Path("root")) == before
    assert_nothing_left("root")


def test_archive_above_unpacked_limit_is_refused(
    run: Run, materialize: Materialize, patch: Patch
) -> None:
    made_set = MadeSet()
    made_set.add("x", {"lib/a": bytes(3000), "lib/b": bytes(3000)})
    made_set.write(Path("set.json"))
    made_set.put_archives(Path("source"))
    patch(unpack, "UNPACKED_LIMIT", 5000)
    expect_error(materialize(), 5, "unpacks to more than 5,000 bytes")
    assert_nothing_left()


@pytest.mark.parametrize("change", ["sha256", "size", "content"])
def test_archive_with_wrong_hash_or_size_leaves_no_files(
    made_set: MadeSet, materialize: Materialize, change: str
) -> None:
    archive = made_set.packages["libcublas"]["archive"]
    if change == "sha256":
        archive["sha256"] = "0" * 64
    elif change == "size":
        archive["size"] += 1
    else:
        path = Path("source", FOLDER, archive["relative_path"])
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    made_set.write(Path("set.json"))
    result = expect_output(materialize(), 4)
    assert "size" if change == "size" else "SHA-256" in result.stderr
    assert_nothing_left()


@pytest.mark.parametrize("operation", ["write", "open", "link", "rename"])
def test_full_disk_is_reported_and_leaves_no_files(
    materialize: Materialize, patch: Patch, operation: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if operation == "link":
        patch(os, "link", full)
        patch(shutil, "copyfileobj", full)
    elif operation == "rename":
        patch(Path, "rename", full)
    else:
        opened = Path.open

        def in_staging(path: Path, mode: str = "r", **more: Any) -> Any:
            if "/archives/" not in str(path) or "x" not in mode:
                return opened(path, mode, **more)
            return full() if operation == "open" else opened(Path("/dev/full"), "r+b", buffering=0)

        patch(Path, "open", in_staging)
    expect_error(materialize(), 3, "No space left on device", f"`df -h {Path.cwd()}`")
    assert_nothing_left()


def test_too_small_disk_is_reported_before_download(
    made_set: MadeSet, materialize: Materialize, server: FaultServer
) -> None:
    made_set.packages["libcublas"]["contents"]["lib"]["bytes"] = 1 << 60
    made_set.write(Path("set.json"))
    expect_error(materialize(base=server.url), 3, "more bytes, but only")
    assert not server.requests
    assert_nothing_left()


def test_files_are_copied_without_hard_links(materialize: Materialize, patch: Patch) -> None:
    materialize(root="linked")

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    patch(os, "link", refuse)
    assert materialize().exit_code == 0
    assert listing(Path("root")) == listing(Path("linked"))


# -- root path


def test_foreign_folder_as_root_is_not_changed(materialize: Materialize) -> None:
    Path("root").mkdir()
    Path("root/mine").write_bytes(b"mine")
    expect_error(materialize(), 2, "not a cudaredist toolkit root")
    assert listing(Path("root")) == {"mine": b"mine"}
    assert materialize(root="root/mine").exit_code == 2
    assert listing(Path("root")) == {"mine": b"mine"}
    assert_nothing_left("root")


def test_working_folder_becomes_root(
    materialize: Materialize, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Path.cwd()
    Path("root").mkdir()
    monkeypatch.chdir("root")
    expect_output(
        run("materialize", base / "set.json", "--output", ".", "--base-url", base / "source"), 0
    )
    assert (base / "root/bin/nvcc").is_file()


def test_link_to_root_is_kept(materialize: Materialize, run: Run) -> None:
    Path("current").symlink_to("cuda-13.0")
    assert materialize(root="current").exit_code == 0
    assert materialize("--layout", "split", root="current").exit_code == 0
    assert Path("current").readlink() == Path("cuda-13.0")
    assert Path("cuda-13.0/cuda_nvcc").is_dir()
    assert run("materialize", "--output", "current", "--verify").exit_code == 0
    assert_nothing_left("current", "cuda-13.0")


def test_unwritable_root_path_exits_3(materialize: Materialize) -> None:
    Path("file").write_bytes(b"")
    expect_error(materialize(root="file/root"), 3, "cannot write", "`ls -ld ", "/file`")
    if sys.platform == "linux":
        # No user can create a folder in /proc.
        assert materialize(root="/proc/cudaredist/root").exit_code == 3
    Path("loop").symlink_to("loop")
    # No file system has such long names.
    for root in ("x" * 250, "x" * 300, "loop"):
        assert materialize(root=root).exit_code == 3
    assert_nothing_left("file", "loop")


@pytest.mark.slow
def test_read_only_folder_exits_3() -> None:
    Path("locked").mkdir(mode=0o555)
    arguments = ["set.json", "--output", "locked/root", "--base-url", "source"]
    command = [*WITHOUT_OVERRIDE, "-m", "cudaredist", "materialize", *arguments]
    assert subprocess.run(command, check=False).returncode == 3
    assert not list(Path("locked").iterdir())


def test_broken_record_exits_5(materialize: Materialize, run: Run) -> None:
    materialize()
    Path("root/.cudaredist.json").write_bytes(b"{")
    for result in (materialize(), run("materialize", "--output", "root", "--remove")):
        assert result.exit_code == 5
        assert "root/.cudaredist.json" in result.stderr
    assert Path("root/bin/nvcc").is_file()


# -- missing parts


def test_all_missing_archives_are_named_at_once(materialize: Materialize) -> None:
    names = set()
    for package in ("libcublas", "cuda_cudart"):
        archive = next(Path("source", FOLDER).glob(f"{package}/*/*"))
        names.add(archive.name)
        archive.unlink()
    expect_error(materialize(), 3, "source: lacks 2 archives: ", *names)
    assert_nothing_left()


def test_compiler_without_nvcc_is_refused_before_downloads(
    made_set: MadeSet, materialize: Materialize
) -> None:
    needed = {"soname": "libc.so.6", "output": "out", "kind": "needed"}
    ptxas = {**needed, "by_path": "bin/ptxas", "satisfied_by": {"external": "glibc"}}
    made_set.packages["cuda_nvcc"]["needs"] = [ptxas]
    made_set.write(Path("set.json"))
    result = materialize("--component", "compiler")
    expect_error(result, 2, "do not include nvcc", "another release or channel")
    assert_nothing_left()
