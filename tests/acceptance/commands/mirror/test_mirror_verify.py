"""mirror verify: each defect with its message."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.mirrors import FOLDER, NEW, OLD, serve_releases
from support.running import expect_error, expect_output, report
from support.server import FaultServer

MIRROR = Path("mirror")
NVCC = f"{FOLDER}cuda_nvcc/linux-x86_64/cuda_nvcc-linux-x86_64-{NEW}-archive.tar.xz"
CUDART = f"{FOLDER}cuda_cudart/linux-x86_64/cuda_cudart-linux-x86_64-{NEW}-archive.tar.xz"
SAME = f"{FOLDER}cuda_same/linux-x86_64/cuda_same-linux-x86_64-{NEW}-archive.tar.xz"
MANIFEST = f"{FOLDER}redistrib_{NEW}.json"
FETCHED = f".mirror/manifests/cuda/redistrib_{NEW}.json"


@pytest.fixture
def mirror(run: Run, server: FaultServer) -> Path:
    serve_releases(server)
    run("mirror", "sync", MIRROR, "--redist", "cuda", "--version", "all", "--base-url", server.url)
    return MIRROR


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def edit(path: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.unlink()
    path.write_text(json.dumps(document))


def flip(mirror: Path) -> None:
    flip_a_bit(mirror / NVCC)


def cut(mirror: Path) -> None:
    os.truncate(mirror / NVCC, 10)


def remove(mirror: Path) -> None:
    (mirror / NVCC).unlink()


def add(mirror: Path) -> None:
    (mirror / FOLDER / "extra.tar.xz").write_bytes(b"extra")


def link_wrongly(mirror: Path) -> None:
    (mirror / NVCC).unlink()
    (mirror / NVCC).hardlink_to(mirror / CUDART)


def replace_by_symlink(mirror: Path) -> None:
    (mirror / NVCC).rename(mirror / "target")
    (mirror / NVCC).symlink_to(mirror / "target")


def copy(mirror: Path) -> None:
    data = (mirror / SAME).read_bytes()
    (mirror / SAME).unlink()
    (mirror / SAME).write_bytes(data)


def change_manifest(mirror: Path) -> None:
    flip_a_bit(mirror / MANIFEST)


def replace_manifest(mirror: Path) -> None:
    edit(mirror / MANIFEST, lambda document: document.update(release_date="2020-01-01"))


def change_record(mirror: Path) -> None:
    edit(mirror / "mirror.json", lambda lock: lock["mirrored"][NVCC].update(sha256="0" * 64))


def remove_record(mirror: Path) -> None:
    edit(mirror / "mirror.json", lambda lock: lock["mirrored"].pop(NVCC))


def change_sums(mirror: Path) -> None:
    flip_a_bit(mirror / "SHA256SUMS")


def remove_page(mirror: Path) -> None:
    (mirror / FOLDER / "index.html").unlink()


DEFECTS: dict[str, tuple[Callable[[Path], None], int, list[str]]] = {
    "flipped bit": (flip, 4, [f"altered: {NVCC}: SHA-256 is HASH, and mirror.json states HASH"]),
    "cut file": (cut, 4, [f"altered: {NVCC}: SHA-256 is HASH, and mirror.json states HASH"]),
    "missing file": (remove, 3, [f"missing: {NVCC}: is in mirror.json only"]),
    "extra file": (add, 1, [f"extra: {FOLDER}extra.tar.xz: is not in mirror.json"]),
    "wrong hard link": (link_wrongly, 4, [f"wrong-link: {NVCC}: is a hard link to {CUDART}"]),
    "symbolic link": (
        replace_by_symlink,
        4,
        [f"altered: {NVCC}: is not a regular file", "extra: target: is not in mirror.json"],
    ),
    "copy instead of a hard link": (
        copy,
        1,
        [f"not-linked: {SAME}: is a copy of {SAME.replace(NEW, OLD)} instead of a hard link"],
    ),
    "changed manifest": (
        change_manifest,
        4,
        [
            f"altered: {FETCHED}: SHA-256 is HASH, but the lock states HASH",
            f"altered: {MANIFEST}: SHA-256 is HASH, and mirror.json states HASH",
        ],
    ),
    "replaced manifest": (
        replace_manifest,
        4,
        [f"altered: {MANIFEST}: SHA-256 is HASH, and mirror.json states HASH"],
    ),
    "lock with another hash": (
        change_record,
        4,
        [
            "lock: SHA256SUMS: does not agree with mirror.json",
            f"altered: {NVCC}: SHA-256 is HASH, and mirror.json states HASH",
            f"lock: {NVCC}: mirror.json states SHA-256 HASH, and the manifest cuda {NEW} HASH",
        ],
    ),
    "lock without a file": (
        remove_record,
        4,
        [
            "lock: SHA256SUMS: does not agree with mirror.json",
            f"extra: {NVCC}: is not in mirror.json",
            f"lock: {NVCC.rpartition('/')[0]}/index.html: does not agree with mirror.json",
        ],
    ),
    "changed sums": (change_sums, 4, ["lock: SHA256SUMS: does not agree with mirror.json"]),
    "missing page": (
        remove_page,
        3,
        [f"missing: {FOLDER}index.html: is not generated from mirror.json yet"],
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_verify_names_each_defect(mirror: Path, run: Run, name: str) -> None:
    damage, code, lines = DEFECTS[name]
    damage(mirror)
    result = run("mirror", "verify", mirror)
    stdout = re.sub(r"[0-9a-f]{64}", "HASH", result.stdout)
    defects = [line for line in stdout.splitlines()[:-1] if not line.startswith("    hint: run ")]
    assert defects == lines
    assert result.exit_code == code


@pytest.mark.parametrize("name", DEFECTS)
def test_hints_of_verify_repair_each_defect(
    mirror: Path, run: Run, server: FaultServer, name: str
) -> None:
    DEFECTS[name][0](mirror)
    for defect in report(run("mirror", "verify", mirror, "--json"))["defects"]:
        if "`rm " in defect["hint"]:
            (mirror / defect["path"]).unlink(missing_ok=True)
    base = ("--base-url", server.url)
    run("mirror", "sync", mirror, "--redist", "cuda", "--version", "all", *base)
    run("mirror", "prune", mirror)
    expect_output(run("mirror", "verify", mirror), 0)


def test_verify_uses_no_network(mirror: Path, run: Run, server: FaultServer) -> None:
    server.requests.clear()
    result = run("mirror", "verify", mirror)
    assert "10 files, 9 distinct contents" in result.stdout
    assert "no defects" in result.stdout
    assert not server.requests


def test_verify_of_an_invalid_lock_fails(mirror: Path, run: Run) -> None:
    edit(mirror / "mirror.json", lambda lock: lock["mirrored"].update({"../x": {}}))
    expect_error(run("mirror", "verify", mirror), 5, "mirror-lock file")
