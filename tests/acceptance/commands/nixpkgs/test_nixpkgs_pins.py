"""Tests of `nixpkgs --redist` and `--only` with the name of a redistributable."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from conftest import Run
from support.checkouts import CHECKOUT
from support.nix_builds import needs_nix
from support.running import expect_error, expect_output

from cudaredist.nixpkgs.paths import NVCC_PATH, VERSIONS_PATH

X86, SERVER_ARM, JETSON = "linux-x86_64", "linux-sbsa", "linux-aarch64"
SETS = """{ _cuda, callPackage, config, lib }:
let
  hostPlatform = callPackage ({ stdenv }: stdenv.hostPlatform) { };
  hasJetsonCudaCapability = lib.any (
    name: _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false
  ) (config.cudaCapabilities or [ ]);
  make = versions: callPackage ../x { manifests = _cuda.lib.selectManifests versions; };

  cudaPackages_12_9 = make {
    cuda = "12.9.1";
    cudnn = if hasJetsonCudaCapability then "9.20.0" else "9.21.0";
    cuquantum = "26.3.0";
    cusparselt = "0.8.1";
    nvtiff = "0.5.0";
  };

  cudaPackages_13_4 = make {
    cuda = "13.4.2";
    cudnn = "9.21.0";
    cuquantum = "26.3.0";
    cusparselt = "0.9.0";
    nvtiff = "0.5.0";
  };
in
{
  inherit cudaPackages_12_9 cudaPackages_13_4;
}
"""
PACKAGES = {"cuda": ("cuda_nvcc", "cuda_cudart"), "cusparselt": ("libcusparse_lt",)}
PACKAGES |= {"cudnn": ("cudnn",), "cuquantum": ("cuquantum",), "nvtiff": ("libnvtiff",)}


def write_manifest(redist: str, label: str, variants: Mapping[str, Sequence[str]]) -> None:
    """Write a manifest with the variants of each platform. Without variants, it has one archive."""
    document: dict[str, object] = {"release_label": label}
    for package in PACKAGES[redist]:
        entry: dict[str, object] = {"name": package, "license": "B", "version": label}
        if any(variants.values()):
            entry["cuda_variant"] = ["12", "13"]
        for platform, names in variants.items():
            archives = {}
            for name in names or [""]:
                path = f"{package}/{platform}/{package}-{platform}-{label}{name}-archive.tar.xz"
                archives[name] = {
                    "relative_path": path,
                    "sha256": "0" * 64,
                    "md5": "0" * 32,
                    "size": "1",
                }
            entry[platform] = archives if names else archives[""]
        document[package] = entry
    file = Path("data/manifests", redist, f"redistrib_{label}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


@pytest.fixture
def checkout(run: Run) -> Path:
    """Create a checkout with two package sets, and a data folder with their releases."""
    both = ("cuda12", "cuda13")
    write_manifest("cuda", "12.9.1", {X86: (), SERVER_ARM: (), JETSON: ()})
    write_manifest("cuda", "13.4.2", {X86: (), SERVER_ARM: ()})
    write_manifest("cudnn", "9.20.0", {X86: both, SERVER_ARM: both, JETSON: ("cuda12",)})
    for label in ("9.21.0", "9.27.0"):
        write_manifest("cudnn", label, {X86: both, SERVER_ARM: both})
    write_manifest("cusparselt", "0.8.1", {X86: both, SERVER_ARM: both, JETSON: both})
    for label in ("0.9.0", "0.10.0"):
        write_manifest("cusparselt", label, {X86: ("cuda13",), SERVER_ARM: ("cuda13",)})
    for label in ("26.3.0", "26.9.0"):
        write_manifest("cuquantum", label, {X86: both, SERVER_ARM: both})
    for label in ("0.5.0", "0.5.1"):
        write_manifest("nvtiff", label, {X86: both, SERVER_ARM: both, JETSON: both})
    shutil.copytree(CHECKOUT, "nixpkgs")
    Path("nixpkgs", VERSIONS_PATH).write_text(SETS)
    return Path("nixpkgs")


@needs_nix
def test_pin_without_archive_for_machine_keeps_its_label(run: Run, checkout: Path) -> None:
    result = expect_output(run("nixpkgs", checkout, "--only", "cudnn", "--redist", "cudnn=9.27"), 0)
    text = Path(checkout, VERSIONS_PATH).read_text()
    assert text == SETS.replace('"9.21.0"', '"9.27.0"')
    lines = [line for line in result.stderr.splitlines() if line.startswith("warning: cudaPack")]
    subject = "warning: cudaPackages_12_9.cudnn for jetson-{} is 9.20.0, not 9.27.0: "
    reason = f"cudnn is not published for {JETSON}"
    assert lines[0].startswith(subject.format("orin") + reason)
    assert lines[1].startswith(f"{subject.format('thor')}it follows jetson-orin: {reason}")
    assert len(lines) == 2


@needs_nix
def test_pin_without_variant_for_set_keeps_its_label(run: Run, checkout: Path) -> None:
    options = ("--only", "cusparselt", "--redist", "cusparselt=0.10.0")
    result = expect_output(run("nixpkgs", checkout, *options), 0)
    text = Path(checkout, VERSIONS_PATH).read_text()
    assert text == SETS.replace('"0.9.0"', '"0.10.0"')
    assert result.stderr.count("warning: cudaPackages_12_9.cusparselt for ") == 4
    second = expect_output(run("nixpkgs", checkout, *options, "--diff"), 0)
    assert second.stderr.count("warning: cudaPackages_12_9.cusparselt for ") == 4


@needs_nix
def test_pin_without_any_archive_for_machine_needs_no_condition(run: Run, checkout: Path) -> None:
    options = ("--only", "cuquantum", "--redist", "cuquantum=26.9.0")
    expect_output(run("nixpkgs", checkout, *options), 0)
    assert Path(checkout, VERSIONS_PATH).read_text() == SETS.replace('"26.3.0"', '"26.9.0"')


@needs_nix
def test_only_redistributable_changes_its_rows(run: Run, checkout: Path) -> None:
    expect_output(run("nixpkgs", checkout, "--only", "nvtiff"), 0)
    assert Path(checkout, VERSIONS_PATH).read_text() == SETS.replace('"0.5.0"', '"0.5.1"')
    folder = checkout / "pkgs/development/cuda-modules/_cuda/manifests"
    assert [path.name for path in folder.iterdir()] == ["nvtiff"]


@needs_nix
def test_only_redistributable_adds_no_set(run: Run, checkout: Path) -> None:
    sets = SETS[: SETS.index("  cudaPackages_13_4")] + "in\n{\n  inherit cudaPackages_12_9;\n}\n"
    Path(checkout, VERSIONS_PATH).write_text(sets)
    expect_output(run("nixpkgs", checkout, "--only", "nvtiff"), 0)
    assert Path(checkout, VERSIONS_PATH).read_text() == sets.replace('"0.5.0"', '"0.5.1"')


@needs_nix
def test_only_unknown_name_suggests_redistributable(run: Run, checkout: Path) -> None:
    expect_error(run("nixpkgs", checkout, "--only", "cudn"), 2, "cudnn")


def test_pin_that_new_set_cannot_use_is_replaced(run: Run, checkout: Path) -> None:
    result = expect_output(run("nixpkgs", "new", "--redist", "cusparselt=0.10.0"), 0)
    text = Path("new", VERSIONS_PATH).read_text()
    older, newer = text.split("cudaPackages_13_4 = ")
    assert 'cusparselt = "0.8.1";' in older
    assert 'cusparselt = "0.10.0";' in newer
    expected = "cudaPackages_12_9.cusparselt for linux-x86_64 is 0.8.1, not 0.10.0: "
    assert expected in result.stderr


OWN_SELECTION = """{ _cuda, callPackage, config, lib }:
let
  select = lib.mapAttrs (
    name: version:
    let
      manifest = _cuda.manifests.${name}.${version};
    in
    manifest // { release_label = manifest.release_label or version; }
  );

  cudaPackages_12_9 = callPackage ../x {
    manifests = select {
      cuda = "12.9.1";
    };
  };

  cudaPackages_13_4 = callPackage ../x {
    manifests = select {
      cuda = "13.4.2";
      cusparselt = "0.9.0";
      nvtiff = if cudaPackages_13_4.backendStdenv.hasJetsonCudaCapability then "0.5.0" else "0.5.1";
    };
  };
in
{
  inherit cudaPackages_12_9 cudaPackages_13_4;
}
"""


@needs_nix
def test_file_with_own_selection_of_manifests_is_changed(run: Run, checkout: Path) -> None:
    """The manifests of new releases are not in the checkout when the file is evaluated."""
    Path(checkout, VERSIONS_PATH).write_text(OWN_SELECTION)
    expect_output(run("nixpkgs", checkout), 0)
    older, newer = Path(checkout, VERSIONS_PATH).read_text().split("cudaPackages_13_4 = ")
    # A set with the CUDA release only has no other products.
    assert older.endswith('      cuda = "12.9.1";\n    };\n  };\n\n  ')
    rows = [
        '      cuda = "13.4.2";',
        '      cudnn = "9.27.0";',
        '      cuquantum = "26.9.0";',
        '      cusparselt = "0.10.0";',
        '      nvtiff = "0.5.1";',
    ]
    assert "\n".join(rows) in newer
    expect_output(run("nixpkgs", checkout, "--diff"), 0)


@needs_nix
def test_new_condition_has_form_of_set(run: Run, checkout: Path) -> None:
    text = OWN_SELECTION.replace('"0.9.0";\n', '"0.9.0";\n      cudnn = "9.20.0";\n').replace(
        "13_4", "12_9_1"
    )
    start = text.index("  cudaPackages_12_9 = "), text.index("  cudaPackages_12_9_1 = ")
    text = text[: start[0]] + text[start[1] :].replace("cudaPackages_12_9 cuda", "cuda")
    text = text.replace("12_9_1", "12_9").replace("13.4.2", "12.9.1").replace('"0.9.0"', '"0.8.1"')
    Path(checkout, VERSIONS_PATH).write_text(text)
    expect_output(run("nixpkgs", checkout, "--only", "cudnn"), 0)
    test = "cudaPackages_12_9.backendStdenv.hasJetsonCudaCapability"
    expected = f'      cudnn = if {test} then "9.20.0" else "9.27.0";'
    changed = Path(checkout, VERSIONS_PATH).read_text()
    assert expected in changed
    assert "hasJetsonCudaCapability =" not in changed


@needs_nix
@pytest.mark.parametrize("names", ["hasJetsonCudaCapability", "hasJetsonCudaCapability isOther"])
def test_unused_variable_is_no_longer_inherited(run: Run, checkout: Path, names: str) -> None:
    condition = 'if hasJetsonCudaCapability then "0.5.0" else "0.5.1"'
    form = f"""  cudaPackages_13_4 =
    let
      inherit (cudaPackages_13_4.backendStdenv) {names};
    in
    make {{
      cuda = "13.4.2";
      nvtiff = {condition};
    }};
in
{{
  inherit cudaPackages_13_4;
}}
"""
    start = SETS[: SETS.index("  cudaPackages_12_9 = ")]
    Path(checkout, VERSIONS_PATH).write_text(start + form)
    expect_output(run("nixpkgs", checkout, "--only", "nvtiff"), 0)
    changed = Path(checkout, VERSIONS_PATH).read_text().removeprefix(start)
    if names.endswith("isOther"):
        assert "inherit (cudaPackages_13_4.backendStdenv) isOther;" in changed
    else:
        body = '{\n    cuda = "13.4.2";\n    nvtiff = "0.5.1";\n  };\nin\n'
        assert changed.startswith(f"  cudaPackages_13_4 = make {body}")


@needs_nix
def test_only_compilers_adds_no_row_of_set_that_checkout_lacks(run: Run, checkout: Path) -> None:
    sets = SETS[: SETS.index("  cudaPackages_13_4")] + "in\n{\n  inherit cudaPackages_12_9;\n}\n"
    Path(checkout, VERSIONS_PATH).write_text(sets)
    expect_output(run("nixpkgs", checkout, "--only", "compilers"), 0)
    text = Path(checkout, NVCC_PATH).read_text()
    # The set is older than the oldest row, but needs one.
    assert '"12.9" = {' in text
    assert '"13.4" = {' not in text


@needs_nix
def test_only_set_and_redist_updates_the_row_of_the_set(run: Run, checkout: Path) -> None:
    options = ("--only", "cudaPackages_12_9", "--only", "nvtiff")
    expect_output(run("nixpkgs", checkout, *options), 0)
    text = Path(checkout, VERSIONS_PATH).read_text()
    assert text == SETS.replace('nvtiff = "0.5.0"', 'nvtiff = "0.5.1"', 1)


@needs_nix
@pytest.mark.parametrize(
    ("only", "warning"),
    [
        (("nvtiff",), "cudnn 9.27.0 is not written: --only nvtiff leaves it out"),
        (("compilers",), "cudnn 9.27.0 is not written: --only compilers leaves it out"),
        (("nvtiff", "cudnn"), None),
        (("cudaPackages_12_9",), None),
        (("releases", "nvtiff"), None),
    ],
)
def test_pin_of_rows_that_are_left_out_is_a_warning(
    run: Run, checkout: Path, only: Sequence[str], warning: str | None
) -> None:
    options = [word for name in only for word in ("--only", name)]
    result = run("nixpkgs", checkout, *options, "--redist", "cudnn=9.27.0", "--check")
    lines = [line for line in result.stderr.splitlines() if "is not written" in line]
    assert lines == ([] if warning is None else [f"warning: {warning}"])


def test_pin_of_cuda_is_refused(run: Run, checkout: Path) -> None:
    error = expect_error(run("nixpkgs", checkout, "--redist", "cuda=12.9.1"), 2)
    assert "--redist cannot pin cuda" in error.stderr
    assert "cudaredist build --cuda 12.9.1 --output set.json" in error.stderr
