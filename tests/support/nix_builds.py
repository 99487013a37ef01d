"""Nix without nixpkgs: evaluation in memory, and builds in a separate store."""

import json
import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from support.optional_programs import find_program, needs

STAND_IN = Path(__file__).parent / "nixpkgs"
"""A small nixpkgs: stdenv with phases, hooks and the check of meta attributes."""

_TOOLS = ("nix-build", "patchelf", "readelf", "unzip")

needs_nix = needs("nix-instantiate")
needs_nix_builds = needs(*_TOOLS)

_PROVIDED = {"gcc": ("libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1"), "zlib": ("libz.so.1",)}
"""Libraries of the host that replace packages of nixpkgs."""


@cache
def host_libraries() -> dict[str, str]:
    """Return the host's libraries by soname."""
    lines = subprocess.run(
        [find_program("ldconfig") or "/sbin/ldconfig", "-p"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    libraries: dict[str, str] = {}
    for line in lines.splitlines()[1:]:
        name, arrow, path = line.partition(" => ")
        if arrow and "64" in name:
            libraries.setdefault(name.split()[0], path)
    return libraries


def host_gcc() -> int:
    """Return the major version of the host's GCC, the only one of the stand-in."""
    command = ("gcc", "-dumpversion")
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(output.partition(".")[0])


def stand_in() -> str:
    """Return the stand-in as an expression, with the host's libraries."""
    known = host_libraries()
    libraries = {
        name: [known[soname] for soname in sonames if soname in known]
        for name, sonames in _PROVIDED.items()
    }
    return f"import {STAND_IN} {{ libraries = builtins.fromJSON ''{json.dumps(libraries)}''; }}"


def nix_build(folder: Path, expression: str) -> "subprocess.CompletedProcess[str]":
    """Build an expression with a store in the folder, without downloads and sandbox."""
    folders = {
        f"NIX_{name}_DIR": str(folder / "nix" / name.lower())
        for name in ("STORE", "STATE", "LOG", "CONF")
    }
    options = {"build-users-group": "", "substitute": "false", "sandbox": "false"}
    return subprocess.run(
        [
            *("nix-build", "--no-out-link", "-E", expression),
            *(word for name, value in options.items() for word in ("--option", name, value)),
        ],
        cwd=folder,
        env={**os.environ, **folders, "HOME": str(folder), "NIX_PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def build_package(folder: Path, attr: str, outputs: Iterable[str]) -> dict[str, Path]:
    """Build a package of the set in `cuda` below a folder, and return its outputs' paths."""
    paths = {}
    for output in outputs:
        expression = f"(import ./cuda {{ pkgs = {stand_in()}; }}).{attr}.{output}"
        process = nix_build(folder, expression)
        assert process.returncode == 0, process.stderr
        # Nix also prints the other outputs of the package.
        suffix = "" if output == "out" else f"-{output}"
        (paths[output],) = (
            Path(line)
            for line in process.stdout.splitlines()
            if suffix == "" or line.endswith(suffix)
        )
    return paths


def contents(output: Path) -> dict[str, str]:
    """Return the files of a folder by path: a link's target, or the kind of file.

    Files that nixpkgs adds for dependents are excluded.
    """
    files = {}
    for path in sorted(output.rglob("*")):
        name = path.relative_to(output).as_posix()
        if path.is_symlink():
            end = path.resolve()
            files[name] = f"-> {os.path.relpath(end, output.resolve())}"
        elif path.is_file() and not name.startswith("nix-support/"):
            files[name] = "executable" if path.stat().st_mode & 0o111 else "file"
    return files


def materialized(root: Path, attr: str, output: str) -> dict[str, str]:
    """Return the files of an output in a split toolkit root by their archive paths.

    A root has the top-level files of an archive in separate folders.
    """
    folder = root / attr / output
    moved = [f"share/{name}/{attr}/" for name in ("licenses", "doc")]
    files = {}
    for path, kind in contents(folder).items() if folder.is_dir() else ():
        for prefix in moved:
            path = path.removeprefix(prefix)  # noqa: PLW2901 - the same path
        files[path] = kind
    return files


def run_path_of(path: Path) -> list[str]:
    """Return the folders of an ELF file's run path."""
    folders = _patchelf("--print-rpath", path).strip().replace("$ORIGIN", str(path.parent))
    return [folder for folder in folders.split(":") if folder]


def _patchelf(option: str, path: Path) -> str:
    command = ["patchelf", option, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
