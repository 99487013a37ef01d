"""The report of diff."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.package_vulnerability import CveId, VulnerabilityStateName
from cudaredist.formats.plain_report import PlainEntry, PlainReport


class Delta(PlainEntry):
    """A changed value, or added and removed names."""

    field: str
    places: Annotated[
        tuple[str, ...], Field(description="Platforms and variants. Empty: the whole package")
    ]
    old: str | None = None
    new: str | None = None
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class PackageDelta(PlainEntry):
    """The changes of a package."""

    package: str
    status: Literal["added", "gone", "changed"]
    origin: Annotated[
        str | None, Field(description="The package on the other side that contained it")
    ] = None
    parts: Annotated[
        tuple[str, ...], Field(description="Packages on only one side that are parts of this one")
    ] = ()
    deltas: tuple[Delta, ...] = ()


class Move(PlainEntry):
    """Files that moved to another package, by path below the package's root."""

    old: Annotated[str, Field(description="The old package")]
    new: Annotated[str, Field(description="The new package")]
    equal: Annotated[tuple[str, ...], Field(description="Files with the same path")]
    gone: Annotated[
        tuple[str, ...], Field(description="Old paths of files that were matched by name")
    ] = ()
    added: Annotated[tuple[str, ...], Field(description="New paths of the same files")] = ()


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


class FileChange(PlainEntry):
    """Files of one kind that vanished, moved or are new: one file, or all of a folder."""

    status: Annotated[FileStatus, Field(description="renamed: to a name with other numbers")]
    kind: Annotated[
        FileKind, Field(description="By the name. Development libraries: *.so and *.lib")
    ]
    package: Annotated[str, Field(description="The old package, or the new one of an added file")]
    new_package: Annotated[str | None, Field(description="If another package has the files")] = None
    places: Annotated[tuple[str, ...], Field(description="Platforms and variants")] = ()
    old: Annotated[str | None, Field(description="The old path, or folder with /**")] = None
    new: Annotated[str | None, Field(description="The new path, or folder with /**")] = None
    files: int


class RunPathChange(PlainEntry):
    """Libraries and programs of a package with another run path."""

    package: str
    places: Annotated[tuple[str, ...], Field(description="Platforms and variants")] = ()
    old: Annotated[
        tuple[str, ...], Field(description="The folders of the old run path. Empty: none")
    ]
    new: Annotated[
        tuple[str, ...], Field(description="The folders of the new run path. Empty: none")
    ]
    files: Annotated[tuple[str, ...], Field(description="Their new paths")]


class VulnerabilityChange(PlainEntry):
    """A known vulnerability whose state differs between the sides, for some packages."""

    cve: CveId
    score: Annotated[float | None, Field(description="CVSS base score")]
    components: Annotated[
        tuple[str, ...], Field(description="Parts of the toolkit that the bulletin names")
    ]
    packages: tuple[str, ...]
    old: Annotated[VulnerabilityStateName | None, Field(description="Null: the packages are new")]
    new: VulnerabilityStateName


ApiStatus: TypeAlias = Literal["removed", "changed", "deprecated", "added"]


class ApiChange(PlainEntry):
    """A name in NVIDIA's headers that differs between two releases."""

    status: Annotated[
        ApiStatus, Field(description="`deprecated`: only the new release deprecates it")
    ]
    kind: Annotated[
        str, Field(description="`function`, `struct`, `field`, `enumerator`, `macro`, ...")
    ]
    name: Annotated[str, Field(description="Of a field: `struct.field`")]
    header: str
    package: str
    old: Annotated[str | None, Field(description="Declaration in the old release")]
    new: Annotated[str | None, Field(description="Declaration in the new release")]
    advice: Annotated[
        str | None,
        Field(
            description="Of a changed function: what calls must pass. Of a deprecated name: the "
            "note"
        ),
    ]


class ApiCount(PlainEntry):
    """The number of names with a change."""

    status: ApiStatus
    kind: Annotated[str, Field(description="As in changes. All types are `type`")]
    count: int


class ApiDiffReport(PlainReport):
    """The result of diff --api."""

    command: Literal["diff"] = "diff"
    old: str
    new: str
    counts: tuple[ApiCount, ...]
    changes: Annotated[
        tuple[ApiChange, ...],
        Field(description="Removed ones first, then by kind, header and name"),
    ]
    notes: Annotated[tuple[str, ...], Field(description="Remarks on the comparison")] = ()
    exit_code: int = 0


class DiffReport(PlainReport):
    """The result of diff."""

    command: Literal["diff"] = "diff"
    old: str
    new: str
    packages: tuple[PackageDelta, ...]
    platforms: Annotated[
        Delta | None,
        Field(description="Platforms and variants that only one side has, in any package"),
    ]
    moves: Annotated[
        tuple[Move, ...],
        Field(description="Sorted by both packages. Requires the archives' facts in the cache"),
    ] = ()
    files: Annotated[
        tuple[FileChange, ...],
        Field(description="Requires feature files. Files of the same path are left out"),
    ] = ()
    run_paths: Annotated[
        tuple[RunPathChange, ...], Field(description="Requires feature files")
    ] = ()
    tables: Annotated[
        tuple[Delta, ...],
        Field(
            description="Changes in the compilers, GPUs, drivers and runfile of the CUDA release"
        ),
    ]
    vulnerabilities: Annotated[
        tuple[VulnerabilityChange, ...],
        Field(description="Known vulnerabilities that the new side fixes or adds"),
    ] = ()
    api: Annotated[
        tuple[ApiCount, ...],
        Field(description="Changed names in headers, of local releases. `diff --api` has them"),
    ] = ()
    equal: Annotated[int, Field(description="Packages without a change")]
    notes: Annotated[tuple[str, ...], Field(description="Remarks on the comparison")] = ()
    exit_code: int = 0
