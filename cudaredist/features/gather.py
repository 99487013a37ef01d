"""Collection of an archive's facts in one pass over its bytes."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cudaredist.archives.members import Member
from cudaredist.binaries.examine_file import examine, examine_content
from cudaredist.binaries.file_content import Storage
from cudaredist.features.extracts import Extracts, extract_kind
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts
from cudaredist.features.includes import INCLUDES_SIZE_LIMIT, Includes, is_header
from cudaredist.features.license_files import LICENSES_LIMIT, is_license
from cudaredist.features.wheel import Record

_ESCAPED = 0xDC00
"""The first of the code points that Python uses for undecodable bytes."""


def gather(
    members: Iterable[tuple[Member, Iterator[bytes]]],
    storage: Storage,
    *,
    is_wheel: bool = False,
    only_binaries: bool = False,
) -> Facts:
    """Read an archive's members to their end and return the facts.

    A wheel is compared to its RECORD. With `only_binaries`, headers, licenses and the data for
    tables are not read. Raises the errors of the reader and of the storage.
    """
    entries: list[Entry] = []
    record = Record() if is_wheel else None
    facts = _MemberFacts(storage, only_binaries=only_binaries)
    for member, content in members:
        if record is None:
            entries.append(facts.read(member, content))
            continue
        # A RECORD has no folders.
        is_recorded = member.kind != "directory"
        passing = record.following(member.name, content) if is_recorded else content
        entries.append(facts.read(member, passing))
        # A hash requires the complete file.
        for _ in passing:
            pass
    return Facts(
        schema=FACTS_SCHEMA,
        members=tuple(entries),
        notes=() if record is None else record.notes(),
        extracts=facts.extracts.result(),
    )


class _MemberFacts:
    """Reads the facts of an archive's members."""

    def __init__(self, storage: Storage, *, only_binaries: bool) -> None:
        self._only_binaries = only_binaries
        self.extracts = Extracts()
        self._storage = storage
        self._includes = Includes()
        self._licenses = 0

    def read(self, member: Member, content: Iterator[bytes]) -> Entry:
        """Return a member's facts, and collect its extract."""
        if member.kind != "file":
            return _entry(member)
        name, kind = member.name, extract_kind(member.name)
        if self._only_binaries or not (is_header(name) or is_license(name) or kind):
            return replace(_entry(member), binary=examine(content, self._storage))
        file = self._storage.store(content)
        header = sha256 = None
        if is_header(name):
            header = self._includes.read(file.read(0, INCLUDES_SIZE_LIMIT + 1))
        if is_license(name) and self._licenses < LICENSES_LIMIT:
            self._licenses += 1
            sha256 = file.sha256()
        if kind is not None:
            self.extracts.add(kind, readable(name), file)
        binary = examine_content(file)
        return replace(_entry(member), binary=binary, header=header, sha256=sha256)


def _entry(member: Member) -> Entry:
    return Entry(
        name=readable(member.name),
        kind=member.kind,
        mode=member.mode,
        size=member.size,
        target=None if member.target is None else readable(member.target),
    )


def readable(name: str) -> str:
    """Return a name with undecodable bytes escaped as `%E9`."""
    if name.isascii():
        return name
    return "".join(
        f"%{ord(letter) - _ESCAPED:02X}" if "\udc80" <= letter <= "\udcff" else letter
        for letter in name
    )
