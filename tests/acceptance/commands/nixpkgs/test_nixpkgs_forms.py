"""Tests of `nixpkgs` with the forms of nixpkgs' table of releases, and with odd folders."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.checkouts import create_checkout, manifest, write_index
from support.nix_builds import needs_nix
from support.running import expect_error, expect_output
from support.server import FaultServer

from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH

pytestmark = needs_nix

BODY = """{
      cuda = "13.3.0";
      cudnn = RELEASE;
    }"""
OF_SETS = """{ _cuda, callPackage, config, lib }:
let
  make = versions: callPackage ../x { manifests = _cuda.lib.selectManifests versions; };
  isBeforeThor = lib.any (lib.flip lib.versionOlder "10.1");

  cudaPackages_13_3 =
    let
      inherit (cudaPackages_13_3.backendStdenv) VARIABLES;
    in
    make BODY;
in
{
  inherit
    cudaPackages_13_3
    ;
}
"""
JETSON = 'if hasJetsonCudaCapability then "9.0.0" else "9.1.0"'
ORIN = 'if isBeforeThor requestedJetsonCudaCapabilities then "9.0.0" else "9.1.0"'
ARM = 'if hostPlatform.isAarch64 then "9.0.0" else "9.1.0"'


def of_sets(variables: str, release: str) -> str:
    code = OF_SETS.replace("VARIABLES", variables).replace("BODY", BODY)
    return code.replace("RELEASE", release)


def of_file(header: str, variables: str, release: str) -> str:
    code = f"""{{ _cuda, {header} }}:
let
{variables}
  make = versions: callPackage ../x {{ manifests = _cuda.lib.selectManifests versions; }};

  cudaPackages_13_3 = make BODY;
in
{{
  inherit cudaPackages_13_3;
}}
"""
    return code.replace("BODY", BODY).replace("RELEASE", release)


GLOBAL = (
    "  hasJetsonCudaCapability = lib.any (\n"
    "    name: _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false\n"
    "  ) (config.cudaCapabilities or [ ]);"
)
FORMS = {
    "jetsons of set": of_sets("hasJetsonCudaCapability", JETSON),
    "Orin of set": of_sets("requestedJetsonCudaCapabilities", ORIN),
    "ARM of set": of_sets("hostPlatform", ARM),
    "jetsons of configuration": of_file("callPackage, config, lib", GLOBAL, JETSON),
    "jetsons of capabilities": of_file(
        "callPackage, config, lib",
        "  hasJetsonCudaCapability =\n"
        "    lib.intersectLists (lib.filter (\n"
        "      name: _cuda.db.cudaCapabilityToInfo.${name}.isJetson\n"
        "    ) _cuda.db.allSortedCudaCapabilities) (config.cudaCapabilities or [ ]) != [ ];",
        JETSON,
    ),
    "stdenv": of_file("callPackage, lib, config, stdenv", "  inherit (stdenv) hostPlatform;", ARM),
    "function": of_file(
        "callPackage, ...",
        "  hostPlatform = callPackage ({ stdenv }: stdenv.hostPlatform) { };",
        ARM,
    ),
    "unused argument": of_file(
        "callPackage, fetchurl, pkgs", "  inherit (pkgs.stdenv) hostPlatform;", ARM
    ),
}


@pytest.fixture
def checkout(run: Run) -> Path:
    """Create a small checkout of nixpkgs, a set and its data folder."""
    return create_checkout()


def export(run: Run, checkout: Path, *options: str, name: str = "set.json") -> Any:
    return run("nixpkgs", checkout, name, "--no-shipped-data", *options)


@pytest.mark.parametrize("form", FORMS)
def test_form_of_releases_keeps_conditions(run: Run, checkout: Path, form: str) -> None:
    path = checkout / VERSIONS_PATH
    path.write_text(FORMS[form])
    expect_output(export(run, checkout), 0)
    expected = FORMS[form].replace('"13.3.0"', '"13.3.1"').replace('"9.1.0"', '"9.2.0"')
    assert path.read_text() == expected
    expect_output(export(run, checkout, "--check"), 0)


def test_new_condition_extends_inherited_variables(run: Run, checkout: Path) -> None:
    path = checkout / VERSIONS_PATH
    path.write_text(of_sets("requestedJetsonCudaCapabilities", '"9.2.0"'))
    index = write_index({"linux-x86_64": "13.3.1", "linux-sbsa": "13.3.1"})
    jetson = Path("build/linux-sbsa/cuda-13.3.1.json")
    package_set = json.loads(jetson.read_bytes())
    package_set["redists"]["cudnn"]["release"] = "9.3.0"
    package_set["capabilities"]["requested"] = ["8.7", "11.0"]
    jetson.write_text(json.dumps(package_set))
    Path("data/manifests/cudnn/redistrib_9.3.0.json").write_text(manifest("9.3.0"))
    expect_output(export(run, checkout, name=index), 0)
    text = path.read_text()
    assert "backendStdenv) hasJetsonCudaCapability;" in text
    assert 'cudnn = if hasJetsonCudaCapability then "9.3.0" else "9.2.0";' in text


def test_comments_in_value_stay(run: Run, checkout: Path) -> None:
    path = checkout / VERSIONS_PATH
    text = path.read_text().replace('cuda = "13.3.0"', 'cuda = # "13.3.0" is old\n      "13.3.0"')
    text = text.replace('        "9.1.0"\n', '        "9.1.0" # for Jetson\n')
    path.write_text(text)
    expect_output(export(run, checkout, "--replace"), 0)
    changed = path.read_text()
    assert 'cuda = # "13.3.0" is old\n      "13.3.1"' in changed
    assert "# for Jetson" in changed


def test_new_set_is_added_to_other_files(run: Run, checkout: Path) -> None:
    names = checkout / "pkgs/top-level/all-packages.nix"
    names.write_text("  inherit (import ./x { inherit lib; })\n    cudaPackages_13_3\n    ;\n")
    rows = checkout / "pkgs/development/cuda-modules/cudatoolkit/releases.nix"
    rows.parent.mkdir()
    rows.write_text('# Runfiles\n{\n  "13.2" = {\n    version = "13.2.0";\n  };\n}\n')
    runfile = {
        "name": "cuda_13.4.1_linux.run",
        "url": "https://example.org/cuda_13.4.1_linux.run",
        "size": 1,
        "sha256": "0" * 64,
        "sri": f"sha256-{'A' * 43}=",
        "md5": "0" * 32,
        "driver": None,
    }
    runfiles = {"schema_version": 1, "runfiles": {"13.4.1": {"linux-x86_64": runfile}}}
    Path("data/runfiles.json").write_text(json.dumps(runfiles))
    Path("data/manifests/cuda/redistrib_13.4.1.json").write_text(manifest("13.4.1"))
    package_set = json.loads(Path("set.json").read_bytes())
    release = {"attribute": "cudaPackages_13_4", "major_minor": "13.4", "release": "13.4.1"}
    package_set["cuda"] |= release
    package_set["redists"]["cuda"]["release"] = "13.4.1"
    Path("set.json").write_text(json.dumps(package_set))
    for _ in range(2):
        expect_output(export(run, checkout), 0)
        assert "    cudaPackages_13_3\n    cudaPackages_13_4\n    ;" in names.read_text()
        assert rows.read_text() == (
            '# Runfiles\n{\n  "13.2" = {\n    version = "13.2.0";\n  };\n\n'
            '  "13.4" = {\n    version = "13.4.1";\n'
            '    url = "https://example.org/cuda_13.4.1_linux.run";\n'
            f'    sha256 = "sha256-{"A" * 43}=";\n  }};\n}}\n'
        )


# -- files


def test_mode_and_line_ends_stay(run: Run, checkout: Path) -> None:
    path = checkout / VERSIONS_PATH
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    path.chmod(0o640)
    expect_output(export(run, checkout, "--replace"), 0)
    data = path.read_bytes()
    assert b'cuda = "13.3.1"' in data
    assert data.count(b"\n") == data.count(b"\r\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_stays(run: Run, checkout: Path) -> None:
    path = checkout / VERSIONS_PATH
    target = path.with_name("real.nix")
    path.rename(target)
    path.symlink_to("real.nix")
    expect_output(export(run, checkout, "--replace"), 0)
    assert path.is_symlink()
    assert 'cuda = "13.3.1"' in target.read_text()


def test_second_export_keeps_sets_of_first(run: Run, checkout: Path) -> None:
    expect_output(export(run, Path("made")), 0)
    package_set = json.loads(Path("set.json").read_bytes())
    package_set["cuda"] |= {"attribute": "cudaPackages_13_4", "major_minor": "13.4"}
    Path("newer.json").write_text(json.dumps(package_set))
    expect_output(export(run, Path("made"), name="newer.json"), 0)
    text = Path("made", VERSIONS_PATH).read_text()
    assert "cudaPackages_13_3 = " in text
    assert "cudaPackages_13_4 = " in text


def test_sparse_checkout_without_library_is_read(run: Run, checkout: Path) -> None:
    (checkout / "lib/default.nix").unlink()
    expect_output(export(run, checkout, "--replace"), 0)
    assert "cudaPackages_13_2 = " in (checkout / VERSIONS_PATH).read_text()


def replaced(path: str, old: str, new: str) -> Callable[[Path], None]:
    def replace(checkout: Path) -> None:
        text = (checkout / path).read_text()
        assert old in text
        (checkout / path).write_text(text.replace(old, new))

    return replace


def removed(path: str) -> Callable[[Path], None]:
    return lambda checkout: (checkout / path).unlink()


def linked(path: str, target: str) -> Callable[[Path], None]:
    def link(checkout: Path) -> None:
        (checkout / path).rename("outside.nix")
        (checkout / path).symlink_to(Path(target).absolute())

    return link


ODD = {
    "no compilers": (removed(NVCC_PATH), "nvcc.nix"),
    "no capabilities": (removed(CAPABILITY_PATH), "cuda.nix"),
    "no releases": (removed(VERSIONS_PATH), "cuda-packages.nix"),
    "empty compilers": (lambda c: (c / NVCC_PATH).write_text(""), "Nix cannot evaluate"),
    "empty capabilities": (lambda c: (c / CAPABILITY_PATH).write_text(""), "Nix cannot evaluate"),
    "empty releases": (lambda c: (c / VERSIONS_PATH).write_text(""), "Nix cannot evaluate"),
    "binary": (lambda c: (c / VERSIONS_PATH).write_bytes(b"\0\xff"), "Nix cannot evaluate"),
    "other attributes": (lambda c: (c / NVCC_PATH).write_text("{ }"), "nvccCompatibilities"),
    "list of compilers": (
        lambda c: (c / NVCC_PATH).write_text("{ nvccCompatibilities = [ ]; }"),
        "expected attributes",
    ),
    "number": (replaced(NVCC_PATH, 'maxMajorVersion = "20"', "maxMajorVersion = 20"), "a string"),
    "string as row": (
        lambda c: (c / NVCC_PATH).write_text('{ nvccCompatibilities."13.3" = "x"; }'),
        "expected attributes",
    ),
    "list of capabilities": (
        lambda c: (c / CAPABILITY_PATH).write_text("{ cudaCapabilityToInfo = [ 1 ]; }"),
        "expected attributes",
    ),
    "number as release": (replaced(VERSIONS_PATH, '"13.3.0"', "13"), "expected a string"),
    "list as release": (replaced(VERSIONS_PATH, '"13.3.0"', "[ ]"), "expected a string"),
    "releases as list": (lambda c: (c / VERSIONS_PATH).write_text("[ ]"), "Nix cannot evaluate"),
    "releases as string": (lambda c: (c / VERSIONS_PATH).write_text('"x"'), "Nix cannot evaluate"),
    "older layout": (
        replaced(VERSIONS_PATH, "{\n  _cuda,", "{\n  cudaVersion,\n  _cuda,"),
        None,
    ),
    "unknown argument": (
        replaced(VERSIONS_PATH, "versions:\n", "versions:\n    assert pins; "),
        "Nix cannot evaluate",
    ),
    "link to nothing": (linked(VERSIONS_PATH, "missing.nix"), "link to a missing file"),
    "link out of checkout": (linked(VERSIONS_PATH, "outside.nix"), "outside of"),
    "computed rows": (
        replaced(
            NVCC_PATH, "nvccCompatibilities = {\n    # C", "nvccCompatibilities = x // {\n  # C"
        ),
        "Nix cannot evaluate",
    ),
}


def contents(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() or path.is_symlink()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_odd_folder_is_not_replaced(run: Run, checkout: Path, name: str) -> None:
    change, message = ODD[name]
    change(checkout)
    before = contents(checkout)
    result = export(run, checkout, "--replace")
    if message is None:
        expect_output(result, 0)
    else:
        expect_error(result, 5, message)
        assert contents(checkout) == before


@pytest.mark.parametrize("call", ['fetchurl "ADDRESS/x"', 'readFile "/etc/hostname"'])
def test_evaluation_of_checkout_reads_nothing_else(
    run: Run, checkout: Path, server: FaultServer, call: str
) -> None:
    server.files["/x"] = b"13.3.0"
    code = f"(builtins.{call.replace('ADDRESS', server.url)})"
    replaced(VERSIONS_PATH, '"13.3.0"', code)(checkout)
    before = contents(checkout)
    expect_error(export(run, checkout), 5, "Nix cannot evaluate", "restricted mode")
    assert contents(checkout) == before
    assert not server.requests
