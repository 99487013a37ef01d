"""Models of what was fetched and what archives provide: the lock and the feature files."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from cudaredist.schema.base import (
    Count,
    HexSha256,
    Label,
    OutputName,
    OwnModel,
    SchemaVersion,
    VersionText,
    optional,
)

FileNames: TypeAlias = dict[OutputName, dict[str, str]]
"""The files of an archive: by output and folder their names, with a slash between each two."""
MissingHeaders: TypeAlias = dict[str, dict[str, str]]
"""By a header that an archive lacks, its own headers that include it, with the condition."""

_OPENS = (
    "Other libraries whose file names are strings in its data, sorted. It may open them at run "
    "time: a guess. Absent: none"
)
_UNREAD = "Fields that could not be read, and are empty for that; absent: none"


class LockEntry(OwnModel):
    """What was fetched under one label."""

    sha256: HexSha256 = Field(description="SHA-256 of the manifest's bytes as published")
    size: Annotated[int, Field(gt=0)] = Field(description="Number of those bytes")
    gone: bool = optional("Upstream no longer lists the label; absent while it does", default=False)


class Lock(OwnModel):
    """`manifests/lock.json`: what was fetched from upstream, to notice changes on either side."""

    schema_version: SchemaVersion
    redists: dict[str, dict[Label, LockEntry]] = Field(
        description="By name of the redistributable, then by label"
    )


class OutputSize(OwnModel):
    """How much of an archive one output takes."""

    files: Count = Field(description="Regular files, symbolic and hard links not counted")
    bytes: Count = Field(description="Their sizes together, unpacked")


class Library(OwnModel):
    """One shared library."""

    path: str = Field(description="Path below the archive's top directory")
    output: OutputName
    soname: str | None = Field(description="DT_SONAME, or a DLL's export name; null: it has none")
    links: tuple[str, ...] = Field(description="Links of the archive that lead to it, sorted")
    needed: tuple[str, ...] = Field(description="DT_NEEDED, or a DLL's imports, in file order")
    runpath: tuple[str, ...] = Field(description="DT_RUNPATH, or else DT_RPATH, entry by entry")
    stub: bool = Field(description="Stands in for a library of the driver while linking")
    glibc: str | None = Field(description="Newest GLIBC_ version needed; null: none")
    libstdcxx: str | None = Field(description="Newest GLIBCXX_ version needed; null: none")
    opens: tuple[str, ...] = optional(_OPENS, ())
    unread: tuple[str, ...] = optional(_UNREAD, ())


class Program(OwnModel):
    """One executable file that needs shared libraries, or may open some."""

    path: str = Field(description="Path below the archive's top directory")
    output: OutputName
    needed: tuple[str, ...] = Field(description="DT_NEEDED, or the DLLs imported, in file order")
    runpath: tuple[str, ...] = Field(description="DT_RUNPATH, or else DT_RPATH, entry by entry")
    glibc: str | None = Field(description="Newest GLIBC_ version needed; null: none")
    libstdcxx: str | None = Field(description="Newest GLIBCXX_ version needed; null: none")
    opens: tuple[str, ...] = optional(_OPENS, ())
    unread: tuple[str, ...] = optional(_UNREAD, ())


class CodeTargets(OwnModel):
    """Architectures that device code was built for, in natural order."""

    sass: tuple[str, ...] = Field(description="Machine code: sm_90a")
    ptx: tuple[str, ...] = Field(description="Portable code: compute_90")
    lto: tuple[str, ...] = Field(description="Intermediate code for link-time optimisation: lto_90")


class DeviceCode(OwnModel):
    """Device code of one directory of libraries."""

    declared: CodeTargets = Field(description="In the sections made for it, as cuobjdump sees it")
    embedded: CodeTargets = Field(description="In data sections, where the library loads it itself")


class FileCode(OwnModel):
    """Device code of one file: a library, shared or static, a program, or an object."""

    output: OutputName
    modules: dict[str, Count] = Field(
        description="Number of modules by the architectures of their images, such as "
        "`compute_90 sm_75 sm_90`; `sm_90*2`: two images. The driver loads one image of a module"
    )
    bytes: dict[str, Count] = Field(
        description="Bytes of the images in the file by architecture; 0 if they are compressed "
        "together with others"
    )
    unpacked: dict[str, Count] = Field(description="Bytes of the images once decompressed")


class ArchiveFeatures(OwnModel):
    """What one archive provides, whatever manifest names it."""

    machine: str | None = Field(
        description="The one machine of its binaries; null: it has none, or several (see notes)"
    )
    outputs: dict[OutputName, OutputSize]
    libraries: tuple[Library, ...] = Field(description="Shared libraries, sorted by path")
    programs: tuple[Program, ...] = Field(description="Executables that need any, sorted by path")
    device_code: dict[str, DeviceCode] = Field(description="By directory of libraries")
    code_by_file: dict[str, FileCode] | None = optional(
        "Files with device code, by path; absent in files of earlier rules: not known"
    )
    cuda_versions_in_lib: tuple[str, ...] = Field(description="Directories such as lib/12")
    unnested: dict[str, dict[OutputName, OutputSize]] = Field(
        description="By CUDA-versioned directory: the outputs once it took the place of lib"
    )
    python: tuple[str, ...] = Field(description="Python modules and wheels")
    license_files: dict[str, HexSha256] | None = optional(
        "SHA-256 of each license and notice, by path. Absent: unknown, as by earlier rules"
    )
    unlisted: Count = optional("Files whose names are left out, as there are too many", 0)
    unread_headers: Count = optional("Headers whose includes could not be read (see notes)", 0)
    notes: tuple[str, ...] = Field(description="Unsafe names, unknown things")


class WholeFeatures(ArchiveFeatures):
    """What one archive provides, with what its package's archives share in a feature file."""

    files: FileNames
    missing_headers: MissingHeaders


class ExaminedArchive(ArchiveFeatures):
    """What one archive provides, read from its bytes after hash and size were proved."""

    platform: str
    variant: str | None = Field(description="`cuda12` where the manifest nests, else null")
    version: VersionText | None = optional(
        "Only where an early manifest lists several versions of the package"
    )
    sha256: HexSha256 | None = Field(description="Null only where the manifest states none")
    status: Literal["examined"]
    verified: bool = optional(
        "False where no hash was there to check; absent otherwise", default=True
    )


class UnexaminedArchive(OwnModel):
    """An archive that was not looked into, and why."""

    platform: str
    variant: str | None
    version: VersionText | None = optional(None)
    sha256: HexSha256 | None
    status: Literal["not-examined"]
    reason: str = Field(min_length=1)


_POSITIONS = Field(description="Positions in `archives` of those that it is true of")


class SharedFiles(OwnModel):
    """The files of one output, for all archives in which they are the same."""

    archives: tuple[Count, ...] = _POSITIONS
    output: OutputName
    folders: dict[str, str] = Field(
        description="By folder, the names of its regular files, sorted, with a slash between each "
        "two. The folder of the archive's top directory is an empty string"
    )


class SharedHeaders(OwnModel):
    """The headers that others must provide, for all archives in which they are the same."""

    archives: tuple[Count, ...] = _POSITIONS
    headers: MissingHeaders = Field(
        description="What the archive's headers include and it does not contain, without the "
        "headers of C, C++ and POSIX. For each: headers that include it, with the condition, "
        "which is empty if there is none"
    )


class PackageFeatures(OwnModel):
    """The archives of one package, sorted by platform and variant."""

    version: VersionText | None = Field(
        description="Null where an early manifest lists several: each archive then has its own"
    )
    archives: tuple[
        Annotated[ExaminedArchive | UnexaminedArchive, Field(discriminator="status")], ...
    ]
    files: tuple[SharedFiles, ...] = optional(
        "All regular files. An archive without any here: unknown, as by earlier rules", ()
    )
    missing_headers: tuple[SharedHeaders, ...] = optional(
        "Headers that other packages must provide. An archive that is not here: unknown", ()
    )

    @model_validator(mode="after")
    def _check_positions(self) -> Self:
        positions = [shared.archives for shared in self.files]
        positions += [shared.archives for shared in self.missing_headers]
        if any(position >= len(self.archives) for each in positions for position in each):
            raise ValueError("a position that no archive has")
        return self

    def files_of(self, position: int) -> dict[str, OutputName] | None:
        """Return the files of an archive, each with its output; None if they are unknown."""
        shared = [entry for entry in self.files if position in entry.archives]
        found = {
            f"{folder}/{name}" if folder else name: entry.output
            for entry in shared
            for folder, names in entry.folders.items()
            for name in names.split("/")
        }
        return found if shared else None

    def missing_headers_of(self, position: int) -> MissingHeaders | None:
        """Return the headers that an archive lacks; None if they are unknown."""
        shared = (shared.headers for shared in self.missing_headers if position in shared.archives)
        return next(shared, None)


class Features(OwnModel):
    """`features/<redist>/feature_<label>.json`: what every archive of a manifest provides."""

    schema_version: SchemaVersion
    redist: str
    label: Label
    manifest_sha256: HexSha256 = Field(description="Of the manifest this was made from")
    rules: Annotated[int, Field(gt=0)] = Field(
        description="Number of the rules that led from the archives' bytes to these features"
    )
    packages: dict[str, PackageFeatures]
