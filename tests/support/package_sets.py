"""A small package set with every status, both kinds of names and unusual archives."""

import json
from collections.abc import Mapping
from typing import Any

from cudaredist.formats.packageset import PackageSet, SetLicense, SetMeta
from cudaredist.formats.tables import CapabilityEntry, Gpus, NvccCompat
from cudaredist.nixpkgs.releases import Release
from cudaredist.nixpkgs.tables import SharedTables
from support.factory import archive_path, blank, package_set, set_archive, set_package

NVIDIA = "https://developer.download.nvidia.com/compute"
PLATFORM = "linux-x86_64"
HOSTILE = "a\"b'c`touch pwned`$(touch pwned)${HOME}%d\\n#;]]=]\n-- */ é ★"
"""A text with special characters of every output language."""

LICENSE = blank(
    SetLicense,
    manifest="CUDA Toolkit",
    short_name="CUDA EULA",
    redistributable=True,
    source="policy/licenses.json",
)
META = blank(SetMeta, homepage="https://developer.nvidia.com/cuda-toolkit")
GLIBC, DRIVER, JETSON, DISTRIBUTION = (
    {"external": owner} for owner in ("glibc", "driver", "jetson", "distribution")
)


def archive(path: str, base: str = f"{NVIDIA}/cuda/redist", **changes: Any) -> dict[str, Any]:
    """Return the archive at a path, with the hashes of the path."""
    top, _, suffix = path.rpartition("/")[2].partition("-archive.")
    usual: dict[str, Any] = {"url": f"{base}/{path}"}
    if suffix:
        usual |= {"format": suffix, "strip_prefix": f"{top}-archive"}
    return set_archive(path, **{**usual, **changes})


def package(name: str, version: str | None = "13.3.33", **changes: Any) -> dict[str, Any]:
    """Return an available package of the toolkit. A change to None is kept."""
    usual: dict[str, Any] = {
        "release": "13.3.1",
        "version": version,
        "description": f"The {name} of CUDA",
        "archive": archive(archive_path(name, PLATFORM, str(version))),
        "contents": {"out": {"files": 3, "bytes": 4000}},
        "license": LICENSE | {"url": f"{NVIDIA}/cuda/redist/{name}/LICENSE.txt"},
        "meta": META,
    }
    return set_package(name, **{**usual, **changes})


def refused(name: str, status: str, code: str, text: str, **changes: Any) -> dict[str, Any]:
    """Return an unavailable package."""
    reason = {"code": code, "text": text, "subject": name, "source": "policy"}
    usual: dict[str, Any] = {"archive": None, "version": None, "release": None, "contents": {}}
    return package(name, **{**usual, "status": status, "reasons": [reason], **changes})


def need(soname: str, satisfied_by: Mapping[str, str], kind: str = "needed") -> dict[str, Any]:
    """Return a library that a package needs."""
    return {
        "soname": soname,
        "by_path": "lib/libx.so",
        "output": "lib",
        "satisfied_by": satisfied_by,
        "kind": kind,
    }


def packages() -> dict[str, dict[str, Any]]:
    """Return the packages of the example by attribute."""
    split = ["out", "dev", "include", "lib", "static"]
    contents = {output: {"files": 2, "bytes": 5000} for output in split}
    cudnn = f"{NVIDIA}/cudnn/redist"
    cudnn_license = {
        **LICENSE,
        "manifest": "cudnn",
        "short_name": "cuDNN EULA",
        "redistributable": None,
        "url": f"{cudnn}/cudnn/LICENSE.txt",
    }
    cudnn_path = "cudnn/linux-x86_64/cudnn-linux-x86_64-{}_cuda13-archive.tar.xz"

    def cudnn_package(release: str, version: str) -> dict[str, Any]:
        return package(
            "cudnn",
            version,
            redist="cudnn",
            release=release,
            archive=archive(cudnn_path.format(version), cudnn, cuda_variant="cuda13"),
            license=cudnn_license,
            outputs=split,
            contents=contents,
            needs=[need("libcuda.so.1", DRIVER, "dlopen"), need("libz.so.1", DISTRIBUTION)],
            depends=[
                {"attr": "libcublas", "output": "lib", "kind": kind}
                for kind in ("dlopen", "runtime")
            ],
        )

    mit = {
        **LICENSE,
        "spdx": "MIT",
        "short_name": "MIT",
        "free": True,
        "url": f"{NVIDIA}/cuda/redist/x/LICENSE.txt",
    }
    nvcc_meta = {**META, "main_program": "nvcc", "changelog": f"{NVIDIA}/notes"}
    cccl = package("cccl", "13.3.4.3.1", license=mit, collapsed="header-only")
    entries = [
        cccl,
        {**cccl, "attr": "cuda_cccl", "alias_of": "cccl"},
        package("cuda_crt"),
        package(
            "cuda_cudart",
            depends=[
                {"attr": name, "output": "out", "kind": "header"} for name in ("cccl", "cuda_crt")
            ],
            needs=[need("libc.so.6", GLIBC)],
        ),
        package("cuda_gdb", contents={}),
        package("cuda_nvcc", meta=nvcc_meta),
        package(
            "libcublas",
            "13.3.0.5",
            outputs=split,
            contents=contents,
            needs=[
                need("libcuda.so.1", DRIVER),
                need("libnvrm_gpu.so", JETSON),
                need("libc.so.6", GLIBC),
                need("libcublasLt.so.13", {"attr": "libcublas", "output": "lib"}),
            ],
            depends=[
                *(
                    {"attr": "cuda_cudart", "output": "out", "kind": kind}
                    for kind in ("header", "runtime")
                ),
                {"attr": "libnvvm", "output": "out", "kind": "dlopen", "is_optional": True},
            ],
        ),
        package("libnvvm"),
        package(
            "libnvvm_samples",
            archive=archive("libnvvm_samples/source/libnvvm_samples-source-13.3.33-archive.tar.xz")
            | {"platform": "source"},
        ),
        cudnn_package("9.20.0", "9.20.0.48"),
        {**cudnn_package("9.13.0", "9.13.0.50"), "attr": "cudnn_9_13"},
        package(
            "acme_kernels",
            "1.2",
            redist="acme",
            release="1.2.0",
            archive=archive("acme/acme_kernels-1.2.tar.gz", "https://acme.example/files")
            | {"md5": None, "size": None, "format": "tar.gz"},
            license={
                **mit,
                "spdx": "Apache-2.0 WITH LLVM-exception",
                "url": "https://acme.example/licence",
                "redistributable": False,
            },
            meta={**META, "homepage": None},
            overlay=["manifest"],
        ),
        refused("cuda_nvprof", "unsupported", "not-in-manifest", "cuda 13.3.1 has no cuda_nvprof"),
        refused(
            "libcusolver",
            "broken",
            "unresolved-library",
            "lib/libcusolver.so needs libgone.so.1, which has no known provider",
            version="12.1",
            release="13.3.1",
            archive=archive("libcusolver/linux-x86_64/libcusolver-12.1-archive.tar.xz"),
        ),
        refused("mft", "withheld", "withheld-by-policy", "purpose unclear", version="1.0"),
        refused("nsight_vse", "foreign", "other-operating-system", "for windows only"),
    ]
    return {entry["attr"]: entry for entry in entries}


def document(**changes: Any) -> dict[str, Any]:
    """Return the document of the example with changed top-level keys."""
    usual = {
        "packages": packages(),
        "platform": {
            "redist_system": PLATFORM,
            "nix_system": "x86_64-linux",
            "pkgs_cross": "x86_64-multiplatform",
            "elf_machine": 62,
            "jetson": False,
        },
        "capabilities": {
            "requested": ["9.0", "10.0"],
            "supported": ["9.0", "10.0"],
            "default": ["9.0"],
            "effective": ["9.0", "10.0"],
            "forward_compat": True,
            "arch_names": ["Blackwell", "Hopper"],
            "real_arches": ["sm_90", "sm_100"],
            "virtual_arches": ["compute_90", "compute_100"],
            "arches": ["sm_90", "sm_100", "compute_100"],
            "gencode": ["-gencode=arch=compute_90,code=sm_90"],
            "gencode_string": "-gencode=arch=compute_90,code=sm_90",
            "cmake_cuda_architectures": "90;100",
            "cmake_architectures_real_virtual": "90-real;100",
            "torch_cuda_arch_list": "9.0;10.0+PTX",
        },
        "host_compiler": {
            "gcc": {"min": 6, "max": 15, "default": 16, "selected": 15, "uses_default": False},
            "clang": {"min": 7, "max": None},
            "msvc": None,
            "cxx_runtime": "default",
        },
        "external": {
            "libz.so.1": {"owner": "distribution", "provider": "zlib", "needed_by": ["cudnn"]}
        },
        "redists": {"cuda": {"release": "13.3.1", "mode": "pinned", "newer_rejected": []}},
    }
    values = {**usual, **changes}
    return package_set(values.pop("packages"), **values)


def example_set(**changes: Any) -> PackageSet:
    """Return the example as a package set."""
    return PackageSet.model_validate_json(json.dumps(document(**changes)))


def wheel_set() -> PackageSet:
    """Return a set of the wheels channel, without addresses."""
    path = "{0}/{0}-13.3.33-py3-none-manylinux_2_27_x86_64.whl"
    wheel = {"url": None, "md5": None, "size": None, "format": "whl", "strip_prefix": None}
    entries = {
        name: package(name, archive=archive(path.format(f"nvidia-{name}")) | wheel)
        for name in ("cuda_cudart", "libcublas")
    }
    return example_set(channel="wheels", packages=entries)


def hostile_set() -> PackageSet:
    """Return the example with hostile texts."""
    entries = {
        f"{attr}{HOSTILE}" if attr in {"cuda_gdb", "mft"} else attr: {
            **entry,
            "pname": f"{entry['pname']}{HOSTILE}",
            "version": entry["version"] and f"{entry['version']}{HOSTILE}",
            "description": HOSTILE,
            "license": {**entry["license"], "short_name": HOSTILE, "manifest": HOSTILE},
            "archive": entry["archive"] and {**entry["archive"], "strip_prefix": HOSTILE},
            "reasons": [{**reason, "text": HOSTILE} for reason in entry["reasons"]],
        }
        for attr, entry in packages().items()
    }
    flags = document()["capabilities"]
    return example_set(
        packages=entries,
        platform={**document()["platform"], "redist_system": f"linux{HOSTILE}"},
        capabilities={
            **flags,
            "torch_cuda_arch_list": HOSTILE,
            "cmake_architectures_real_virtual": HOSTILE,
        },
    )


def shared_tables() -> SharedTables:
    """Return small tables of compilers and GPUs, with the example's manifest."""
    stated = {"policy": "policy/nvcc.json", "reference": "a guide"}
    bases = {"status": "range", "min_basis": "documented", "max_basis": "documented"}
    compilers = {"gcc": {**bases, "min": 6, "max": 15}, "clang": {**bases, "min": 7, "max": 21}}
    release = {"nvcc": "13.3.73", "source": stated, "compilers": compilers}
    compat = {"schema_version": 1, "releases": {"13.3.1": release}}
    capability = blank(CapabilityEntry, family="Ampere", base="8.7", first_cuda="11.4", jetson=True)
    fact = {"field": "dont_default_after", "value": "13.0", "reason": "old", "reference": "a guide"}
    capabilities = {
        "8.7": {**capability, "products": ["Jetson Orin"], "runs_on": ["8.7", "9.0"]},
        "9.0": {
            **capability,
            "family": "Hopper",
            "base": "9.0",
            "first_cuda": "11.8",
            "jetson": False,
            "last_cuda": "13.3",
            "dont_default_after": "13.0",
            "policy": [fact],
        },
        "9.0a": {**capability, "family": "Hopper", "base": "9.0", "variant": "a", "jetson": False},
    }
    gpus = {"schema_version": 1, "capabilities": capabilities, "sources": {}}
    return SharedTables(
        NvccCompat.model_validate_json(json.dumps(compat)),
        Gpus.model_validate_json(json.dumps(gpus)),
        {Release("cuda", "13.3.1"): b'{"release_label": "13.3.1"}\n'},
    )
