"""Releases of JetPack and L4T: names, answers and their sources."""

import pytest
from conftest import REPOSITORY

from cudaredist.errors import NotInDataError, UnknownNameError, UsageError
from cudaredist.formats.jetpack import JetPackPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.tables.explain_jetpack import (
    explain_jetpack,
    find_jetpack,
    jetpack_answer,
    parse_jetson,
)

POLICY = read_own_file((REPOSITORY / "data/policy/jetpack.json").read_bytes(), JetPackPolicy)
PRODUCTS = {"cuda": "12.9.1", "nccl": None}


@pytest.mark.parametrize(
    ("text", "subject", "version"),
    [
        ("JetPack 6.2", "jetpack", "6.2"),
        ("jetpack-6.2.1", "jetpack", "6.2.1"),
        ("JP6", "jetpack", "6"),
        ("L4T R36.4.3", "l4t", "36.4.3"),
        ("l4t 36.4", "l4t", "36.4"),
        ("Jetson Linux 39.2", "l4t", "39.2"),
    ],
)
def test_name_of_release_is_parsed(text: str, subject: str, version: str) -> None:
    name = parse_jetson(text)
    assert name is not None
    assert (name.subject, name.version) == (subject, version)


@pytest.mark.parametrize("text", ["6.2", "R535", "jetson orin", "jetpack", "l4t", "jetpack 6.2 x"])
def test_other_text_is_not_release(text: str) -> None:
    assert parse_jetson(text) is None


@pytest.mark.parametrize(
    ("subject", "text", "release"),
    [
        ("jetpack", "6.2", "6.2"),
        ("jetpack", "6", "6.2.3"),
        ("jetpack", "6.2.1", "6.2.1"),
        ("jetpack", "5.1.2", "5.1.2"),
        ("l4t", "36.4.3", "6.2"),
        ("l4t", "R38.2", "7.0"),
        ("l4t", "38.4", "7.1"),
        ("l4t", "R39.2.0", "7.2"),
    ],
)
def test_release_is_found_by_name(subject: str, text: str, release: str) -> None:
    assert find_jetpack(subject, text, POLICY) == release  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("subject", "text", "message"),
    [
        ("jetpack", "8", "JetPack 8 is not in the data"),
        ("l4t", "R37.1", "L4T 37.1 is not in the data"),
        ("l4t", "36.4.7", "L4T 36.4.7 is not in the data"),
    ],
)
def test_release_that_may_exist_is_not_in_the_data(subject: str, text: str, message: str) -> None:
    with pytest.raises(NotInDataError, match=message):
        find_jetpack(subject, text, POLICY)  # type: ignore[arg-type]


def test_text_without_version_is_not_a_release() -> None:
    with pytest.raises(UnknownNameError, match="no release of L4T is called 'x'"):
        find_jetpack("l4t", "x", POLICY)


@pytest.mark.parametrize(
    ("subject", "text", "message", "command"),
    [
        ("jetpack", "36.4", "36.4 is a release of L4T, not of JetPack", "explain l4t 36.4"),
        ("l4t", "6.2", "6.2 is a release of JetPack, not of L4T", "explain jetpack 6.2"),
    ],
)
def test_release_of_the_other_subject_has_its_command(
    subject: str, text: str, message: str, command: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        find_jetpack(subject, text, POLICY)  # type: ignore[arg-type]
    assert caught.value.hint == f"run `cudaredist {command}`"


@pytest.mark.parametrize(
    ("release", "first", "compat"),
    [
        (
            "5.1.2",
            "JetPack 5.1.2 (L4T 35.4.1): CUDA 11.4, cuDNN 8.6.0.166, TensorRT 8.5.2; "
            "compute capabilities 7.2 and 8.7",
            "compat packages that run on L4T 35: cuda_compat 12.2.34086590 (up to CUDA 12.2)",
        ),
        (
            "6.2",
            "JetPack 6.2 (L4T 36.4.3): CUDA 12.6, cuDNN 9.3.0.75, TensorRT 10.3.0.30; "
            "compute capability 8.7",
            "compat packages that run on L4T 36: cuda_compat 12.9.40580548 (up to CUDA 12.9), "
            "cuda_compat_orin (up to CUDA 13.2)",
        ),
        (
            "7.1",
            "JetPack 7.1 (L4T 38.4.0): CUDA 13.0, cuDNN 9.12.0.46, TensorRT 10.13.3.9; "
            "compute capability 11.0",
            "compat packages that run on L4T 38: unknown",
        ),
        (
            "7.2",
            "JetPack 7.2 (L4T 39.2.0): CUDA 13.2, cuDNN 9.20.0.46, TensorRT 10.16.2.10; "
            "compute capabilities 8.7 and 11.0",
            "compat packages that run on L4T 39: unknown",
        ),
    ],
)
def test_answer_states_contents_and_compat_package(release: str, first: str, compat: str) -> None:
    lines = list(jetpack_answer(release, POLICY, PRODUCTS))
    assert lines[:2] == [first, compat]
    platform = POLICY.releases[release].platform
    major = POLICY.releases[release].cuda.partition(".")[0]
    builds = f"builds for {platform} and CUDA {major}"
    assert lines[2] == f"newest releases with {builds}: CUDA Toolkit 12.9.1"
    assert lines[3] == f"no known release has {builds}: NCCL"


def test_answer_without_archives_of_nvidia_says_so() -> None:
    last = list(jetpack_answer("4.6.6", POLICY, {}))[-1]
    assert last == "NVIDIA publishes no archives and wheels for it."


@pytest.mark.parametrize("release", POLICY.releases)
def test_every_fact_has_source(release: str) -> None:
    facts = {fact.name: fact for fact in explain_jetpack(release, POLICY, PRODUCTS).facts}
    assert {"l4t", "cuda", "cudnn", "tensorrt", "capabilities", "compat"} <= facts.keys()
    for name, fact in facts.items():
        if name not in {"products", "compat"}:
            assert fact.source.startswith("https://")
            assert fact.source.endswith("(policy/jetpack.json)")


def test_unknown_component_is_stated() -> None:
    entry = POLICY.releases["7.2"].model_copy(update={"cudnn": None, "tensorrt": None})
    policy = POLICY.model_copy(update={"releases": {"7.2": entry}})
    first = next(jetpack_answer("7.2", policy, PRODUCTS))
    assert "CUDA 13.2, cuDNN unknown, TensorRT unknown" in first
