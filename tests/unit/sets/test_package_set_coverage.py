"""Tests of the coverage of capabilities in sets, and of releases selected by it."""

from typing import Any

import pytest
from support.set_inputs import (
    LINUX,
    SBSA,
    Release,
    build,
    cuda,
    elf,
    features_of,
    package,
    set_data_of,
    texts,
    with_code,
)

from cudaredist.binaries.file_facts import DeviceImages
from cudaredist.commands.build.build_sets import build_one, specs_for
from cudaredist.errors import IncompleteError
from cudaredist.formats.features import ArchiveFeatures
from cudaredist.formats.packageset import PackageSet
from cudaredist.sets.inputs import SetData
from cudaredist.sets.spec import Request


def of_earlier_rules(features: ArchiveFeatures) -> ArchiveFeatures:
    return features.model_copy(update={"code_by_file": None})


def cutensor(label: str, *modules: dict[str, int] | None) -> Release:
    features = {"libcutensor": with_code(*modules)}
    return Release("cutensor", label, {"libcutensor": [f"{LINUX}/cuda12"]}, features)


VOLTA, TURING = {"sm_70 sm_80": 65}, {"sm_75 sm_80": 200}
LEFTOVER = {"compute_50": 1, "sm_75": 200, "sm_80": 347}
VOLTA_PTX = {"compute_70": 9, "sm_80": 9}
DATA = (cuda(), cutensor("2.2.0", VOLTA), cutensor("2.3.0", VOLTA_PTX), cutensor("2.8.1", LEFTOVER))


def build_for(data: SetData, *capabilities: str, **request: Any) -> PackageSet:
    return build(data, capabilities=capabilities, **request)


@pytest.mark.parametrize(
    ("least", "release", "rejected"),
    [
        (None, "2.8.1", {}),
        ("ptx", "2.3.0", {"2.8.1": "partial code for 7.0 (0 of 1 files, ptx 1 of 348 modules)"}),
        (
            "native",
            "2.2.0",
            {
                "2.8.1": "partial code for 7.0 (0 of 1 files, ptx 1 of 348 modules)",
                "2.3.0": "only PTX for 7.0",
            },
        ),
    ],
)
def test_required_coverage_selects_older_release_and_explains_newer_ones(
    least: str | None, release: str, rejected: dict[str, str]
) -> None:
    package_set = build_for(set_data_of(*DATA), "7.0", "8.0", require_coverage=least)
    redist = package_set.redists["cutensor"]
    assert redist.release == package_set.packages["libcutensor"].release == release
    assert {entry.release: entry.reason for entry in redist.newer_rejected} == {
        label: f"{reason}; the newest release with it is {release}"
        for label, reason in rejected.items()
    }
    assert texts(package_set, "older-release") == [
        f"{label} is not selected: {reason}; the newest release with it is {release}"
        for label, reason in list(rejected.items())[:1]
    ]


def test_release_without_coverage_is_reason_and_warning() -> None:
    """A newer release for another CUDA is not the reason."""
    for_later = Release("cutensor", "2.9.0", {"libcutensor": [f"{LINUX}/cuda99"]})
    data = set_data_of(cuda(), cutensor("2.7.0", TURING), cutensor("2.8.1", TURING), for_later)
    package_set = build_for(data, "7.0", require_coverage="ptx")
    found = package_set.packages["libcutensor"]
    assert (found.status, found.coverage) == ("unsupported", {})
    (reason,) = found.reasons
    assert (reason.code, reason.text) == (
        "capability-unsupported",
        "no release of cutensor supports this set; the newest, 2.8.1: no code for 7.0",
    )
    (warning,) = (d for d in package_set.diagnostics if d.code == "older-release")
    assert (warning.level, warning.text) == ("warning", "2.8.1 is not selected: no code for 7.0")


def test_older_build_without_coverage_is_no_reason() -> None:
    """If the newest build is for a later CUDA, the older ones are examined, too."""
    newest, older = (
        Release("nccl", label, {"nccl": [LINUX]}, {"nccl": with_code(modules)})
        for label, modules in (("2.20.5-cuda12.9", VOLTA), ("2.19.3-cuda12.4", TURING))
    )
    data = set_data_of(cuda("12.6.3"), newest, older)
    redist = build(data, "12.6.3", capabilities=("7.0",), require_coverage="ptx").redists["nccl"]
    assert (redist.release, redist.newer_rejected) == (newest.label, ())


def test_coverage_is_reason_next_to_unpublished_package() -> None:
    packages = {"liba": [SBSA], "libb": [LINUX]}
    mine = Release("mine", "1.0.0", packages, {"libb": with_code(TURING)})
    found = build_for(set_data_of(cuda(), mine), "7.0", require_coverage="ptx").packages
    assert [found[name].reasons[0].code for name in packages] == [
        "platform-not-published",
        "capability-unsupported",
    ]


def test_required_coverage_does_not_change_pinned_release() -> None:
    package_set = build_for(
        set_data_of(*DATA), "7.0", require_coverage="native", pins={"cutensor": "2.8.1"}
    )
    assert package_set.redists["cutensor"].release == "2.8.1"
    assert package_set.packages["libcutensor"].coverage["7.0"].value == "partial"


@pytest.mark.parametrize("features", [None, {"libcutensor": of_earlier_rules(with_code(VOLTA))}])
def test_required_coverage_rejects_release_of_unknown_coverage(
    features: dict[str, ArchiveFeatures] | None,
) -> None:
    unknown = Release("cutensor", "2.9.0", {"libcutensor": [LINUX]}, features)
    package_set = build_for(set_data_of(*DATA, unknown), "7.0", require_coverage="native")
    redist = package_set.redists["cutensor"]
    assert redist.release == "2.2.0"
    assert redist.newer_rejected[0].reason == (
        "coverage of 7.0 is unknown; the newest release with it is 2.2.0"
    )


def test_coverage_lists_each_effective_capability() -> None:
    found = package(set_data_of(*DATA), "libcutensor", capabilities=("7.0", "7.5", "8.6"))
    values = {"7.0": "partial", "7.5": "native", "8.6": "native"}
    assert {name: coverage.value for name, coverage in found.coverage.items()} == values
    counts = {"files": 1, "all_files": 1, "native": 200, "ptx": 1, "modules": 348}
    assert found.coverage["7.5"].model_dump() == {"value": "native", **counts}


def test_coverage_without_device_code_or_features_is_host_only_or_unknown() -> None:
    examined = with_code(None)
    data = set_data_of(cuda(features={"cuda_nvcc": examined}))
    packages = build_for(data, "8.0").packages
    assert packages["cuda_nvcc"].coverage["8.0"].model_dump() == {"value": "host-only"}
    assert packages["cuda_cudart"].coverage["8.0"].model_dump() == {"value": "unknown"}
    earlier = set_data_of(cuda(features={"cuda_nvcc": of_earlier_rules(examined)}))
    package_set = build_for(earlier, "8.0")
    assert package_set.packages["cuda_nvcc"].coverage["8.0"].value == "unknown"
    assert [
        (d.level, d.subject) for d in package_set.diagnostics if d.code == "coverage-unknown"
    ] == [("note", "cuda_nvcc")]


def test_coverage_counts_only_files_of_set() -> None:
    nested = features_of(
        {
            f"lib/{major}/libx.so.1": elf(
                "libx.so.1", images=DeviceImages(sizes={name: (9000, 9000)}, modules={name: 3})
            )
            for major, name in (("11", "sm_70"), ("12", "sm_80"))
        }
    )
    release = Release("cutensor", "2.0.0", {"libcutensor": [LINUX]}, {"libcutensor": nested})
    found = package(set_data_of(cuda(), release), "libcutensor", capabilities=("7.0", "8.0"))
    assert {name: c.value for name, c in found.coverage.items()} == {"7.0": "none", "8.0": "native"}


def test_missing_coverage_is_a_warning_that_strict_rejects() -> None:
    data = set_data_of(cuda(), cutensor("2.8.1", LEFTOVER, TURING), features_known())
    package_set = build_for(data, "7.0", "8.0")
    found = [d for d in package_set.diagnostics if "coverage" in d.code]
    partial = "partial code for 7.0 (0 of 2 files, ptx 1 of 548 modules)"
    assert [(d.level, d.code, d.subject, d.text) for d in found] == [
        ("warning", "coverage-none", "nccl", "no code for 7.0, 8.0"),
        ("warning", "coverage-partial", "libcutensor", partial),
    ]
    request = Request(platform=LINUX, capabilities=("7.0",), allow_missing_features=True)
    (spec,) = specs_for(request, data, ["12.9.1"])
    with pytest.raises(IncompleteError, match=r"nccl: no code for 7\.0"):
        build_one(spec, data, strict=True)


def test_missing_coverage_of_default_capabilities_is_accepted_by_strict() -> None:
    data = set_data_of(cuda(cuda_cccl=[LINUX]), cutensor("2.8.1", {"sm_90": 9}))
    request = Request(platform=LINUX, allow_missing_features=True)
    (spec,) = specs_for(request, data, ["12.9.1"])
    package_set = build_one(spec, data, strict=True)
    assert package_set.packages["libcutensor"].coverage["7.5"].value == "none"
    assert [d.code for d in package_set.diagnostics if d.subject == "libcutensor"] == [
        "coverage-none"
    ]


def features_known() -> Release:
    return Release("nccl", "2.20.3", {"nccl": [LINUX]}, {"nccl": with_code({"sm_90": 1})})
