"""Scanner for containers of device code ("fat binaries").

Files of any kind may contain them. A container is a header of 16 bytes followed by entries. An
entry is a header with the architecture, and a payload that is never examined. Containers are found
by the first eight bytes of their header. These bytes also occur by chance in machine code, so a
container only counts if its entries fill it to the last byte. The first entry is validated before
any payload is skipped. If a later one is damaged, the container is dropped with a note, and the
search continues from there.

Memory is limited: payloads are not stored. For each container, its position and a reference to its
images are stored, and most containers have the same images. Sizes are summed over the whole file.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable
from struct import Struct
from sys import maxsize
from typing import TypeAlias

from cudaredist.binaries.file_facts import CodeSection, DeviceImages

CONTAINER_MAGIC = bytes.fromhex("50ED55BA 0100 1000")
"""Magic number, version 1, and the header's size of 16, all little-endian."""

_CONTAINER = Struct("<8sQ")
_ENTRY = Struct("<HHIQIIHHIIIQQQ")
_CONCATENATED = Struct("<II")

_PTX = 1
_SASS = 2
_NVVM = 8
_CONCAT = 256
_PREFIXES = {_PTX: "compute_", _SASS: "sm_", _NVVM: "lto_"}
_ARCHITECTURE_SPECIFIC = 0x100000
_FAMILY_SPECIFIC = 0x200000

# A regular expression that begins with a literal is twice as fast as `bytes.find`. It begins with
# the second byte, because that is rarer in machine code than the first.
_find_rest = re.compile(re.escape(CONTAINER_MAGIC[1:])).search
_FIRST_BYTE = CONTAINER_MAGIC[:1]
_LOOK = len(CONTAINER_MAGIC)

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
_split_architecture = re.compile(r"([a-z]+)_([0-9]+)([a-z]*)").fullmatch


def architecture_key(name: str) -> tuple[str, int, str]:
    """Return the sort key of an architecture.

    The order is by number: `sm_75`, `sm_90`, `sm_90a`, `sm_100`, `sm_100f`.
    """
    parts = _split_architecture(name)
    return (parts[1], int(parts[2]), parts[3]) if parts else (name, -1, "")


def _module_text(content: _Content) -> str:
    """Return a module's images as text, such as `sm_75 sm_90*2 compute_90`."""
    ordered = sorted(content, key=lambda item: architecture_key(item[0]))
    return " ".join(name if count == 1 else f"{name}*{count}" for name, count in ordered)


class FatbinScanner:
    """Scanner that finds containers and counts their images."""

    def __init__(self) -> None:
        self.notes: dict[str, None] = {}
        self._position = 0
        self._next = 0
        """The position of the next step. It is after `_position` if a payload is skipped."""
        self._buffer = bytearray()
        """The available bytes from `_next`, if there are fewer than `_need`."""
        self._need = _LOOK
        self._step: Callable[[bytes, int], int] = self._search
        self._start = 0
        """The position in the file of the first byte of the current step's data."""
        self._container = 0
        self._end = 0
        self._images: Counter[str] = Counter()
        self._packed: Counter[str] = Counter()
        self._unpacked: Counter[str] = Counter()
        self._all_packed: Counter[str] = Counter()
        self._all_unpacked: Counter[str] = Counter()
        self._entries = 0
        self._containers = 0
        self._oddities: set[str] = set()
        self._false_hits = 0
        self._broken = 0
        self._first_broken = 0
        self._places = array("Q")
        self._which = array("I")
        self._contents: dict[_Content, int] = {}
        self._content_size = 0

    def __len__(self) -> int:
        return len(self._places)

    def feed(self, data: bytes) -> None:
        """Scan the next bytes of the file."""
        self._start = self._position
        self._position += len(data)
        if self._next >= self._position:
            return
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._need:
                return
            self._start = self._next
            data = bytes(self._buffer)
            self._buffer.clear()
        at = self._next - self._start
        size = len(data)
        while at + self._need <= size:
            at = self._step(data, at)
        self._next = self._start + at
        if at < size:
            self._buffer += data[at:]

    def finish(self) -> None:
        """Drop a truncated last container, and collect the notes."""
        if self._end > self._position:
            # Its last payload was skipped, but the file ended before.
            if self._places and self._places[-1] == self._container:
                self._places.pop()
                self._which.pop()
                self._all_packed.subtract(self._packed)
                self._all_unpacked.subtract(self._unpacked)
            self._drop()
        if self._broken:
            self.notes[
                f"{self._broken} damaged containers of device code skipped, "
                f"the first at byte {self._first_broken}"
            ] = None
        for oddity in sorted(self._oddities)[:_KINDS_NOTED]:
            self.notes[oddity] = None

    def by_section(self, section_at: Callable[[int], tuple[str, bool]]) -> tuple[CodeSection, ...]:
        """Return the images of each section.

        `section_at` returns the name of a byte's section, and whether it is declared.
        """
        containers_of: dict[tuple[str, bool], Counter[int]] = {}
        for place, which in zip(self._places, self._which, strict=True):
            containers_of.setdefault(section_at(place), Counter())[which] += 1
        contents = list(self._contents)
        sections = []
        for (name, is_declared), containers in sorted(containers_of.items()):
            counts: Counter[str] = Counter()
            for which, times in containers.items():
                for architecture, count in contents[which]:
                    counts[architecture] += count * times
            ordered = {key: counts[key] for key in sorted(counts, key=architecture_key)}
            sections.append(CodeSection(section=name, is_declared=is_declared, counts=ordered))
        return tuple(sections)

    def images(self) -> DeviceImages | None:
        """Return sizes and modules of all images, None without images."""
        if not self._places:
            return None
        contents = list(self._contents)
        modules: Counter[str] = Counter()
        for which, count in Counter(self._which).items():
            modules[_module_text(contents[which])] += count
        architectures = sorted({name for which in set(self._which) for name, _ in contents[which]})
        return DeviceImages(
            sizes={
                name: (self._all_packed[name], self._all_unpacked[name]) for name in architectures
            },
            modules={key: modules[key] for key in sorted(modules)},
        )

    # -- steps: each takes the available bytes and a position in them, and returns the next position

    def _search(self, data: bytes, at: int) -> int:
        while (rest := _find_rest(data, at + 1)) is not None:
            at = rest.start() - 1
            if data.startswith(_FIRST_BYTE, at):
                self._expect(self._open, _CONTAINER.size + _ENTRY.size)
                return at
            at += 1
        # Keep the last few bytes only if the magic number may begin there.
        at = data.find(_FIRST_BYTE, max(len(data) - _LOOK + 1, at))
        return at if at >= 0 else len(data)

    def _open(self, data: bytes, at: int) -> int:
        _, size = _CONTAINER.unpack_from(data, at)
        first = at + _CONTAINER.size
        is_container = size < _FILE_LIMIT and self._entry_size(data, first, size) is not None
        if not is_container:
            self._expect(self._search, _LOOK)
            self._false_hits += 1
            if self._false_hits > _FALSE_HIT_LIMIT:
                return self._stop("more than {:,} false containers", _FALSE_HIT_LIMIT)
            return at + 1
        self._container = self._start + at
        self._end = self._start + first + size
        self._images.clear()
        self._packed.clear()
        self._unpacked.clear()
        self._expect(self._entry, _ENTRY.size)
        return first

    def _entry(self, data: bytes, at: int) -> int:
        place = self._start + at
        size = self._entry_size(data, at, self._end - place)
        if size is None:
            return self._break(at)
        kind, _, header, payload, *_, flags, _, unpacked = fields = _ENTRY.unpack_from(data, at)
        if kind == _CONCAT and self._need < header <= _HEADER_LIMIT:
            self._need = header
            return at
        self._entries += 1
        if self._entries > _ENTRY_LIMIT:
            return self._stop("more than {:,} images", _ENTRY_LIMIT)
        if kind == _CONCAT:
            self._concatenated(data[at : at + header] if header <= _HEADER_LIMIT else b"")
        else:
            for name in self._image(kind, fields[8], flags):
                self._packed[name] += payload
                # An image that is not compressed states no other size.
                self._count(name, unpacked or payload)
        self._expect(self._entry, _ENTRY.size)
        if place + size == self._end:
            return self._commit(at + size)
        return at + size

    # -- the parts of steps

    def _expect(self, step: Callable[[bytes, int], int], need: int) -> None:
        self._step = step
        self._need = need

    def _entry_size(self, data: bytes, at: int, room: int) -> int | None:
        """Return an entry's total size, None if it is invalid."""
        _, version, header, payload, compressed, *_ = _ENTRY.unpack_from(data, at)
        size: int = header + payload
        is_entry = (
            version != 0
            and _ENTRY.size <= header <= room
            and header % 8 == 0
            and compressed <= payload
            # It is the last entry, or there is room for another one.
            and (size == room or size + _ENTRY.size <= room)
        )
        return size if is_entry else None

    def _count(self, name: str, unpacked: int) -> None:
        self._images[name] += 1
        if unpacked > _UNPACKED_LIMIT:
            self._oddities.add("device code with an impossible decompressed size")
        else:
            self._unpacked[name] += unpacked

    def _image(self, kind: int, number: int, flags: int) -> list[str]:
        """Return an image's architecture in a list.

        If it is unknown, the list is empty, and a note is added.
        """
        prefix = _PREFIXES.get(kind)
        if prefix is None:
            if len(self._oddities) < _KINDS_NOTED:
                self._oddities.add(f"unknown kind {kind} of device code")
        elif number >= _ARCHITECTURE_LIMIT:
            self._oddities.add("device code for an impossible architecture")
        else:
            suffix = (
                "f" if flags & _FAMILY_SPECIFIC else "a" if flags & _ARCHITECTURE_SPECIFIC else ""
            )
            return [f"{prefix}{number}{suffix}"]
        return []

    def _concatenated(self, entry: bytes) -> None:
        """Count the images of a concatenated entry.

        Each record in its option block is a header like that of a separate entry. Instead of sizes,
        it contains the image's position in the decompressed payload.
        """
        images: list[tuple[str, int]] = []
        options, total = _ENTRY.unpack_from(entry)[5::8] if entry else (0, 0)
        if options >= _ENTRY.size and options + _CONCATENATED.size <= len(entry):
            count, table = _CONCATENATED.unpack_from(entry, options)
            at, end = options + _CONCATENATED.size, options + table
            last_end = 0
            while count and at + _ENTRY.size <= end <= len(entry):
                fields = _ENTRY.unpack_from(entry, at)
                offset, size = fields[2], fields[3]
                if offset < last_end or offset + size > total:
                    break
                last_end = offset + size
                self._entries += 1
                names = self._image(fields[0], fields[8], fields[11])
                images += ((name, size) for name in names)
                at += self._record_size(entry, at, fields)
                count -= 1
            if count == 0:
                for name, size in images:
                    self._count(name, size)
                return
        self._oddities.add("invalid concatenated device code")

    def _record_size(self, entry: bytes, at: int, fields: tuple[int, ...]) -> int:
        options, name, name_size = fields[5], fields[9], fields[10]
        size = _ENTRY.size
        if name:
            size = max(size, name + name_size + 1)
        if options and at + options + _CONCATENATED.size <= len(entry):
            place, length = _CONCATENATED.unpack_from(entry, at + options)
            size = max(size, place + length + 1)
        return -(-size // 8) * 8

    def _commit(self, at: int) -> int:
        self._expect(self._search, _LOOK)
        content = tuple(sorted(self._images.items()))
        which = self._contents.get(content)
        if which is None:
            self._content_size += len(content) + 1
            if self._content_size > _CONTENT_LIMIT:
                return self._stop("more than {:,} different images", _CONTENT_LIMIT)
            which = self._contents[content] = len(self._contents)
        self._containers += 1
        if self._containers > _CONTAINER_LIMIT:
            return self._stop("more than {:,} containers", _CONTAINER_LIMIT)
        if content:
            self._places.append(self._container)
            self._which.append(which)
            self._all_packed.update(self._packed)
            self._all_unpacked.update(self._unpacked)
        return at

    def _break(self, at: int) -> int:
        self._end = 0
        self._drop()
        self._expect(self._search, _LOOK)
        if self._broken > _FALSE_HIT_LIMIT:
            return self._stop("more than {:,} damaged containers", _FALSE_HIT_LIMIT)
        return at

    def _drop(self) -> None:
        self._broken += 1
        if self._broken == 1:
            self._first_broken = self._container

    def _stop(self, reason: str, limit: int) -> int:
        """Skip the rest of the file."""
        self._end = 0
        self.notes["device code not read to the end: " + reason.format(limit)] = None
        return maxsize
