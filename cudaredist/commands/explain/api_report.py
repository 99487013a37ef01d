"""The report of explain api."""

from typing import Annotated, Literal

from pydantic import Field

from cudaredist.formats.plain_report import PlainEntry, PlainReport


class ApiForm(PlainEntry):
    """The declaration of a name in some releases."""

    signature: str
    symbol: Annotated[str | None, Field(description="Of a function: its symbol in the library")]
    is_deprecated: bool
    releases: Annotated[str, Field(description="Labels and ranges, such as `12.0.1..12.9.1`")]


class ApiMember(PlainEntry):
    """A field of a struct, or an enumerator of an enum."""

    name: str
    signature: Annotated[str, Field(description="In the newest release with it")]
    releases: Annotated[str, Field(description="Labels and ranges")]


class ApiEntry(PlainEntry):
    """A name that the headers of a product declare."""

    name: str
    kind: Annotated[
        str, Field(description="`function`, `struct`, `field`, `enumerator`, `macro`, ...")
    ]
    parent: Annotated[
        str | None, Field(description="The struct of a field, the enum of an enumerator")
    ]
    redist: str
    package: str
    header: Annotated[str, Field(description="In the newest release with it, as in `#include`")]
    libraries: Annotated[
        tuple[str, ...], Field(description="Of a function: the libraries that export it")
    ]
    added_in: Annotated[str | None, Field(description="Null: all known releases before have it")]
    deprecated_since: str | None
    deprecation: Annotated[str | None, Field(description="The note of the header")]
    removed_in: str | None
    forms: Annotated[tuple[ApiForm, ...], Field(description="Oldest first")]
    members: tuple[ApiMember, ...] = ()


class ApiReport(PlainReport):
    """The result of explain api."""

    command: Literal["explain"] = "explain"
    kind: Literal["api"] = "api"
    asked: str
    entries: tuple[ApiEntry, ...]
    exit_code: int
