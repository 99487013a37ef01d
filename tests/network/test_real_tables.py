"""Tests that tables rebuilt from real wheels equal the shipped ones."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from support.running import cudaredist

pytestmark = [pytest.mark.network, pytest.mark.nightly]

DATA = REPOSITORY / "data"
LABELS = ("11.8.0", "12.2.2", "13.0.2")
# For 13.0.2, read by hand from the header, `gcc -E -undef` and `ptxas --help`.
BOUNDS = {
    "gcc": (6, 15),
    "clang": (7, 20),
    "msvc": (1920, 1949),
    "grace-clang": (16, 20),
    "horizon-clang": (3, 20),
}
REFUSED = {"icc", "icx"}
WHEELS = ("--channel", "wheels")
KNOWN = "7.5 8.0 8.6 8.7 8.8 8.9 9.0 9.0a 10.0 10.0a 10.0f 10.3 10.3a 10.3f 11.0 11.0a 11.0f "
KNOWN += "12.0 12.0a 12.0f 12.1 12.1a 12.1f"


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with three shipped manifests and their tables."""
    folder = tmp_path_factory.mktemp("tables")
    manifests = folder / "data/manifests/wheels/cuda"
    manifests.mkdir(parents=True)
    for label in LABELS:
        shutil.copy(DATA / f"manifests/wheels/cuda/redistrib_{label}.json", manifests)
    shutil.copytree(DATA / "policy", folder / "data/policy")
    # 12.2 refuses ICX and 13.0 refuses ICC, but earlier releases accept them.
    cudaredist(folder, "update-nvcc-compat", *WHEELS, code=1)
    assert table(folder / "data", "nvcc_compat")["releases"].keys() & set(LABELS) == {LABELS[0]}
    cudaredist(folder, "update-nvcc-compat", *WHEELS, "--replace")
    cudaredist(folder, "update-gpus", *WHEELS)
    for command in ("update-nvcc-compat", "update-gpus"):
        again = json.loads(cudaredist(folder, command, *WHEELS, "--check", "--json"))
        assert (again["status"], again["archives_read"]) == ("unchanged", 0)
    return folder / "data"


def table(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_bytes())


def test_rebuilt_host_compilers_equal_shipped_ones(rebuilt: Path) -> None:
    ours, shipped = (
        table(rebuilt, "nvcc_compat")["releases"],
        table(DATA, "nvcc_compat")["releases"],
    )
    for label in LABELS:
        assert ours[label] == shipped[label]
    compilers = ours["13.0.2"]["compilers"]
    ranges = {name: a for name, a in compilers.items() if a["status"] == "range"}
    assert {name: (a["min"], a["max"]) for name, a in ranges.items()} == BOUNDS
    assert {name for name, a in compilers.items() if a["status"] == "refused"} == REFUSED


def test_rebuilt_capabilities_equal_shipped_ones(rebuilt: Path) -> None:
    ours, shipped = table(rebuilt, "gpus"), table(DATA, "gpus")
    for label in LABELS:
        assert ours["sources"][label] == shipped["sources"][label]
    newest = {n for n, entry in ours["capabilities"].items() if entry["last_cuda"] is None}
    assert newest == set(KNOWN.split())
    common = ours["capabilities"].keys() & shipped["capabilities"].keys()
    assert len(common) > 20
    for name in common:
        for field in ("family", "base", "variant", "jetson", "products"):
            assert ours["capabilities"][name][field] == shipped["capabilities"][name][field]
