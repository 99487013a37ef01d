"""Tests of a user's own package: manifest, features and package sets."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import binaries
from support.releases import Files, put, release
from support.running import expect_output
from support.server import FaultServer
from support.set_inputs import LINUX, cuda, features_of, library, put_data, put_policy

MYLIB: Files = {
    "LICENSE": b"terms\n",
    "include/my.h": b"// mine\n",
    "lib/libmy.so.1": binaries.elf(soname="libmy.so.1", needed=("libcudart.so.12",)),
}


@pytest.fixture
def mine(server: FaultServer, run: Run) -> Path:
    """Create an overlay with a manifest and the address of its archive."""
    files = release("1.2.0", {"mylib": {LINUX: MYLIB}}, product="mylib")
    overlay = Path("mine")
    for path, data in files.items():
        server.files[f"/mirror/{path}"] = data
        if path.startswith("redistrib_"):
            put(overlay / "manifests/mylib", {path: data})
    put_policy(overlay, "fixups", fixups=[], urls={"mylib": f"{server.url}/mirror"})
    return overlay


def put_cuda() -> None:
    features = {
        "cuda_cudart": library("libcudart.so.12"),
        "cuda_nvcc": features_of({"bin/nvcc": None}),
    }
    put_data(Path("data"), cuda("12.9.1", features=features))


def built(run: Run, *options: object) -> dict[str, Any]:
    platform = ("--cuda", "12.9", "--platform", LINUX, "--overlay", "mine", "--json")
    result = expect_output(run("build", *platform, *options), 0)
    packages: dict[str, Any] = json.loads(result.stdout)["packages"]
    return packages


@pytest.mark.parametrize("channel", ["redist", "wheels"])
def test_own_package_is_in_sets_of_every_channel(
    mine: Path, server: FaultServer, run: Run, channel: str
) -> None:
    """Sets with shipped data also include the package."""
    if channel == "redist":
        put_cuda()
    expect_output(run("process-manifests", "--data-dir", mine, "--redist", "mylib"), 0)
    assert (mine / "features/mylib/feature_1.2.0.json").is_file()
    entry = built(run)["mylib"]
    assert entry["status"] == "available", entry["reasons"]
    assert entry["outputs"] == ["out", "include", "lib"]
    assert entry["overlay"] == ["manifest", "features"]
    assert entry["archive"]["url"].startswith(f"{server.url}/mirror/mylib/{LINUX}/mylib-")
    assert [need["satisfied_by"]["attr"] for need in entry["needs"]] == ["cuda_cudart"]


def test_export_nixpkgs_skips_own_package_with_a_warning(mine: Path, run: Run) -> None:
    put_cuda()
    expect_output(run("process-manifests", "--data-dir", mine, "--redist", "mylib"), 0)
    platform = ("--cuda", "12.9", "--platform", LINUX, "--overlay", "mine")
    assert run("build", *platform, "-o", "set.json").exit_code == 0
    result = run("export", "nixpkgs", "set.json", "-o", "tables")
    assert result.exit_code == 0, result.output
    assert "skipped mylib, because nixpkgs has only NVIDIA's redistributables" in result.stderr
    files = {path.name: path.read_text() for path in Path("tables").rglob("*") if path.is_file()}
    assert "redistrib_12.9.1.json" in files
    assert not [name for name, text in files.items() if "mylib" in text]


def test_own_package_is_read_from_mirror_with_usual_folders(
    mine: Path, server: FaultServer, run: Run
) -> None:
    for path in [path for path in server.files if path.startswith("/mirror/")]:
        path_in_mirror = path.removeprefix("/mirror/")
        server.files[f"/compute/mylib/redist/{path_in_mirror}"] = server.files.pop(path)
    options = ("--data-dir", mine, "--base-url", server.url)
    assert run("process-manifests", *options).exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("manifests", "manifest", "no part of an overlay is called 'manifest'"),
        (
            "manifests/mylib/redistrib_1.2.0.json",
            "manifests/mylib/mylib.json",
            "is not the path of a manifest",
        ),
        (
            "manifests/mylib/redistrib_1.2.0.json",
            "manifests/redistrib_1.2.0.json",
            "the path of a manifest",
        ),
    ],
)
def test_overlay_with_misplaced_files_is_refused(
    mine: Path, run: Run, old: str, new: str, message: str
) -> None:
    (mine / old).rename(mine / new)
    result = run("build", "--cuda", "12.9", "--platform", LINUX, "--overlay", mine)
    assert (result.exit_code, message in result.stderr) == (2, True), result.output


def test_misspelled_own_package_gets_suggestion(mine: Path, run: Run) -> None:
    result = run("process-manifests", "--data-dir", mine, "--redist", "mylb")
    assert result.exit_code == 2
    assert "did you mean mylib?" in result.stderr
