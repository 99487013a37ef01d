"""Tests of statuses, reasons, requirements and additional versions (build-rules 1.4, 4)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.set_inputs import (
    JETSON,
    LINUX,
    SBSA,
    WINDOWS,
    Release,
    build,
    cuda,
    fixup,
    library,
    outline,
    package,
    rule,
    set_data_of,
    valid,
)

from cudaredist.commands.build.build_sets import build_one, specs_for
from cudaredist.errors import IncompleteError, UnknownNameError, UsageError
from cudaredist.formats.packageset import InSet, PackageSet
from cudaredist.formats.set_policy import Bounds
from cudaredist.primitives import Version
from cudaredist.sets.bounds import bounds_text, is_within
from cudaredist.sets.inputs import InputFeatures, SetData
from cudaredist.sets.invariants.documents import check_set
from cudaredist.sets.spec import Request

EVERY = (LINUX, SBSA, JETSON, WINDOWS)
CUDA_12, BOTH = [f"{LINUX}/cuda12"], [f"{LINUX}/cuda12", f"{LINUX}/cuda13"]


def tensorrts(*labels: str) -> list[Release]:
    return [Release("tensorrt", label, {"tensorrt": CUDA_12}) for label in labels]


# -- statuses


def test_each_status_has_reason_and_source() -> None:
    data = set_data_of(
        cuda(
            platforms=EVERY,
            nsight_vse=[WINDOWS],
            mft=[LINUX],
            libcudla=[JETSON],
            cuda_compat=[JETSON],
        ),
        cuda("11.8.0", cuda_memcheck=[LINUX]),
        Release("cudnn", "9.1.0", {"cudnn": [f"{LINUX}/cuda11"]}),
        Release("cusparselt", "0.9.0", {"libcusparse_lt": [LINUX]}),
    )
    result = build(data).packages
    expected = {
        "nsight_vse": ("foreign", "other-operating-system", "manifests"),
        "mft": ("withheld", "withheld-by-policy", "policy/withheld.json"),
        "cuda_memcheck": ("unsupported", "not-in-manifest", "cuda/redistrib_12.9.1.json"),
        "libcudla": ("unsupported", "platform-not-published", "cuda/redistrib_12.9.1.json"),
        "cudnn": ("unsupported", "variant-not-published", "cudnn/redistrib_9.1.0.json"),
        "libcusparse_lt": (
            *("unsupported", "cuda-version-unsupported", "cusparselt/redistrib_0.9.0.json"),
        ),
        "cuda_gdb": ("unsupported", "not-in-manifest", "manifests"),
    }
    reasons = {name: result[name].reasons[0] for name in expected}
    assert {
        name: (result[name].status, reason.code, reason.source) for name, reason in reasons.items()
    } == expected
    assert all(len(result[name].reasons) == 1 for name in expected)
    assert outline(result["cuda_nvcc"]) == ("available", [])
    assert result["cuda_memcheck"].reasons[0].text == "cuda 12.9.1 has no cuda_memcheck"
    assert result["cudnn"].reasons[0].text == (
        "no release of cudnn supports this set; the newest, 9.1.0: "
        f"cudnn for {LINUX} is published for cuda11, not for CUDA 12.9.1"
    )
    assert result["mft"].archive is not None, "it is there, and left out on purpose"
    for name in ("nsight_vse", "cuda_memcheck", "libcudla", "cudnn", "libcusparse_lt"):
        assert (result[name].archive, result[name].outputs) == (None, ("out",))
    assert (result["cudnn"].release, result["cudnn"].version) == (None, None)


def test_unsupported_package_has_reason_of_newest_release() -> None:
    data = set_data_of(
        cuda(platforms=(LINUX, SBSA)),
        Release("cudnn", "9.2.0", {"cudnn": [SBSA]}),
        Release("cudnn", "9.1.0", {"cudnn": [SBSA], "cudnn_jit": [f"{LINUX}/cuda13"]}),
    )
    result = package(data, "cudnn_jit")
    assert outline(result) == ("unsupported", ["variant-not-published"])
    assert result.reasons[0].source == "cudnn/redistrib_9.1.0.json"


def test_split_off_package_names_earlier_package() -> None:
    data = set_data_of(cuda("12.9.1"), cuda("13.0.2", cuda_crt=[LINUX]))
    result = package(data, "cuda_crt")
    assert result.reasons[0].text == (
        "cuda 12.9.1 has no cuda_crt; before CUDA 13.0 its files are in cuda_nvcc"
    )
    assert package(data, "libnvptxcompiler", cuda="13.0.2").reasons[0].code == "not-in-manifest"


def test_most_severe_status_is_selected() -> None:
    fixups = [rule(package=x, broken="b", withheld="w") for x in ("libx", "nsight_vse", "liby")]
    requirements = [
        rule(package="libz", kind=kind, needs_cuda={"min": "13.0"}, reason=kind)
        for kind in ("broken", "unsupported")
    ]
    data = set_data_of(
        cuda(libx=[LINUX], liby=[SBSA], libz=[LINUX], nsight_vse=[WINDOWS]),
        policies={"fixups": {"fixups": fixups}, "requirements": {"requirements": requirements}},
    )
    result = valid(build(data)).packages
    assert {name: outline(result[name]) for name in ("libx", "liby", "nsight_vse", "libz")} == {
        "libx": ("withheld", ["withheld-by-policy", "marked-broken"]),
        "liby": ("withheld", ["withheld-by-policy", "platform-not-published"]),
        "nsight_vse": ("foreign", ["other-operating-system"]),
        "libz": ("unsupported", ["cuda-version-unsupported"] * 2),
    }
    assert result["libz"].reasons[0].text.startswith("unsupported: "), "the decisive one is first"
    assert (result["libx"].archive is None, result["libz"].archive is None) == (False, True)


def test_withheld_packages_are_withheld_on_every_platform() -> None:
    data = set_data_of(cuda(platforms=(LINUX, WINDOWS), mft=[LINUX]))
    assert package(data, "mft").status == "withheld"
    assert package(data, "mft", platform=WINDOWS).status == "foreign"
    shipped = data.policies.withheld.withheld
    result = build(data).packages
    assert {result[name].status for name in shipped} == {"withheld"}
    assert len(shipped) == 11


@pytest.mark.parametrize("name", ["liba", "liba.so.1"])
def test_withheld_package_lacks_what_set_has(name: str) -> None:
    entry = rule(lacks=[name, "libnone"])
    data = set_data_of(
        cuda(liba=[LINUX], features={"liba": library("liba.so.1")}),
        policies={"withheld": {"withheld": {"libx": entry}}},
    )
    result = build(data)
    codes = ["withheld-by-policy", "dependency-unavailable", "dependency-unavailable"]
    assert outline(result.packages["libx"]) == ("withheld", codes)
    message = f"I14 libx: is withheld for lack of {name}, but the set has it"
    assert [str(violation) for violation in check_set(result)] == [message]


# -- requirements: section 1.4


@pytest.mark.parametrize(
    ("redist", "label", "platform", "capabilities", "cuda_label", "status"),
    [
        ("tensorrt", "10.0.0", LINUX, "7.0", "12.6.3", "available"),
        ("tensorrt", "10.0.0", LINUX, "6.1 8.0", "12.2.2", "unsupported"),
        ("tensorrt", "9.3.0", LINUX, "6.1", "12.2.2", "available"),
        ("tensorrt", "10.5.0", LINUX, "7.5 9.0a", "12.6.3", "available"),
        ("tensorrt", "10.5.0", LINUX, "7.0", "12.4.1", "unsupported"),
        ("tensorrt", "10.4.0", LINUX, "7.0", "12.4.1", "available"),
        ("tensorrt", "10.7.0", JETSON, "8.7", "12.4.1", "available"),
        ("tensorrt", "10.7.0", JETSON, "8.7", "12.2.2", "unsupported"),
        ("tensorrt", "10.7.0", JETSON, "8.0", "12.6.3", "unsupported"),
        ("tensorrt", "10.7.0", JETSON, "", "12.6.3", "available"),
        ("tensorrt", "10.7.0", SBSA, "9.0", "12.2.2", "available"),
        ("tensorrt", "11.3.0", SBSA, "8.7", "13.4.2", "unsupported"),
        ("tensorrt", "11.3.0", SBSA, "9.0 11.0a", "13.4.2", "unsupported"),
        ("tensorrt", "11.3.0", SBSA, "9.0", "13.4.2", "available"),
        ("tensorrt", "11.2.1", SBSA, "11.0", "13.2.0", "unsupported"),
        ("tensorrt", "11.1.0", SBSA, "11.0", "13.2.0", "available"),
        ("tensorrt", "11.1.0", SBSA, "8.7", "13.1.0", "unsupported"),
        ("tensorrt", "10.16.1", SBSA, "8.7", "13.0.2", "available"),
        ("cublasmp", "0.6.0", LINUX, "7.0", "12.9.1", "available"),
        ("cublasmp", "0.6.0", LINUX, "7.0", "12.4.1", "unsupported"),
        ("cublasmp", "0.6.0", LINUX, "6.1", "12.2.2", "unsupported"),
        ("cublasmp", "0.6.0", LINUX, "7.5", "13.0.2", "available"),
        ("cublasmp", "0.5.1", LINUX, "7.5", "13.0.2", "unsupported"),
        ("cublasmp", "0.5.1", LINUX, "8.0", "13.0.2", "available"),
        ("cublasmp", "0.5.1", LINUX, "7.0", "12.9.1", "available"),
        ("cuda", "12.6.3", JETSON, "8.7", "12.6.3", "available"),
        ("cuda", "12.2.2", JETSON, "7.2 8.7", "12.2.2", "available"),
        ("cuda", "12.2.2", JETSON, "8.7 7.2", "12.2.2", "available"),
        ("cuda", "12.6.3", JETSON, "", "12.6.3", "available"),
        ("cuda", "12.6.3", JETSON, "8.0", "12.6.3", "unsupported"),
    ],
)
def test_requirements_depend_on_capability_and_cuda(
    redist: str, label: str, platform: str, capabilities: str, cuda_label: str, status: str
) -> None:
    name = {"cuda": "libcudla", "cublasmp": "libcublasmp"}.get(redist, redist)
    releases = [cuda(cuda_label, (LINUX, SBSA, JETSON), libcudla=[JETSON]), *LIBRARIES]
    if redist != "cuda":
        places = [f"{platform}/cuda12", f"{platform}/cuda13"]
        releases.append(Release(redist, label, {name: places}))
    names = tuple(capabilities.split())
    data = set_data_of(*releases)
    result = package(data, name, cuda=cuda_label, platform=platform, capabilities=names)
    assert result.status == status
    codes = {reason.code for reason in result.reasons}
    assert codes <= {"capability-unsupported", "cuda-version-unsupported"}
    sources = {"policy/requirements.json", f"cublasmp/redistrib_{label}.json"}
    assert {reason.source for reason in result.reasons} <= sources


LIBRARIES = (
    Release("nccl", "2.29.2", {"nccl": [LINUX]}),
    Release("nvshmem", "3.4.5", {"libnvshmem": [LINUX]}),
)
"""Those that cuBLASMp requires."""


def cublasmp_data(nccl: str = "2.29.2", nvshmem: str = "3.4.5", **policies: Any) -> SetData:
    return set_data_of(
        cuda(),
        Release("cublasmp", "0.6.0", {"libcublasmp": BOTH}),
        *(x._replace(label=y) for x, y in zip(LIBRARIES, (nccl, nvshmem), strict=True)),
        policies=policies,
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, None),
        ({"nccl": "2.24.3", "nvshmem": "3.3.24"}, None),
        ({"nccl": "2.24.2"}, "requires nccl 2.24.3 or newer, but the set has 2.24.2"),
        ({"nvshmem": "3.3.9"}, "requires libnvshmem 3.3.24 or newer, but the set has 3.3.9"),
    ],
)
def test_required_versions_of_other_packages_are_checked(
    changes: dict[str, Any], text: str | None
) -> None:
    result = package(cublasmp_data(**changes), "libcublasmp")
    if text is None:
        assert result.status == "available"
    else:
        assert outline(result) == ("broken", ["dependency-unavailable"])
        assert result.reasons[0].text.endswith(text)


@pytest.mark.parametrize("name", ["libnvshmem", "nccl"])
def test_unavailable_required_package_breaks_dependent(name: str) -> None:
    result = package(cublasmp_data(**fixup(name, broken="it crashes")), "libcublasmp")
    assert outline(result) == ("broken", ["dependency-unavailable"])
    assert result.reasons[0].text.endswith(f"{name} is not available")


def test_tensorrt_8_requires_matching_cudnn() -> None:
    data = set_data_of(
        cuda("12.0.1"),
        *tensorrts("8.6.1"),
        *(Release("cudnn", x, {"cudnn": CUDA_12}) for x in ("8.8.0", "8.9.7", "9.1.0")),
    )
    for label, status in (("8.8.0", "broken"), ("8.9.7", "available"), ("9.1.0", "broken")):
        result = package(data, "tensorrt", cuda="12.0.1", pins={"cudnn": label})
        assert result.status == status


def test_older_release_is_selected_if_newest_lacks_capability() -> None:
    data = set_data_of(cuda("12.4.1"), *tensorrts("10.0.0", "10.3.0", "10.5.0", "11.3.0"))
    result = build(data, "12.4.1", capabilities=("7.0", "9.0"))
    assert result.packages["tensorrt"].status == "available"
    assert result.redists["tensorrt"].release == "10.3.0"
    reason = "TensorRT 10.5 supports capability 7.5 and newer: the set is also for 7.0"
    rejected = {entry.release: entry.reason for entry in result.redists["tensorrt"].newer_rejected}
    assert rejected == {"11.3.0": reason, "10.5.0": reason}
    assert build(data, "12.4.1", capabilities=("9.0",)).redists["tensorrt"].release == "11.3.0"


def test_older_release_is_selected_if_newest_lacks_dependency() -> None:
    data = set_data_of(
        cuda("12.9.1"),
        *(Release("cublasmp", x, {"libcublasmp": CUDA_12}) for x in ("0.5.1", "0.6.0")),
        LIBRARIES[0]._replace(label="2.20.3"),
        LIBRARIES[1],
    )
    result = build(data, "12.9.1")
    assert result.packages["libcublasmp"].status == "available"
    assert result.redists["cublasmp"].release == "0.5.1"
    (rejected,) = result.redists["cublasmp"].newer_rejected
    assert rejected.reason.endswith("requires nccl 2.24.3 or newer, but the set has 2.20.3")


def test_requirement_that_warns_changes_no_release_and_status() -> None:
    entry = rule(
        package="cudnn", kind="warning", needs_packages={"liby": {"max": "11"}}, reason="Why"
    )
    data = set_data_of(
        cuda("12.9.1", liby=[LINUX]),
        *(Release("cudnn", label, {"cudnn": [LINUX]}) for label in ("9.1.0", "9.2.0")),
        policies={"requirements": {"requirements": [entry]}},
    )
    result = valid(build(data, "12.9.1"))
    assert result.packages["cudnn"].status == "available"
    assert result.redists["cudnn"].release == "9.2.0"
    texts = [each.text for each in result.diagnostics if each.code == "doubtful-version"]
    assert texts == ["Why: requires liby 11 or older, but the set has 12.9.1"]


def broken_by_policy() -> SetData:
    """Return data with a release of cuDNN that policy calls broken for CUDA 12.9."""
    constraint = rule(redist="cudnn", releases={"min": "9.2.0"}, cuda={"min": "13.0"}, reason="Why")
    return set_data_of(
        cuda("12.9.1"),
        *(Release("cudnn", label, {"cudnn": [LINUX]}) for label in ("9.1.0", "9.2.0")),
        policies={"constraints": {"constraints": [constraint]}},
    )


def texts_of(result: PackageSet, code: str) -> list[str]:
    return [f"{each.subject}: {each.text}" for each in result.diagnostics if each.code == code]


def test_requested_release_that_is_broken_is_reported_with_option() -> None:
    result = valid(build(broken_by_policy(), pins={"cudnn": "9.2.0"}))
    assert result.packages["cudnn"].status == "broken"
    (text,) = texts_of(result, "requested-unusable")
    assert text.startswith("cudnn: 9.2.0 was requested, but cudnn is broken: Why")
    assert text.endswith("; to use it, add `--allow cudnn`")


@pytest.mark.parametrize("options", [{"pins": {"cudnn": "9.2.0"}}, {"also": (("cudnn", "9.2.0"),)}])
def test_requested_release_that_is_unpublished_is_reported(options: dict[str, Any]) -> None:
    data = set_data_of(
        cuda("12.9.1"),
        Release("cudnn", "9.1.0", {"cudnn": [LINUX]}),
        Release("cudnn", "9.2.0", {"cudnn": [SBSA]}),
    )
    result = build(data, **options)
    (text,) = texts_of(result, "requested-unusable")
    assert text.startswith("cudnn: 9.2.0 was requested, but cudnn is unsupported: cudnn is not pub")
    assert "add" not in text
    assert texts_of(build(data), "requested-unusable") == []


def test_allowed_name_must_be_known() -> None:
    with pytest.raises(UnknownNameError, match="libother"):
        build(broken_by_policy(), allow=frozenset({"libother"}))


def test_allowed_release_is_used_with_reason_as_warning() -> None:
    allow = frozenset({"cudnn"})
    result = valid(build(broken_by_policy(), pins={"cudnn": "9.2.0"}, allow=allow))
    assert result.packages["cudnn"].status == "available"
    assert texts_of(result, "requested-unusable") == []
    (text,) = texts_of(result, "allowed-broken")
    assert text.startswith("cudnn: policy calls it broken, but it is allowed: Why")


def test_newest_release_is_selected_if_none_is_supported() -> None:
    data = set_data_of(cuda("12.2.2"), *tensorrts("10.3.0", "11.3.0"))
    result = build(data, "12.2.2", capabilities=("6.1",))
    assert result.redists["tensorrt"].release == "11.3.0"
    assert outline(result.packages["tensorrt"])[0] == "unsupported"


def with_tensorrt_8() -> SetData:
    cudnn_8 = library("libcudnn.so.8")
    tensorrt_8 = library("libnvinfer.so.8", "libcudnn.so.8")
    return set_data_of(
        cuda("12.0.1"),
        Release("tensorrt", "8.6.1", {"tensorrt": CUDA_12}, {"tensorrt": tensorrt_8}),
        *tensorrts("10.3.0"),
        Release("cudnn", "8.9.7", {"cudnn": CUDA_12}, {"cudnn": cudnn_8}),
        Release("cudnn", "9.1.0", {"cudnn": CUDA_12}),
    )


def test_additional_versions_satisfy_each_other() -> None:
    also = (("tensorrt", "8.6.1"), ("cudnn", "8.9.7"))
    for order in (also, also[::-1]):
        result = valid(build(with_tensorrt_8(), "12.0.1", also=order))
        tensorrt = result.packages["tensorrt_8_6"]
        assert (tensorrt.status, tensorrt.reasons) == ("available", ())
        providers = {need.soname: need.satisfied_by for need in tensorrt.needs}
        assert providers["libcudnn.so.8"] == InSet(attr="cudnn_8_9", output="lib")
        assert [entry.attr for entry in tensorrt.depends] == ["cudnn_8_9"]


def test_reason_names_pair_of_releases_that_fits() -> None:
    request: dict[str, Any] = {"cuda": "12.0.1", "capabilities": ("6.1",)}
    (first, *_) = build(with_tensorrt_8(), **request).packages["tensorrt"].reasons
    options = "--also cudnn=8.9.7 --also tensorrt=8.6.1"
    assert first.text.endswith(f"; tensorrt 8.6.1 with cudnn 8.9.7 fits: add `{options}`")
    also = (("cudnn", "8.9.7"), ("tensorrt", "8.6.1"))
    result = valid(build(with_tensorrt_8(), **request, also=also))
    assert result.packages["tensorrt_8_6"].status == "available"
    assert "fits" not in result.packages["tensorrt"].reasons[0].text


def test_reason_without_fitting_pair_names_none() -> None:
    data = set_data_of(cuda("12.0.1"), *tensorrts("8.6.1", "10.3.0"))
    (first, *_) = build(data, "12.0.1", capabilities=("6.1",)).packages["tensorrt"].reasons
    assert "fits" not in first.text


def test_additional_version_does_not_satisfy_main_version() -> None:
    pins, also = {"tensorrt": "8.6.1"}, (("cudnn", "8.9.7"),)
    result = build(with_tensorrt_8(), "12.0.1", pins=pins, also=also).packages["tensorrt"]
    assert result.status == "broken"
    assert any("the set has 9.1.0" in reason.text for reason in result.reasons)


@pytest.mark.parametrize(
    ("version", "low", "high", "expected"),
    [
        ("12.9.1", None, "12.9", True),
        ("12.9.1", None, "12.9.0", False),
        ("13.0.0", None, "12.9", False),
        ("0.7", "0.7.0", None, True),
        ("0.7.0", "0.7", "0.7", True),
        ("0.8.0", "0.7", "0.7", False),
        ("0.10.0", "0.9.0", None, True),
        ("8.9.7", None, "8", True),
        ("9.0.0", None, "8", False),
        ("12", "12.1", None, False),
        ("2.29.2-cuda12.9", "2.24.3", None, True),
        ("1", None, None, True),
    ],
)
def test_version_is_within_bounds(
    version: str, low: str | None, high: str | None, *, expected: bool
) -> None:
    assert is_within(Version.parse(version), Bounds(min=low, max=high)) is expected


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        ("1", "2", "1 to 2"),
        ("1", "1", "1"),
        ("1", None, "1 or newer"),
        (None, "2", "2 or older"),
        (None, None, "any"),
    ],
)
def test_bounds_are_described(low: str | None, high: str | None, text: str) -> None:
    assert bounds_text(Bounds(min=low, max=high)) == text


# -- hollow sets, missing features


def test_set_without_nvcc_requires_allow_hollow() -> None:
    data = set_data_of(Release("cuda", "12.9.1", {"cuda_cudart": [LINUX], "cuda_nvcc": [SBSA]}))
    with pytest.raises(UsageError, match="the set would be without cuda_nvcc") as raised:
        build(data)
    assert "cuda_nvcc is not published for linux-x86_64" in raised.value.message
    assert "use --allow-hollow to create the set anyway" in (raised.value.hint or "")
    result = build(data, allow_hollow=True)
    (hollow,) = [d for d in result.diagnostics if d.code == "hollow"]
    assert (hollow.level, hollow.subject) == ("warning", "cuda_nvcc")


def test_set_with_broken_nvcc_is_hollow() -> None:
    data = set_data_of(Release("cuda", "13.0.2", {"cuda_cudart": [LINUX], "cuda_nvcc": [LINUX]}))
    with pytest.raises(UsageError, match="libnvvm is not available"):
        build(data, "13.0.2")


def test_missing_features_require_permission() -> None:
    x = library("libx.so.1")
    known = {"cuda_nvcc": x, "cuda_cudart": x, "cuda_cccl": x}
    data = set_data_of(
        cuda(features=known, cuda_cccl=[LINUX], packages={f"lib{n}": [LINUX] for n in range(7)}),
        Release("cudnn", "9.1.0", {"cudnn": [f"{LINUX}/cuda12"]}),
    )
    with pytest.raises(IncompleteError, match="8 packages have no features") as raised:
        build(data, allow_missing_features=False)
    assert "cudnn (no feature file of cudnn 9.1.0)" in raised.value.message
    assert "lib0 (its feature file does not contain it)" in raised.value.message
    assert raised.value.message.endswith("; and 3 more")
    result = build(data)
    assert [d.code for d in result.diagnostics] == ["features-missing"]


def test_features_of_another_archive_are_ignored() -> None:
    release = cuda(features={"cuda_nvcc": library("libx.so.1")})
    features = InputFeatures(
        "e" * 64,
        is_overlay=False,
        examined={("cuda_nvcc", "0" * 64): next(iter(release.examined.values()))},
        unexamined={
            ("cuda_cudart", archive.sha256 or ""): "excluded by --platform"
            for archive in release.held.packages["cuda_cudart"].archives
        },
        legacy={},
    )
    data = set_data_of(release, read_features=lambda *_: features)
    with pytest.raises(IncompleteError) as raised:
        build(data, allow_missing_features=False)
    assert "cuda_cudart (excluded by --platform)" in raised.value.message
    assert "cuda_nvcc (its feature file describes another archive (not " in raised.value.message
    assert package(data, "cuda_nvcc").contents == {}


def test_strict_rejects_warnings_except_allowed_ones() -> None:
    release = cuda(platforms=(JETSON,), cuda_cccl=[JETSON])
    data = set_data_of(release)
    request = Request(platform=JETSON, allow_missing_features=True)
    (spec,) = specs_for(request, data, ["12.9.1"])
    assert build_one(spec, data, strict=True).diagnostics, "notes are no warnings either"
    data = set_data_of(release, policies=fixup("cuda_cudart", broken="b"))
    (hollow,) = specs_for(replace(request, allow_hollow=True), data, ["12.9.1"])
    with pytest.raises(IncompleteError, match=r"linux-aarch64: cuda_cudart: b$"):
        build_one(hollow, data, strict=True)
    assert build_one(hollow, data).packages["cuda_cudart"].status == "broken"


# -- additional versions: section 2.2


CUDNN = [
    Release("cudnn", "8.9.5", {"cudnn": [f"{LINUX}/cuda12", f"{JETSON}/cuda12"]}),
    Release("cudnn", "8.9.7", {"cudnn": CUDA_12, "cudnn_samples": ["source"]}),
    Release("cudnn", "9.1.0", {"cudnn": BOTH}),
]


def cudnn_data() -> SetData:
    return set_data_of(cuda(), cuda("13.0.2"), cuda("12.6.3", (LINUX, JETSON)), *CUDNN)


def test_additional_version_has_its_own_name() -> None:
    result = valid(build(cudnn_data(), also=(("cudnn", "8.9.7"),) * 2))
    assert result.packages["cudnn"].release == "9.1.0"
    added = result.packages["cudnn_8_9"]
    assert (added.attr, added.pname, added.release) == ("cudnn_8_9", "cudnn", "8.9.7")
    assert added.status == "available"
    assert "cudnn_samples_8_9" not in result.packages, (
        "withheld packages have no additional versions"
    )
    inputs = [(item.name, item.label) for item in result.inputs if item.kind == "manifest"]
    assert inputs == [("cuda", "12.9.1"), ("cudnn", "8.9.7"), ("cudnn", "9.1.0")]


@pytest.mark.parametrize(
    ("label", "platform", "also", "status"),
    [
        ("12.9.1", LINUX, "8.9.7", "available"),
        ("13.0.2", LINUX, "8.9.7", "unsupported"),
        ("12.6.3", JETSON, "8.9.7", "unsupported"),
        ("12.6.3", JETSON, "8.9.5", "available"),
    ],
)
def test_additional_version_is_available_for_supported_cuda(
    label: str, platform: str, also: str, status: str
) -> None:
    result = package(
        cudnn_data(), "cudnn_8_9", cuda=label, platform=platform, also=(("cudnn", also),)
    )
    assert result.status == status


def test_policy_of_package_applies_to_all_versions() -> None:
    data = set_data_of(cuda(), *CUDNN, policies=fixup("cudnn", broken="b"))
    result = build(data, also=(("cudnn", "8.9.7"),)).packages
    assert {result[name].status for name in ("cudnn", "cudnn_8_9")} == {"broken"}


@pytest.mark.parametrize(
    ("also", "message"),
    [
        ((("cudnn", "8.9.6"),), "no local manifest of cudnn '8.9.6'"),
        ((("cudn", "8.9.6"),), "no local redistributable is called 'cudn'"),
        (
            (("cudnn", "8.9.7"), ("cudnn", "8.9.5")),
            "8.9.5 would be cudnn_8_9, which is already in the set",
        ),
        ((("cuda", "12.6.3"),), "a set has only one CUDA release"),
    ],
)
def test_invalid_additional_versions_are_refused(
    also: tuple[tuple[str, str], ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        build(cudnn_data(), also=also)


# -- the compatibility driver: section 5


@pytest.mark.parametrize(
    ("label", "platform", "capabilities", "expected"),
    [
        ("12.6.3", JETSON, ["8.7"], True),
        ("12.3.2", JETSON, ["8.7"], False),
        ("13.2.0", LINUX, [], False),
        ("13.4.2", SBSA, ["8.7"], True),
        ("13.4.2", SBSA, ["8.7", "11.0"], False),
        ("13.4.2", SBSA, [], False),
    ],
)
def test_compat_run_path_is_first_on_jetson_only(
    label: str, platform: str, capabilities: Sequence[str], *, expected: bool
) -> None:
    data = set_data_of(
        cuda("12.6.3", (LINUX, JETSON), cuda_compat=[JETSON]),
        cuda("12.3.2", (LINUX, JETSON)),
        cuda("13.2.0", (LINUX, SBSA), cuda_compat=[LINUX]),
        cuda("13.4.2", (LINUX, SBSA), cuda_compat_orin=[SBSA]),
    )
    result = valid(build(data, label, platform, capabilities=tuple(capabilities))).packages
    assert result["cuda_cudart"].compat_runpath is expected
    name = "cuda_compat_orin" if label == "13.4.2" else "cuda_compat"
    assert not result[name].compat_runpath, "not in its own run path"
    assert not result["cuda_gdb"].compat_runpath, "not an available package"
    assert (result[name].status == "available") is (label != "12.3.2")


def test_compat_run_path_is_first_if_policy_requests() -> None:
    entry = rule(package="cuda_compat", platform=SBSA)
    data = set_data_of(
        cuda("13.4.2", (LINUX, SBSA), cuda_compat=[SBSA]),
        policies={"libraries": {"compat_run_path": [entry]}},
    )
    result = build(data, "13.4.2", SBSA, capabilities=("8.7",)).packages
    assert result["cuda_cudart"].compat_runpath
    assert not build(data, "13.4.2").packages["cuda_cudart"].compat_runpath


def test_withheld_compat_is_not_in_run_path() -> None:
    data = set_data_of(
        cuda("12.6.3", (LINUX, JETSON), cuda_compat=[JETSON]),
        policies=fixup("cuda_compat", withheld="not here"),
    )
    result = build(data, "12.6.3", JETSON, capabilities=("8.7",)).packages
    assert result["cuda_compat"].status == "withheld"
    assert not any(entry.compat_runpath for entry in result.values())
