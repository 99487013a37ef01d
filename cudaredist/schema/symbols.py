"""Model of the tables of symbols: the exports of one library, by release."""

from typing import Annotated

from pydantic import Field

from cudaredist.schema.base import Channel, Label, OwnModel, SchemaVersion, optional

LIBRARY_PATTERN = r"^[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,127}$"
LibraryName = Annotated[
    str, Field(pattern=LIBRARY_PATTERN, description="A soname, or the name of a file")
]
ArchiveKey = Annotated[
    str, Field(pattern=r"^[0-9a-f]{16}$", description="The beginning of an archive's SHA-256")
]
Names = Annotated[str, Field(description="Sorted, with blanks between")]
ReleaseRanges = tuple[str, ...]


class SymbolProvider(OwnModel):
    """A package with the library on one platform, and its releases."""

    channel: Channel
    redist: str
    package: str
    platform: str
    variant: str | None = optional("Absent: none")
    stub: bool = optional(
        "Whether the library is only for linking; absent: it is not", default=False
    )
    releases: dict[Label, ArchiveKey] = Field(description="The archive of each release")


class ExportGroup(OwnModel):
    """Symbols that the same releases export."""

    version: str = optional(
        "Version of the symbols: `@@V` if it is their default, else `@V`; absent: none", ""
    )
    releases: ReleaseRanges = optional(
        "For each provider the releases: `*` for all, empty for none, else labels and ranges "
        "(`12.0.1..12.4.1`) with blanks between; absent: all of all",
        (),
    )
    names: Names


class ImportGroup(ExportGroup):
    """Symbols that the same releases take from another library of the redistributables."""

    library: LibraryName


class Symbols(OwnModel):
    """`symbols/<soname>.json`: the exports of a library, and its imports from others."""

    schema_version: SchemaVersion
    soname: LibraryName
    providers: tuple[SymbolProvider, ...]
    exports: tuple[ExportGroup, ...]
    imports: tuple[ImportGroup, ...]
