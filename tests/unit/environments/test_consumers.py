"""Tests of audit: other releases of packages whose libraries cannot be changed."""

from pathlib import Path

import pytest
from support.binaries import Symbol, elf
from support.environments import install, library, user
from support.judged_environments import CUBLAS, FOLDER, judge
from support.programs import cuda, known, table

from cudaredist.tables.symbols.symbol_table import Import, SymbolColumns

CUSOLVER = "libcusolver.so.11"
PROJECT = "nvidia-cusolver-cu12"
RUN_PATH = "$ORIGIN/../../cublas/lib"
USED = {"12.4.1": "old", "12.5.1": "new", "12.9.1": "newest"}
"""The symbol of cuBLAS that each release of cuSOLVER uses."""


def cusolver_table() -> SymbolColumns:
    """Return the symbols of the releases, of which the first one lacks an export."""
    exports = {
        label: ["solve", *(["more"] if name != "old" else [])] for label, name in USED.items()
    }
    columns = table(CUSOLVER, exports, f"@@{CUSOLVER}")
    for column in columns.columns:
        columns.add_imports(column, [Import(USED[column.label], CUBLAS, CUBLAS)])
    return columns


TABLES = {
    CUBLAS: table(
        CUBLAS,
        {"12.4.1": ["old"], "12.5.1": ["old", "new"], "12.9.1": ["old", "new", "newest"]},
        f"@@{CUBLAS}",
    ),
    CUSOLVER: cusolver_table(),
}
LIBRARIES = [*cuda(*USED), *(known(CUSOLVER, label, "libcusolver", PROJECT) for label in USED)]


def put_cusolver(site: Path, used: str) -> None:
    """Install a release of cuSOLVER that uses one symbol of cuBLAS."""
    content = elf(
        soname=CUSOLVER,
        needed=[CUBLAS],
        runpath=RUN_PATH,
        needs={CUBLAS: [CUBLAS]},
        defines=[CUSOLVER],
        symbols=[
            Symbol(used, is_defined=False, version=CUBLAS),
            *(Symbol(name, version=CUSOLVER) for name in ("solve", "more")),
        ],
    )
    install(site, PROJECT, "12.9.1.7", {f"nvidia/cusolver/lib/{CUSOLVER}": content})


@pytest.mark.parametrize(
    ("requires", "used", "hint"),
    [
        ([], "solve", "pip install 'nvidia-cublas-cu12>=12.9.1.7'"),
        (["nvidia-cublas-cu12<12.9"], "solve", f"pip install {PROJECT}==12.5.1.7"),
        (["nvidia-cublas-cu12==12.4.1.7"], "solve", f"pip install {PROJECT}==12.4.1.7"),
        (["nvidia-cublas-cu12==12.4.1.7"], "more", None),
        (["nvidia-cublas-cu12==12.4.1.7", f"{PROJECT}>=12.5"], "solve", None),
    ],
    ids=["not pinned", "below the minor", "pinned", "older lacks a symbol", "both pinned"],
)
def test_user_of_a_pinned_library_gets_a_release_that_fits(
    tmp_path: Path, requires: list[str], used: str, hint: str | None
) -> None:
    """jax 0.6.1 requires cuBLAS before 12.9, and any cuSOLVER."""
    exports = ["old", "new"] if requires == ["nvidia-cublas-cu12<12.9"] else ["old"]
    version = "12.5.1.7" if "new" in exports else "12.4.1.7"
    install(
        tmp_path, "nvidia-cublas-cu12", version, {f"{FOLDER}/{CUBLAS}": library(CUBLAS, *exports)}
    )
    put_cusolver(tmp_path, "newest")
    example = user(CUSOLVER, used, runpath="$ORIGIN/../nvidia/cusolver/lib")
    install(tmp_path, "jax", "0.6.1", {"jax/a.so": example}, requires)
    judged = judge(tmp_path, TABLES, LIBRARIES)
    (finding,) = (each for each in judged.findings() if f"{CUBLAS} (" in each.message)
    assert finding.kind == "missing-symbols"
    assert finding.hint == hint
