"""Tests of options that cannot be combined: the message, and the call that the hint suggests."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import Run
from support.running import expect_error
from support.set_inputs import cuda, put_data

REFUSALS = {
    "diff x y --lines": ("--lines cannot be combined with NEW", "cudaredist diff x y"),
    "diff x --json --lines": ("--lines cannot be combined with --json", "cudaredist diff x --json"),
    "diff x": ("diff requires NEW", "cudaredist diff x NEW"),
    "audit x --set a.json --supplied-by b.json": (
        "--supplied-by cannot be combined with --set",
        "cudaredist audit x --supplied-by b.json",
    ),
    "build --wheel-base https://user:token@host.example": (
        "--wheel-base cannot contain credentials or a query: package sets and "
        "lock files are public",
        "cudaredist build",
    ),
    "build --platform x --system y": (
        "--platform cannot be combined with --system",
        "cudaredist build --system y",
    ),
    "build --target linux-sbsa": ("--target requires --platform", "cudaredist build"),
    "build --gpu all --forward-compat": (
        "--gpu all cannot be combined with other capabilities or --forward-compat",
        "cudaredist build --forward-compat",
    ),
    "bump --json --format commit-message": (
        "--json cannot be combined with --format commit-message",
        "cudaredist bump --format commit-message",
    ),
    "bump --no-process --output sets": (
        "--output cannot be combined with --no-process",
        "cudaredist build --output sets",
    ),
    "bump --version latest": (
        "--version of bump requires a release, such as 13.0.2",
        "cudaredist bump",
    ),
    "download-manifests https://x": (
        "URL requires MANIFEST_DIR",
        "cudaredist download-manifests https://x manifests",
    ),
    "download-manifests https://x m --redist cuda": (
        "URL and MANIFEST_DIR cannot be combined with --redist, --channel, "
        "--base-url or --data-dir",
        "cudaredist download-manifests https://x m",
    ),
    "explain gpu 9.0 --history": (
        "--history requires the subject package",
        "cudaredist explain package 9.0 --history",
    ),
    "export urls": ("missing SET", "cudaredist export --help"),
    "export rules-ml-toolchain set.json --output out": (
        "rules-ml-toolchain exports all local manifests, not a package set",
        "cudaredist export rules-ml-toolchain",
    ),
    "export nix set.json --diff nixpkgs": (
        "No such option: --diff",
        "cudaredist nixpkgs --help",
    ),
    "export nixpkgs set.json --output o --redist cudnn=9": (
        "--redist requires the format nixpkgs without SET",
        "cudaredist export nixpkgs set.json --output o",
    ),
    "export nixpkgs set.json --output out --diff nixpkgs": (
        "--diff cannot be combined with --output",
        "cudaredist export nixpkgs set.json --output out",
    ),
    "export nixpkgs set.json --diff nixpkgs --replace": (
        "--replace requires the format nixpkgs and --output",
        "cudaredist export nixpkgs set.json --diff nixpkgs",
    ),
    "export nixpkgs set.json --diff nixpkgs --check": (
        "--check requires --output",
        "cudaredist export nixpkgs set.json --diff nixpkgs",
    ),
    "export nixpkgs set.json": (
        "nixpkgs writes several files",
        "cudaredist export nixpkgs set.json --output nixpkgs",
    ),
    "export nix set.json": (
        "nix writes several files",
        "cudaredist export nix set.json --output nix",
    ),
    "export urls set.json --check": (
        "--check requires --output",
        "cudaredist export urls set.json",
    ),
    "export urls set.json --json": ("--json requires --output", "cudaredist export urls set.json"),
    "export urls set.json --wheel-base 'https://a/?token=1'": (
        "--wheel-base cannot contain credentials or a query: package sets and "
        "lock files are public",
        "cudaredist export urls set.json",
    ),
    "export urls set.json --wheel-base https://a --resolve": (
        "--resolve cannot be combined with --wheel-base",
        "cudaredist export urls set.json --wheel-base https://a",
    ),
    "export env set.json --wheel-base https://a": (
        "--wheel-base cannot be combined with the format env",
        "cudaredist export env set.json",
    ),
    "export urls set.json --base-url https://u:token@a": (
        "--base-url cannot contain credentials or a query: exported files are public",
        "cudaredist export urls set.json",
    ),
    "export urls set.json --base-url https://a --resolve": (
        "--base-url cannot be combined with --wheel-base or --resolve",
        "cudaredist export urls set.json --resolve",
    ),
    "export env set.json --base-url https://a": (
        "--base-url cannot be combined with the format env",
        "cudaredist export env set.json",
    ),
    "export cmake set.json --resolve": (
        "--resolve cannot be combined with the format cmake",
        "cudaredist export cmake set.json",
    ),
    "export urls set.json --data-dir data": (
        "--data-dir requires rules-ml-toolchain, template, vex or --advisories",
        "cudaredist export urls set.json",
    ),
    "export urls set.json --root /opt/cuda": (
        "--root cannot be combined with the format urls",
        "cudaredist export cmake set.json --root /opt/cuda",
    ),
    "export urls set.json --target-set set.json": (
        "urls has no form for a cross toolkit: --target-set requires bazel, cmake or env",
        "cudaredist export cmake set.json --target-set set.json",
    ),
    "export env set.json --root cuda": (
        "--root cuda: expected an absolute path",
        'cudaredist export env set.json --root "$PWD"/cuda',
    ),
    "materialize --output cuda --verify --remove": (
        "--remove cannot be combined with --verify",
        "cudaredist materialize --output cuda --verify",
    ),
    "materialize set.json --output cuda --verify": (
        "--verify cannot be combined with SET",
        "cudaredist materialize --output cuda --verify",
    ),
    "materialize --output cuda --target-set set.json --verify": (
        "--target-set cannot be combined with --verify or --remove",
        "cudaredist materialize --output cuda --verify",
    ),
    "materialize set.json --output cuda --layout oci": (
        "--layout oci requires --for",
        "cudaredist materialize set.json --output cuda",
    ),
    "materialize set.json --output cuda --for x": (
        "--for requires --component runtime, and no other component",
        "cudaredist materialize set.json --output cuda",
    ),
    "materialize set.json --output cuda --layout split --component runtime --for x": (
        "--for cannot be combined with --target-set or --layout split",
        "cudaredist materialize set.json --output cuda --component runtime --layout split",
    ),
    "materialize set.json --output cuda --component runtime --for x --exclude nccl": (
        "--for cannot be combined with --exclude",
        "cudaredist materialize set.json --output cuda --component runtime --exclude nccl",
    ),
    "materialize --output cuda --component runtime --for x --verify": (
        "--for cannot be combined with --verify or --remove",
        "cudaredist materialize --output cuda --component runtime --verify",
    ),
    "materialize set.json --output cuda --target-set set.json --layout split": (
        "--target-set cannot be combined with --layout split",
        "cudaredist materialize set.json --output cuda --layout split",
    ),
    "materialize --output cuda --run-paths --verify": (
        "--run-paths cannot be combined with --verify or --remove",
        "cudaredist materialize --output cuda --verify",
    ),
    "materialize --output cuda --replace --verify": (
        "--replace cannot be combined with --verify or --remove",
        "cudaredist materialize --output cuda --verify",
    ),
    "materialize --output cuda": (
        "missing package set",
        "cudaredist build --cuda 13 --platform linux-x86_64 --output set.json",
    ),
    "runfile add https://x/x.run --url https://x": (
        "--url requires a local file",
        "cudaredist runfile add https://x/x.run",
    ),
    "mirror sync m --set set.json --platform linux-sbsa": (
        "--set cannot be combined with other options of the selection",
        "cudaredist mirror sync m --platform linux-sbsa",
    ),
    "mirror verify m --set set.json": (
        "verify cannot be combined with a selection",
        "cudaredist mirror verify m",
    ),
    "mirror verify m --check": ("--check requires sync or prune", "cudaredist mirror verify m"),
    "mirror prune m --replace": (
        "--replace requires sync",
        "cudaredist mirror prune m",
    ),
    "mirror prune m --checksum": ("--checksum requires sync", "cudaredist mirror verify m"),
    "nixpkgs co set.json --redist cudnn=9": (
        "--redist cannot be combined with SET",
        "cudaredist nixpkgs co set.json",
    ),
    "nixpkgs co --diff --check": (
        "--check cannot be combined with --diff",
        "cudaredist nixpkgs co --diff",
    ),
    "nixpkgs co --diff --replace": (
        "--replace cannot be combined with --diff",
        "cudaredist nixpkgs co --diff",
    ),
    "process-manifests --engine dask": (
        "--engine dask requires --scheduler",
        "cudaredist process-manifests",
    ),
    "process-manifests --no-cleanup --engine dask --scheduler tcp://x": (
        "--keep-archives requires --engine local",
        "cudaredist process-manifests --engine dask --scheduler tcp://x",
    ),
    "process-manifests --legacy": (
        "--legacy requires URL and MANIFEST_DIR",
        "cudaredist process-manifests",
    ),
    "process-manifests https://x": (
        "URL requires MANIFEST_DIR",
        "cudaredist process-manifests https://x manifests",
    ),
    "process-manifests https://x m --redist cuda": (
        "URL and MANIFEST_DIR cannot be combined with --redist, --channel, "
        "--base-url or --data-dir",
        "cudaredist process-manifests https://x m",
    ),
    "which libcublas.so.12 --symbol cublasCreate": (
        "FILE cannot be combined with --symbol",
        "cudaredist which libcublas.so.12",
    ),
    "which": ("which requires a file, a soname or --symbol", "cudaredist which libcublas.so.12"),
    "which libcublas.so.12 --demangle": (
        "--demangle requires --symbol",
        "cudaredist which libcublas.so.12",
    ),
    "query": ("query requires SQL, --tables or --output", "cudaredist query --tables"),
    "query 'SELECT 1' --tables": (
        "SQL cannot be combined with --tables",
        "cudaredist query 'SELECT 1'",
    ),
    "query --tables --output facts.db": (
        "--tables cannot be combined with --output",
        "cudaredist query --output facts.db",
    ),
    "query 'SELECT 1' --output facts.db": (
        "SQL cannot be combined with --output",
        "cudaredist query 'SELECT 1'",
    ),
    "query --format csv --output facts.db": (
        "--format cannot be combined with --output",
        "cudaredist query --output facts.db",
    ),
    "versions --redist cuda --redist cudnn --format renovate": (
        "--format renovate requires exactly one --redist",
        "cudaredist versions --redist cuda --format renovate",
    ),
}
"""Calls that are refused, with the message and the suggested call."""


@pytest.mark.parametrize("call", REFUSALS)
def test_refused_options_are_named_with_a_call_to_type(run: Run, call: str) -> None:
    message, suggested = REFUSALS[call]
    if suggested.startswith("cudaredist build"):
        # Without local data, the suggested call would build a set of each shipped release.
        put_data(Path("data"), cuda())
    result = run(*shlex.split(call))
    expect_error(result, 2, f"error: {message}")
    assert re.findall("`([^`]*)`", result.stderr)[-1] == suggested
