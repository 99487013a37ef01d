"""Tests of mirrors with `channels.json` and `releases.json`."""

import json
from pathlib import Path

import pytest
from conftest import Run
from support.nvidia_channels import ROOT, nvidia_channel_release, serve_nvidia_channels
from support.releases import EARLY, release
from support.running import expect_output
from support.server import FaultServer

RELEASES = Path("mirror/release/cuda/releases.json")


@pytest.fixture
def sync(server: FaultServer, run: Run) -> tuple[str, ...]:
    """Mirror CUDA 13.4.0 of `preview` and 13.2.0 of `archive`. Return the call."""
    serve_nvidia_channels(server, {"preview": ["13.4.0"], "archive": ["13.2.0"]})
    base = ("--redist", "cuda", "--base-url", server.url + ROOT)
    call = ("mirror", "sync", "mirror", *base, "--version", "all", "--pre")
    expect_output(run(*call, "--nvidia-channel", "archive"), 0)
    return call


def test_mirror_has_documents_of_nvidia_channels(sync: tuple[str, ...], run: Run) -> None:
    assert sync
    for label in ("13.4.0", "13.2.0"):
        files, entry = nvidia_channel_release(label)
        for path, data in files.items():
            assert (Path("mirror") / path).read_bytes() == data
        (listed,) = [
            x
            for of in json.loads(RELEASES.read_text()).values()
            for x in of
            if x["version"] == label
        ]
        assert listed == entry | {"size": int(entry["size"])}
    channels = json.loads(Path("mirror/release/channels.json").read_text())
    assert channels == {"archive": [{"product": "cuda"}], "preview": [{"product": "cuda"}]}
    assert "releases.json" in Path("mirror/release/cuda/index.html").read_text()
    expect_output(run("mirror", "verify", "mirror"), 0)


def test_mirror_is_a_source_of_nvidia_channels(
    sync: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    assert sync
    server.files.clear()
    source = ("--base-url", "mirror")
    download = ("download-manifests", "--redist", "cuda", *source, "--version", "all")
    expect_output(run(*download, "--pre", "--nvidia-channel", "archive"), 0)
    lock = json.loads(Path("data/lock.json").read_text())["redists"]["cuda"]
    nvidia_channels = {label: entry["nvidia_channel"] for label, entry in lock.items()}
    assert nvidia_channels == {"13.2.0": "archive", "13.4.0": "preview"}
    expect_output(run("process-manifests", *source, "--pre"), 0)
    assert len(list(Path("data/features/cuda").iterdir())) == 2


def test_changed_document_of_mirror_is_found(sync: tuple[str, ...], run: Run) -> None:
    assert sync
    RELEASES.write_text("{}")
    expect_output(run("mirror", "verify", "mirror"), 4, "releases.json")


def test_pruned_release_is_not_listed(sync: tuple[str, ...], run: Run) -> None:
    assert sync
    expect_output(run("mirror", "prune", "mirror", "--version", "13.2.0"), 0)
    assert list(json.loads(RELEASES.read_text())) == ["archive"]
    assert not list(Path("mirror/pool").rglob("*13.4.0*"))
    expect_output(run("mirror", "verify", "mirror"), 0)


def test_release_that_moved_is_listed_in_its_new_nvidia_channel(
    sync: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    serve_nvidia_channels(server, {"release": ["13.4.0"], "archive": ["13.2.0"]})
    expect_output(run(*sync), 0)
    listed = json.loads(RELEASES.read_text())
    assert {name: [x["version"] for x in of] for name, of in listed.items()} == {
        "archive": ["13.2.0"],
        "release": ["13.4.0"],
    }
    files = release("13.4.0", EARLY)
    classic = f"{ROOT}/compute/cuda/redist/"
    server.files |= {f"{classic}{path}": data for path, data in files.items()}
    server.files[classic] = b"<pre><a href='redistrib_13.4.0.json'></a></pre>"
    expect_output(run(*sync), 0)
    assert list(json.loads(RELEASES.read_text())) == ["archive"]
    assert Path("mirror/compute/cuda/redist/redistrib_13.4.0.json").is_file()
    expect_output(run("mirror", "verify", "mirror"), 0)
