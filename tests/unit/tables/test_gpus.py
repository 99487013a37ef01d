"""Tests of compute capabilities: scans of ptxas, the table and its rules."""

from typing import Any

import pytest
from conftest import REPOSITORY
from support.patching import Patch
from support.ptxas import (
    PROFILES_13_4,
    Platform,
    image,
    known_gpus,
    profiles_in,
    ptxas,
    scan,
    three_releases,
)

from cudaredist.errors import InvalidFileError, UnknownNameError
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import GpuPolicy, Gpus
from cudaredist.jsontext import canonical_json
from cudaredist.tables.gpus import ptxas as scanning
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import (
    KnownGpus,
    default_capabilities,
    is_supported,
    known_of_table,
    make_table,
    supported_capabilities,
)

POLICY_PATH = REPOSITORY / "data" / "policy" / "gpus.json"
PLATFORMS: tuple[Platform, ...] = ("linux", "sbsa", "windows")


def read(data: bytes) -> dict[str, str]:
    return {str(name): family for name, family in scan(data).items()}


def policy() -> GpuPolicy:
    document = read_own_file(POLICY_PATH.read_bytes(), GpuPolicy)
    assert isinstance(document, GpuPolicy)
    return document


def table(**more: KnownGpus) -> Gpus:
    releases = {name[1:].replace("_", "."): gpus for name, gpus in more.items()}
    return make_table(three_releases() | releases, policy())[0]


# -- names


@pytest.mark.parametrize("text", ["9.0", "9.0a", "10.3f", "12.1"])
def test_capability_is_printed_in_input_form(text: str) -> None:
    assert str(Capability.parse(text)) == text


@pytest.mark.parametrize("text", ["", "9", "9.0b", "9.10", "0.9", " 9.0", "9.0A", "sm_90", "1e.0"])
def test_invalid_capability_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a compute capability"):
        Capability.parse(text)


def test_capabilities_are_sorted_by_number() -> None:
    names = ["10.3", "11.0", "10.0f", "9.0a", "10.0", "9.0", "10.0a"]
    expected = ["9.0", "9.0a", "10.0", "10.0a", "10.0f", "10.3", "11.0"]
    assert sorted(names, key=Capability.parse) == expected
    assert Capability.of_target("103", "f") == Capability.parse("10.3f")
    assert Capability.of_target("110", "").base == Capability(11, 0)


# -- ptxas


@pytest.mark.parametrize("platform", PLATFORMS)
def test_ptxas_of_every_platform_is_read(platform: Platform) -> None:
    capabilities = read(ptxas(PROFILES_13_4, platform=platform))
    assert list(capabilities) == [
        *("7.5", "8.0", "9.0", "9.0a", "10.0", "10.0a", "10.0f", "10.3", "10.3a", "10.3f"),
        *("10.7", "10.7a", "10.7f", "11.0", "11.0a", "11.0f"),
    ]
    assert capabilities["9.0a"] == "Hopper"
    assert capabilities["11.0"] == capabilities["10.3f"] == "Blackwell"
    assert capabilities["10.7f"] == "Rubin"


def test_text_at_block_boundary_is_found(patch: Patch) -> None:
    expected = read(ptxas(filler=0))
    patch(scanning, "BLOCK", 512)
    for shift in range(0, 400, 7):
        assert read(ptxas(filler=shift)) == expected, shift


STRIPPED = image(bytes(3000), "linux")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "neither a Linux nor a Windows program"),
        (b"#!/bin/sh\n" + ptxas(), "neither a Linux nor"),
        (b"MZ" + bytes(200), "neither a Linux nor"),
        (b"MZ" + b"\xff" * 70, "truncated in its header"),
        (ptxas()[:30], "truncated in its header"),
        (ptxas(platform="windows")[:90], "truncated"),
        (STRIPPED, "contains no compute capability"),
        (ptxas(without_target="90"), "and its table of profiles disagree about 9.0"),
        (ptxas(without_profile="103f", platform="windows"), "disagree about 10.3f"),
        (ptxas(extra=b"compute_69\0"), "disagree about 6.9"),
        (ptxas([("90", "Hopper"), ("100a", "Blackwell")]), "contains 10.0a, but not 10.0"),
        (ptxas([("90", ""), ("100", "Blackwell")]), "no architecture's name follows 9.0"),
        (ptxas(extra=b"compute_90z\0-D__CUDA_ARCH__=90z0\0"), "9.0z has the unknown variant z"),
    ],
)
def test_invalid_ptxas_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidFileError) as raised:
        read(data)
    assert raised.value.exit_code == 5
    assert message in str(raised.value)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_truncated_ptxas_is_refused_at_any_length(platform: Platform) -> None:
    whole = ptxas(platform=platform, filler=20)
    for size in range(len(whole)):
        with pytest.raises(InvalidFileError):
            read(whole[:size])


@pytest.mark.parametrize(
    "extra",
    [
        b"sm_21\0",
        b"compute_99 \0",
        b"xcompute_90\0",
        b"-D__CUDA_ARCH__=90\x01",
        b"-D__CUDA_ARCH__=0\0",
        b"lto_100\0Profile\0",
    ],
)
def test_other_texts_in_ptxas_are_ignored(extra: bytes) -> None:
    assert read(ptxas(extra=extra)) == read(ptxas())


# -- the table


def test_first_and_last_cuda_are_minors() -> None:
    capabilities = table().capabilities
    ends = {name: (entry.first_cuda, entry.last_cuda) for name, entry in capabilities.items()}
    # These introductions are documented, because the oldest scanned release already has them.
    assert ends["3.5"] == ("5.0", "11.8")
    assert ends["8.0"] == ("11.0", None)
    assert ends["9.0"] == ("11.8", None)
    # These ends come from ptxas.
    assert ends["9.0a"] == ("12.9", None)
    assert ends["10.1f"] == ("12.9", "12.9")
    assert ends["11.0"] == ("13.4", None)
    assert ends["10.7f"] == ("13.4", None)
    assert capabilities["10.7"].family == "Rubin"
    assert (capabilities["10.3f"].base, capabilities["10.3f"].variant) == ("10.3", "f")


def test_dropped_capability_has_last_cuda() -> None:
    assert table().capabilities["7.5"].last_cuda is None
    later = table(v14_0_0=known_gpus(*[profile for profile in PROFILES_13_4 if profile[0] != "75"]))
    assert later.capabilities["7.5"].last_cuda == "13.4"


def test_policy_and_scan_are_both_recorded() -> None:
    entry = table().capabilities["7.2"]
    assert entry.last_cuda == "12.9"
    (said,) = (fact for fact in entry.policy if fact.field == "last_cuda")
    assert said.value == "12.2"
    assert said.reason
    assert said.reference
    assert is_supported(entry, "12.2")
    assert not is_supported(entry, "12.9")


def test_variants_share_only_chip_fields() -> None:
    capabilities = table().capabilities
    assert capabilities["10.1f"].jetson
    assert capabilities["10.1f"].products == capabilities["10.1"].products
    assert {fact.field for fact in capabilities["10.1f"].policy} == {"renamed_to"}
    assert capabilities["9.0a"].policy == ()
    assert capabilities["9.0a"].dont_default_after is None
    assert capabilities["7.0"].dont_default_after == "12.5"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("9.0a", ["9.0"]),
        ("10.0f", ["10.0", "10.3", "10.7"]),
        ("10.3f", ["10.3", "10.7"]),
        ("10.7f", ["10.7"]),
        ("10.1f", ["10.1"]),
        ("11.0f", ["11.0"]),
        ("10.3", ["10.3", "10.7", "11.0"]),
    ],
)
def test_target_runs_on_compatible_capabilities(target: str, expected: list[str]) -> None:
    assert list(table().capabilities[target].runs_on) == expected


TURING, AMPERE = "75 Turing", "75 Turing, 80 Ampere"


@pytest.mark.parametrize(
    ("releases", "kind", "about", "field"),
    [
        ({"13.9.0": f"{TURING}, 137 New, 137a"}, "overlay-lacks", "13.7", ("products", ())),
        (
            {"13.0.0": f"{AMPERE}, 86", "13.1.0": f"{AMPERE}, 86 Rubin"},
            *("family-differs", "8.6", ("family", "Ampere")),
        ),
        ({"13.0.10": AMPERE, "13.0.9": TURING}, "patches-differ", "8.0", ("last_cuda", None)),
        (
            {"13.0.0": AMPERE, "13.1.0": TURING, "13.2.0": AMPERE},
            *("gone-in-between", "8.0", ("first_cuda", "11.0")),
        ),
    ],
)
def test_inconsistent_releases_are_a_finding(
    releases: dict[str, str], kind: str, about: str, field: tuple[str, object]
) -> None:
    known = {label: known_gpus(*profiles_in(text)) for label, text in releases.items()}
    gpus, findings = make_table(known, policy())
    assert [(finding.kind, finding.about) for finding in findings] == [(kind, about)]
    assert getattr(gpus.capabilities[about], field[0]) == field[1]
    if kind == "family-differs":
        assert findings[0].message == "has the names Ampere, later Rubin; the first is used"


def test_release_is_added_without_rescanning_others() -> None:
    gpus = table()
    assert make_table(known_of_table(gpus), policy()) == (gpus, ())
    new = {"14.0.0": known_gpus(*PROFILES_13_4, ("140", "Next"))}
    assert make_table(known_of_table(gpus) | new, policy())[0] == table(v14_0_0=new["14.0.0"])


def test_gpu_table_is_a_valid_own_file() -> None:
    gpus = table()
    data = canonical_json(gpus.model_dump(mode="json"))
    assert read_own_file(data, Gpus) == gpus


def test_shipped_overlay_names_bases_with_unique_fields() -> None:
    for name, entry in policy().overlay.items():
        assert Capability.parse(name).variant is None
        fields = [fact.field for fact in entry.facts]
        assert len(fields) == len(set(fields)), name
        assert entry.reason
        assert entry.reference


# -- rules


@pytest.mark.parametrize(
    ("minor", "expected"),
    [
        ("11.4", "7.0 7.5 8.0"),
        ("11.8", "7.0 7.5 8.0 9.0"),
        ("12.5", "7.0 7.5 8.0 9.0"),
        ("12.6", "7.5 8.0 9.0"),
        ("12.9", "7.5 8.0 9.0 10.0 10.3"),
        ("13.0", "7.5 8.0 9.0 10.0 10.3"),
        ("13.4", "7.5 8.0 9.0 10.0 10.3 10.7"),
    ],
)
def test_default_capabilities_depend_on_release(minor: str, expected: str) -> None:
    assert " ".join(default_capabilities(minor, table())) == expected


def test_supported_capabilities_include_variants_and_jetsons() -> None:
    supported = supported_capabilities("12.9", table())
    assert {"9.0a", "10.1", "7.2"} - {*supported} == {"7.2"}


@pytest.mark.parametrize("minor", ["13.5", "14.0"])
def test_default_capabilities_of_unknown_release_fail(minor: str) -> None:
    for gpus in (table(), Gpus(schema_version=1, capabilities={}, sources={})):
        with pytest.raises(UnknownNameError):
            default_capabilities(minor, gpus)


@pytest.mark.parametrize(
    "changed",
    [
        {"capabilities": {"9.0b": {}}},
        {"capabilities": {"1234.0": {}}},
        {"capabilities": {"9.0": {"last_cuda": "12"}}},
        {"capabilities": {"9.0": {"policy": [{"field": "last_cuda", "value": "soon"}]}}},
    ],
)
def test_broken_gpu_table_is_refused(changed: dict[str, Any]) -> None:
    document = table().model_dump(mode="json")
    for name, fields in changed["capabilities"].items():
        document["capabilities"][name] = document["capabilities"]["9.0"] | fields
    with pytest.raises(InvalidFileError):
        read_own_file(canonical_json(document), Gpus)
