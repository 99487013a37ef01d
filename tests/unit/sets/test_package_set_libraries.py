"""Tests of libraries in sets: providers, needs and dependencies (build-rules 5)."""

from collections.abc import Mapping
from typing import Any

import pytest
from support.set_inputs import (
    JETSON,
    LINUX,
    STATIC,
    WINDOWS,
    Release,
    build,
    cuda,
    elf,
    features_of,
    fixup,
    library,
    outline,
    rule,
    set_data_of,
    texts,
)

from cudaredist.binaries.file_facts import Binary
from cudaredist.formats.features import ArchiveFeatures
from cudaredist.formats.packageset import InSet, Needed, OutsideSet, PackageSet
from cudaredist.sets.inputs import SetData
from cudaredist.sets.invariants.documents import check_set
from cudaredist.sets.library_names import find_external


def dll(name: str, *needed: str) -> Binary:
    """Return a DLL."""
    return Binary(kind="pe", machine="x86_64", is_shared=True, soname=name, needed=needed)


BASE = {
    "cuda_nvcc": features_of({"bin/nvcc": None}),
    "cuda_cudart": library("libcudart.so.12", "libc.so.6"),
    "cuda_cccl": features_of({"include/cub.h": None}),
}


_MEANT = {"I6", "I8"}
"""Invariants violated on purpose: libraries without a provider or with two."""


def data_of(features: Mapping[str, ArchiveFeatures], platform: str = LINUX, **more: Any) -> SetData:
    known = {**BASE, **features}
    return set_data_of(
        cuda(platforms=(platform,), features=known, packages={name: [platform] for name in known}),
        **more,
    )


def built(
    features: Mapping[str, ArchiveFeatures], platform: str = LINUX, **more: Any
) -> PackageSet:
    result = build(data_of(features, platform, **more), platform=platform)
    assert [str(v) for v in check_set(result) if v.invariant not in _MEANT] == []
    return result


def by(need: Needed) -> str | None:
    match need.satisfied_by:
        case InSet(attr=attr, output=output):
            return f"{attr}.{output}"
        case OutsideSet(external=owner):
            return owner
        case None:
            return None


def satisfied(package_set: PackageSet, name: str) -> dict[str, str | None]:
    return {need.soname: by(need) for need in package_set.packages[name].needs}


# -- providers


def test_needs_are_satisfied_by_own_other_and_external_libraries() -> None:
    both = {
        "lib/libx.so.1.5": elf("libx.so.1", "libx_ops.so.1", "libcudart.so.12", "libz.so.1"),
        "lib/libx_ops.so.1": elf("libx_ops.so.1", "libstdc++.so.6", "libcuda.so.1"),
        "bin/tool": elf(None, "libx.so.1", "libm.so.6"),
    }
    package_set = built({"libx": features_of(both)})
    assert satisfied(package_set, "libx") == {
        "libx_ops.so.1": "libx.lib",
        "libx.so.1": "libx.lib",
        "libcudart.so.12": "cuda_cudart.out",
        "libz.so.1": "distribution",
        "libstdc++.so.6": "gcc",
        "libcuda.so.1": "driver",
        "libm.so.6": "glibc",
    }
    (need,) = (n for n in package_set.packages["libx"].needs if n.soname == "libm.so.6")
    assert (need.by_path, need.output) == ("bin/tool", "bin")
    assert [d.model_dump() for d in package_set.packages["libx"].depends] == [
        {"attr": "cuda_cudart", "output": "out", "kind": "runtime"}
    ]
    assert package_set.external["libz.so.1"].model_dump() == {
        "owner": "distribution",
        "provider": "zlib",
        "needed_by": ("libx",),
    }
    assert package_set.external["libc.so.6"].needed_by == ("cuda_cudart",)
    assert [p.attr for p in package_set.sonames["libcudart.so.12"]] == ["cuda_cudart"]


def test_libraries_are_found_by_file_names_and_links() -> None:
    package_set = built(
        {
            "liba": features_of(
                {"lib/libplain.so": elf("libplain.so.1"), "lib/libother.so.2": "libplain.so"}
            ),
            "libb": library("libb.so.1", "libplain.so", "libother.so.2", "libplain.so.1"),
            "libc": features_of({"lib/noname.so": elf("")}),
            "libd": library("libd.so.1", "noname.so"),
        }
    )
    assert set(satisfied(package_set, "libb").values()) == {"liba.lib"}
    assert [p.soname for p in package_set.packages["libc"].provides] == ["noname.so"]
    assert satisfied(package_set, "libd") == {"noname.so": "libc.lib"}


def test_own_library_is_preferred_to_other_package() -> None:
    package_set = built(
        {
            "liba": library("libshared.so.1"),
            "libb": features_of(
                {"lib/libshared.so.1": elf("libshared.so.1"), "bin/b": elf(None, "libshared.so.1")}
            ),
        }
    )
    assert satisfied(package_set, "libb") == {"libshared.so.1": "libb.lib"}


def test_stubs_do_not_satisfy_needs() -> None:
    stub = features_of(
        {"lib/stubs/libx.so": elf("libx.so.1"), "lib/stubs/libcuda.so": elf("libcuda.so.1")}
    )
    package_set = built({"liba": stub, "libb": library("libb.so.1", "libx.so.1", "libcuda.so.1")})
    assert satisfied(package_set, "libb") == {"libx.so.1": None, "libcuda.so.1": "driver"}
    (reason,) = package_set.packages["libb"].reasons
    assert (reason.code, reason.subject) == ("unresolved-library", "libx.so.1")
    assert reason.source == "features"
    assert [(p.attr, p.stub) for p in package_set.sonames["libx.so.1"]] == [("liba", True)]


def test_driver_library_is_not_provided_by_a_package() -> None:
    """The compatibility package has libcuda.so.1, but no library is linked against it."""
    compat = features_of(
        {
            "compat/libcuda.so.1": elf("libcuda.so.1", "libnvrm_gpu.so", "libc.so.6"),
            "compat/libnvidia-x.so.1": elf("libnvidia-x.so.1", "libcuda.so.1", "libcrypto.so.3"),
        }
    )
    package_set = built(
        {"cuda_compat": compat, "liba": library("liba.so.1", "libcuda.so.1", "libnvidia-ml.so.1")},
        JETSON,
    )
    assert satisfied(package_set, "liba") == {
        "libcuda.so.1": "driver",
        "libnvidia-ml.so.1": "driver",
    }
    assert satisfied(package_set, "cuda_compat") == {
        "libcuda.so.1": "cuda_compat.out",
        "libnvrm_gpu.so": "jetson",
        "libc.so.6": "glibc",
        "libcrypto.so.3": "distribution",
    }
    assert package_set.packages["liba"].depends == ()
    assert package_set.packages["liba"].compat_runpath


def test_missing_library_breaks_package_and_dependents() -> None:
    package_set = built(
        {
            "liba": library("liba.so.1", "libb.so.1"),
            "libb": library("libb.so.1", "libc.so.1"),
            "libc": library("libc.so.1", "libnowhere.so.3"),
            "libz": library("libz.so.9"),
        }
    )
    packages = package_set.packages
    assert [outline(packages[f"lib{x}"]) for x in "abcz"] == [
        ("broken", ["dependency-unavailable"]),
        ("broken", ["dependency-unavailable"]),
        ("broken", ["unresolved-library"]),
        ("available", []),
    ]
    assert texts(package_set, "broken") == [
        "lib/liba.so.1.5 needs libb.so.1, which is only in libb",
        "lib/libb.so.1.5 needs libc.so.1, which is only in libc",
        "lib/libc.so.1.5 needs libnowhere.so.3, which has no known provider",
    ]
    assert package_set.external["libnowhere.so.3"].owner == "unknown"
    assert packages["libc"].archive is not None
    assert packages["libc"].provides, "the libraries of a broken package are listed"
    assert "libc.so.1" not in package_set.sonames, "but they are not in the set's index"


@pytest.mark.parametrize("status", ["withheld", "broken"])
def test_library_of_unavailable_package_breaks_dependents(status: str) -> None:
    package_set = built(
        {"liba": library("liba.so.1", "libb.so.1"), "libb": library("libb.so.1")},
        policies=fixup("libb", **{status: "why"}),
    )
    code = "dependency-unavailable" if status == "broken" else "unresolved-library"
    assert outline(package_set.packages["liba"]) == ("broken", [code])


@pytest.mark.parametrize(("more", "status"), [((), "available"), (("libnowhere.so.1",), "broken")])
def test_circular_needs_have_one_status(more: tuple[str, ...], status: str) -> None:
    liba, libb = library("liba.so.1", "libb.so.1"), library("libb.so.1", "liba.so.1", *more)
    packages = built({"liba": liba, "libb": libb}).packages
    assert {packages[name].status for name in ("liba", "libb")} == {status}


def test_nccl_comes_from_set_or_distribution() -> None:
    cudss = {"libcudss": library("libcudss.so.0", "libnccl.so.2")}
    assert satisfied(built(cudss), "libcudss") == {"libnccl.so.2": "distribution"}
    both = {**cudss, "nccl": library("libnccl.so.2")}
    assert satisfied(built(both), "libcudss") == {"libnccl.so.2": "nccl.lib"}


def test_additional_versions_satisfy_only_their_own_needs() -> None:
    def cudnn(label: str, major: int) -> Release:
        features = features_of(
            {
                f"lib/libcudnn.so.{major}": elf(f"libcudnn.so.{major}", "libcudnn_ops.so.1"),
                "lib/libcudnn_ops.so.1": elf("libcudnn_ops.so.1"),
            }
        )
        return Release("cudnn", label, {"cudnn": [LINUX]}, {"cudnn": features})

    data = set_data_of(
        cuda(features={**BASE, "liba": library("liba.so.1", "libcudnn.so.8")}, liba=[LINUX]),
        cudnn("8.9.7", 8),
        cudnn("9.1.0", 9),
    )
    package_set = build(data, also=(("cudnn", "8.9.7"),))
    own = {by(n) for n in package_set.packages["cudnn_8_9"].needs if n.kind == "needed"}
    assert own == {"cudnn_8_9.lib"}
    assert package_set.packages["liba"].status == "broken"


# -- loaded libraries


def test_loaded_libraries_come_from_policy() -> None:
    nvrtc = features_of(
        {
            "lib/libnvrtc.so.12": elf("libnvrtc.so.12"),
            "lib/libnvrtc-builtins.so.12.9": elf("libnvrtc-builtins.so.12.9"),
            "lib/stubs/libnvrtc.so": elf("libnvrtc.so.12"),
        }
    )
    blas = {
        "lib/libcublas.so.12": elf("libcublas.so.12", "libcublasLt.so.12"),
        "lib/libcublasLt.so.12": elf("libcublasLt.so.12"),
    }
    package_set = built({"cuda_nvrtc": nvrtc, "libcublas": features_of(blas)})
    loaded = [
        (need.by_path, need.soname, by(need))
        for name in ("cuda_nvrtc", "libcublas")
        for need in package_set.packages[name].needs
        if need.kind == "dlopen"
    ]
    assert loaded == [
        ("lib/libnvrtc.so.12", "libnvrtc-builtins.so.12.9", "cuda_nvrtc.lib"),
        ("lib/libcublasLt.so.12", "libnvrtc.so.12", "cuda_nvrtc.lib"),
    ]
    depends = {(d.attr, d.kind) for d in package_set.packages["libcublas"].depends}
    assert depends == {("cuda_nvrtc", "dlopen"), ("cuda_cudart", "header")}


@pytest.mark.parametrize("other_opens", [(), ("libnvrtc.so.12",)])
def test_loaded_library_that_policy_calls_optional_is_optional(
    other_opens: tuple[str, ...],
) -> None:
    blas = {
        "lib/libcublasLt.so.12": elf("libcublasLt.so.12"),
        "lib/libnvblas.so.12": elf("libnvblas.so.12", opens=other_opens),
    }
    loaded = rule(
        package="libcublas", by="libcublasLt", loads="libnvrtc", is_optional=True, reason="why"
    )
    package_set = built(
        {"cuda_nvrtc": library("libnvrtc.so.12"), "libcublas": features_of(blas)},
        policies={"libraries": {"loaded": [loaded]}},
    )
    entry = package_set.packages["libcublas"]
    assert [need.is_optional for need in entry.needs if need.kind == "dlopen"][:1] == [True]
    (depends,) = (d for d in entry.depends if d.attr == "cuda_nvrtc")
    assert depends.is_optional == (not other_opens)


def test_opened_libraries_are_dependencies() -> None:
    nvrtc = library("libnvrtc.so.12")
    names = ("libcuda.so.1", "libnvrtc.so.12")
    blas = {
        "lib/libcublasLt.so.12": elf("libcublasLt.so.12", opens=names),
        "lib/libnvblas.so.12": elf("libnvblas.so.12", opens=names),
        "lib/stubs/libcublas.so": elf("libcublas.so.12", opens=names),
    }
    blas_entry = built({"cuda_nvrtc": nvrtc, "libcublas": features_of(blas)}).packages["libcublas"]
    assert [
        (o.by_path, o.soname, o.satisfied_by and o.satisfied_by.model_dump())
        for o in blas_entry.opens
    ] == [
        ("lib/libcublasLt.so.12", "libcuda.so.1", {"external": "driver"}),
        ("lib/libnvblas.so.12", "libcuda.so.1", {"external": "driver"}),
        ("lib/libnvblas.so.12", "libnvrtc.so.12", {"attr": "cuda_nvrtc", "output": "lib"}),
    ], "a library of `loaded` in the policy is not repeated"
    assert [n.soname for n in blas_entry.needs if n.by_path == "lib/libnvblas.so.12"] == []


OPTIONAL = rule(packages=["libx*"], names=["libextra.so.*"])


def opening_set(*names: str, **files: Binary) -> PackageSet:
    """Return a set with a package that opens libraries, and others that have some of these."""
    features = {
        "libx": features_of({"lib/libx.so.1": elf("libx.so.1", opens=names), **files}),
        "libextra": library("libextra.so.1"),
        "libuseful": library("libuseful.so.1"),
    }
    return built(features, policies={"libraries": {"optional_libraries": [OPTIONAL]}})


def test_opened_library_is_required_unless_policy_lists_it_as_optional() -> None:
    entry = opening_set("libextra.so.1", "libuseful.so.1").packages["libx"]
    assert [(d.attr, d.output, d.kind, d.is_optional) for d in entry.depends] == [
        ("libextra", "lib", "dlopen", True),
        ("libuseful", "lib", "dlopen", False),
    ]
    assert {o.soname: o.is_optional for o in entry.opens} == {
        "libextra.so.1": True,
        "libuseful.so.1": False,
    }


def test_library_that_is_needed_and_opened_is_both() -> None:
    """Only files that list a library have a run path to it."""
    other = {"lib/liby.so.1": elf("liby.so.1", "libuseful.so.1")}
    entry = opening_set("libuseful.so.1", **other).packages["libx"]
    assert [(d.attr, d.kind) for d in entry.depends] == [
        ("libuseful", "dlopen"),
        ("libuseful", "runtime"),
    ]


def test_opened_library_without_provider_is_a_note_unless_optional() -> None:
    opens = ("libextra.so.9", "libnothing.so")
    made = build(
        data_of(
            {"libx": features_of({"lib/libx.so.1": elf("libx.so.1", opens=opens)})},
            policies={"libraries": {"optional_libraries": [OPTIONAL]}},
        )
    )
    assert made.packages["libx"].status == "available"
    assert texts(made, "unresolved-opens") == ["lib/libx.so.1 may open libnothing.so"]
    assert [str(violation) for violation in check_set(made)] == [
        "I29 libx: lib/libx.so.1 opens libnothing.so, which has no provider and is not optional"
    ]


def test_unread_tables_are_a_warning() -> None:
    files = {
        "lib/libcublas.so.12": elf("libcublas.so.12", unread=("needed",)),
        "bin/tool": elf(unread=("needed", "glibc")),
    }
    package_set = built({"libcublas": features_of(files)})
    assert texts(package_set, "unread") == [
        f"{path}: {fields} could not be read and are unknown"
        for path, fields in (("bin/tool", "needed, glibc"), ("lib/libcublas.so.12", "needed"))
    ]


def test_missing_loaded_library_is_a_warning() -> None:
    package_set = built({"libcublas": library("libcublasLt.so.12")})
    assert package_set.packages["libcublas"].status == "available"
    (text,) = texts(package_set, "unresolved-dlopen")
    assert text == "lib/libcublasLt.so.12.5 loads libnvrtc, which is not in the set"
    assert satisfied(package_set, "libcublas") == {"libnvrtc": None}


def test_available_provider_is_preferred_to_broken_one() -> None:
    package_set = built(
        {
            "aaa": library("libnvrtc.so.11"),
            "cuda_nvrtc": library("libnvrtc.so.12"),
            "libcublas": library("libcublasLt.so.12"),
        },
        policies=fixup("aaa", broken="b"),
    )
    assert satisfied(package_set, "libcublas") == {"libnvrtc.so.12": "cuda_nvrtc.lib"}


@pytest.mark.parametrize(
    ("label", "names"),
    [("8.9.7", {"libcudnn_cnn_infer", "libcublas", "libcublasLt"}), ("9.1.0", {"libcublasLt"})],
)
def test_cudnn_loads_libraries_of_its_version(label: str, names: set[str]) -> None:
    features = features_of(
        {
            f"lib/{name}.so.9": elf(f"{name}.so.9")
            for name in ("libcudnn", "libcudnn_ops_infer", "libcudnn_graph")
        }
    )
    data = set_data_of(
        cuda(features=BASE), Release("cudnn", label, {"cudnn": [LINUX]}, {"cudnn": features})
    )
    cudnn_entry = build(data).packages["cudnn"]
    assert {need.soname for need in cudnn_entry.needs if need.kind == "dlopen"} == names


# -- old libraries


def old_libraries(**needed: tuple[str, ...]) -> PackageSet:
    return build(data_of({name: library(f"{name}.so.1", *names) for name, names in needed.items()}))


@pytest.mark.parametrize(
    "soname",
    ["libtiff.so.5", "libssl.so.10", "libcrypto.so.1.0.0", "libpython3.8.so.1.0"],
)
def test_library_without_distribution_breaks_package(soname: str) -> None:
    made = old_libraries(libx=(soname,))
    assert outline(made.packages["libx"]) == ("broken", ["unresolved-library"])
    (reason,) = made.packages["libx"].reasons
    assert f"needs {soname}, which no distribution is known to have, and which " in reason.text
    assert "Debian 12, Debian 13, Ubuntu 24.04 do not have" in reason.text


@pytest.mark.parametrize(
    ("soname", "text", "provider"),
    [
        (
            "libtinfo.so.5",
            "which only Debian 12 (libtinfo5) and Fedora 44 (ncurses-compat-libs) have",
            "ncurses",
        ),
        ("libboost_chrono.so.1.78.0", "which only nixpkgs (boost178) has", "boost178"),
    ],
)
def test_old_library_is_a_warning_with_its_providers(soname: str, text: str, provider: str) -> None:
    made = old_libraries(libx=(soname,))
    assert made.packages["libx"].status == "available"
    assert texts(made, "old-library") == [f"lib/libx.so.1.5 needs {soname}, {text}"]
    assert made.external[soname].provider == provider
    assert made.external[soname].distributions


def test_current_library_is_accepted() -> None:
    made = old_libraries(libx=("libtiff.so.6", "libssl.so.3", "libpython3.13.so.1.0", "libz.so.1"))
    assert made.packages["libx"].status == "available"
    assert texts(made, "old-library") == []
    assert made.external["libtiff.so.6"].distributions is None


def test_one_version_of_python_is_enough() -> None:
    made = old_libraries(libx=("libpython3.8.so.1.0", "libpython3.12.so.1.0"))
    assert made.packages["libx"].status == "available"
    (text,) = texts(made, "old-library")
    assert text.startswith("lib/libx.so.1.5 needs libpython3.8.so.1.0, which no distribution")


# -- Windows


def test_dll_names_are_case_insensitive() -> None:
    files = {
        "bin/x64/nvrtc64_120_0.dll": dll("nvrtc64_120_0.dll", "KERNEL32.dll", "VCRUNTIME140.dll"),
        "bin/x.dll": dll("x.dll", "NVRTC64_120_0.DLL", "nvcuda.dll", "api-ms-win-crt-l1-1-0.dll"),
        "bin/x.exe": elf(None),
    }
    package_set = built({"libx": features_of(files)}, WINDOWS)
    assert satisfied(package_set, "libx") == {
        "NVRTC64_120_0.DLL": "libx.bin",
        "KERNEL32.dll": "windows",
        "VCRUNTIME140.dll": "msvc",
        "nvcuda.dll": "driver",
        "api-ms-win-crt-l1-1-0.dll": "windows",
    }
    assert package_set.packages["libx"].status == "available"
    assert not [n for n in package_set.packages["libx"].needs if n.kind == "dlopen"]


def test_other_library_names_are_case_sensitive() -> None:
    package_set = built({"liba": library("libA.so.1"), "libb": library("libb.so.1", "liba.so.1")})
    assert package_set.packages["libb"].status == "broken"


@pytest.mark.parametrize(
    ("soname", "owner"),
    [
        ("libc.so.6", "glibc"),
        ("ld-linux-x86-64.so.2", "glibc"),
        ("ld-linux-aarch64.so.1", "glibc"),
        ("ld64.so.2", "glibc"),
        ("libresolv.so.2", "glibc"),
        ("libgomp.so.1", "gcc"),
        ("libcuda.so.1", "driver"),
        ("libnvidia-ml.so.1", "driver"),
        ("libcudadebugger.so.1", "driver"),
        ("libnvrm_mem.so", "jetson"),
        ("libnvdla_compiler.so", "jetson"),
        ("libnvcudla.so", "jetson"),
        ("libucc.so.1", "distribution"),
        ("libX11.so.6", "distribution"),
        ("libQt6Core.so.6", "distribution"),
        ("libpython3.12.so.1.0", "python"),
        ("Kernel32.DLL", "windows"),
        ("libcublas.so.12", None),
        ("xlibc.so.6", None),
        ("libc.so.60", None),
    ],
)
def test_external_libraries_have_owners(soname: str, owner: str | None) -> None:
    entry = find_external(soname, set_data_of().policies.libraries)
    assert (entry.owner if entry else None) == owner


def test_dll_patterns_are_case_insensitive() -> None:
    entry = rule(names=["My*.DLL"], owner="distribution")
    data = set_data_of(policies={"libraries": {"external": [entry]}})
    for name in ("mything.dll", "MYTHING.DLL"):
        assert find_external(name, data.policies.libraries) == data.policies.libraries.external[0]


# -- dependencies by policy


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("11.8.0", {"cuda_cudart": {("cuda_nvcc", "header")}}),
        ("12.9.1", {"cuda_cudart": {("cuda_cccl", "header"), ("cuda_nvcc", "header")}}),
        (
            "13.4.2",
            {
                "cuda_cudart": {("cccl", "header"), ("cuda_crt", "header")},
                "cuda_nvcc": {("cuda_crt", "header"), ("libnvvm", "runtime")},
            },
        ),
    ],
)
def test_policy_dependencies_depend_on_cuda_release(
    label: str, expected: dict[str, set[tuple[str, str]]]
) -> None:
    cccl = "cccl" if label == "13.4.2" else "cuda_cccl"
    data = set_data_of(cuda(label, packages={cccl: [LINUX], "cuda_crt": [LINUX]}))
    packages = build(data, label).packages
    for name, needed in expected.items():
        assert {(d.attr, d.kind) for d in packages[name].depends} == needed


def test_missing_headers_are_a_warning() -> None:
    package_set = build(set_data_of(cuda("12.9.1")))
    assert package_set.packages["cuda_cudart"].status == "available"
    assert texts(package_set, "dependency-unavailable") == [
        "its headers need those of cccl, which is not in the set: cuda_runtime.h includes headers "
        "of CCCL"
    ]


def test_dependencies_name_outputs() -> None:
    runtime = features_of(
        {"include/x.h": None, "lib/libcudart.so.12": elf("libcudart.so.12"), "lib/libx.a": STATIC}
    )
    package_set = built(
        {"cuda_cudart": runtime, "libcublas": library("libcublas.so.12", "libcudart.so.12")},
        policies={"outputs": {"collapse": {"cuda_cudart": None}}},
    )
    assert [(d.attr, d.output, d.kind) for d in package_set.packages["libcublas"].depends] == [
        ("cuda_cudart", "include", "header"),
        ("cuda_cudart", "lib", "runtime"),
    ]
    assert package_set.packages["cuda_cudart"].propagates == {"out": ("include", "lib", "static")}


def test_dependencies_exclude_self_and_duplicates() -> None:
    rules = [rule(package="liba", needs=name, kind="runtime") for name in ("liba", "libb", "libb")]
    package_set = built(
        {"liba": library("liba.so.1", "libb.so.1"), "libb": library("libb.so.1")},
        policies={"libraries": {"dependencies": rules}},
    )
    assert [d.attr for d in package_set.packages["liba"].depends] == ["libb"]


def test_broken_policy_dependency_breaks_dependents() -> None:
    dependency = rule(package="liba", needs="libb", kind="runtime", reason="why")
    package_set = built(
        {
            "liba": library("liba.so.1"),
            "libb": library("libb.so.1", "libnowhere.so.1"),
            "libc": library("libc.so.1", "liba.so.1"),
        },
        policies={"libraries": {"dependencies": [dependency]}},
    )
    assert [package_set.packages[f"lib{x}"].status for x in "abc"] == ["broken"] * 3
    assert package_set.packages["liba"].reasons[0].text == "libb is not available: why"
    assert package_set.packages["liba"].reasons[0].source == "policy/libraries.json"
