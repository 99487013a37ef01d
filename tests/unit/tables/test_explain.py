"""Tests of explain: facts with their sources, and conflicting sources."""

import json

import pytest
from pydantic import TypeAdapter
from support.headers import ERAS, Checks, header_source, host_config, read_once
from support.ptxas import three_releases

from cudaredist.commands.explain.table_answers import nvcc_answer
from cudaredist.formats.plain_report import as_json
from cudaredist.formats.tables import (
    DocumentedCompiler,
    GlibcBound,
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
from cudaredist.tables.gpus.gpu_table import make_table
from cudaredist.tables.nvcc.nvcc_table import make_compat, make_release

NVCC_POLICY = NvccPolicy(
    schema_version=1,
    lower_bounds={
        "gcc": LowerBound(min=6, reason="so it is written", reference="Guide 13"),
        "clang": LowerBound(min=7, reason="so it is written", reference="Guide 13"),
    },
    unseen_releases=dict.fromkeys(
        ("11.4", "13.4"),
        UnseenRelease(
            compilers={
                "gcc": DocumentedCompiler(min=6, max=10, note="nvcc takes 11"),
                "unheard-of": DocumentedCompiler(min=None, max=None),
            },
            reason="never seen",
            reference="Notes 11",
        ),
    ),
)


def overlay(*products: str, jetson: bool = False, **facts: str) -> OverlayEntry:
    return OverlayEntry(
        jetson=jetson,
        products=products,
        reason="for tests",
        reference="page",
        facts=tuple(
            PolicyFact(field=field, value=value, reason=f"{field}!", reference="table")  # type: ignore[arg-type]
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
        version, header_source(version), read_once(host_config(checks)), NVCC_POLICY
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
FAMILY = "code of one family: it runs on this capability and later ones of its family"
NEWEST = "still known to the newest release that was read, CUDA 13.4.0"
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
        ("gpu 10.3f", "family", "statement", "architecture: Blackwell"),
        ("gpu 10.3f", "runs_on", "value", ("10.3", "10.7")),
        ("gpu 10.3f", "runs_on", "reason", FAMILY),
        ("gpu 10.3f", "first_cuda", "value", "12.9"),
        ("gpu 10.3f", "first_cuda", "source", PTXAS),
        ("gpu 10.3f", "first_cuda", "file_sha256", "c" * 64),
        ("gpu 10.3f", "last_cuda", "value", None),
        ("gpu 10.3f", "last_cuda", "statement", NEWEST),
        ("gpu 10.3f", "jetson", "source", "no policy names it"),
        ("gpu 10.3f", "products", "statement", "example products: none"),
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
        ("cuda 12.2.1", "known", "source", "gpus.json; no ptxas of this release was read"),
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
            topic = explain_gpu(name, gpus, GPU_POLICY)
        case _:
            topic = explain_cuda(name, compat, gpus, NVCC_POLICY)[1]
    found = facts(topic)[fact]
    claims = [(claim.value, claim.source, claim.reason) for claim in found.otherwise]
    values = {**vars(found), "otherwise": claims, "claims": [value for value, *_ in claims]}
    assert values[field] == expected


def test_explain_nvcc_names_differing_releases_of_minor(compat: NvccCompat) -> None:
    facts_by_name = facts(explain_nvcc("12.2", compat, NVCC_POLICY))
    stale = 'line 62: the text of #error is "less than 16", but its #if accepts 3 to 16'
    first, second = facts_by_name["clang.max"].otherwise
    assert (first.value, first.reason) == (15, "CUDA 12.2.0")
    assert str(second.value).partition(":")[2] == stale.partition(":")[2]


@pytest.mark.parametrize(
    ("glibc", "line", "statement"),
    [
        (None, "glibc unknown", None),
        (("2.41", ("rsqrt",)), "glibc up to 2.41", "2.41 is the newest that nvcc compiles with"),
        (("2.44", ()), "glibc up to 2.44 at least", "2.44 and all older known ones compile"),
    ],
    ids=["unknown", "clash", "no-clash"],
)
def test_explain_nvcc_states_newest_glibc(
    compat: NvccCompat,
    glibc: tuple[str, tuple[str, ...]] | None,
    line: str,
    statement: str | None,
) -> None:
    bound = None
    if glibc is not None:
        path = "include/crt/math_functions.h"
        newest, clashes = glibc
        bound = GlibcBound(newest=newest, clashes=clashes, path=path, file_sha256="c" * 64)
    entry = compat.releases["13.4.0"].model_copy(update={"glibc": bound})
    table = compat.model_copy(update={"releases": {"13.4.0": entry}})
    assert next(nvcc_answer("13.4", table)).endswith(f", {line}")
    fact = facts(explain_nvcc("13.4", table, NVCC_POLICY)).get("glibc.max")
    if statement is None:
        assert fact is None
    else:
        assert fact is not None
        assert fact.statement == f"glibc: {statement}"
        assert fact.source == "include/crt/math_functions.h of cuda_nvcc 13.4.59 (wheels)"
        assert fact.file_sha256 == "c" * 64


def test_explain_gpu_without_sources_lists_fewer_facts(gpus: Gpus) -> None:
    unread = gpus.model_copy(update={"sources": {}})
    facts_by_name = facts(explain_gpu("7.0", unread, GPU_POLICY))
    assert list(facts_by_name) == ["runs_on", "jetson", "products", "dont_default_after"]


def test_topics_of_cuda_round_trip_through_json(compat: NvccCompat, gpus: Gpus) -> None:
    topics = explain_cuda("12.9", compat, gpus, NVCC_POLICY)
    assert [topic.title for topic in topics] == [
        "nvcc of CUDA 12.9.0",
        "compute capabilities of CUDA 12.9",
    ]
    read = TypeAdapter(Topic).validate_json
    assert all(read(json.dumps(as_json(topic))) == topic for topic in topics)
