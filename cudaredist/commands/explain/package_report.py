"""The reports of explain package."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field

from cudaredist.formats.names import Channel, Distribution, OutputName
from cudaredist.formats.output_files import OutputFiles
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.plain_report import PlainAnswer, PlainArchive, PlainEntry
from cudaredist.formats.reason import Reason


class ExplainedArchive(PlainArchive):
    """An archive of a package, with its contents and dependencies."""

    channel: Channel
    date: Annotated[str | None, Field(description="Day of the release. Null: not in the manifest")]
    relative_path: Annotated[
        str, Field(description="Path below the product's folder or the package index")
    ]
    url: Annotated[str | None, Field(description="Null: a wheel, or an unknown server")] = None
    sha256: Annotated[str | None, Field(description="Null: not in the manifest")]
    is_examined: Annotated[
        bool,
        Field(
            description="Whether a feature file describes it. If not, the fields below are empty"
        ),
    ]
    is_by_wheel: Annotated[
        bool,
        Field(
            description="Whether it was not examined, and `sonames` and `architectures` are "
            "those of the wheel of the same version"
        ),
    ] = False
    license_text: Annotated[
        str | None,
        Field(
            description="Policy's name for its license text. `unknown`: not in policy. Null: no "
            "text"
        ),
    ] = None
    distribution: Annotated[
        dict[str, Distribution],
        Field(
            description="Whether its license text lists a library as distributable, by path",
            json_schema_extra={"default": {}},
        ),
    ] = field(default_factory=dict)
    outputs: Annotated[dict[OutputName, OutputFiles], Field(json_schema_extra={"default": {}})] = (
        field(default_factory=dict)
    )
    sonames: tuple[str, ...] = ()
    architectures: Annotated[
        tuple[str, ...], Field(description="Architectures of its device code")
    ] = ()
    glibc: Annotated[
        str | None, Field(description="Lowest glibc that its files run with. Null: any, or unknown")
    ] = None
    needed: Annotated[tuple[str, ...], Field(description="Libraries that its files require")] = ()
    opens: Annotated[
        tuple[str, ...], Field(description="Libraries that its files may open (a guess)")
    ] = ()
    depends: Annotated[
        dict[str, tuple[str, ...]],
        Field(
            description="Required libraries or headers, by their package in the release",
            json_schema_extra={"default": {}},
        ),
    ] = field(default_factory=dict)
    notes: Annotated[
        tuple[str, ...],
        Field(description="What is unusual in the archive, such as links to nothing"),
    ] = ()


class PackageLicense(PlainEntry):
    """The license of a package's newest release."""

    name: Annotated[
        str | None, Field(description="Policy's name, else the manifest's. Null: unknown")
    ]
    redistributable: Annotated[bool | None, Field(description="Null: unknown")]
    reason: Annotated[
        str | None, Field(description="Policy's reason. Null: policy does not know it")
    ]


class PackageClosure(PlainEntry):
    """The size of a package's libraries and of all that they need, in one release."""

    channel: Channel
    redist: str
    release: str
    place: Annotated[str, Field(description="Platform, with the variant if there is one")]
    size: Annotated[int, Field(description="Unpacked bytes of the outputs with libraries")]
    packages: Annotated[
        tuple[str, ...], Field(description="Packages of the release that they need")
    ]
    opened_size: Annotated[
        int, Field(description="Further bytes of packages that they may open (a guess)")
    ]
    opened_packages: Annotated[tuple[str, ...], Field(description="These packages")]
    outside: Annotated[
        tuple[str, ...],
        Field(description="Libraries of other products that they need or may open, in no size"),
    ]


class PackageReport(PlainAnswer):
    """The result of explain package."""

    command: Literal["explain"] = "explain"
    kind: Literal["package"] = "package"
    asked: str
    channels: Annotated[tuple[Channel, ...], Field(description="Channels that were searched")]
    other_packages: Annotated[
        dict[Channel, tuple[str, ...]],
        Field(
            description="Packages of the product with this name, by channels without such a "
            "package",
            json_schema_extra={"default": {}},
        ),
    ] = field(default_factory=dict)
    archives: Annotated[
        tuple[ExplainedArchive, ...],
        Field(description="Under all names of the package, NVIDIA's archives before wheels"),
    ]
    licenses: Annotated[
        tuple[PackageLicense, ...],
        Field(
            description="Licenses of the newest releases of each channel, NVIDIA's archives first"
        ),
    ] = ()
    closure: Annotated[
        PackageClosure | None,
        Field(
            description="Of the newest examined archive. Null: it has no libraries, or other "
            "archives of the release were not examined"
        ),
    ] = None
    reasons: Annotated[
        tuple[Reason, ...], Field(description="Why package sets omit it on every platform")
    ] = ()
    vulnerabilities: Annotated[
        tuple[PackageVulnerability, ...],
        Field(description="Known vulnerabilities that affect a release, or may affect it"),
    ] = ()


class ArchiveHistory(PlainArchive):
    """An archive of a package, with its changes since the previous release."""

    channel: Channel
    date: Annotated[str | None, Field(description="Day of the release. Null: not in the manifest")]
    is_examined: bool
    size: Annotated[int | None, Field(description="Unpacked bytes. Null: unknown")]
    device_code: Annotated[dict[str, int], Field(description="Decompressed bytes by architecture")]
    architectures: tuple[str, ...]
    sonames: tuple[str, ...]
    symbols: Annotated[
        int | None, Field(description="Number of names that its libraries export. Null: unknown")
    ]
    added: Annotated[
        int | None,
        Field(
            description="Number of added names. Null: unknown in this or the previous release, or "
            "no previous release"
        ),
    ]
    removed: Annotated[
        int | None, Field(description="Number of removed names. Null: as for `added`")
    ]
    license: Annotated[str | None, Field(description="As the manifest states it")]


class HistoryReport(PlainAnswer):
    """The result of explain package --history."""

    command: Literal["explain"] = "explain"
    kind: Literal["history"] = "history"
    asked: str
    archives: Annotated[tuple[ArchiveHistory, ...], Field(description="Oldest release first")]
