"""What commands answer with: values that every output format is made from.

`--json` prints them as they are, `schema_version` first.
"""

from typing import Literal

from pydantic import Field

from cudaredist.schema import Diagnostic, HostCompiler, OutputName, OutputSize, OwnModel, Status
from cudaredist.tables.answers import Topic

ManifestStatus = Literal["written", "would-write", "unchanged", "failed"]


class ErrorReport(OwnModel):
    """An error as data."""

    kind: str
    message: str
    reason: str = Field(description="The message without the place, equal for equal failures")
    hint: str | None = None
    changes: tuple[str, ...] = ()
    exit_code: int


class ManifestOutcome(OwnModel):
    """What became of one manifest."""

    redist: str
    label: str
    status: ManifestStatus
    source: str | None = Field(description="The source that answered; null: none did")
    size: int | None = None
    sha256: str | None = None
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None


class RedistOutcome(OwnModel):
    """What became of one redistributable: listed, absent or failed."""

    redist: str
    status: Literal["listed", "absent", "failed"]
    source: str | None
    newest: str | None = None
    listed: int = 0
    gone: tuple[str, ...] = ()
    error: ErrorReport | None = None


class DownloadReport(OwnModel):
    """The result of download-manifests."""

    schema_version: Literal[1] = 1
    command: Literal["download-manifests"] = "download-manifests"
    redists: tuple[RedistOutcome, ...]
    manifests: tuple[ManifestOutcome, ...]
    is_lock_changed: bool = Field(
        description="Whether the lock's records changed, or would have where nothing was written"
    )
    errors: tuple[ErrorReport, ...] = Field(description="What failed besides single items")
    exit_code: int


FindingKind = Literal[
    "stale",
    "missing-file",
    "unrecorded",
    "gone",
    "platform-lost",
    "no-features",
    "stale-features",
    "orphan-features",
    "unknown-redist",
    "table-missing",
    "table-lacks",
    "not-canonical",
    "nothing-held",
    "absent",
    "unreachable",
    "unreadable",
    "changed-upstream",
    "edited-locally",
    "invalid",
]


class Finding(OwnModel):
    """One thing that is not as it should be, or that a maintainer should know."""

    kind: FindingKind
    exit_code: int = Field(description="What this alone makes the command exit with; 0 is a note")
    redist: str | None
    label: str | None
    path: str | None = Field(description="File below the data folder that it is about")
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()


LineStatus = Literal["current", "stale", "new", "not-held", "local-only", "unknown"]


class LineReport(OwnModel):
    """One release line of one redistributable, held against upstream."""

    redist: str
    line: str
    held: str | None = Field(description="Newest label held; null: none")
    upstream: str | None = Field(description="Newest label listed; null: none, or not asked")
    missing: tuple[str, ...] = Field(description="Labels listed, newer than the newest held")
    status: LineStatus

    @property
    def is_behind(self) -> bool:
        """Whether upstream has a release of it that a maintainer would want."""
        return self.status in {"stale", "new"}


class CheckReport(OwnModel):
    """The result of check."""

    schema_version: Literal[1] = 1
    command: Literal["check"] = "check"
    offline: bool
    sources: dict[str, str] = Field(description="Which source answered, by redistributable")
    lines: tuple[LineReport, ...]
    findings: tuple[Finding, ...]
    exit_code: int


class FileVerdict(OwnModel):
    """What validate found in one file."""

    file: str
    kind: str | None = Field(description="`manifest`, or the name of one of our schemas")
    valid: bool
    summary: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = Field(
        default=(), description="Invariants of a package set that were not checked in full, and why"
    )
    exit_code: int


class ValidateReport(OwnModel):
    """The result of validate."""

    schema_version: Literal[1] = 1
    command: Literal["validate"] = "validate"
    files: tuple[FileVerdict, ...]
    exit_code: int


ArchiveStatus = Literal["examined", "known", "would-examine", "failed", "skipped"]


class ArchivePlace(OwnModel):
    """Where one archive stands in the manifests."""

    redist: str
    label: str
    package: str
    version: str
    platform: str
    variant: str | None
    size: int | None = Field(description="Bytes; null: the manifest does not say")


class ArchiveOutcome(ArchivePlace):
    """What became of one archive of one manifest."""

    sha256: str | None
    status: ArchiveStatus = Field(
        description="examined: fetched and read now; known: from the cache or the feature file"
    )
    reason: str | None = Field(default=None, description="Why it was skipped")
    error: ErrorReport | None = None


class FeatureOutcome(OwnModel):
    """What became of one manifest's feature file."""

    redist: str
    label: str
    status: ManifestStatus
    archives: int = Field(description="Archives the manifest names")
    examined: int = Field(description="Of those, how many the feature file describes")
    failed: int = 0
    skipped: int = Field(default=0, description="Left out by a choice of this run")
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None


class ProcessReport(OwnModel):
    """The result of process-manifests."""

    schema_version: Literal[1] = 1
    command: Literal["process-manifests"] = "process-manifests"
    manifests: tuple[FeatureOutcome, ...]
    archives: tuple[ArchiveOutcome, ...]
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")
    exit_code: int


class PeekedArchive(ArchivePlace):
    """What the names in one zip archive tell, which nothing was proved of."""

    fetched: int = Field(description="Bytes that were read to know")
    verified: Literal[False] = False
    outputs: dict[OutputName, OutputSize] | None = Field(description="Null: see the error")
    error: ErrorReport | None = None


class PeekReport(OwnModel):
    """The result of process-manifests --peek."""

    schema_version: Literal[1] = 1
    command: Literal["process-manifests --peek"] = "process-manifests --peek"
    manifests: tuple[FeatureOutcome, ...] = Field(description="Those that could not be read")
    archives: tuple[PeekedArchive, ...]
    left_out: int = Field(description="Archives that are no zip, which cannot be peeked into")
    exit_code: int


ReleaseStatus = Literal["read", "known", "stands", "held-back", "failed"]


class ReleaseOutcome(OwnModel):
    """What became of one CUDA release in a run of update-nvcc-compat or update-gpus."""

    label: str
    status: ReleaseStatus = Field(
        description="read: from an archive now; known: from the cache or the table; stands: the "
        "table has it from the redist channel; held-back: its bounds changed or go down, and the "
        "table keeps what it has of it, or goes without it"
    )
    package: str | None = Field(default=None, description="Whose archive it was found in")
    archive_sha256: str | None = None
    error: ErrorReport | None = None


class TableFinding(OwnModel):
    """Something about a table that a maintainer has to look at."""

    kind: Literal[
        "goes-down",
        "changed",
        "overlay-lacks",
        "family-differs",
        "patches-differ",
        "gone-in-between",
    ]
    about: str = Field(description="The CUDA release or the capability")
    message: str


class TableReport(OwnModel):
    """The result of update-nvcc-compat and of update-gpus."""

    schema_version: Literal[1] = 1
    command: Literal["update-nvcc-compat", "update-gpus"]
    table: str = Field(description="The table's name below the data folder")
    status: ManifestStatus
    releases: tuple[ReleaseOutcome, ...]
    findings: tuple[TableFinding, ...]
    held_back: tuple[str, ...] = Field(
        default=(),
        description="Releases whose bounds changed or go down, which --accept-changed takes",
    )
    diff: tuple[str, ...] = Field(description="What changes in the table, as unified diff")
    archives_read: int
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")
    exit_code: int


class SetOutcome(OwnModel):
    """What became of one package set."""

    cuda: str
    platform: str
    status: ManifestStatus
    path: str | None = Field(description="Below the output folder; null: none was made")
    bytes: int
    counts: dict[Status, int] = Field(description="Packages by status, other names not counted")
    diagnostics: tuple[Diagnostic, ...] = ()
    error: ErrorReport | None = None
    exit_code: int


class BuildReport(OwnModel):
    """The result of build."""

    schema_version: Literal[1] = 1
    command: Literal["build"] = "build"
    output: str
    sets: tuple[SetOutcome, ...]
    index: ManifestStatus | None = Field(default=None, description="Null: one file has no index")
    exit_code: int


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

    name: str
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


class DiffReport(OwnModel):
    """The result of diff."""

    schema_version: Literal[1] = 1
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
    exit_code: int = 0


class SummarizedPackage(OwnModel):
    """One available package of a set."""

    name: str
    version: str
    redist: str
    outputs: tuple[OutputName, ...]
    bytes: dict[OutputName, int] = Field(description="Unpacked; empty: not examined")


class OutputTotal(OwnModel):
    """One output of all packages of a set together."""

    output: OutputName
    files: int
    bytes: int


class MissingPackage(OwnModel):
    """A package that a set does not have."""

    name: str
    status: Status
    reason: str


class SetSummary(OwnModel):
    """The result of explain set."""

    schema_version: Literal[1] = 1
    command: Literal["explain"] = "explain"
    kind: Literal["set"] = "set"
    asked: str
    attribute: str
    cuda: str
    platform: str
    channel: str
    counts: dict[Status, int]
    capabilities: tuple[str, ...]
    host_compiler: HostCompiler
    packages: tuple[SummarizedPackage, ...]
    totals: tuple[OutputTotal, ...]
    library_bytes: int = Field(description="All outputs of packages with an output lib")
    library_lib_bytes: int = Field(description="Their outputs lib alone")
    missing: tuple[MissingPackage, ...]
    diagnostics: tuple[Diagnostic, ...]


class WhichHit(OwnModel):
    """One file of one archive."""

    redist: str
    label: str
    package: str
    version: str
    platform: str
    variant: str | None
    path: str
    output: OutputName


class WhichReport(OwnModel):
    """The result of which."""

    schema_version: Literal[1] = 1
    command: Literal["which"] = "which"
    name: str
    hits: tuple[WhichHit, ...]
    unknown: int = Field(description="Archives of which only libraries and programs are known")
    exit_code: int


class VersionsReport(OwnModel):
    """The result of versions."""

    schema_version: Literal[1] = 1
    command: Literal["versions"] = "versions"
    lines: tuple[LineReport, ...]
    releases: dict[str, tuple[str, ...]] = Field(
        description="Upstream, or offline those held; oldest first; absent: not known"
    )
    absent: tuple[str, ...] = Field(default=(), description="Redistributables no source has")
    errors: tuple[ErrorReport, ...] = ()
    exit_code: int


class BumpedRelease(OwnModel):
    """One release that a bump brings, or would bring, into a data folder."""

    redist: str
    old: str | None = Field(
        description="Newest label held before, of its line if any; null: none before it"
    )
    new: str
    status: Literal["bumped", "would-bump", "incomplete", "failed"] = Field(
        description="incomplete: its manifest is held, and something of it failed"
    )
    files: tuple[str, ...] = Field(default=(), description="Its files, below the data folder")
    diff: DiffReport | None = Field(default=None, description="Null: there is none before it")


class BumpedSet(OwnModel):
    """One package set, built anew from the data and judged."""

    cuda: str
    platform: str
    counts: dict[Status, int]
    path: str | None = Field(description="Where it was written; null: it was not")
    problems: tuple[str, ...] = Field(description="Invariants that it breaks, and what failed")
    warnings: tuple[str, ...] = ()
    exit_code: int


class BumpReport(OwnModel):
    """The result of bump."""

    schema_version: Literal[1] = 1
    command: Literal["bump"] = "bump"
    releases: tuple[BumpedRelease, ...]
    errors: tuple[ErrorReport, ...] = Field(description="Everything that failed, of all stages")
    findings: tuple[str, ...] = Field(
        default=(), description="What a maintainer has to look at, besides the package sets"
    )
    features: tuple[FeatureOutcome, ...] = ()
    tables: tuple[TableReport, ...] = ()
    sets: tuple[BumpedSet, ...] = ()
    fetched_bytes: int = Field(default=0, description="Bytes of archives, read from a source")
    exit_code: int


class ExportedFile(OwnModel):
    """One file of an export."""

    path: str
    status: ManifestStatus
    bytes: int
    sha256: str


class ExportReport(OwnModel):
    """The result of export."""

    schema_version: Literal[1] = 1
    command: Literal["export"] = "export"
    format: str
    files: tuple[ExportedFile, ...]
    exit_code: int


class ToolkitReport(OwnModel):
    """The result of materialize."""

    schema_version: Literal[1] = 1
    command: Literal["materialize"] = "materialize"
    root: str
    status: Literal["written", "unchanged", "verified", "altered", "removed"]
    cuda: str | None = Field(description="Null: nothing was laid out yet")
    platform: str | None
    layout: Literal["merged", "split"] | None
    packages: tuple[str, ...]
    files: int
    bytes: int
    fetched_bytes: int = Field(description="Of the network; what was at hand does not count")
    problems: tuple[str, ...] = Field(description="Files and links that are not as laid out")
    foreign: tuple[str, ...] = Field(description="Files in the root that are not ours")
    exit_code: int


class ExplainReport(OwnModel):
    """The result of explain."""

    schema_version: Literal[1] = 1
    command: Literal["explain"] = "explain"
    kind: Literal["nvcc", "gpu", "cuda"]
    asked: str
    topics: tuple[Topic, ...]
