"""A small examined data folder with every kind of package, and its package sets."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from cudaredist.commands.site.render_site import site_files
from cudaredist.commands.site.site_data import read_site_data
from cudaredist.formats.packageset import PackageSet
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from support import binaries
from support.releases import Files, Packages, put, release
from support.running import succeed

LINUX = {"linux-x86_64": "x86_64", "linux-sbsa": "aarch64"}
"""The platforms of most packages, with their machines."""
LABEL = "12.9.1"


def library(machine: str, soname: str, *needed: str) -> bytes:
    return binaries.elf(soname=soname, needed=("libc.so.6", *needed), machine=machine)


def _on_linux(files: Mapping[str, tuple[str, ...] | bytes]) -> dict[str, Files]:
    """Return files for both platforms. A tuple is a library: its soname and needed names."""
    return {
        platform: {
            "LICENSE": b"terms\n",
            **{
                path: content if isinstance(content, bytes) else library(machine, *content)
                for path, content in files.items()
            },
        }
        for platform, machine in LINUX.items()
    }


PACKAGES: Packages = {
    "cuda_cccl": _on_linux({"include/cub/cub.cuh": b"// cub\n"}),
    "cuda_cudart": _on_linux(
        {
            "include/cuda_runtime.h": b"#pragma once\n",
            "lib/libcudart.so.12": ("libcudart.so.12",),
            "lib/libcudart_static.a": binaries.ar({"a.o": b"object"}),
            "lib/stubs/libcuda.so": ("libcuda.so.1",),
        }
    ),
    "cuda_nvcc": _on_linux({"bin/nvcc": b"a program", "include/fatbinary.h": b"//\n"}),
    "libcublas": _on_linux(
        {
            "include/cublas_v2.h": b"// cublas\n",
            "lib/libcublas.so.12": ("libcublas.so.12", "libcublasLt.so.12"),
            "lib/libcublasLt.so.12": ("libcublasLt.so.12", "libcuda.so.1"),
            "lib/libcublas_static.a": binaries.ar({"b.o": b"object"}),
            "lib/stubs/libcublas.so": ("libcublas.so.12",),
        }
    ),
    "libcusolver": {
        "linux-x86_64": {
            "LICENSE": b"terms\n",
            "include/cusolver.h": b"// solver\n",
            "lib/libcusolver.so.11": library("x86_64", "libcusolver.so.11", "libcublas.so.12"),
        }
    },
    "mft": _on_linux({"bin/mft": b"a program"}),
    "nsight_vse": {"windows-x86_64": {"nsight.exe": b"a program"}},
}
"""Packages of a CUDA release: required ones, libraries, a withheld one, a Windows one."""


def cudnn(label: str) -> Packages:
    soname = f"libcudnn.so.{label.partition('.')[0]}"
    files = _on_linux(
        {f"lib/{soname}": (soname,), "include/cudnn.h": f"// cuDNN {label}\n".encode()}
    )
    return {"cudnn": {f"{platform}/cuda12": content for platform, content in files.items()}}


def make_data(root: Path) -> None:
    """Write manifests to `data/` and archives to `source/`, and examine the archives.

    The facts are stored in `cache/`.
    """
    products = {
        "cuda": [release(LABEL, PACKAGES)],
        "cudnn": [release(label, cudnn(label), product="cudnn") for label in ("8.9.7", "9.10.2")],
    }
    for redist, releases in products.items():
        for files in releases:
            put(root / "source/compute" / redist / "redist", files)
            manifests = {name: data for name, data in files.items() if "/" not in name}
            put(root / "data/manifests" / redist, manifests)
    succeed("process-manifests", "--base-url", root / "source", *_places(root))


def make_sets(root: Path, *options: object) -> dict[str, PackageSet]:
    """Build the sets of a data folder into `sets/` and return them by platform."""
    sets = {}
    for platform in LINUX:
        path = root / "sets" / platform / f"cuda-{LABEL}.json"
        places = ("--data-dir", root / "data", "--output", path, "--quiet")
        succeed("build", "--cuda", LABEL, "--platform", platform, *places, *options)
        sets[platform] = PackageSet.model_validate_json(path.read_bytes())
    return sets


def site_contents(store: Store, *sets: PackageSet, other: Store | None = None) -> dict[str, bytes]:
    """Return the files of the site of a data folder and package sets.

    `other` is the data of the other channel.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = read_site_data(Index(store, Cache(Path(folder))), sets, other=other)
    return {path: content() for path, content in site_files(data).items()}


def _places(root: Path) -> tuple[object, ...]:
    return ("--data-dir", root / "data", "--cache-dir", root / "cache", "--quiet")
