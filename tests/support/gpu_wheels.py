"""A data folder with releases of CUDA as wheels, their symbols, and wheels with GPU code."""

from collections.abc import Mapping
from pathlib import Path

from support import binaries
from support.releases import put, release
from support.running import succeed
from support.symbol_files import Symbol, elf_with_symbols
from support.wheels import wheel

LABELS = ("12.4.1", "12.9.1")
NEWER = "cublasLtNewer"
"""A symbol that only the newer release exports."""


def make_gpu_data(root: Path) -> Path:
    """Put manifests, features and symbols of two small releases into `data/`; return it."""
    for label in LABELS:
        names = ["cublasLtCreate", *([NEWER] if label == LABELS[1] else [])]
        symbols = [Symbol(name, version="libcublasLt.so.12") for name in names]
        lt = elf_with_symbols(symbols, soname="libcublasLt.so.12", defines=["libcublasLt.so.12"])
        files = release(
            label,
            {
                "libcublas": {"linux-x86_64": {"lib/libcublasLt.so.12": lt}},
                "cuda_cudart": {
                    "linux-x86_64": {
                        "lib/libcudart.so.12": elf_with_symbols(
                            [Symbol("cudaMalloc")], soname="libcudart.so.12"
                        )
                    }
                },
            },
        )
        put(root / "source/compute/cuda/redist", files)
        manifests = {name: data for name, data in files.items() if "/" not in name}
        put(root / "data/manifests/cuda", manifests)
    places = ("--data-dir", root / "data", "--cache-dir", root / "cache", "--quiet")
    succeed("process-manifests", "--base-url", root / "source", *places)
    succeed("update-symbols", "--base-url", root / "source", *places)
    return root / "data"


def extension(*symbols: str) -> bytes:
    """Return a library that takes symbols from cuBLASLt."""
    library = "libcublasLt.so.12"
    return elf_with_symbols(
        [Symbol(name, is_defined=False, version=library) for name in symbols],
        needs={library: [library]},
        soname="",
        replaced={1: 2},  # DT_NEEDED, with the place of the library's name
    )


def kernels(*images: binaries.Image, needed: tuple[str, ...] = (), glibc: str = "2.17") -> bytes:
    """Return a library with device code."""
    code = binaries.fatbin(images, payload=bytes(4096))
    return binaries.elf(needed=needed, glibc=glibc, sections={".nv_fatbin": code})


def put_gpu_wheel(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Put a wheel with an extension into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "example-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    path.write_bytes(wheel("example", "1.0", files))
    return path
