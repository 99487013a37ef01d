"""Small binaries of every supported kind. None of them can run."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from cudaredist.binaries.examine_file import examine
from cudaredist.binaries.file_content import Scratch
from cudaredist.binaries.file_facts import Binary

KINDS = {"compute": 1, "sm": 2, "lto": 8}
SUFFIXES = {"": 0, "a": 0x100000, "f": 0x200000}
ELF_MACHINES = {"x86": 3, "arm": 40, "x86_64": 62, "aarch64": 183, "ppc64le": 21}
PE_MACHINES = {"x86": 0x14C, "x86_64": 0x8664, "aarch64": 0xAA64}
FLAGS = {".text": 6, ".debug_str": 0}
"""The flags of sections that contain code, or are not loaded. All others are loaded data."""
PROGRAM_HEADERS = 64
"""The position of the program headers in a 64-bit file."""

Image = tuple[str, int, str]
"""For example, `("sm", 90, "a")`."""


def aligned(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    """Return a file with another number at an offset."""
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


def examined(chunks: Iterable[bytes]) -> Binary | None:
    """Return the facts of a file's chunks."""
    with closing(Scratch()) as scratch:
        return examine(chunks, scratch)


def read(data: bytes) -> Binary:
    binary = examined([data])
    assert binary is not None
    return binary


# -- device code


def entry(
    kind: str | int = "sm",
    number: int = 90,
    suffix: str = "",
    *,
    payload: bytes = b"\x7fELF" + bytes(28),
    name: bytes = b"",
    options: bytes = b"",
    version: int = 0x0101,
    ptx: tuple[int, int] = (1, 7),
) -> bytes:
    """Return an entry with a stored payload. `ptx` is the version of its PTX."""
    header = _image_header(
        kind, number, suffix, sizes=(0, len(aligned(payload, 8))), name=name, options=options
    )
    header = header[:2] + struct.pack("<HI", version, len(header)) + header[8:]
    return header[:24] + struct.pack("<HH", ptx[1], ptx[0]) + header[28:] + aligned(payload, 8)


def concatenated(images: Sequence[Image], *, payload: bytes = bytes(64), size: int = 100) -> bytes:
    """Return an entry with several images, each of `size` decompressed bytes."""
    records = b"".join(
        _image_header(*image, sizes=(0, size), place=index * size, name=b"x" * index)
        for index, image in enumerate(images)
    )
    block = struct.pack("<II", len(images), 8 + len(records)) + records
    payload = aligned(payload, 8)
    header = struct.pack(
        "<HHIQIIHHIIIQQQ",
        *(256, 0x0101, 64 + len(block), len(payload), len(payload), 64, 1, 0, 0, 0, 0),
        *(0x8011, 0, len(images) * size),
    )
    return header + block + payload


def _image_header(
    kind: str | int,
    number: int,
    suffix: str,
    *,
    sizes: tuple[int, int],
    place: int = 0,
    name: bytes = b"",
    options: bytes = b"",
) -> bytes:
    compressed, size = sizes
    rest = b""
    name_at = options_at = 0
    if name:
        name_at = 64
        rest += aligned(name + b"\0", 8)
    if options:
        options_at = 64 + len(rest)
        rest += aligned(struct.pack("<II", options_at + 8, len(options)) + options + b"\0", 8)
    number_of_kind = KINDS[kind] if isinstance(kind, str) else kind
    return (
        struct.pack(
            "<HHIQIIHHIIIQQQ",
            *(number_of_kind, 0x0101, place, size, compressed, options_at, 7, 1, number),
            *(name_at, len(name), 0x11 | SUFFIXES[suffix], 0, 0),
        )
        + rest
    )


def container(entries: Iterable[bytes] = (), *, size: int | None = None) -> bytes:
    """Return a container of entries. `size` overrides the stated size."""
    body = b"".join(entries)
    stated = len(body) if size is None else size
    return bytes.fromhex("50ED55BA01001000") + struct.pack("<Q", stated) + body


def fatbin(images: Iterable[Image] = (("sm", 90, ""),), *, payload: bytes = bytes(32)) -> bytes:
    """Return a container with one entry for each image."""
    return container(entry(*image, payload=payload) for image in images)


def cubin(number: int = 90, suffix: str = "", *, abi: int = 8, size: int = 64) -> bytes:
    """Return machine code outside of a container. `abi` is the version of its format."""
    flags = (number << 8 | (8 if suffix else 0)) if abi >= 8 else number | (0x800 if suffix else 0)
    sections = 64 + size
    header = b"\x7fELF\x02\x01\x01" + bytes([0x41 if abi >= 8 else 0x33, abi]) + bytes(7)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, sections, flags, 64, 56, 0, 64, 1, 0)
    return header + bytes(sections - 64) + bytes(64)


# -- ELF

BINDINGS = {"local": 0, "global": 1, "weak": 2, "unique": 10}
TYPES = {"notype": 0, "object": 1, "func": 2, "tls": 6, "ifunc": 10}
TABLES = {
    "gnu": (".gnu.hash", 0x6FFFFFF6, 0x6FFFFEF5),
    "sysv": (".hash", 5, 4),
    "symbols": (".dynsym", 11, 6),
    "versions": (".gnu.version", 0x6FFFFFFF, 0x6FFFFFF0),
    "definitions": (".gnu.version_d", 0x6FFFFFFD, 0x6FFFFFFC),
    "requirements": (".gnu.version_r", 0x6FFFFFFE, 0x6FFFFFFE),
    "strings": (".dynstr", 3, 5),
}
"""Section name, section type and dynamic tag of each table."""
NAMED = {6, 11, 0x6FFFFFFD, 0x6FFFFFFE}
"""Types of sections with names in `.dynstr`."""
BASE = 0x400000
"""The address of the first byte."""


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
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        place = len(self.data)
        self.data += text.encode() + b"\0"
        return place


def elf(
    *,
    soname: str | None = None,
    needed: Sequence[str] = (),
    runpath: str | None = None,
    rpath: str | None = None,
    glibc: str | Sequence[str] | None = None,
    libstdcxx: str | Sequence[str] | None = None,
    needs: Mapping[str, Sequence[str]] | None = None,
    defines: Sequence[str] = (),
    symbols: Sequence[Symbol] | None = None,
    hashes: str = "gnu",
    tables: Mapping[str, bytes] | None = None,
    tags: Mapping[int, int] | None = None,
    machine: str | int = "x86_64",
    bits: int = 64,
    order: str = "<",
    kind: str = "shared",
    sections: Mapping[str, bytes] | None = None,
    strings: str = "before",
    behind: Sequence[str] = (),
    gap: int = 0,
    has_section_headers: bool = True,
) -> bytes:
    """Return an ELF file. `kind` is `shared`, `pie`, `program` or `object`.

    `needs` has the versions by library. Undefined symbols must be first. `hashes` is `gnu`, `sysv`
    or empty. `tables` overrides the bytes of tables, and `tags` the values of dynamic tags.

    `strings` selects the position of the names: `before` or `behind` (after) the dynamic section,
    or in `front` of the file. The tables in `behind` also follow the dynamic section. `gap` is the
    number of zeros before and after this section, and before each table that follows it.
    """
    names, numbers = _Strings(), dict[str, int]()
    values = [(1, names.add(name)) for name in needed]
    for tag, text in ((14, soname), (15, rpath), (29, runpath)):
        if text is not None:
            values.append((tag, names.add(text)))
    if kind == "pie":
        values.append((0x6FFFFFFB, 0x08000000))
    needs = _known_needs(glibc, libstdcxx) | dict(needs or {})
    contents = {
        "definitions": _definitions([soname or "", *defines], names, order, numbers)
        if defines
        else b"",
        "requirements": _requirements(needs, names, order, numbers),
    }
    if symbols is not None:
        contents = _symbol_tables(symbols, hashes, names, order, numbers, bits) | contents
    contents |= {"strings": bytes(names.data)} | dict(tables or {})
    contents = {name: contents[name] for name in TABLES if contents.get(name)}
    values += [(TABLES[name][2], 0) for name in reversed(contents)]
    values.append((10, len(contents["strings"])))
    values += [(0x6FFFFFFF, len(needs))] if needs else []
    values += [(0x6FFFFFFD, 1 + len(defines))] if defines else []
    image = _ElfImage(bits, order)
    if kind in {"pie", "program"}:
        image.put(".interp", b"/lib64/ld-linux-x86-64.so.2\0", 1)
    has_dynamic = kind != "object"
    if has_dynamic and strings == "front":
        image.put_table("strings", contents)
    for name, content in (sections or {}).items():
        image.put(name, content, 1)
    if has_dynamic:
        last = ("strings",) if strings == "behind" else behind
        image.put_dynamic(contents, last, gap, values, dict(tags or {}))
    number = ELF_MACHINES[machine] if isinstance(machine, str) else machine
    return image.finish(kind, number, len(needs), has_section_headers=has_section_headers)


class _ElfImage:
    """The sections of an ELF file. Space for the file header and program headers is reserved."""

    def __init__(self, bits: int, order: str) -> None:
        self.wide, self.order = bits == 64, order
        self.word = "Q" if self.wide else "I"
        self.head = 64 + 4 * 56 if self.wide else 52 + 4 * 32
        self.data = bytearray(self.head)
        self.sections: list[tuple[str, int, int]] = []
        """The name, type and size of each section."""
        self.places: dict[str, int] = {}

    def put(self, name: str, content: bytes, section_type: int) -> None:
        self.data += bytes(-(len(self.data) - self.head) % 16)
        self.places[name] = len(self.data)
        self.sections.append((name, section_type, len(content)))
        self.data += content

    def put_table(self, name: str, contents: Mapping[str, bytes]) -> None:
        section, section_type, _ = TABLES[name]
        self.put(section, contents[name], section_type)

    def put_dynamic(
        self,
        contents: Mapping[str, bytes],
        last: Sequence[str],
        gap: int,
        values: Sequence[tuple[int, int]],
        tags: dict[int, int],
    ) -> None:
        """Put the dynamic section, and the tables before and after it."""
        for name in contents:
            if name not in last and TABLES[name][0] not in self.places:
                self.put_table(name, contents)
        needed = [pair for pair in values if pair[0] == 1]
        dynamic = dict(pair for pair in values if pair[0] != 1) | tags
        form = self.order + 2 * self.word
        self.data += bytes(gap + -(len(self.data) - self.head + gap) % 16)
        start = len(self.data)
        self.put(".dynamic", bytes((len(needed) + len(dynamic) + 1) * struct.calcsize(form)), 6)
        for name in last:
            self.data += bytes(gap)
            self.put_table(name, contents)
        self.data += bytes(0 if last else gap)
        dynamic |= {
            TABLES[name][2]: BASE + self.places[TABLES[name][0]] for name in contents
        } | tags
        for number, pair in enumerate([*needed, *dynamic.items()]):
            struct.pack_into(form, self.data, start + number * struct.calcsize(form), *pair)

    def finish(self, kind: str, machine: int, needs: int, *, has_section_headers: bool) -> bytes:
        wide, order, end = self.wide, self.order, len(self.data)
        sizes = {name: size for name, _, size in self.sections}
        segments = [(3, self.places[".interp"], sizes[".interp"])] if ".interp" in sizes else []
        if ".dynamic" in sizes:
            segments += [(1, 0, end), (2, self.places[".dynamic"], sizes[".dynamic"])]
        programs = b"".join(self._program(*segment) for segment in segments)
        table, count = b"", 0
        if has_section_headers:
            names = _Strings()
            listed = [
                (names.add(name), kind, self.places[name], size, FLAGS.get(name, 2))
                for name, kind, size in self.sections
            ]
            at = names.add(".shstrtab")
            self.data += names.data
            self.data += bytes(-(len(self.data) - self.head) % 16)
            strings = next((n for n, s in enumerate(self.sections, 1) if s[0] == ".dynstr"), 0)
            table = self._section(0, 0, 0, 0)
            for name, section_type, place, size, flags in listed:
                link = strings if section_type in NAMED else 0
                info = needs if section_type == 0x6FFFFFFE else 0
                table += self._section(
                    name, section_type, place, size, base=BASE, link=link, info=info, flags=flags
                )
            table += self._section(at, 3, end, len(names.data))
            count = len(listed) + 2
        header = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
        header += struct.pack(
            order + f"HHI{3 * self.word}IHHHHHH",
            *({"shared": 3, "pie": 3, "program": 2, "object": 1}[kind], machine, 1, 0),
            *((64 if wide else 52) if segments else 0, len(self.data) if table else 0, 0),
            *(64 if wide else 52, 56 if wide else 32, len(segments), 64 if wide else 40),
            *(count, max(count - 1, 0)),
        )
        self.data[: len(header + programs)] = header + programs
        return bytes(self.data) + table

    def _program(self, segment: int, place: int, size: int) -> bytes:
        address = BASE + place
        if self.wide:
            fields = (segment, 5, place, address, address, size, size, 16)
            return struct.pack(self.order + "IIQQQQQQ", *fields)
        fields = (segment, place, address, address, size, size, 5, 16)
        return struct.pack(self.order + "IIIIIIII", *fields)

    def _section(
        self,
        name: int,
        kind: int,
        place: int,
        size: int,
        base: int = 0,
        link: int = 0,
        info: int = 0,
        flags: int = 0,
    ) -> bytes:
        entry_size = {6: 16, 11: 24}.get(kind, 0) if self.wide else {6: 8, 11: 16}.get(kind, 0)
        address = base + place if base else 0
        fields = (name, kind, flags, address, place, size, link, info, int(bool(kind)), entry_size)
        return struct.pack(self.order + ("IIQQQQIIQQ" if self.wide else "IIIIIIIIII"), *fields)


def _known_needs(
    glibc: str | Sequence[str] | None, libstdcxx: str | Sequence[str] | None
) -> dict[str, Sequence[str]]:
    """Return the needed versions of the system's libraries by library."""
    stated = (("libc.so.6", "GLIBC_", glibc), ("libstdc++.so.6", "GLIBCXX_", libstdcxx))
    return {
        library: [prefix + v for v in ([versions] if isinstance(versions, str) else versions)]
        for library, prefix, versions in stated
        if versions
    }


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
    needs: Mapping[str, Sequence[str]], strings: _Strings, order: str, numbers: dict[str, int]
) -> bytes:
    data = b""
    number = 20
    for index, (library, versions) in enumerate(needs.items(), 1):
        step = 16 * (1 + len(versions)) if index < len(needs) else 0
        data += struct.pack(order + "HHIII", 1, len(versions), strings.add(library), 16, step)
        for at, version in enumerate(versions, 1):
            number += 1
            numbers[version] = number
            inner = 16 if at < len(versions) else 0
            data += struct.pack(order + "IHHII", 0, 0, number, strings.add(version), inner)
    return data


def _symbol_tables(
    symbols: Sequence[Symbol],
    hashes: str,
    strings: _Strings,
    order: str,
    numbers: Mapping[str, int],
    bits: int,
) -> dict[str, bytes]:
    """Return the table of symbols, its hashes with one bucket, and the versions."""
    entries, versions = [(0, 0, 0, 0)], [0]
    for symbol in symbols:
        info = BINDINGS[symbol.binding] << 4 | TYPES[symbol.kind]
        place = strings.add(symbol.name) if symbol.name else 0
        entries.append((place, info, symbol.other, symbol.section if symbol.is_defined else 0))
        hidden = 0 if symbol.is_default or not symbol.is_defined else 0x8000
        versions.append(numbers.get(symbol.version, 1) | hidden)
    first = next((n for n, s in enumerate(symbols, 1) if s.is_defined), len(entries))
    defined = len(entries) - first
    bucket = first if defined else 0
    chain = [0] * (defined - 1) + [1] * bool(defined)
    packed = b"".join(
        struct.pack(order + "IBBHQQ", name, *others, 0, 0)
        if bits == 64
        else struct.pack(order + "IIIBBH", name, 0, 0, *others)
        for name, *others in entries
    )
    gnu = struct.pack(order + "IIII", 1, bucket or 1, 1, 0) + bytes(bits // 8)
    gnu += struct.pack(order + f"{1 + len(chain)}I", bucket, *chain)
    return {
        "gnu": gnu if hashes == "gnu" else b"",
        "sysv": struct.pack(order + "III", 1, len(entries), 0) if hashes == "sysv" else b"",
        "symbols": packed,
        "versions": struct.pack(order + f"{len(versions)}H", *versions),
    }


def with_headers_at_end(data: bytes) -> bytes:
    """Move the program headers to the end, like tools that rewrite libraries."""
    count = struct.unpack_from("<H", data, 56)[0]
    headers = data[PROGRAM_HEADERS : PROGRAM_HEADERS + 56 * count]
    data_without_headers = (
        data[:PROGRAM_HEADERS] + bytes(len(headers)) + data[PROGRAM_HEADERS + len(headers) :]
    )
    return patched(data_without_headers, 32, "<Q", len(data_without_headers)) + headers


# -- PE and COFF


def pe(
    *,
    name: str | None = None,
    imports: Sequence[str] = (),
    delayed: Sequence[str] = (),
    machine: str | int = "x86_64",
    is_dll: bool = True,
    sections: Mapping[str, bytes] | None = None,
    gap: int = 0,
) -> bytes:
    """Return a PE image with tables in `.rdata`, followed by `gap` zeros and the names."""
    wide = machine != "x86"
    contents: dict[str, bytes] = {".text": b"\xc3" * 16}
    address = 0x2000
    names: list[str] = [*imports, *delayed, *([name] if name else [])]
    tables_size = 20 * (len(imports) + 1) + 32 * (len(delayed) + 1) + 40 + 32
    places: list[int] = []
    texts = b""
    for text in names:
        places.append(address + tables_size + gap + len(texts))
        texts += text.encode() + b"\0"
    # The table of an import: one function by its ordinal, and an end mark.
    thunks = address + tables_size - 32
    ordinal = (1 << 63 if wide else 1 << 31) | 1
    import_table = b"".join(
        struct.pack("<IIIII", thunks, 0, 0, place, thunks) for place in places[: len(imports)]
    ) + bytes(20)
    delay_table = b"".join(
        struct.pack("<IIIIIIII", 1, place, 0, thunks, thunks, 0, 0, 0)
        for place in places[len(imports) : len(imports) + len(delayed)]
    ) + bytes(32)
    export_table = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, places[-1] if name else 0, 1, *[0] * 5)
    thunk_table = struct.pack("<Q", ordinal).ljust(32, b"\0")
    contents[".rdata"] = (
        import_table + delay_table + export_table + thunk_table + bytes(gap) + texts
    )
    contents.update(sections or {})
    directories = [(0, 0)] * 16
    if imports:
        directories[1] = (address, len(import_table))
    if delayed:
        directories[13] = (address + len(import_table), len(delay_table))
    if name:
        directories[0] = (address + len(import_table) + len(delay_table), len(export_table))
    optional_size = (112 if wide else 96) + 128
    headers_size = 0x80 + 24 + optional_size + 40 * len(contents)
    headers_size = len(aligned(bytes(headers_size), 512))
    table, body, end = b"", b"", 0x1000
    for section, content in contents.items():
        raw = aligned(content, 512)
        table += struct.pack(
            "<8sIIIIIIHHI",
            *(section.encode()[:8], len(content), end, len(raw), headers_size + len(body)),
            *(0, 0, 0, 0, 0x40000040),
        )
        body += raw
        end += len(aligned(content, 0x1000))
    number = PE_MACHINES[machine] if isinstance(machine, str) else machine
    optional = struct.pack(
        "<HBBIIIII"
        + ("Q" if wide else "II")
        + "IIHHHHHHIIIIHH"
        + ("QQQQ" if wide else "IIII")
        + "II",
        *(0x20B if wide else 0x10B, 14, 0, 0, 0, 0, 0x1000, 0x1000),
        *((0x180000000,) if wide else (0, 0x10000000)),
        *(0x1000, 0x200, 6, 0, 0, 0, 6, 0, 0, end, headers_size, 0, 3, 0),
        *(0x100000, 0x1000, 0x100000, 0x1000, 0, 16),
    ) + b"".join(struct.pack("<II", *directory) for directory in directories)
    flags = 0x0022 | (0x2000 if is_dll else 0)
    coff_header = struct.pack("<HHIIIHH", number, len(contents), 0, 0, 0, optional_size, flags)
    dos = (b"MZ" + bytes(58) + struct.pack("<I", 0x80)).ljust(0x80, b"\0")
    return (dos + b"PE\0\0" + coff_header + optional + table).ljust(headers_size, b"\0") + body


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


def coff(
    sections: Mapping[str, bytes] | None = None,
    *,
    machine: str | int = "x86_64",
    is_big: bool = False,
) -> bytes:
    """Return an object file. Names longer than eight bytes are in its string table."""
    contents = {".text": b"\xc3" * 16, **(sections or {})}
    number = PE_MACHINES[machine] if isinstance(machine, str) else machine
    start = (56 if is_big else 20) + 40 * len(contents)
    strings, table, body = b"", b"", b""
    for name, content in contents.items():
        short = name.encode()
        if len(short) > 8:
            strings_at = 4 + len(strings)
            strings += short + b"\0"
            short = b"/%d" % strings_at
        table += struct.pack(
            "<8sIIIIIIHHI", short, 0, 0, len(content), start + len(body), 0, 0, 0, 0, 0x40000040
        )
        body += aligned(content, 16)
    symbols = start + len(body)
    if is_big:
        big_class = bytes.fromhex("C7A1BAD1EEBAA94BAF20FAF66AA4DCB8")
        header = struct.pack("<HHHHI16s", 0, 0xFFFF, 2, number, 0, big_class)
        header += struct.pack("<IIIIIII", 0, 0, 0, 0, len(contents), symbols, 0)
    else:
        header = struct.pack("<HHIIIHH", number, len(contents), 0, symbols, 0, 0, 0)
    return header + table + body + struct.pack("<I", 4 + len(strings)) + strings


def import_record(library: str, function: str = "f", *, machine: str = "x86_64") -> bytes:
    """Return the short import record of a DLL function."""
    texts = f"{function}\0{library}\0".encode()
    return struct.pack("<HHHHIIHH", 0, 0xFFFF, 0, PE_MACHINES[machine], 0, len(texts), 0, 4) + texts


# -- libraries


def ar(
    members: Mapping[str, bytes] | Sequence[tuple[str, bytes]],
    *,
    style: str = "gnu",
    is_thin: bool = False,
) -> bytes:
    """Return a library with the symbol tables of a style: `gnu`, `bsd` or `microsoft`."""
    listed = list(members.items()) if isinstance(members, Mapping) else list(members)
    data = b"!<thin>\n" if is_thin else b"!<arch>\n"
    long = b""
    written: list[tuple[bytes, bytes]] = []
    for name, content in listed:
        short = name.encode()
        if style == "bsd":
            padded = aligned(short + b"\0", 4)
            written.append((b"#1/%d" % len(padded), padded + content))
        elif len(short) > 15:
            written.append((b"/%d" % len(long), content))
            long += short + (b"\0" if style == "microsoft" else b"/\n")
        else:
            written.append((short + b"/", content))
    tables: list[tuple[bytes, bytes]] = {
        "gnu": [(b"/", struct.pack(">I", 0))],
        "bsd": [(b"#1/20", b"__.SYMDEF SORTED".ljust(20, b"\0") + bytes(8))],
        "microsoft": [(b"/", struct.pack(">I", 0)), (b"/", struct.pack("<II", 0, 0))],
    }[style]
    if long:
        tables.append((b"//", long))
    for index, (short, content) in enumerate([*tables, *written]):
        header = b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (short, 0, 0, 0, b"644", len(content))
        is_absent = is_thin and index >= len(tables)
        data += header + (b"" if is_absent else content + b"\n" * (len(content) % 2))
    return data


def import_library(library: str, functions: Sequence[str] = ("f", "g")) -> bytes:
    """Return the `.lib` of a DLL in the form of Microsoft's linker."""
    return ar(
        [
            *((library, coff()) for _ in range(3)),
            *((library, import_record(library, function)) for function in functions),
        ],
        style="microsoft",
    )
