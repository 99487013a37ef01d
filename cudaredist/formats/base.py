"""The base class of models."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from cudaredist.formats.field_types import SchemaVersion
from cudaredist.jsontext import canonical_json


class OwnModel(BaseModel):
    """Base class of models: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    def canonical(self) -> bytes:
        """Return the content of a file."""
        return canonical_json(self.model_dump(mode="json", by_alias=True))


class Reasoned(OwnModel):
    """Base class of policy entries, with a reason and its source."""

    reason: str = Field(min_length=1)
    reference: str = Field(description="The document or observation that supports it")


class OwnFile(OwnModel):
    """Base class of files."""

    schema_version: SchemaVersion


def optional(description: str | None, default: object = None) -> Any:  # noqa: ANN401 - as pydantic's own Field
    """Return a field that is omitted from files if it has its default."""
    return Field(
        default=default, description=description, exclude_if=lambda value: value == default
    )
