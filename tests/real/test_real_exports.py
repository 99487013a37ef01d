"""Tests of exports of real package sets with real consumers."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.consumers import NIX_SUMMARY, evaluate_nix, read_cyclonedx, read_spdx
from support.optional_programs import find_program
from support.running import expect_output

from cudaredist.exporters import EXPORTERS
from cudaredist.manifests.read_manifest import read_manifest

pytestmark = pytest.mark.real

SETS = [
    ("11.8.0", "linux-ppc64le"),
    ("12.6.3", "linux-aarch64"),
    ("12.6.3", "linux-x86_64"),
    ("12.9.1", "windows-x86_64"),
    ("13.0.2", "linux-sbsa"),
    ("13.4.2", "linux-x86_64"),
]


def build(run: Run, data: str, cuda: str, platform: str, output: str) -> dict[str, Any]:
    options = ("--cuda", cuda, "--platform", platform, "--allow-missing-features", "-q")
    expect_output(run("build", "--data-dir", data, *options, "-o", output), 0)
    document: dict[str, Any] = json.loads(Path(output).read_bytes())
    return document


def available(document: dict[str, Any]) -> dict[str, Any]:
    return {
        name: package
        for name, package in document["packages"].items()
        if package["status"] == "available"
    }


@pytest.mark.parametrize(("cuda", "platform"), SETS)
def test_real_sets_are_exported_and_read_by_consumers(
    run: Run, real_manifests: Path, cuda: str, platform: str
) -> None:
    fetched = ("--base-url", real_manifests, "--version", "all", "--data-dir", "data")
    assert run("download-manifests", *fetched, "-q").exit_code == 0
    document = build(run, "data", cuda, platform, "set.json")
    for table in ("nvcc_compat.json", "gpus.json"):
        shutil.copy(REPOSITORY / "data" / table, "data")
    for name in EXPORTERS.keys() - {
        "pylock",
        "requirements",
        "rules-ml-toolchain",
    }:  # require wheels or manifests
        exporter = EXPORTERS[name]
        Path(name).mkdir()
        expect_output(run("export", name, "set.json", "-o", name, "-q"), 0)
        assert exporter.file is None or Path(name, exporter.file).is_file()
    packages = [p for p in available(document).values() if p["alias_of"] is None]
    bom = read_cyclonedx(Path("cyclonedx/bom.cdx.json").read_text())
    assert len(bom["components"]) == len(packages)
    assert len(read_spdx(Path("spdx/bom.spdx.json").read_text())["packages"]) == len(packages)
    urls = {package["archive"]["url"] for package in packages}
    assert set(Path("urls/urls.txt").read_text().splitlines()) == urls
    assert len(Path("sha256sums/SHA256SUMS").read_text().splitlines()) == len(urls)
    if find_program("nix-instantiate"):
        summary = evaluate_nix(Path("nix"), NIX_SUMMARY)
        assert summary.keys() == document["packages"].keys()
        for name, package in document["packages"].items():
            assert summary[name]["builds"] == [package["status"] == "available"] * 3


@pytest.mark.parametrize(("cuda", "platform"), SETS)
def test_real_sets_are_rebuilt_from_exported_manifests(
    run: Run, real_manifests: Path, cuda: str, platform: str
) -> None:
    fetched = ("--base-url", real_manifests, "--version", "all", "--data-dir", "data")
    assert run("download-manifests", *fetched, "-q").exit_code == 0
    first = available(build(run, "data", cuda, platform, "set.json"))
    assert run("export", "redistrib", "set.json", "-o", "again/manifests").exit_code == 0
    for path in Path("again").rglob("*.json"):
        assert not read_manifest(path.read_bytes()).warnings
    again = available(build(run, "again", cuda, platform, "again.json"))
    assert {name: identity(package) for name, package in again.items()} == {
        name: identity(package) for name, package in first.items()
    }


def identity(package: dict[str, Any]) -> tuple[object, ...]:
    """Return the fields that identify a package, independent of its platform."""
    archive = package["archive"]
    return (
        *(package["version"], package["redist"], package["release"], package["license"]),
        *(archive[key] for key in ("relative_path", "url", "sha256", "sri", "md5", "size")),
        *(archive["format"], archive["strip_prefix"]),
    )
