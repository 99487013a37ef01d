"""The facts of one archive: every member, and what each binary among them is and needs.

Facts are what was read, names as they stand in the archive; what follows from them is worked out
by `derive`, so that a changed rule needs no archive again. They are kept in the cache, never in
`data/`.
"""

from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from cudaredist.archives import ArchiveReader, Member, MemberKind
from cudaredist.binaries import Binary, examine

FACTS_SCHEMA = 1
"""Raised whenever facts are read in another way, so that older ones in caches do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One member of an archive."""

    name: str
    """As it stands there; what is not UTF-8 is written with backslashes."""
    kind: MemberKind
    mode: int = 0
    size: int = 0
    target: str | None = None
    binary: Binary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All members of one archive, in their order."""

    schema: int
    members: tuple[Entry, ...]


_adapter = TypeAdapter(Facts)


def gather(reader: ArchiveReader) -> Facts:
    """Read an archive to its end and return its facts.

    Raises what the reader raises; nothing is to be believed before it ended and hash and size of
    the archive were found right, which is the caller's part.
    """
    entries: list[Entry] = []
    for member, content in reader:
        binary = examine(content) if member.kind == "file" else None
        entries.append(_entry(member, binary))
    for position, member in reader.corrections.items():
        binary = entries[position].binary if member.kind == "file" else None
        entries[position] = replace(_entry(member, binary), size=member.size)
    return Facts(schema=FACTS_SCHEMA, members=tuple(entries))


def _entry(member: Member, binary: Binary | None) -> Entry:
    return Entry(
        name=_readable(member.name),
        kind=member.kind,
        mode=member.mode,
        size=member.size,
        target=None if member.target is None else _readable(member.target),
        binary=binary,
    )


def _readable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def facts_to_bytes(facts: Facts) -> bytes:
    """Return facts as compact JSON, the same bytes for the same facts."""
    return _adapter.dump_json(facts, exclude_defaults=True)


def facts_from_bytes(data: bytes) -> Facts | None:
    """Return the facts in some bytes; None where they are broken or of another schema."""
    try:
        facts = _adapter.validate_json(data)
    except ValidationError:
        return None
    return facts if facts.schema == FACTS_SCHEMA else None
