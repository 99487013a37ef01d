"""Tests of `export nixpkgs` and its comparison with a checkout."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.nix_builds import needs_nix
from support.package_sets import document, example_set, shared_tables, wheel_set
from support.running import expect_error, expect_output

from cudaredist.exporters.export_format import ExportedSet
from cudaredist.exporters.nixpkgs_tables import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH
from cudaredist.jsontext import canonical_json

CHECKOUT = REPOSITORY / "tests" / "fixtures" / "checkout"
MANIFEST = "pkgs/development/cuda-modules/_cuda/manifests/cuda/redistrib_13.3.1.json"
REDISTS = {
    "cuda": {"release": "13.3.1", "mode": "pinned", "newer_rejected": []},
    "cudnn": {
        "release": "9.2.0",
        "mode": "auto",
        "newer_rejected": [{"release": "9.3.0", "reason": "no archive for linux-sbsa"}],
    },
    "cutensor": {"release": None, "mode": "auto", "newer_rejected": []},
}


@pytest.fixture
def checkout(run: Run) -> Path:
    """Create a small checkout of nixpkgs, a set and its data folder."""
    tables = shared_tables()
    folder = Path("data/manifests")
    for redist, label in (("cuda", "13.3.1"), ("cudnn", "9.2.0")):
        (folder / redist).mkdir(parents=True)
        manifest = json.dumps({"release_label": label})
        (folder / redist / f"redistrib_{label}.json").write_text(manifest)
    for name, table in (("nvcc_compat", tables.compat), ("gpus", tables.gpus)):
        content = canonical_json(table.model_dump(mode="json", by_alias=True))
        Path(f"data/{name}.json").write_bytes(content)
    package_set = example_set(
        redists=REDISTS, cuda={**document()["cuda"], "attribute": "cudaPackages_13_3"}
    )
    Path("set.json").write_bytes(ExportedSet(package_set).document)
    Path("wheels.json").write_bytes(ExportedSet(wheel_set()).document)
    shutil.copytree(CHECKOUT, "nixpkgs")
    return Path("nixpkgs")


def differences(run: Run, checkout: Path, name: str = "set.json") -> dict[str, Any]:
    result = run("export", "nixpkgs", name, "--diff", checkout, "--no-shipped-data", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == report["exit_code"] == bool(report["cells"])
    return {cell["cell"]: cell for cell in report["cells"]}


@needs_nix
def test_diff_reports_changed_cells_with_reasons(run: Run, checkout: Path) -> None:
    cells = differences(run, checkout)
    changed = {name: (cell["nixpkgs"], cell["cudaredist"]) for name, cell in cells.items()}
    capability = "minCudaMajorMinorVersion"
    assert (
        changed.items()
        >= {
            "13.3.clang.maxMajorVersion": ("20", "21"),
            "9.9.gcc.maxMajorVersion": ("6", None),
            f"8.7.{capability}": ("11.5", "11.4"),
            "9.0.maxCudaMajorMinorVersion": (None, "13.3"),
            "9.0.dontDefaultAfterCudaMajorMinorVersion": (None, "13.0"),
            "9.0a.archName": (None, "Hopper"),
            "cudaPackages_13_3.cuda.linux-x86_64": ("13.3.0", "13.3.1"),
            "cudaPackages_13_3.cudnn.linux-x86_64": ("9.3.0", "9.2.0"),
        }.items()
    )
    assert "13.3.gcc.maxMajorVersion" not in cells
    # White space in a manifest is not a difference.
    assert MANIFEST not in cells
    cudnn = cells["pkgs/development/cuda-modules/_cuda/manifests/cudnn/redistrib_9.2.0.json"]
    assert cudnn["nixpkgs"] is None
    reasons = {name: cell["reason"] for name, cell in cells.items()}
    assert reasons["13.3.clang.maxMajorVersion"].startswith("Clang: 21 is the newest accepted")
    assert reasons["9.9.gcc.maxMajorVersion"].startswith("nvcc_compat.json does not have")
    assert "no file or policy has this value" in reasons["9.0a.archName"]
    default = reasons["9.0.dontDefaultAfterCudaMajorMinorVersion"]
    assert (
        default == "not built by default after CUDA 13.0 (policy: a guide (policy/gpus.json); old)"
    )
    assert reasons["cudaPackages_13_3.cuda.linux-x86_64"] == "the CUDA release of the set"
    assert reasons["cudaPackages_13_3.cudnn.linux-x86_64"] == (
        "the newest local release that fits the set; not 9.3.0: no archive for linux-sbsa"
    )


@needs_nix
@pytest.mark.parametrize(
    ("changed", "is_downgrade", "reason"),
    [
        (
            {"newer_rejected": []},
            True,
            "the newest local release that fits the set; 9.3.0 was not local: "
            "`cudaredist download-manifests --redist cudnn --version 9.3.0`",
        ),
        ({"newer_rejected": [], "mode": "pinned"}, True, "pinned with --redist or --redist-map"),
        (
            {"release": "9.10.0", "newer_rejected": []},
            False,
            "the newest local release that fits the set",
        ),
        (
            {"release": None, "newer_rejected": []},
            False,
            "no local release is published for this set",
        ),
    ],
)
def test_diff_marks_downgrade(
    run: Run, checkout: Path, *, changed: dict[str, Any], is_downgrade: bool, reason: str
) -> None:
    package_set = json.loads(Path("set.json").read_bytes())
    package_set["redists"]["cudnn"] |= changed
    Path("set.json").write_text(json.dumps(package_set))
    Path("data/manifests/cudnn/redistrib_9.10.0.json").write_text('{"release_label": "9.10.0"}')
    cell = differences(run, checkout)["cudaPackages_13_3.cudnn.linux-x86_64"]
    assert (cell["is_downgrade"], cell["reason"]) == (is_downgrade, reason)
    lines = run("export", "nixpkgs", "set.json", "--diff", checkout).stdout.splitlines()
    assert any("cudnn.linux" in line and line.endswith(" (downgrade)") for line in lines) == (
        is_downgrade
    )
    assert lines[-1].endswith("downgrades: 1") == is_downgrade


@needs_nix
@pytest.mark.parametrize(
    ("platform", "cudnn"),
    [("linux-x86_64", "9.3.0"), ("linux-sbsa", None), ("linux-aarch64", "9.1.0")],
)
def test_diff_evaluates_releases_for_platform(
    run: Run, checkout: Path, platform: str, cudnn: str | None
) -> None:
    package_set = json.loads(Path("set.json").read_bytes())
    package_set["platform"]["redist_system"] = platform
    Path("set.json").write_text(json.dumps(package_set))
    cell = differences(run, checkout).get(f"cudaPackages_13_3.cudnn.{platform}")
    assert (cell and cell["nixpkgs"]) == cudnn


@needs_nix
def test_exported_files_have_no_difference(run: Run, checkout: Path) -> None:
    expect_output(run("export", "nixpkgs", "set.json", "-o", checkout), 0)
    result = run("export", "nixpkgs", "set.json", "--diff", checkout)
    assert (result.exit_code, result.stdout) == (0, "nixpkgs: 0 cells to change\n")
    assert run("export", "nixpkgs", "set.json", "-o", checkout, "--check").exit_code == 0


@needs_nix
def test_diff_prints_cells_with_reasons(run: Run, checkout: Path) -> None:
    result = expect_output(run("export", "nixpkgs", "set.json", "--diff", checkout), 1)
    lines = result.stdout.splitlines()
    index = lines.index('  13.3.clang.maxMajorVersion: "20" -> "21"')
    assert lines[0] == "compilers"
    assert lines[index + 1].startswith("      Clang: 21 is the newest accepted")
    assert lines[-1].endswith("cells to change; downgrades: 1")


def test_export_of_index_contains_releases_of_all_sets(run: Run, checkout: Path) -> None:
    package_set = json.loads(Path("set.json").read_bytes())
    entries = []
    for platform, label in (("linux-x86_64", "13.3.1"), ("linux-sbsa", "13.3.0")):
        package_set["platform"]["redist_system"] = platform
        package_set["redists"]["cuda"]["release"] = label
        path = Path("build", platform, "cuda-13.3.1.json")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(package_set))
        entries.append(
            {
                "path": f"{platform}/cuda-13.3.1.json",
                "sha256": "0" * 64,
                "cuda": "13.3.1",
                "platform": platform,
                "attribute": "cudaPackages_13_3",
                "capabilities": [],
                "counts": {},
            }
        )
    Path("build/index.json").write_text(
        json.dumps({"schema_version": 1, "sets": entries, "skipped": []})
    )
    older = Path("data/manifests/cuda/redistrib_13.3.0.json")
    older.write_text('{"release_label": "13.3.0"}')
    assert run("export", "nixpkgs", "build/index.json", "-o", "made").exit_code == 0
    text = Path("made", VERSIONS_PATH).read_text()
    assert 'cuda = if isAarch64 then "13.3.0" else "13.3.1";' in text
    assert 'cudnn = "9.2.0";' in text


def test_export_of_wheel_set_writes_tables_only_and_warns(run: Run, checkout: Path) -> None:
    result = run("export", "nixpkgs", "wheels.json", "-o", "made")
    assert result.exit_code == 0
    assert "skipped manifests and releases" in result.stderr
    written = {path for path in Path("made").rglob("*") if path.is_file()}
    assert written == {Path("made", NVCC_PATH), Path("made", CAPABILITY_PATH)}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nixpkgs", "set.json", "--diff", "data"], 2, "is not a checkout of nixpkgs"),
        (["nixpkgs", "set.json", "--diff", "n" * 300], 2, "is not a checkout of nixpkgs"),
    ],
)
def test_invalid_nixpkgs_options_are_rejected(
    run: Run, checkout: Path, arguments: list[str], code: int, message: str
) -> None:
    result = expect_output(run("export", *arguments), code)
    assert message in " ".join(result.stderr.split())
    assert not Path("x").exists()


def test_missing_manifest_suggests_download(run: Run, checkout: Path) -> None:
    Path("data/manifests/cudnn/redistrib_9.2.0.json").unlink()
    result = run("export", "nixpkgs", "set.json", "-o", "made")
    assert result.exit_code == 3
    assert "download-manifests --redist cudnn --version 9.2.0" in result.stderr


def test_diff_without_nix_suggests_package(
    run: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    expect_error(run("export", "nixpkgs", "set.json", "--diff", checkout), 3, "nix-bin")


@needs_nix
def test_checkout_file_in_unknown_form_exits_5(run: Run, checkout: Path) -> None:
    (checkout / NVCC_PATH).write_text("{ }")
    expect_error(run("export", "nixpkgs", "set.json", "--diff", checkout), 5, "nvccCompatibilities")
