"""The report of schema."""

from typing import Literal

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import Answer


class ListedSchema(OwnModel):
    """A JSON Schema in the list of `schema`."""

    name: str
    summary: str


class SchemaReport(Answer):
    """The result of schema without NAME."""

    command: Literal["schema"] = "schema"
    schemas: tuple[ListedSchema, ...]
