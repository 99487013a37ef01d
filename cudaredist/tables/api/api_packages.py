"""The packages and headers of the tables of APIs."""

from collections.abc import Mapping
from pathlib import PurePosixPath

PLATFORM = "linux-x86_64"
"""The platform of the headers. Those of others differ in few names."""

API_PACKAGES = frozenset(
    {
        "cuda_cccl",
        "cuda_cudart",
        "cuda_cupti",
        "cuda_nvml_dev",
        "cuda_nvrtc",
        "cuda_nvtx",
        "cuda_profiler_api",
        "cudensitymat",
        "cudnn",
        "cupauliprop",
        "custabilizer",
        "custatevec",
        "cutensornet",
        "libcublas",
        "libcublasmp",
        "libcudss",
        "libcufft",
        "libcufftmp",
        "libcufile",
        "libcurand",
        "libcusolver",
        "libcusolvermp",
        "libcusparse",
        "libcusparse_lt",
        "libcutensor",
        "libnpp",
        "libnvfatbin",
        "libnvjitlink",
        "libnvjpeg",
        "libnvjpeg_2k",
        "libnvptxcompiler",
        "libnvshmem",
        "libnvtiff",
        "libnvvm",
        "nccl",
        "nvcomp",
    }
)
"""The packages with a table."""

INCLUDED_PACKAGES = frozenset(
    {
        "cuda_cccl",
        "cuda_crt",
        "cuda_cudart",
        "cuda_nvcc",
        "cuda_opencl",
        "cuda_profiler_api",
        "libcublas",
        "libcufft",
        "libcurand",
        "libcusolver",
        "libcusparse",
    }
)
"""The packages of CUDA whose headers others include."""

_LISTED = frozenset({"cuda_cccl"})
"""Packages of C++ templates. Their headers have a path and no names."""
_PRIVATE_FOLDERS = frozenset(
    {
        "crt",
        "detail",
        "details",
        "doca_gpunetio",
        "gpunetio",
        "impl",
        "internal",
        "non_abi",
        "nvtxDetail",
    }
)
_OTHERS = frozenset({"CL", "Openacc", "Openmp"})
"""Folders of samples, and of the headers of OpenCL."""
_SUFFIXES = frozenset({".cuh", ".h", ".hpp"})


def is_read(package: str, path: str) -> bool:
    """Check if the content of a header is necessary. The others only have a path."""
    return package not in _LISTED or "nv" in PurePosixPath(path).parts


def public_headers(package: str, headers: Mapping[str, bytes]) -> list[str]:
    """Return the headers whose names are part of a package's API, sorted.

    Of `cuda_fp16.h` and `cuda_fp16.hpp`, only the first is public, and of equal headers such as
    `cudnn.h` and `cudnn_v9.h` the one with the shortest name.
    """
    shortest: dict[bytes, str] = {}
    for path in sorted(headers, key=lambda path: (len(path), path)):
        is_part = path.endswith(".hpp") and f"{path.removesuffix('.hpp')}.h" in headers
        if _is_public(package, path) and not is_part:
            shortest.setdefault(headers[path], path)
    return sorted(shortest.values())


def _is_public(package: str, path: str) -> bool:
    header = PurePosixPath(path)
    folders = frozenset(header.parts[:-1])
    return (
        package not in _LISTED
        and header.suffix in _SUFFIXES
        and not folders & (_PRIVATE_FOLDERS | _OTHERS)
        and not header.name.startswith(("_", "generated_"))
        and not any(folder.startswith("_") for folder in folders)
    )
