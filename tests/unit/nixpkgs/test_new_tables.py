"""Tests of the tables of nixpkgs: evaluated values and quoting."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, examples
from hypothesis import given
from hypothesis import strategies as st
from support.golden import Golden
from support.nix_builds import needs_nix
from support.package_sets import (
    document,
    example_set,
    hostile_set,
    packages,
    shared_tables,
    wheel_set,
)

from cudaredist.exporters.nix_code import NixValue, nix_binding, nix_comment, nix_string, nix_value
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.nixpkgs.merge_tables import merged_files
from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH
from cudaredist.nixpkgs.releases import Release, releases_of, set_versions
from cudaredist.nixpkgs.tables import SharedTables, TableUpdate, capability_fields, nvcc_bounds
from cudaredist.nixpkgs.target import target_versions

LIB = """{
  inherit (builtins) any mapAttrs;
  hasSuffix = end: text: builtins.match ".*${end}" text != null;
}
"""
CALL = """let
  lib = import ./lib.nix;
  call = file: import file {
    inherit lib;
    _cuda.lib.selectManifests = releases: releases;
    _cuda.db.cudaCapabilityToInfo.jetson.isJetson = true;
    config.cudaCapabilities = if PLATFORM == "linux-aarch64" then [ "jetson" ] else [ ];
    callPackage = file: arguments:
      if builtins.isFunction file
      then file { stdenv.hostPlatform.isAarch64 = PLATFORM != "linux-x86_64"; }
      else arguments.manifests;
  };
in """


def evaluated(expression: str, folder: Path) -> Any:
    command = ["nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json"]
    process = subprocess.run(
        [*command, "--expr", expression], cwd=folder, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def platform_set(platform: str, minor: str = "13_3", **releases: str) -> PackageSet:
    """Return a set with given releases of redistributables."""
    redists = {
        name: {"release": release, "mode": "auto", "newer_rejected": []}
        for name, release in releases.items()
    }
    return example_set(
        platform={**document()["platform"], "redist_system": platform},
        cuda={**document()["cuda"], "attribute": f"cudaPackages_{minor}"},
        redists=redists,
    )


def exported(*sets: PackageSet, tables: SharedTables | None = None) -> Mapping[str, bytes]:
    """Return the files of an export to a new folder."""
    releases = tuple(filter(None, map(releases_of, sets or (example_set(),))))
    target = target_versions(releases, (), {})
    return merged_files(TableUpdate(tables or shared_tables(), releases, target), lambda _: None)


def shipped_tables() -> SharedTables:
    nvcc, gpus = (REPOSITORY / "data" / name for name in ("nvcc_compat.json", "gpus.json"))
    return SharedTables(
        read_own_file(nvcc.read_bytes(), NvccCompat), read_own_file(gpus.read_bytes(), Gpus), {}
    )


# -- tables


def test_new_tables_match_golden_file(golden: Golden) -> None:
    for path, content in exported().items():
        assert content.endswith(b"\n")
        golden.check("export-nixpkgs.txt", path, content.decode().removesuffix("\n"))


def test_order_of_packages_does_not_change_tables() -> None:
    backwards = example_set(packages=dict(reversed(packages().items())))
    assert exported(backwards) == exported()


def test_hostile_texts_are_written() -> None:
    assert exported(hostile_set()).keys() == {NVCC_PATH, CAPABILITY_PATH}


@needs_nix
@pytest.mark.parametrize("tables", [shared_tables, shipped_tables])
def test_exported_tables_evaluate_to_data(tmp_path: Path, tables: Any) -> None:
    data: SharedTables = tables()
    files = exported(tables=data)
    (tmp_path / "nvcc.nix").write_bytes(files[NVCC_PATH])
    (tmp_path / "cuda.nix").write_bytes(files[CAPABILITY_PATH])
    (tmp_path / "lib.nix").write_text(LIB)
    compilers = evaluated("(import ./nvcc.nix).nvccCompatibilities", tmp_path)
    assert compilers == nvcc_bounds(data.compat)
    expression = "(import ./cuda.nix { lib = import ./lib.nix; }).cudaCapabilityToInfo"
    capabilities = evaluated(expression, tmp_path)
    assert capabilities == capability_fields(data.gpus)
    assert capabilities.keys() == data.gpus.capabilities.keys()


@needs_nix
@pytest.mark.parametrize(
    ("x86", "server", "jetson"),
    [
        ("1.0", "1.0", "1.0"),
        ("1.0", None, None),
        (None, "1.0", None),
        (None, None, "1.0"),
        ("2.0", "1.0", "2.0"),
        ("2.0", "2.0", "1.0"),
        ("2.0", "1.0", "1.0"),
        ("3.0", "2.0", "1.0"),
        ("2.0", "1.0", None),
        ("2.0", None, "1.0"),
    ],
)
def test_exported_releases_depend_on_platform(
    tmp_path: Path, x86: str | None, server: str | None, jetson: str | None
) -> None:
    labels = {"linux-x86_64": x86, "linux-sbsa": server, "linux-aarch64": jetson}
    sets = [platform_set(name, "12_9", tensorrt=label) for name, label in labels.items() if label]
    (tmp_path / "versions.nix").write_bytes(exported(*sets)[VERSIONS_PATH])
    (tmp_path / "lib.nix").write_text(LIB)
    for platform, label in labels.items():
        call = CALL.replace("PLATFORM", nix_string(platform))
        releases = evaluated(f"{call} call ./versions.nix", tmp_path)
        assert label is None or releases == {"cudaPackages_12_9": {"tensorrt": label}}


def test_package_sets_are_sorted_by_number() -> None:
    sets = [
        example_set(cuda={**document()["cuda"], "attribute": f"cudaPackages_{name}"})
        for name in ("13_0", "12_9", "12_10")
    ]
    expected = ["cudaPackages_12_9", "cudaPackages_12_10", "cudaPackages_13_0"]
    assert list(set_versions(filter(None, map(releases_of, sets)))) == expected


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_exported_manifests_end_with_line_feed(end: bytes) -> None:
    path = "pkgs/development/cuda-modules/_cuda/manifests/cuda/redistrib_13.3.1.json"
    published = b'{"cuda": {}}'
    tables = shared_tables()._replace(manifests={Release("cuda", "13.3.1"): published + end})
    assert exported(tables=tables)[path] == published + b"\n"


@pytest.mark.parametrize(
    "package_set", [wheel_set(), platform_set("windows-x86_64", cuda="13.3.1")]
)
def test_sets_unsupported_by_nixpkgs_export_tables_only(package_set: PackageSet) -> None:
    assert exported(package_set).keys() == {NVCC_PATH, CAPABILITY_PATH}


def test_redistributables_built_from_source_are_skipped() -> None:
    package_set = platform_set("linux-x86_64", cuda="13.3.1", nccl="2.1.0", nvshmem="3.1.0")
    releases = set_versions(filter(None, [releases_of(package_set)]))
    assert releases == {"cudaPackages_13_3": {"cuda": {"linux-x86_64": "13.3.1"}}}


# -- quoting

texts = st.text(
    st.one_of(
        st.sampled_from("\"'$\\{}\n\r\t;=#/*-"),
        st.characters(exclude_characters="\0", codec="utf-8"),
    ),
    max_size=12,
)
values: st.SearchStrategy[NixValue] = st.recursive(
    st.one_of(texts, st.booleans(), st.none()),
    lambda inner: st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@needs_nix
@examples(1 / 8)
@given(st.lists(st.tuples(st.dictionaries(texts, values, max_size=5), texts), min_size=3))
def test_texts_and_names_stay_quoted(
    tmp_path_factory: pytest.TempPathFactory, cases: list[tuple[dict[str, NixValue], str]]
) -> None:
    lines = ["["]
    for value, comment in cases:
        lines += [*nix_comment(comment), *nix_value(value)]
    folder = tmp_path_factory.getbasetemp()
    assert evaluated("\n".join([*lines, "]"]), folder) == [value for value, _ in cases]


HOSTILE = [
    "${x}",
    "$${x}",
    "\\${x}",
    '"; x = "',
    "''${x}''",
    "a\nb",
    "a\r\nb",
    "# x",
    "*/",
    "é★",
    "",
]


@needs_nix
def test_hostile_text_is_quoted_as_value_and_name(tmp_path: Path) -> None:
    bindings = (line for text in HOSTILE for line in nix_binding(text, text))
    assert evaluated("\n".join(["{", *bindings, "}"]), tmp_path) == {t: t for t in HOSTILE}


def test_null_character_is_refused() -> None:
    with pytest.raises(ValueError, match="null character"):
        nix_string("a\0b")


def test_long_comments_are_wrapped() -> None:
    lines = list(nix_comment("word " * 60 + "\n*/ '' ${x}"))
    assert len(lines) > 3
    assert all(line.startswith("# ") and len(line) <= 96 for line in lines)
