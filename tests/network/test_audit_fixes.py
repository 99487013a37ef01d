"""Commands that audit suggests for a real wheel, run with wheel, patchelf and auditwheel."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.running import ask_index, cudaredist

pytestmark = pytest.mark.network

PIP = [sys.executable, "-m", "pip"]
WHEEL = "faiss_gpu_cu12-1.14.1.post1"
USER = "faiss/_swigfaiss.so"
"""A file that needs libraries of the CUDA runtime and, by a library of the wheel, cuBLAS."""
_find_libraries = re.compile(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE).findall


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel in `dist`, the tools in `tools`, and the CUDA runtime in `site`."""
    folder = tmp_path_factory.mktemp("fixes")
    project, _, version = WHEEL.partition("-")
    platform = ["--only-binary", ":all:", "--python-version", "3.11"]
    platform += ["--platform", "manylinux2014_x86_64", "--no-deps"]
    ask_index(*PIP, "download", "-q", *platform, "-d", folder / "dist", f"{project}=={version}")
    ask_index(*PIP, "install", "-q", "-t", folder / "tools", "auditwheel", "patchelf", "wheel")
    runtime = "nvidia-cuda-runtime-cu12==12.9.79"
    ask_index(*PIP, "install", "-q", *platform, "-t", folder / "site", runtime)
    return folder


def run_in(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell with the tools."""
    tools = folder / "tools"
    paths = {"PATH": f"{tools / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(tools)}
    shell = ["sh", "-c", command]
    environment = os.environ | paths
    return subprocess.run(
        shell, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


def libraries_after(folder: Path, wheel: Path, site: Path) -> dict[str, str]:
    """Install a wheel, and return the files that the loader finds, by library."""
    ask_index(*PIP, "install", "-q", "--no-deps", "--upgrade", "--target", site, wheel)
    return dict(_find_libraries(run_in(folder, f"ldd {site / USER}").stdout))


def run_path_warnings(folder: Path, wheel: Path) -> list[Any]:
    answer = json.loads(cudaredist(folder, "audit", wheel, "--json"))
    return [one for one in answer["findings"] if one["kind"] == "run-path"]


def test_run_path_hint_makes_a_wheel_that_finds_its_libraries(folder: Path) -> None:
    (wheel,) = (folder / "dist").glob("*.whl")
    before = libraries_after(folder, wheel, folder / "site")
    assert before["libcudart.so.12"] == "not found"
    (warning,) = run_path_warnings(folder, wheel)
    done = run_in(folder, warning["hint"])
    assert done.returncode == 0, done.stderr
    (fixed,) = (folder / "fixed").glob("*.whl")
    after = libraries_after(folder, fixed, folder / "site")
    runtime = "nvidia/cuda_runtime/lib/libcudart.so.12"
    assert Path(after["libcudart.so.12"]).resolve() == (folder / "site" / runtime).resolve()
    assert run_path_warnings(folder, fixed) == []


def test_auditwheel_repairs_with_the_excluded_libraries(folder: Path) -> None:
    (wheel,) = (folder / "dist").glob("*.whl")
    refused = run_in(folder, f"{sys.executable} -m auditwheel repair -w refused {wheel}")
    assert 'required library "libc' in refused.stderr
    options = cudaredist(folder, "audit", wheel, "--format", "auditwheel-exclude").split()
    done = run_in(
        folder, f"{sys.executable} -m auditwheel repair -w repaired {' '.join(options)} {wheel}"
    )
    assert done.returncode == 0, done.stderr
    (repaired,) = (folder / "repaired").glob("*.whl")
    with zipfile.ZipFile(repaired) as archive:
        assert not [name for name in archive.namelist() if "libcu" in name.rpartition("/")[2]]
    after = libraries_after(folder, repaired, folder / "repaired-site")
    missing = {name for name, path in after.items() if path == "not found"}
    assert missing == set(options) - {"--exclude"} > {"libcublas.so.12"}
