"""Collection of an archive's facts in one pass over its bytes."""

from cudaredist.archives.members import ArchiveReader, Member
from cudaredist.binaries.examine_file import examine
from cudaredist.binaries.file_content import Storage
from cudaredist.binaries.file_facts import Binary
from cudaredist.features.extracts import Extracts
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts, IncludeLines
from cudaredist.features.includes import Includes
from cudaredist.features.license_files import LicenseFiles
from cudaredist.features.wheel import Record

_ESCAPED = 0xDC00
"""The first of the code points that Python uses for undecodable bytes."""


def gather(
    reader: ArchiveReader, storage: Storage | None = None, *, is_wheel: bool = False
) -> Facts:
    """Read an archive to its end and return its facts.

    A wheel is compared to its RECORD. Raises the errors of the reader and of the storage. Facts are
    reliable only after the caller has verified the archive's hash and size.
    """
    entries: list[Entry] = []
    record = Record() if is_wheel else None
    extracts, includes, licenses = Extracts(), Includes(), LicenseFiles()
    for position, (member, content) in enumerate(reader):
        passing = content if record is None else record.following(member.name, content)
        binary = None
        if member.kind == "file":
            passing = extracts.following(position, member.name, readable(member.name), passing)
            passing = includes.following(position, member.name, passing)
            passing = licenses.following(position, member.name, passing)
            binary = examine(passing, storage)
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


def gather_binaries(reader: ArchiveReader, storage: Storage) -> list[Entry]:
    """Read an archive to its end and return its members.

    Only the facts of binaries are collected. Raises the errors of the reader and of the storage.
    """
    entries: list[Entry] = []
    for member, content in reader:
        binary = examine(content, storage) if member.kind == "file" else None
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
