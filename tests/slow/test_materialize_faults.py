"""Tests of materialize with kills, full disks and failing networks."""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from conftest import Run, Start
from support import binaries
from support import server as faults
from support.killing import STEPS, Killer
from support.patching import Patch
from support.running import expect_output
from support.server import FaultServer
from support.toolkits import FOLDER, MadeSet, listing

from cudaredist.archives.members import Members
from cudaredist.archives.open_archive import open_archive
from cudaredist.store import archive_service

pytestmark = pytest.mark.slow

KILLS = 50
STEPS_OF_RUN = 500
"""Rounded number of steps."""
SELECTIONS = (("--layout", "merged"), ("--layout", "split", "--no-static"))


def put_packages(made_set: MadeSet, count: int, size: int) -> MadeSet:
    """Add packages with a library, links, headers and random bytes to a set."""
    content = random.Random(20261121)
    for n in range(count):
        name = f"lib{n}.so.1"
        made_set.add(
            f"package_{n:02}",
            {
                "LICENSE": b"EULA\n",
                f"lib/{name}": binaries.elf(soname=name, needed=("libc.so.6",)),
                f"lib/lib{n}.so": name,
                f"lib/lib{n}_static.a": binaries.ar({"a.o": b"object"}),
                f"include/{n}/a.h": b"//%d" % n,
                f"pkg-config/p{n}-13.0.pc": b"cudaroot=/usr/local/cuda\n",
                f"bin/data{n}": content.randbytes(size),
                "include/same.h": b"// same in all\n",
            },
        )
    return made_set


def install(start: Start, set_path: Path, root: Path, *options: object) -> None:
    process = start("materialize", set_path, "--output", root, *options)
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr


def whole(root: Path) -> dict[str, str | bytes] | None:
    """Return the contents of a root, or None if it does not exist."""
    return listing(root) if root.exists() else None


# -- kills


def test_materialize_killed_at_random_steps_leaves_whole_root_or_none(
    server: FaultServer, tmp_path: Path
) -> None:
    made_set = put_packages(MadeSet(), 12, 200_000)
    set_path = made_set.write(tmp_path / "set.json")
    server.add_folder(made_set.put_archives(tmp_path / "source"))
    call = ("materialize", set_path, "--base-url", server.url, "-j", 2, "--output")
    root = tmp_path / "stressed" / "root"
    staging = root.with_name(".root.cudaredist")
    moments = random.Random(20261122)
    reached, codes = set(), []
    with closing(Killer("stressed")) as killer:
        expected = []
        for number, options in enumerate(SELECTIONS):
            assert killer.run(*call, tmp_path / f"quiet-{number}", *options) == 0
            expected.append(whole(tmp_path / f"quiet-{number}"))
        allowed: list[Any] = [None]
        for number in range(KILLS):
            chosen = moments.randrange(2)
            step = moments.randrange(STEPS_OF_RUN)
            codes.append(killer.run(*call, root, *SELECTIONS[chosen], step=step))
            contents = whole(root)
            # The old root or the new one. Between the steps of a swap, the old one is set aside.
            assert contents in [*allowed, expected[chosen]] or (staging / "old").is_dir()
            allowed = [contents] if contents is not None else allowed
            archives = len(list((staging / "archives").glob("*"))) if staging.exists() else 0
            reached.add((archives, contents is None))
            if number % 5 == 4:
                assert killer.run(*call, root, *SELECTIONS[chosen]) == 0
                assert whole(root) == expected[chosen]
                assert not staging.exists()
                shutil.rmtree(root.parent)
                allowed = [None]
    assert set(codes) <= {0, -9}
    assert codes.count(-9) > KILLS / 2
    assert len(reached) > 5, "the kills hit only the start or the end"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Return a function that runs a call in a process that kills itself before a disk step."""
    made_set = put_packages(MadeSet(), 2, 1000)
    set_path = made_set.write(tmp_path / "set.json")
    source = made_set.put_archives(tmp_path / "source")
    root = tmp_path / "stressed" / "root"
    call = ("materialize", set_path, "--base-url", source, "-j", 1, "--output", root)

    def run(which: int, step: int | None, failing: str | None = None) -> int:
        # Only the swap of the folders differs then.
        steps = STEPS if failing is None else ("os.rename",)
        return killer.run(*call, *SELECTIONS[which], step=step, steps=steps, failing=failing)

    with closing(Killer("stressed")) as killer:
        yield run


@pytest.mark.parametrize(
    ("is_first", "failing"),
    [
        pytest.param(True, None, id="first"),
        pytest.param(False, None, id="replacing"),
        pytest.param(
            False, "cudaredist.commands.materialize.staging._exchange", id="replacing in two steps"
        ),
    ],
)
def test_materialize_killed_before_every_step_recovers(
    driver: Callable[..., int], tmp_path: Path, *, is_first: bool, failing: str | None
) -> None:
    root = tmp_path / "stressed" / "root"
    staging = root.with_name(".root.cudaredist")
    expected = []
    for which in (0, 1):
        assert driver(which, None) == 0
        expected.append(whole(root))
    old = None if is_first else expected[0]
    steps = recovered = 0
    while True:
        shutil.rmtree(root.parent)
        if not is_first:
            assert driver(0, None) == 0
        code = driver(1, steps, failing)
        contents = whole(root)
        put_aside = staging / "old"
        if contents is None and put_aside.exists():
            recovered += 1
            assert listing(put_aside) == old
        else:
            assert contents in (old, expected[1]), f"step {steps}"
        if code == 0:
            break
        assert code == -signal.SIGKILL
        # A run without any work keeps the existing files.
        assert driver(1, None) == 0
        assert whole(root) == expected[1]
        assert not staging.exists()
        steps += 1
    assert steps > (5 if failing else 100)
    assert recovered == (1 if failing else 0)


def test_interrupted_materialize_keeps_complete_archives(
    server: FaultServer, start: Start, tmp_path: Path
) -> None:
    made_set = put_packages(MadeSet(), 6, 1000)
    set_path = made_set.write(tmp_path / "set.json")
    server.add_folder(made_set.put_archives(tmp_path / "source"))
    slow = next(path for path in server.files if "package_03" in path)
    server.misbehave(slow, faults.silent)
    root = tmp_path / "root"
    options = ("--output", root, "--base-url", server.url, "-j", 3, "--timeout", 3600)
    process = start("materialize", set_path, *options)
    archives = tmp_path / ".root.cudaredist" / "archives"
    while len([p for p in archives.glob("*") if p.suffix != ".tmp"]) < 5:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 130
    assert "hint: to resume, run `cudaredist " in stderr
    assert "Traceback" not in stderr
    assert not root.exists()
    requests = server.requests.copy()
    server.behave()
    install(start, set_path, root, *options[2:])
    assert server.requests - requests == {slow: 1}
    assert not archives.exists()


# -- several runs


@pytest.mark.parametrize("is_same", [True, False])
def test_parallel_runs_on_one_root_succeed(
    server: FaultServer, start: Start, tmp_path: Path, *, is_same: bool
) -> None:
    made_set = put_packages(MadeSet(), 8, 50_000)
    set_path = made_set.write(tmp_path / "set.json")
    server.add_folder(made_set.put_archives(tmp_path / "source"))
    root = tmp_path / "root"
    expected = []
    for number, options in enumerate(SELECTIONS):
        install(start, set_path, tmp_path / f"quiet-{number}", *options, "--base-url", server.url)
        expected.append(whole(tmp_path / f"quiet-{number}"))
    server.requests.clear()
    server.delay = 0.1
    runs = [
        start(
            *("materialize", set_path, "--output", root, "--base-url", server.url, "-j", 2),
            *SELECTIONS[0 if is_same else number % 2],
        )
        for number in range(4)
    ]
    for process in runs:
        _, stderr = process.communicate()
        assert process.returncode == 0, stderr
    assert whole(root) in expected
    assert not list(tmp_path.glob(".root*"))
    if is_same:
        assert whole(root) == expected[0]
        # The other runs waited and had no work.
        assert set(server.requests.values()) == {1}


# -- disks and networks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of eight megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", "size=8m", "tmpfs", folder)
    if subprocess.run(["mount", *options], check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize(("has_root", "has_server"), [(False, False), (True, False), (False, True)])
def test_full_disk_leaves_no_files_of_new_root(
    small_disk: Path,
    start: Start,
    tmp_path: Path,
    server: FaultServer,
    *,
    has_root: bool,
    has_server: bool,
) -> None:
    made_set = put_packages(MadeSet(), 6, 2_000_000)
    for package in made_set.packages.values():
        # Only the disk shows the size.
        package["contents"] = {}
    set_path = made_set.write(tmp_path / "set.json")
    source = made_set.put_archives(tmp_path / "source")
    server.add_folder(source)
    options = ("--base-url", server.url if has_server else source, "-j", 2)
    root = small_disk / "root"
    if has_root:
        install(start, set_path, root, *options, "--component", "package_00")
    before = whole(root)
    process = start("materialize", set_path, "--output", root, *options)
    _, stderr = process.communicate()
    assert process.returncode == 3
    # The disk can be full before a download, which is then not started.
    assert re.search("No space left on device|bytes free", stderr)
    assert [path.name for path in small_disk.iterdir()] == ["root"] * has_root
    assert whole(root) == before
    assert shutil.disk_usage(small_disk).used < 3_000_000


def test_archive_changed_while_read_exits_4(run: Run, patch: Patch) -> None:
    made_set = MadeSet()
    content = random.Random(1).randbytes(30 << 20)
    path = made_set.add("libx", {"bin/x.bin": content, "LICENSE": b"x"}, suffix="zip")
    made_set.write(Path("set.json"))
    archive = made_set.put_archives(Path("source")) / FOLDER / path

    def open_altered(name: str, file: BinaryIO) -> Members:
        with archive.open("r+b") as other:
            other.seek(20 << 20)
            other.write(b"altered")
            os.fsync(other.fileno())
        return open_archive(name, file)

    patch(archive_service, "open_archive", open_altered)
    expect_output(run("materialize", "set.json", "--output", "root", "--base-url", "source"), 4)
    assert {path.name for path in Path().iterdir()} == {"set.json", "source"}
