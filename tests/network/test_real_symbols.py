"""Tests of the shipped symbol tables against NVIDIA's wheels."""

from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.running import cudaredist

from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from tools.symbols import Comparison

pytestmark = [pytest.mark.network, pytest.mark.nightly]

SMALL = ("cuda_cudart", "libcufile", "libnvjpeg")
"""Packages with small wheels: together 285 MB for all releases and platforms."""


def test_symbol_tables_equal_symbols_of_wheels_of_every_release(tmp_path: Path) -> None:
    shipped = Store(REPOSITORY / "data", "wheels")
    selection = ["--channel", "wheels", "--redist", "cuda"]
    labels = [word for label in shipped.manifests("cuda").labels() for word in ("--version", label)]
    cudaredist(tmp_path, "download-manifests", *selection, *labels)
    packages = [word for name in SMALL for word in ("--package", name)]
    cudaredist(tmp_path, "process-manifests", *selection, *packages, "--fill-cache")

    comparison = Comparison()
    comparison.tables(shipped, Cache(tmp_path / "cache"))
    assert comparison.differences == []
    assert comparison.counts["tables: archives"] > 100
    assert comparison.counts["tables: columns"] > 100
    assert comparison.counts["tables: exports"] > 10_000
