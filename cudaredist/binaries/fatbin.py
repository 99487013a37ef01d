"""Reader of containers of device code ("fat binaries").

Files of any kind may contain them. A container is a header of 16 bytes followed by entries. An
entry is a header with the architecture, and a payload that is never read. Containers are found by
the first eight bytes of their header. These bytes also occur by chance in machine code, so a
container only counts if its entries fill it to the last byte. If the first entry is invalid, the
search continues in it. If a later one is damaged, the container is dropped with a note, and the
search continues from there.

Memory is limited: most containers have the same images, and are only counted. Sizes are summed over
the whole file.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from cudaredist.binaries.file_content import BLOCK, FileContent, UnreadableError, outside
from cudaredist.binaries.file_facts import CodeSection, DeviceImages
from cudaredist.primitives import natural_order

CONTAINER_MAGIC = bytes.fromhex("50ED55BA 0100 1000")
"""Magic number, version 1, and the header's size of 16, all little-endian."""

_CONTAINER_SIZE = 16
_ENTRY = Struct("<HHIQIIHHIIIQ8xQ")
_PAIR = Struct("<II")

_PTX = 1
_SASS = 2
_NVVM = 8
_CONCATENATED = 256
_PREFIXES = {_PTX: "compute_", _SASS: "sm_", _NVVM: "lto_"}
_EMPTY_IMAGE = {"sm": 2048, "compute": 88, "lto": 1800}
"""Limits for the bytes of an image without kernels.

CUDA 11.8 to 13.5 write 584 to 1,888 bytes for `sm`, 56 to 82 for `compute` and 1,600 for `lto`.
Images with one kernel that only returns have at least 1,864 bytes for `sm` (1,544 for `sm_50` in
CUDA 12.0), 93 for `compute` and 1,972 for `lto`.
"""
_EMPTY_IMAGE_SINCE_100 = 2560
"""The limit since `sm_100`. Images have 2,248 bytes without kernels, and 4,848 with one."""
_ARCHITECTURE_SPECIFIC = 0x100000
_FAMILY_SPECIFIC = 0x200000

# A regular expression that begins with a literal is twice as fast as `bytes.find`. It begins with
# the second byte, because that is rarer in machine code than the first.
_find_rest = re.compile(re.escape(CONTAINER_MAGIC[1:])).search
_FIRST_BYTE = CONTAINER_MAGIC[:1]
_LOOK = len(CONTAINER_MAGIC)
_SIZE = 8
_NEAR = 4096
"""Maximum bytes between containers in one range. A file may have a million containers."""
_DAMAGED = "damaged containers"

_FILE_LIMIT = 1 << 40
_HEADER_LIMIT = 1 << 20
"""Maximum bytes of an entry's header. Real ones have 64 to 144."""
_ARCHITECTURE_LIMIT = 10_000
_FALSE_HIT_LIMIT = 100_000
"""False containers until the search ends. 6.9 GB of real files contain two."""
_CONTAINER_LIMIT = 1 << 20
"""Maximum containers of a file. Real files have at most 22,346."""
_ENTRY_LIMIT = 1 << 21
"""Maximum entries of a file. Real files have at most 18,236.

Together with the other limits, this limits the time for any file.
"""
_CONTENT_LIMIT = 1 << 13
"""Maximum architectures in all different contents of containers. Real files have some hundreds."""
_UNPACKED_LIMIT = 1 << 32
"""Maximum bytes of one image, so that the sum over all images can be written as JSON."""
_KINDS_NOTED = 20

_Content: TypeAlias = tuple[tuple[str, int], ...]


def empty_size(kind: str, number: int) -> int:
    """Return the limit for the bytes of an image without kernels, such as of `sm` 90."""
    if kind == "sm" and number >= 100:  # noqa: PLR2004 - see the limit
        return _EMPTY_IMAGE_SINCE_100
    return _EMPTY_IMAGE[kind]


def _module_text(content: _Content) -> str:
    """Return a module's images as text, such as `sm_75 sm_90*2 compute_90`."""
    ordered = sorted(content, key=lambda item: natural_order(item[0]))
    return " ".join(name if count == 1 else f"{name}*{count}" for name, count in ordered)


def _counts_by_text(modules: Counter[_Content]) -> dict[str, int]:
    """Return the number of modules by their images, sorted."""
    return dict(sorted((_module_text(module), count) for module, count in modules.items()))


class _Entry(NamedTuple):
    """The header of an image, or of several that are compressed together."""

    kind: int
    version: int
    header: int
    """Bytes of the header. In a record of a concatenated entry: the image's position."""
    payload: int
    compressed: int
    options: int
    minor: int
    """The version of PTX, or of the format of machine code."""
    major: int
    architecture: int
    name: int
    name_size: int
    flags: int
    unpacked: int


class _Images:
    """The images of a container, or of a file: number and bytes by architecture."""

    def __init__(self) -> None:
        # A file has 20,000 containers, and creating counters takes longer than reading them.
        self.counts: dict[str, int] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        """Bytes in the file and when decompressed."""
        self.ptx = (0, 0)
        """The newest version of PTX."""
        self.has_kernels = False

    def add(self, name: str, count: int, packed: int, unpacked: int) -> None:
        """Add images of one architecture."""
        self.counts[name] = self.counts.get(name, 0) + count
        known = self.sizes.get(name, (0, 0))
        self.sizes[name] = known[0] + packed, known[1] + unpacked

    def update(self, other: "_Images") -> None:
        """Add other images."""
        for name, count in other.counts.items():
            self.add(name, count, *other.sizes[name])
        self.ptx = max(self.ptx, other.ptx)
        self.has_kernels |= other.has_kernels


class CodeScanner:
    """Reader that finds containers in a file and counts their images.

    `section_at` returns the name of a byte's section, and whether it is declared.
    """

    def __init__(self, content: FileContent, section_at: Callable[[int], tuple[str, bool]]) -> None:
        self._content, self._section_at = content, section_at
        self._modules: dict[tuple[str, bool], Counter[_Content]] = defaultdict(Counter)
        """The number of containers by section and images."""
        self._ptx: dict[_Content, tuple[int, int]] = {}
        """The newest version of PTX by images."""
        self._empty: dict[tuple[str, bool], Counter[_Content]] = defaultdict(Counter)
        """The number of containers without kernels by section and images."""
        self._all = _Images()
        self._counts = Counter[str]()
        self._first_damaged = 0
        self._oddities: set[str] = set()
        self.ranges: list[tuple[int, int]] = []
        """The bytes of containers. Containers that are close together share a range."""

    def notes(self) -> Iterator[str]:
        """Yield the irregularities."""
        if damaged := self._counts[_DAMAGED]:
            first = f"the first at byte {self._first_damaged}"
            yield f"{damaged} {_DAMAGED} of device code skipped, {first}"
        yield from sorted(self._oddities)[:_KINDS_NOTED]

    def sections(self) -> Iterator[CodeSection]:
        """Yield the images of each section."""
        for (name, is_declared), modules in sorted(self._modules.items()):
            counts = Counter[str]()
            for module, times in modules.items():
                counts.update({architecture: count * times for architecture, count in module})
            ordered = {key: counts[key] for key in sorted(counts, key=natural_order)}
            kernels = modules - self._empty[name, is_declared]
            yield CodeSection(
                section=name,
                is_declared=is_declared,
                counts=ordered,
                kernels=_counts_by_text(kernels),
            )

    def images(self) -> DeviceImages | None:
        """Return sizes and modules of all images, None without images."""
        modules = Counter[_Content]()
        for section in self._modules.values():
            modules.update(section)
        sizes = dict(sorted(self._all.sizes.items()))
        if not sizes:
            return None
        ptx = {
            _module_text(module): f"{version[0]}.{version[1]}"
            for module, version in self._ptx.items()
        }
        return DeviceImages(
            sizes=sizes, modules=_counts_by_text(modules), ptx=dict(sorted(ptx.items()))
        )

    def _count(self, subject: str, limit: int, more: int = 1) -> None:
        """Count something. Raises `UnreadableError` above its limit."""
        self._counts[subject] += more
        if self._counts[subject] > limit:
            raise UnreadableError(f"device code not read to the end: more than {limit:,} {subject}")

    def search(self, skipped: Iterable[tuple[int, int]]) -> None:
        """Search the file, except in ranges of bytes. Raises `UnreadableError`."""
        position, size = 0, BLOCK
        for start, end in outside(skipped, self._content.size):
            position = max(position, start)
            while len(data := self._content.read(position, min(size, end - position))) >= _LOOK:
                at = 0
                while (rest := _find_rest(data, at + 1)) is not None:
                    at = rest.start() - 1
                    is_magic = data.startswith(_FIRST_BYTE, at)
                    at = self._container(position + at) - position if is_magic else at + 1
                # The next container usually follows at once.
                size = _NEAR if at else BLOCK
                position += max(at, len(data) - _LOOK + 1)

    def _container(self, start: int) -> int:
        """Read a container, and return the position to continue from."""
        at = start + _CONTAINER_SIZE
        size = int.from_bytes(self._content.read(start + _LOOK, _SIZE), "little")
        end = at + size
        entry = self._entry(at, end)
        if size >= _FILE_LIMIT or entry is None:
            self._count("false containers", _FALSE_HIT_LIMIT)
            return start + 1
        images = _Images()
        while entry is not None:
            if entry.kind == _CONCATENATED:
                self._read_concatenated(images, at, entry)
            else:
                # An image that is not compressed states no other size.
                self._add(images, entry, entry.payload, entry.unpacked or entry.payload)
            at += entry.header + entry.payload
            entry = self._entry(at, end) if at < end else None
        if at < end or end > self._content.size:
            if not self._counts[_DAMAGED]:
                self._first_damaged = start
            self._count(_DAMAGED, _FALSE_HIT_LIMIT)
            return at
        self._count("containers", _CONTAINER_LIMIT)
        is_near = self.ranges and start - self.ranges[-1][1] < _NEAR
        first = self.ranges.pop()[0] if is_near else start
        self.ranges.append((first, at))
        if images.counts:
            module, section = tuple(sorted(images.counts.items())), self._section_at(start)
            if module not in self._modules.get(section, ()):
                self._count("different images", _CONTENT_LIMIT, len(module) + 1)
            self._modules[section][module] += 1
            if not images.has_kernels:
                self._empty[section][module] += 1
            if images.ptx > self._ptx.get(module, (0, 0)):
                self._ptx[module] = images.ptx
            self._all.update(images)
        return at

    def _entry(self, at: int, end: int) -> _Entry | None:
        """Return an entry's header, None if it is invalid."""
        data = self._content.read(at, _ENTRY.size)
        if len(data) < _ENTRY.size:
            return None
        entry = _Entry(*_ENTRY.unpack(data))
        room, size = end - at, entry.header + entry.payload
        is_entry = (
            entry.version != 0
            and _ENTRY.size <= entry.header <= room
            and entry.header % 8 == 0
            and entry.compressed <= entry.payload
            # It is the last entry, or there is room for another one.
            and (size == room or size + _ENTRY.size <= room)
        )
        return entry if is_entry else None

    def _add(self, images: _Images, entry: _Entry, packed: int, unpacked: int) -> None:
        """Count an image."""
        self._count("images", _ENTRY_LIMIT)
        prefix, flags = _PREFIXES.get(entry.kind), entry.flags
        if prefix is None:
            if len(self._oddities) < _KINDS_NOTED:
                self._oddities.add(f"unknown kind {entry.kind} of device code")
        elif entry.architecture >= _ARCHITECTURE_LIMIT:
            self._oddities.add("device code for an impossible architecture")
        else:
            suffix = (
                "f" if flags & _FAMILY_SPECIFIC else "a" if flags & _ARCHITECTURE_SPECIFIC else ""
            )
            name = f"{prefix}{entry.architecture}{suffix}"
            kind = prefix.rstrip("_")
            images.has_kernels |= unpacked > empty_size(kind, entry.architecture)
            if entry.kind == _PTX:
                images.ptx = max(images.ptx, (entry.major, entry.minor))
            if unpacked > _UNPACKED_LIMIT:
                self._oddities.add("device code with an impossible decompressed size")
                unpacked = 0
            images.add(name, 1, packed, unpacked)

    def _read_concatenated(self, images: _Images, at: int, entry: _Entry) -> None:
        """Count the images of a concatenated entry.

        Each record in its option block is a header like that of a separate entry. Instead of sizes,
        it contains the image's position in the decompressed payload.
        """
        self._count("images", _ENTRY_LIMIT)
        header = self._content.read(at, entry.header if entry.header <= _HEADER_LIMIT else 0)
        records = _Images()
        at, last_end = entry.options, 0
        count = 1
        if _ENTRY.size <= at and at + _PAIR.size <= len(header):
            count, table = _PAIR.unpack_from(header, at)
            at, end = at + _PAIR.size, at + table
            while count and at + _ENTRY.size <= end <= len(header):
                record = _Entry(*_ENTRY.unpack_from(header, at))
                offset, size = record.header, record.payload
                if offset < last_end or offset + size > entry.unpacked:
                    break
                last_end = offset + size
                self._add(records, record, 0, size)
                at += _record_size(header, at, record)
                count -= 1
        if count:
            self._oddities.add("invalid concatenated device code")
        else:
            images.update(records)


def _record_size(header: bytes, at: int, record: _Entry) -> int:
    size = _ENTRY.size
    if record.name:
        size = max(size, record.name + record.name_size + 1)
    if record.options and at + record.options + _PAIR.size <= len(header):
        options, length = _PAIR.unpack_from(header, at + record.options)
        size = max(size, options + length + 1)
    return -(-size // 8) * 8
