"""Tests of the selection of releases by the symbols that they need."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.set_inputs import LINUX, Release, build, cuda, library, set_data_of

from cudaredist.sets.inputs import SetData
from cudaredist.store.symbol_folder import LayeredSymbols, SymbolFolder
from cudaredist.tables.symbols.label_ranges import KEY_SIZE
from cudaredist.tables.symbols.symbol_table import Column, Export, Import, Provider, SymbolColumns

CUBLAS, CUBLASMP, CUSOLVERMP = "libcublas.so.12", "libcublasmp.so.0", "libcusolverMp.so.0"
CUDA = cuda(libcublas=[LINUX], features={"libcublas": library(CUBLAS)})
MP_RELEASES = [
    Release("cublasmp", label, {"libcublasmp": [LINUX]}, {"libcublasmp": library(CUBLASMP, CUBLAS)})
    for label in ("0.3.0", "0.4.0")
]
SOLVER_RELEASES = [
    Release(
        "cusolvermp",
        label,
        {"libcusolvermp": [LINUX]},
        {"libcusolvermp": library(CUSOLVERMP, CUBLASMP)},
    )
    for label in ("0.7.0", "0.8.0")
]


def column(release: Release, package: str) -> Column:
    """Return the column of a package's archive."""
    (sha256,) = {archive for name, archive in release.examined if name == package}
    provider = Provider("redist", release.redist, package, LINUX, "", stub=False)
    return Column(provider, release.label, sha256[:KEY_SIZE])


def set_data(folder: Path, imports_of_cublasmp: Mapping[str, str]) -> SetData:
    """Return releases with symbols, and the import of each release of cuBLASMp.

    cuBLAS exports `gemm`. cuBLASMp exports `herk` from 0.4.0, which cuSOLVERMp 0.8.0 needs.
    """
    cublas, cublasmp = SymbolColumns(CUBLAS), SymbolColumns(CUBLASMP)
    cusolvermp = SymbolColumns(CUSOLVERMP)
    cublas.add(column(CUDA, "libcublas"), [Export("gemm")])
    for release in MP_RELEASES:
        here = column(release, "libcublasmp")
        names = ("init", "herk") if release.label == "0.4.0" else ("init",)
        cublasmp.add(here, map(Export, names))
        cublasmp.add_imports(here, [Import(imports_of_cublasmp[release.label], "", CUBLAS)])
    for release in SOLVER_RELEASES:
        here = column(release, "libcusolvermp")
        name = "herk" if release.label == "0.8.0" else "init"
        cusolvermp.add(here, [Export("solve")])
        cusolvermp.add_imports(here, [Import(name, "", CUBLASMP)])
    symbols = SymbolFolder(folder)
    folder.mkdir()
    symbols.write(symbols.changed({CUBLAS: cublas, CUBLASMP: cublasmp, CUSOLVERMP: cusolvermp}))
    return set_data_of(CUDA, *MP_RELEASES, *SOLVER_RELEASES, symbols=LayeredSymbols([folder]))


def chosen(data: SetData) -> dict[str, str | None]:
    redists = build(data).redists
    return {name: redists[name].release for name in ("cublasmp", "cusolvermp")}


def test_newest_release_with_its_symbols_is_selected(tmp_path: Path) -> None:
    data = set_data(tmp_path / "symbols", {"0.3.0": "gemm", "0.4.0": "gemm"})
    assert chosen(data) == {"cublasmp": "0.4.0", "cusolvermp": "0.8.0"}


def test_release_without_its_symbols_is_rejected_with_reason(tmp_path: Path) -> None:
    data = set_data(tmp_path / "symbols", {"0.3.0": "gemm", "0.4.0": "emulate"})
    assert chosen(data) == {"cublasmp": "0.3.0", "cusolvermp": "0.7.0"}
    package_set = build(data)
    (rejected,) = package_set.redists["cublasmp"].newer_rejected
    needs = f"{CUBLASMP} needs symbols that {CUBLAS} of libcublas does not export"
    assert rejected.reason == f"{needs}: emulate"
    assert [each for each in package_set.diagnostics if each.code == "missing-symbols"] == []


@pytest.mark.parametrize("pins", [{}, {"cublasmp": "0.4.0"}])
def test_set_warns_if_no_release_has_its_symbols(tmp_path: Path, pins: dict[str, str]) -> None:
    data = set_data(tmp_path / "symbols", {"0.3.0": "emulate", "0.4.0": "emulate"})
    package_set = build(data, pins=pins)
    assert package_set.redists["cublasmp"].release == "0.4.0"
    subjects = [each.subject for each in package_set.diagnostics if each.code == "missing-symbols"]
    assert subjects == ["libcublasmp"]
