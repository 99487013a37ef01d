"""Model of the policy of licenses."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel, Reasoned, optional
from cudaredist.formats.field_types import HexSha256
from cudaredist.formats.names import RedistName
from cudaredist.formats.set_policy import SetPolicy


class License(Reasoned):
    """The facts about a license."""

    spdx: str | None
    short_name: str
    url: str | None
    free: bool
    redistributable: bool | None = Field(description="Null: unknown")


Operating = Literal["All", "Windows", "Mac OSX", "Linux", "Android"]


class ListedFiles(OwnModel):
    """Files of one component and platform that a license text lists as distributable."""

    component: str | None = Field(description="Null: the list has no components")
    system: Operating
    files: tuple[str, ...] = Field(
        description="Names without version and architecture, or suffixes such as `.so`"
    )
    is_conditional: bool = optional(
        "Whether the text permits it only in applications that meet further criteria",
        default=False,
    )


class LicenseText(License):
    """A license whose text is in archives."""

    title: str = Field(description="Name of the text, with its date if it has one")
    files: tuple[HexSha256, ...] = Field(description="SHA-256 of each file with this text")
    has_list: bool | None = optional(
        "Whether the text lists the files that may be distributed. Absent: not read"
    )
    listed: tuple[ListedFiles, ...] = optional(
        "The list, as `tools.distribution_lists` reads it", ()
    )


class LicensePolicy(SetPolicy):
    """`policy/licenses.json`: licenses by text, package, redistributable or manifest's word."""

    texts: dict[HexSha256, LicenseText] = optional(
        "By SHA-256 of the normalized text: in UTF-8, with a single space for each sequence of "
        "white space",
        {},
    )

    packages: dict[str, License]
    manifests: dict[str, License] = Field(description="By the manifest's `license`")
    redists: dict[RedistName, License]
    default: License

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        yield from self.packages
