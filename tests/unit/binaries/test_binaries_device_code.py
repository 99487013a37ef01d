"""Tests of device code: containers, counts and damaged containers."""

import struct
from collections.abc import Callable

import pytest
from support.binaries import (
    ar,
    coff,
    concatenated,
    container,
    cubin,
    elf,
    entry,
    examined,
    fatbin,
    patched,
    pe,
    read,
)
from support.cost import bounded_cost
from support.patching import Patch

from cudaredist.binaries import fatbin as scanner
from cudaredist.binaries.file_facts import Binary, DeviceImages
from cudaredist.primitives import natural_order


def counts(data: bytes) -> dict[str, int]:
    binary = read(data)
    return binary.device_code[0].counts if binary.device_code else {}


def all_counts(binary: Binary) -> list[tuple[str, int]]:
    return [item for section in binary.device_code for item in section.counts.items()]


def test_architectures_are_ordered_as_numbers() -> None:
    names = ["sm_100f", "odd", "sm_90a", "lto_75", "sm_100", "compute_90", "sm_75", "sm_90"]
    assert sorted(names, key=natural_order) == [
        *("compute_90", "lto_75", "odd", "sm_75", "sm_90", "sm_90a", "sm_100", "sm_100f")
    ]


@pytest.mark.parametrize("suffix", ["", "a", "f"])
@pytest.mark.parametrize("kind", ["sm", "compute", "lto"])
@pytest.mark.parametrize("number", [35, 75, 121])
def test_architecture_of_every_kind_is_counted(kind: str, number: int, suffix: str) -> None:
    image = (kind, number, suffix)
    for images in ([image], [image, image]):
        assert counts(fatbin(images)) == {f"{kind}_{number}{suffix}": len(images)}


def test_newest_ptx_version_of_each_module_is_read() -> None:
    old, new = (container([entry("sm", 80), entry("compute", 90, ptx=v)]) for v in ((8, 7), (9, 5)))
    images = read(new + old + fatbin([("sm", 90, "")])).images
    assert images is not None
    assert images.ptx == {"compute_90 sm_80": "9.5"}


CUBINS = {
    "file": (cubin(100, "a"), "sm_100a"),
    "file of an earlier format": (cubin(90, "a", abi=7), "sm_90a"),
    "in data": (elf(sections={".rodata": b"x" * 9 + cubin(75, abi=7) + cubin(90)}), "sm_75 sm_90"),
    "after a container": (elf(sections={".rodata": fatbin() + cubin(80)}), "sm_80"),
    "in a container": (elf(sections={".nv_fatbin": fatbin(payload=cubin())}), ""),
    "in code": (elf(sections={".text": cubin()}), ""),
    "cut off": (elf(sections={".rodata": cubin()[:100]})[:400], ""),
    "of a host": (elf(sections={".rodata": elf()}), ""),
}


@pytest.mark.parametrize(("data", "names"), CUBINS.values(), ids=CUBINS)
def test_cubin_outside_of_a_container_is_counted(data: bytes, names: str) -> None:
    cubins = read(data).cubins
    assert " ".join(cubins.modules if cubins else ()) == names


def test_size_of_a_cubin_ends_with_its_headers() -> None:
    cubins = read(cubin(90, size=1000) + bytes(500)).cubins
    assert cubins == DeviceImages(sizes={"sm_90": (1128, 1128)}, modules={"sm_90": 1})


OTHER = fatbin([("sm", 80, "")])
MIXED = concatenated([("sm", 90, "a"), ("compute", 100, "f"), ("lto", 75, "")])
MANY = concatenated([("sm", n, "") for n in range(100, 150)])
COUNTED: dict[str, tuple[bytes, str]] = {
    "two containers": (fatbin() + bytes(8) + OTHER, "sm_80 sm_90"),
    "nested in a payload": (fatbin(payload=fatbin([("sm", 10, "")])), "sm_90"),
    "concatenated": (container([MIXED]), "compute_100f lto_75 sm_90a"),
    "many concatenated": (
        container([MANY, entry("sm", 90)]),
        " ".join(f"sm_{n}" for n in (90, *range(100, 150))),
    ),
    "name and options": (
        container([entry("sm", 90, name=b"a.cu", options=b"-O3"), entry("compute", 90)]),
        "compute_90 sm_90",
    ),
    "after an empty container": (container() + fatbin(), "sm_90"),
    "an empty payload": (container([entry(payload=b"")]), "sm_90"),
    "size too large": (container([entry()], size=1 << 50) + OTHER, "sm_80"),
    "no version": (container([entry(version=0)]) + OTHER, "sm_80"),
    "entry larger than the container": (
        container([entry()], size=72) + bytes(200) + OTHER,
        "sm_80",
    ),
    "after half a magic number": (b"\x50\xed\x55\xba" * 3 + OTHER, "sm_80"),
}


@pytest.mark.parametrize(("data", "expected"), COUNTED.values(), ids=COUNTED)
def test_device_code_is_counted(data: bytes, expected: str) -> None:
    binary = read(elf(sections={".nv_fatbin": data}))
    assert all_counts(binary) == [(name, 1) for name in expected.split()]
    assert binary.notes == ()


BROKEN: dict[str, tuple[bytes, dict[str, int], str]] = {
    "breaks in the second entry": (
        container([entry(), entry()], size=2 * 96 - 8) + OTHER,
        {"sm_80": 1},
        "1 damaged containers of device code skipped, the first at byte 16",
    ),
    "cut in a payload": (fatbin()[:-1], {}, "1 damaged containers"),
    "cut in a header": (container([entry(), entry("sm", 70)])[: 16 + 96 + 30], {}, "1 damaged"),
    "kind": (container([entry(77), entry()]), {"sm_90": 1}, "unknown kind 77 of device code"),
    "only that kind": (container([entry(77)]), {}, "unknown kind 77 of device code"),
    "number": (container([entry("sm", 123456)]), {}, "for an impossible architecture"),
}


@pytest.mark.parametrize(("data", "expected", "note"), BROKEN.values(), ids=BROKEN)
def test_odd_device_code_is_noted(data: bytes, expected: dict[str, int], note: str) -> None:
    binary = read(bytes.fromhex("50ED55BA01001000") + bytes(8) + data)
    assert binary.kind == "fatbin"
    assert all_counts(binary) == list(expected.items())
    assert len(binary.notes) == 1
    assert note in binary.notes[0]


WHOLE = concatenated([("sm", 90, ""), ("sm", 100, "")])


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(patched(WHOLE, 0x14, "<I", 0), id="no options"),
        pytest.param(patched(WHOLE, 0x14, "<I", 1 << 31), id="options outside"),
        pytest.param(patched(WHOLE, 64, "<I", 1 << 31), id="count"),
        pytest.param(patched(WHOLE, 68, "<I", 1 << 31), id="table outside"),
        pytest.param(patched(WHOLE, 68, "<I", 8 + 64), id="table too short"),
        pytest.param(patched(WHOLE, 0x38, "<Q", 150), id="images outside the blob"),
        pytest.param(patched(WHOLE, 72 + 64 + 4, "<I", 50), id="images overlap"),
        pytest.param(
            patched(WHOLE[:64], 4, "<I", 2 << 20) + bytes((2 << 20) - 64) + WHOLE[-64:],
            id="huge header",
        ),
    ],
)
def test_broken_concatenated_entry_is_noted(broken: bytes) -> None:
    binary = read(container([broken, entry("sm", 75)]))
    assert binary.device_code[0].counts == {"sm_75": 1}
    assert binary.notes == ("invalid concatenated device code",)


LIMITS = ["_FALSE_HIT_LIMIT", "_CONTAINER_LIMIT", "_CONTENT_LIMIT", "_ENTRY_LIMIT"]


@pytest.mark.parametrize("limit", LIMITS)
def test_search_stops_at_cost_limit(limit: str, patch: Patch) -> None:
    patch(scanner, limit, 3)
    data = b"".join(fatbin([("sm", n, "")]) + container(size=1 << 60) + bytes(64) for n in range(9))
    binary = read(elf(sections={".nv_fatbin": data}))
    assert 1 <= len(binary.device_code[0].counts) < 9
    assert len(binary.notes) == 1
    assert binary.notes[0].startswith("device code not read to the end: more than 3")


SASS, PTX = ("sm", 90, ""), ("compute", 80, "")


ORDERED = [PTX, ("sm", 100, "f"), ("sm", 75, ""), ("lto", 75, ""), SASS, SASS]
IMAGES: dict[str, tuple[bytes, dict[str, tuple[int, int]], dict[str, int]]] = {
    "stored": (
        fatbin([SASS, PTX]) * 2 + fatbin([SASS]),
        {"sm_90": (96, 96), "compute_80": (64, 64)},
        {"compute_80 sm_90": 2, "sm_90": 1},
    ),
    "natural order": (
        fatbin(ORDERED),
        {"sm_90": (64, 64)} | dict.fromkeys(("sm_75", "sm_100f", "lto_75", "compute_80"), (32, 32)),
        {"compute_80 lto_75 sm_75 sm_90*2 sm_100f": 1},
    ),
    "compressed": (
        container([patched(entry(), 0x38, "<Q", 5000)]),
        {"sm_90": (32, 5000)},
        {"sm_90": 1},
    ),
    "compressed together": (
        container([concatenated([SASS, SASS, PTX], size=100)]),
        {"sm_90": (0, 200), "compute_80": (0, 100)},
        {"compute_80 sm_90*2": 1},
    ),
} | {
    f"last container {name}": (fatbin([SASS]) + last, {"sm_90": (32, 32)}, {"sm_90": 1})
    for name, last in {
        "truncated": fatbin([SASS, PTX])[:-8],
        "damaged": container([entry(), entry()[:64] + bytes(8)]),
    }.items()
}


@pytest.mark.parametrize(("data", "sizes", "modules"), IMAGES.values(), ids=IMAGES)
def test_images_are_summed_by_architecture_and_module(
    data: bytes, sizes: dict[str, tuple[int, int]], modules: dict[str, int]
) -> None:
    images = read(data).images
    assert images is not None
    assert (images.sizes, images.modules) == (sizes, modules)


@pytest.mark.parametrize("wrap", [elf, pe, coff, ar])
def test_images_are_read_from_every_kind_of_file(wrap: Callable[..., bytes]) -> None:
    code = fatbin([SASS]) + fatbin([PTX])
    data = ar({"x.o": code}) if wrap is ar else wrap(sections={".nv_fatb": code})
    images = read(data).images
    assert images is not None
    assert images.modules == {"sm_90": 1, "compute_80": 1}


def test_images_without_device_code_are_none() -> None:
    assert read(elf()).images is None
    assert read(container()).images is None
    assert read(fatbin([SASS])[:-1]).images is None


def test_impossible_decompressed_size_is_noted_and_not_counted() -> None:
    binary = read(container([patched(entry(), 0x38, "<Q", 1 << 63), entry()]))
    assert binary.images == DeviceImages(sizes={"sm_90": (64, 32)}, modules={"sm_90*2": 1})
    assert binary.notes == ("device code with an impossible decompressed size",)


def test_number_of_noted_kinds_is_limited() -> None:
    binary = read(container([entry(kind) for kind in range(1000, 1100)]))
    assert len(binary.notes) == 20


def test_search_stops_after_many_damaged_containers(patch: Patch) -> None:
    patch(scanner, "_FALSE_HIT_LIMIT", 3)
    broken = container([entry()], size=200) + bytes(64)
    binary = read(elf(sections={".nv_fatbin": broken * 9 + fatbin()}))
    assert binary.device_code == ()
    assert binary.notes[0].startswith("4 damaged containers of device code skipped, the first at")
    assert binary.notes[1].startswith("device code not read to the end: more than 3 damaged")


@pytest.mark.parametrize("unit", [fatbin(payload=b""), container([entry(payload=b"")], size=144)])
def test_expensive_device_code_is_read_within_cost_limit(unit: bytes) -> None:
    with bounded_cost():
        examined([unit * 20_000])


def test_record_of_concatenated_code_with_options_is_read() -> None:
    outer = concatenated([("sm", 90, "")])
    inner = patched(outer[72:136], 0x14, "<I", 64) + struct.pack("<II", 72, 3) + b"-O3\0" + bytes(4)
    table = struct.pack("<II", 2, 8 + len(inner) + 64) + inner
    table += patched(outer[72:136], 4, "<I", 100)
    header = patched(patched(outer[:64], 4, "<I", 64 + len(table)), 0x38, "<Q", 200)
    binary = read(container([header + table + outer[-64:]]))
    assert (binary.device_code[0].counts, binary.notes) == ({"sm_90": 2}, ())
