"""Tests of capabilities, flags and host compilers of sets (build-rules 6 and 7)."""

from collections.abc import Sequence
from typing import Any

import pytest
from support.set_inputs import (
    JETSON,
    LINUX,
    SBSA,
    WINDOWS,
    build,
    cuda,
    rule,
    set_data_of,
    valid,
    with_code,
)

from cudaredist.commands.build.build_sets import specs_for
from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.host_compilers import HostCompiler, HostGlibc
from cudaredist.formats.packageset import Flags
from cudaredist.sets.inputs import SetData
from cudaredist.sets.spec import RefusedSet, Request, SetSpec

LABELS = ("11.8.0", "12.0.1", "12.2.2", "12.4.1", "12.6.3", "12.8.1", "12.9.1")
LATER = ("13.0.2", "13.2.0", "13.4.2")
DATA = set_data_of(
    *(cuda(label, (LINUX, SBSA, JETSON, WINDOWS)) for label in LABELS),
    *(cuda(label, (LINUX, SBSA, WINDOWS)) for label in LATER),
)


PLAIN = "5.0 5.2 6.0 6.1 7.0 7.5 8.0 8.6 8.9"
BLACKWELL = "10.0 10.0a 10.0f 10.3 10.3a 10.3f 12.0 12.0a 12.0f 12.1 12.1a 12.1f"


def flags(cuda_label: str, *capabilities: str, platform: str = LINUX, **more: object) -> Flags:
    return build(DATA, cuda_label, platform, capabilities=capabilities, **more).capabilities


# -- both forms


def test_flags_have_strings_of_nixpkgs_and_cudaredist() -> None:
    result = flags("12.6.3", "7.5", "8.6")
    assert result.arch_names == ("Ampere", "Turing")
    assert result.real_arches == ("sm_75", "sm_86")
    assert result.virtual_arches == ("compute_75", "compute_86")
    assert result.arches == ("sm_75", "sm_86", "compute_86")
    assert result.gencode == (
        "-gencode=arch=compute_75,code=sm_75",
        "-gencode=arch=compute_86,code=sm_86",
        "-gencode=arch=compute_86,code=compute_86",
    )
    assert result.gencode_string == " ".join(result.gencode)
    assert result.lto_arches == ("lto_75", "lto_86")
    assert result.gencode_lto == (
        "-gencode=arch=compute_75,code=lto_75",
        "-gencode=arch=compute_86,code=lto_86",
        "-gencode=arch=compute_86,code=compute_86",
    )
    assert result.cmake_cuda_architectures == "75;86"
    assert result.cmake_architectures_real_virtual == "75-real;86"
    assert result.torch_cuda_arch_list == "7.5;8.6+PTX"
    assert result.forward_compat


@pytest.mark.parametrize(
    ("capabilities", "forward_compat", "arches", "nixpkgs", "cmake", "torch"),
    [
        pytest.param(
            *("8.6 7.5 8.6", None, "sm_86 sm_75 sm_86 compute_86"),
            *("86;75;86", "75-real;86", "7.5;8.6+PTX"),
            id="nixpkgs keeps order and duplicates",
        ),
        pytest.param(
            *("8.6 7.5", None, "sm_86 sm_75 compute_75", "86;75", "75-real;86", "7.5;8.6+PTX"),
            id="nixpkgs has PTX of the last one, and the others of the highest one",
        ),
        pytest.param(
            *("7.5 8.6", False, "sm_75 sm_86", "75;86", "75-real;86-real", "7.5;8.6"),
            id="without PTX",
        ),
        pytest.param(
            *("9.0 10.0a", None, "sm_90 sm_100a compute_90"),
            *("90;100a-real", "90;100a-real", "9.0+PTX;10.0a"),
            id="PTX of the plain one",
        ),
        pytest.param(
            *("9.0 9.0a", None, "sm_90 sm_90a compute_90"),
            *("90;90a-real", "90;90a-real", "9.0+PTX;9.0a"),
            id="PTX of the plain one of an architecture",
        ),
        pytest.param(
            *("12.0 9.0 10.0 10.0f 10.0a", None),
            "sm_120 sm_90 sm_100 sm_100f sm_100a compute_100",
            "120;90;100;100f-real;100a-real",
            "90-real;100-real;100a-real;100f-real;120",
            "9.0;10.0;10.0a;10.0f;12.0+PTX",
            id="natural order",
        ),
        pytest.param("9.0a", None, "sm_90a", "90a", "90a-real", "9.0a", id="one architecture"),
        pytest.param("10.0f", None, "sm_100f", "100f", "100f-real", "10.0f", id="one family"),
        pytest.param("12.0a", None, "sm_120a", "120a", "120a-real", "12.0a", id="another one"),
    ],
)
def test_flags_depend_on_order_and_letters(
    capabilities: str, forward_compat: object, arches: str, nixpkgs: str, cmake: str, torch: str
) -> None:
    names = tuple(capabilities.split())
    package_set = build(DATA, "12.9.1", capabilities=names, forward_compat=forward_compat)
    result = valid(package_set).capabilities
    assert result.requested == result.effective == names
    assert result.arches == tuple(arches.split())
    assert [text.rpartition("=")[2] for text in result.gencode] == arches.split()
    assert result.gencode_string.count("-gencode") == len(result.gencode)
    assert result.forward_compat == ("compute" in arches)
    assert result.cmake_cuda_architectures == nixpkgs
    assert result.cmake_architectures_real_virtual == cmake
    assert result.torch_cuda_arch_list == torch


@pytest.mark.parametrize("name", ["9.0a", "10.0f", "12.0a"])
def test_architecture_specific_capability_has_no_forward_compat(name: str) -> None:
    digits = name.replace(".", "")
    lto = (f"-gencode=arch=compute_{digits},code=lto_{digits}",)
    assert flags("12.9.1", name).gencode_lto == lto
    with pytest.raises(UsageError, match="forward compatibility requires") as raised:
        flags("12.9.1", name, forward_compat=True)
    assert "remove --forward-compat" in (raised.value.hint or "")


def test_unknown_capability_suggests_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no compute capability is called '8\.8b'"
    ) as raised:
        flags("12.6.3", "8.8b")
    assert "did you mean 8.8" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("label", "platform", "expected"),
    [
        ("11.8.0", LINUX, "6.0 6.1 7.0 7.5 8.0 8.6 8.9 9.0"),
        ("12.2.2", LINUX, "6.0 6.1 7.0 7.5 8.0 8.6 8.9 9.0"),
        ("12.4.1", LINUX, "7.0 7.5 8.0 8.6 8.9 9.0"),
        ("12.6.3", LINUX, "7.5 8.0 8.6 8.9 9.0"),
        ("12.8.1", LINUX, "7.5 8.0 8.6 8.9 9.0 10.0 12.0"),
        ("12.9.1", LINUX, "7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0 12.1"),
        ("13.0.2", LINUX, "7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0 12.1"),
        ("12.9.1", SBSA, "7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0 12.1"),
        ("13.0.2", SBSA, "7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0 12.1"),
        ("11.8.0", JETSON, "7.2 8.7"),
        ("12.2.2", JETSON, "7.2 8.7"),
        ("12.4.1", JETSON, "8.7"),
        ("12.9.1", JETSON, "8.7"),
    ],
)
def test_default_capabilities_depend_on_cuda_release_and_platform(
    label: str, platform: str, expected: str
) -> None:
    result = flags(label, platform=platform)
    assert " ".join(result.default) == expected
    assert (result.effective, result.requested) == (result.default, ())
    assert set(result.default) <= set(result.supported)


def test_default_jetsons_start_at_oldest_of_policy() -> None:
    policies = {"platforms": {"oldest_jetson": rule(capability="8.7")}}
    data = set_data_of(cuda("11.8.0", (LINUX, JETSON)), policies=policies)
    assert build(data, "11.8.0", JETSON).capabilities.default == ("8.7",)
    assert flags("11.8.0", platform=JETSON).default == ("7.2", "8.7")


# -- sets for each capability


@pytest.mark.parametrize(
    ("label", "request_for", "expected"),
    [
        ("11.8.0", {"platform": JETSON}, "7.2 8.7"),
        ("11.8.0", {"platform": LINUX}, "3.5 3.7 5.0 5.2 6.0 6.1 7.0 7.5 8.0 8.6 8.9 9.0"),
        ("12.8.1", {"system": "x86_64-linux"}, f"{PLAIN} 9.0 9.0a 10.0 10.0a 12.0 12.0a"),
        (
            "12.8.1",
            {"system": "aarch64-linux"},
            f"{PLAIN.replace('8.9', '8.7* 8.9')} 9.0 9.0a 10.0 10.0a 10.1 10.1a 12.0 12.0a",
        ),
        ("13.0.2", {"platform": WINDOWS}, f"7.5 8.0 8.6 8.9 9.0 9.0a {BLACKWELL}"),
    ],
)
def test_all_capabilities_make_one_set_each(
    label: str, request_for: dict[str, Any], expected: str
) -> None:
    request = Request(capabilities=("all",), allow_missing_features=True, **request_for)
    specs = specs_for(request, DATA, [label])
    flags = [spec.flags for spec in specs if isinstance(spec, SetSpec)]
    names = [
        f"{own.requested[0]}{'*' * (spec.platform == JETSON)}"
        for spec, own in zip(specs, flags, strict=True)
    ]
    on_jetson = "*" if request_for.get("platform") == JETSON else ""
    assert names == [f"{name}{on_jetson}" for name in expected.split()]
    assert not any(own.forward_compat for own in flags)


@pytest.mark.parametrize(
    ("label", "request_for", "message"),
    [
        ("13.0.2", {"platform": JETSON}, "CUDA 13.0.2 is not published for linux-aarch64"),
        ("13.0.2", {"system": "riscv64-linux"}, "no supported Nix system is called"),
    ],
)
def test_all_capabilities_of_unpublished_platform_are_refused_once(
    label: str, request_for: dict[str, Any], message: str
) -> None:
    (spec,) = specs_for(Request(capabilities=("all",), **request_for), DATA, [label])
    assert isinstance(spec, RefusedSet)
    assert message in spec.error.message


# -- errors


def test_all_capability_errors_are_reported() -> None:
    with pytest.raises(UsageError) as raised:
        flags("12.6.3", "3.5", "12.0", "8.7")
    message = raised.value.message
    assert message.startswith(
        "cudaPackages_12_6: CUDA 12.6 does not support 3.5, CUDA 5.0 to 11.8 do"
    )
    assert "CUDA 12.6 does not support 12.0, CUDA 12.8 and newer do" in message
    assert "capability 8.7 is a Jetson GPU, but linux-x86_64 has no Jetson build" in message
    assert raised.value.hint == "run `cudaredist explain cuda 12.6` to list its capabilities"


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
def test_jetson_capabilities_require_jetson_sets(
    label: str, capabilities: Sequence[str], platform: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        flags(label, *capabilities, platform=platform)


def test_compatible_jetson_mixtures_are_accepted() -> None:
    assert flags("12.2.2", "8.7", "7.2", platform=JETSON).effective == ("8.7", "7.2")
    assert flags("13.0.2", "8.7", "9.0", platform=SBSA).effective == ("8.7", "9.0")
    assert flags("12.9.1", "10.1", "9.0", platform=SBSA).effective == ("10.1", "9.0")


@pytest.mark.parametrize(
    ("label", "platform", "capabilities", "codes"),
    [
        ("13.0.2", SBSA, ["8.7"], ["jetson-unknown"]),
        ("13.2.0", SBSA, ["8.7"], []),
        ("13.0.2", SBSA, ["11.0"], []),
        ("12.6.3", JETSON, ["8.7"], []),
        ("12.6.3", JETSON, [], []),
        ("12.6.3", JETSON, ["9.0"], ["no-jetson-capability"]),
    ],
)
def test_jetson_diagnostics_are_reported(
    label: str, platform: str, capabilities: Sequence[str], codes: list[str]
) -> None:
    has_code = {name: with_code({"sm_80": 5}) for name in ("cuda_cudart", "cuda_nvcc")}
    data = DATA if platform == JETSON else set_data_of(cuda(label, features=has_code))
    package_set = build(data, label, platform, capabilities=tuple(capabilities))
    assert [d.code for d in package_set.diagnostics if "jetson" in d.code] == codes


@pytest.mark.parametrize(("label", "value"), [("13.1.0", "unknown"), ("13.2.0", "native")])
def test_orin_runs_code_for_other_gpus_from_first_known_release(label: str, value: str) -> None:
    """Without a warning for each package."""
    has_code = {name: with_code({"sm_80": 5}) for name in ("cuda_cudart", "cuda_nvcc")}
    package_set = build(
        set_data_of(cuda(label, features=has_code)), label, SBSA, capabilities=("8.7",)
    )
    (part,) = package_set.packages["cuda_nvcc"].coverage.values()
    assert (part.value, part.by_desktop_code) == (value, True)
    assert not [d for d in package_set.diagnostics if d.code.startswith("coverage-")]
    count = sum(d.code == "jetson-unknown" for d in package_set.diagnostics)
    assert count == (value == "unknown")


def test_release_missing_from_gpu_table_is_refused() -> None:
    data = set_data_of(cuda("13.9.0"))
    for capabilities in ((), ("9.0",)):
        with pytest.raises(
            UsageError, match=r"gpus\.json has no capabilities for CUDA 13\.9"
        ) as raised:
            build(data, "13.9.0", capabilities=capabilities)
        assert raised.value.hint == "run `cudaredist update-gpus`"


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
def test_gcc_is_selected_from_available_versions(
    label: str,
    default: int | None,
    available: Sequence[int],
    selected: int,
    *,
    uses_default: bool,
    runtime: str,
) -> None:
    compiler = host(label, default, available)
    assert compiler.gcc is not None
    assert (compiler.gcc.selected, compiler.gcc.uses_default) == (selected, uses_default)
    assert compiler.gcc.default == default
    assert compiler.cxx_runtime == runtime
    low, high = compiler.gcc.min or 0, compiler.gcc.max or 99
    assert low <= selected <= high


def test_host_compilers_are_those_of_patch_release() -> None:
    data = set_data_of(cuda("12.2.0"), cuda("12.2.2"))
    newest = {label: host(label, None, data=data).clang for label in ("12.2.0", "12.2.2")}
    assert {label: clang and clang.max for label, clang in newest.items()} == {
        "12.2.0": 15,
        "12.2.2": 16,
    }


@pytest.mark.parametrize(
    ("label", "newest", "clashes"),
    [
        ("12.9.1", "2.40", ("cospi", "cospif", "sinpi", "sinpif")),
        ("13.0.2", "2.41", ("rsqrt", "rsqrtf")),
    ],
)
def test_newest_glibc_is_that_of_release(label: str, newest: str, clashes: tuple[str, ...]) -> None:
    assert host(label, 13).glibc == HostGlibc(newest=newest, clashes=clashes)


def test_unavailable_gcc_names_accepted_range() -> None:
    with pytest.raises(
        UsageError, match="accepts GCC 6 to 13, but the available versions are 4, 14"
    ) as raised:
        host("12.6.3", 14, (14, 4))
    assert raised.value.hint == (
        "add an accepted version with --available-gcc: `cudaredist ... --available-gcc 13`"
    )


def test_ranges_of_other_compilers_are_stated() -> None:
    compiler = host("12.6.3", 13)
    assert compiler.clang is not None
    assert (compiler.clang.min, compiler.clang.max) == (7, 18)
    assert compiler.msvc is not None


def test_release_missing_from_nvcc_table_is_refused() -> None:
    nvcc = DATA.nvcc.model_copy(
        update={"releases": {k: v for k, v in DATA.nvcc.releases.items() if k[:4] != "12.9"}}
    )
    data = set_data_of(cuda("12.9.1"), nvcc=nvcc)
    with pytest.raises(
        UsageError, match=r"nvcc_compat\.json has no compilers for CUDA 12\.9"
    ) as raised:
        host("12.9.1", 13, data=data)
    assert raised.value.hint == "run `cudaredist update-nvcc-compat`"
