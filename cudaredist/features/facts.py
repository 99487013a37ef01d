"""The facts of one archive: every member, and what each binary among them is and needs.

Facts are what was read, names as they stand in the archive; what follows from them is worked out
by `derive`, so that a changed rule needs no archive again. They are kept in the cache, never in
`data/`.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cudaredist.archives.members import MemberKind
from cudaredist.binaries.file_facts import Binary

ExtractKind: TypeAlias = Literal["host-config", "ptxas"]

FACTS_SCHEMA = 5
"""Raised whenever facts are read in another way, so that older ones in caches do not count."""


STRICT = ConfigDict(extra="forbid", strict=True)
"""How facts are read back: whatever is not exactly as written does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """One `#include` of a header."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    name: str
    """As it stands between the quotes or angle brackets."""
    condition: str = ""
    """The `#if` around it, as one expression; empty if there is none but the include guard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludeLines:
    """The includes of one header."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    includes: tuple[Include, ...] = ()
    """Without repetitions, in their order."""
    unread: str | None = None
    """Why they could not be read; there are none then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One member of an archive."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    name: str
    """As it stands there; what is not UTF-8 is written with backslashes."""
    kind: MemberKind
    mode: int = 0
    size: Annotated[int, Field(ge=0)] = 0
    target: str | None = None
    binary: Binary | None = None
    header: IncludeLines | None = None
    """None: not a header, or one without includes."""
    sha256: str | None = None
    """Of a licence's bytes; None for all other files."""
    origin: int | None = None
    """Position among the archive's members, where its content is kept; facts do not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """One file that a table is made from."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    kind: ExtractKind
    name: str
    """The member's name, as in the archive's facts."""
    sha256: str
    """Of the whole file."""
    content: str = ""
    """The header's text, one character a byte; or the capabilities of `ptxas`, with the name of
    each one's architecture, as a JSON object."""
    problem: str | None = None
    """Why there is no content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All members of one archive, in their order."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    schema: int
    members: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    """Where a wheel and its RECORD disagree."""
    extracts: tuple[Extract, ...] = ()
    """The files that tables are made from."""


_adapter = TypeAdapter(Facts)


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
