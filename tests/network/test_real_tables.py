"""Both tables from NVIDIA's own wheels of one release, against what was found by other means."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

LABEL = "13.0.2"
# By hand from the header, and `gcc -E -undef` on it; capabilities as `ptxas --help` lists them.
BOUNDS = {
    "gcc": (6, 15),
    "clang": (7, 20),
    "msvc": (1920, 1949),
    "grace-clang": (16, 20),
    "horizon-clang": (3, 20),
}
REFUSED = {"icc", "icx"}
KNOWN = "7.5 8.0 8.6 8.7 8.8 8.9 9.0 9.0a 10.0 10.0a 10.0f 10.3 10.3a 10.3f 11.0 11.0a 11.0f "
KNOWN += "12.0 12.0a 12.0f 12.1 12.1a 12.1f"


def cudaredist(folder: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cudaredist", *map(str, arguments), "--quiet"],
        cwd=folder,
        env=os.environ | {"CUDAREDIST_CACHE_DIR": str(folder / "cache")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tables_of_a_real_release(tmp_path: Path) -> None:
    wheels = ("--channel", "wheels", "--version", LABEL)
    cudaredist(tmp_path, "download-manifests", "--redist", "cuda", *wheels)
    for command in ("update-nvcc-compat", "update-gpus"):
        first = json.loads(cudaredist(tmp_path, command, *wheels, "--json"))
        assert first["archives_read"] == 1
        assert first["findings"] == []
        again = json.loads(cudaredist(tmp_path, command, *wheels, "--check", "--json"))
        assert (again["status"], again["archives_read"]) == ("unchanged", 0)

    release = json.loads((tmp_path / "data/nvcc_compat.json").read_bytes())["releases"][LABEL]
    assert release["nvcc"] == "13.0.88"
    assert release["source"]["package"] == "cuda_crt"
    ranges = {name: a for name, a in release["compilers"].items() if a["status"] == "range"}
    assert {name: (a["min"], a["max"]) for name, a in ranges.items()} == BOUNDS
    refused = {name for name, a in release["compilers"].items() if a["status"] == "refused"}
    assert refused == REFUSED

    gpus = json.loads((tmp_path / "data/gpus.json").read_bytes())
    assert gpus["capabilities"].keys() == set(KNOWN.split())
    assert gpus["capabilities"]["10.3f"]["family"] == "Blackwell"
