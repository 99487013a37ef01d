"""audit of the environments that pip makes for well-known projects, several gigabytes each.

The expected findings were compared with ldd, with the programs' own messages, and with imports. A
finding about a library in a folder of this machine does not count.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.running import ask_index

pytestmark = [pytest.mark.network, pytest.mark.environments, pytest.mark.timeout(3600)]

PYTHON = "3.12"
PROGRAM = Path(sys.executable).with_name("cudaredist")
BUILTINS = "libnvrtc-builtins.so.13.0, which"
"""NVRTC 13.0 finds its built-in functions only by the run path of its caller, which torch has."""
ONNX = "onnxruntime-gpu==1.31.1"
CUPY = ("libcutensor.so.2 for", "libcutensorMg.so.2 for", "libnccl.so.2 for")
"""The libraries that ldd does not find for two extensions of cupy."""


class Expected(NamedTuple):
    """Parts of the messages of an environment's findings and warnings, in any order."""

    requirements: Sequence[str]
    findings: Sequence[str] = ()
    warnings: Sequence[str] = ()


ENVIRONMENTS = {
    "torch": Expected(["torch==2.12.1"], (), [BUILTINS]),
    "jax": Expected(["jax[cuda12]==0.12.0.1"]),
    "tensorflow": Expected(["tensorflow[and-cuda]==2.21.0"]),
    "cupy": Expected(["cupy-cuda13x[ctk]==14.2.0"], (), CUPY),
    "cupy, cutensor": Expected(
        ["cupy-cuda12x[ctk]==14.2.0", "cutensor-cu12==2.8.1"],
        (),
        [
            "libcudart.so.12 for lib/python3.12/site-packages/cutensor/lib/libcutensorMp.so.2",
            # cuda-pathfinder loads libcutensor.so.2 only.
            "libcutensorMg.so.2 for",
            "libnccl.so.2 for",
        ],
    ),
    "pennylane": Expected(
        ["pennylane-lightning-gpu==0.45.0"],
        (),
        [*["liblightning_gpu_catalyst.so"] * 6, "libnvrtc.so.12, which"],
    ),
    "transformer engine": Expected(
        ["transformer-engine-cu13==2.14.0", "torch==2.12.1"],
        # ctypes does not load the library with the cuBLAS that torch requires.
        ["does not export cublasLtGroupedMatrixLayoutInit_internal"],
        [BUILTINS],
    ),
    "nvmath": Expected(
        ["nvmath-python[cu12]==1.0.0"], (), ["libcudart.so.12 for", "libnccl.so.2 for"]
    ),
    "cudf": Expected(["cudf-cu12==26.10.2"], (), CUPY),
    "nvcomp": Expected(["nvidia-nvcomp-cu12==6.0.0.12"]),
    "nvshmem": Expected(["nvshmem4py-cu12==0.4.1", "nvidia-nvshmem-cu12"]),
    "torch, onnxruntime": Expected(
        ["torch==2.12.1", ONNX],
        (),
        [BUILTINS, "_preload_cuda_deps loads them first", "libnvinfer.so.10"],
    ),
    "vllm": Expected(
        ["torch==2.14.0", "vllm==0.33.0"],
        (),
        [
            BUILTINS,
            "_preload_cuda_deps loads it first",
            "optional for opencv-python-headless",
            # The sizes in the RECORD of this wheel are wrong.
            "RECORD of pynvvideocodec",
        ],
    ),
    "onnxruntime": Expected(
        [ONNX],
        ["libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libcurand.so.10"],
        ["optional for onnxruntime-gpu", "libnvinfer.so.10"],
    ),
}


@pytest.fixture
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Install wheels, and return the report on them."""
    expected: Expected = request.param
    folder = tmp_path / "env"
    site = folder / "lib" / f"python{PYTHON}" / "site-packages"
    site.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"version = {PYTHON}.0\n")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", site, "--no-compile"]
    wheels = ["--python-version", PYTHON, "--only-binary", ":all:"]
    ask_index(*pip, *wheels, *expected.requirements)
    command = [PROGRAM, "audit", folder, "--json", "--cache-dir", tmp_path / "cache"]
    process = subprocess.run(list(map(str, command)), check=False, capture_output=True)
    shutil.rmtree(folder)
    assert process.returncode in {0, 1}, process.stderr
    return json.loads(process.stdout)


def messages(report: Any, *, is_warning: bool) -> list[str]:
    """Return the messages of findings or warnings, without those about this machine."""
    found = (each for each in report["findings"] if (each["exit_code"] == 0) == is_warning)
    return [each["message"] for each in found if " /usr/" not in each["message"]]


def unexpected(texts: Sequence[str], parts: Sequence[str]) -> list[str]:
    """Return the messages that contain no expected part, and the parts that no message contains."""
    more = [text for text in texts if not any(part in text for part in parts)]
    return more + [part for part in parts if not any(part in text for text in texts)]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [(each, each) for each in ENVIRONMENTS.values()],
    indirect=["environment"],
    ids=ENVIRONMENTS,
)
def test_findings_are_those_of_the_environment(environment: Any, expected: Expected) -> None:
    assert unexpected(messages(environment, is_warning=False), expected.findings) == []
    warnings = messages(environment, is_warning=True)
    assert unexpected(warnings, expected.warnings) == []
    assert len(warnings) == len(expected.warnings)
    if ONNX in expected.requirements and expected.findings:
        assert "onnxruntime-gpu[cuda,cudnn]==1.31.1" in environment["environments"][0]["fix"]
        calls = [f for f in environment["findings"] if "onnxruntime.preload_dlls()" in f["message"]]
        assert len(calls) == len(expected.findings)
