"""Package sets: statuses, their reasons, requirements, further versions (build-rules 1.4, 4)."""

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
    library,
    package,
    set_data_of,
)

from cudaredist.errors import IncompleteError, UsageError
from cudaredist.packagesets.inputs import InputFeatures, SetData, bounds_text, is_within
from cudaredist.packagesets.invariants import check_set
from cudaredist.packagesets.spec import Request
from cudaredist.pipeline.sets.build_sets import build_one, specs_for
from cudaredist.primitives import Version
from cudaredist.schema.packageset import InSet, SetPackage
from cudaredist.schema.policy import Bounds

EVERY = (LINUX, SBSA, JETSON, WINDOWS)


def outline(entry: SetPackage) -> tuple[str, list[str]]:
    return entry.status, [reason.code for reason in entry.reasons]


# -- one status each


def test_every_status_with_its_reason_and_where_it_stands() -> None:
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
    found = build(data).packages
    expected = {
        "cuda_nvcc": ("available", []),
        "nsight_vse": ("foreign", ["other-operating-system"]),
        "mft": ("withheld", ["withheld-by-policy"]),
        "cuda_memcheck": ("unsupported", ["not-in-manifest"]),
        "libcudla": ("unsupported", ["platform-not-published"]),
        "cudnn": ("unsupported", ["variant-not-published"]),
        "libcusparse_lt": ("unsupported", ["cuda-version-unsupported"]),
        "cuda_gdb": ("unsupported", ["not-in-manifest"]),
    }
    assert {name: outline(found[name]) for name in expected} == expected
    sources = {name: found[name].reasons[0].source for name in expected if name != "cuda_nvcc"}
    assert sources == {
        "nsight_vse": "manifests",
        "mft": "policy/withheld.json",
        "cuda_memcheck": "cuda/redistrib_12.9.1.json",
        "libcudla": "cuda/redistrib_12.9.1.json",
        "cudnn": "cudnn/redistrib_9.1.0.json",
        "libcusparse_lt": "cusparselt/redistrib_0.9.0.json",
        "cuda_gdb": "manifests",
    }
    assert found["cuda_memcheck"].reasons[0].text == "cuda 12.9.1 has no cuda_memcheck"
    assert found["cudnn"].reasons[0].text == (
        "no release of cudnn supports this set; the newest, 9.1.0: "
        f"cudnn for {LINUX} is published for cuda11, not for CUDA 12.9.1"
    )
    assert found["mft"].archive is not None, "it is there, and left out on purpose"
    for name in ("nsight_vse", "cuda_memcheck", "libcudla", "cudnn", "libcusparse_lt"):
        assert (found[name].archive, found[name].outputs) == (None, ("out",))
    assert (found["cudnn"].release, found["cudnn"].version) == (None, None)


def test_of_no_release_the_newest_that_has_the_package_says_why() -> None:
    data = set_data_of(
        cuda(platforms=(LINUX, SBSA)),
        Release("cudnn", "9.2.0", {"cudnn": [SBSA]}),
        Release("cudnn", "9.1.0", {"cudnn": [SBSA], "cudnn_jit": [f"{LINUX}/cuda13"]}),
    )
    found = package(data, "cudnn_jit")
    assert outline(found) == ("unsupported", ["variant-not-published"])
    assert found.reasons[0].source == "cudnn/redistrib_9.1.0.json"


def test_what_was_split_off_says_where_its_files_lie_before() -> None:
    data = set_data_of(cuda("12.9.1"), cuda("13.0.2", cuda_crt=[LINUX]))
    found = package(data, "cuda_crt")
    assert found.reasons[0].text == (
        "cuda 12.9.1 has no cuda_crt; before CUDA 13.0 its files are in cuda_nvcc"
    )
    assert package(data, "libnvptxcompiler", cuda="13.0.2").reasons[0].code == "not-in-manifest"


def test_foreign_goes_before_withheld_before_unsupported_before_broken() -> None:
    fixups = [
        {"package": name, "broken": "b", "withheld": "w", "reason": "r", "reference": "r"}
        for name in ("libx", "nsight_vse", "liby")
    ]
    requirements = [
        {"package": "libz", "kind": kind, "needs_cuda": {"min": "13.0"}, "reason": kind}
        for kind in ("broken", "unsupported")
    ]
    for entry in requirements:
        entry["reference"] = "r"
    data = set_data_of(
        cuda(libx=[LINUX], liby=[SBSA], libz=[LINUX], nsight_vse=[WINDOWS]),
        policies={
            "fixups": {"fixups": fixups},
            "requirements": {"requirements": requirements},
        },
    )
    found = build(data)
    assert check_set(found) == []
    assert outline(found.packages["libx"]) == ("withheld", ["withheld-by-policy", "marked-broken"])
    assert found.packages["libx"].archive is not None
    assert outline(found.packages["liby"]) == (
        "withheld",
        ["withheld-by-policy", "platform-not-published"],
    )
    assert outline(found.packages["nsight_vse"]) == ("foreign", ["other-operating-system"])
    assert outline(found.packages["libz"]) == (
        "unsupported",
        ["cuda-version-unsupported", "cuda-version-unsupported"],
    )
    texts = [reason.text for reason in found.packages["libz"].reasons]
    assert texts[0].startswith("unsupported: "), "what decided comes first"
    assert found.packages["libz"].archive is None


def test_withheld_packages_are_withheld_wherever_they_could_be() -> None:
    data = set_data_of(cuda(platforms=(LINUX, WINDOWS), mft=[LINUX]))
    assert package(data, "mft").status == "withheld"
    assert package(data, "mft", platform=WINDOWS).status == "foreign"
    shipped = data.policies.withheld.withheld
    found = build(data).packages
    assert {found[name].status for name in shipped} == {"withheld"}
    assert len(shipped) == 12


def test_names_of_other_systems_are_never_available() -> None:
    names = ["nsight_vse", "visual_studio_integration", "nsight_nvtx", "libnvvm_samples"]
    data = set_data_of(cuda(platforms=EVERY, packages={name: [WINDOWS] for name in names}))
    for platform in (LINUX, SBSA, JETSON):
        found = build(data, platform=platform).packages
        assert {found[name].status for name in names} == {"foreign"}
    found = build(data, platform=WINDOWS).packages
    assert {found[name].status for name in names} == {"available"}


# -- requirements: section 1.4


def tensorrt(label: str, platform: str, *capabilities: str, cuda_label: str = "12.6.3") -> Any:
    places = [f"{platform}/cuda12", f"{platform}/cuda13"]
    data = set_data_of(
        cuda(cuda_label, (LINUX, SBSA, JETSON)), Release("tensorrt", label, {"tensorrt": places})
    )
    found = package(data, "tensorrt", cuda=cuda_label, platform=platform, capabilities=capabilities)
    return outline(found)


@pytest.mark.parametrize(
    ("label", "platform", "capabilities", "cuda_label", "status"),
    [
        ("10.0.0", LINUX, ["7.0"], "12.6.3", "available"),
        ("10.0.0", LINUX, ["6.1", "8.0"], "12.2.2", "unsupported"),
        ("9.3.0", LINUX, ["6.1"], "12.2.2", "available"),
        ("10.5.0", LINUX, ["7.5", "9.0a"], "12.6.3", "available"),
        ("10.5.0", LINUX, ["7.0"], "12.4.1", "unsupported"),
        ("10.4.0", LINUX, ["7.0"], "12.4.1", "available"),
        ("10.7.0", JETSON, ["8.7"], "12.4.1", "available"),
        ("10.7.0", JETSON, ["8.7"], "12.2.2", "unsupported"),
        ("10.7.0", JETSON, ["8.0"], "12.6.3", "unsupported"),
        ("10.7.0", JETSON, [], "12.6.3", "available"),
        ("10.7.0", SBSA, ["9.0"], "12.2.2", "available"),
    ],
)
def test_what_tensorrt_supports(
    label: str, platform: str, capabilities: Sequence[str], cuda_label: str, status: str
) -> None:
    found = tensorrt(label, platform, *capabilities, cuda_label=cuda_label)
    assert found[0] == status
    assert set(found[1]) <= {"capability-unsupported", "cuda-version-unsupported"}


@pytest.mark.parametrize(
    ("label", "capabilities", "status"),
    [
        ("12.6.3", ["8.7"], "available"),
        ("12.2.2", ["7.2", "8.7"], "available"),
        ("12.2.2", ["8.7", "7.2"], "available"),
        ("12.6.3", [], "available"),
        ("12.6.3", ["8.0"], "unsupported"),
    ],
)
def test_libcudla_is_for_xavier_and_orin(
    label: str, capabilities: Sequence[str], status: str
) -> None:
    data = set_data_of(cuda(label, (LINUX, JETSON), libcudla=[JETSON]))
    found = package(data, "libcudla", cuda=label, platform=JETSON, capabilities=tuple(capabilities))
    assert found.status == status
    if status == "unsupported":
        assert found.reasons[0].code == "capability-unsupported"
        assert found.reasons[0].source == "policy/requirements.json"


TAKEN_IN = {"withheld": {"withheld": {"libcublasmp": None}}}


def cublasmp_data(
    label: str = "0.6.0",
    cuda_label: str = "12.9.1",
    nccl: str = "2.29.2",
    nvshmem: str = "3.4.5",
    **policies: dict[str, Any],
) -> SetData:
    return set_data_of(
        cuda(cuda_label),
        Release("cublasmp", label, {"libcublasmp": [f"{LINUX}/cuda12", f"{LINUX}/cuda13"]}),
        Release("nccl", nccl, {"nccl": [LINUX]}),
        Release("nvshmem", nvshmem, {"libnvshmem": [LINUX]}),
        policies=TAKEN_IN | policies,
    )


@pytest.mark.parametrize(
    ("label", "cuda_label", "capabilities", "status"),
    [
        ("0.6.0", "12.4.1", ["7.0"], "available"),
        ("0.6.0", "12.2.2", ["6.1"], "unsupported"),
        ("0.6.0", "13.0.2", ["7.5"], "available"),
        ("0.5.1", "13.0.2", ["7.5"], "unsupported"),
        ("0.5.1", "13.0.2", ["8.0"], "available"),
        ("0.5.1", "12.9.1", ["7.0"], "available"),
    ],
)
def test_what_cublasmp_supports(
    label: str, cuda_label: str, capabilities: Sequence[str], status: str
) -> None:
    data = cublasmp_data(label, cuda_label)
    found = package(data, "libcublasmp", cuda=cuda_label, capabilities=tuple(capabilities))
    assert found.status == status


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, None),
        ({"nccl": "2.24.3", "nvshmem": "3.3.24"}, None),
        ({"nccl": "2.24.2"}, "requires nccl 2.24.3 or newer, but the set has 2.24.2"),
        ({"nvshmem": "3.3.9"}, "requires libnvshmem 3.3.24 or newer, but the set has 3.3.9"),
    ],
)
def test_versions_of_others(changes: dict[str, Any], text: str | None) -> None:
    found = package(cublasmp_data(**changes), "libcublasmp")
    if text is None:
        assert found.status == "available"
    else:
        assert outline(found) == ("broken", ["dependency-unavailable"])
        assert found.reasons[0].text.endswith(text)


@pytest.mark.parametrize("name", ["libnvshmem", "nccl"])
def test_what_is_required_must_be_available_whatever_its_place_in_the_alphabet(name: str) -> None:
    fixup = {"package": name, "broken": "it crashes", "reason": "r", "reference": "r"}
    found = package(cublasmp_data(fixups={"fixups": [fixup]}), "libcublasmp")
    assert outline(found) == ("broken", ["dependency-unavailable"])
    assert found.reasons[0].text.endswith(f"{name} is not available")


def test_cudss_needs_cuda_12() -> None:
    data = set_data_of(
        cuda("11.8.0"), cuda("12.0.1"), Release("cudss", "0.1.0", {"libcudss": [LINUX]})
    )
    assert package(data, "libcudss", cuda="12.0.1").status == "available"
    assert outline(package(data, "libcudss", cuda="11.8.0")) == (
        "broken",
        ["cuda-version-unsupported"],
    )


def test_tensorrt_8_needs_its_own_cudnn() -> None:
    data = set_data_of(
        cuda("12.0.1"),
        Release("tensorrt", "8.6.1", {"tensorrt": [f"{LINUX}/cuda12"]}),
        *(Release("cudnn", x, {"cudnn": [f"{LINUX}/cuda12"]}) for x in ("8.8.0", "8.9.7", "9.1.0")),
    )
    for label, status in (("8.8.0", "broken"), ("8.9.7", "available"), ("9.1.0", "broken")):
        found = package(data, "tensorrt", cuda="12.0.1", pins={"cudnn": label})
        assert found.status == status


def test_auto_release_with_unmet_capability_requirement_yields_to_an_older_one() -> None:
    labels = ("10.0.0", "10.3.0", "10.5.0", "11.3.0")
    data = set_data_of(
        cuda("12.4.1"),
        *(Release("tensorrt", x, {"tensorrt": [f"{LINUX}/cuda12"]}) for x in labels),
    )
    found = build(data, "12.4.1", capabilities=("7.0", "9.0"))
    assert found.packages["tensorrt"].status == "available"
    assert found.redists["tensorrt"].release == "10.3.0"
    reason = "TensorRT 10.5 supports capability 7.5 and newer: the set is also for 7.0"
    rejected = {entry.release: entry.reason for entry in found.redists["tensorrt"].newer_rejected}
    assert rejected == {"11.3.0": reason, "10.5.0": reason}
    assert build(data, "12.4.1", capabilities=("9.0",)).redists["tensorrt"].release == "11.3.0"


def test_auto_release_without_the_packages_it_needs_yields_to_an_older_one() -> None:
    data = set_data_of(
        cuda("12.9.1"),
        *(Release("cublasmp", x, {"libcublasmp": [f"{LINUX}/cuda12"]}) for x in ("0.5.1", "0.6.0")),
        Release("nccl", "2.20.3", {"nccl": [LINUX]}),
        Release("nvshmem", "3.4.5", {"libnvshmem": [LINUX]}),
        policies=TAKEN_IN,
    )
    found = build(data, "12.9.1")
    assert found.packages["libcublasmp"].status == "available"
    assert found.redists["cublasmp"].release == "0.5.1"
    (rejected,) = found.redists["cublasmp"].newer_rejected
    assert rejected.reason.endswith("requires nccl 2.24.3 or newer, but the set has 2.20.3")


def test_auto_release_without_any_that_fits_is_the_newest_published() -> None:
    labels = ("10.3.0", "11.3.0")
    data = set_data_of(
        cuda("12.2.2"),
        *(Release("tensorrt", x, {"tensorrt": [f"{LINUX}/cuda12"]}) for x in labels),
    )
    found = build(data, "12.2.2", capabilities=("6.1",))
    assert found.redists["tensorrt"].release == "11.3.0"
    assert outline(found.packages["tensorrt"])[0] == "unsupported"


def with_tensorrt_8() -> SetData:
    cudnn_8 = library("libcudnn.so.8")
    tensorrt_8 = library("libnvinfer.so.8", "libcudnn.so.8")
    return set_data_of(
        cuda("12.0.1"),
        Release("tensorrt", "8.6.1", {"tensorrt": [f"{LINUX}/cuda12"]}, {"tensorrt": tensorrt_8}),
        Release("tensorrt", "10.3.0", {"tensorrt": [f"{LINUX}/cuda12"]}),
        Release("cudnn", "8.9.7", {"cudnn": [f"{LINUX}/cuda12"]}, {"cudnn": cudnn_8}),
        Release("cudnn", "9.1.0", {"cudnn": [f"{LINUX}/cuda12"]}),
    )


def test_additional_versions_satisfy_the_requirements_of_each_other() -> None:
    also = (("tensorrt", "8.6.1"), ("cudnn", "8.9.7"))
    for order in (also, also[::-1]):
        found = build(with_tensorrt_8(), "12.0.1", also=order)
        tensorrt = found.packages["tensorrt_8_6"]
        assert (tensorrt.status, tensorrt.reasons) == ("available", ())
        providers = {need.soname: need.satisfied_by for need in tensorrt.needs}
        assert providers["libcudnn.so.8"] == InSet(attr="cudnn_8_9", output="lib")
        assert [entry.attr for entry in tensorrt.depends] == ["cudnn_8_9"]
        assert check_set(found) == []


def test_additional_version_does_not_satisfy_the_main_version_of_another_package() -> None:
    pins, also = {"tensorrt": "8.6.1"}, (("cudnn", "8.9.7"),)
    found = build(with_tensorrt_8(), "12.0.1", pins=pins, also=also).packages["tensorrt"]
    assert found.status == "broken"
    assert any("the set has 9.1.0" in reason.text for reason in found.reasons)


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
def test_bounds(version: str, low: str | None, high: str | None, *, expected: bool) -> None:
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
def test_bounds_in_words(low: str | None, high: str | None, text: str) -> None:
    assert bounds_text(Bounds(min=low, max=high)) == text


# -- hollow sets, missing features


def test_a_set_without_nvcc_is_refused_unless_asked_for() -> None:
    data = set_data_of(Release("cuda", "12.9.1", {"cuda_cudart": [LINUX], "cuda_nvcc": [SBSA]}))
    with pytest.raises(UsageError, match="the set would be without cuda_nvcc") as caught:
        build(data)
    assert "cuda_nvcc is not published for linux-x86_64" in caught.value.message
    assert "use --allow-hollow to create the set anyway" in (caught.value.hint or "")
    found = build(data, allow_hollow=True)
    assert [(d.level, d.code, d.subject) for d in found.diagnostics if d.code == "hollow"] == [
        ("warning", "hollow", "cuda_nvcc")
    ]


def test_a_set_whose_nvcc_is_broken_is_hollow_too() -> None:
    data = set_data_of(Release("cuda", "13.0.2", {"cuda_cudart": [LINUX], "cuda_nvcc": [LINUX]}))
    with pytest.raises(UsageError, match="libnvvm is not available"):
        build(data, "13.0.2")


def test_missing_features_are_refused_unless_asked_for() -> None:
    x = library("libx.so.1")
    known = {"cuda_nvcc": x, "cuda_cudart": x, "cuda_cccl": x}
    data = set_data_of(
        cuda(features=known, cuda_cccl=[LINUX], packages={f"lib{n}": [LINUX] for n in range(7)}),
        Release("cudnn", "9.1.0", {"cudnn": [LINUX]}),
    )
    with pytest.raises(IncompleteError, match="8 packages have no features") as caught:
        build(data, allow_missing_features=False)
    assert "cudnn (no feature file of cudnn 9.1.0)" in caught.value.message
    assert "lib0 (its feature file does not contain it)" in caught.value.message
    assert caught.value.message.endswith("; and 3 more")
    found = build(data)
    assert [d.code for d in found.diagnostics] == ["features-missing"]


def test_features_of_another_archive_count_for_nothing() -> None:
    release = cuda(features={"cuda_nvcc": library("libx.so.1")})
    held = InputFeatures(
        "e" * 64,
        is_overlay=False,
        examined={("cuda_nvcc", "0" * 64): next(iter(release.examined.values()))},
        unexamined={
            ("cuda_cudart", archive.sha256 or ""): "excluded by --platform"
            for archive in release.held.packages["cuda_cudart"].archives
        },
        legacy={},
    )
    data = set_data_of(release, read_features=lambda *_: held)
    with pytest.raises(IncompleteError) as caught:
        build(data, allow_missing_features=False)
    assert "cuda_cudart (excluded by --platform)" in caught.value.message
    assert "cuda_nvcc (its feature file describes another archive (not " in caught.value.message
    assert package(data, "cuda_nvcc").contents == {}


def test_strict_refuses_warnings_but_not_what_was_allowed() -> None:
    release = cuda(platforms=(JETSON,), cuda_cccl=[JETSON])
    data = set_data_of(release)
    request = Request(platform=JETSON, allow_missing_features=True)
    (spec,) = specs_for(request, data, ["12.9.1"])
    assert build_one(spec, data, strict=True).diagnostics, "notes are no warnings either"
    fixup = {"package": "cuda_cudart", "broken": "b", "reason": "r", "reference": "r"}
    data = set_data_of(release, policies={"fixups": {"fixups": [fixup]}})
    (hollow,) = specs_for(replace(request, allow_hollow=True), data, ["12.9.1"])
    with pytest.raises(IncompleteError, match=r"linux-aarch64: cuda_cudart: b$"):
        build_one(hollow, data, strict=True)
    assert build_one(hollow, data).packages["cuda_cudart"].status == "broken"


# -- further versions: section 2.2


CUDNN = [
    Release("cudnn", "8.9.5", {"cudnn": [f"{LINUX}/cuda12", f"{JETSON}/cuda12"]}),
    Release("cudnn", "8.9.7", {"cudnn": [f"{LINUX}/cuda12"], "cudnn_samples": ["source"]}),
    Release("cudnn", "9.1.0", {"cudnn": [f"{LINUX}/cuda12", f"{LINUX}/cuda13"]}),
]


def cudnn_data() -> SetData:
    return set_data_of(cuda(), cuda("13.0.2"), cuda("12.6.3", (LINUX, JETSON)), *CUDNN)


def test_a_further_version_has_its_own_name() -> None:
    found = build(cudnn_data(), also=(("cudnn", "8.9.7"),))
    assert check_set(found) == []
    assert found.packages["cudnn"].release == "9.1.0"
    further = found.packages["cudnn_8_9"]
    assert (further.attr, further.pname, further.release) == ("cudnn_8_9", "cudnn", "8.9.7")
    assert further.status == "available"
    assert "cudnn_samples_8_9" not in found.packages, "what is withheld has no further versions"
    inputs = [(item.name, item.label) for item in found.inputs if item.kind == "manifest"]
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
def test_its_range_decides_whether_it_is_available(
    label: str, platform: str, also: str, status: str
) -> None:
    found = package(
        cudnn_data(), "cudnn_8_9", cuda=label, platform=platform, also=(("cudnn", also),)
    )
    assert found.status == status


def test_policy_of_a_package_is_for_all_its_versions() -> None:
    fixup = {"package": "cudnn", "broken": "b", "reason": "r", "reference": "r"}
    data = set_data_of(cuda(), *CUDNN, policies={"fixups": {"fixups": [fixup]}})
    found = build(data, also=(("cudnn", "8.9.7"),)).packages
    assert {found[name].status for name in ("cudnn", "cudnn_8_9")} == {"broken"}


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
def test_further_versions_that_cannot_be(also: tuple[tuple[str, str], ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build(cudnn_data(), also=also)


def test_the_same_further_version_twice_is_one() -> None:
    found = build(cudnn_data(), also=(("cudnn", "8.9.7"), ("cudnn", "8.9.7")))
    assert found.packages["cudnn_8_9"].status == "available"


# -- the compatibility driver: section 5


@pytest.mark.parametrize(
    ("label", "platform", "capabilities", "expected"),
    [
        ("12.6.3", JETSON, ["8.7"], True),
        ("12.3.2", JETSON, ["8.7"], False),
        ("13.2.0", LINUX, [], False),
    ],
)
def test_compat_comes_first_on_jetson_only(
    label: str, platform: str, capabilities: Sequence[str], *, expected: bool
) -> None:
    data = set_data_of(
        cuda("12.6.3", (LINUX, JETSON), cuda_compat=[JETSON]),
        cuda("12.3.2", (LINUX, JETSON)),
        cuda("13.2.0", (LINUX, SBSA), cuda_compat=[LINUX]),
    )
    found = build(data, label, platform, capabilities=tuple(capabilities)).packages
    assert found["cuda_cudart"].compat_runpath is expected
    assert not found["cuda_compat"].compat_runpath, "never before itself"
    assert not found["cuda_gdb"].compat_runpath, "which is not available"
    assert (found["cuda_compat"].status == "available") is (label != "12.3.2")


def test_compat_comes_first_where_a_user_asks_for_it() -> None:
    entry = {"package": "cuda_compat_orin", "platform": SBSA, "reason": "r", "reference": "r"}
    data = set_data_of(
        cuda("13.4.2", (LINUX, SBSA), cuda_compat_orin=[SBSA]),
        policies={"libraries": {"compat_run_path": [entry]}},
    )
    found = build(data, "13.4.2", SBSA, capabilities=("8.7",)).packages
    assert found["cuda_cudart"].compat_runpath
    assert not build(data, "13.4.2").packages["cuda_cudart"].compat_runpath


def test_without_compat_nothing_comes_first() -> None:
    fixup = {"package": "cuda_compat", "withheld": "not here", "reason": "r", "reference": "r"}
    data = set_data_of(
        cuda("12.6.3", (LINUX, JETSON), cuda_compat=[JETSON]),
        policies={"fixups": {"fixups": [fixup]}},
    )
    found = build(data, "12.6.3", JETSON, capabilities=("8.7",)).packages
    assert found["cuda_compat"].status == "withheld"
    assert not any(entry.compat_runpath for entry in found.values())
