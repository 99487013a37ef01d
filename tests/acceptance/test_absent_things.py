"""What commands answer about things that are not in the data: no, unknown, or not in the data.

Each question is asked in four worlds: without local data, with the manifest of one release, with
all shipped manifests as the only data, and with a release whose archives were all examined.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import Run
from support.binaries import Symbol, elf
from support.factory import manifest
from support.releases import Files, put, release
from support.running import succeed

from cudaredist.store.data_folder import shipped_data

WORLDS = ("nothing", "one manifest", "all manifests", "examined")
_ONLY_OWN = ("all manifests", "examined")
"""Worlds without shipped data."""

QUESTIONS: Mapping[tuple[str, ...], tuple[int, int, int, int]] = {
    # Archives that were not examined can have any file.
    ("which", "libnever.so.1"): (3, 3, 3, 1),
    ("which", "libcublas_static.a"): (3, 3, 3, 1),
    ("which", "libcublas_static.a", "--platform", "linux-x86_64"): (3, 3, 3, 1),
    ("which", "--symbol", "neverExported"): (3, 3, 3, 1),
    ("which", "nsys"): (3, 3, 3, 1),
    ("which", "libcublas_static.a", "--cuda", "12.9.1"): (3, 3, 3, 1),
    ("which", "--symbol", "cuMemAlloc_v2"): (3, 3, 3, 1),
    # Later GPUs and packages may exist. Two worlds have no table of GPUs.
    ("explain", "gpu", "99"): (2, 2, 3, 3),
    ("explain", "gpu", "8.7"): (0, 0, 3, 3),
    ("explain", "package", "libcublass"): (2, 2, 2, 2),
    # All packages are known from manifests.
    ("explain", "package", "cuda_gdb"): (0, 0, 0, 0),
    ("explain", "package", "libcublas"): (0, 0, 0, 0),
    ("explain", "package", "never"): (2, 2, 2, 2),
    # A release between two known ones may exist. Two worlds have no table of compilers.
    ("explain", "cuda", "12.7.0"): (2, 2, 3, 3),
    ("explain", "nvcc", "12.7.0"): (2, 2, 3, 3),
    ("diff", "cuda@12.7.0", "cuda@12.9.1"): (2, 2, 2, 2),
    ("build", "--cuda", "12.7.0", "-o", "sets"): (2, 2, 3, 3),
}
ANSWERS = [
    pytest.param(world, question, codes[position], id=f"{' '.join(question)} in {world}")
    for question, codes in QUESTIONS.items()
    for position, world in enumerate(WORLDS)
]

_PACKAGES: Mapping[str, Mapping[str, Files]] = {
    "libcublas": {
        "linux-x86_64": {
            "lib/libcublas.so.12": elf(symbols=[Symbol("cublasCreate")], soname="libcublas.so.12")
        }
    },
    "cuda_nvcc": {"linux-x86_64": {"bin/nvcc": b"#!/bin/sh\n"}},
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with the data folder of each world."""
    root = tmp_path_factory.mktemp("worlds")
    (root / "nothing").mkdir()
    one = root / "one manifest/data/manifests/cuda/redistrib_12.9.1.json"
    one.parent.mkdir(parents=True)
    one.write_bytes(manifest(packages=("cuda_cudart", "cuda_gdb", "libcublas")))
    manifests = root / "all manifests/data/manifests"
    shutil.copytree(shipped_data() / "manifests", manifests, ignore=lambda *_: {"wheels"})
    files = release("12.9.1", _PACKAGES)
    data = root / "examined/data"
    put(root / "source/compute/cuda/redist", files)
    put(data / "manifests/cuda", {name: text for name, text in files.items() if "/" not in name})
    places = ("--data-dir", data, "--base-url", root / "source", "-q")
    succeed("process-manifests", *places)
    succeed("update-symbols", *places)
    return root


@pytest.mark.parametrize(("world", "question", "code"), ANSWERS)
def test_absence_is_stated_only_if_everything_was_examined(
    run: Run,
    worlds: Path,
    world: str,
    question: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The index of a world answers all of its questions.
    monkeypatch.setenv("CUDAREDIST_CACHE_DIR", str(worlds / world / "cache"))
    data = worlds / world / "data"
    flags = ("--data-dir", data) if data.exists() else ()
    result = run(*question, *flags, *(["--no-shipped-data"] if world in _ONLY_OWN else []))
    assert result.exit_code == code, result.output
    if code == 3:
        assert "no local" not in result.output
        assert re.search(r"`cudaredist [^`]*(process-manifests|update-)", result.output)
    if "12.7.0" in question and code == 2:
        assert re.search(r"12\.7\.0 is not in the data|no local .* '12\.7\.0'", result.output)
        assert "not published" not in result.output
    if "99" in question or "libcublass" in question:
        assert ("is not in the data" in result.output) is (code == 2)
    if code == 0 and world != "examined":
        assert not re.search(r"no local|no package|not published", result.output)
