"""A CUDA release to process, and its feature file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support import binaries
from support.releases import Files, Packages
from support.server import FaultServer

FOLDER = "/compute/cuda/redist/"
CUDART: Mapping[str, Files] = {
    "linux-x86_64": {
        "lib/libcudart.so.12.9.79": binaries.elf(
            soname="libcudart.so.12", needed=("libc.so.6",), glibc="2.17"
        ),
        "lib/libcudart.so.12": "libcudart.so.12.9.79",
        "lib/libcudart.so": "libcudart.so.12",
        "lib/libcudart_static.a": binaries.ar({"a.o": b"object"}),
        "include/cuda_runtime.h": b"#pragma once\n",
        "LICENSE": b"CUDA EULA\n",
    },
    "linux-sbsa": {"include/cuda_runtime.h": b"#pragma once\n", "LICENSE": b"CUDA EULA\n"},
    "windows-x86_64": {"bin/x64/cudart64_12.dll": binaries.pe(name="cudart64_12.dll")},
}
CCCL = {
    "linux-x86_64": {"include/cub/cub.cuh": b"// cub\n"},
    "linux-sbsa": {"include/cub/cub.cuh": b"// cub\n"},
}
PACKAGES: Packages = {"cuda_cudart": CUDART, "cuda_cccl": CCCL}
LINUX = f"{FOLDER}cuda_cudart/linux-x86_64/cuda_cudart-linux-x86_64-12.9.1.5-archive.tar.xz"
SBSA = f"{FOLDER}cuda_cudart/linux-sbsa/cuda_cudart-linux-sbsa-12.9.1.5-archive.tar.xz"
FEATURES = Path("data/features/cuda/feature_12.9.1.json")


def features(path: Path = FEATURES) -> Any:
    return json.loads(path.read_bytes())


def entry(package: str, platform: str, path: Path = FEATURES) -> Any:
    archives = features(path)["packages"][package]["archives"]
    return next(archive for archive in archives if archive["platform"] == platform)


def cached(tmp_path: Path, kind: str = "facts") -> list[Path]:
    """Return the cache files of a kind."""
    return [path for path in (tmp_path / "cache" / kind).rglob("*") if path.is_file()]


def archives_read(server: FaultServer) -> int:
    return server.count(".tar.xz") + server.count(".zip")


def withdraw(server: FaultServer, package: str) -> None:
    """Stop serving the archives of a package."""
    for path in [path for path in server.files if package in path]:
        del server.files[path]
