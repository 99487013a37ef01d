"""The reports of explain package."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.names import Channel, Distribution, OutputName
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.packageset import Reason
from cudaredist.formats.report import Answer, ArchiveName, OutputFiles


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
