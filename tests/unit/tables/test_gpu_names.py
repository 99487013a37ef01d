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
    ("text", "capability"),
    [
        ("Tesla K40m", "3.5"),
        ("NVIDIA GeForce GTX TITAN X", "5.2"),
        ("Tesla P100-PCIE-16GB", "6.0"),
        ("TITAN X (Pascal)", "6.1"),
        ("NVIDIA GeForce GTX 1080 Ti", "6.1"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("Tesla V100S-PCIE-32GB", "7.0"),
        ("Tesla T4", "7.5"),
        ("Quadro RTX 6000", "7.5"),
        ("Quadro RTX 4000 with Max-Q Design", "7.5"),
        ("NVIDIA GeForce GTX 1660 SUPER", "7.5"),
        ("GRID T4-16Q", "7.5"),
        ("NVIDIA A100-SXM4-40GB", "8.0"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("NVIDIA A800 80GB PCIe", "8.0"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA GeForce RTX 3050", "8.6"),
        ("NVIDIA GeForce RTX 3050 6GB Laptop GPU", "8.6"),
        ("Orin (nvgpu)", "8.7"),
        ("NVIDIA Jetson AGX Orin Developer Kit", "8.7"),
        ("NVIDIA GeForce RTX 3050 A Laptop GPU", "8.9"),
        ("NVIDIA GeForce RTX 4090 D", "8.9"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA L40S", "8.9"),
        ("NVIDIA GH200 480GB", "9.0"),
        ("NVIDIA H20-3e", "9.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA B200", "10.0"),
        ("NVIDIA B300 SXM6 AC", "10.3"),
        ("NVIDIA Thor", "11.0"),
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("NVIDIA RTX PRO 3000 Blackwell Generation Laptop GPU", "12.0"),
        ("NVIDIA GB10", "12.1"),
    ],
)
def test_name_of_nvidia_smi_has_capability(text: str, capability: str) -> None:
    assert capability_of(text, GPUS) == capability


@pytest.mark.parametrize("text", ["Tesla T5", "NVIDIA H101", "GeForce RTX 4091", "Quadro K1"])
def test_unknown_name_of_nvidia_smi_suggests_no_other_gpu(text: str) -> None:
    with pytest.raises(UsageError, match=f"GPU '{text}' is not in the data") as raised:
        capability_of(text, GPUS)
    hint = "name its compute capability, which `nvidia-smi --query-gpu=compute_cap --format=csv`"
    assert str(raised.value.hint).startswith(hint)


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
        ("8.8b", "compute capability", "did you mean 8.8?"),
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
    message = f"(no {kind} is called '{text}'|{kind} .* is not in the data)$"
    with pytest.raises(UnknownNameError, match=message) as raised:
        capability_of(text, GPUS)
    assert str(raised.value.hint).startswith(hint)
