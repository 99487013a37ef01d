"""Base classes of the reports of lookups: dataclasses, which take little time to create.

A lookup needs few milliseconds for its query, and a model of pydantic takes as long to create. So
its report is a dataclass with the same fields. Values are not validated: mypy checks them, and the
tests compare each report with its JSON Schema. The schema is made with pydantic, as for models, so
that descriptions are in `Annotated`.
"""

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict

from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import ArchiveId, Version


def _describe(schema: dict[str, Any], entry: type) -> None:
    """Add the docstring of a dataclass to its schema, as for models."""
    schema["description"] = inspect.cleandoc(entry.__doc__ or "")


@dataclass(frozen=True, kw_only=True)
class PlainEntry:
    """Base class of the parts of a report."""

    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", strict=True, json_schema_extra=_describe
    )
    """Only for the JSON Schema, and for models with such a part."""


@dataclass(frozen=True, kw_only=True)
class PlainAnswer(PlainEntry):
    """The result of a command."""

    schema_version: Literal[1] = 1
    command: str


@dataclass(frozen=True, kw_only=True)
class PlainReport(PlainAnswer):
    """The result of a command, with its exit code."""

    exit_code: int


@dataclass(frozen=True, kw_only=True)
class PlainArchive(PlainEntry):
    """Base class of report entries about one archive."""

    redist: str
    release: str
    package: str
    version: str
    platform: str
    variant: str | None

    @property
    def id(self) -> ArchiveId:
        """The archive's key in the release."""
        return ArchiveId(self.package, self.platform, self.variant)

    @classmethod
    def of(cls, redist: str, label: Version, archive: Archive, **more: Any) -> Self:  # noqa: ANN401 - the fields of the subclass
        """Return a report on an archive, with additional fields."""
        fields = {"redist": redist, "release": str(label), "version": str(archive.version)}
        return cls(**fields, **archive.id._asdict(), **more)


def as_json(value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a report or a part of it as JSON values."""
    if isinstance(value, PlainEntry):
        return {name: as_json(part) for name, part in vars(value).items()}
    if isinstance(value, dict):
        return {name: as_json(part) for name, part in value.items()}
    return [*map(as_json, value)] if isinstance(value, tuple) else value
