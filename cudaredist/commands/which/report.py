"""The report of which."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.names import Channel, Distribution, OutputName
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.report import ArchiveName, Report


class SymbolLibrary(OwnModel):
    """A library of a package that exports symbols."""

    library: str
    channel: Channel
    is_by_wheel: bool = Field(
        default=False,
        description="Whether the wheel of the same version exports them, and the archive was not "
        "examined",
    )
    redist: str
    package: str
    platform: str
    variant: str | None
    stub: bool = Field(default=False, description="Only for linking")


class ExaminedLibrary(SymbolLibrary):
    """A library with the releases whose symbols are known."""

    releases: tuple[str, ...]


class SymbolHit(SymbolLibrary):
    """One symbol of one library, and the releases of a package that export it."""

    symbol: str
    demangled: str | None = Field(default=None, description="A readable form; absent: not asked")
    version: str = Field(default="", description="`@@V` for a default version, else `@V`")
    project: str | None = Field(
        default=None, description="Project of the last release's wheel; null: no wheel"
    )
    first: str
    last: str
    since: str = Field(
        description="The first release as exactly as it is known, such as `12.3.2 or an earlier "
        "patch` if 12.3.1 was not examined"
    )
    until: str = Field(
        description="The last release as exactly as it is known, for a removed symbol"
    )
    releases: str = Field(description="Labels and ranges of those that are local")
    is_newest: bool = Field(description="Whether the newest release with the library exports it")


class WhichHit(ArchiveName):
    """A file of an archive."""

    channel: Channel
    is_by_wheel: bool = Field(
        default=False,
        description="Whether the wheel of the same version has it, and the archive was not "
        "examined",
    )
    project: str | None = Field(default=None, description="Project of its wheel; null: no wheel")
    path: str
    output: OutputName | None = Field(description="In package sets. Null: they omit the file")
    distribution: Distribution | None = Field(
        default=None,
        description="Whether the license text in its archive lists it as distributable. Null: the "
        "archive was not examined",
    )


class OutsideProvider(OwnModel):
    """The provider of a library outside the redistributables, such as the driver."""

    owner: str
    provider: str | None = Field(description="The distribution's package, if known")
    reason: str
    library: str | None = Field(
        default=None, description="With --symbol, the library that exports names like it"
    )
    packages: tuple[str, ...] = Field(
        default=(), description="Packages with a copy of the library, for special cases"
    )


class WhichReport(Report):
    """The result of which."""

    command: Literal["which"] = "which"
    name: str
    cuda: str | None = Field(default=None, description="The CUDA release of --cuda")
    searched: dict[Channel, dict[str, tuple[str, ...]]] = Field(
        default={}, description="Releases to search, by channel and redistributable"
    )
    hits: tuple[WhichHit, ...]
    is_beginning: bool = Field(
        default=False, description="Whether no file has the name, and the hits begin with it"
    )
    elsewhere: tuple[str, ...] = Field(
        default=(), description="Platforms with the file, if that of --platform has none"
    )
    package: tuple[str, ...] = Field(
        default=(),
        description="Platforms of the package or project with this name, if no file has it",
    )
    outside: OutsideProvider | None = None
    symbol: str | None = Field(default=None, description="The symbol of --symbol")
    symbols: tuple[SymbolHit, ...] = Field(
        default=(), description="With --symbol, the releases that export each symbol"
    )
    examined: tuple[ExaminedLibrary, ...] = Field(
        default=(), description="The libraries of `symbols`, each once"
    )
    declaration: str | None = Field(
        default=None, description="Of the symbol, in the newest headers with it. Null: unknown"
    )
    unknown: int = Field(
        description="Number of archives with unknown files, of the packages with hits if any"
    )
    likely: tuple[str, ...] = Field(
        default=(), description="Packages that probably have the file, by policy, without hits"
    )
    suggestions: tuple[str, ...] = Field(
        default=(), description="Similar names of libraries or symbols, if there are no hits"
    )
    hint: str | None = Field(
        default=None, description="Command to inspect the archives with unknown files"
    )
    vulnerabilities: tuple[PackageVulnerability, ...] = Field(
        default=(), description="Known vulnerabilities of the packages with the file"
    )
