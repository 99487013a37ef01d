"""Models of the tables of host compilers and GPUs, and of their policy."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.base import OwnFile, OwnModel, Reasoned, optional
from cudaredist.formats.field_types import (
    CapabilityName,
    CudaMinor,
    HexSha256,
    InnerPath,
    Label,
    PlainCapability,
    VersionText,
)
from cudaredist.formats.names import Channel


class BinarySource(OwnModel):
    """The ptxas program that lists a release's capabilities."""

    channel: Channel
    package: str
    archive_sha256: HexSha256
    path: InnerPath
    file_sha256: HexSha256


class HeaderSource(BinarySource):
    """The header with the facts about host compilers."""

    version: VersionText


class PolicySource(OwnModel):
    """A policy file, for facts that only documentation states."""

    policy: str = Field(description="The policy file's name")
    reference: str = Field(description="The document and its version")


def span(first: object, last: object) -> str:
    """Return an inclusive range as text, such as `6 to 15`. None means no limit."""
    if first is None:
        return "of any version" if last is None else f"up to {last}"
    return f"{first} and later" if last is None else f"{first} to {last}"


Basis = Literal["derived", "documented"]


class CompilerRange(OwnModel):
    """An inclusive range of accepted versions. Null means no limit."""

    status: Literal["range"]
    min: int | None
    max: int | None
    min_basis: Basis | None = optional("Null: no lower bound")
    max_basis: Basis | None = optional("Null: no upper bound")
    unit: Literal["major", "_MSC_VER", "version"] = optional(
        "The unit of the bounds. Absent: major", "major"
    )
    years: dict[str, str] | None = optional("Releases of Visual Studio by _MSC_VER")
    header_min: str | None = optional("The header's lower bound, if `min` is stricter")
    documented_by: PolicySource | None = optional("The source of the documented bounds")
    note: str | None = optional("Text of the header that contradicts its code")


class CompilerVerdict(OwnModel):
    """A compiler that the header rejects or does not check."""

    status: Literal["refused", "unchecked"]
    note: str | None = optional("The compiler whose check applies instead")


CompilerAnswer: TypeAlias = Annotated[
    CompilerRange | CompilerVerdict, Field(discriminator="status")
]


GlibcVersion = Annotated[
    str, Field(pattern=r"^2\.[0-9]{1,4}$", description="A release of glibc, such as 2.41")
]


class GlibcBound(OwnModel):
    """The newest glibc that nvcc compiles with, and its evidence."""

    newest: GlibcVersion = Field(
        description="Without `clashes`: the newest known glibc, so later ones may work too"
    )
    clashes: tuple[str, ...] = Field(
        description="Functions that the next glibc declares with another exception specification"
    )
    path: InnerPath = Field(description="The header's path in the archive of `source`")
    file_sha256: HexSha256


class NvccRelease(OwnModel):
    """The accepted host compilers of a CUDA release's nvcc."""

    nvcc: VersionText | None
    source: HeaderSource | PolicySource
    compilers: dict[str, CompilerAnswer]
    glibc: GlibcBound | None = optional("The newest glibc. Absent: unknown")


class NvccCompat(OwnFile):
    """`nvcc_compat.json`: accepted host compilers of nvcc, by CUDA release."""

    releases: dict[Label, NvccRelease]


class DocumentedCompiler(OwnModel):
    """The inclusive range of a compiler's versions in the documentation."""

    min: int | None
    max: int | None
    note: str | None = optional("Another source that differs")


class UnseenRelease(Reasoned):
    """The documented compilers of a CUDA minor without a known header."""

    compilers: dict[str, DocumentedCompiler]


class LowerBound(Reasoned):
    """The oldest major of a compiler that the documentation supports."""

    min: int


class GlibcPolicy(Reasoned):
    """The functions of glibc that CUDA's headers declare too."""

    newest: GlibcVersion = Field(description="The newest known glibc")
    functions: dict[GlibcVersion, tuple[str, ...]] = Field(
        min_length=1,
        description="New functions of C23 by glibc, each without the suffix f of its float variant",
    )


class NvccTarget(Reasoned):
    """The target of nvcc without options, in a range of CUDA releases."""

    first_cuda: CudaMinor
    last_cuda: CudaMinor | None = optional("Absent: the newest release", None)
    capability: PlainCapability


class NvccPolicy(OwnFile):
    """`policy/nvcc.json`: facts about host compilers from documentation."""

    lower_bounds: dict[str, LowerBound] = Field(description="By compiler")
    unseen_releases: dict[CudaMinor, UnseenRelease]
    glibc: GlibcPolicy | None = optional("Functions of glibc. Absent: no bound is derived")
    targets: tuple[NvccTarget, ...] = optional("The targets of nvcc without options", ())


class PolicyFact(Reasoned):
    """A documented fact about a capability.

    For example, its first CUDA release, if no inspected release is that old.
    """

    field: Literal["first_cuda", "last_cuda", "dont_default_after", "renamed_to", "desktop_code"]
    value: Annotated[str, Field(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$")] = Field(
        description="A CUDA minor, or a capability for `renamed_to`. `desktop_code` is the first "
        "CUDA minor with which a Tegra part runs code for other GPUs of its architecture; before, "
        "it is unknown"
    )


class CapabilityEntry(OwnModel):
    """A compute capability."""

    family: str
    base: str
    variant: Literal["a", "f"] | None
    first_cuda: CudaMinor = Field(
        description="The first CUDA release with this capability. If even the oldest inspected "
        "release has it, `policy` can state an earlier one"
    )
    last_cuda: CudaMinor | None = Field(description="Derived. Null: no known end")
    jetson: bool
    dont_default_after: CudaMinor | None
    products: tuple[str, ...]
    policy: tuple[PolicyFact, ...]
    runs_on: tuple[str, ...] = Field(
        description="Plain capabilities with GPUs that accept PTX for this target"
    )


class OverlayEntry(Reasoned):
    """The policy for a plain capability and its variants."""

    jetson: bool
    products: tuple[str, ...]
    facts: tuple[PolicyFact, ...] = ()


class GpuPolicy(OwnFile):
    """`policy/gpus.json`: facts about compute capabilities that no NVIDIA file states."""

    overlay: dict[PlainCapability, OverlayEntry]


class Gpus(OwnFile):
    """`gpus.json`: compute capabilities and the CUDA releases that support them."""

    capabilities: dict[CapabilityName, CapabilityEntry]
    sources: dict[Label, BinarySource]


TableFindingKind = Literal[
    "goes-down",
    "changed",
    "overlay-lacks",
    "family-differs",
    "patches-differ",
    "gone-in-between",
]


class TableFinding(OwnModel):
    """A finding about a table, for review by a maintainer."""

    kind: TableFindingKind
    about: str = Field(description="The CUDA release or the capability")
    message: str
