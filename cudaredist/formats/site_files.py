"""Model of the list of a web site's files."""

from pydantic import Field

from cudaredist.formats.base import OwnFile
from cudaredist.formats.field_types import InnerPath, SchemaVersion


class SiteFiles(OwnFile):
    """`files.json`: the files of a web site, so that a later run removes old ones."""

    schema_version: SchemaVersion = Field(default=1, description="Absent: 1")
    files: tuple[InnerPath, ...] = Field(description="Paths below the folder of the site")
