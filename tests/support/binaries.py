"""Small binaries of every supported kind. None of them can run."""

import struct
from collections.abc import Iterable, Mapping, Sequence

KINDS = {"compute": 1, "sm": 2, "lto": 8}
SUFFIXES = {"": 0, "a": 0x100000, "f": 0x200000}
ELF_MACHINES = {"x86": 3, "arm": 40, "x86_64": 62, "aarch64": 183, "ppc64le": 21}
PE_MACHINES = {"x86": 0x14C, "x86_64": 0x8664, "aarch64": 0xAA64}
PROGRAM_HEADERS = 64
"""Their position in a file of 64 bits."""

Image = tuple[str, int, str]
"""For example, `("sm", 90, "a")`."""


def aligned(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    """Return a file with another number at an offset."""
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


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
) -> bytes:
    """Return an entry with a stored payload."""
    header = _image_header(
        kind, number, suffix, sizes=(0, len(aligned(payload, 8))), name=name, options=options
    )
    return header[:2] + struct.pack("<HI", version, len(header)) + header[8:] + aligned(payload, 8)


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


# -- ELF


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        place = len(self.data)
        self.data += text.encode() + b"\0"
        return place


def elf(  # noqa: PLR0912, PLR0915 - one file, written from its front to its end
    *,
    soname: str | None = None,
    needed: Sequence[str] = (),
    runpath: str | None = None,
    rpath: str | None = None,
    glibc: str | Sequence[str] | None = None,
    libstdcxx: str | Sequence[str] | None = None,
    machine: str | int = "x86_64",
    bits: int = 64,
    order: str = "<",
    kind: str = "shared",
    sections: Mapping[str, bytes] | None = None,
    strings: str = "before",
    gap: int = 0,
    tags: Iterable[tuple[int, int]] = (),
    has_section_headers: bool = True,
) -> bytes:
    """Return an ELF file. `kind` is `shared`, `pie`, `program` or `object`.

    `strings` selects the position of the names: `before` or `behind` the dynamic section, or in
    `front` of the file. `gap` is the number of zeros before and after the dynamic section.
    """
    wide = bits == 64
    word = "Q" if wide else "I"
    base = 0x400000
    head = (64 if wide else 52) + 4 * (56 if wide else 32)
    has_dynamic = kind != "object"
    names = _Strings()
    dynamic: list[tuple[int, int]] = [(1, names.add(name)) for name in needed]
    for tag, text in ((14, soname), (15, rpath), (29, runpath)):
        if text is not None:
            dynamic.append((tag, names.add(text)))
    if kind == "pie":
        dynamic.append((0x6FFFFFFB, 0x08000000))
    needs, count = _versions(names, order, glibc, libstdcxx)
    # Write placeholders first, so that all sizes are known.
    dynamic += [(5, 0), (10, len(names.data))]
    if count:
        dynamic += [(0x6FFFFFFE, 0), (0x6FFFFFFF, count)]
    dynamic += [*tags, (0, 0)]

    parts: list[tuple[str, bytes, int, int]] = []  # name, bytes, type, place
    data = bytearray()

    def put(name: str, content: bytes, section_type: int) -> int:
        data.extend(bytes(-len(data) % 16))
        place = head + len(data)
        data.extend(content)
        parts.append((name, content, section_type, place))
        return place

    def put_strings() -> int:
        return put(".dynstr", names.data, 3)

    place_of_strings = place_of_needs = place_of_dynamic = place_of_program = size_of_dynamic = 0
    if kind in {"pie", "program"}:
        place_of_program = put(".interp", b"/lib64/ld-linux-x86-64.so.2\0", 1)
    if has_dynamic and strings == "front":
        place_of_strings = put_strings()
    for name, content in (sections or {}).items():
        put(name, content, 1)
    if has_dynamic:
        if count:
            place_of_needs = put(".gnu.version_r", needs, 0x6FFFFFFE)
        if strings == "before":
            place_of_strings = put_strings()
        data.extend(bytes(gap + -(len(data) + gap) % 16))
        place_of_dynamic = head + len(data)
        size_of_dynamic = len(dynamic) * struct.calcsize(order + 2 * word)
        put(".dynamic", bytes(size_of_dynamic), 6)
        data.extend(bytes(gap))
        if strings == "behind":
            place_of_strings = put_strings()
        values = {5: base + place_of_strings, 0x6FFFFFFE: base + place_of_needs}
        written = b"".join(
            struct.pack(order + 2 * word, tag, values.get(tag, value) if value == 0 else value)
            for tag, value in dynamic
        )
        at = place_of_dynamic - head
        data[at : at + len(written)] = written
    end = head + len(data)

    def program(segment: int, place: int, size: int) -> bytes:
        address = base + place
        if wide:
            fields = (segment, 5, place, address, address, size, size, 16)
            return struct.pack(order + "IIQQQQQQ", *fields)
        return struct.pack(order + "IIIIIIII", segment, place, address, address, size, size, 5, 16)

    programs = []
    if has_dynamic:
        if place_of_program:
            programs.append(program(3, place_of_program, len(parts[0][1])))
        programs.append(program(1, 0, end))
        programs.append(program(2, place_of_dynamic, size_of_dynamic))
    section_names = _Strings()
    headers = [(0, 0, 0, 0, 0, 0)]
    headers += [
        (section_names.add(name), what, place, len(content), parts_index(parts, what), base)
        for name, content, what, place in parts
    ]
    names_place = end
    headers.append((section_names.add(".shstrtab"), 3, end, 0, 0, 0))
    table = b""
    if has_section_headers:
        data.extend(section_names.data)
        data.extend(bytes(-len(data) % 16))
        for name_at, what, place, size, link, start in headers:
            length = (
                len(section_names.data) if place == names_place and start == 0 and what else size
            )
            address = start + place if start else 0
            entry_size = {6: struct.calcsize(order + 2 * word)}.get(what, 0)
            table += struct.pack(
                order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"),
                *(name_at, what, 2 if start else 0, address, place, length, link),
                *(count if what == 0x6FFFFFFE else 0, 1, entry_size),
            )
    elf_type = {"shared": 3, "pie": 3, "program": 2, "object": 1}[kind]
    number = ELF_MACHINES[machine] if isinstance(machine, str) else machine
    header = (
        b"\x7fELF"
        + bytes([2 if wide else 1, 1 if order == "<" else 2, 1])
        + bytes(9)
        + struct.pack(
            order + f"HHI{3 * word}IHHHHHH",
            *(elf_type, number, 1, 0, (64 if wide else 52) if programs else 0),
            *(head + len(data) if table else 0, 0, 64 if wide else 52),
            *(56 if wide else 32, len(programs), 64 if wide else 40),
            *(len(headers) if table else 0, len(headers) - 1 if table else 0),
        )
    )
    return b"".join([(header + b"".join(programs)).ljust(head, b"\0"), data, table])


def with_headers_at_end(data: bytes) -> bytes:
    """Move the program headers to the end, like tools that rewrite libraries."""
    count = struct.unpack_from("<H", data, 56)[0]
    headers = data[PROGRAM_HEADERS : PROGRAM_HEADERS + 56 * count]
    data_without_headers = (
        data[:PROGRAM_HEADERS] + bytes(len(headers)) + data[PROGRAM_HEADERS + len(headers) :]
    )
    return patched(data_without_headers, 32, "<Q", len(data_without_headers)) + headers


def parts_index(parts: Sequence[tuple[str, bytes, int, int]], what: int) -> int:
    """Return the section with the names of a dynamic section or of versions."""
    if what not in {6, 0x6FFFFFFE}:
        return 0
    return next((i for i, part in enumerate(parts, 1) if part[0] == ".dynstr"), 0)


def _versions(
    names: _Strings,
    order: str,
    glibc: str | Sequence[str] | None,
    libstdcxx: str | Sequence[str] | None,
) -> tuple[bytes, int]:
    prefixes = {
        "libc.so.6": ("GLIBC_", glibc),
        "libstdc++.so.6": ("GLIBCXX_", libstdcxx),
    }
    listed = {
        library: [prefix + v for v in ([versions] if isinstance(versions, str) else versions)]
        for library, (prefix, versions) in prefixes.items()
        if versions
    }
    data = b""
    for index, (library, versions) in enumerate(listed.items(), 1):
        step = 16 * (1 + len(versions)) if index < len(listed) else 0
        data += struct.pack(order + "HHIII", 1, len(versions), names.add(library), 16, step)
        for number, version in enumerate(versions, 1):
            inner = 16 if number < len(versions) else 0
            data += struct.pack(order + "IHHII", 0, 0, number + 1, names.add(version), inner)
    return data, len(listed)


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
