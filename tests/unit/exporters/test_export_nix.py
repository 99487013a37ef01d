"""Tests of `export nix`: evaluation without nixpkgs and with a stand-in."""

import base64
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.consumers import NIX_SUMMARY, evaluate_nix
from support.nix_builds import STAND_IN, needs_nix, needs_nix_builds, nix_build
from support.package_sets import (
    HOSTILE,
    archive,
    example_set,
    hostile_set,
    package,
    packages,
    wheel_set,
)

from cudaredist.exporters import find_exporter
from cudaredist.exporters.export_format import ExportedSet, with_addresses
from cudaredist.formats.host_compilers import HostGlibc
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.registry import read_own_file

BASE = "https://wheels.example/simple"
NIXPKGS = f"{{ pkgs = import {STAND_IN} {{ libraries.zlib = [ ]; }}; }}"
CODE = ("default.nix", "nixpkgs.nix", "redist-hook.bash", "tests.nix")

Evaluate = Callable[..., Any]


def exported(package_set: PackageSet | None = None) -> dict[str, bytes]:
    return dict(find_exporter("nix").files(ExportedSet(package_set or example_set())))


@pytest.fixture
def nix(tmp_path: Path) -> Evaluate:
    """Return a function that evaluates an expression.

    In the expression, `set` is the value of default.nix with the arguments."""

    def evaluate(
        expression: str, package_set: PackageSet | None = None, arguments: str = "{ }"
    ) -> Any:
        for name in CODE:
            (tmp_path / name).write_bytes(exported()[name])
        document = (package_set or example_set()).canonical()
        (tmp_path / "package-set.json").write_bytes(document)
        return evaluate_nix(tmp_path, expression, arguments)

    return evaluate


def test_export_contains_document_and_constant_code() -> None:
    files = exported()
    assert read_own_file(files["package-set.json"], PackageSet) == example_set()
    other = exported(example_set(packages={"a": package("a")}))
    assert files.keys() == {"package-set.json", "known-vulnerabilities.json", *CODE}
    assert {name: other[name] for name in CODE} == {name: files[name] for name in CODE}


@needs_nix
@pytest.mark.parametrize("name", [name for name in CODE if name.endswith(".nix")])
def test_exported_code_parses(name: str) -> None:
    command = ("nix-instantiate", "--parse", "-")
    subprocess.run(command, input=exported()[name], capture_output=True, check=True)


@needs_nix
@pytest.mark.parametrize("arguments", ["{ }", NIXPKGS])
def test_every_attribute_evaluates_and_available_ones_build(nix: Evaluate, arguments: str) -> None:
    value = nix(NIX_SUMMARY, None, arguments)
    assert value.keys() == packages().keys()
    for attr, entry in packages().items():
        is_available = entry["status"] == "available"
        is_served = entry["status"] not in {"unsupported", "foreign"}
        meta = value[attr]["meta"]
        assert value[attr]["builds"] == [is_available] * 3
        assert value[attr]["outputs"] == entry["outputs"]
        assert meta["available"] == is_available
        assert meta["broken"] == (entry["status"] in {"broken", "withheld"})
        assert meta["platforms"] == (["x86_64-linux"] if is_served else [])
        assert meta["badPlatforms"] == ([] if is_served else ["x86_64-linux"])
        assert meta["problems"] == {
            f"{reason['code']}-{index}": {"kind": "broken", "message": reason["text"]}
            for index, reason in enumerate(entry["reasons"], 1)
        }
        assert not {"status", "unsupported"} & meta.keys()
    assert value["cuda_cudart"]["name"] == "cuda13.3-cuda_cudart-13.3.33"
    assert value["cuda_nvprof"]["name"] == "cuda13.3-cuda_nvprof"
    assert value["cuda_cccl"] == value["cccl"]
    assert value["cccl"]["meta"]["license"]["spdxId"] == "MIT"
    assert value["cuda_nvcc"]["meta"]["mainProgram"] == "nvcc"
    assert "homepage" not in value["acme_kernels"]["meta"]


@needs_nix
def test_reasons_of_same_kind_are_separate_problems(nix: Evaluate) -> None:
    reason = {"code": "unresolved-library", "subject": "a", "source": "policy"}
    reasons = [{**reason, "text": text} for text in ("one", "two")]
    entry = package("a", status="broken", reasons=reasons)
    problems = nix("set.a.meta.problems", example_set(packages={"a": entry}))
    assert [problem["message"] for problem in problems.values()] == ["one", "two"]


@needs_nix
def test_unavailable_package_throws_its_reasons(nix: Evaluate) -> None:
    for attribute in ("drvPath", "outPath", "src"):
        assert "cuda13.3-mft-1.0 is withheld: purpose unclear" in nix(f"set.mft.{attribute}")


@needs_nix
@pytest.mark.parametrize(
    ("attr", "refusal"),
    [
        ("cuda_nvprof", "has problems: cuda 13.3.1 has no cuda_nvprof"),
        ("libcusolver", "has problems: lib/libcusolver.so needs libgone.so.1"),
        ("mft", "has problems: purpose unclear"),
        ("nsight_vse", "has problems: for windows only"),
    ],
)
def test_nixpkgs_refuses_unavailable_package_with_reasons(
    nix: Evaluate, attr: str, refusal: str
) -> None:
    for attribute in ("drvPath", "outPath", "out.outPath"):
        assert refusal in nix(f"set.{attr}.{attribute}", None, NIXPKGS)


@needs_nix
def test_nixpkgs_refuses_other_system(nix: Evaluate) -> None:
    arguments = NIXPKGS.replace("{ libraries", '{ system = "aarch64-linux"; libraries')
    value = nix("set.libnvvm.drvPath", None, arguments)
    assert "is not available on aarch64-linux" in value


@needs_nix
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status", '"available"'),
        ("problems", "[ ]"),
        ("problems", '{ unsure.message = "x"; }'),
        ("problems", '{ broken.text = "x"; }'),
        ("platforms", '"x86_64-linux"'),
        ("description", "null"),
    ],
)
def test_stand_in_refuses_invalid_meta(nix: Evaluate, key: str, value: str) -> None:
    package = f'{{ name = "a"; meta.{key} = {value}; }}'
    shown = nix(f"((import {STAND_IN} {{ }}).stdenv.mkDerivation {package}).drvPath")
    assert f"invalid meta attrset: {key}" in shown


@needs_nix
@pytest.mark.parametrize(
    ("attr", "expected"),
    [
        ("cccl", {"spdxId": "MIT", "nixpkgs": True}),
        ("libcublas", {"redistributable": True, "nixpkgs": True}),
        ("cudnn", {"shortName": "cuDNN EULA", "nixpkgs": True}),
        ("acme_kernels", {"spdxId": "Apache-2.0 WITH LLVM-exception", "shortName": "MIT"}),
    ],
)
def test_license_of_nixpkgs_is_used_if_known(
    nix: Evaluate, attr: str, expected: dict[str, object]
) -> None:
    value = nix(f"set.{attr}.meta.license", None, NIXPKGS)
    assert value.items() >= expected.items()
    assert ("nixpkgs" in value) == ("nixpkgs" in expected)


@needs_nix
def test_derivation_has_inputs_and_library_lists(nix: Evaluate) -> None:
    value = nix(
        """with set.libcublas; {
          inherit entry autoPatchelfIgnoreMissingDeps appendRunpaths;
          selected = map (output: output.outputSpecified) [ lib dev ];
          runtime = builtins.elem set.cuda_cudart.outPath (map toString buildInputs);
          headers = map toString propagatedBuildInputs == [ set.cuda_cudart.outPath ];
          inputs = map (input: input.name) set.cudnn.buildInputs;
        }""",
        None,
        NIXPKGS,
    )
    assert value["autoPatchelfIgnoreMissingDeps"] == ["libcuda.so.1", "libnvrm_gpu.so"]
    own, libnvvm = value["appendRunpaths"]
    assert (own, libnvvm.endswith("-cuda13.3-libnvvm-13.3.33/lib")) == ("$ORIGIN", True)
    assert value["selected"] == [True, True]
    assert value["entry"]["attr"] == "libcublas"
    assert (value["runtime"], value["headers"]) == (True, True)
    assert value["inputs"] == ["zlib", "cuda13.3-libcublas-13.3.0.5"]


@needs_nix
def test_change_of_package_reaches_its_dependents(nix: Evaluate) -> None:
    value = nix(
        """let
          rename = name: package: package // { lib = package.lib // { inherit name; }; };
          first = set.overrideScope (_: prev: { libcublas = rename "mine" prev.libcublas; });
          both = first.overrideScope (final: prev: {
            added = final.libcublas;
            libcublas = rename "${prev.libcublas.lib.name}-2" prev.libcublas;
          });
          names = scope: map (input: input.name) scope.cudnn.buildInputs;
        in {
          inputs = map names [ set first both ];
          added = both.added.lib.name;
          tests = builtins.attrNames both.tests == builtins.attrNames set.tests;
        }""",
        None,
        NIXPKGS,
    )
    assert [names[-1] for names in value["inputs"]] == [
        "cuda13.3-libcublas-13.3.0.5",
        "mine",
        "mine-2",
    ]
    assert (value["added"], value["tests"]) == ("mine-2", True)


@needs_nix
def test_change_of_archive_reaches_its_other_names(nix: Evaluate) -> None:
    change = '(final: prev: { cccl = prev.cccl // { name = "mine"; }; })'
    assert nix(f"(set.overrideScope {change}).cuda_cccl.name") == "mine"


@needs_nix
def test_library_without_provider_is_named(nix: Evaluate) -> None:
    value = nix("set.cudnn.drvPath", example_set(external={}), NIXPKGS)
    assert "unknown nixpkgs package for libz.so.1" in value


@needs_nix
def test_source_has_address_hash_and_name(nix: Evaluate) -> None:
    cudart = packages()["cuda_cudart"]["archive"]
    value = nix("{ inherit (set.cuda_cudart.src) name urls outputHash; }")
    assert value == {
        "name": "cuda_cudart-linux-x86_64-13.3.33-archive.tar.xz",
        "urls": [cudart["url"]],
        "outputHash": cudart["sri"],
    }


@needs_nix
@pytest.mark.parametrize(
    ("glibc", "clashes", "error"),
    [
        ("2.41-6", ("rsqrt",), None),
        ("2.42-67", ("rsqrt",), "compiles with glibc up to 2.41, not with 2.42"),
        ("2.42-67", (), None),
        ("2.100", ("rsqrt",), "compiles with glibc up to 2.41, not with 2.100"),
    ],
    ids=["newest", "newer", "no-clash", "number"],
)
def test_compiler_with_newer_glibc_is_refused(
    nix: Evaluate, glibc: str, clashes: tuple[str, ...], error: str | None
) -> None:
    original = example_set()
    bound = HostGlibc(newest="2.41", clashes=clashes)
    compiler = original.host_compiler.model_copy(update={"glibc": bound})
    package_set = original.model_copy(update={"host_compiler": compiler})
    arguments = f'{{ pkgs = import {STAND_IN} {{ libraries.zlib = [ ]; glibc = "{glibc}"; }}; }}'
    value = nix("builtins.isString set.cuda_nvcc.drvPath", package_set, arguments)
    assert value is True if error is None else error in value
    assert nix("set.cuda_nvcc.meta.available", package_set, arguments) is True
    assert nix("builtins.isString set.cuda_cudart.drvPath", package_set, arguments) is True


@needs_nix
def test_fetch_argument_replaces_fetcher(nix: Evaluate) -> None:
    url = packages()["libnvvm"]["archive"]["url"]
    assert nix("set.libnvvm.src", None, "{ fetch = file: file.url; }") == url


@needs_nix
def test_wheel_without_address_names_option(nix: Evaluate) -> None:
    assert "--wheel-base" in nix("set.libcublas.src", wheel_set())
    assert nix("set.libcublas.meta.available", wheel_set()) is True
    assert nix("builtins.isString set.libcublas.drvPath", with_addresses(wheel_set(), BASE)) is True


@needs_nix
@pytest.mark.parametrize("arguments", ["{ }", NIXPKGS])
def test_hostile_texts_are_not_evaluated(nix: Evaluate, arguments: str) -> None:
    value = nix(NIX_SUMMARY, hostile_set(), arguments)
    assert value["cuda_cudart"]["meta"]["description"] == HOSTILE
    mft = _nix_text(f"mft{HOSTILE}")
    assert "is withheld" in nix(f"(builtins.getAttr {mft} set).src", hostile_set())


def _nix_text(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "$": "\\$"}
    return f'"{"".join(escapes.get(character, character) for character in text)}"'


@needs_nix_builds
def test_nix_builds_verified_archive_and_refuses_other_hash(tmp_path: Path) -> None:
    content = b"an archive"
    path = "a/linux-x86_64/a~1@2,3-archive.tar.xz"
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(content)
    entry = archive(path, tmp_path.as_uri())
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    good = {**entry, "sri": f"sha256-{digest}"}
    entries = {"good": package("good", archive=good), "bad": package("bad", archive=entry)}
    for name, data in exported(example_set(packages=entries)).items():
        (tmp_path / name).write_bytes(data)
    process = nix_build(tmp_path, "(import ./. { }).good")
    assert process.returncode == 0, process.stderr
    assert Path(process.stdout.strip()).read_bytes() == content
    assert "hash mismatch" in nix_build(tmp_path, "(import ./. { }).bad").stderr
