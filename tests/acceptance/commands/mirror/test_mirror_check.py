"""mirror sync --check: it reports exactly the files that the same run writes."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run
from support.mirror_damage import DAMAGES, FETCHED, MANIFEST, MIRROR, NVCC, SAME, edit
from support.mirrors import (
    FOLDER,
    NEW,
    OLD,
    changed_paths,
    mirrored,
    path_of,
    planned_paths,
    serve_releases,
    state_of,
)
from support.mirrors import SAME as SAME_ARCHIVE
from support.running import expect_error, expect_output, report
from support.server import FaultServer
from typer.testing import Result


@pytest.fixture
def sync(run: Run, server: FaultServer) -> Run:
    """Run mirror sync of all releases of CUDA from the server."""
    serve_releases(server)

    def invoke(*options: object) -> Result:
        source = ("--base-url", server.url, "--retries", 1, "-j", 2)
        selection = () if "--version" in options else ("--version", "all")
        return run("mirror", "sync", MIRROR, "--redist", "cuda", *selection, *source, *options)

    return invoke


def forget_time() -> None:
    """Change a file's modification time, as copying does."""
    os.utime(MIRROR / NVCC, ns=(0, 0))


def remove_equal_archives() -> None:
    for label in (OLD, NEW):
        (MIRROR / SAME.replace(NEW, label)).unlink()


STATES: dict[str, Callable[[], object]] = {
    **DAMAGES,
    "nothing": lambda: None,
    "one of two equal archives is missing": (MIRROR / SAME).unlink,
    "both equal archives are missing": remove_equal_archives,
    "path with another recorded content": lambda: edit(
        "mirror.json", lambda lock: lock["mirrored"][NVCC].update(sha256="1" * 64)
    ),
    "published manifest is missing": (MIRROR / MANIFEST).unlink,
    "fetched manifest is missing": (MIRROR / FETCHED).unlink,
    "sums are missing": (MIRROR / "SHA256SUMS").unlink,
    "record of manifests is missing": (MIRROR / ".mirror/lock.json").unlink,
    "record of manifests is broken": lambda: (MIRROR / ".mirror/lock.json").write_text("{"),
    "record of manifests lacks a release": lambda: edit(
        ".mirror/lock.json", lambda lock: lock["redists"]["cuda"].pop(NEW)
    ),
    "lock is broken": lambda: (MIRROR / "mirror.json").write_text("{"),
    "other time": forget_time,
}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="all"),
        pytest.param(("--checksum",), id="checksum", marks=pytest.mark.slow),
        pytest.param(("--version", OLD), id="one release", marks=pytest.mark.slow),
    ],
)
def test_check_reports_the_files_that_sync_writes(
    sync: Run, name: str, options: tuple[str, ...]
) -> None:
    sync()
    STATES[name]()
    before = state_of(MIRROR)
    check = sync("--check", "--json", *options)
    assert state_of(MIRROR) == before
    run = sync("--json", *options)
    assert planned_paths(check) == changed_paths(before, state_of(MIRROR))
    expected = run.exit_code or int(bool(changed_paths(before, state_of(MIRROR))))
    assert check.exit_code == expected


def test_check_of_a_new_mirror_reports_each_file(sync: Run) -> None:
    check = expect_output(sync("--check", "--json"), 1)
    assert not MIRROR.exists()
    sync()
    assert planned_paths(check) == set(state_of(MIRROR))


def test_check_counts_only_bytes_to_fetch(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server, size=5000)
    path = path_of(files, "cuda_nvcc", NEW)
    expect_output(sync("--version", OLD), 0)
    whole = report(sync("--check", "--json"))["missing_bytes"]
    assert whole == sum(
        len(data) for p, data in files.items() if NEW in p and p.endswith(("z", "p"))
    ) - len(SAME_ARCHIVE)
    digest = json.loads(files[f"{FOLDER}redistrib_{NEW}.json"])["cuda_nvcc"]["linux-x86_64"]
    part = MIRROR / ".mirror/partial" / f"{digest['sha256']}.tar.xz.part"
    part.parent.mkdir(exist_ok=True)
    part.write_bytes(files[path][:3000])
    part.chmod(0o600)
    assert report(sync("--check", "--json"))["missing_bytes"] == whole - 3000


def test_check_does_not_count_stored_bytes_that_a_run_fetches_again(
    sync: Run, server: FaultServer
) -> None:
    files = serve_releases(server, NEW)
    expect_output(sync(), 0)
    size = len(files[NVCC])
    (MIRROR / NVCC).unlink()
    partial = MIRROR / ".mirror/partial"
    partial.mkdir(exist_ok=True)
    digest = json.loads((MIRROR / "mirror.json").read_bytes())["mirrored"][NVCC]["sha256"]
    for name, data in ((".tar.xz", b"wrong"), (".tar.xz.part", files[NVCC] + b"more")):
        path = partial / f"{digest}{name}"
        path.write_bytes(data)
        path.chmod(0o600)
        assert report(sync("--check", "--json"))["missing_bytes"] == size
        path.unlink()


def test_check_with_file_at_mirror_path_fails(sync: Run) -> None:
    MIRROR.write_text("a file")
    expect_error(sync("--check"), 3, "cannot write mirror: File exists")


def test_check_counts_archives_of_unknown_size(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server, NEW)
    name = f"{FOLDER}redistrib_{NEW}.json"
    document = json.loads(files[name])
    size = int(document["cuda_nvcc"]["linux-x86_64"].pop("size"))
    server.files[f"/{name}"] = json.dumps(document).encode()
    line = expect_output(sync("--check"), 1).stdout
    assert "to fetch, and 1 archive of unknown size;" in line
    assert size


def test_check_of_a_new_mirror_fetches_manifests_only(
    sync: Run, server: FaultServer, tmp_path: Path
) -> None:
    files = serve_releases(server)
    before = set(tmp_path.iterdir())
    result = expect_output(sync("--version", "all", "--check", "--json"), 1)
    outcome = report(result)
    assert set(tmp_path.iterdir()) <= {*before, tmp_path / "cache"}
    assert not any("-archive" in path for path in server.requests)
    assert {one["status"] for one in outcome["manifests"]} == {"would-write"}
    assert {one["status"] for one in outcome["archives"]} == {"would-copy"}
    expected = {data for path, data in files.items() if "redistrib_" not in path}
    assert outcome["missing_bytes"] == sum(map(len, expected))
    assert outcome["fetched_bytes"] == 0
    copied = report(expect_output(sync("--version", "all", "--json"), 0))
    assert copied["fetched_bytes"] == outcome["missing_bytes"]
    assert [a["path"] for a in copied["archives"]] == [a["path"] for a in outcome["archives"]]


def test_check_finds_what_the_next_sync_changes(sync: Run, server: FaultServer) -> None:
    serve_releases(server)
    sync("--version", OLD)
    before = mirrored(MIRROR)
    expect_output(
        sync("--version", OLD, "--check"), 0, "manifests: 1 unchanged", "0 bytes to fetch"
    )
    damaged = next(path for path in before if "cuda_nvcc/" in path and path.endswith(".tar.xz"))
    (MIRROR / damaged).write_bytes(b"damaged")
    before = mirrored(MIRROR)
    outcome = report(sync("--version", "all", "--check", "--json"))
    statuses = {one["path"]: one["status"] for one in outcome["archives"]}
    assert statuses.pop(damaged) == "would-repair"
    assert {statuses[path] for path in statuses if path in before} == {"present"}
    same = statuses.pop(path_of(statuses, "cuda_same", NEW))
    assert same == "would-link"
    assert {statuses[path] for path in statuses if path not in before} == {"would-copy"}
    assert {one["release"]: one["status"] for one in outcome["manifests"]} == {
        OLD: "unchanged",
        NEW: "would-write",
    }
    assert mirrored(MIRROR) == before


def test_check_without_answers_of_the_source_writes_nothing(sync: Run, server: FaultServer) -> None:
    server.files.clear()
    expect_output(sync("--version", "all", "--check"), 3)
    assert not MIRROR.exists()
    assert server.requests
