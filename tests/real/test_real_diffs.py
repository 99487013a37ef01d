"""Tests of diff and bump on NVIDIA's real manifests."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REAL_MANIFESTS, Run
from support.running import expect_output, succeed
from support.server import FaultServer
from typer.testing import Result

from cudaredist.primitives import Version, label_of_manifest_name

pytestmark = pytest.mark.real

FIVE = ("cuda", "cudnn", "cusparselt", "cutensor", "nccl")


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with every real manifest."""
    if not REAL_MANIFESTS.is_dir():
        pytest.skip(f"NVIDIA's manifests are not at {REAL_MANIFESTS}")
    root = tmp_path_factory.mktemp("data_folder")
    places = ("--data-dir", root / "data", "--cache-dir", root / "cache")
    succeed("download-manifests", "--base-url", REAL_MANIFESTS, "--version", "all", "-q", *places)
    return root / "data"


def diffed(run: Run, data: Path, old: str, new: str, *more: str) -> Result:
    return expect_output(run("diff", old, new, "--data-dir", data, *more), 0)


def test_diff_of_12_and_13_lists_packages_and_split_of_nvcc(run: Run, data_folder: Path) -> None:
    lines = diffed(run, data_folder, "cuda@12.9.1", "cuda@13.0.2").stdout.splitlines()
    assert lines[:3] == [
        "cuda@12.9.1 -> cuda@13.0.2",
        "summary:",
        "  5 packages gone, 2 packages split",
    ]
    start = lines.index("platforms:")
    assert lines[start : start + 4] == [
        "platforms:",
        "  linux-aarch64: no archives any more (of 27 packages)",
        "gone:",
        "  cuda_compat 12.9.40580548 (linux-aarch64)",
    ]
    assert "  cuda_nvcc 12.9.86 -> 13.0.88 split: cuda_crt, libnvptxcompiler, libnvvm" in lines
    found = json.loads(diffed(run, data_folder, "cuda@12.9.1", "cuda@13.0.2", "--json").stdout)
    by_status: dict[str, set[str]] = {}
    for package in found["packages"]:
        by_status.setdefault(package["status"], set()).add(package["package"])
    old, new = (packages_of(data_folder, label) for label in ("12.9.1", "13.0.2"))
    assert by_status["gone"] == old - new
    assert by_status["added"] == new - old
    assert {"cuda_nvprof", "cuda_nvvp"} <= by_status["gone"]
    assert {"cuda_crt", "libnvvm", "libnvptxcompiler"} <= by_status["added"]


def packages_of(data: Path, label: str) -> set[str]:
    document = json.loads((data / f"manifests/cuda/redistrib_{label}.json").read_bytes())
    return {name for name in document if not name.startswith("release_")}


def test_diff_of_patch_releases_is_short(run: Run, data_folder: Path) -> None:
    lines = diffed(run, data_folder, "cuda@12.6.2", "cuda@12.6.3").stdout.splitlines()
    assert len(lines) == 12
    assert lines[1] == "changed:"
    assert lines[-1] == "9 packages differ, 33 are equal"


def test_diff_of_cudnn_reports_lost_platform(run: Run, data_folder: Path) -> None:
    lines = diffed(run, data_folder, "cudnn@8.9.5", "cudnn@8.9.6").stdout.splitlines()
    assert lines[2] == "  linux-aarch64/cuda12: no archives any more (of cudnn, cudnn_samples)"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "cutensor@2.2.0",
            "cutensor@2.3.0",
            "      variants [linux-sbsa, linux-x86_64, windows-x86_64]: +cuda12 +cuda13",
        ),
        (
            "cusparselt@0.7.1",
            "cusparselt@0.8.1",
            "      variants [linux-aarch64, linux-sbsa, linux-x86_64, windows-x86_64]: "
            "+cuda12 +cuda13",
        ),
        (
            "cuquantum@23.03.0",
            "cuquantum@23.06.0",
            "      variants [linux-ppc64le, linux-sbsa, linux-x86_64]: +cuda11 +cuda12",
        ),
        ("nvshmem@3.4.5", "nvshmem@3.8.0", "      variants [source]: +cuda12 +cuda13"),
    ],
)
def test_diff_of_nested_manifest_reports_no_lost_platform(
    run: Run, data_folder: Path, old: str, new: str, line: str
) -> None:
    lines = diffed(run, data_folder, old, new).stdout.splitlines()
    assert line in lines
    assert not [line for line in lines if "gone" in line]


def test_diff_with_missing_hash_reports_no_other_bytes(run: Run, data_folder: Path) -> None:
    text = diffed(run, data_folder, "cuda@11.4.1", "cuda@11.4.2").stdout
    assert "other bytes" not in text
    assert "may break" not in text


def test_diff_reports_renamed_cccl(run: Run, data_folder: Path) -> None:
    lines = diffed(run, data_folder, "cuda@13.0.2", "cuda@13.4.2").stdout.splitlines()
    at = lines.index("renamed:")
    assert lines[at + 1].startswith("  cuda_cccl 13.0.85 -> cccl 13.3.")


# -- bump


def newest(redist: str) -> Path:
    paths = (REAL_MANIFESTS / f"compute/{redist}/redist").glob("redistrib_*.json")
    labels = {label_of_manifest_name(path.name): path for path in paths}
    return labels[max(filter(None, labels))]


def label(redist: str) -> Version:
    version = label_of_manifest_name(newest(redist).name)
    assert version is not None
    return version


def serve(server: FaultServer, *, with_newest: bool) -> None:
    """Serve the real manifests, with or without the newest of five redistributables."""
    server.add_folder(REAL_MANIFESTS)
    for redist in FIVE:
        folder = REAL_MANIFESTS / f"compute/{redist}/redist"
        labels = {label_of_manifest_name(p.name): p for p in folder.glob("redistrib_*.json")}
        if not with_newest:
            del labels[label(redist)]
        server.add_manifests(redist, {str(one): p.read_bytes() for one, p in labels.items()})


def test_bump_adds_newest_of_five_redists(run: Run, server: FaultServer) -> None:
    serve(server, with_newest=False)
    base = ("--base-url", server.url)
    expect_output(run("download-manifests", *base, "--version", "all", "-q"), 0)
    bump = ("bump", *base, "--no-process", "-q")
    assert run(*bump).stdout == "nothing is new\n"
    serve(server, with_newest=True)
    assert run(*bump, "--check").exit_code == 1
    result = expect_output(
        run(*bump, "--format", "commit-message", "--changelog", "CHANGELOG.md"), 0
    )
    subject, _, *lines = result.stdout.splitlines()
    assert subject == "cuda redistributables: 5 new releases of 5 products"
    for redist, line in zip(FIVE, lines, strict=False):
        data_folder = Path("data/manifests", redist, newest(redist).name)
        assert data_folder.read_bytes() == newest(redist).read_bytes()
        assert line.startswith(f"{redist}: ")
        assert line.endswith(f" -> {label(redist)}")
        assert f"- {line}" in Path("CHANGELOG.md").read_text().splitlines()
    found: Any = json.loads(run("check", *base, "--json").stdout)
    kinds = {finding["kind"] for finding in found["findings"] if finding["exit_code"]}
    assert kinds == {"no-features", "table-missing"}
    assert run(*bump).stdout == "nothing is new\n"
