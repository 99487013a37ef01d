"""Tests of the order in which the libraries of an environment are loaded."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.binaries import elf
from support.environments import install, library, user
from support.judged_environments import CUBLAS, LABELS, put_cublas
from support.programs import audit_data, cuda
from support.releases import put

from cudaredist.environments.load_all import load_all
from cudaredist.environments.loaded_libraries import Use
from cudaredist.environments.read_program import ProgramReader
from cudaredist.store.cache import Cache

OWN, OUTSIDE = "example/own", "outside"


def use_of(site: Path, path: str) -> Use:
    """Return the use of cuBLAS by a file."""
    reader = ProgramReader(cache=Cache(site.with_suffix(".cache")), paths=[site])
    (environment,) = reader.read_all().environments
    uses = load_all(environment, audit_data(cuda(*LABELS))).uses
    (use,) = [each for each in uses if (each.user.display_path, each.soname) == (path, CUBLAS)]
    return use


def put_torch(site: Path) -> None:
    """Install a package that loads cuBLAS when it is imported."""
    install(site, "torch", "2.9", {"torch/__init__.py": "_preload_cuda_deps"})


@pytest.mark.parametrize(
    ("facts", "order"),
    [
        ({"runpath": "$ORIGIN/own"}, ["preloaded", "library-path", "run-path", "none"]),
        ({"rpath": "$ORIGIN/own"}, ["preloaded", "run-path", "library-path", "none"]),
    ],
    ids=["DT_RUNPATH", "DT_RPATH"],
)
def test_copies_of_a_library_are_loaded_in_the_order_of_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: Mapping[str, str], order: list[str]
) -> None:
    site = tmp_path / "env"
    put_cublas(site)
    put_torch(site)
    files = {"example/a.so": user(CUBLAS, **facts), f"{OWN}/{CUBLAS}": library(CUBLAS)}
    install(site, "example", "1.0", files, ["torch"])
    put(tmp_path / OUTSIDE, {CUBLAS: library(CUBLAS)})
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / OUTSIDE))
    copies = {
        "preloaded": site / "nvidia/cublas/lib" / CUBLAS,
        "run-path": site / OWN / CUBLAS,
        "library-path": tmp_path / OUTSIDE / CUBLAS,
    }
    found = []
    for _ in order:
        loaded = use_of(site, "example/a.so").loaded
        found.append(loaded.found_by)
        if loaded.found_by in copies:
            assert Path(loaded.file.path if loaded.file else "") == copies[loaded.found_by]
            copies[loaded.found_by].unlink()
    assert found == order


@pytest.mark.parametrize(
    ("requires", "found_by"), [(["torch"], "preloaded"), ([], "run-path")], ids=["torch", "none"]
)
def test_package_loads_a_library_first_only_for_packages_that_require_it(
    tmp_path: Path, requires: list[str], found_by: str
) -> None:
    put_cublas(tmp_path)
    put_torch(tmp_path)
    program = user(CUBLAS, runpath="$ORIGIN/own")
    files = {"example/a.so": program, f"{OWN}/{CUBLAS}": library(CUBLAS)}
    install(tmp_path, "example", "1.0", files, requires)
    assert use_of(tmp_path, "example/a.so").loaded.found_by == found_by


def test_symbols_of_a_library_that_is_loaded_first_count(tmp_path: Path) -> None:
    """The own copy has the symbol, but the process never loads it."""
    site = tmp_path / "env"
    put_cublas(site, "old")
    put_torch(site)
    program = user(CUBLAS, "old", "new", runpath="$ORIGIN/own")
    own = library(CUBLAS, "old", "new")
    install(site, "example", "1.0", {"example/a.so": program, f"{OWN}/{CUBLAS}": own}, ["torch"])
    assert use_of(site, "example/a.so").lacking == {"new"}


@pytest.mark.parametrize(
    ("requires", "folder"), [(["torch"], "nvidia/cublas/lib"), ([], "raft")], ids=["torch", "none"]
)
def test_library_of_other_code_does_not_replace_one_that_is_loaded_first(
    tmp_path: Path, requires: list[str], folder: str
) -> None:
    """Other code loads libraft.so with its own copy, but torch is imported before it."""
    put_cublas(tmp_path)
    put_torch(tmp_path)
    raft = {"raft/libraft.so": user(CUBLAS, runpath="$ORIGIN"), f"raft/{CUBLAS}": library(CUBLAS)}
    install(tmp_path, "raft", "1.0", raft)
    program = elf(needed=["libraft.so", CUBLAS])
    install(tmp_path, "example", "1.0", {"example/a.so": program}, requires)
    assert Path(use_of(tmp_path, "example/a.so").loaded.path) == tmp_path / folder / CUBLAS
