"""Tests of stored manifests that change upstream or in the data folder."""

import json
import re
import shutil
from pathlib import Path

import pytest
from conftest import Run
from support import server as faults
from support.factory import manifest
from support.patching import Patch
from support.running import FOLDER, LATEST, expect_error, expect_output, held, lock
from support.server import FaultServer

from cudaredist.primitives import Version
from cudaredist.store.data_folder import ManifestFolder


def change_upstream(server: FaultServer) -> None:
    server.files[LATEST] = manifest("12.9.1", salt="rebuilt")


def test_manifest_changed_upstream_is_not_overwritten(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    before = held().read_bytes()
    change_upstream(cuda)
    result = expect_output(fetch(), 4)
    assert held().read_bytes() == before
    assert "changed in place upstream" in result.stderr
    assert "cuda_cudart: linux-x86_64: sha256" in result.stderr
    assert "--replace" in result.stderr


def test_accept_changed_replaces_manifest(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    change_upstream(cuda)
    expect_output(fetch("--replace"), 0)
    assert held().read_bytes() == cuda.files[LATEST]
    assert fetch().exit_code == 0


def record_as_read(label: str = "12.9.1") -> None:
    """Record a manifest as a copy that was never compared with the server."""
    document = json.loads(Path("data/lock.json").read_bytes())
    document["redists"]["cuda"][label]["as_read"] = True
    Path("data/lock.json").write_text(json.dumps(document))


def test_manifest_read_from_copy_is_replaced_without_option(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    record_as_read()
    change_upstream(cuda)
    expect_output(fetch(), 0)
    assert held().read_bytes() == cuda.files[LATEST]
    assert "as_read" not in lock()["cuda"]["12.9.1"]
    cuda.files[LATEST] = manifest("12.9.1", salt="rebuilt again")
    expect_output(fetch(), 4)


@pytest.mark.usefixtures("cuda")
def test_manifest_read_from_copy_is_confirmed_by_equal_bytes(fetch: Run) -> None:
    fetch()
    record_as_read()
    expect_output(fetch(), 0)
    assert "as_read" not in lock()["cuda"]["12.9.1"]


def test_edited_manifest_read_from_copy_is_kept(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    record_as_read()
    held().write_bytes(held().read_bytes() + b" ")
    edited = held().read_bytes()
    change_upstream(cuda)
    expect_output(fetch(), 4)
    assert held().read_bytes() == edited


def test_killed_run_has_recorded_each_accepted_change(
    run: Run, fetch: Run, cuda: FaultServer, patch: Patch
) -> None:
    """The data folder at the second write is that of a run killed there."""
    fetch("--version", "all")
    for label in ("12.9.0", "12.9.1"):
        cuda.files[f"{FOLDER}redistrib_{label}.json"] = manifest(label, salt="rebuilt")
    write = ManifestFolder.write
    written: list[str] = []

    def write_or_be_killed(folder: ManifestFolder, label: Version, data: bytes) -> bool:
        if written:
            shutil.copytree("data", "killed")
        written.append(str(label))
        return write(folder, label, data)

    patch(ManifestFolder, "write", write_or_be_killed)
    expect_output(fetch("--version", "all", "--replace", "--jobs", 1), 0)
    checked = run("check", "--base-url", cuda.url, "--data-dir", "killed")
    assert "edited-locally" not in checked.stdout
    expect_output(fetch("--version", written[0], "--data-dir", "killed"), 0, "1 unchanged")


def test_upstream_change_of_lost_manifest_exits_4(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    held().unlink()
    change_upstream(cuda)
    assert fetch().exit_code == 4
    assert not held().exists()


def test_manifest_edited_locally_is_not_overwritten(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    edited = held().read_bytes() + b" "
    held().write_bytes(edited)
    expect_error(fetch(), 4, "edited locally", "only the bytes differ")
    assert held().read_bytes() == edited


def test_upstream_change_equal_to_local_file_exits_4(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    change_upstream(cuda)
    held().write_bytes(cuda.files[LATEST])
    lock_before = lock()
    assert fetch().exit_code == 4
    assert lock() == lock_before
    assert fetch("--replace").exit_code == 0
    assert lock() != lock_before


def test_upstream_change_with_same_date_is_detected(fetch: Run, cuda: FaultServer) -> None:
    date = {"Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT", "ETag": 'W/"1"'}

    def dated(handler: faults.Handler, data: bytes) -> None:
        if "If-Modified-Since" in handler.headers or "If-None-Match" in handler.headers:
            handler.answer(304, b"")
        else:
            handler.answer(200, data, **date)

    cuda.misbehave(LATEST, dated)
    fetch()
    change_upstream(cuda)
    assert fetch().exit_code == 4


def test_positional_form_detects_upstream_change(run: Run, cuda: FaultServer) -> None:
    url = f"{cuda.url}/compute/cuda/redist"
    run("download-manifests", url, "out")
    change_upstream(cuda)
    assert run("download-manifests", url, "out").exit_code == 4


def test_unlisted_labels_are_marked_as_gone(fetch: Run, cuda: FaultServer) -> None:
    fetch("--version", "all")
    listing = cuda.files[FOLDER]
    cuda.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
    result = fetch()
    assert "12.9.0: upstream no longer lists it" in result.stdout
    assert lock()["cuda"]["12.9.0"]["gone"] is True
    assert held("12.9.0").exists()
    cuda.files[FOLDER] = listing
    fetch()
    assert "gone" not in lock()["cuda"]["12.9.0"]


def test_partial_mirror_marks_no_label_as_gone(run: Run, fetch: Run, cuda: FaultServer) -> None:
    with FaultServer() as partial:
        partial.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
        both = ("--base-url", partial.url, "--base-url", cuda.url)
        fetch("--version", "all")
        run("download-manifests", *both)
        assert "gone" not in lock()["cuda"]["12.9.0"]
        held("12.9.0").unlink()
        assert run("download-manifests", *both, "--version", "12.9.0").exit_code == 0
        assert held("12.9.0").exists(), "a release named is looked for in every source"
        cuda.misbehave(FOLDER, faults.status(503))
        cuda.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
        run("download-manifests", *both, "--retries", "0")
        assert "gone" not in lock()["cuda"]["12.9.0"], "a source did not answer"


@pytest.mark.parametrize("command", ["download-manifests", "check"])
def test_hint_for_an_edited_manifest_restores_exactly_that_one(
    run: Run, cuda: FaultServer, command: str
) -> None:
    base = ("--base-url", cuda.url, "--redist", "cuda")
    run("download-manifests", *base, "--version", "all")
    older = held().with_name("redistrib_12.9.0.json")
    for path in (older, held()):
        path.write_bytes(path.read_bytes() + b" ")
    more = () if command == "check" else ("--version", "12.9.0")
    result = run(command, *base, *more)
    (hint,) = set(re.findall(r"`cudaredist (.*--version 12\.9\.0.*?)`", result.output))
    assert run(*hint.split(), "--base-url", cuda.url).exit_code == 0
    assert older.read_bytes() == cuda.files[f"{FOLDER}redistrib_12.9.0.json"]
    assert held().read_bytes() == cuda.files[LATEST] + b" "
