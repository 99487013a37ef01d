"""Tests of dependencies between packages through included headers."""

from pathlib import Path

import pytest
from support.set_inputs import (
    LINUX,
    Release,
    build,
    cuda,
    features_of,
    fixup,
    put_data,
    set_data_of,
    valid,
    with_headers,
)

from cudaredist.formats.features import WholeFeatures
from cudaredist.formats.packageset import PackageSet
from cudaredist.primitives import KNOWN_PLATFORMS, Platform
from cudaredist.sets.header_conditions import holds
from cudaredist.sets.load import read_set_data


def headers(**files: dict[str, str]) -> WholeFeatures:
    """Return an archive with headers. For example, `a__b` means include/a/b.h."""
    return with_headers({f"include/{name.replace('__', '/')}.h": files[name] for name in files})


def set_of(platform: str = LINUX, **features: WholeFeatures) -> PackageSet:
    known = {
        "cuda_nvcc": features_of({"bin/nvcc": None}),
        "cuda_cudart": headers(cuda_runtime={}),
        "cuda_cccl": headers(cccl__nv__target={}),
        **features,
    }
    packages = {name: [platform] for name in known}
    data = set_data_of(cuda(platforms=(platform,), features=known, packages=packages))
    return valid(build(data, platform=platform))


def depends(package_set: PackageSet, name: str) -> dict[str, tuple[str, str | None, str | None]]:
    return {
        entry.attr: (entry.output, entry.header, entry.included_by)
        for entry in package_set.packages[name].depends
        if entry.kind == "header"
    }


def test_package_depends_on_packages_of_included_headers() -> None:
    package_set = set_of(
        libx=headers(x={"cuda_runtime.h": "", "nv/target.h": "", "GL/gl.h": "", "y.h": ""}),
        liby=headers(y={"x.h": "", "cuda_runtime.h": "defined(MAYBE)"}),
    )
    assert depends(package_set, "libx") == {
        "cuda_cccl": ("out", "nv/target.h", "include/x.h"),
        "cuda_cudart": ("out", "cuda_runtime.h", "include/x.h"),
        "liby": ("include", "y.h", "include/x.h"),
    }
    # Two packages may include each other's headers. An include with a condition is optional.
    assert depends(package_set, "liby") == {"libx": ("include", "x.h", "include/y.h")}


def test_quoted_header_in_same_folder_of_other_package_is_found() -> None:
    package_set = set_of(cuda_crt=headers(crt__a={}), libx=headers(crt__x={"a.h": ""}))
    assert depends(package_set, "libx") == {"cuda_crt": ("out", "a.h", "include/crt/x.h")}


def test_header_of_unavailable_package_is_a_finding() -> None:
    features = {
        "cuda_nvcc": headers(a={}),
        "cuda_cudart": headers(b={}),
        "libx": headers(x={"y.h": ""}),
        "liby": headers(y={}),
    }
    data = set_data_of(
        cuda(platforms=(LINUX,), packages={x: [LINUX] for x in features}, features=features),
        policies=fixup("liby", broken="r"),
    )
    package_set = build(data)
    assert depends(package_set, "libx") == {}
    assert package_set.packages["libx"].status == "available"
    assert [(d.subject, d.text) for d in package_set.diagnostics if "liby" in d.text] == [
        ("libx", "include/x.h includes y.h, which is only in liby")
    ]


def test_only_additional_versions_use_headers_of_additional_versions() -> None:
    """They are never installed next to the packages that use the chosen version."""

    def cudnn(label: str, **files: dict[str, str]) -> Release:
        return Release("cudnn", label, {"cudnn": [LINUX]}, {"cudnn": headers(**files)})

    known = {
        "cuda_nvcc": headers(a={}),
        "cuda_cudart": headers(b={}),
        "libx": headers(x={"old.h": ""}),
    }
    data = set_data_of(
        cuda(platforms=(LINUX,), features=known, packages={name: [LINUX] for name in known}),
        cudnn("8.9.7", old={"x.h": ""}),
        cudnn("9.1.0", new={"x.h": ""}),
    )
    package_set = valid(build(data, also=(("cudnn", "8.9.7"),)))
    assert depends(package_set, "libx") == {}
    assert set(depends(package_set, "cudnn_8_9")) == {"libx"}


def test_headers_are_read_from_feature_files(tmp_path: Path) -> None:
    known = {
        "cuda_nvcc": headers(a={}),
        "cuda_cudart": headers(b={}),
        "libx": headers(x={"b.h": ""}),
    }
    packages = {name: [LINUX] for name in known}
    store = put_data(tmp_path, cuda(platforms=(LINUX,), features=known, packages=packages))
    package_set = build(read_set_data(store))
    assert depends(package_set, "libx") == {"cuda_cudart": ("out", "b.h", "include/x.h")}


@pytest.mark.parametrize(
    ("condition", "systems"),
    [
        ("", "linux windows"),
        ("defined(__cplusplus)", "linux windows"),
        ("__cplusplus >= 201103L", "linux windows"),
        ("defined(__CUDACC__)", "linux windows"),
        ("!defined(__CUDACC__)", "linux windows"),
        ("defined __CUDACC__ && !defined(__CUDACC_RTC__)", "linux windows"),
        ("defined(__CUDACC_RTC__)", ""),
        ("defined(_WIN32)", "windows"),
        ("!defined(_WIN32) && !defined(__ANDROID__)", "linux"),
        ("defined(__GNUC__) || defined(_MSC_VER)", "linux windows"),
        ("defined(OTHER)", ""),
        ("!defined(OTHER)", "linux windows"),
        ("OTHER > 3", ""),
        ("0", ""),
        ("__has_include(<a.h>)", ""),
        ("!OTHER(NVHPC)", ""),
        ("defined(__cplusplus) && defin…", ""),
        ("1 / 0", ""),
    ],
)
def test_include_conditions_depend_on_system(condition: str, systems: str) -> None:
    true = [name for name in ("linux", "windows") if holds(condition, Platform(f"{name}-x86_64"))]
    assert true == systems.split()


@pytest.mark.parametrize(
    ("condition", "platforms"),
    [
        ("defined(__x86_64__)", "linux-x86_64"),
        ("defined(__aarch64__)", "linux-aarch64 linux-sbsa"),
        ("defined(__powerpc64__)", "linux-ppc64le"),
        ("defined(_M_X64)", "windows-x86_64"),
        ("defined(_M_ARM64)", "windows-arm64"),
        ("defined(_MSC_VER)", "source windows-arm64 windows-x86_64"),
    ],
)
def test_include_conditions_depend_on_machine(condition: str, platforms: str) -> None:
    true = [name for name in sorted(KNOWN_PLATFORMS) if holds(condition, Platform(name))]
    assert true == platforms.split()
