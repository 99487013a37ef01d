"""Models of toolkit roots: the components one can ask for, and the record of what lies there."""

from typing import Literal

from pydantic import Field

from cudaredist.schema.base import Channel, Count, HexSha256, Label, OwnModel, SchemaVersion
from cudaredist.schema.policy import Reasoned


class ComponentSet(Reasoned):
    """Packages that one asks for by one word."""

    packages: tuple[str, ...]
    programs: tuple[str, ...] = Field(
        description="Programs in `bin` that there must be, without .exe"
    )


class ComponentPolicy(OwnModel):
    """`policy/components.json`: what compiler, runtime and math mean."""

    schema_version: SchemaVersion
    components: dict[str, ComponentSet]


class ToolkitFile(OwnModel):
    """One file that was laid out."""

    sha256: HexSha256
    size: Count
    executable: bool
    package: str


class ToolkitLink(OwnModel):
    """One symbolic link that was laid out."""

    target: str = Field(description="From the folder that it lies in")
    package: str


class ToolkitPackage(OwnModel):
    """One package that was laid out."""

    version: str
    archive_sha256: HexSha256


class ToolkitRecord(OwnModel):
    """`.cudaredist.json` of a toolkit root: what was laid out, to prove it or take it away."""

    schema_version: SchemaVersion
    set_sha256: HexSha256 = Field(description="Of the package set's document")
    channel: Channel
    cuda: Label
    platform: str
    layout: Literal["merged", "split"]
    static: bool = Field(description="Whether static libraries were laid out")
    packages: dict[str, ToolkitPackage]
    files: dict[str, ToolkitFile] = Field(description="By path below the root")
    links: dict[str, ToolkitLink] = Field(description="By path below the root")
