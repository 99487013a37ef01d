"""The pages of the web site as values: the JSON next to each page."""

from typing import Literal

from pydantic import Field

from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.explain.package_report import ArchiveHistory, ExplainedArchive
from cudaredist.commands.explain.report import NewestTogether, PackageCoverage
from cudaredist.commands.explain.set_report import SetSummary
from cudaredist.formats.base import OwnModel
from cudaredist.formats.jetpack import JetPackPolicy
from cudaredist.formats.names import Channel, OutputName
from cudaredist.formats.report import ReleaseName
from cudaredist.formats.tables import (
    CapabilityEntry,
    CompilerRange,
    CompilerVerdict,
    GlibcBound,
    NvccRelease,
)
from cudaredist.tables.explanation import Topic


class SitePage(OwnModel):
    """A page. Its `index.json` also has the channel."""

    schema_version: Literal[1] = 1
    kind: str
    title: str


class ReleaseArchive(OwnModel):
    """One archive of a release, as pages list it."""

    platform: str
    variant: str | None
    size: int | None = Field(description="Bytes of the archive; null: unknown")
    unpacked: int | None = Field(description="Bytes of its files; null: not examined")
    file: str = Field(description="Name of the archive or wheel")
    sha256: str | None = Field(description="Null: not in the manifest")
    address: str | None = Field(description="Null: unknown, as for wheels")
    outputs: tuple[OutputName, ...] = Field(description="Empty: not examined")


class PlatformTotal(OwnModel):
    """All archives of a release for one platform."""

    platform: str
    packages: int
    size: int | None = Field(description="Bytes of the archives; null: unknown for some")
    unpacked: int | None = Field(description="Bytes of their files; null: unknown for some")


class NamedPackage(OwnModel):
    """The name, version and license of a package."""

    package: str
    title: str | None
    version: str
    license: str | None = Field(description="One name for all spellings in manifests. Null: none")


class ReleasePackage(NamedPackage):
    """One package of a release."""

    archives: tuple[ReleaseArchive, ...]
    architectures: tuple[str, ...] = Field(description="Of its device code, on all platforms")


class ReleaseSummary(ReleaseName):
    """One release in a list."""

    date: str | None
    platforms: tuple[PlatformTotal, ...]


class ChangedLibrary(OwnModel):
    """Symbols that a library no longer exports, and new ones."""

    package: str
    library: str
    places: tuple[str, ...] = Field(description="Platforms, with variants")
    removed: int
    added: int
    removed_names: tuple[str, ...] = Field(description="Without C++ names, at most 200")
    added_names: tuple[str, ...] = Field(description="Without C++ names, at most 200")


class CudaSummary(OwnModel):
    """A release of CUDA, and the systems that it fits."""

    release: str
    date: str | None
    linux: str | None = Field(description="Its lowest driver; null: unknown")
    windows: str | None = Field(description="Its lowest driver; null: unknown")
    gcc: CompilerRange | CompilerVerdict | None = Field(description="Null: no table")
    glibc: GlibcBound | None = Field(description="The newest one. Null: unknown")
    gpus: tuple[str, ...] = Field(description="Supported capabilities without a letter")
    newest: dict[str, str] = Field(description="The newest usable releases by product")
    dropped: tuple[str, ...] = Field(description="GPUs and platforms of the previous release")


class OfProductPage(SitePage):
    """A page of a product."""

    redist: str
    product: str


class ReleasePage(OfProductPage):
    """One release of a product."""

    kind: Literal["release"] = "release"
    summary: ReleaseSummary
    previous: str | None
    next: str | None
    packages: tuple[ReleasePackage, ...]
    topics: tuple[Topic, ...] = Field(description="Host compilers, GPUs and drivers; of CUDA only")
    about: CudaSummary | None = Field(description="Drivers, GCC and GPUs; of CUDA only")
    notes: str | None = Field(description="Address of NVIDIA's release notes; null: unknown")
    changes: DiffReport | None = Field(description="Since the previous release; null: none before")
    exports: tuple[ChangedLibrary, ...] | None = Field(description="Null: none before, or unknown")
    unknown_exports: tuple[str, ...] = Field(description="Packages with unknown symbols")


class ProductPage(OfProductPage):
    """All releases of a product, the newest first."""

    kind: Literal["product"] = "product"
    platforms: tuple[str, ...]
    releases: tuple[ReleaseSummary, ...]


class ComparePage(OfProductPage):
    """Two releases of a product side by side. A script has their facts."""

    kind: Literal["compare"] = "compare"
    releases: tuple[str, ...] = Field(description="The newest first")


class ProductSummary(OwnModel):
    """One product in a list."""

    redist: str
    product: str
    releases: int
    oldest: str
    newest: str
    packages: int


class StartPage(SitePage):
    """The start page."""

    kind: Literal["start"] = "start"
    cuda: tuple[CudaSummary, ...]
    names: tuple[str, ...] = Field(description="Names of GPUs")
    products: tuple[ProductSummary, ...]
    packages: int
    files: int
    capabilities: int
    unexamined: int = Field(description="Archives without features")


class Span(OwnModel):
    """Releases with a name, from the first to the newest."""

    redist: str
    first: str
    newest: str
    releases: int


class SonameSpan(Span):
    """A soname and its releases."""

    soname: str
    platforms: tuple[str, ...]


class PackageRelease(ReleaseName):
    """One release of a package."""

    version: str
    date: str | None
    archives: tuple[ReleaseArchive, ...]
    sonames: tuple[str, ...]


class PlatformCode(OwnModel):
    """The device code of a package on one platform."""

    platform: str
    variant: str | None
    sizes: dict[str, int] = Field(description="Decompressed bytes by architecture")


class PackageSummary(NamedPackage):
    """One package in a list."""

    spans: tuple[Span, ...]
    platforms: tuple[str, ...] = Field(description="Of its newest release")
    projects: tuple[str, ...] = Field(
        description="Projects of its wheels, the newest first. Empty: no wheels"
    )


class PackagePage(SitePage):
    """One package."""

    kind: Literal["package"] = "package"
    summary: PackageSummary
    platforms: tuple[str, ...] = Field(description="Of all releases")
    releases: tuple[PackageRelease, ...] = Field(description="The newest first")
    history: tuple[ArchiveHistory, ...] = Field(description="Oldest release first")
    sonames: tuple[SonameSpan, ...]
    newest: tuple[ExplainedArchive, ...] = Field(description="The archives of its newest release")
    device_code: tuple[PlatformCode, ...] = Field(description="Of its newest release")
    coverage: tuple[PackageCoverage, ...]
    files: int | None = Field(description="Known file paths; null: unknown")


class PackagesPage(SitePage):
    """All packages."""

    kind: Literal["packages"] = "packages"
    packages: tuple[PackageSummary, ...]


class OtherPackage(NamedPackage):
    """A package of the other kind, with the archives of its newest release."""

    date: str | None
    span: Span
    archives: tuple[ReleaseArchive, ...]


class OtherKindPage(SitePage):
    """The packages of the other kind, from manifests alone."""

    kind: Literal["other"] = "other"
    of_channel: Channel
    packages: tuple[OtherPackage, ...]


class FileSpan(Span):
    """A file of a package, and its releases."""

    name: str
    output: OutputName
    platforms: tuple[str, ...]


class FilesPage(SitePage):
    """The files of a package by folder."""

    kind: Literal["files"] = "files"
    package: str
    spans: tuple[Span, ...]
    platforms: tuple[str, ...]
    folders: dict[str, tuple[FileSpan, ...]]


class SetPage(SitePage):
    """One package set."""

    kind: Literal["set"] = "set"
    others: tuple[str, ...] = Field(description="Other platforms with a set of this attribute")
    summary: SetSummary
    depends: dict[str, tuple[str, ...]] = Field(description="Direct dependencies by package")
    optional: dict[str, tuple[str, ...]] = Field(
        description="Those that a package opens at run time and can do without"
    )


class SetsPage(SitePage):
    """All package sets of the site."""

    kind: Literal["sets"] = "sets"
    sets: tuple[SetSummary, ...]


class GpuPage(SitePage):
    """One compute capability."""

    kind: Literal["gpu"] = "gpu"
    capability: str
    entry: CapabilityEntry
    topic: Topic
    newest: NewestTogether | None = Field(description="CUDA and libraries; null: unknown")
    drivers: str | None = Field(description="The lowest for its newest CUDA; null: unknown")
    coverage: tuple[PackageCoverage, ...]


class GpusPage(SitePage):
    """All compute capabilities."""

    kind: Literal["gpus"] = "gpus"
    capabilities: dict[str, CapabilityEntry] | None = Field(description="Null: no table")
    jetpack: JetPackPolicy = Field(description="Releases of JetPack, and compat packages for them")


class CompilersPage(SitePage):
    """The host compilers that each CUDA release accepts."""

    kind: Literal["compilers"] = "compilers"
    compilers: tuple[str, ...]
    releases: dict[str, NvccRelease] | None = Field(description="Null: no table")


class SearchPage(SitePage):
    """The search."""

    kind: Literal["search"] = "search"
    counts: dict[str, int] = Field(description="Entries of the index by kind")
    libraries: int = Field(description="Libraries with known symbols")
    unknown_libraries: tuple[str, ...] = Field(
        description="Libraries with a release whose symbols are unknown"
    )
