"""Tests of explain: facts with their sources, and conflicting sources."""

import json

import pytest
from support.headers import ERAS, Checks, host_config
from support.ptxas import PROFILES_11_8, PROFILES_12_9, PROFILES_13_4, Profile, ptxas, scan

from cudaredist.errors import UnknownNameError
from cudaredist.schema.tables import (
    BinarySource,
    GpuPolicy,
    Gpus,
    HeaderSource,
    LowerBound,
    NvccCompat,
    NvccPolicy,
    NvccRelease,
    OverlayEntry,
    PolicyFact,
    UnseenRelease,
)
from cudaredist.tables.explain_gpu import explain_cuda, explain_gpu
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Fact, Topic
from cudaredist.tables.gpus.gpu_table import KnownGpus, make_table
from cudaredist.tables.nvcc_compat.compilers import read_header
from cudaredist.tables.nvcc_compat.nvcc_table import make_compat, make_release

NVCC_POLICY = NvccPolicy(
    schema_version=1,
    lower_bounds={
        "gcc": LowerBound(min=6, reason="so it is written", reference="Guide 13"),
        "clang": LowerBound(min=7, reason="so it is written", reference="Guide 13"),
    },
    unseen_releases={
        minor: UnseenRelease.model_validate_json(
            json.dumps(
                {
                    "compilers": {
                        "gcc": {"min": 6, "max": 10, "note": "nvcc takes 11"},
                        "unheard-of": {"min": None, "max": None},
                    },
                    "reason": "never seen",
                    "reference": "Notes 11",
                }
            )
        )
        for minor in ("11.4", "13.4")
    },
)
GPU_POLICY = GpuPolicy(
    schema_version=1,
    overlay={
        "7.0": OverlayEntry(
            jetson=False,
            products=("V100",),
            reason="no Tegra",
            reference="page",
            facts=(
                PolicyFact(field="first_cuda", value="9.0", reason="PTX 6.0", reference="PTX"),
                PolicyFact(
                    field="dont_default_after", value="12.5", reason="TensorRT", reference="table"
                ),
            ),
        ),
        "7.2": OverlayEntry(
            jetson=True,
            products=("Jetson AGX Xavier",),
            reason="Tegra",
            reference="page",
            facts=(
                PolicyFact(field="last_cuda", value="12.2", reason="packagers", reference="table"),
            ),
        ),
        "7.5": OverlayEntry(
            jetson=False,
            products=("T4",),
            reason="no Tegra",
            reference="page",
            facts=(PolicyFact(field="last_cuda", value="13.0", reason="tests", reference="table"),),
        ),
        "10.0": OverlayEntry(
            jetson=False,
            products=("B200",),
            reason="no Tegra",
            reference="page",
            facts=(PolicyFact(field="first_cuda", value="12.7", reason="PTX", reference="PTX"),),
        ),
        "10.1": OverlayEntry(
            jetson=True,
            products=("Jetson Thor (T5000, T4000)",),
            reason="Tegra",
            reference="page",
            facts=(PolicyFact(field="renamed_to", value="11.0", reason="13.0", reference="notes"),),
        ),
        "11.0": OverlayEntry(
            jetson=True, products=("Jetson T5000",), reason="Tegra", reference="page"
        ),
    },
)


def release(version: str, checks: Checks) -> NvccRelease:
    source = HeaderSource(
        channel="wheels",
        package="cuda_nvcc",
        version=version,
        archive_sha256="a" * 64,
        path="include/crt/host_config.h",
        file_sha256="b" * 64,
    )
    return make_release(version, source, read_header(host_config(checks)), NVCC_POLICY)


@pytest.fixture(scope="module")
def compat() -> NvccCompat:
    releases = {
        "12.2.0": release("12.2.91", ERAS["12.2.0"]),
        "12.2.1": release("12.2.128", ERAS["12.2.1"]),
        "12.9.0": release("12.9.41", ERAS["12.4"]),
        "13.4.0": release("13.4.59", ERAS["13.4"]),
    }
    return make_compat(releases, NVCC_POLICY)


@pytest.fixture(scope="module")
def gpus() -> Gpus:
    def known(profiles: list[Profile]) -> KnownGpus:
        source = BinarySource(
            channel="redist",
            package="cuda_nvcc",
            archive_sha256="a" * 64,
            path="bin/ptxas",
            file_sha256="c" * 64,
        )
        return KnownGpus(source=source, families=scan([ptxas(profiles)]))

    releases = {
        "11.8.0": known([*PROFILES_11_8]),
        "12.9.0": known([*PROFILES_12_9]),
        "13.4.0": known([*PROFILES_13_4]),
    }
    return make_table(releases, GPU_POLICY)[0]


def facts(topic: Topic) -> dict[str, Fact]:
    return {fact.name: fact for fact in topic.facts}


# -- nvcc


def test_explain_nvcc_lists_facts(compat: NvccCompat) -> None:
    answer = explain_nvcc("13.4", compat, NVCC_POLICY)
    assert answer.title == "nvcc of CUDA 13.4.0"
    facts_by_name = facts(answer)
    assert facts_by_name["nvcc"].value == "13.4.59"
    assert facts_by_name["gcc.max"].value == 16
    assert facts_by_name["gcc.max"].basis == "derived"
    assert (
        facts_by_name["gcc.max"].source == "include/crt/host_config.h of cuda_nvcc 13.4.59 (wheels)"
    )
    assert facts_by_name["gcc.max"].file_sha256 == "b" * 64
    assert facts_by_name["gcc.max"].statement == "GCC: 16 is the newest accepted"
    assert facts_by_name["msvc.max"].statement == (
        "Visual C++: _MSC_VER 1959 (Visual Studio 2026) is the newest accepted"
    )
    assert facts_by_name["icx"].statement == "Intel ICX: every version is refused"
    assert facts_by_name["nvhpc"].value == "unchecked"


def test_explain_nvcc_lists_documented_and_derived_bounds(compat: NvccCompat) -> None:
    facts_by_name = facts(explain_nvcc("13.4", compat, NVCC_POLICY))
    gcc, clang = facts_by_name["gcc.min"], facts_by_name["clang.min"]
    assert (gcc.value, gcc.basis, gcc.source) == (6, "documented", "Guide 13 (policy/nvcc.json)")
    assert gcc.file_sha256 is None
    assert gcc.reason == "so it is written"
    assert [(claim.value, claim.reason) for claim in gcc.otherwise] == [
        (None, "the header has no lower bound")
    ]
    assert [claim.value for claim in clang.otherwise] == ["3.3"]
    # The header and the documentation disagree.
    (claim,) = facts_by_name["gcc.max"].otherwise
    assert (claim.value, claim.source, claim.reason) == (10, "Notes 11", "nvcc takes 11")


def test_explain_nvcc_names_differing_releases_of_minor(compat: NvccCompat) -> None:
    facts_by_name = facts(explain_nvcc("12.2", compat, NVCC_POLICY))
    assert facts_by_name["releases"].value == ("12.2.0",)
    others = {
        name: [(claim.value, claim.reason) for claim in fact.otherwise]
        for name, fact in facts_by_name.items()
    }
    assert others["grace-clang.max"] == [("unchecked", "CUDA 12.2.0")]
    assert others["gcc.max"] == []
    stale = 'line 62: the text of #error is "less than 16", but its #if accepts 3 to 16'
    (first, second) = others["clang.max"]
    assert first == (15, "CUDA 12.2.0")
    assert str(second[0]).partition(":")[2] == stale.partition(":")[2]
    older = facts(explain_nvcc("12.2.0", compat, NVCC_POLICY))
    assert [claim.value for claim in older["grace-clang"].otherwise] == ["range"]


def test_explain_nvcc_uses_documentation_of_unseen_release(compat: NvccCompat) -> None:
    facts_by_name = facts(explain_nvcc("11.4", compat, NVCC_POLICY))
    assert "nvcc" not in facts_by_name
    assert facts_by_name["gcc.max"].basis == "documented"
    assert facts_by_name["gcc.max"].source == "Notes 11 (policy/nvcc.json)"
    assert [claim.value for claim in facts_by_name["gcc.max"].otherwise] == ["nvcc takes 11"]
    assert facts_by_name["unheard-of.max"].statement == "unheard-of: no newest version"
    assert facts_by_name["unheard-of.min"].statement == "unheard-of: no oldest version"


def test_explain_nvcc_of_unknown_release_fails(compat: NvccCompat) -> None:
    with pytest.raises(UnknownNameError, match=r"no CUDA release is called '12\.7'"):
        explain_nvcc("12.7", compat, NVCC_POLICY)


# -- gpu


@pytest.mark.parametrize("name", ["sm_104", "compute_104", "104"])
def test_explain_gpu_of_unknown_target_suggests_capabilities(name: str, gpus: Gpus) -> None:
    with pytest.raises(UnknownNameError, match=r"capability is called '10\.4'") as raised:
        explain_gpu(name, gpus, GPU_POLICY)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("did you mean 10.")


@pytest.mark.parametrize("name", ["10.3f", "sm_103f", "compute_103f", "103f"])
def test_explain_gpu_lists_facts_of_capability(name: str, gpus: Gpus) -> None:
    (answer,) = explain_gpu(name, gpus, GPU_POLICY)
    assert answer.title == "compute capability 10.3f (Blackwell)"
    facts_by_name = facts(answer)
    assert facts_by_name["runs_on"].value == ("10.3", "10.7")
    assert facts_by_name["runs_on"].reason is not None
    assert "one family" in facts_by_name["runs_on"].reason
    assert facts_by_name["first_cuda"].value == "12.9"
    assert facts_by_name["first_cuda"].source == "bin/ptxas of cuda_nvcc in CUDA 12.9.0 (redist)"
    assert facts_by_name["first_cuda"].file_sha256 == "c" * 64
    assert facts_by_name["last_cuda"].value is None
    assert "CUDA 13.4.0" in facts_by_name["last_cuda"].statement
    assert facts_by_name["jetson"].source == "no policy names it"
    assert facts_by_name["products"].statement == "example products: none"


def test_explain_gpu_lists_policy_and_ptxas_claims(gpus: Gpus) -> None:
    xavier = facts(explain_gpu("7.2", gpus, GPU_POLICY)[0])
    assert xavier["last_cuda"].value == "12.9"
    assert [(claim.value, claim.source) for claim in xavier["last_cuda"].otherwise] == [
        ("12.2", "table (policy/gpus.json)")
    ]
    assert xavier["first_cuda"].value == "11.8"
    assert xavier["first_cuda"].statement.endswith("the oldest that was read")
    assert xavier["jetson"].value is True
    volta = facts(explain_gpu("7.0", gpus, GPU_POLICY)[0])
    assert (volta["first_cuda"].value, volta["first_cuda"].basis) == ("9.0", "documented")
    assert [claim.value for claim in volta["first_cuda"].otherwise] == ["11.8"]
    assert volta["dont_default_after"].reason == "TensorRT"
    blackwell = facts(explain_gpu("10.0", gpus, GPU_POLICY)[0])
    assert (blackwell["first_cuda"].value, blackwell["first_cuda"].basis) == ("12.9", "derived")
    assert [claim.value for claim in blackwell["first_cuda"].otherwise] == ["12.7"]


def test_explain_gpu_without_sources_lists_fewer_facts(gpus: Gpus) -> None:
    facts_by_name = facts(
        explain_gpu("7.0", gpus.model_copy(update={"sources": {}}), GPU_POLICY)[0]
    )
    assert list(facts_by_name) == ["runs_on", "jetson", "products", "dont_default_after"]


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("jetson xavier", ["7.2"]),
        ("Jetson Thor", ["10.1", "11.0"]),
        ("T5000", ["10.1", "11.0"]),
        ("jetson", ["7.2", "10.1", "11.0"]),
        ("Volta", ["7.0", "7.2"]),
        ("rubin", ["10.7"]),
        # Thor was renamed: both names are the same chip.
        ("10.1", ["10.1", "11.0"]),
        ("sm_101", ["10.1", "11.0"]),
        ("11.0", ["10.1", "11.0"]),
        ("9.0", ["9.0"]),
    ],
)
def test_explain_gpu_finds_capabilities_by_product_and_architecture(
    name: str, names: list[str], gpus: Gpus
) -> None:
    answer = explain_gpu(name, gpus, GPU_POLICY)
    assert [topic.title.split()[2] for topic in answer] == names


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Jetson Xavvier", "did you mean jetson agx xavier"),
        ("9.0f", "did you mean 9.0 or 9.0a"),
        ("sm_66", "known: 10.0, 10.0a"),
        ("", "known: 10.0, 10.0a"),
    ],
)
def test_explain_gpu_of_unknown_name_suggests_gpu(name: str, hint: str, gpus: Gpus) -> None:
    with pytest.raises(UnknownNameError) as raised:
        explain_gpu(name, gpus, GPU_POLICY)
    assert raised.value.exit_code == 2
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(hint)


# -- cuda


def test_explain_cuda_lists_topics(compat: NvccCompat, gpus: Gpus) -> None:
    answer = explain_cuda("12.9", compat, gpus, NVCC_POLICY)
    assert [topic.title for topic in answer] == [
        "nvcc of CUDA 12.9.0",
        "compute capabilities of CUDA 12.9",
    ]
    facts_by_name = facts(answer[1])
    assert facts_by_name["default"].value == ("7.5", "8.0", "9.0", "10.0", "10.3")
    assert facts_by_name["default"].basis == "computed"
    assert isinstance(facts_by_name["supported"].value, tuple)
    assert "10.3f" in facts_by_name["supported"].value
    assert isinstance(facts_by_name["known"].value, tuple)
    assert set(facts_by_name["known"].value) - set(facts_by_name["supported"].value) == {"7.2"}
    assert facts_by_name["known"].source == "bin/ptxas of cuda_nvcc in CUDA 12.9.0 (redist)"
    assert [claim.value for claim in facts_by_name["supported"].otherwise] == [
        "7.2: until CUDA 12.2 by policy, 12.9 by ptxas"
    ]


def test_explain_cuda_of_patch_release_uses_capabilities_of_minor(
    compat: NvccCompat, gpus: Gpus
) -> None:
    facts_by_name = facts(explain_cuda("13.4.0", compat, gpus, NVCC_POLICY)[1])
    (claim,) = facts_by_name["supported"].otherwise
    assert claim.value == "7.5: until CUDA 13.0 by policy, no end seen by ptxas"


def test_explain_cuda_marks_release_without_ptxas(compat: NvccCompat, gpus: Gpus) -> None:
    facts_by_name = facts(explain_cuda("12.2.1", compat, gpus, NVCC_POLICY)[1])
    assert facts_by_name["known"].basis == "computed"
    assert "no ptxas of this release was read" in facts_by_name["known"].source
    assert facts_by_name["known"].file_sha256 is None


def test_topic_round_trips_through_json(compat: NvccCompat, gpus: Gpus) -> None:
    for topic in explain_cuda("12.2", compat, gpus, NVCC_POLICY):
        assert Topic.model_validate_json(topic.model_dump_json()) == topic
