"""Tests of conditions in nixpkgs' table of releases, in the form of nixfmt."""

import pytest

from cudaredist.nixpkgs.machines import ORIN, SERVER_ARM, THOR, X86
from cudaredist.nixpkgs.nix_file import NixFile
from cudaredist.nixpkgs.release_code import merge_versions
from cudaredist.nixpkgs.releases import Labels

ORIN_CALL = "hasPreThorJetsonCudaCapability requestedJetsonCudaCapabilities"
CODE = """let
  cudaPackages_13_0 =
    let
      inherit (cudaPackages_13_0.backendStdenv) requestedJetsonCudaCapabilities;
    in
    make {
      tensorrt =
        if ORIN_CALL then "10.7.0" else "10.14.1";
    };
in
{
  inherit cudaPackages_13_0;
}
""".replace("ORIN_CALL", ORIN_CALL)
OLD = {X86: "10.14.1", SERVER_ARM: "10.14.1", ORIN: "10.7.0", THOR: "10.14.1"}


def merged(new: Labels, code: str = CODE, old: Labels = OLD) -> str:
    """Return the code with new labels, from the set on."""
    file = NixFile("cuda-packages.nix", code)
    theirs = {machine: {"cudaPackages_13_0": {"tensorrt": label}} for machine, label in old.items()}
    merge_versions(file, {"cudaPackages_13_0": {"tensorrt": new}}, theirs, {})
    return file.text[file.text.index("  cudaPackages_13_0 =\n") :]


def test_condition_that_fits_into_a_line_is_next_to_its_name() -> None:
    new = {X86: "11.3.0", SERVER_ARM: "11.3.0", ORIN: "11.1.0", THOR: "11.1.0"}
    assert merged(new).startswith(
        """  cudaPackages_13_0 =
    let
      inherit (cudaPackages_13_0.backendStdenv) hasJetsonCudaCapability;
    in
    make {
      tensorrt = if hasJetsonCudaCapability then "11.1.0" else "11.3.0";
    };
"""
    )


def test_long_condition_is_below_its_name() -> None:
    names = ("cudaPackages_13_0", "tensorrt")
    file = NixFile("cuda-packages.nix", CODE)
    file.put(names, "10.14.1")
    plain = file.text.replace("make {", f"make {{\n      cudnn = {ORIN_CALL};")
    lines = f'      tensorrt =\n        if {ORIN_CALL} then "10.7.0" else "10.14.1";\n'
    assert lines in merged(OLD, plain, dict.fromkeys(OLD, "10.14.1"))


def test_three_variables_are_inherited_on_lines_of_their_own() -> None:
    new = {X86: "11.3.0", SERVER_ARM: "11.1.0", ORIN: "10.7.0", THOR: "10.14.1"}
    assert merged(new).startswith(
        """  cudaPackages_13_0 =
    let
      inherit (cudaPackages_13_0.backendStdenv)
        hasJetsonCudaCapability
        hostPlatform
        requestedJetsonCudaCapabilities
        ;
    in
    make {
      tensorrt =
        if hasPreThorJetsonCudaCapability requestedJetsonCudaCapabilities then
          "10.7.0"
        else if hasJetsonCudaCapability then
          "10.14.1"
        else if hostPlatform.isAarch64 then
          "11.1.0"
        else
          "11.3.0";
    };
"""
    )


@pytest.mark.parametrize("comment", ["# for Jetsons;\n        ", "/* for Jetsons */ "])
def test_comment_between_inherited_variables_stays(comment: str) -> None:
    code = CODE.replace(" requested", f" {comment}requested", 1)
    text = merged(dict.fromkeys(OLD, "11.3.0") | {ORIN: "11.1.0", THOR: "11.1.0"}, code)
    assert comment.strip() in text
    assert "inherit (cudaPackages_13_0.backendStdenv) hasJetsonCudaCapability;" in text
    assert comment.strip() in merged(dict.fromkeys(OLD, "11.3.0"), code)
