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


def write(name: str, data: bytes) -> None:
    """Write a file that is not linked to others."""
    (MIRROR / name).unlink(missing_ok=True)
    (MIRROR / name).write_bytes(data)


def flip(name: str) -> None:
    data = bytearray((MIRROR / name).read_bytes())
    data[len(data) // 2] ^= 1
    (MIRROR / name).write_bytes(data)


def edit(name: str, change: Callable[[Any], object]) -> None:
    document = json.loads((MIRROR / name).read_bytes())
    change(document)
    write(name, json.dumps(document).encode())


def link_wrongly() -> None:
    (MIRROR / NVCC).unlink()
    (MIRROR / NVCC).hardlink_to(MIRROR / CUDART)


def replace_by_symlink() -> None:
    (MIRROR / NVCC).rename(MIRROR / "target")
    (MIRROR / NVCC).symlink_to(MIRROR / "target")


WRONG = f"altered: {NVCC}: SHA-256 is HASH, and mirror.json states HASH"
OTHER_MANIFEST = f"altered: {MANIFEST}: SHA-256 is HASH, and mirror.json states HASH"
OTHER_SUMS = "lock: SHA256SUMS: does not agree with mirror.json"
DEFECTS: dict[str, tuple[Callable[[], object], int, list[str]]] = {
    "flipped bit": (lambda: flip(NVCC), 4, [WRONG]),
    "cut file": (lambda: os.truncate(MIRROR / NVCC, 10), 4, [WRONG]),
    "missing file": ((MIRROR / NVCC).unlink, 3, [f"missing: {NVCC}: is in mirror.json only"]),
    "extra file": (
        lambda: write(f"{FOLDER}extra.tar.xz", b"extra"),
        1,
        [f"extra: {FOLDER}extra.tar.xz: is not in mirror.json"],
    ),
    "wrong hard link": (link_wrongly, 4, [f"wrong-link: {NVCC}: is a hard link to {CUDART}"]),
    "symbolic link": (
        replace_by_symlink,
        4,
        [f"altered: {NVCC}: is not a regular file", "extra: target: is not in mirror.json"],
    ),
    "copy instead of a hard link": (
        lambda: write(SAME, (MIRROR / SAME).read_bytes()),
        1,
        [f"not-linked: {SAME}: is a copy of {SAME.replace(NEW, OLD)} instead of a hard link"],
    ),
    "changed manifest": (
        lambda: flip(MANIFEST),
        4,
        [f"altered: {FETCHED}: SHA-256 is HASH, but the lock states HASH", OTHER_MANIFEST],
    ),
    "replaced manifest": (
        lambda: edit(MANIFEST, lambda document: document.update(release_date="2020-01-01")),
        4,
        [OTHER_MANIFEST],
    ),
    "lock with another hash": (
        lambda: edit("mirror.json", lambda lock: lock["mirrored"][NVCC].update(sha256="0" * 64)),
        4,
        [
            OTHER_SUMS,
            WRONG,
            f"lock: {NVCC}: mirror.json states SHA-256 HASH, and the manifest cuda {NEW} HASH",
        ],
    ),
    "lock without a file": (
        lambda: edit("mirror.json", lambda lock: lock["mirrored"].pop(NVCC)),
        4,
        [
            OTHER_SUMS,
            f"extra: {NVCC}: is not in mirror.json",
            f"lock: {NVCC.rpartition('/')[0]}/index.html: does not agree with mirror.json",
        ],
    ),
    "changed sums": (lambda: flip("SHA256SUMS"), 4, [OTHER_SUMS]),
    "missing page": (
        (MIRROR / FOLDER / "index.html").unlink,
        3,
        [f"missing: {FOLDER}index.html: is not generated from mirror.json yet"],
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_verify_names_each_defect(mirror: Path, run: Run, name: str) -> None:
    damage, code, lines = DEFECTS[name]
    damage()
    result = run("mirror", "verify", mirror)
    stdout = re.sub(r"[0-9a-f]{64}", "HASH", result.stdout)
    defects = [line for line in stdout.splitlines()[:-1] if not line.startswith("    hint: run ")]
    assert defects == lines
    assert result.exit_code == code


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_hints_of_verify_repair_each_defect(
    mirror: Path, run: Run, server: FaultServer, name: str
) -> None:
    DEFECTS[name][0]()
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
    edit("mirror.json", lambda lock: lock["mirrored"].update({"../x": {}}))
    expect_error(run("mirror", "verify", mirror), 5, "mirror-lock file")


def test_sync_repairs_an_invalid_lock(mirror: Path, run: Run, server: FaultServer) -> None:
    (mirror / "mirror.json").write_text("not JSON")
    hint = expect_error(run("mirror", "verify", mirror), 5, "run `cudaredist mirror sync ").stderr
    assert "to create it again" in hint
    server.requests.clear()
    sync = ("mirror", "sync", mirror, "--redist", "cuda", "--version", "all")
    result = run(*sync, "--base-url", server.url)
    assert "run mirror sync for all releases" in result.stderr
    assert result.exit_code == 0
    assert not [path for path in server.requests if path.endswith((".xz", ".zip"))]
    expect_output(run("mirror", "verify", mirror), 0)
