"""Tests of `nixpkgs`: changes of a checkout, and comparisons with it."""

import difflib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.checkouts import MANIFEST, PLATFORMS, create_checkout, manifest, write_index
from support.nix_builds import needs_nix
from support.package_sets import document
from support.running import expect_error, expect_output

from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH


@pytest.fixture
def checkout(run: Run) -> Path:
    """Create a small checkout of nixpkgs, a set and its data folder."""
    return create_checkout()


def differences(run: Run, checkout: Path, name: str = "set.json") -> dict[str, Any]:
    result = run("nixpkgs", checkout, name, "--diff", "--no-shipped-data", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == report["exit_code"] == bool(report["cells"])
    return {cell["cell"]: cell for cell in [*report["cells"], *report["kept"]]}


def change_set(**changes: Any) -> None:
    """Change top-level keys of the set."""
    package_set = json.loads(Path("set.json").read_bytes())
    Path("set.json").write_text(json.dumps(package_set | changes))


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
            f"8.7.{capability}": ("11.5", None),
            "9.0.dontDefaultAfterCudaMajorMinorVersion": (None, "13.0"),
            "9.0a.archName": (None, "Hopper"),
            "cudaPackages_13_3.cuda.linux-x86_64": ("13.3.0", "13.3.1"),
            "cudaPackages_13_3.cudnn.linux-x86_64": ("9.3.0", "9.2.0"),
        }.items()
    )
    assert "13.3.gcc.maxMajorVersion" not in cells
    # One more line feed at the end of a manifest is not a difference.
    assert MANIFEST not in cells
    cudnn = cells["pkgs/development/cuda-modules/_cuda/manifests/cudnn/redistrib_9.2.0.json"]
    assert cudnn["nixpkgs"] is None
    reasons = {name: cell["reason"] for name, cell in cells.items()}
    assert reasons["13.3.clang.maxMajorVersion"].startswith("Clang: 21 is the newest accepted")
    assert reasons["9.9.gcc.maxMajorVersion"].startswith("nvcc_compat.json does not have")
    assert reasons["9.0a.archName"] == "the data folder has no source of this value"
    default = reasons["9.0.dontDefaultAfterCudaMajorMinorVersion"]
    words = "package sets do not select it by default after CUDA 13.0"
    assert default == f"{words} (policy: a guide (policy/gpus.json); old)"
    assert reasons["cudaPackages_13_3.cuda.linux-x86_64"] == "the CUDA release of the set"
    assert reasons["cudaPackages_13_3.cudnn.linux-x86_64"] == (
        "the newest local release that fits the set; not 9.3.0: no archive for linux-sbsa"
    )
    tensorrt = cells["cudaPackages_13_3.tensorrt.linux-x86_64"]
    assert (tensorrt["nixpkgs"], tensorrt["cudaredist"]) == ("9.1.0", None)
    assert tensorrt["reason"] == "the package set does not have this redistributable"


@needs_nix
@pytest.mark.parametrize(
    ("changed", "is_downgrade", "reason"),
    [
        (
            {"newer_rejected": []},
            True,
            "the newest local release that fits the set; 9.3.0 was not local when the set was "
            "built: `cudaredist download-manifests --redist cudnn --version 9.3.0`",
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
    Path("data/manifests/cudnn/redistrib_9.10.0.json").write_text(manifest("9.10.0"))
    cell = differences(run, checkout)["cudaPackages_13_3.cudnn.linux-x86_64"]
    assert (cell["cudaredist"] is None) == (changed.get("release", "") is None)
    assert (cell["is_downgrade"], cell["reason"]) == (is_downgrade, reason)
    lines = run("nixpkgs", checkout, "set.json", "--diff").stdout.splitlines()
    newer = '  cudaPackages_13_3.cudnn (linux-x86_64): "9.3.0", not the older "9.2.0"'
    assert (newer in lines[lines.index("kept") :]) == is_downgrade


@needs_nix
@pytest.mark.parametrize(
    ("platform", "cudnn"),
    [("linux-x86_64", "9.3.0"), ("linux-sbsa", None), ("linux-aarch64", "9.1.0")],
)
def test_diff_evaluates_releases_for_machine(
    run: Run, checkout: Path, platform: str, cudnn: str | None
) -> None:
    package_set = json.loads(Path("set.json").read_bytes())
    package_set["platform"]["redist_system"] = platform
    Path("set.json").write_text(json.dumps(package_set))
    machine = {"linux-aarch64": "jetson-orin"}.get(platform, platform)
    cell = differences(run, checkout).get(f"cudaPackages_13_3.cudnn.{machine}")
    assert (cell and cell["nixpkgs"]) == cudnn


def merged(run: Run, checkout: Path, name: str = "set.json") -> list[str]:
    """Export into a checkout, and return the changed lines of its files."""
    before = {path: path.read_text() for path in checkout.rglob("*.nix")}
    arguments = ["nixpkgs", checkout, name, "--no-shipped-data"]
    expect_output(run(*arguments, "--replace"), 0)
    result = run(*arguments, "--diff")
    assert (result.exit_code, "0 cells to change" in result.stdout) == (0, True)
    assert run(*arguments, "--check").exit_code == 0
    return [
        f"{line[0]} {line[2:].strip()}"
        for path, text in before.items()
        for line in difflib.ndiff(text.splitlines(), path.read_text().splitlines())
        if line.startswith(("-", "+"))
    ]


@needs_nix
def test_export_changes_only_own_values_of_checkout(run: Run, checkout: Path) -> None:
    index = write_index(dict.fromkeys(PLATFORMS, "13.3.1"))
    lines = merged(run, checkout, index)
    assert {line for line in lines if line.startswith("-")} == {
        '- maxMajorVersion = "20";',
        '- cuda = "13.3.0"; # the newest',
        "- cudnn =",
        "- if hasJetsonCudaCapability then",
        '- "9.1.0"',
        "- else if hostPlatform.isAarch64 then",
        '- "9.2.0"',
        "- else",
        '- "9.3.0";',
    }
    assert {'+ cuda = "13.3.1"; # the newest', '+ cudnn = "9.2.0";'} <= set(lines)


@needs_nix
def test_machines_without_set_move_with_machine_of_same_release(run: Run, checkout: Path) -> None:
    lines = merged(run, checkout)
    assert '+ cuda = "13.3.1"; # the newest' in lines
    # The releases of cuDNN for ARM differed from that for x86-64, so they stay.
    assert '+ cudnn = if hasJetsonCudaCapability then "9.1.0" else "9.2.0";' in lines


@needs_nix
def test_export_defines_conditions_if_checkout_does_not(run: Run, checkout: Path) -> None:
    path = checkout / VERSIONS_PATH
    text = re.sub("(?s)  hostPlatform =.*?(?=  makePackages)", "", path.read_text())
    text = re.sub("(?s)if has.*?;", '"9.1.0";', text)
    path.write_text(text)
    index = write_index(
        {"linux-x86_64": "13.3.1", "linux-sbsa": "13.3.1", "linux-aarch64": "13.3.0"}
    )
    Path("data/manifests/cuda/redistrib_13.3.0.json").write_text(manifest("13.3.0"))
    lines = merged(run, checkout, index)
    assert "+ hasPreThorJetsonCudaCapability = lib.any (" in lines
    condition = "if hasPreThorJetsonCudaCapability then"
    assert f'+ cuda = {condition} "13.3.0" else "13.3.1"; # the newest' in lines


@needs_nix
def test_export_keeps_bytes_that_are_not_utf8(run: Run, checkout: Path) -> None:
    path = checkout / NVCC_PATH
    path.write_bytes(b"# \xff\n" + path.read_bytes())
    expect_output(run("nixpkgs", checkout, "set.json", "--replace"), 0)
    assert path.read_bytes().startswith(b"# \xff\n")


@needs_nix
@pytest.mark.parametrize(("attribute", "after"), [("13_4", "13_3"), ("13_1", "13_2")])
def test_export_adds_package_set_in_form_of_checkout(
    run: Run, checkout: Path, attribute: str, after: str
) -> None:
    change_set(cuda={**document()["cuda"], "attribute": f"cudaPackages_{attribute}"})
    lines = merged(run, checkout)
    assert [line for line in lines if attribute in line] == [
        f"+ cudaPackages_{attribute} = makePackages {{",
        f"+ cudaPackages_{attribute}",
    ]
    assert '+ cuda = "13.3.1";' in lines
    condition = "if hasJetsonCudaCapability then"
    assert f'+ tensorrt = {condition} "9.0.0" else "9.1.0";' in lines
    assert not [line for line in lines if "# Not everywhere" in line]
    text = (checkout / VERSIONS_PATH).read_text()
    assert f"cudaPackages_{after}\n    cudaPackages_{attribute}\n" in text


@needs_nix
@pytest.mark.parametrize("option", [[], ["--check"]])
def test_downgrade_of_checkout_is_skipped(run: Run, checkout: Path, option: list[str]) -> None:
    path = checkout / VERSIONS_PATH
    before = path.read_text()
    result = run("nixpkgs", checkout, "set.json", *option)
    assert result.exit_code == bool(option)
    assert (
        "skipped cudaPackages_13_3.cudnn 9.2.0 (linux-x86_64): nixpkgs has 9.3.0" in result.stderr
    )
    assert "--replace" in result.stderr
    after = path.read_text()
    assert (
        after == before if option else after == before.replace('cuda = "13.3.0"', 'cuda = "13.3.1"')
    )


@needs_nix
def test_newer_release_of_checkout_is_no_difference(run: Run, checkout: Path) -> None:
    expect_output(run("nixpkgs", checkout, "set.json", "--no-shipped-data"), 0)
    result = run("nixpkgs", checkout, "set.json", "--no-shipped-data", "--diff")
    expect_output(result, 0)
    assert '  cudaPackages_13_3.cudnn (linux-x86_64): "9.3.0", not the older' in result.stdout
    # A pinned release that is older than nixpkgs' is a request without a result.
    package_set = json.loads(Path("set.json").read_bytes())
    package_set["redists"]["cudnn"]["mode"] = "pinned"
    Path("set.json").write_text(json.dumps(package_set))
    expect_output(run("nixpkgs", checkout, "set.json", "--no-shipped-data"), 1)


@needs_nix
def test_checkout_of_nix_files_only_has_no_missing_manifests(run: Run, checkout: Path) -> None:
    expect_output(run("nixpkgs", checkout, "set.json", "--no-shipped-data"), 0)
    shutil.rmtree(checkout / "pkgs/development/cuda-modules/_cuda/manifests")
    result = run("nixpkgs", checkout, "set.json", "--no-shipped-data", "--diff")
    assert "0 cells to change" in expect_output(result, 0).stdout
    # A release that changes needs its manifest, and with it those of the others.
    path = checkout / VERSIONS_PATH
    path.write_text(path.read_text().replace('cuda = "13.3.1"', 'cuda = "13.3.0"'))
    expect_output(run("nixpkgs", checkout, "set.json", "--no-shipped-data"), 0)
    assert (checkout / MANIFEST).exists()
    again = run("nixpkgs", checkout, "set.json", "--no-shipped-data")
    assert "written" not in expect_output(again, 0).stdout


@needs_nix
def test_diff_has_one_line_for_machines_with_same_answer(run: Run, checkout: Path) -> None:
    index = write_index(dict.fromkeys(PLATFORMS, "13.3.1"))
    lines = run("nixpkgs", checkout, index, "--diff").stdout.splitlines()
    row = [line for line in lines if line.startswith("  cudaPackages_13_3.cuda ")]
    machines = "(linux-x86_64, linux-sbsa, jetson-orin, jetson-thor)"
    assert row == [f'  cudaPackages_13_3.cuda {machines}: "13.3.0" -> "13.3.1"']


@needs_nix
def test_export_names_kept_values_of_checkout(run: Run, checkout: Path) -> None:
    result = run("nixpkgs", checkout, "set.json", "--replace")
    assert "kept 6 values that only nixpkgs has" in result.stderr
    assert "`cudaredist nixpkgs nixpkgs set.json --diff`" in result.stderr


@needs_nix
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  };\n}\n", '  } // { "13.3".clang.maxMajorVersion = "20"; };\n}\n', "13.3.clang"),
        ("nvccCompatibilities =", "inherit (import ./rows.nix) nvccCompatibilities; rows =", "no"),
    ],
)
def test_checkout_in_unknown_form_is_unchanged(
    run: Run, checkout: Path, old: str, new: str, message: str
) -> None:
    path = checkout / NVCC_PATH
    path.with_name("rows.nix").write_bytes(path.read_bytes())
    text = path.read_text().replace(old, new)
    path.write_text(text)
    result = run("nixpkgs", checkout, "set.json", "--replace")
    expect_error(result, 5, message)
    assert path.read_text() == text


@needs_nix
def test_reason_of_value_from_policy_names_policy(run: Run, checkout: Path) -> None:
    path = checkout / CAPABILITY_PATH
    row = '"7.2" = { archName = "Volta"; minCudaMajorMinorVersion = "9.1"; };'
    path.write_text(path.read_text().replace('"8.7" =', f'{row} "8.7" ='))
    result = run("nixpkgs", checkout, "set.json", "--diff", "--json")
    cells = {cell["cell"]: cell for cell in json.loads(result.stdout)["cells"]}
    cell = cells["7.2.maxCudaMajorMinorVersion"]
    assert cell["reason"].startswith(f"{cell['cudaredist']} (policy: ")
    assert "; otherwise the newest CUDA release that knows it is 12.9" in cell["reason"]


@needs_nix
def test_diff_prints_cells_with_reasons(run: Run, checkout: Path) -> None:
    result = expect_output(run("nixpkgs", checkout, "set.json", "--diff"), 1)
    lines = result.stdout.splitlines()
    index = lines.index('  13.3.clang.maxMajorVersion: "20" -> "21"')
    assert lines[0] == "compilers"
    assert lines[index + 1].startswith("      Clang: 21 is the newest accepted")
    assert "cells to change; kept: " in lines[-1]
    assert '  9.9.gcc.maxMajorVersion: "6"' in lines[lines.index("kept") :]


def test_export_of_index_contains_releases_of_all_sets(run: Run, checkout: Path) -> None:
    index = write_index({"linux-x86_64": "13.3.1", "linux-sbsa": "13.3.0"})
    older = Path("data/manifests/cuda/redistrib_13.3.0.json")
    older.write_text(manifest("13.3.0"))
    assert run("nixpkgs", "made", index).exit_code == 0
    text = Path("made", VERSIONS_PATH).read_text()
    assert 'cuda = if hostPlatform.isAarch64 then "13.3.0" else "13.3.1";' in text
    assert 'cudnn = "9.2.0";' in text


def test_exports_to_same_folder_are_equal(run: Run, checkout: Path) -> None:
    arguments = ["nixpkgs", "made", "set.json"]
    for more in ([], [], ["--check"]):
        expect_output(run(*arguments, *more), 0)


def test_export_of_wheel_set_writes_tables_only_and_warns(run: Run, checkout: Path) -> None:
    result = run("nixpkgs", "made", "wheels.json")
    assert result.exit_code == 0
    assert "skipped manifests and releases" in result.stderr
    written = {path for path in Path("made").rglob("*") if path.is_file()}
    assert written == {Path("made", NVCC_PATH), Path("made", CAPABILITY_PATH)}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nixpkgs", "data", "set.json", "--diff"], 2, "is not a checkout of nixpkgs"),
        (["nixpkgs", "n" * 300, "set.json", "--diff"], 2, "is not a checkout of nixpkgs"),
    ],
)
def test_invalid_nixpkgs_options_are_rejected(
    run: Run, checkout: Path, arguments: list[str], code: int, message: str
) -> None:
    result = expect_output(run(*arguments), code)
    assert message in " ".join(result.stderr.split())
    assert not Path("x").exists()


def test_missing_manifest_suggests_download(run: Run, checkout: Path) -> None:
    Path("data/manifests/cudnn/redistrib_9.2.0.json").unlink()
    result = run("nixpkgs", "made", "set.json")
    assert result.exit_code == 3
    assert "download-manifests --redist cudnn --version 9.2.0" in result.stderr


def test_diff_without_nix_suggests_package(
    run: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    expect_error(run("nixpkgs", checkout, "set.json", "--diff"), 3, "nix-bin")


@needs_nix
def test_checkout_file_in_unknown_form_exits_5(run: Run, checkout: Path) -> None:
    (checkout / NVCC_PATH).write_text("{ }")
    expect_error(run("nixpkgs", checkout, "set.json", "--diff"), 5, "nvccCompatibilities")
