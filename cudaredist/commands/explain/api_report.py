"""The report of explain api."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import Report


class ApiForm(OwnModel):
    """The declaration of a name in some releases."""

    signature: str
    symbol: str | None = Field(description="Of a function: its symbol in the library")
    is_deprecated: bool
    releases: str = Field(description="Labels and ranges, such as `12.0.1..12.9.1`")


class ApiMember(OwnModel):
    """A field of a struct, or an enumerator of an enum."""

    name: str
    signature: str = Field(description="In the newest release with it")
    releases: str = Field(description="Labels and ranges")


class ApiEntry(OwnModel):
    """A name that the headers of a product declare."""

    name: str
    kind: str = Field(description="`function`, `struct`, `field`, `enumerator`, `macro`, ...")
    parent: str | None = Field(description="The struct of a field, the enum of an enumerator")
    redist: str
    package: str
    header: str = Field(description="In the newest release with it, as in `#include`")
    libraries: tuple[str, ...] = Field(description="Of a function: the libraries that export it")
    added_in: str | None = Field(description="Null: all known releases before have it")
    deprecated_since: str | None
    deprecation: str | None = Field(description="The note of the header")
    removed_in: str | None
    forms: tuple[ApiForm, ...] = Field(description="Oldest first")
    members: tuple[ApiMember, ...] = ()


class ApiReport(Report):
    """The result of explain api."""

    command: Literal["explain"] = "explain"
    kind: Literal["api"] = "api"
    asked: str
    entries: tuple[ApiEntry, ...]
    exit_code: int
