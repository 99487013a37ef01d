"""Models of what was fetched and what archives provide: the lock and the feature files."""

from typing import Annotated, Literal

from pydantic import Field

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
    unread: tuple[str, ...] = optional(_UNREAD, ())


class Program(OwnModel):
    """One executable file that needs shared libraries."""

    path: str = Field(description="Path below the archive's top directory")
    output: OutputName
    needed: tuple[str, ...] = Field(description="DT_NEEDED, or the DLLs imported, in file order")
    runpath: tuple[str, ...] = Field(description="DT_RUNPATH, or else DT_RPATH, entry by entry")
    glibc: str | None = Field(description="Newest GLIBC_ version needed; null: none")
    libstdcxx: str | None = Field(description="Newest GLIBCXX_ version needed; null: none")
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
    notes: tuple[str, ...] = Field(description="Unsafe names, unknown things")


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


class PackageFeatures(OwnModel):
    """The archives of one package, sorted by platform and variant."""

    version: VersionText | None = Field(
        description="Null where an early manifest lists several: each archive then has its own"
    )
    archives: tuple[
        Annotated[ExaminedArchive | UnexaminedArchive, Field(discriminator="status")], ...
    ]


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
