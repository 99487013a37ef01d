"""The report of which."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field

from cudaredist.formats.names import Channel, Distribution, OutputName
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.plain_report import PlainArchive, PlainEntry, PlainReport


class SymbolLibrary(PlainEntry):
    """A library of a package that exports symbols."""

    library: str
    channel: Channel
    is_by_wheel: Annotated[
        bool,
        Field(
            description="Whether the wheel of the same version exports them, and the archive "
            "was not examined"
        ),
    ] = False
    redist: str
    package: str
    platform: str
    variant: str | None
    stub: Annotated[bool, Field(description="Only for linking")] = False


class ExaminedLibrary(SymbolLibrary):
    """A library with the releases whose symbols are known."""

    releases: tuple[str, ...]


class SymbolHit(SymbolLibrary):
    """One symbol of one library, and the releases of a package that export it."""

    symbol: str
    demangled: Annotated[str | None, Field(description="A readable form; absent: not asked")] = None
    version: Annotated[str, Field(description="`@@V` for a default version, else `@V`")] = ""
    project: Annotated[
        str | None, Field(description="Project of the last release's wheel; null: no wheel")
    ] = None
    first: str
    last: str
    since: Annotated[
        str,
        Field(
            description="The first release as exactly as it is known, such as `12.3.2 or an "
            "earlier patch` if 12.3.1 was not examined"
        ),
    ]
    until: Annotated[
        str, Field(description="The last release as exactly as it is known, for a removed symbol")
    ]
    releases: Annotated[str, Field(description="Labels and ranges of those that are local")]
    is_newest: Annotated[
        bool, Field(description="Whether the newest release with the library exports it")
    ]


class WhichHit(PlainArchive):
    """A file of an archive."""

    channel: Channel
    is_by_wheel: Annotated[
        bool,
        Field(
            description="Whether the wheel of the same version has it, and the archive was not "
            "examined"
        ),
    ] = False
    project: Annotated[str | None, Field(description="Project of its wheel; null: no wheel")] = None
    path: str
    output: Annotated[
        OutputName | None, Field(description="In package sets. Null: they omit the file")
    ]
    distribution: Annotated[
        Distribution | None,
        Field(
            description="Whether the license text in its archive lists it as distributable. Null: "
            "the archive was not examined"
        ),
    ] = None


class OutsideProvider(PlainEntry):
    """The provider of a library outside the redistributables, such as the driver."""

    owner: str
    provider: Annotated[str | None, Field(description="The distribution's package, if known")]
    reason: str
    library: Annotated[
        str | None, Field(description="With --symbol, the library that exports names like it")
    ] = None
    packages: Annotated[
        tuple[str, ...], Field(description="Packages with a copy of the library, for special cases")
    ] = ()


class WhichReport(PlainReport):
    """The result of which."""

    command: Literal["which"] = "which"
    name: str
    cuda: Annotated[str | None, Field(description="The CUDA release of --cuda")] = None
    searched: Annotated[
        dict[Channel, dict[str, tuple[str, ...]]],
        Field(
            description="Releases to search, by channel and redistributable",
            json_schema_extra={"default": {}},
        ),
    ] = field(default_factory=dict)
    hits: tuple[WhichHit, ...]
    is_beginning: Annotated[
        bool, Field(description="Whether no file has the name, and the hits begin with it")
    ] = False
    elsewhere: Annotated[
        tuple[str, ...],
        Field(description="Platforms with the file, if that of --platform has none"),
    ] = ()
    package: Annotated[
        tuple[str, ...],
        Field(description="Platforms of the package or project with this name, if no file has it"),
    ] = ()
    outside: OutsideProvider | None = None
    symbol: Annotated[str | None, Field(description="The symbol of --symbol")] = None
    symbols: Annotated[
        tuple[SymbolHit, ...],
        Field(description="With --symbol, the releases that export each symbol"),
    ] = ()
    examined: Annotated[
        tuple[ExaminedLibrary, ...], Field(description="The libraries of `symbols`, each once")
    ] = ()
    declaration: Annotated[
        str | None, Field(description="Of the symbol, in the newest headers with it. Null: unknown")
    ] = None
    unknown: Annotated[
        int,
        Field(
            description="Number of archives with unknown files, of the packages with hits if any"
        ),
    ]
    likely: Annotated[
        tuple[str, ...],
        Field(description="Packages that probably have the file, by policy, without hits"),
    ] = ()
    suggestions: Annotated[
        tuple[str, ...],
        Field(description="Similar names of libraries or symbols, if there are no hits"),
    ] = ()
    hint: Annotated[
        str | None, Field(description="Command to inspect the archives with unknown files")
    ] = None
    vulnerabilities: Annotated[
        tuple[PackageVulnerability, ...],
        Field(description="Known vulnerabilities of the packages with the file"),
    ] = ()
