"""Tests of the positional form of process-manifests and of --legacy."""

import json
from pathlib import Path

from conftest import Run
from support.processing import entry
from support.releases import Files, publish, release
from support.running import expect_output
from support.server import FaultServer


def test_positional_form_writes_next_to_manifests(cuda_archives: FaultServer, run: Run) -> None:
    result = run(
        "process-manifests",
        *("--log-level", "DEBUG", "--version", "12.9.1", "--no-parallel", "--no-cleanup"),
        f"{cuda_archives.url}/compute/cuda/redist",
        "data/manifests/cuda",
    )
    assert result.exit_code == 0, result.output
    assert entry("cuda_cccl", "linux-sbsa", Path("data/manifests/cuda/feature_12.9.1.json"))


def test_legacy_file_has_six_booleans(cuda_archives: FaultServer, run: Run) -> None:
    url = f"{cuda_archives.url}/compute/cuda/redist"
    assert run("process-manifests", "--legacy", url, "data/manifests/cuda").exit_code == 0
    expect_output(run("process-manifests", "--legacy", url, "data/manifests/cuda"), 0, "unchanged")
    written = Path("data/manifests/cuda/feature_12.9.1.json").read_text()
    assert written.startswith(
        '{\n  "cuda_cccl": {\n    "linux-sbsa": {\n      "outputs": {\n'
        '        "bin": false,\n        "dev": true,\n        "doc": false,\n'
        '        "lib": false,\n        "sample": false,\n        "static": false\n      }\n'
    )
    assert written.endswith("}\n")
    outputs = json.loads(written)["cuda_cudart"]["linux-x86_64"]["outputs"]
    assert {name for name, exists in outputs.items() if exists} == {"dev", "lib", "static"}


def test_legacy_file_keeps_entries_of_failed_archives(cuda_archives: FaultServer, run: Run) -> None:
    url = f"{cuda_archives.url}/compute/cuda/redist"
    call = ("process-manifests", "--legacy", "--retries", 0, url, "data/manifests/cuda")
    path = Path("data/manifests/cuda/feature_12.9.1.json")
    assert run(*call).exit_code == 0
    whole = path.read_bytes()
    assert run(*call, "--package", "cuda_cccl", "--cache-dir", "other").exit_code == 0
    assert path.read_bytes() == whole
    for gone in [path for path in cuda_archives.files if "cuda_cudart" in path]:
        del cuda_archives.files[gone]
    assert run(*call, "--cache-dir", "third").exit_code == 3
    assert path.read_bytes() == whole
    for broken in (b"{", b"[]", b"[" * 100_000, b'{"x": 1}', b'{"schema_version": 1}'):
        path.write_bytes(broken)
        assert run(*call).exit_code == 0
        assert path.read_bytes() == whole


def test_legacy_file_nests_variants_like_manifest(server: FaultServer, run: Run) -> None:
    files: Files = {"include/cudnn.h": b"//\n"}
    packages = {"cudnn": {"linux-x86_64/cuda11": files, "linux-x86_64/cuda12": files}}
    publish(server, release("9.1.0", packages, product="cudnn"), "cudnn")
    url = f"{server.url}/compute/cudnn/redist"
    assert run("process-manifests", "--legacy", url, "data/manifests/cudnn").exit_code == 0
    written = json.loads(Path("data/manifests/cudnn/feature_9.1.0.json").read_bytes())
    assert list(written["cudnn"]["linux-x86_64"]) == ["cuda11", "cuda12"]


def test_legacy_file_has_the_values_of_the_older_tool(server: FaultServer, run: Run) -> None:
    """Stubs are libraries, manual pages are `doc`, and a library needs a name that ends in .so."""
    empty = b""
    trees: dict[str, tuple[Files, set[str]]] = {
        "stubs": ({"lib/stubs/libx.so": empty, "lib/stubs/liby.a": empty}, {"lib", "static"}),
        "versioned": ({"lib/libx.so.1": empty}, set()),
        "nested": ({"lib/12/libx.so": empty}, {"lib"}),
        "manual": ({"share/man/man1/x.1": empty}, {"doc"}),
        "documents": ({"docs/x.html": empty, "doc/x.html": empty}, set()),
        "headers": ({"include/x.h": b"//\n"}, {"dev"}),
        "config": ({"lib/cmake/x/x.cmake": empty}, {"dev"}),
        "package": ({"pkg-config/x.pc": empty}, set()),
        "samples": ({"samples/x.cu": empty}, {"sample"}),
        "elsewhere": ({"lib64/libx.so": empty, "x.a": empty}, set()),
    }
    packages = {name: {"linux-x86_64": files} for name, (files, _) in trees.items()}
    publish(server, release("1.0.0", packages, product="cudnn"), "cudnn")
    url = f"{server.url}/compute/cudnn/redist"
    assert run("process-manifests", "--legacy", url, "data/manifests/cudnn").exit_code == 0
    written = json.loads(Path("data/manifests/cudnn/feature_1.0.0.json").read_bytes())
    found = {
        name: {key for key, value in written[name]["linux-x86_64"]["outputs"].items() if value}
        for name in trees
    }
    assert found == {name: expected for name, (_, expected) in trees.items()}
