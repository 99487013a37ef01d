"""Replay a public change of a table of nixpkgs, and compare it with the export.

Run `tools/replay_nixpkgs.py BEFORE AFTER --data-dir DATA [-- OPTIONS]`. BEFORE and AFTER are the
same file of nixpkgs (cuda-packages.nix, nvcc.nix or cuda.nix) before and after the change. DATA is
a data folder. The export gets the releases that the files name. If the data folder does not have
the manifest of one, a neighbor's manifest is copied under its label, because only labels matter.
OPTIONS are passed to `cudaredist nixpkgs`, for example `--only` with a redistributable.
"""

import argparse
import difflib
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cudaredist.nixpkgs.evaluate import evaluate_tables
from cudaredist.nixpkgs.machines import MACHINES
from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH
from cudaredist.nixpkgs.tables import NixpkgsTables, flat_cells
from cudaredist.primitives import natural_order

_PATHS = {
    "mkCudaPackages": (VERSIONS_PATH, "releases"),
    "selectManifests": (VERSIONS_PATH, "releases"),
    "nvccCompatibilities =": (NVCC_PATH, "compilers"),
    "cudaCapabilityToInfo =": (CAPABILITY_PATH, "capabilities"),
}


def main(arguments: list[str]) -> int:
    """Print the figures of a replay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--cuda", help="newest CUDA minor release; default: of AFTER")
    parser.add_argument("--show", action="store_true", help="print the differences side by side")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:end])
    options.options = arguments[end + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        return _replay(options, Path(folder))


def _replay(options: argparse.Namespace, folder: Path) -> int:
    before, after = options.before.read_text("utf-8"), options.after.read_text("utf-8")
    path, table = next(value for key, value in _PATHS.items() if key in after)
    tables = {}
    for name, text in (("before", before), ("after", after), ("ours", before)):
        file = folder / name / path
        file.parent.mkdir(parents=True)
        file.write_text(text, "utf-8")
        tables[name] = evaluate_tables(folder / name)
    data = folder / "data"
    _copy_data(options.data_dir, data, tables["before"], tables["after"], options.cuda)
    run = _export(folder / "ours", data, table, options.options)
    print(run.stderr.replace(str(folder), "").strip())
    if not run.returncode <= 1:
        return run.returncode
    ours = (folder / "ours" / path).read_text("utf-8")
    tables["ours"] = evaluate_tables(folder / "ours")
    _print_lines(before, after, ours)
    _print_cells(*(getattr(tables[name], table) for name in ("before", "after", "ours")))
    if options.show:
        print(
            *difflib.unified_diff(
                after.splitlines(), ours.splitlines(), "real", "ours", n=1, lineterm=""
            ),
            sep="\n",
        )
    again = _export(folder / "ours", data, table, options.options)
    changed = (folder / "ours" / path).read_text("utf-8") != ours
    print(f"second run: exit {again.returncode}, {'changed' if changed else 'unchanged'}")
    return 0


def _export(
    checkout: Path, data: Path, table: str, options: list[str]
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "cudaredist", "nixpkgs", str(checkout)]
    command += ["--data-dir", str(data), *options]
    if "--only" not in options:
        command += ["--only", table]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def _copy_data(
    source: Path, data: Path, before: NixpkgsTables, after: NixpkgsTables, cuda: str | None
) -> None:
    """Copy the manifests of the releases in both files."""
    labels: dict[str, set[str]] = {}
    for tables in (before, after):
        for sets in tables.releases.values():
            for redists in sets.values():
                for redist, label in redists.items():
                    labels.setdefault(redist, set()).add(label)
    minors = {name for tables in (before, after) for name in tables.compilers} | {cuda or "13.0"}
    for minor in minors - {".".join(label.split(".")[:2]) for label in labels.get("cuda", ())}:
        labels.setdefault("cuda", set()).add(f"{minor}.0")
    for redist, names in labels.items():
        for label in names:
            _copy_manifest(source / "manifests" / redist, data / "manifests" / redist, label)


def _copy_manifest(source: Path, folder: Path, label: str) -> None:
    local = {file.stem.removeprefix("redistrib_"): file for file in source.glob("redistrib_*.json")}
    if not local:
        return
    older = [name for name in local if natural_order(name) <= natural_order(label)]
    name = max(older or local, key=natural_order)
    text = local[name].read_text("utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    text = text.replace(f'"release_label": "{name}"', f'"release_label": "{label}"')
    (folder / f"redistrib_{label}.json").write_text(text, "utf-8")


def _hunks(before: str, after: str) -> list[list[str]]:
    """Return the changed lines of each hunk."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        [*(f"- {line.strip()}" for line in old[a:b]), *(f"+ {line.strip()}" for line in new[c:d])]
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]


def _print_lines(before: str, after: str, ours: str) -> None:
    real, own = _hunks(before, after), _hunks(before, ours)
    equal = sum((Counter(map(tuple, real)) & Counter(map(tuple, own))).values())
    print(f"hunks: {equal} of {len(real)} equal; ours: {len(own)}")
    for title, is_code in (("lines", True), ("comments and blank lines", False)):
        wanted, got = (
            Counter(line for hunk in hunks for line in hunk if _is_code(line) == is_code)
            for hunks in (real, own)
        )
        equal, more = sum((wanted & got).values()), sum((got - wanted).values())
        print(f"{title}: {equal} of {sum(wanted.values())} equal; {more} others")


def _is_code(line: str) -> bool:
    text = line[2:].strip()
    return bool(text) and not text.startswith("#")


def _print_cells(
    before: Mapping[str, Any], after: Mapping[str, Any], ours: Mapping[str, Any]
) -> None:
    old, real, own = flat_cells(before), flat_cells(after), flat_cells(ours)
    groups: dict[str, list[bool]] = {}
    for cell in sorted({*real, *own}):
        title = cell[0] if cell[0] in MACHINES else "table"
        groups.setdefault(title, []).append(real.get(cell) == own.get(cell))
        if real.get(cell) != own.get(cell):
            print(f"  {'.'.join(cell)}: {old.get(cell)} -> {own.get(cell)}, real: {real.get(cell)}")
    for title, results in groups.items():
        print(f"cells, {title}: {sum(results)} of {len(results)} equal")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
