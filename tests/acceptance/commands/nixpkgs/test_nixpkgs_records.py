"""Tests of `nixpkgs`: comments that record the decision to keep a value."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.checkouts import create_checkout
from support.nix_builds import needs_nix
from support.running import expect_output

from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH

FILES = {
    "compilers": NVCC_PATH,
    "capabilities": CAPABILITY_PATH,
    "releases": VERSIONS_PATH,
    "manifests": VERSIONS_PATH,
}


@pytest.fixture
def checkout(run: Run) -> Path:
    """Create a small checkout of nixpkgs, a set and its data folder."""
    return create_checkout()


def compare(run: Run, checkout: Path) -> dict[str, Any]:
    result = run("nixpkgs", checkout, "set.json", "--no-shipped-data", "--diff", "--json")
    report: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == bool(report["cells"])
    return report


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(checkout: Path, path: str, old: str, new: str) -> None:
    file = checkout / path
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@needs_nix
@pytest.mark.parametrize("attribute", ["cudaPackages_13_3", "cudaPackages_13_9"])
def test_every_difference_can_be_kept_by_name(run: Run, checkout: Path, attribute: str) -> None:
    package_set = json.loads(Path("set.json").read_bytes())
    package_set["cuda"]["attribute"] = attribute
    Path("set.json").write_text(json.dumps(package_set))
    cells = compare(run, checkout)["cells"]
    tables = {"compilers", "capabilities", "releases"}
    assert {cell["table"] for cell in cells} >= tables
    for cell in cells:
        with (checkout / FILES[cell["table"]]).open("a") as file:
            file.write(f"# cudaredist: keep {cell['cell']}\n")
    before = contents(checkout)
    report = compare(run, checkout)
    assert report["cells"] == []
    kept = {cell["cell"]: cell for cell in report["kept"]}
    for cell in cells:
        # Without the new release, its manifest is not necessary, and without the new set, the
        # bounds of GPUs are right.
        if cell["cell"] in kept or cell["table"] in {"compilers", "releases"}:
            assert kept[cell["cell"]]["reason"] == f"a comment keeps it; {cell['reason']}"
            assert kept[cell["cell"]]["cudaredist"] == cell["cudaredist"]
    written = run("nixpkgs", checkout, "set.json", "--no-shipped-data")
    expect_output(written, 0)
    assert contents(checkout) == before


@needs_nix
@pytest.mark.parametrize(
    ("path", "old", "new", "cell"),
    [
        (VERSIONS_PATH, '"9.3.0";', '"9.3.0"; # cudaredist: keep', "cudaPackages_13_3.cudnn"),
        (
            VERSIONS_PATH,
            "cudnn =\n",
            "# cudaredist: keep\n    cudnn =\n",
            "cudaPackages_13_3.cudnn",
        ),
        (VERSIONS_PATH, "cudnn =\n", "cudnn = # cudaredist: keep\n", "cudaPackages_13_3.cudnn"),
        (NVCC_PATH, '    "13.3" = {\n', '    "13.3" = { # cudaredist: keep\n', "13.3"),
    ],
)
def test_comment_keeps_attribute_around_it(
    run: Run, checkout: Path, path: str, old: str, new: str, cell: str
) -> None:
    change(checkout, path, old, new)
    report = compare(run, checkout)
    assert not [each for each in report["cells"] if each["cell"].startswith(f"{cell}.")]
    kept = [each for each in report["kept"] if each["cell"].startswith(f"{cell}.")]
    assert kept
    assert all(each["reason"].startswith("a comment keeps it; ") for each in kept)
    result = run("nixpkgs", checkout, "set.json", "--no-shipped-data", "--replace")
    assert "skipped" not in expect_output(result, 0).stderr
    assert new in (checkout / path).read_text()


@needs_nix
def test_kept_manifest_is_not_replaced(run: Run, checkout: Path) -> None:
    expect_output(run("nixpkgs", checkout, "set.json", "--no-shipped-data"), 0)
    path = "pkgs/development/cuda-modules/_cuda/manifests/cuda/redistrib_13.3.1.json"
    (checkout / path).write_text("{}\n")
    assert [cell["cell"] for cell in compare(run, checkout)["cells"]] == [path]
    with (checkout / VERSIONS_PATH).open("a") as file:
        file.write(f"# cudaredist: keep {path}\n")
    report = compare(run, checkout)
    assert report["cells"] == []
    assert path in [cell["cell"] for cell in report["kept"]]
    expect_output(run("nixpkgs", checkout, "set.json", "--no-shipped-data"), 0)
    assert (checkout / path).read_text() == "{}\n"


@needs_nix
def test_kept_row_does_not_get_pinned_release(run: Run, checkout: Path) -> None:
    with (checkout / VERSIONS_PATH).open("a") as file:
        file.write("# cudaredist: keep cudaPackages_13_3.cudnn\n")
    package_set = json.loads(Path("set.json").read_bytes())
    package_set["redists"]["cudnn"] |= {"mode": "pinned"}
    Path("set.json").write_text(json.dumps(package_set))
    before = (checkout / VERSIONS_PATH).read_text().count('"9.3.0"')
    result = run("nixpkgs", checkout, "set.json", "--no-shipped-data", "--replace")
    subject = "cudaPackages_13_3.cudnn for linux-x86_64 is 9.3.0, not 9.2.0"
    assert f"warning: {subject}: a comment keeps it" in expect_output(result, 0).stderr
    assert (checkout / VERSIONS_PATH).read_text().count('"9.3.0"') == before


@needs_nix
def test_diff_with_cells_names_comment(run: Run, checkout: Path) -> None:
    result = run("nixpkgs", checkout, "set.json", "--no-shipped-data", "--diff")
    assert "add the comment `# cudaredist: keep` to its row, or" in result.stderr
