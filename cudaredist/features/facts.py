"""Facts of one archive: its members and their binaries.

Facts are exactly the data in the archive, with its names. `derive` turns them into features, so a
change of its rules needs no archive again. Facts are stored in the cache, never in `data/`.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cudaredist.archives.members import MemberKind
from cudaredist.binaries.file_facts import Binary
from cudaredist.formats.names import ExtractKind

FACTS_SCHEMA = 9
"""Version of the facts. Raise it whenever facts are read differently, to ignore cached ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """One `#include` of a header."""

    name: str
    """The text between the quotes or angle brackets."""
    condition: str = ""
    """The `#if` around it, as one expression. Empty if there is none but the include guard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludeLines:
    """The includes of one header."""

    includes: tuple[Include, ...] = ()
    """Unique, in their original order."""
    unread: str | None = None
    """The reason why they could not be read. In that case, `includes` is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One member of an archive."""

    name: str
    """The name in the archive, with bytes that are not UTF-8 escaped as `%E9`."""
    kind: MemberKind
    mode: int = 0
    size: Annotated[int, Field(ge=0)] = 0
    target: str | None = None
    binary: Binary | None = None
    header: IncludeLines | None = None
    """None if the member is not a header, or has no includes."""
    sha256: str | None = None
    """The hash of a license's bytes. None for all other files."""
    origin: int | None = None
    """The member with the content, by position in the archive. Not part of the stored facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The table data from one file."""

    kind: ExtractKind
    name: str
    """The member's name, as in the archive's facts."""
    sha256: str
    """The hash of the whole file."""
    content: str = ""
    """Either the text of a header, one character per byte, or the capabilities in `ptxas` as a JSON
    object, each with the name of its architecture."""
    problem: str | None = None
    """The reason for missing content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All members of one archive, in their order."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", strict=True)
    """Any deviation from the written form is an error, also in the dataclasses of the fields."""
    schema: int
    members: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    """Differences between a wheel and its RECORD."""
    extracts: tuple[Extract, ...] = ()
    """The data for tables."""


_adapter = TypeAdapter(Facts)


def facts_to_bytes(facts: Facts) -> bytes:
    """Return facts as compact, deterministic JSON."""
    return _adapter.dump_json(facts, exclude_defaults=True)


def facts_from_bytes(data: bytes) -> Facts | None:
    """Return facts from bytes, or None if invalid or outdated."""
    try:
        facts = _adapter.validate_json(data)
    except ValidationError:
        return None
    return facts if facts.schema == FACTS_SCHEMA else None
