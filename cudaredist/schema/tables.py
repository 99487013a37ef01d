"""Models of the tables of host compilers and GPUs, and of the policy merged into them."""

from typing import Annotated, Literal

from pydantic import Field

from cudaredist.schema.base import (
    Channel,
    CudaMinor,
    HexSha256,
    Label,
    OwnModel,
    SchemaVersion,
    VersionText,
    optional,
)


class HeaderSource(OwnModel):
    """Where a fact about host compilers was read."""

    channel: Channel
    package: str
    version: VersionText
    archive_sha256: HexSha256
    path: str
    file_sha256: HexSha256


class PolicySource(OwnModel):
    """A fact that only documentation states, from a policy file."""

    policy: str = Field(description="The policy file's name")
    reference: str = Field(description="The document and its version")


Basis = Literal["derived", "documented"]


class CompilerRange(OwnModel):
    """A range of versions is accepted; both ends belong to it, null is no limit."""

    status: Literal["range"]
    min: int | None
    max: int | None
    min_basis: Basis | None = optional("Null: there is no lower bound")
    max_basis: Basis | None = optional("Null: there is no upper bound")
    unit: Literal["major", "_MSC_VER", "version"] = optional(
        "What is counted; absent: majors", "major"
    )
    years: dict[str, str] | None = optional("Visual Studio by _MSC_VER")
    header_min: str | None = optional("The header's own lower bound, where `min` is stricter")
    documented_by: PolicySource | None = optional("Where the documented bounds are stated")
    note: str | None = optional("Text of the header that disagrees with what it does")


class CompilerVerdict(OwnModel):
    """A compiler is refused altogether, or not looked at."""

    status: Literal["refused", "unchecked"]
    note: str | None = optional("Whose check holds instead")


class NvccRelease(OwnModel):
    """Host compilers that the nvcc of one CUDA release accepts."""

    nvcc: VersionText | None
    source: HeaderSource | PolicySource
    compilers: dict[str, Annotated[CompilerRange | CompilerVerdict, Field(discriminator="status")]]


class NvccCompat(OwnModel):
    """`nvcc_compat.json`: which host compilers nvcc accepts, by CUDA release."""

    schema_version: SchemaVersion
    releases: dict[Label, NvccRelease]


class DocumentedCompiler(OwnModel):
    """Versions of one compiler that documentation names; both ends belong to the range."""

    min: int | None
    max: int | None
    note: str | None = optional("Where something else says otherwise")


class UnseenRelease(OwnModel):
    """What documentation says of a CUDA minor whose header was never seen."""

    compilers: dict[str, DocumentedCompiler]
    reason: str
    reference: str = Field(description="The document and its version")


class LowerBound(OwnModel):
    """The oldest major of a compiler that documentation supports, which no header states."""

    min: int
    reason: str
    reference: str = Field(description="The document and its version")


class NvccPolicy(OwnModel):
    """`policy/nvcc.json`: what only documentation says of host compilers."""

    schema_version: SchemaVersion
    lower_bounds: dict[str, LowerBound] = Field(description="By compiler")
    unseen_releases: dict[CudaMinor, UnseenRelease]


PlainCapability = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,2}\.[0-9]$", description="Without a variant's letter: 10.3")
]
CapabilityName = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,2}\.[0-9][af]?$")]


class PolicyFact(OwnModel):
    """What policy says of one field of a capability, beside or instead of what was derived."""

    field: Literal["first_cuda", "last_cuda", "dont_default_after", "renamed_to"]
    value: Annotated[str, Field(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$")] = Field(
        description="A CUDA minor, or for `renamed_to` a capability"
    )
    reason: str
    reference: str = Field(description="The document and its version")


class CapabilityEntry(OwnModel):
    """One compute capability."""

    family: str
    base: str
    variant: Literal["a", "f"] | None
    first_cuda: CudaMinor = Field(
        description="Documented where `policy` says so; else the oldest release that was read"
    )
    last_cuda: CudaMinor | None = Field(description="Derived; null: no end seen")
    jetson: bool
    dont_default_after: CudaMinor | None
    products: tuple[str, ...]
    policy: tuple[PolicyFact, ...]
    runs_on: tuple[str, ...] = Field(
        description="Plain capabilities whose GPUs take PTX that is built for this target"
    )


class OverlayEntry(OwnModel):
    """What policy says of one plain capability; its variants share it."""

    jetson: bool
    products: tuple[str, ...]
    reason: str = Field(description="Of the Jetson flag and the products")
    reference: str
    facts: tuple[PolicyFact, ...] = ()


class GpuPolicy(OwnModel):
    """`policy/gpus.json`: what no file of NVIDIA's states of compute capabilities."""

    schema_version: SchemaVersion
    overlay: dict[PlainCapability, OverlayEntry]


class BinarySource(OwnModel):
    """The program a release's capabilities were read from."""

    channel: Channel
    package: str
    archive_sha256: HexSha256
    path: str
    file_sha256: HexSha256


class Gpus(OwnModel):
    """`gpus.json`: compute capabilities and the CUDA releases that know them."""

    schema_version: SchemaVersion
    capabilities: dict[CapabilityName, CapabilityEntry]
    sources: dict[Label, BinarySource]
