"""One member of an archive, as facts hold it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from cudaredist.archives.members import MemberKind
from cudaredist.binaries.file_facts import Binary

STRICT = ConfigDict(extra="forbid", strict=True)
"""How facts are read back: whatever is not exactly as written does not count."""


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
    origin: int | None = None
    """Position among the archive's members, where its content is kept; facts do not have it."""
