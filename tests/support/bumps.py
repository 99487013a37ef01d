"""Two small releases of five redistributables for bump."""

import functools
from typing import Any

from support.headers import host_config
from support.ptxas import PROFILES_12_9, ptxas
from support.releases import Packages, release
from support.server import FaultServer
from support.small_sets import LINUX, cudnn, library

FIVE = {
    "cuda": ("12.9.0", "12.9.1"),
    "cudnn": ("9.10.1", "9.10.2"),
    "cusparselt": ("0.7.0", "0.7.1"),
    "cutensor": ("2.2.0", "2.3.0"),
    "nccl": ("2.27.3-cuda12.9", "2.27.5-cuda12.9"),
}
"""The local and the newest release of each redistributable."""
TWO = ("cudnn", "nccl")
PACKAGES = {"cusparselt": "libcusparse_lt", "cutensor": "libcutensor", "nccl": "nccl"}


def cuda(
    label: str, *, gcc: int = 14, icc: str = "list", profiles: object = PROFILES_12_9
) -> Packages:
    """Return a CUDA release for sets and tables."""
    soname = f"libcudart.so.{label.partition('.')[0]}"
    packages: dict[str, Any] = {
        "cuda_nvcc": {
            platform: {
                "include/crt/host_config.h": host_config(gcc=gcc, clang=19, icc=icc),
                "bin/ptxas": ptxas(profiles),  # type: ignore[arg-type]
                "bin/nvcc": f"nvcc {label}".encode(),
            }
            for platform in LINUX
        },
        "cuda_cudart": {
            platform: {
                "include/cuda_runtime.h": f"// {label}\n".encode(),
                f"lib/{soname}": library(machine, soname),
            }
            for platform, machine in LINUX.items()
        },
    }
    if label != "12.9.0":
        packages["cuda_profiler_api"] = {
            platform: {"include/cudaProfiler.h": b"//\n"} for platform in LINUX
        }
    if not label.startswith("12."):
        packages["libnvvm"] = {platform: {"nvvm/bin/cicc": b"cicc"} for platform in LINUX}
        packages["cuda_crt"] = {platform: {"include/crt/a.h": b"//\n"} for platform in LINUX}
    return packages


@functools.cache
def product(redist: str, label: str) -> dict[str, bytes]:
    if redist == "cuda":
        return release(label, cuda(label))
    if redist == "cudnn":
        return release(label, cudnn(label), product="cudnn")
    package = PACKAGES[redist]
    files = {
        platform: {f"lib/{package}.so.1": library(machine, f"{package}.so.1"), "a": label.encode()}
        for platform, machine in LINUX.items()
    }
    return release(label, {package: files}, product=redist)


def publish(server: FaultServer, redist: str, *labels: str) -> None:
    """Serve and list only given releases of a redistributable."""
    server.add_releases(redist, *(product(redist, label) for label in labels))
