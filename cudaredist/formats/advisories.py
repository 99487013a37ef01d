"""Models of the known vulnerabilities, and of the decisions about them."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.base import OwnFile, OwnModel, Reasoned, optional
from cudaredist.formats.field_types import HexSha256, Label, VersionText
from cudaredist.formats.names import RedistName
from cudaredist.formats.package_vulnerability import BulletinId, CveId

System: TypeAlias = Literal["linux", "windows"]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Stated = Annotated[
    str, Field(min_length=1, max_length=300, description="Text of the document, unchanged")
]


class Bulletin(OwnModel):
    """A bulletin, as a document of a certain version."""

    year: Annotated[str, Field(pattern="^[0-9]{4}$")]
    released: Day
    changed: Day
    version: Annotated[str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9}){0,3}$")]
    sha256: HexSha256
    url: str = Field(description="NVIDIA's page")
    unmapped: tuple[Stated, ...] = Field(default=(), description="Other products, as stated")


class StatedVersions(OwnModel):
    """Versions of products that a bulletin states for a vulnerability."""

    products: tuple[Stated, ...]
    platform: Stated
    affected: tuple[Stated, ...]
    fixed: tuple[Stated, ...]


class ComponentMention(OwnModel):
    """A component's name in the description of a vulnerability."""

    component: str = Field(description="Name in the policy")
    text: Stated = Field(description="Its spelling in the document")
    field: str = Field(description="Key of the text in the document")


class Vulnerability(OwnModel):
    """A vulnerability, as one bulletin states it."""

    cve: CveId
    bulletin: BulletinId
    score: float | None = Field(description="CVSS base score")
    vector: str | None = Field(description="CVSS vector")
    cwe: Annotated[str, Field(pattern="^CWE-[0-9]{1,6}$")] | None = None
    versions: tuple[StatedVersions, ...]
    components: tuple[ComponentMention, ...] = ()
    systems: tuple[System, ...] = Field(
        default=(), description="Operating systems in the description. Empty: none, or all"
    )
    differences: tuple[str, ...] = Field(
        default=(), description="Fields of the CVE record that differ from the bulletin"
    )


class Advisories(OwnFile):
    """`advisories.json`: known vulnerabilities, as NVIDIA's bulletins state them."""

    source: str = Field(description="The repository of the documents")
    newest: Day = Field(description="Day of the newest bulletin or change")
    bulletins: dict[BulletinId, Bulletin] = Field(
        description="All bulletins that were read, also those about other products"
    )
    vulnerabilities: tuple[Vulnerability, ...]


class Product(Reasoned):
    """A product in bulletins: packages, the display driver, or another product."""

    kind: Literal["packages", "driver", "vgpu", "other"]
    redist: RedistName | None = optional("For packages: the redistributable")
    package: str | None = optional("For packages: the only one. Absent: all")


class Component(Reasoned):
    """A part of the CUDA Toolkit that descriptions name."""

    spellings: tuple[str, ...]
    packages: tuple[str, ...] = Field(description="Packages with it, of archives and wheels")


class VersionDecision(Reasoned):
    """The meaning of a stated version that no rule can read, or that is ambiguous."""

    bulletin: BulletinId
    stated: Stated
    before: VersionText | None = optional("All versions before this one")
    through: VersionText | None = optional("All versions up to and including this one")
    at_least: VersionText | None = optional("This version and all later ones")
    ignored: bool = optional("Whether it is not a version of our packages", default=False)


class SystemDecision(Reasoned):
    """The operating systems of a vulnerability, if the document contradicts itself."""

    systems: tuple[System, ...]


class ReleaseDecision(Reasoned):
    """The state of a release that a bulletin states neither as affected nor as fixed."""

    cve: CveId
    redist: RedistName
    release: Label
    state: Literal["affected", "fixed", "unknown"]


class AdvisoryPolicy(OwnFile):
    """`policy/advisories.json`: decisions about the bulletins, with reasons."""

    products: dict[str, Product] = Field(description="By the name in bulletins")
    components: dict[str, Component]
    versions: tuple[VersionDecision, ...]
    releases: tuple[ReleaseDecision, ...]
    systems: dict[CveId, SystemDecision]
    reviewed: dict[BulletinId, HexSha256] = Field(
        description="SHA-256 of the document that the decisions are about"
    )
