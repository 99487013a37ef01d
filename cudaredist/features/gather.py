"""Collection of an archive's facts in one pass over its bytes."""

from collections import defaultdict
from collections.abc import Iterable

from cudaredist.archives.members import ArchiveReader, Member
from cudaredist.archives.stream import StreamReader
from cudaredist.binaries.examine_file import examine
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.range_buffer import Range
from cudaredist.features.extracts import Extracts
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts, IncludeLines
from cudaredist.features.includes import Includes
from cudaredist.features.license_files import LicenseFiles
from cudaredist.features.wheel import Record

_ESCAPED = 0xDC00
"""The first of the code points that Python uses for undecodable bytes."""


class LateTables:
    """Tables of files that need a second pass over the archive.

    Some tools move a library's headers to its end. When they arrive, the tables they refer to have
    already passed. An example is libcublasLt for linux-sbsa since 13.2, rewritten by BOLT.
    """

    def __init__(self) -> None:
        self._tables: dict[int, set[Range]] = defaultdict(set)
        """By the position of the file among the members."""

    def of_file(self, position: int) -> list[Range]:
        """Return the tables to keep in memory from a file."""
        return sorted(self._tables.get(position, ()))

    def positions(self) -> list[int]:
        """Return the positions of the files with missed tables."""
        return sorted(self._tables)

    def add(self, position: int, missed: Iterable[Range]) -> None:
        """Add the tables missed in a file."""
        for table in missed:
            self._tables[position].add(table)

    def __len__(self) -> int:
        """Return the number of tables."""
        return sum(map(len, self._tables.values()))


def gather(
    reader: ArchiveReader, *, is_wheel: bool = False, late: LateTables | None = None
) -> Facts:
    """Read an archive to its end and return its facts.

    A wheel is compared to its RECORD. The pass keeps the tables listed in `late`, and adds those it
    missed. Raises the reader's errors. Facts are reliable only after the caller has verified the
    archive's hash and size.
    """
    entries: list[Entry] = []
    record = Record() if is_wheel else None
    extracts, includes, licenses = Extracts(), Includes(), LicenseFiles()
    late = LateTables() if late is None else late
    for position, (member, content) in enumerate(reader):
        passing = content if record is None else record.following(member.name, content)
        binary = None
        if member.kind == "file":
            passing = extracts.following(position, member.name, readable(member.name), passing)
            passing = includes.following(position, member.name, passing)
            passing = licenses.following(position, member.name, passing)
            missed: list[Range] = []
            binary = examine(passing, late.of_file(position), missed)
            late.add(position, missed)
        if passing is not content:
            # Hashes, extracts and includes require the complete file.
            for _ in passing:
                pass
        header, sha256 = includes.at(position), licenses.at(position)
        entries.append(_entry(member, binary, header, sha256))
    for position, member in reader.corrections.items():
        if member.kind != "file":
            extracts.drop(position)
        read = entries[position] if member.kind == "file" else Entry(name="", kind="other")
        entries[position] = _entry(member, read.binary, read.header, read.sha256)
    return Facts(
        schema=FACTS_SCHEMA,
        members=tuple(entries),
        notes=() if record is None else record.notes(),
        extracts=extracts.result(),
    )


def gather_binaries(reader: StreamReader, late: LateTables) -> list[Entry]:
    """Read an archive to its end and return its members.

    Only the facts of binaries are collected. Raises the reader's errors.
    """
    entries: list[Entry] = []
    for position, (member, content) in enumerate(reader):
        missed: list[Range] = []
        is_file = member.kind == "file"
        held = late.of_file(position)
        binary = examine(content, held, missed, reader.reread) if is_file else None
        late.add(position, missed)
        entries.append(_entry(member, binary, None, None))
    for position, member in reader.corrections.items():
        binary = entries[position].binary if member.kind == "file" else None
        entries[position] = _entry(member, binary, None, None)
    return entries


def _entry(
    member: Member, binary: Binary | None, header: IncludeLines | None, sha256: str | None
) -> Entry:
    return Entry(
        name=readable(member.name),
        kind=member.kind,
        mode=member.mode,
        size=member.size,
        target=None if member.target is None else readable(member.target),
        binary=binary,
        header=header,
        sha256=sha256,
    )


def readable(name: str) -> str:
    """Return a name with undecodable bytes escaped as `%E9`."""
    if name.isascii():
        return name
    return "".join(
        f"%{ord(letter) - _ESCAPED:02X}" if "\udc80" <= letter <= "\udcff" else letter
        for letter in name
    )
