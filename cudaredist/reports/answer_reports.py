"""Reports of the commands that answer questions: diff, which, explain."""

from typing import Literal

from pydantic import Field

from cudaredist.reports.report import Answer, ArchiveName, OutputFiles, Report
from cudaredist.schema.base import OutputName, OwnModel
from cudaredist.tables.explanation import Topic


class Delta(OwnModel):
    """One change: of one value to another, or names that came and went."""

    field: str
    places: tuple[str, ...] = Field(description="Platforms and variants; empty: the whole package")
    old: str | None = None
    new: str | None = None
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class PackageDelta(OwnModel):
    """What changed about one package."""

    package: str
    status: Literal["added", "gone", "changed"]
    origin: str | None = Field(
        default=None, description="Package of the other side that it was, or was part of"
    )
    parts: tuple[str, ...] = Field(
        default=(), description="Packages of one side only that are parts of this one"
    )
    deltas: tuple[Delta, ...] = ()


class Move(OwnModel):
    """Files that lie in another package than before, by their paths below the package's root."""

    old: str = Field(description="Package that had them")
    new: str = Field(description="Package that has them")
    equal: tuple[str, ...] = Field(description="Files whose path is the same")
    gone: tuple[str, ...] = Field(default=(), description="Old paths of those told by name")
    added: tuple[str, ...] = Field(default=(), description="New paths of those")


class DiffReport(Report):
    """The result of diff."""

    command: Literal["diff"] = "diff"
    old: str
    new: str
    packages: tuple[PackageDelta, ...]
    platforms: Delta | None = Field(
        description="Platforms and variants that one side alone has, of any package"
    )
    moves: tuple[Move, ...] = Field(
        default=(), description="Sorted by both packages; known where the cache knows the archives"
    )
    tables: tuple[Delta, ...] = Field(description="What the tables say of the CUDA release")
    equal: int = Field(description="Packages without a change")
    notes: tuple[str, ...] = Field(default=(), description="Remarks on the comparison")
    exit_code: int = 0


class WhichHit(ArchiveName):
    """One file of one archive."""

    path: str
    output: OutputName


class OutsideProvider(OwnModel):
    """The provider of a library that no redistributable contains, such as the driver."""

    owner: str
    provider: str | None = Field(description="The distribution's package, if it is known")
    reason: str


class WhichReport(Report):
    """The result of which."""

    command: Literal["which"] = "which"
    name: str
    hits: tuple[WhichHit, ...]
    outside: OutsideProvider | None = None
    unknown: int = Field(description="Archives of which not all files are known")
    suggestions: tuple[str, ...] = Field(
        default=(), description="Sonames like the name, if nothing provides it"
    )
    hint: str | None = Field(
        default=None, description="Command that reads the files of unknown archives"
    )


class ReleaseSpan(OwnModel):
    """The first and the newest local release with some coverage."""

    first: str
    newest: str
    gaps: tuple[str, ...] = Field(default=(), description="Local releases between them without it")


class ReleaseCoverage(OwnModel):
    """The coverage of one release."""

    release: str
    coverage: str = Field(description="In words")


class PackageCoverage(OwnModel):
    """The local releases of a package that run on the GPUs of a capability."""

    capability: str
    redist: str
    package: str
    native: ReleaseSpan | None = Field(description="Releases with native code; null: none")
    ptx: ReleaseSpan | None = Field(description="Releases with PTX only; null: none")
    without: ReleaseCoverage | None = Field(
        description="The first release without, newer than all that run; null: there is none"
    )
    releases: int = Field(description="Local releases with device code")
    unknown: int = Field(description="Those of them whose coverage is unknown")


class ExplainReport(Answer):
    """The result of explain."""

    command: Literal["explain"] = "explain"
    kind: Literal["nvcc", "gpu", "cuda"]
    asked: str
    topics: tuple[Topic, ...]
    coverage: tuple[PackageCoverage, ...] = Field(
        default=(), description="Of gpu: what runs on it, by the local feature files"
    )


class ExplainedArchive(ArchiveName):
    """One archive of a package, with what it provides and needs."""

    is_examined: bool = Field(description="Whether a feature file has it; all else is empty if not")
    outputs: dict[OutputName, OutputFiles] = Field(default={})
    sonames: tuple[str, ...] = ()
    architectures: tuple[str, ...] = Field(default=(), description="Of all its device code")
    needed: tuple[str, ...] = Field(default=(), description="Libraries that its files need")
    opens: tuple[str, ...] = Field(
        default=(), description="Libraries that its files may open: a guess"
    )
    depends: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Packages of the release with libraries or headers that it needs, and which",
    )


class PackageReport(Answer):
    """The result of explain package."""

    command: Literal["explain"] = "explain"
    kind: Literal["package"] = "package"
    asked: str
    archives: tuple[ExplainedArchive, ...]
