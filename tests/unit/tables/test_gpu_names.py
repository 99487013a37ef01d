"""Tests of GPU names, with the shipped table."""

import re

import pytest
from conftest import REPOSITORY

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.tables.gpus.gpu_names import capabilities_called, capability_of

GPUS = read_own_file((REPOSITORY / "data/gpus.json").read_bytes(), Gpus)


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("V100", "7.0"),
        ("GTX 1080", "6.1"),
        ("1080", "6.1"),
        ("780", "3.5"),
        ("rtx4090", "8.9"),
        ("RTX-4090", "8.9"),
        ("RTX 5090", "12.0"),
        ("gtx1080ti", "6.1"),
        ("Jetson Orin", "8.7"),
        ("NVIDIA TITAN X", "6.1"),
        ("sm_90a", "9.0a"),
        ("SM_90A", "9.0a"),
        ("compute_103f", "10.3f"),
        ("9.0", "9.0"),
        ("90", "9.0"),
        ("Hopper", "9.0"),
    ],
)
def test_gpu_name_and_target_have_capability(text: str, capability: str) -> None:
    assert capability_of(text, GPUS) == capability
    assert capabilities_called(text, GPUS) == [capability]


@pytest.mark.parametrize(
    ("text", "cuda", "capability"),
    [
        ("Jetson Thor", "12.9", "10.1"),
        ("Jetson Thor", "13.0", "11.0"),
        ("Jetson Thor", "12.6", "11.0"),
        ("Jetson Thor", None, "11.0"),
        ("T5000", None, "11.0"),
        ("10.1", "13.0", "10.1"),
    ],
)
def test_renamed_chip_has_name_of_cuda_release(
    text: str, cuda: str | None, capability: str
) -> None:
    assert capability_of(text, GPUS, cuda) == capability
    assert capabilities_called(text, GPUS) == ["10.1", "11.0"]


@pytest.mark.parametrize(
    ("text", "capabilities"),
    [
        ("Ampere", "8.0, 8.6, 8.7, 8.8"),
        ("RTX 4000", "7.5, 8.9, 12.0"),
        ("TITAN X", "5.2, 6.1"),
        ("volta", "7.0, 7.2"),
        ("jetson", "5.3, 6.2, 7.2, 8.7, 10.1, 11.0"),
    ],
)
def test_name_of_several_capabilities_is_refused(text: str, capabilities: str) -> None:
    with pytest.raises(UsageError, match=f"{re.escape(capabilities)}$"):
        capability_of(text, GPUS)
    assert ", ".join(capabilities_called(text, GPUS)) == capabilities


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("rtx4091", "GPU", "did you mean GeForce RTX 4090 or "),
        ("1085", "GPU", "did you mean GeForce GTX 1080 or "),
        ("H101", "GPU", "did you mean NVIDIA H100?"),
        ("radeon", "GPU", "known: Ada, Ampere, "),
        ("nine", "GPU", "known: Ada, Ampere, "),
        ("108", "compute capability", "did you mean 10.7 or "),
        ("8.8b", "compute capability", "did you mean 8.8 or "),
        ("sm_95", "compute capability", "did you mean 9.0 or "),
        ("12", "compute capability", "did you mean 12.0?"),
        ("sm_104", "compute capability", "did you mean 10."),
        ("compute_104", "compute capability", "did you mean 10."),
        ("9.0f", "compute capability", "did you mean 9.0"),
        ("sm_x", "compute capability", "known: "),
        ("Jetson Xavvier", "GPU", "did you mean Jetson "),
        ("", "GPU", "known: Ada, Ampere, "),
    ],
)
def test_unknown_name_suggests_names_of_its_kind(text: str, kind: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=f"no {kind} is called '{text}'") as raised:
        capability_of(text, GPUS)
    assert str(raised.value.hint).startswith(hint)
