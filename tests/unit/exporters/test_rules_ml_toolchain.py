"""Tests of the tables for rules_ml_toolchain, with a parser of Starlark."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.golden import Golden
from support.releases import put
from support.running import expect_error, expect_output

from cudaredist.exporters import find_exporter
from cudaredist.exporters.rules_ml_toolchain import ExportedManifest, NcclWheel, ToolchainFacts
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version

FILE = "cuda_redist_versions.bzl"
ADDRESS = "https://developer.download.nvidia.com/compute/{0}/redist/redistrib_{1}.json"
PUBLISHED = {
    ("CUDA", "12.1.1"): "bafea3cb83a4cf5c764eeedcaac0040d0d3c5db3f9a74550da0e7b6ac24d378c",
    ("CUDA", "12.9.1"): "8335301010b0023ee1ff61eb11e2600ca62002d76780de4089011ad77e0c7630",
    ("CUDA", "13.0.2"): "fce66717a81c510ffeb89ecc3e79849ab34af3b80139f750876d9033e31d71c2",
    ("CUDNN", "9.1.1"): "d22d569405e5683ff8e563d00d6e8c27e5e6a902c564c23d752b22a8b8b3fe20",
    ("CUDNN", "9.14.0"): "fe58e8e9559ef5c61ab7a9954472d16acdcbad3b099004296ae410d25982830d",
    ("NVSHMEM", "3.4.5"): "a656614a6ec638d85922bc816e5e26063308c3905273a72a863cf0f24e188f38",
}
"""Hashes in the tables of rules_ml_toolchain."""


def evaluated(text: str) -> Any:
    """Evaluate a Starlark file and return its module."""
    starlark = pytest.importorskip("starlark", reason="starlark-pyo3 is not installed")
    module = starlark.Module()
    starlark.eval(module, starlark.parse(FILE, text), starlark.Globals.standard())
    return module


def one_manifest(
    redist: str, label: str, packages: dict[str, str], path: str = "a/a.tar.xz"
) -> ExportedManifest:
    platform = {"relative_path": path, "sha256": "a" * 64, "md5": "b" * 32, "size": "1"}
    document = {
        name: {"name": name, "license": "CUDA", "version": version, "linux-x86_64": platform}
        for name, version in packages.items()
    }
    manifest = read_manifest(json.dumps(document).encode(), label=Version.parse(label))
    return ExportedManifest(redist, manifest, label[-1] * 64, manifest.is_preview)


def test_export_has_manifests_and_templates(golden: Golden) -> None:
    manifests = [
        one_manifest("cuda", "11.8.0", {"libcublas": "11.11.3.6", "cuda_nvcc": "11.8.89"}),
        one_manifest("cuda", "13.0.2", {"libcublas": "13.1.0.3", "other": "1.0"}),
        one_manifest("cudnn", "8.9.6", {"cudnn": "8.9.6.50"}),
        one_manifest("nvshmem", "3.4.5", {"libnvshmem": "3.4.5"}),
    ]
    ((path, content),) = (
        find_exporter("rules-ml-toolchain").files(ToolchainFacts(manifests)).items()
    )
    golden.check("export-rules-ml-toolchain.txt", path, content.decode().removesuffix("\n"))
    module = evaluated(content.decode())
    address = ADDRESS.format("cuda", "13.0.2")
    assert module["CUDA_REDIST_JSON_DICT"]["13.0.2"] == [address, "2" * 64]
    templates = module["REDIST_VERSIONS_TO_BUILD_TEMPLATES"]
    assert [*templates] == ["cudnn", "libcublas", "cuda_nvcc"]
    assert [*templates["libcublas"]["version_to_template"]] == ["13", "11"]
    assert [*templates["cuda_nvcc"]["version_to_template"]] == ["any"]


def test_export_has_wheels_of_nccl_and_versions_of_ptx() -> None:
    wheels = [
        NcclWheel("12", "linux-x86_64", "2.27.7", "https://files.example/a.whl", "a" * 64),
        NcclWheel("12", "linux-sbsa", "2.27.7", "https://files.example/b.whl", "b" * 64),
        NcclWheel("13", "linux-x86_64", "2.28.9", "https://files.example/c.whl", "c" * 64),
        NcclWheel("14", "windows-x86_64", "2.28.9", "https://files.example/d.whl", "d" * 64),
    ]
    ptx = {"clang": {"18": "8.3"}, "cuda": {"12.9": "8.8"}}
    files = find_exporter("rules-ml-toolchain").files(ToolchainFacts([], wheels, ptx))
    module = evaluated(files[FILE].decode())
    assert module["PTX_VERSION_DICT"] == ptx
    of_12 = module["CUDA_12_NCCL_WHEEL_DICT"]
    assert module["CUDA_NCCL_WHEELS"] == {"12": of_12, "13": module["CUDA_13_NCCL_WHEEL_DICT"]}
    assert of_12["aarch64-unknown-linux-gnu"] == {
        "2.27.7": {"url": "https://files.example/b.whl", "sha256": "b" * 64}
    }


def test_export_skips_early_access() -> None:
    one = one_manifest("cuda", "13.4.0", {"libcublas": "13.9.0.1"}, path="../../../pool/a.tar.xz")
    (content,) = find_exporter("rules-ml-toolchain").files(ToolchainFacts([one])).values()
    assert b"13.4.0" not in content
    assert b"libcublas" not in content


def test_export_of_wheels_has_no_hint_with_unknown_option(run: Run) -> None:
    put(Path("data/manifests/wheels/cuda"), {"redistrib_13.0.2.json": b"{}"})
    result = run("export", "rules-ml-toolchain", "--data-dir", "data")
    expect_error(result, 2, "no local manifests for --channel redist", "download-manifests")
    assert "--channel wheels" not in result.stderr


def test_export_resolves_wheels_of_nccl(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "nvidia_nccl_cu12-2.27.7-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    sha256 = "de5ba5562f08029a19cb1cd659404b18411ed0d6c90ac5f52f30bf99ad5809aa"
    page = tmp_path / "page.html"
    page.write_text(f"<a href='https://user:SECRET@files.example/{name}#sha256={sha256}'>x</a>")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(page))
    result = expect_output(run("export", "rules-ml-toolchain", "--resolve"), 0)
    module = evaluated(result.stdout)
    row = {"2.27.7": {"url": f"https://files.example/{name}", "sha256": sha256}}
    assert module["CUDA_NCCL_WHEELS"] == {"12": {"x86_64-unknown-linux-gnu": row}}
    assert module["PTX_VERSION_DICT"]["cuda"]["12.9"] == "8.8"
    assert "NCCL_WHEELS" not in run("export", "rules-ml-toolchain").stdout


@pytest.mark.parametrize("option", ["--target-set", "--root"])
def test_hint_without_set_has_placeholder(run: Run, option: str) -> None:
    result = run("export", "rules-ml-toolchain", option, "/x")
    expect_error(result, 2, option, f" SET {option} /x")


def test_export_requires_manifests_instead_of_set(run: Run) -> None:
    assert run("export", "rules-ml-toolchain", "set.json").exit_code == 2
    assert "missing SET" in run("export", "urls").stderr
    Path("data").mkdir()
    assert run("export", "rules-ml-toolchain", "--data-dir", "data").exit_code == 2


@pytest.mark.real
def test_export_of_real_manifests_equals_published_hashes(run: Run, real_manifests: Path) -> None:
    selected = [f"--redist={name}" for name in ("cuda", "cudnn", "nvshmem")]
    source = ("--base-url", real_manifests, "--version", "all", "--data-dir", "data", *selected)
    expect_output(run("download-manifests", *source, "-q"), 0)
    expect_output(run("export", "rules-ml-toolchain", "--data-dir", "data", "-o", FILE), 0)
    module = evaluated(Path(FILE).read_text())
    exported = {
        (redist, label): module[f"{redist}_REDIST_JSON_DICT"][label] for redist, label in PUBLISHED
    }
    assert exported == {
        (redist, label): [ADDRESS.format(redist.lower(), label), sha256]
        for (redist, label), sha256 in PUBLISHED.items()
    }
    assert "11.0.3" not in module["CUDA_REDIST_JSON_DICT"]
