"""The reports of explain."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.host_compilers import HostCompiler
from cudaredist.formats.names import Channel, Distribution, OutputName
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.packageset import Coverage, Diagnostic, Reason, SetDriver, Status
from cudaredist.formats.report import Answer, ArchiveName, ErrorReport, OutputFiles, Report
from cudaredist.tables.explanation import Topic


class ReleaseSpan(OwnModel):
    """The first and the newest local release with a coverage."""

    first: str
    newest: str
    since: str = Field(
        description="The first release as exactly as it is known, such as `12.3.2 or an earlier "
        "patch` if 12.3.1 was not examined"
    )
    until: str = Field(description="The newest release as exactly as it is known")
    gaps: tuple[str, ...] = Field(default=(), description="Local releases in between without it")


class ReleaseCoverage(OwnModel):
    """The coverage of one release."""

    release: str
    since: str = Field(description="The release as exactly as it is known, as in spans")
    coverage: str = Field(description="The coverage as text")


class PackageCoverage(OwnModel):
    """The local releases of a package that run on a capability's GPUs."""

    capability: str
    redist: str
    package: str
    cuda: int | None = Field(
        default=None,
        description="CUDA major of the builds. Null: the coverage does not depend on it",
    )
    any: ReleaseSpan | None = Field(
        default=None, description="Releases without device code, for every GPU. Null: none"
    )
    native: ReleaseSpan | None = Field(description="Releases with native code. Null: none")
    ptx: ReleaseSpan | None = Field(description="Releases with PTX only. Null: none")
    without: ReleaseCoverage | None = Field(
        description="The first release without coverage, newer than all with it. Null: none"
    )
    releases: int = Field(description="Local releases with device code")
    unknown: int = Field(description="Number of these releases with unknown coverage")


class NewestTogether(OwnModel):
    """The newest releases that run on a capability's GPUs together."""

    capability: str
    platform: str | None = Field(description="Null: no release of CUDA runs on them")
    releases: dict[str, str] = Field(description="Release by redistributable")
    statement: str = Field(description="The same in words")
    reasons: tuple[str, ...] = Field(
        default=(), description="Sentences about its code, and about archives not examined"
    )


class ExplainReport(Report):
    """The result of explain."""

    command: Literal["explain"] = "explain"
    kind: Literal["nvcc", "gpu", "cuda", "driver", "jetpack"]
    asked: str
    answer: str | None = Field(
        default=None,
        description="For driver, nvcc, cuda and jetpack: the answer, one line for each part",
    )
    newest: tuple[NewestTogether, ...] = Field(
        default=(), description="For gpu: CUDA, cuDNN, NCCL and cuTENSOR, from the feature files"
    )
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

    channel: Channel
    date: str | None = Field(description="Day of the release. Null: not in the manifest")
    relative_path: str = Field(description="Path below the product's folder or the package index")
    url: str | None = Field(default=None, description="Null: a wheel, or an unknown server")
    sha256: str | None = Field(description="Null: not in the manifest")
    is_examined: bool = Field(
        description="Whether a feature file describes it. If not, the fields below are empty"
    )
    is_by_wheel: bool = Field(
        default=False,
        description="Whether it was not examined, and `sonames` and `architectures` are those of "
        "the wheel of the same version",
    )
    license_text: str | None = Field(
        default=None,
        description="Policy's name for its license text. `unknown`: not in policy. Null: no text",
    )
    distribution: dict[str, Distribution] = Field(
        default={},
        description="Whether its license text lists a library as distributable, by path",
    )
    outputs: dict[OutputName, OutputFiles] = Field(default={})
    sonames: tuple[str, ...] = ()
    architectures: tuple[str, ...] = Field(
        default=(), description="Architectures of its device code"
    )
    glibc: str | None = Field(
        default=None, description="Lowest glibc that its files run with. Null: any, or unknown"
    )
    needed: tuple[str, ...] = Field(default=(), description="Libraries that its files require")
    opens: tuple[str, ...] = Field(
        default=(), description="Libraries that its files may open (a guess)"
    )
    depends: dict[str, tuple[str, ...]] = Field(
        default={}, description="Required libraries or headers, by their package in the release"
    )
    notes: tuple[str, ...] = Field(
        default=(), description="What is unusual in the archive, such as links to nothing"
    )


class PackageLicense(OwnModel):
    """The license of a package's newest release."""

    name: str | None = Field(description="Policy's name, else the manifest's. Null: unknown")
    redistributable: bool | None = Field(description="Null: unknown")
    reason: str | None = Field(description="Policy's reason. Null: policy does not know it")


class PackageClosure(OwnModel):
    """The size of a package's libraries and of all that they need, in one release."""

    channel: Channel
    redist: str
    release: str
    place: str = Field(description="Platform, with the variant if there is one")
    size: int = Field(description="Unpacked bytes of the outputs with libraries")
    packages: tuple[str, ...] = Field(description="Packages of the release that they need")
    opened_size: int = Field(description="Further bytes of packages that they may open (a guess)")
    opened_packages: tuple[str, ...] = Field(description="These packages")
    outside: tuple[str, ...] = Field(
        description="Libraries of other products that they need or may open, in no size"
    )


class PackageReport(Answer):
    """The result of explain package."""

    command: Literal["explain"] = "explain"
    kind: Literal["package"] = "package"
    asked: str
    channels: tuple[Channel, ...] = Field(description="Channels that were searched")
    other_packages: dict[Channel, tuple[str, ...]] = Field(
        default={},
        description="Packages of the product with this name, by channels without such a package",
    )
    archives: tuple[ExplainedArchive, ...] = Field(
        description="Under all names of the package, NVIDIA's archives before wheels"
    )
    licenses: tuple[PackageLicense, ...] = Field(
        default=(),
        description="Licenses of the newest releases of each channel, NVIDIA's archives first",
    )
    closure: PackageClosure | None = Field(
        default=None,
        description="Of the newest examined archive. Null: it has no libraries, or other archives "
        "of the release were not examined",
    )
    reasons: tuple[Reason, ...] = Field(
        default=(), description="Why package sets omit it on every platform"
    )
    vulnerabilities: tuple[PackageVulnerability, ...] = Field(
        default=(), description="Known vulnerabilities that affect a release, or may affect it"
    )


class ArchiveHistory(ArchiveName):
    """An archive of a package, with its changes since the previous release."""

    channel: Channel
    date: str | None = Field(description="Day of the release. Null: not in the manifest")
    is_examined: bool
    size: int | None = Field(description="Unpacked bytes. Null: unknown")
    device_code: dict[str, int] = Field(description="Decompressed bytes by architecture")
    architectures: tuple[str, ...]
    sonames: tuple[str, ...]
    symbols: int | None = Field(
        description="Number of names that its libraries export. Null: unknown"
    )
    added: int | None = Field(
        description="Number of added names. Null: unknown in this or the previous release, or no "
        "previous release"
    )
    removed: int | None = Field(description="Number of removed names. Null: as for `added`")
    license: str | None = Field(description="As the manifest states it")


class HistoryReport(Answer):
    """The result of explain package --history."""

    command: Literal["explain"] = "explain"
    kind: Literal["history"] = "history"
    asked: str
    archives: tuple[ArchiveHistory, ...] = Field(description="Oldest release first")


class SummarizedPackage(OwnModel):
    """An available package of a set."""

    package: str
    version: str
    redist: str
    outputs: tuple[OutputName, ...]
    size: dict[OutputName, int] = Field(
        description="Unpacked bytes by output. Empty: not inspected"
    )
    closure: int | None = Field(
        description="Unpacked bytes of its libraries and of all that they need or open. Null: "
        "unknown"
    )
    optional_closure: int | None = Field(
        description="Further bytes of libraries that they can do without. Null: unknown"
    )
    coverage: dict[str, Coverage] = Field(description="By capability")
    distribution: dict[str, Distribution] = Field(
        default={},
        description="Whether its license text lists a library as distributable, by path",
    )


class OutputTotal(OutputFiles):
    """The total of an output over all packages of a set."""

    output: OutputName


class MissingPackage(OwnModel):
    """An unavailable package of a set."""

    package: str
    status: Status
    reason: str


class SetSummary(Answer):
    """The result of explain set."""

    command: Literal["explain"] = "explain"
    kind: Literal["set"] = "set"
    asked: str
    attribute: str = Field(description="With the name or capabilities of the set, if it has any")
    cuda: str
    platform: str
    channel: str
    counts: dict[Status, int]
    capabilities: tuple[str, ...]
    host_compiler: HostCompiler
    driver: SetDriver | None
    packages: tuple[SummarizedPackage, ...]
    totals: tuple[OutputTotal, ...]
    library_bytes: int = Field(description="Bytes of all outputs, for packages with the output lib")
    library_lib_bytes: int = Field(description="Bytes of the output lib")
    missing: tuple[MissingPackage, ...]
    diagnostics: tuple[Diagnostic, ...]
    vulnerabilities: tuple[PackageVulnerability, ...] = Field(
        default=(), description="Known vulnerabilities that affect a package, or may affect it"
    )


class PackageInSet(Answer):
    """The result of explain set with a package."""

    command: Literal["explain"] = "explain"
    kind: Literal["package-of-set"] = "package-of-set"
    asked: str = Field(description="The file of the set")
    attribute: str = Field(description="With the name or capabilities of the set, if it has any")
    cuda: str
    platform: str
    channel: str
    package: str
    status: Status
    version: str | None
    redist: str | None = Field(description="Null: the package is only in policy")
    release: str | None
    archive: str | None = Field(description="Path of its archive. Null: not available")
    outputs: tuple[OutputName, ...]
    reasons: tuple[Reason, ...] = Field(description="Why it is not available. Empty: it is")
    platforms: tuple[str, ...] = Field(description="Platforms of the package in the release")
    depends: tuple[str, ...] = Field(description="Packages that it requires")
    closure: int | None = Field(
        description="Unpacked bytes of its libraries and of all that they need or open. Null: "
        "unknown, or not available"
    )
    coverage: dict[str, Coverage] = Field(description="By capability")
    distribution: dict[str, Distribution] = Field(
        default={},
        description="Whether its license text lists a library as distributable, by path",
    )
    diagnostics: tuple[Diagnostic, ...]


class ApiForm(OwnModel):
    """The declaration of a name in some releases."""

    signature: str
    symbol: str | None = Field(description="Of a function: its symbol in the library")
    is_deprecated: bool
    releases: str = Field(description="Labels and ranges, such as `12.0.1..12.9.1`")


class ApiMember(OwnModel):
    """A field of a struct, or an enumerator of an enum."""

    name: str
    signature: str = Field(description="In the newest release with it")
    releases: str = Field(description="Labels and ranges")


class ApiEntry(OwnModel):
    """A name that the headers of a product declare."""

    name: str
    kind: str = Field(description="`function`, `struct`, `field`, `enumerator`, `macro`, ...")
    parent: str | None = Field(description="The struct of a field, the enum of an enumerator")
    redist: str
    package: str
    header: str = Field(description="In the newest release with it, as in `#include`")
    libraries: tuple[str, ...] = Field(description="Of a function: the libraries that export it")
    added_in: str | None = Field(description="Null: all known releases before have it")
    deprecated_since: str | None
    deprecation: str | None = Field(description="The note of the header")
    removed_in: str | None
    forms: tuple[ApiForm, ...] = Field(description="Oldest first")
    members: tuple[ApiMember, ...] = ()


class ApiReport(Report):
    """The result of explain api."""

    command: Literal["explain"] = "explain"
    kind: Literal["api"] = "api"
    asked: str
    entries: tuple[ApiEntry, ...]
    exit_code: int
