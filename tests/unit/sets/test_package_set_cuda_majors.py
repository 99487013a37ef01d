"""CUDA majors of flat archives: by wheels, later releases, needed libraries; warnings."""

from collections.abc import Iterable
from typing import Any

import pytest
from support.set_inputs import (
    LINUX,
    WINDOWS,
    Release,
    build,
    cuda,
    elf,
    features_of,
    library,
    outline,
    package,
    rule,
    set_data_of,
    texts,
    with_code,
)

from cudaredist.formats.packageset import PackageSet
from cudaredist.sets.cuda_majors import StatedRelease

CODE = with_code({"sm_80": 1})


def cutensor(label: str = "2.0.2", *variants: str, **more: Any) -> Release:
    platforms = [f"{LINUX}/{variant}" for variant in variants] or [LINUX]
    return Release("cutensor", label, {"libcutensor": platforms}, **more)


def wheels(*releases: Release) -> dict[str, Any]:
    def read(redist: str) -> Iterable[StatedRelease]:
        for release in releases:
            if release.redist == redist:
                yield StatedRelease(release.held.label, release.held.manifest, is_wheel=True)

    return {"shipped_wheels": read}


def unstated(package_set: PackageSet) -> list[str]:
    return [d.subject for d in package_set.diagnostics if d.code == "cuda-unstated"]


WHEELS = wheels(cutensor("2.0.2", "cuda11", "cuda12"), cutensor("2.3.1", "cuda12", "cuda13"))


def test_wheels_of_same_version_state_upper_end() -> None:
    data = set_data_of(cuda("13.0.2"), cutensor(), **WHEELS)
    entry = package(data, "libcutensor", cuda="13.0.2")
    assert outline(entry) == ("unsupported", ["cuda-version-unsupported"])
    assert entry.reasons[0].text == (
        "no release of cutensor supports this set; the newest, 2.0.2: libcutensor of cutensor "
        "2.0.2 has no variants, and its wheels support CUDA 11 and 12, not CUDA 13.0.2; "
        "NVIDIA's newest wheel is cutensor-cu13 2.3.1"
    )


def test_pinned_release_is_refused_with_file_of_wheels() -> None:
    data = set_data_of(cuda("13.0.2"), cutensor(), cutensor("2.8.1", "cuda13"), **WHEELS)
    (reason,) = package(data, "libcutensor", cuda="13.0.2", pins={"cutensor": "2.0.2"}).reasons
    assert reason.code == "cuda-version-unsupported"
    assert reason.source == "shipped wheels cutensor/redistrib_2.0.2.json"
    assert package(data, "libcutensor", cuda="13.0.2").version == "2.8.1"


@pytest.mark.parametrize(
    ("label", "firsts", "status"),
    [
        ("2.2.0", {"12": "1.6.2", "13": "2.3.0"}, "unsupported"),
        ("2.3.0", {"12": "1.6.2", "13": "2.3.0"}, "available"),
        ("2.2.0", {"12": "2.3.0", "13": "2.3.0"}, "available"),
        ("2.2.0", {"13": "2.3.0"}, "available"),
        ("2.2.0", {"12": "1.6.2"}, "available"),
    ],
)
def test_release_before_first_wheels_for_a_major_is_for_older_ones(
    label: str, firsts: dict[str, str], status: str
) -> None:
    policies = {"constraints": {"first_wheels": {"cutensor": firsts}}}
    data = set_data_of(cuda("13.0.2"), cutensor(label), policies=policies)
    entry = package(data, "libcutensor", cuda="13.0.2", pins={"cutensor": label})
    assert entry.status == status
    if status == "unsupported":
        assert entry.reasons[0].text == (
            f"libcutensor of cutensor {label} has no variants, and the first wheels for CUDA 13 "
            "are those of 2.3.0"
        )


@pytest.mark.parametrize(("label", "subjects"), [("2.3.0", []), ("2.3.1", ["libcutensor"])])
def test_first_wheels_for_a_major_state_that_it_is_supported(
    label: str, subjects: list[str]
) -> None:
    policies = {"constraints": {"first_wheels": {"cutensor": {"12": "1.6.2", "13": "2.3.0"}}}}
    release = cutensor(label, features={"libcutensor": CODE})
    data = set_data_of(cuda("13.0.2"), release, policies=policies)
    assert unstated(build(data, cuda="13.0.2")) == subjects


@pytest.mark.parametrize(
    ("label", "later", "status"),
    [
        ("2.1.0", "2.2.0", "unsupported"),
        ("2.2.0", "2.2.0", "available"),
        ("2.3.0", "2.2.0", "available"),
    ],
)
def test_later_release_states_upper_end(label: str, later: str, status: str) -> None:
    flat = cutensor(label, features={"libcutensor": library("libcutensor.so.2")})
    other = cutensor(later, "cuda11", "cuda12")
    releases = {(release.redist, release.label): release for release in (other, flat)}
    data = set_data_of(cuda("13.0.2"), *releases.values())
    entry = package(data, "libcutensor", cuda="13.0.2", pins={"cutensor": label})
    assert entry.status == status
    if status == "unsupported":
        text = "and the later release 2.2.0 supports CUDA 11 and 12, not CUDA 13.0.2"
        assert entry.reasons[0].text.endswith(text)
        assert entry.reasons[0].source == "cutensor/redistrib_2.2.0.json"


def test_wheels_of_same_version_state_that_major_is_supported() -> None:
    data = set_data_of(cuda(), cutensor(features={"libcutensor": CODE}), **WHEELS)
    package_set = build(data)
    assert package_set.packages["libcutensor"].status == "available"
    assert unstated(package_set) == []


def test_label_with_cuda_release_states_it() -> None:
    release = Release("nccl", "2.29.2-cuda12.9", {"nccl": [LINUX]}, {"nccl": CODE})
    assert unstated(build(set_data_of(cuda(), release))) == []


def test_flat_archive_without_statement_is_a_warning() -> None:
    data = set_data_of(cuda(), cutensor(features={"libcutensor": CODE}))
    package_set = build(data)
    assert package_set.packages["libcutensor"].status == "available"
    (text,) = texts(package_set, "cuda-unstated")
    assert text.startswith("libcutensor 2.0.2 has no variants, so nothing states its CUDA major")
    assert unstated(build(set_data_of(cuda(), cutensor()))) == ["libcutensor"]


def test_policy_states_cuda_releases() -> None:
    entry = rule(redist="cutensor", releases={"max": "2.0"}, cuda={"max": "12"})
    policies = {"constraints": {"constraints": [entry]}}
    data = set_data_of(cuda(), cutensor(features={"libcutensor": CODE}), policies=policies)
    assert unstated(build(data)) == []


@pytest.mark.parametrize(
    "files",
    [
        {"lib/12/libcutensor.so.2": elf("libcutensor.so.2", device_code=())},
        {"lib/libcutensor.so.2": elf("libcutensor.so.2", device_code=())},
        {"include/x.h": None},
    ],
)
def test_package_without_dependence_on_cuda_is_no_warning(files: dict[str, None]) -> None:
    features = {"libcutensor": features_of(files)}
    assert unstated(build(set_data_of(cuda(), cutensor(features=features)))) == []


def test_needed_library_of_cuda_states_it() -> None:
    code = CODE.model_copy(
        update={
            "libraries": tuple(
                file.model_copy(update={"needed": ("libcublas.so.12",)}) for file in CODE.libraries
            )
        }
    )
    toolkit = cuda(features={"libcublas": library("libcublas.so.12")}, libcublas=[LINUX])
    data = set_data_of(toolkit, cutensor(features={"libcutensor": code}))
    package_set = build(data)
    assert package_set.packages["libcutensor"].status == "available"
    assert unstated(package_set) == []


# -- needed libraries of another release


def needing(label: str, *needed: str, platform: str = LINUX) -> Release:
    features = {"cuquantum": library("libcutensornet.so.2", *needed)}
    return Release("cuquantum", label, {"cuquantum": [platform]}, features)


CUBLAS_13 = {"libcublas": library("libcublas.so.13"), "cuda_cudart": library("libcudart.so.13")}


def test_package_that_needs_library_of_other_major_is_unsupported() -> None:
    toolkit = cuda("13.0.2", features=CUBLAS_13, libcublas=[LINUX])
    data = set_data_of(toolkit, needing("23.3.0", "libcublas.so.12", "libc.so.6"))
    pins = {"cuquantum": "23.3.0"}
    entry = package(data, "cuquantum", cuda="13.0.2", pins=pins)
    assert outline(entry) == ("unsupported", ["cuda-version-unsupported"])
    assert entry.reasons[0].text == (
        "lib/libcutensornet.so.2.5 needs libcublas.so.12, but CUDA 13.0.2 has libcublas.so.13"
    )
    assert package(data, "cuquantum", cuda="13.0.2").status == "unsupported"


def test_older_release_with_libraries_of_major_is_selected() -> None:
    toolkit = cuda("13.0.2", features=CUBLAS_13, libcublas=[LINUX])
    data = set_data_of(
        toolkit, needing("25.9.0", "libcublas.so.13"), needing("26.0.0", "libcublas.so.14")
    )
    assert package(data, "cuquantum", cuda="13.0.2").version == "25.9.0"


def test_archive_for_several_majors_is_supported_by_one_of_them() -> None:
    features = features_of(
        {
            "lib/a/libx.so.1": elf("libx.so.1", "libcublas.so.12"),
            "lib/b/libx.so.1": elf("libx.so.1", "libcublas.so.13"),
        }
    )
    toolkit = cuda("13.0.2", features=CUBLAS_13, libcublas=[LINUX])
    release = Release("cuquantum", "23.3.0", {"cuquantum": [LINUX]}, {"cuquantum": features})
    codes = [
        r.code for r in package(set_data_of(toolkit, release), "cuquantum", cuda="13.0.2").reasons
    ]
    assert "cuda-version-unsupported" not in codes


def test_names_of_dlls_have_versions_too() -> None:
    dll = features_of({"bin/cublas64_13.dll": elf("cublas64_13.dll")})
    toolkit = cuda("13.0.2", [WINDOWS], features={"libcublas": dll}, libcublas=[WINDOWS])
    other = features_of({"bin/cutensornet.dll": elf("cutensornet.dll", "CUBLAS64_12.dll")})
    release = Release("cuquantum", "25.0.0", {"cuquantum": [WINDOWS]}, {"cuquantum": other})
    data = set_data_of(toolkit, release)
    entry = package(data, "cuquantum", cuda="13.0.2", platform=WINDOWS)
    assert entry.reasons[0].text.endswith("but CUDA 13.0.2 has cublas64_13.dll")


def test_reason_names_newest_wheel_for_older_cuda() -> None:
    own = Release("nccl", "2.29.2-cuda12.9", {"nccl": [LINUX]})
    of_11 = [
        Release("nccl", label, {"nccl": [f"{LINUX}/cuda11"]}) for label in ("2.20.5", "2.21.5")
    ]
    newer = Release("nccl", "2.29.2", {"nccl": [f"{LINUX}/cuda12"]})
    data = set_data_of(cuda("11.8.0"), own, **wheels(*of_11, newer))
    (reason,) = package(data, "nccl", cuda="11.8.0").reasons
    assert reason.text.endswith("; NVIDIA's newest wheel is nvidia-nccl-cu11 2.21.5")
