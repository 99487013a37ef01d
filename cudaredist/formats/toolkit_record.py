"""Models of toolkit components, and of the record in a toolkit root."""

import posixpath
from typing import Literal, Self

from pydantic import Field, model_validator

from cudaredist.formats.base import OwnFile, OwnModel, Reasoned, optional
from cudaredist.formats.field_types import Count, HexSha256, InnerFolder, InnerPath, Label
from cudaredist.formats.names import Channel
from cudaredist.primitives import is_inner_path
from cudaredist.words import shown

RECORD_NAME = ".cudaredist.json"
"""File name of the record. A folder without it is not a cudaredist root."""


class ComponentSet(Reasoned):
    """The packages of a component."""

    packages: tuple[str, ...]
    programs: tuple[str, ...] = Field(description="Required programs in `bin`, without .exe")


class ComponentPolicy(OwnFile):
    """`policy/components.json`: the components that `materialize` installs."""

    components: dict[str, ComponentSet]


class PackageName(str):
    """The name of a package in a record: an attribute, or an attribute and a target's platform."""

    __slots__ = ()

    @classmethod
    def of_target(cls, attr: str, platform: str) -> Self:
        """Return the name of a target's package, such as `cuda_crt:linux-sbsa`."""
        return cls(f"{attr}:{platform}")

    @property
    def attr(self) -> str:
        """The package's name in its set."""
        return self.partition(":")[0]

    @property
    def platform(self) -> str:
        """The target's platform. Empty: the package is not of a target."""
        return self.partition(":")[2]


class ToolkitFile(OwnModel):
    """An installed file."""

    sha256: HexSha256
    size: Count
    executable: bool
    package: str
    original_sha256: HexSha256 | None = optional(
        "SHA-256 in the archive, if run paths were added. Absent: the file is unchanged"
    )


class ToolkitLink(OwnModel):
    """An installed symbolic link."""

    target: str = Field(description="Relative to the link's folder")
    package: str


class ToolkitPackage(OwnModel):
    """An installed package."""

    version: str
    archive_sha256: HexSha256


class MissingRunPath(OwnModel):
    """Other libraries of a root that a library does not find by its run path."""

    needs: tuple[str, ...] = Field(description="Libraries that it needs")
    opens: tuple[str, ...] = Field(description="Libraries that it may open: a guess, by its data")
    folders: tuple[InnerFolder, ...] = Field(description="Their folders, relative to the root")


class ToolkitRecord(OwnFile):
    """`.cudaredist.json`: installed files of a toolkit root, to verify or remove them."""

    set_sha256: HexSha256 = Field(description="SHA-256 of the package set's document")
    channel: Channel
    cuda: Label
    platform: str
    targets: dict[str, HexSha256] = optional(
        "SHA-256 of the package set of each platform to compile for. Absent: none", {}
    )
    layout: Literal["merged", "split"]
    static: bool = Field(description="Whether static libraries are installed")
    libraries: tuple[str, ...] = optional(
        "Names of the libraries of a runtime root. Absent: packages are complete", ()
    )
    run_paths: bool = optional("Whether missing run paths were added", default=False)
    missing_run_paths: dict[InnerPath, MissingRunPath] | None = optional(
        "By library, in the archives. Absent: made by an earlier version"
    )
    packages: dict[str, ToolkitPackage] = Field(
        description="By name. Packages of a target have its platform, as in cuda_crt:linux-sbsa"
    )
    files: dict[InnerPath, ToolkitFile] = Field(description="By path relative to the root")
    links: dict[InnerPath, ToolkitLink] = Field(description="By path relative to the root")

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        """Refuse links that lead out of the root."""
        for path, link in self.links.items():
            end = posixpath.normpath(posixpath.join(posixpath.dirname(path), link.target))
            if end != "." and not is_inner_path(end):
                raise ValueError(f"the link {shown(path)} leads out of the root")
        return self

    @property
    def unreached(self) -> dict[str, MissingRunPath]:
        """The missing run paths that were not added."""
        return {} if self.run_paths else self.missing_run_paths or {}

    @property
    def changed_files(self) -> dict[str, ToolkitFile]:
        """The files to which run paths were added."""
        return {path: file for path, file in self.files.items() if file.original_sha256}
