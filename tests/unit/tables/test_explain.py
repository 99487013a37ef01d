"""Tests of explain: facts with their sources, and conflicting sources."""

import json

import pytest
from support.headers import ERAS, Checks, header_source, host_config
from support.ptxas import three_releases

from cudaredist.errors import UnknownNameError
from cudaredist.formats.tables import (
    GpuPolicy,
    Gpus,
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
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_names import capabilities_called
from cudaredist.tables.gpus.gpu_table import make_table
from cudaredist.tables.nvcc.compilers import read_header
from cudaredist.tables.nvcc.nvcc_table import make_compat, make_release

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


def overlay(*products: str, jetson: bool = False, **facts: str) -> OverlayEntry:
    return OverlayEntry(
        jetson=jetson,
        products=products,
        reason="for tests",
        reference="page",
        facts=tuple(
            PolicyFact.model_validate(
                {"field": field, "value": value, "reason": f"{field}!", "reference": "table"}
            )
            for field, value in facts.items()
        ),
    )


GPU_POLICY = GpuPolicy(
    schema_version=1,
    overlay={
        "7.0": overlay("V100", first_cuda="9.0", dont_default_after="12.5"),
        "7.2": overlay("Jetson AGX Xavier", jetson=True, last_cuda="12.2"),
        "7.5": overlay("T4", last_cuda="13.0"),
        "10.0": overlay("B200", first_cuda="12.7"),
        "10.1": overlay("Jetson Thor (T5000, T4000)", jetson=True, renamed_to="11.0"),
        "11.0": overlay("Jetson T5000", jetson=True),
    },
)


def release(version: str, checks: Checks) -> NvccRelease:
    return make_release(
        version, header_source(version), read_header(host_config(checks)), NVCC_POLICY
    )


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
    return make_table(three_releases(), GPU_POLICY)[0]


def facts(topic: Topic) -> dict[str, Fact]:
    return {fact.name: fact for fact in topic.facts}


HEADER = "include/crt/host_config.h of cuda_nvcc 13.4.59 (wheels)"
PTXAS = "bin/ptxas of cuda_nvcc in CUDA 12.9.0 (redist)"
MSVC = "Visual C++: _MSC_VER 1959 (Visual Studio 2026) is the newest accepted"
NO_END = "7.5: until CUDA 13.0 by policy, no end seen by ptxas"
OLDEST = "the oldest CUDA release that knows it is 11.8, the oldest that was read"


@pytest.mark.parametrize(
    ("question", "fact", "field", "expected"),
    [
        ("nvcc 13.4", "nvcc", "value", "13.4.59"),
        ("nvcc 13.4", "gcc.max", "value", 16),
        ("nvcc 13.4", "gcc.max", "basis", "derived"),
        ("nvcc 13.4", "gcc.max", "source", HEADER),
        ("nvcc 13.4", "gcc.max", "file_sha256", "b" * 64),
        ("nvcc 13.4", "gcc.max", "statement", "GCC: 16 is the newest accepted"),
        # The header and the documentation disagree.
        ("nvcc 13.4", "gcc.max", "otherwise", [(10, "Notes 11", "nvcc takes 11")]),
        ("nvcc 13.4", "msvc.max", "statement", MSVC),
        ("nvcc 13.4", "icx", "statement", "Intel ICX: every version is refused"),
        ("nvcc 13.4", "nvhpc", "value", "unchecked"),
        ("nvcc 13.4", "gcc.min", "value", 6),
        ("nvcc 13.4", "gcc.min", "basis", "documented"),
        ("nvcc 13.4", "gcc.min", "source", "Guide 13 (policy/nvcc.json)"),
        ("nvcc 13.4", "gcc.min", "file_sha256", None),
        ("nvcc 13.4", "gcc.min", "reason", "so it is written"),
        ("nvcc 13.4", "gcc.min", "otherwise", [(None, HEADER, "the header has no lower bound")]),
        ("nvcc 13.4", "clang.min", "claims", ["3.3"]),
        ("nvcc 12.2", "releases", "value", ("12.2.0",)),
        ("nvcc 12.2", "grace-clang.max", "claims", ["unchecked"]),
        ("nvcc 12.2", "gcc.max", "claims", []),
        ("nvcc 12.2.0", "grace-clang", "claims", ["range"]),
        # No header of this release was read.
        ("nvcc 11.4", "gcc.max", "basis", "documented"),
        ("nvcc 11.4", "gcc.max", "source", "Notes 11 (policy/nvcc.json)"),
        ("nvcc 11.4", "gcc.max", "claims", ["nvcc takes 11"]),
        ("nvcc 11.4", "unheard-of.max", "statement", "unheard-of: no newest version"),
        ("nvcc 11.4", "unheard-of.min", "statement", "unheard-of: no oldest version"),
        ("gpu sm_103f", "runs_on", "value", ("10.3", "10.7")),
        ("gpu sm_103f", "first_cuda", "value", "12.9"),
        ("gpu sm_103f", "first_cuda", "source", PTXAS),
        ("gpu sm_103f", "first_cuda", "file_sha256", "c" * 64),
        ("gpu sm_103f", "last_cuda", "value", None),
        ("gpu sm_103f", "jetson", "source", "no policy names it"),
        ("gpu sm_103f", "products", "statement", "example products: none"),
        ("gpu 7.2", "last_cuda", "value", "12.9"),
        ("gpu 7.2", "last_cuda", "otherwise", [("12.2", "table (policy/gpus.json)", "last_cuda!")]),
        ("gpu 7.2", "first_cuda", "value", "11.8"),
        ("gpu 7.2", "first_cuda", "statement", OLDEST),
        ("gpu 7.2", "jetson", "value", True),
        ("gpu 7.0", "first_cuda", "value", "9.0"),
        ("gpu 7.0", "first_cuda", "basis", "documented"),
        ("gpu 7.0", "first_cuda", "claims", ["11.8"]),
        ("gpu 7.0", "dont_default_after", "reason", "dont_default_after!"),
        ("gpu 10.0", "first_cuda", "value", "12.9"),
        ("gpu 10.0", "first_cuda", "basis", "derived"),
        ("gpu 10.0", "first_cuda", "claims", ["12.7"]),
        ("cuda 12.9", "default", "value", ("7.5", "8.0", "9.0", "10.0", "10.3")),
        ("cuda 12.9", "default", "basis", "computed"),
        ("cuda 12.9", "known", "source", PTXAS),
        ("cuda 12.9", "supported", "claims", ["7.2: until CUDA 12.2 by policy, 12.9 by ptxas"]),
        # A patch release has the capabilities of its minor.
        ("cuda 13.4.0", "supported", "claims", [NO_END]),
        ("cuda 12.2.1", "known", "basis", "computed"),
        ("cuda 12.2.1", "known", "file_sha256", None),
    ],
)
def test_fact_has_value_and_source(
    compat: NvccCompat, gpus: Gpus, question: str, fact: str, field: str, expected: object
) -> None:
    subject, name = question.split()
    match subject:
        case "nvcc":
            topic = explain_nvcc(name, compat, NVCC_POLICY)
        case "gpu":
            topic = explain_gpu(Capability.name_of(name), gpus, GPU_POLICY)
        case _:
            topic = explain_cuda(name, compat, gpus, NVCC_POLICY)[1]
    found = facts(topic)[fact]
    claims = [(claim.value, claim.source, claim.reason) for claim in found.otherwise]
    values = {**dict(found), "otherwise": claims, "claims": [value for value, *_ in claims]}
    assert values[field] == expected


# -- nvcc


def test_explain_nvcc_names_differing_releases_of_minor(compat: NvccCompat) -> None:
    facts_by_name = facts(explain_nvcc("12.2", compat, NVCC_POLICY))
    stale = 'line 62: the text of #error is "less than 16", but its #if accepts 3 to 16'
    first, second = facts_by_name["clang.max"].otherwise
    assert (first.value, first.reason) == (15, "CUDA 12.2.0")
    assert str(second.value).partition(":")[2] == stale.partition(":")[2]


def test_explain_nvcc_of_unknown_release_fails(compat: NvccCompat) -> None:
    with pytest.raises(UnknownNameError, match=r"no CUDA release is called '12\.7'"):
        explain_nvcc("12.7", compat, NVCC_POLICY)


# -- gpu


@pytest.mark.parametrize("name", ["10.3f", "sm_103f", "compute_103f", "103f"])
def test_explain_gpu_accepts_targets(name: str, gpus: Gpus) -> None:
    answer = explain_gpu(Capability.name_of(name), gpus, GPU_POLICY)
    assert answer.title == "compute capability 10.3f (Blackwell)"
    facts_by_name = facts(answer)
    assert "one family" in str(facts_by_name["runs_on"].reason)
    assert "CUDA 13.4.0" in facts_by_name["last_cuda"].statement


def test_explain_gpu_without_sources_lists_fewer_facts(gpus: Gpus) -> None:
    unread = gpus.model_copy(update={"sources": {}})
    facts_by_name = facts(explain_gpu("7.0", unread, GPU_POLICY))
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
    assert capabilities_called(name, gpus) == names


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Jetson Xavvier", "did you mean Jetson AGX Xavier"),
        ("9.0f", "did you mean 9.0 or 9.0a"),
        ("sm_104", "did you mean 10."),
        ("compute_104", "did you mean 10."),
        ("104", "did you mean 10."),
        ("sm_66", "known: 10.0, 10.0a"),
        ("", "known: Ampere, "),
    ],
)
def test_explain_gpu_of_unknown_name_suggests_gpu(name: str, hint: str, gpus: Gpus) -> None:
    with pytest.raises(UnknownNameError) as raised:
        capabilities_called(name, gpus)
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
    values = {name: fact.value for name, fact in facts(answer[1]).items()}
    assert isinstance(values["supported"], tuple)
    assert isinstance(values["known"], tuple)
    assert "10.3f" in values["supported"]
    assert set(values["known"]) - set(values["supported"]) == {"7.2"}
    unread = facts(explain_cuda("12.2.1", compat, gpus, NVCC_POLICY)[1])["known"]
    assert "no ptxas of this release was read" in unread.source


def test_topic_round_trips_through_json(compat: NvccCompat, gpus: Gpus) -> None:
    for topic in explain_cuda("12.2", compat, gpus, NVCC_POLICY):
        assert Topic.model_validate_json(topic.model_dump_json()) == topic
