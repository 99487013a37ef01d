"""The report of materialize."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.field_types import Count, HexSha256
from cudaredist.formats.report import Report
from cudaredist.formats.toolkit_record import MissingRunPath


class OciImage(OwnModel):
    """The image of an OCI image layout."""

    manifest: str = Field(description="Digest of the manifest")
    layer: str = Field(description="Digest of the layer, and its diff_id: it is not compressed")
    layer_size: int
    environment: tuple[str, ...]


class LibraryCode(OwnModel):
    """The device code of the libraries of a runtime root."""

    capabilities: tuple[str, ...] = Field(description="Capabilities of the package set")
    size: Count = Field(description="Bytes of device code")
    unused: dict[str, Count] = Field(
        description="Bytes of device code that no GPU of the capabilities uses, by library"
    )
    unused_size: Count = Field(description="Sum of `unused`")
    unknown: tuple[str, ...] = Field(
        description="Libraries with device code of unknown size, which is not counted"
    )


class PackageSize(OwnModel):
    """The sizes of a package, as its package set states them."""

    unpacked: int | None = Field(description="Bytes of its files. Null: unknown")
    archive: int | None = Field(description="Bytes to download. Null: unknown, as for wheels")


class ToolkitReport(Report):
    """The result of materialize."""

    command: Literal["materialize"] = "materialize"
    root: str
    status: Literal["written", "unchanged", "verified", "altered", "removed", "would-write"]
    cuda: str | None = Field(description="Null: nothing is installed")
    platform: str | None
    target: str | None = Field(description="Platform to compile for. Null: the same")
    layout: Literal["merged", "split"] | None
    packages: tuple[str, ...]
    files: int
    size: int = Field(description="Bytes of all files")
    sizes: dict[str, PackageSize] = Field(
        default={}, description="With --check, the sizes by package"
    )
    libraries: tuple[str, ...] = Field(
        default=(), description="Names of the libraries of a runtime root"
    )
    optional_libraries: tuple[str, ...] = Field(
        default=(), description="Libraries of other packages that those of a runtime root may open"
    )
    full_size: int | None = Field(
        default=None, description="Bytes of the whole packages of a runtime root"
    )
    device_code: LibraryCode | None = Field(
        default=None, description="Device code of a runtime root"
    )
    image: OciImage | None = None
    missing_run_paths: dict[str, MissingRunPath] = Field(
        default={}, description="Libraries that do not find other libraries of the root, by path"
    )
    changed_files: dict[str, HexSha256] = Field(
        default={}, description="SHA-256 in the archive, by file to which run paths were added"
    )
    fetched_bytes: int = Field(description="Bytes from the network, without local archives")
    problems: tuple[str, ...] = Field(description="Altered files and links")
    foreign: tuple[str, ...] = Field(
        description="Files in the root that cudaredist did not install"
    )
