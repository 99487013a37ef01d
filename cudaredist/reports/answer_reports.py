"""Reports of diff, which and explain."""

from typing import Literal

from pydantic import Field

from cudaredist.reports.report import Answer, ArchiveName, ErrorReport, OutputFiles, Report
from cudaredist.reports.symbol_reports import SymbolHit
from cudaredist.schema.base import OutputName, OwnModel
from cudaredist.tables.explanation import Topic


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
    tables: tuple[Delta, ...] = Field(
        description="Changes in the compilers, GPUs, drivers and runfile of the CUDA release"
    )
    equal: int = Field(description="Packages without a change")
    notes: tuple[str, ...] = Field(default=(), description="Remarks on the comparison")
    exit_code: int = 0


class WhichHit(ArchiveName):
    """A file of an archive."""

    path: str
    output: OutputName


class OutsideProvider(OwnModel):
    """The provider of a library outside the redistributables, such as the driver."""

    owner: str
    provider: str | None = Field(description="The distribution's package, if known")
    reason: str


class WhichReport(Report):
    """The result of which."""

    command: Literal["which"] = "which"
    name: str
    hits: tuple[WhichHit, ...]
    outside: OutsideProvider | None = None
    symbol: str | None = Field(default=None, description="The symbol of --symbol")
    symbols: tuple[SymbolHit, ...] = Field(
        default=(), description="With --symbol, the releases that export each symbol"
    )
    unknown: int = Field(description="Number of archives with unknown files")
    suggestions: tuple[str, ...] = Field(
        default=(), description="Similar sonames, if no package provides the name"
    )
    hint: str | None = Field(
        default=None, description="Command to inspect the archives with unknown files"
    )


class ReleaseSpan(OwnModel):
    """The first and the newest local release with a coverage."""

    first: str
    newest: str
    gaps: tuple[str, ...] = Field(default=(), description="Local releases in between without it")


class ReleaseCoverage(OwnModel):
    """The coverage of one release."""

    release: str
    coverage: str = Field(description="The coverage as text")


class PackageCoverage(OwnModel):
    """The local releases of a package that run on a capability's GPUs."""

    capability: str
    redist: str
    package: str
    native: ReleaseSpan | None = Field(description="Releases with native code. Null: none")
    ptx: ReleaseSpan | None = Field(description="Releases with PTX only. Null: none")
    without: ReleaseCoverage | None = Field(
        description="The first release without coverage, newer than all with it. Null: none"
    )
    releases: int = Field(description="Local releases with device code")
    unknown: int = Field(description="Number of these releases with unknown coverage")


class ExplainReport(Report):
    """The result of explain."""

    command: Literal["explain"] = "explain"
    kind: Literal["nvcc", "gpu", "cuda"]
    asked: str
    topics: tuple[Topic, ...]
    coverage: tuple[PackageCoverage, ...] = Field(
        default=(), description="For gpu: the packages that run on it, from the feature files"
    )
    hint: str | None = Field(
        default=None, description="For gpu: the command to read device code, if none is known"
    )
    errors: tuple[ErrorReport, ...] = Field(
        default=(), description="For cuda: the manifests that cannot be read"
    )


class ExplainedArchive(ArchiveName):
    """An archive of a package, with its contents and dependencies."""

    is_examined: bool = Field(
        description="Whether a feature file describes it. If not, the fields below are empty"
    )
    outputs: dict[OutputName, OutputFiles] = Field(default={})
    sonames: tuple[str, ...] = ()
    architectures: tuple[str, ...] = Field(
        default=(), description="Architectures of its device code"
    )
    needed: tuple[str, ...] = Field(default=(), description="Libraries that its files require")
    opens: tuple[str, ...] = Field(
        default=(), description="Libraries that its files may open (a guess)"
    )
    depends: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Required libraries or headers, by their package in the release",
    )


class PackageReport(Answer):
    """The result of explain package."""

    command: Literal["explain"] = "explain"
    kind: Literal["package"] = "package"
    asked: str
    archives: tuple[ExplainedArchive, ...]
