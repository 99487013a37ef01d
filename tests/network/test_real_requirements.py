"""audit of the requirements that real wheels declare."""

import json
import os
import re
import sys
import zipfile
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from support.running import ask_index, cudaredist

pytestmark = pytest.mark.network


class Expected(NamedTuple):
    """The answers about a wheel."""

    unnamed: AbstractSet[str] = frozenset()
    """Declared projects whose libraries no file needs by name."""
    undeclared: AbstractSet[str] = frozenset()
    """Needed libraries that it does not declare."""


WHEELS = {
    "xgboost==3.2.0": Expected({"nvidia-nccl-cu12"}),
    "libkvikio-cu13==26.10.0": Expected({"cuda-toolkit"}),
    "nvidia-cudnn-cu12==9.28.0.42": Expected({"nvidia-cublas-cu12"}),
    "libraft-cu12==26.10.0": Expected(),
    "libcuvs-cu13==26.10.0": Expected(),
    "nvidia-cudss-cu12==1.0.0.35": Expected(),
    "nvidia-cublasmp-cu12==0.10.0.3695": Expected(),
    "nvidia-cusolver-cu12==11.7.5.82": Expected(),
    "cuequivariance-ops-cu12==0.13.0": Expected(undeclared={"libnvrtc.so.12"}),
    "custatevec-cu12==1.15.0": Expected(undeclared={"libcublas.so.12", "libcublasLt.so.12"}),
    "cutensornet-cu12==2.14.0": Expected(undeclared={"libcublas.so.12", "libcusolver.so.11"}),
    "torchaudio==2.11.0": Expected(undeclared={"libcudart.so.13"}),
}
CHOSEN = ("xgboost", "libkvikio", "cuequivariance", "custatevec")
"""Wheels for each run. By hand, `AUDITED_WHEELS=all` reads all."""
PINS = [
    pin for pin in WHEELS if pin.startswith(CHOSEN) or os.environ.get("AUDITED_WHEELS") == "all"
]
OTHERS = {"nvidia-ml-py"}
"""Projects of NVIDIA without libraries of CUDA."""


@pytest.mark.parametrize("pin", PINS)
def test_declared_requirements_equal_the_metadata(pin: str, tmp_path: Path) -> None:
    options = ["-q", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11"]
    ask_index(sys.executable, "-m", "pip", "download", *options, "-d", tmp_path, pin)
    (wheel,) = tmp_path.glob("*.whl")
    answer = json.loads(cudaredist(tmp_path, "audit", wheel, "--json", code=None))
    declared = answer["declared"]
    assert {Requirement(one["requirement"]).name for one in declared} == metadata(wheel)
    unnamed = {one["requirement"] for one in declared if not one["sonames"]}
    assert {Requirement(text).name for text in unnamed} == WHEELS[pin].unnamed
    findings = [one for one in answer["findings"] if one["exit_code"]]
    assert {one["kind"] for one in findings} <= {"undeclared"}
    sonames = {re.findall(r"lib\w+\.so\.\d+", one["message"])[0] for one in findings}
    assert sonames == WHEELS[pin].undeclared
    text = cudaredist(tmp_path, "audit", wheel, "--format", "requirements", code=None)
    assert all(f"{requirement}  # declared" in text for requirement in unnamed)
    assert not unnamed or "No file needs a wheel of NVIDIA" not in text


def metadata(wheel: Path) -> set[str]:
    """Return the projects with CUDA libraries in the requirements of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    lines = re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)
    names = {Requirement(line).name for line in lines}
    return {n for n in names if n.startswith(("nvidia-", "cuda-toolkit", "cutensor-"))} - OTHERS
