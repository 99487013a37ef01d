"""Read the tables of a nixpkgs checkout by evaluating them with Nix."""

import os
import shutil
import subprocess
from pathlib import Path

from cudaredist.errors import ContentError, IncompleteError
from cudaredist.jsontext import load_json
from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH
from cudaredist.nixpkgs.tables import NixpkgsTables, flat_cells

_SHOWN = 400


def evaluate_tables(folder: Path, library: Path | None = None) -> NixpkgsTables:
    """Return the tables in a folder, as evaluated by Nix with the library of a checkout.

    The default checkout is the folder. Nothing is built or downloaded. Raises
    `ContentError` for tables of an unknown format, and `IncompleteError` without Nix.
    """
    checkout = library or folder
    program = shutil.which("nix-instantiate")
    if program is None:
        message = "a checkout of nixpkgs requires nix-instantiate, which is not installed"
        hint = "install Nix, for example on Debian: `apt-get install nix-bin`"
        raise IncompleteError(message, hint=hint)
    expression = Path(__file__).with_suffix(".nix").read_text("utf-8")
    options = ["--store", "dummy://", "--eval", "--strict", "--json", "--expr", expression]
    for argument, root in (("checkout", checkout.resolve()), ("tables", folder.resolve())):
        options += ["--argstr", argument, str(root), "-I", f"{argument}={root}"]
    # Files of a checkout are not trusted: they can read no other files, and fetch none.
    options += ["--option", "restrict-eval", "true", "--option", "allowed-uris", ""]
    options += ["--option", "allow-import-from-derivation", "false"]
    process = subprocess.run(  # noqa: S603 - the user's own Nix
        [program, *options],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "NIX_PATH": ""},
    )
    if process.returncode:
        words = " ".join(process.stderr.split())[:_SHOWN]
        hint = "if the layout is not nixpkgs', write to a new folder and copy the files by hand"
        raise ContentError(f"Nix cannot evaluate the tables of {checkout}: {words}", hint=hint)
    document = load_json(process.stdout.encode())
    paths = {"compilers": NVCC_PATH, "capabilities": CAPABILITY_PATH, "releases": VERSIONS_PATH}
    attributes = {"compilers": "nvccCompatibilities", "capabilities": "cudaCapabilityToInfo"}
    tables = {}
    for name, path in paths.items():
        table = document[name]
        # Without a table of releases, its file is missing.
        if table is None and name in attributes and (folder / path).exists():
            raise ContentError(f"{checkout}: {path} has no {attributes[name]}")
        tables[name] = {} if table is None else table
        problem = _table_problem(tables[name], is_releases=name == "releases")
        if problem:
            raise ContentError(f"{checkout}: {path}: {problem}")
    return NixpkgsTables(**tables)


def _table_problem(table: object, *, is_releases: bool) -> str | None:
    """Return a wrong type in a table, or None."""
    if not isinstance(table, dict):
        return "expected attributes"
    for name, row in table.items():
        if not isinstance(row, dict):
            return f"expected attributes for {name}"
        for cell, value in flat_cells(row).items():
            is_label = isinstance(value, str)
            if not is_label and (is_releases or not (value is None or isinstance(value, bool))):
                kind = "a string" if is_releases else "a string or Boolean"
                return f"expected {kind} for {'.'.join((name, *cell))}"
    return None
