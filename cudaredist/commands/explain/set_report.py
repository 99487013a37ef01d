"""The reports of explain set."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.coverage import Coverage
from cudaredist.formats.host_compilers import HostCompiler
from cudaredist.formats.names import Distribution, OutputName
from cudaredist.formats.output_files import OutputFiles
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.packageset import Diagnostic, SetDriver, Status
from cudaredist.formats.reason import Reason
from cudaredist.formats.report import Answer


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
