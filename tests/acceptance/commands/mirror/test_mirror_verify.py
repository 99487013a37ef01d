"""mirror verify: each defect with its message."""

import re
from pathlib import Path

import pytest
from conftest import Run
from support.mirror_damage import (
    CUDART,
    DAMAGES,
    FETCHED,
    MANIFEST,
    MIRROR,
    NVCC,
    SAME,
    edit,
)
from support.mirrors import FOLDER, NEW, OLD, serve_releases
from support.running import expect_error, expect_output, report
from support.server import FaultServer


@pytest.fixture
def mirror(run: Run, server: FaultServer) -> Path:
    serve_releases(server)
    run("mirror", "sync", MIRROR, "--redist", "cuda", "--version", "all", "--base-url", server.url)
    return MIRROR


WRONG = f"altered: {NVCC}: SHA-256 is HASH, and mirror.json states HASH"
OTHER_MANIFEST = f"altered: {MANIFEST}: SHA-256 is HASH, and mirror.json states HASH"
OTHER_SUMS = "lock: SHA256SUMS: does not agree with mirror.json"
DEFECTS: dict[str, tuple[int, list[str]]] = {
    "flipped bit": (4, [WRONG]),
    "cut file": (4, [WRONG]),
    "missing file": (3, [f"missing: {NVCC}: is in mirror.json only"]),
    "extra file": (1, [f"extra: {FOLDER}extra.tar.xz: is not in mirror.json"]),
    "wrong hard link": (4, [f"wrong-link: {NVCC}: is a hard link to {CUDART}"]),
    "symbolic link": (
        4,
        [f"altered: {NVCC}: is not a regular file", "extra: target: is not in mirror.json"],
    ),
    "copy instead of a hard link": (
        1,
        [f"not-linked: {SAME}: is a copy of {SAME.replace(NEW, OLD)} instead of a hard link"],
    ),
    "changed manifest": (
        4,
        [f"altered: {FETCHED}: SHA-256 is HASH, but the lock states HASH", OTHER_MANIFEST],
    ),
    "replaced manifest": (4, [OTHER_MANIFEST]),
    "lock with another hash": (
        4,
        [
            OTHER_SUMS,
            WRONG,
            f"lock: {NVCC}: mirror.json states SHA-256 HASH, and the manifest cuda {NEW} HASH",
        ],
    ),
    "lock without a file": (
        4,
        [
            OTHER_SUMS,
            f"extra: {NVCC}: is not in mirror.json",
            f"lock: {NVCC.rpartition('/')[0]}/index.html: does not agree with mirror.json",
        ],
    ),
    "private archive": (1, [f"mode: {NVCC}: not all users can read it (mode 0600)"]),
    "private page": (1, ["mode: SHA256SUMS: not all users can read it (mode 0640)"]),
    "private folder": (1, [f"mode: {FOLDER}cuda_nvcc: not all users can read it (mode 0700)"]),
    "changed sums": (4, [OTHER_SUMS]),
    "missing page": (3, [f"missing: {FOLDER}index.html: is not generated from mirror.json yet"]),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_verify_names_each_defect(mirror: Path, run: Run, name: str) -> None:
    code, lines = DEFECTS[name]
    DAMAGES[name]()
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
    DAMAGES[name]()
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
