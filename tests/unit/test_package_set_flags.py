"""Package sets: capabilities, their flags, host compilers (build-rules 6 and 7)."""

from collections.abc import Sequence

import pytest
from support.set_inputs import JETSON, LINUX, SBSA, WINDOWS, Release, build, cuda, set_data_of

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.packagesets.inputs import SetData
from cudaredist.packagesets.invariants import check_set
from cudaredist.schema.packageset import Flags, HostCompiler

LABELS = ("11.8.0", "12.0.1", "12.2.2", "12.4.1", "12.6.3", "12.8.1", "12.9.1")
LATER = ("13.0.2", "13.2.0", "13.4.2")
DATA = set_data_of(
    *(cuda(label, (LINUX, SBSA, JETSON, WINDOWS)) for label in LABELS),
    *(cuda(label, (LINUX, SBSA, WINDOWS)) for label in LATER),
)


def flags(cuda_label: str, *capabilities: str, platform: str = LINUX, **more: object) -> Flags:
    return build(DATA, cuda_label, platform, capabilities=capabilities, **more).capabilities


# -- both forms


def test_the_strings_of_nixpkgs_and_ours() -> None:
    found = flags("12.6.3", "7.5", "8.6")
    assert found.arch_names == ("Ampere", "Turing")
    assert found.real_arches == ("sm_75", "sm_86")
    assert found.virtual_arches == ("compute_75", "compute_86")
    assert found.arches == ("sm_75", "sm_86", "compute_86")
    assert found.gencode == (
        "-gencode=arch=compute_75,code=sm_75",
        "-gencode=arch=compute_86,code=sm_86",
        "-gencode=arch=compute_86,code=compute_86",
    )
    assert found.gencode_string == " ".join(found.gencode)
    assert found.cmake_cuda_architectures == "75;86"
    assert found.cmake_architectures_real_virtual == "75-real;86"
    assert found.torch_cuda_arch_list == "7.5;8.6+PTX"
    assert found.forward_compat


def test_theirs_take_the_order_asked_for_and_ours_sort() -> None:
    found = flags("12.6.3", "8.6", "7.5", "8.6")
    assert found.requested == found.effective == ("8.6", "7.5", "8.6")
    assert found.arches == ("sm_86", "sm_75", "sm_86", "compute_86")
    assert found.cmake_cuda_architectures == "86;75;86"
    found = flags("12.6.3", "8.6", "7.5")
    assert found.gencode[-1] == "-gencode=arch=compute_75,code=compute_75", "of the last one"
    assert found.cmake_architectures_real_virtual == "75-real;86", "of the highest"
    assert found.torch_cuda_arch_list == "7.5;8.6+PTX"


def test_on_orin() -> None:
    found = flags("12.6.3", "8.7", platform=JETSON)
    assert found.gencode_string == (
        "-gencode=arch=compute_87,code=sm_87 -gencode=arch=compute_87,code=compute_87"
    )


def test_without_forward_compatibility() -> None:
    found = flags("12.6.3", "7.5", "8.6", forward_compat=False)
    assert found.arches == ("sm_75", "sm_86")
    assert found.gencode_string.count("-gencode") == 2
    assert found.cmake_architectures_real_virtual == "75-real;86-real"
    assert found.torch_cuda_arch_list == "7.5;8.6"


@pytest.mark.parametrize("name", ["9.0a", "10.0f", "12.0a"])
def test_one_architecture_or_family_alone_is_for_no_later_gpu(name: str) -> None:
    found = flags("12.9.1", name)
    digits = name.replace(".", "")
    assert not found.forward_compat
    assert found.arches == (f"sm_{digits}",)
    assert found.cmake_architectures_real_virtual == f"{digits}-real"
    assert found.torch_cuda_arch_list == name
    with pytest.raises(UsageError, match="forward compatibility requires") as caught:
        flags("12.9.1", name, forward_compat=True)
    assert "remove --forward-compat" in (caught.value.hint or "")


def test_a_letter_beside_a_plain_one() -> None:
    found = flags("12.9.1", "9.0", "10.0a")
    assert found.forward_compat
    assert found.arches == ("sm_90", "sm_100a", "compute_90"), "PTX of a letter is not portable"
    assert found.cmake_architectures_real_virtual == "90;100a-real"
    assert found.torch_cuda_arch_list == "9.0+PTX;10.0a"


def test_gencode_with_plain_and_architecture_specific_capability_has_plain_ptx() -> None:
    found = flags("12.9.1", "9.0", "9.0a")
    assert found.forward_compat
    assert found.gencode == (
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_90,code=compute_90",
    )
    assert check_set(build(DATA, "12.9.1", capabilities=("9.0", "9.0a"))) == []


def test_unknown_capability_suggests_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no compute capability is called '8\.8b'"
    ) as caught:
        flags("12.6.3", "8.8b")
    assert caught.value.hint is not None
    assert "did you mean 8.8" in caught.value.hint


def test_natural_order() -> None:
    found = flags("12.9.1", "12.0", "9.0", "10.0", "10.0f", "10.0a")
    assert found.torch_cuda_arch_list == "9.0;10.0;10.0a;10.0f;12.0+PTX"
    assert found.arch_names == ("Blackwell", "Hopper")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("11.8.0", "6.0 6.1 7.0 7.5 8.0 8.6 8.9 9.0"),
        ("12.2.2", "6.0 6.1 7.0 7.5 8.0 8.6 8.9 9.0"),
        ("12.4.1", "7.0 7.5 8.0 8.6 8.9 9.0"),
        ("12.6.3", "7.5 8.0 8.6 8.9 9.0"),
        ("12.8.1", "7.5 8.0 8.6 8.9 9.0 10.0 12.0"),
        ("12.9.1", "7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0 12.1"),
        ("13.0.2", "7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0 12.1"),
    ],
)
def test_defaults(label: str, expected: str) -> None:
    found = flags(label)
    assert " ".join(found.default) == expected
    assert found.effective == found.default
    assert found.requested == ()
    assert set(found.default) <= set(found.supported)


@pytest.mark.parametrize(
    ("label", "expected"),
    [("11.8.0", "7.2 8.7"), ("12.2.2", "7.2 8.7"), ("12.4.1", "8.7"), ("12.9.1", "8.7")],
)
def test_default_capabilities_on_linux_aarch64_are_those_of_its_jetsons(
    label: str, expected: str
) -> None:
    found = flags(label, platform=JETSON)
    assert " ".join(found.default) == expected
    assert found.effective == found.default
    assert not {"8.0", "9.0"} & set(found.default)


def test_default_capabilities_on_linux_sbsa_are_those_of_servers() -> None:
    for label in ("12.9.1", "13.0.2"):
        assert flags(label, platform=SBSA).default == flags(label, platform=LINUX).default


def test_libcudla_and_tensorrt_on_linux_aarch64_are_available_by_default() -> None:
    data = set_data_of(
        cuda("12.6.3", (LINUX, JETSON), libcudla=[JETSON]),
        Release("tensorrt", "10.7.0", {"tensorrt": [f"{JETSON}/cuda12"]}),
    )
    packages = build(data, "12.6.3", JETSON).packages
    assert packages["libcudla"].status == "available"
    assert packages["tensorrt"].status == "available"


def test_default_jetsons_begin_at_the_oldest_one_of_policy() -> None:
    older = {"capability": "8.7", "reason": "r", "reference": "r"}
    released = cuda("11.8.0", (LINUX, JETSON))
    found = {}
    for name, oldest in (("shipped", {}), ("8.7", {"oldest_jetson": older})):
        data = set_data_of(released, policies={"platforms": oldest})
        found[name] = build(data, "11.8.0", JETSON).capabilities.default
    assert found == {"shipped": ("7.2", "8.7"), "8.7": ("8.7",)}


# -- what cannot be


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        flags("12.6.3", "3.5", "12.0", "8.7")
    message = caught.value.message
    assert message.startswith(
        "cudaPackages_12_6: CUDA 12.6 does not support 3.5, CUDA 5.0 to 11.8 do"
    )
    assert "CUDA 12.6 does not support 12.0, CUDA 12.8 and newer do" in message
    assert "capability 8.7 is a Jetson GPU, but linux-x86_64 has no Jetson build" in message
    assert caught.value.hint == "run `cudaredist explain cuda 12.6` to list its capabilities"


@pytest.mark.parametrize(
    ("label", "capabilities", "platform", "message"),
    [
        ("12.2.2", ["7.2", "8.9"], SBSA, "7.2 is a Jetson .* cannot be in one set with 8.9"),
        ("12.9.1", ["8.7", "10.1"], JETSON, "8.7 is a Jetson .* cannot be in one set with 10.1"),
        ("12.9.1", ["8.7"], SBSA, "8.7 requires linux-aarch64, not linux-sbsa"),
        ("12.9.1", ["10.1"], JETSON, "10.1 requires linux-sbsa, not linux-aarch64"),
        ("12.9.1", ["8.7"], WINDOWS, "windows-x86_64 has no Jetson build"),
        ("13.0.2", ["11.0"], LINUX, "linux-x86_64 has no Jetson build"),
        ("13.0.2", ["10.1"], SBSA, "CUDA 13.0 does not support 10.1, CUDA 12.8 to 12.9 do"),
        ("12.9.1", ["11.0"], SBSA, "CUDA 12.9 does not support 11.0, CUDA 13.0 and newer do"),
    ],
)
def test_jetsons_have_sets_of_their_own(
    label: str, capabilities: Sequence[str], platform: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        flags(label, *capabilities, platform=platform)


def test_mixtures_that_can_be() -> None:
    assert flags("12.2.2", "8.7", "7.2", platform=JETSON).effective == ("8.7", "7.2")
    assert flags("13.0.2", "8.7", "9.0", platform=SBSA).effective == ("8.7", "9.0")
    assert flags("12.9.1", "10.1", "9.0", platform=SBSA).effective == ("10.1", "9.0")


@pytest.mark.parametrize(
    ("label", "platform", "capabilities", "codes"),
    [
        ("13.0.2", SBSA, ["8.7"], ["jetson-unsupported"]),
        ("13.2.0", SBSA, ["8.7"], []),
        ("13.0.2", SBSA, ["11.0"], []),
        ("12.6.3", JETSON, ["8.7"], []),
        ("12.6.3", JETSON, [], []),
        ("12.6.3", JETSON, ["9.0"], ["no-jetson-capability"]),
    ],
)
def test_what_is_worth_knowing_of_jetsons(
    label: str, platform: str, capabilities: Sequence[str], codes: list[str]
) -> None:
    found = build(DATA, label, platform, capabilities=tuple(capabilities)).diagnostics
    assert [d.code for d in found if "jetson" in d.code] == codes


def test_a_release_beyond_the_tables() -> None:
    data = set_data_of(cuda("13.9.0"))
    for capabilities in ((), ("9.0",)):
        with pytest.raises(
            UsageError, match=r"gpus\.json has no capabilities for CUDA 13\.9"
        ) as caught:
            build(data, "13.9.0", capabilities=capabilities)
        assert caught.value.hint == "run `cudaredist update-gpus`"


# -- host compilers


def host(
    label: str, default: int | None, available: Sequence[int] = (), data: SetData = DATA
) -> HostCompiler:
    return build(data, label, default_gcc=default, available_gcc=tuple(available)).host_compiler


@pytest.mark.parametrize(
    ("label", "default", "available", "selected", "uses_default", "runtime"),
    [
        ("12.6.3", 13, (), 13, True, "default"),
        ("12.6.3", 14, (), 13, False, "default"),
        ("12.6.3", 15, (9, 10, 11, 12, 13, 14, 15), 13, False, "default"),
        ("12.6.3", 15, (9, 12, 15), 12, False, "default"),
        ("12.9.1", 14, (), 14, True, "default"),
        ("12.9.1", 15, (), 14, False, "default"),
        ("13.0.2", 15, (), 15, True, "default"),
        ("12.6.3", 5, (), 13, False, "selected"),
        ("12.6.3", 5, (5, 7), 7, False, "selected"),
        ("12.6.3", None, (), 13, False, "selected"),
        ("12.6.3", 12, (13,), 12, True, "default"),
    ],
)
def test_which_gcc(
    label: str,
    default: int | None,
    available: Sequence[int],
    selected: int,
    *,
    uses_default: bool,
    runtime: str,
) -> None:
    found = host(label, default, available)
    assert found.gcc is not None
    assert (found.gcc.selected, found.gcc.uses_default) == (selected, uses_default)
    assert found.gcc.default == default
    assert found.cxx_runtime == runtime
    low, high = found.gcc.min or 0, found.gcc.max or 99
    assert low <= selected <= high


def test_none_available_names_the_range() -> None:
    with pytest.raises(
        UsageError, match="accepts GCC 6 to 13, but the available versions are 4, 14"
    ) as caught:
        host("12.6.3", 14, (14, 4))
    assert caught.value.hint == "add an accepted version with --available-gcc"


def test_ranges_of_other_compilers() -> None:
    found = host("12.6.3", 13)
    assert found.clang is not None
    assert (found.clang.min, found.clang.max) == (7, 18)
    assert found.msvc is not None


def test_a_release_that_the_table_lacks() -> None:
    nvcc = DATA.nvcc.model_copy(
        update={"releases": {k: v for k, v in DATA.nvcc.releases.items() if k[:4] != "12.9"}}
    )
    data = set_data_of(cuda("12.9.1"), nvcc=nvcc)
    with pytest.raises(
        UsageError, match=r"nvcc_compat\.json has no compilers for CUDA 12\.9"
    ) as caught:
        host("12.9.1", 13, data=data)
    assert caught.value.hint == "run `cudaredist update-nvcc-compat`"
