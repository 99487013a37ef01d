"""Gather the facts of an archive in one pass over its bytes."""

from collections import defaultdict
from collections.abc import Iterable

from cudaredist.archives.members import ArchiveReader, Member
from cudaredist.binaries.examine_file import examine
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.range_buffer import Range
from cudaredist.features.extracts import Extracts
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts, IncludeLines
from cudaredist.features.includes import Includes
from cudaredist.features.license_files import LicenseFiles
from cudaredist.features.wheel import Record

_ESCAPED = 0xDC00
"""Where Python puts bytes that it could not decode."""


class LateTables:
    """Tables of an archive's files that one pass found too late, for the pass after it.

    A tool that rewrites a library puts its headers at the end, and what they lead to has passed by
    then: libcublasLt for linux-sbsa since 13.2, which was laid out anew by BOLT, is one.
    """

    def __init__(self) -> None:
        self._held: dict[int, set[Range]] = defaultdict(set)
        """By the position of the file among the members."""

    def held(self, position: int) -> list[Range]:
        """Return what is to be held of a file."""
        return sorted(self._held.get(position, ()))

    def add(self, position: int, missed: Iterable[Range]) -> None:
        """Remember what was missed of a file."""
        for table in missed:
            self._held[position].add(table)

    def __len__(self) -> int:
        """Return how many tables are known."""
        return sum(map(len, self._held.values()))


def gather(
    reader: ArchiveReader, *, is_wheel: bool = False, late: LateTables | None = None
) -> Facts:
    """Read an archive to its end and return its facts; a wheel is also held against its RECORD.

    What `late` knows of is held, and what is missed now is added to it. Raises what the reader
    raises; nothing is to be believed before it ended and hash and size of the archive were found
    right, which is the caller's part.
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
            binary = examine(passing, late.held(position), missed)
            late.add(position, missed)
        if passing is not content:
            # Hashes, extracts and headers need a file to its end.
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
        extracts=extracts.found(),
    )


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
    """Return a name with bytes that are no UTF-8 as `%E9`."""
    if name.isascii():
        return name
    return "".join(
        f"%{ord(letter) - _ESCAPED:02X}" if "\udc80" <= letter <= "\udcff" else letter
        for letter in name
    )
