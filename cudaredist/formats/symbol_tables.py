"""Model of the tables of symbols: the exports of one library, by release."""

import binascii
import bz2
from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from cudaredist.errors import InvalidFileError
from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.field_types import Label
from cudaredist.formats.names import Channel, RedistName
from cudaredist.primitives import LIBRARY_PATTERN, is_mangled

LibraryName = Annotated[
    str, Field(pattern=LIBRARY_PATTERN, description="A soname, or the name of a file")
]
ArchiveKey = Annotated[
    str, Field(pattern=r"^[0-9a-f]{16}$", description="The beginning of an archive's SHA-256")
]
_PLAIN_LIMIT = 16 << 10
"""Characters of C++ names beyond which they are packed."""
_UNPACKED_LIMIT = 64 << 20
ReleaseRanges = tuple[str, ...]


class SymbolProvider(OwnModel):
    """A package with the library on one platform, and its releases."""

    channel: Channel
    redist: RedistName
    package: str
    platform: str
    variant: str | None = optional("Absent: none")
    stub: bool = optional(
        "Whether the library is only for linking. Absent: it is not", default=False
    )
    releases: dict[Label, ArchiveKey] = Field(description="The archive of each release")
    unread: dict[Label, ArchiveKey] = optional(
        "Further releases, whose symbols could not be read; absent: none", {}
    )


class ExportGroup(OwnModel):
    """Symbols that the same releases export."""

    version: str = optional(
        "Version of the symbols: `@@V` if it is the default, otherwise `@V`. Absent: none", ""
    )
    releases: ReleaseRanges = optional(
        "One text for each provider with its releases: labels and ranges such as "
        "`12.0.1..12.4.1`, separated by spaces. `*`: all releases. Empty: none. "
        "Absent: all releases of all providers",
        (),
    )
    names: str = optional("Sorted, separated by spaces. Absent: all are packed", "")
    packed: str = optional(
        "More C++ names in the same form, compressed with bzip2, as base64. Absent: none", ""
    )

    def symbols(self) -> list[str]:
        """Return all names. Raises `InvalidFileError`."""
        plain = self.names.split(" ") if self.names else []
        return [*plain, *self._packed_names()] if self.packed else plain

    def _packed_names(self) -> list[str]:
        unpacker = bz2.BZ2Decompressor()
        try:
            packed = binascii.a2b_base64(self.packed)
            names = unpacker.decompress(packed, _UNPACKED_LIMIT).decode()
        except (ValueError, OSError):
            names = ""
        if not names or not unpacker.eof:
            message = "is not the bzip2 of names, or too large"
            raise InvalidFileError.of("symbols file", message, "packed")
        return names.split(" ")


def stored_names(names: Iterable[str]) -> dict[str, str]:
    """Return the fields of a group for some names. Many C++ names are packed.

    bzip2 has one implementation, so that the same names give the same bytes everywhere.
    """
    ordered = sorted(names)
    mangled = [name for name in ordered if is_mangled(name)]
    text = " ".join(mangled)
    if len(text) <= _PLAIN_LIMIT:
        return {"names": " ".join(ordered)}
    plain = " ".join(name for name in ordered if not is_mangled(name))
    packed = binascii.b2a_base64(bz2.compress(text.encode()), newline=False).decode()
    return {"names": plain, "packed": packed}


class ImportGroup(ExportGroup):
    """Symbols that the same releases take from another library of the redistributables."""

    library: LibraryName


class Symbols(OwnFile):
    """`symbols/<soname>.json`: the exports of a library, and its imports from others."""

    soname: LibraryName
    providers: tuple[SymbolProvider, ...]
    exports: tuple[ExportGroup, ...]
    imports: tuple[ImportGroup, ...]

    @model_validator(mode="after")
    def _check_releases(self) -> Self:
        """Refuse groups with other providers or releases than the table has."""
        for group in (*self.exports, *self.imports):
            if group.releases and len(group.releases) != len(self.providers):
                raise ValueError(f"{len(group.releases)} providers, not {len(self.providers)}")
            for text, provider in zip(group.releases, self.providers, strict=False):
                labels = text.replace("..", " ").split() if text != "*" else ()
                for label in labels:
                    if label not in provider.releases:
                        raise ValueError(f"{provider.package} has no release {label}")
        return self
