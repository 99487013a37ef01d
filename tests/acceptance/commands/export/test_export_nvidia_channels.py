"""Tests of exported manifests with `channels.json` and `releases.json`."""

import json
from pathlib import Path

import pytest
from conftest import Run
from support.nvidia_channels import NVIDIA_CHANNELS, RELEASES, ROOT, nvidia_channel_release
from support.releases import Packages, put
from support.running import expect_error, expect_output
from support.server import FaultServer
from support.toolkits import MadeSet


def test_exported_tree_is_a_source_of_its_nvidia_channel(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("libx", {"LICENSE": b"EULA\n", "lib/x": b"x"})
    made_set.write(Path("set.json"))
    export = ("export", "redistrib", "set.json", "--output", "tree")
    expect_output(run(*export, "--nvidia-channel", "own"), 0)
    (archive,) = made_set.archives.values()
    document = json.loads(Path("set.json").read_text())["packages"]["libx"]
    path = document["archive"]["relative_path"]
    redist, label = document["redist"], document["release"]
    put(Path("tree"), {f"release/{redist}/redist/{path}": archive})
    source = ("--redist", redist, "--base-url", "tree")
    expect_output(run("download-manifests", *source, "--nvidia-channel", "own"), 0)
    lock = json.loads(Path("data/lock.json").read_text())["redists"][redist][label]
    assert lock["nvidia_channel"] == "own"
    assert lock["address"] == f"release/{redist}/redist/{lock['sha256']}.json"
    expect_output(run("process-manifests", *source), 0)
    assert Path(f"data/features/{redist}/feature_{label}.json").is_file()


@pytest.fixture
def set_of_nvidia_channel(server: FaultServer, run: Run) -> str:
    """Build a set of a release whose archives are in the pool. Return the server's root."""
    packages: Packages = {
        name: {"linux-x86_64": {f"lib/{name}": b"x"}}
        for name in ("cuda_cccl", "cuda_crt", "cuda_cudart", "cuda_nvcc", "libnvvm")
    }
    files, entry = nvidia_channel_release("13.4.0", packages)
    server.files |= {f"{ROOT}/{path}": data for path, data in files.items()}
    server.files[NVIDIA_CHANNELS] = b'{"preview": [{"product": "cuda"}]}'
    server.files[RELEASES] = json.dumps({"preview": [entry]}).encode()
    root = server.url + ROOT
    source = ("--redist", "cuda", "--base-url", root)
    expect_output(run("download-manifests", *source, "--pre", "--version", "13.4.0"), 0)
    expect_output(run("process-manifests", *source, "--version", "13.4.0"), 0)
    of_set = ("--platform", "linux-x86_64", "--allow-hollow", "--output", "set.json")
    expect_output(run("build", "--cuda", "13.4.0", *of_set), 0)
    return root


@pytest.mark.parametrize(
    ("form", "path"), [("urls", None), ("bazel", None), ("nix", "package-set.json")]
)
def test_exported_addresses_lead_to_archives_of_the_pool(
    set_of_nvidia_channel: str, run: Run, form: str, path: str | None
) -> None:
    """The paths in the manifest begin with `../../../pool/`."""
    archive = json.loads(Path("set.json").read_text())["packages"]["cuda_nvcc"]["archive"]
    assert archive["relative_path"].startswith("../../../pool/")
    below = archive["relative_path"].removeprefix("../../../")
    where = () if path is None else ("--output", "out")
    base = () if path else ("--base-url", set_of_nvidia_channel)
    text = expect_output(run("export", form, "set.json", *base, *where), 0).stdout
    if path is not None:
        text = Path("out", path).read_text()
    root = "https://packages.nvidia.com/bin-archive" if path else set_of_nvidia_channel
    assert f"{root}/{below}" in text


def test_nvidia_channel_requires_the_format_redistrib(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("libx", {"lib/x": b"x"})
    made_set.write(Path("set.json"))
    result = run("export", "urls", "set.json", "--nvidia-channel", "own")
    expect_error(result, 2, "--nvidia-channel requires the format redistrib")
    result = run("export", "redistrib", "set.json", "--output", "x", "--nvidia-channel", "a/b")
    expect_error(result, 2, "not the name of a channel")
