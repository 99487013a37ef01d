"""The report of diff."""

from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.package_vulnerability import CveId, VulnerabilityStateName
from cudaredist.formats.report import Report


class Delta(OwnModel):
    """A changed value, or added and removed names."""

    field: str
    places: tuple[str, ...] = Field(description="Platforms and variants. Empty: the whole package")
    old: str | None = None
    new: str | None = None
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class PackageDelta(OwnModel):
    """The changes of a package."""

    package: str
    status: Literal["added", "gone", "changed"]
    origin: str | None = Field(
        default=None, description="The package on the other side that contained it"
    )
    parts: tuple[str, ...] = Field(
        default=(), description="Packages on only one side that are parts of this one"
    )
    deltas: tuple[Delta, ...] = ()


class Move(OwnModel):
    """Files that moved to another package, by path below the package's root."""

    old: str = Field(description="The old package")
    new: str = Field(description="The new package")
    equal: tuple[str, ...] = Field(description="Files with the same path")
    gone: tuple[str, ...] = Field(
        default=(), description="Old paths of files that were matched by name"
    )
    added: tuple[str, ...] = Field(default=(), description="New paths of the same files")


FileStatus: TypeAlias = Literal["gone", "moved", "renamed", "added"]
FileKind: TypeAlias = Literal[
    "shared libraries",
    "development libraries",
    "static libraries",
    "headers",
    "programs",
    "pkg-config files",
    "CMake files",
    "other files",
]


class FileChange(OwnModel):
    """Files of one kind that vanished, moved or are new: one file, or all of a folder."""

    status: FileStatus = Field(description="renamed: to a name with other numbers")
    kind: FileKind = Field(description="By the name. Development libraries: *.so and *.lib")
    package: str = Field(description="The old package, or the new one of an added file")
    new_package: str | None = Field(default=None, description="If another package has the files")
    places: tuple[str, ...] = Field(default=(), description="Platforms and variants")
    old: str | None = Field(default=None, description="The old path, or folder with /**")
    new: str | None = Field(default=None, description="The new path, or folder with /**")
    files: int


class RunPathChange(OwnModel):
    """Libraries and programs of a package with another run path."""

    package: str
    places: tuple[str, ...] = Field(default=(), description="Platforms and variants")
    old: tuple[str, ...] = Field(description="The folders of the old run path. Empty: none")
    new: tuple[str, ...] = Field(description="The folders of the new run path. Empty: none")
    files: tuple[str, ...] = Field(description="Their new paths")


class VulnerabilityChange(OwnModel):
    """A known vulnerability whose state differs between the sides, for some packages."""

    cve: CveId
    score: float | None = Field(description="CVSS base score")
    components: tuple[str, ...] = Field(description="Parts of the toolkit that the bulletin names")
    packages: tuple[str, ...]
    old: VulnerabilityStateName | None = Field(description="Null: the packages are new")
    new: VulnerabilityStateName


ApiStatus: TypeAlias = Literal["removed", "changed", "deprecated", "added"]


class ApiChange(OwnModel):
    """A name in NVIDIA's headers that differs between two releases."""

    status: ApiStatus = Field(description="`deprecated`: only the new release deprecates it")
    kind: str = Field(description="`function`, `struct`, `field`, `enumerator`, `macro`, ...")
    name: str = Field(description="Of a field: `struct.field`")
    header: str
    package: str
    old: str | None = Field(description="Declaration in the old release")
    new: str | None = Field(description="Declaration in the new release")
    advice: str | None = Field(
        description="Of a changed function: what calls must pass. Of a deprecated name: the note"
    )


class ApiCount(OwnModel):
    """The number of names with a change."""

    status: ApiStatus
    kind: str = Field(description="As in changes. All types are `type`")
    count: int


class ApiDiffReport(Report):
    """The result of diff --api."""

    command: Literal["diff"] = "diff"
    old: str
    new: str
    counts: tuple[ApiCount, ...]
    changes: tuple[ApiChange, ...] = Field(
        description="Removed ones first, then by kind, header and name"
    )
    notes: tuple[str, ...] = Field(default=(), description="Remarks on the comparison")
    exit_code: int = 0


class DiffReport(Report):
    """The result of diff."""

    command: Literal["diff"] = "diff"
    old: str
    new: str
    packages: tuple[PackageDelta, ...]
    platforms: Delta | None = Field(
        description="Platforms and variants that only one side has, in any package"
    )
    moves: tuple[Move, ...] = Field(
        default=(), description="Sorted by both packages. Requires the archives' facts in the cache"
    )
    files: tuple[FileChange, ...] = Field(
        default=(), description="Requires feature files. Files of the same path are left out"
    )
    run_paths: tuple[RunPathChange, ...] = Field(default=(), description="Requires feature files")
    tables: tuple[Delta, ...] = Field(
        description="Changes in the compilers, GPUs, drivers and runfile of the CUDA release"
    )
    vulnerabilities: tuple[VulnerabilityChange, ...] = Field(
        default=(), description="Known vulnerabilities that the new side fixes or adds"
    )
    api: tuple[ApiCount, ...] = Field(
        default=(), description="Changed names in headers, of local releases. `diff --api` has them"
    )
    equal: int = Field(description="Packages without a change")
    notes: tuple[str, ...] = Field(default=(), description="Remarks on the comparison")
    exit_code: int = 0
