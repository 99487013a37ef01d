"""Models of feature files."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from cudaredist.binaries.file_facts import DeviceImages
from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.field_types import (
    Count,
    HexSha256,
    InnerFolder,
    InnerPath,
    Label,
    VersionText,
)
from cudaredist.formats.names import OutputName, RedistName

FileNames: TypeAlias = dict[OutputName, dict[str, str]]
"""The names of an archive's files by output and folder, separated by slashes."""
MissingHeaders: TypeAlias = dict[str, dict[str, str]]
"""Conditions of including headers, by missing header and including header."""


class OutputSize(OwnModel):
    """The size of an output."""

    files: Count = Field(description="Number of regular files, without symbolic and hard links")
    bytes: Count = Field(description="Total unpacked size")


class _BinaryFile(OwnModel):
    path: InnerPath = Field(description="Path below the archive's top directory")
    output: OutputName
    needed: tuple[str, ...] = Field(description="DT_NEEDED, or the imported DLLs, in file order")
    runpath: tuple[str, ...] = Field(description="DT_RUNPATH, or else DT_RPATH, entry by entry")
    glibc: str | None = Field(description="Newest GLIBC_ version needed; null: none")
    libstdcxx: str | None = Field(description="Newest GLIBCXX_ version needed; null: none")
    opens: tuple[str, ...] = optional(
        "Names of other libraries in its data, sorted. It may open them at run time (a guess). "
        "Absent: none",
        (),
    )
    unread: tuple[str, ...] = optional(
        "Fields that are empty because they could not be read. Absent: none", ()
    )


class Library(_BinaryFile):
    """A shared library."""

    soname: str | None = Field(description="DT_SONAME, or a DLL's export name. Null: none")
    links: tuple[InnerPath, ...] = Field(description="Links to it in the archive, sorted")
    stub: bool = Field(description="Replaces a library of the driver at link time")


class Program(_BinaryFile):
    """A program that requires shared libraries, or may open some."""


class CodeTargets(OwnModel):
    """Architectures of device code, in natural order."""

    sass: tuple[str, ...] = Field(description="Machine code, such as sm_90a")
    ptx: tuple[str, ...] = Field(description="Portable code, such as compute_90")
    lto: tuple[str, ...] = Field(description="Code for link-time optimization, such as lto_90")


class DeviceCode(OwnModel):
    """Device code in a directory of libraries."""

    declared: CodeTargets = Field(description="In sections for device code, as in cuobjdump")
    embedded: CodeTargets = Field(description="In data sections, loaded by the library itself")


class FileCode(OwnModel):
    """Device code in a shared or static library, a program or an object."""

    output: OutputName
    modules: dict[str, Count] = Field(
        description="Number of modules by the architectures of their images, such as "
        "`compute_90 sm_75 sm_90`. `sm_90*2` means two images. The driver loads one image of a "
        "module"
    )
    bytes: dict[str, Count] = Field(
        description="Bytes of the images in the file by architecture. 0: compressed together "
        "with other images"
    )
    unpacked: dict[str, Count] = Field(description="Decompressed bytes of the images")

    @classmethod
    def of(cls, output: OutputName, images: DeviceImages) -> Self:
        """Return the device code of a file in an output."""
        sizes = sorted(images.sizes.items())
        return cls(
            output=output,
            modules=images.modules,
            bytes={name: packed for name, (packed, _) in sizes},
            unpacked={name: unpacked for name, (_, unpacked) in sizes},
        )


class ArchiveFeatures(OwnModel):
    """The contents of an archive, independent of its manifest."""

    machine: str | None = Field(
        description="The machine of its binaries. Null: none, or several (see notes)"
    )
    outputs: dict[OutputName, OutputSize]
    libraries: tuple[Library, ...] = Field(description="Shared libraries, sorted by path")
    programs: tuple[Program, ...] = Field(
        description="Programs that require libraries, sorted by path"
    )
    device_code: dict[InnerFolder, DeviceCode] = Field(description="By directory of libraries")
    code_by_file: dict[InnerPath, FileCode] | None = optional(
        "Files with device code, by path. Absent: unknown, made by an earlier version"
    )
    cuda_versions_in_lib: tuple[str, ...] = Field(description="Directories such as lib/12")
    unnested: dict[InnerPath, dict[OutputName, OutputSize]] = Field(
        description="By CUDA-versioned directory: the outputs if it replaces lib"
    )
    python: tuple[str, ...] = Field(description="Python modules and wheels")
    license_files: dict[InnerPath, HexSha256] | None = optional(
        "SHA-256 of each license and notice, by path. Absent: unknown, made by an earlier version"
    )
    unlisted: Count = optional("Number of files without a name here, because there are too many", 0)
    unread_headers: Count = optional("Number of headers with unreadable includes (see notes)", 0)
    notes: tuple[str, ...] = Field(description="Unsafe names and unknown contents")


class WholeFeatures(ArchiveFeatures):
    """The contents of an archive, including fields that archives can share."""

    files: FileNames
    missing_headers: MissingHeaders


class _ListedArchive(OwnModel):
    platform: str
    variant: str | None = Field(
        description="Such as `cuda12`, if the manifest has variants. Null: none"
    )
    version: VersionText | None = optional(
        "Only if an early manifest lists several versions of the package"
    )
    sha256: HexSha256 | None = Field(description="Null: not in the manifest")


class ExaminedArchive(_ListedArchive, ArchiveFeatures):
    """The contents of an archive with verified hash and size."""

    status: Literal["examined"]
    verified: bool = optional(
        "False if there was no hash to verify. Absent: verified", default=True
    )


class UnexaminedArchive(_ListedArchive):
    """An archive that was not inspected, with the reason."""

    status: Literal["not-examined"]
    reason: str = Field(min_length=1)


_POSITIONS = Field(description="Positions of the archives in `archives`")


class SharedFiles(OwnModel):
    """The files of an output that several archives share."""

    archives: tuple[Count, ...] = _POSITIONS
    output: OutputName
    folders: dict[InnerFolder, str] = Field(
        description="By folder, the sorted names of its regular files, separated by slashes. An "
        "empty string is the archive's top directory"
    )


class SharedHeaders(OwnModel):
    """The missing headers that several archives share."""

    archives: tuple[Count, ...] = _POSITIONS
    headers: MissingHeaders = Field(
        description="Headers that the archive includes but does not contain, except those of C, "
        "C++ and POSIX. Each has one of the headers that include it for each condition. Empty: no "
        "condition"
    )


class PackageFeatures(OwnModel):
    """The archives of a package, sorted by platform and variant."""

    version: VersionText | None = Field(
        description="Null: an early manifest lists several, and each archive has its own"
    )
    archives: tuple[
        Annotated[ExaminedArchive | UnexaminedArchive, Field(discriminator="status")], ...
    ]
    files: tuple[SharedFiles, ...] = optional(
        "All regular files. Archives without files here: unknown, made by an earlier version", ()
    )
    missing_headers: tuple[SharedHeaders, ...] = optional(
        "Headers from other packages. Archives that are not listed here: unknown", ()
    )

    @model_validator(mode="after")
    def _check_positions(self) -> Self:
        positions = [shared.archives for shared in self.files]
        positions += [shared.archives for shared in self.missing_headers]
        if any(position >= len(self.archives) for each in positions for position in each):
            raise ValueError("a position without an archive")
        return self

    def files_of(self, position: int) -> dict[str, OutputName] | None:
        """Map an archive's files to their outputs, or return None if they are unknown."""
        shared = [entry for entry in self.files if position in entry.archives]
        files = {
            f"{folder}/{name}" if folder else name: entry.output
            for entry in shared
            for folder, names in entry.folders.items()
            for name in names.split("/")
        }
        return files if shared else None

    def missing_headers_of(self, position: int) -> MissingHeaders | None:
        """Return an archive's missing headers, or None if they are unknown."""
        shared = (shared.headers for shared in self.missing_headers if position in shared.archives)
        return next(shared, None)


class Features(OwnFile):
    """`features/<redist>/feature_<label>.json`: the contents of a manifest's archives."""

    redist: RedistName
    label: Label
    manifest_sha256: HexSha256 = Field(description="SHA-256 of the manifest")
    rules: Annotated[int, Field(gt=0)] = Field(
        description="Version of the rules that derived these features"
    )
    packages: dict[str, PackageFeatures]
