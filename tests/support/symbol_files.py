"""Small ELF files and DLLs with symbols. None of them can run."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from support.binaries import pe

BASE = 0x10000
BINDINGS = {"local": 0, "global": 1, "weak": 2, "unique": 10}
TYPES = {"notype": 0, "object": 1, "func": 2, "tls": 6, "ifunc": 10}


class Symbol(NamedTuple):
    """A symbol to write."""

    name: str
    is_defined: bool = True
    version: str = ""
    """The name of one of the needed or defined versions."""
    is_default: bool = True
    binding: str = "global"
    kind: str = "func"
    section: int = 7
    other: int = 0


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str | bytes) -> int:
        raw = text.encode() if isinstance(text, str) else text
        place = len(self.data)
        self.data += raw + b"\0"
        return place


def elf_with_symbols(
    symbols: Sequence[Symbol],
    *,
    needs: Mapping[str, Sequence[str]] | None = None,
    defines: Sequence[str] = (),
    soname: str = "libx.so.1",
    bits: int = 64,
    order: str = "<",
    hashes: str = "gnu",
    has_section_headers: bool = True,
    replaced: Mapping[int, int] | None = None,
    tables: Mapping[str, bytes] | None = None,
    behind: Sequence[str] = (),
    gap: int = 0,
) -> bytes:
    """Return a shared library. Undefined symbols must be first.

    `needs` has the versions by library. `hashes` is `gnu`, `sysv` or empty. `replaced` has other
    values of dynamic tags, and `tables` other bytes of tables. The tables in `behind` come after
    the dynamic section, each after `gap` zeros.
    """
    wide = bits == 64
    strings = _Strings()
    numbers: dict[str, int] = {}
    soname_at, library_at = strings.add(soname), {lib: strings.add(lib) for lib in needs or {}}
    definitions = _definitions([soname, *defines] if defines else [], strings, order, numbers)
    requirements = _requirements(needs or {}, library_at, strings, order, numbers)
    entries, versions = [_symbol(order, (0, 0, 0, 0), wide=wide)], [0]
    for symbol in symbols:
        info = BINDINGS[symbol.binding] << 4 | TYPES[symbol.kind]
        section = symbol.section if symbol.is_defined else 0
        place = strings.add(symbol.name) if symbol.name else 0
        entries.append(_symbol(order, (place, info, symbol.other, section), wide=wide))
        hidden = 0 if symbol.is_default or not symbol.is_defined else 0x8000
        versions.append(numbers.get(symbol.version, 1) | hidden)
    first = next((n for n, s in enumerate(symbols, 1) if s.is_defined), len(entries))
    made = {
        "gnu": _gnu_hash(order, first, len(entries), wide=wide) if hashes == "gnu" else b"",
        "sysv": struct.pack(order + "III", 1, len(entries), 0) if hashes == "sysv" else b"",
        "symbols": b"".join(entries),
        "strings": strings.data,
        "versions": b"".join(struct.pack(order + "H", version) for version in versions),
        "definitions": definitions,
        "requirements": requirements,
    } | dict(tables or {})
    counts = (1 + len(defines) if defines else 0, len(needs or {}))
    return _file(
        made,
        soname_at,
        counts,
        wide=wide,
        order=order,
        has_section_headers=has_section_headers,
        replaced=replaced or {},
        behind=behind,
        gap=gap,
    )


def _file(
    tables: Mapping[str, bytes],
    soname: int,
    counts: tuple[int, int],
    *,
    wide: bool,
    order: str,
    has_section_headers: bool,
    replaced: Mapping[int, int],
    behind: Sequence[str],
    gap: int,
) -> bytes:
    word = "Q" if wide else "I"
    data, places = bytearray((64 if wide else 52) + 2 * (56 if wide else 32)), {}
    for name, content in tables.items():
        if content and name not in behind:
            data += bytes(-len(data) % 8)
            places[name] = len(data)
            data += content
    data += bytes(-len(data) % 8)
    tags = {14: soname}
    names = {"gnu": 0x6FFFFEF5, "sysv": 4, "symbols": 6, "strings": 5, "versions": 0x6FFFFFF0}
    names |= {"definitions": 0x6FFFFFFC, "requirements": 0x6FFFFFFE}
    after = b""
    start = len(data)
    count = 5 + len([name for name in names if tables.get(name)]) + len(replaced)
    room = count * struct.calcsize(order + 2 * word)
    for name in behind:
        after += bytes(gap)
        places[name] = start + room + len(after)
        after += tables[name] + bytes(-len(tables[name]) % 8)
    tags |= {tag: BASE + places[name] for name, tag in names.items() if name in places}
    tags |= {10: len(tables["strings"]), 0x6FFFFFFD: counts[0], 0x6FFFFFFF: counts[1]}
    tags |= replaced
    for tag, value in (*tags.items(), (0, 0)):
        data += struct.pack(order + 2 * word, tag, value)
    dynamic = len(data) - start
    data = data.ljust(start + room, b"\0") + after
    end = len(data)
    headers_at = 0
    if has_section_headers:
        size = len(tables["symbols"])
        data += b"\0.names\0.dynsym\0"
        headers_at = len(data)
        for fields in (
            (0, 0, 0, 0, 0),
            (1, 3, 0, end, 15),
            (8, 11, BASE + places["symbols"], places["symbols"], size),
        ):
            form = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
            data += struct.pack(form, *fields[:2], 0, *fields[2:], 0, 0, 0, 0)
    header = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    header += struct.pack(
        order + f"HHI{3 * word}IHHHHHH",
        *(3, 62, 1, 0, 64 if wide else 52, headers_at, 0, 64 if wide else 52),
        *(56 if wide else 32, 2, 64 if wide else 40, 3 if headers_at else 0, 1),
    )
    for kind, place, size in ((1, 0, end), (2, start, dynamic)):
        address = BASE + place
        header += (
            struct.pack(order + "IIQQQQQQ", kind, 5, place, address, address, size, size, 8)
            if wide
            else struct.pack(order + "IIIIIIII", kind, place, address, address, size, size, 5, 8)
        )
    data[: len(header)] = header
    return bytes(data)


def _symbol(order: str, fields: tuple[int, int, int, int], *, wide: bool) -> bytes:
    name, info, other, section = fields
    if wide:
        return struct.pack(order + "IBBHQQ", name, info, other, section, 0, 0)
    return struct.pack(order + "IIIBBH", name, 0, 0, info, other, section)


def _gnu_hash(order: str, first: int, count: int, *, wide: bool) -> bytes:
    """Return a table with one bucket."""
    defined = count - first
    chain = [0] * (defined - 1) + [1] * bool(defined)
    words = struct.pack(order + f"{len(chain)}I", *chain)
    head = struct.pack(order + "IIII", 1, first if defined else 1, 1, 0)
    bucket = struct.pack(order + "I", first if defined else 0)
    return head + bytes(8 if wide else 4) + bucket + words


def _definitions(
    names: Sequence[str], strings: _Strings, order: str, numbers: dict[str, int]
) -> bytes:
    data = b""
    for number, name in enumerate(names, 1):
        numbers[name] = number
        step = 0 if number == len(names) else 28
        data += struct.pack(order + "HHHHIII", 1, int(number == 1), number, 1, 0, 20, step)
        data += struct.pack(order + "II", strings.add(name), 0)
    return data


def _requirements(
    needs: Mapping[str, Sequence[str]],
    library_at: Mapping[str, int],
    strings: _Strings,
    order: str,
    numbers: dict[str, int],
) -> bytes:
    data = b""
    number = 20
    for index, (library, versions) in enumerate(needs.items(), 1):
        step = 16 * (1 + len(versions)) if index < len(needs) else 0
        data += struct.pack(order + "HHIII", 1, len(versions), library_at[library], 16, step)
        for at, version in enumerate(versions, 1):
            number += 1
            numbers[version] = number
            inner = 16 if at < len(versions) else 0
            data += struct.pack(order + "IHHII", 0, 0, number, strings.add(version), inner)
    return data


def dll_with_symbols(
    exports: Iterable[tuple[int, str, str]] = (),
    imports: Mapping[str, Sequence[str | int]] | None = None,
    *,
    machine: str = "x86_64",
) -> bytes:
    """Return a DLL with exports, each with its ordinal, name and forwarder, and imports."""
    wide = machine != "x86"
    body, start = bytearray(), 0x3000

    def put(content: bytes) -> int:
        place = start + len(body)
        body.extend(content + bytes(-len(content) % 8))
        return place

    exported = sorted(exports)
    export_at = export_size = 0
    if exported:
        base, last = exported[0][0], exported[-1][0]
        named = sorted((name, ordinal) for ordinal, name, _ in exported if name)
        functions = [0] * (last - base + 1)
        export_at = put(bytes(40))
        for ordinal, _, forwarder in exported:
            functions[ordinal - base] = put(forwarder.encode() + b"\0") if forwarder else 0x1000
        names = [put(name.encode() + b"\0") for name, _ in named]
        library = put(b"x64_1.dll\0")
        places = (
            put(struct.pack(f"<{len(functions)}I", *functions)),
            put(struct.pack(f"<{len(names)}I", *names)),
            put(struct.pack(f"<{len(names)}H", *(ordinal - base for _, ordinal in named))),
        )
        fields = (0, 0, 0, 0, library, base, len(functions), len(names), *places)
        body[export_at - start : export_at - start + 40] = struct.pack("<IIHHIIIIIII", *fields)
        export_size = len(body)
    descriptors = b""
    for dll, wanted in (imports or {}).items():
        thunks = [
            put(struct.pack("<H", 0) + name.encode() + b"\0")
            if isinstance(name, str)
            else name | 1 << (63 if wide else 31)
            for name in wanted
        ]
        table = put(struct.pack(f"<{len(thunks) + 1}{'Q' if wide else 'I'}", *thunks, 0))
        descriptors += struct.pack("<IIIII", table, 0, 0, put(dll.encode() + b"\0"), table)
    import_at = put(descriptors + bytes(20)) if descriptors else 0
    image = bytearray(pe(machine=machine, sections={".idata": bytes(body)}))
    directories = image.index(b"PE\0\0") + 24 + (112 if wide else 96)
    struct.pack_into("<IIII", image, directories, export_at, export_size, import_at, 40)
    return bytes(image)
