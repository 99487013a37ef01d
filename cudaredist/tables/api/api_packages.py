"""The packages and headers of the tables of APIs."""

from collections.abc import Iterable, Mapping
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

CPP_LIBRARY = "cuda_cccl"
"""The package with libraries of C++ templates: Thrust, CUB and libcu++."""
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
_PRIVATE_FOLDERS_OF_CPP = _PRIVATE_FOLDERS | {"agent", "dispatch", "specializations"}


def is_included(package: str, path: str) -> bool:
    """Check if headers of other packages are parsed with a header.

    Of the C++ library, this is only `nv/target`: all of it would take seconds for each header.
    """
    return package != CPP_LIBRARY or "nv" in PurePosixPath(path).parts


def public_headers(headers: Mapping[str, bytes]) -> list[str]:
    """Return the headers whose names are part of a package's API, sorted.

    Of `cuda_fp16.h` and `cuda_fp16.hpp`, only the first is public, and of equal headers such as
    `cudnn.h` and `cudnn_v9.h` the one with the shortest name.
    """
    shortest: dict[bytes, str] = {}
    for path in sorted(headers, key=lambda path: (len(path), path)):
        is_part = path.endswith(".hpp") and f"{path.removesuffix('.hpp')}.h" in headers
        if _is_public(path) and not is_part:
            shortest.setdefault(headers[path], path)
    return sorted(shortest.values())


def _is_public(path: str) -> bool:
    header = PurePosixPath(path)
    folders = frozenset(header.parts[:-1])
    return (
        header.suffix in _SUFFIXES
        and not folders & (_PRIVATE_FOLDERS | _OTHERS)
        and not header.name.startswith(("_", "generated_"))
        and not any(folder.startswith("_") for folder in folders)
    )


def headers_of_cpp(headers: Iterable[str]) -> dict[str, list[str]]:
    """Map the public headers of the C++ library to the private ones that declare their names.

    The names of `cuda/std/optional` are those of `cuda/std/__optional/`, and the names of
    `thrust/pair.h` are also in `thrust/detail/pair.inl`.
    """
    parts: dict[str, list[str]] = {}
    by_name: dict[str, str] = {}
    private: list[PurePosixPath] = []
    for header in map(PurePosixPath, sorted(headers)):
        if _private_folder(header) < len(header.parts) - 1:
            private.append(header)
        elif header.suffix in _SUFFIXES | {""} and not header.name.startswith("_"):
            parts[str(header)] = []
            by_name[str(header.with_suffix(""))] = str(header)
    for header in private:
        start = _private_folder(header)
        for name in header.with_suffix("").parts[start:]:
            public = "/".join((*header.parts[:start], name.strip("_").removesuffix("_dir")))
            if public in by_name:
                parts[by_name[public]].append(str(header))
                break
    return parts


def _private_folder(header: PurePosixPath) -> int:
    """Return the position of a path's first private folder, or the number of folders."""
    folders = header.parts[:-1]
    private = (
        position
        for position, name in enumerate(folders)
        if name.startswith("_") or name in _PRIVATE_FOLDERS_OF_CPP
    )
    return next(private, len(folders))
