"""Model of a package set: one CUDA release on one platform, with a reason for everything."""

from typing import Annotated, Literal

from pydantic import Field

from cudaredist.schema.base import (
    Count,
    CudaMinor,
    HexSha256,
    Label,
    OutputName,
    OwnModel,
    SchemaVersion,
    optional,
)
from cudaredist.schema.policy import Owner
from cudaredist.schema.runfile_records import Runfile
from cudaredist.schema.tables import CapabilityName

PACKAGE_SET_FORMAT: Literal["cudaredist.package-set/1"] = "cudaredist.package-set/1"

ArchiveFormat = Literal["tar.xz", "tar.gz", "tar.zst", "tar", "zip", "whl"]

Status = Literal["available", "unsupported", "broken", "withheld", "foreign"]
ReasonCode = Literal[
    "not-in-manifest",
    "platform-not-published",
    "variant-not-published",
    "capability-unsupported",
    "cuda-version-unsupported",
    "dependency-unavailable",
    "unresolved-library",
    "outputs-empty",
    "withheld-by-policy",
    "other-operating-system",
    "marked-broken",
]


CoverageValue = Literal["native", "ptx", "lto", "partial", "none", "host-only", "unknown"]


class Input(OwnModel):
    """One file that the set was made from."""

    kind: Literal["manifest", "features", "nvcc", "capabilities", "policy", "runfiles"]
    name: str = Field(description="Redistributable, or subject of the policy")
    label: Label | None
    sha256: HexSha256
    overlay: bool = Field(description="Whether it comes from an overlay")


class CudaRelease(OwnModel):
    """The CUDA release the set is for, and what the set is called."""

    release: Label
    major_minor: CudaMinor
    major: str
    attribute: str = Field(
        description="cudaPackages_12_6; cudaPackages_12_6_2 if a newer patch is local"
    )
    name_prefix: str = Field(description="cuda12.6")
    aliases: tuple[str, ...] = Field(description="Short names that mean this set, by policy")


class SetPlatform(OwnModel):
    """The platform the set is for."""

    redist_system: str
    nix_system: str | None
    pkgs_cross: str | None
    elf_machine: int | None
    jetson: bool = Field(description="Whether a Jetson is among the effective capabilities")


class Flags(OwnModel):
    """Compute capabilities and the flags made from them.

    The flags up to `cmake_cuda_architectures` are nixpkgs', in the order requested, with portable
    code for the last capability without a letter. The two after them are sorted, with portable code
    for the highest.
    """

    requested: tuple[CapabilityName, ...]
    supported: tuple[CapabilityName, ...]
    default: tuple[CapabilityName, ...]
    effective: tuple[CapabilityName, ...]
    forward_compat: bool
    arch_names: tuple[str, ...]
    real_arches: tuple[str, ...]
    virtual_arches: tuple[str, ...]
    arches: tuple[str, ...]
    gencode: tuple[str, ...]
    gencode_string: str
    cmake_cuda_architectures: str
    cmake_architectures_real_virtual: str
    torch_cuda_arch_list: str

    @property
    def has_plain(self) -> bool:
        """Whether a capability has no letter, so that portable code is possible."""
        return any(name[-1].isdigit() for name in self.effective)


class HostRange(OwnModel):
    """Versions of a host compiler that nvcc accepts; null is no limit."""

    min: int | None
    max: int | None


class HostGcc(HostRange):
    """The GCC chosen."""

    default: int | None = Field(description="The distribution's; null: not said")
    selected: int | None
    uses_default: bool


class HostCompiler(OwnModel):
    """Host compilers, null where the release's nvcc does not accept any version."""

    gcc: HostGcc | None
    clang: HostRange | None
    msvc: HostRange | None = Field(description="Values of _MSC_VER")
    cxx_runtime: Literal["default", "selected"] = Field(
        description="Whose libstdc++ goes with it: the newer one's"
    )


class RejectedRelease(OwnModel):
    """A newer release of a redistributable that was not taken."""

    release: Label
    reason: str


class ChosenRelease(OwnModel):
    """Which release of a redistributable the set takes, and why none newer."""

    release: Label | None = Field(description="Null: none is published for this set")
    mode: Literal["pinned", "auto"]
    newer_rejected: tuple[RejectedRelease, ...] = Field(description="Newest first")


class Reason(OwnModel):
    """Why a package is not available."""

    code: ReasonCode
    text: str
    subject: str
    source: str = Field(description="The data or policy file that says so")


class SetArchive(OwnModel):
    """The archive of a package."""

    relative_path: str
    url: str | None = Field(description="Null: no address is known, as for wheels")
    sha256: HexSha256
    sri: str = Field(description="The same hash as Nix and browsers write it")
    md5: str | None
    size: int | None = Field(gt=0, description="Bytes; null: the manifest does not say")
    platform: str = Field(description="As in the manifest: `source` and `linux-all` serve others")
    cuda_variant: str | None
    format: ArchiveFormat | None
    strip_prefix: str | None = Field(
        description="Its one top directory; null: as it is found in the archive"
    )


class OutputContents(OwnModel):
    """How much an output holds."""

    files: Count
    bytes: Count


class TreeChange(OwnModel):
    """A change of the archive's tree before it is split into outputs."""

    op: Literal["lift", "rename", "drop", "symlink"]
    source: str = Field(alias="from")
    to: str | None
    split_only: bool = optional(
        "Left out where packages are merged into one tree; absent: it is not", default=False
    )


class Provided(OwnModel):
    """A library that a package has."""

    soname: str = Field(description="Else the file's name")
    path: str
    output: OutputName
    stub: bool


class InSet(OwnModel):
    """A package of the set that has a library."""

    attr: str
    output: OutputName


class OutsideSet(OwnModel):
    """Who has a library that no set holds."""

    external: Owner


class Needed(OwnModel):
    """A library that a file of a package needs."""

    soname: str
    by_path: str
    output: OutputName
    satisfied_by: InSet | OutsideSet | None
    kind: Literal["needed", "dlopen"]


class Opened(OwnModel):
    """A library whose name is a string in a file's data, so that it may open it at run time."""

    soname: str
    by_path: str
    satisfied_by: InSet | OutsideSet | None = Field(description="Null: nothing known has it")


class Depends(OwnModel):
    """A package of the set that another one needs."""

    attr: str
    output: OutputName
    kind: Literal["runtime", "header", "dlopen"]
    header: str | None = optional("One of its headers that the package includes; absent: by policy")
    included_by: str | None = optional("The package's header that includes it")


class Coverage(OwnModel):
    """The share of a package's device code that the GPUs of one capability run."""

    value: CoverageValue
    files: Count = optional("Files whose code runs, by one of the ways", 0)
    all_files: Count = optional("Files with device code", 0)
    native: Count = optional("Modules that run as they are", 0)
    ptx: Count = optional("Modules that the driver must compile from PTX", 0)
    lto: Count = optional("Modules that a linker must compile, in files with nothing better", 0)
    modules: Count = optional("The most modules that any GPU uses, over all files", 0)


class SetLicense(OwnModel):
    """The licence of a package."""

    manifest: str | None = Field(description="The manifest's word for it")
    manifest_path: str | None = optional(
        "The manifest's path to its text, from the same address as archives; absent: none"
    )
    files: dict[str, HexSha256] | None = optional(
        "SHA-256 of each licence and notice in the archive, by path; absent: unknown"
    )
    spdx: str | None
    short_name: str = Field(
        description="Policy's name for it, or else the manifest's word if it names a licence"
    )
    url: str | None
    free: bool
    redistributable: bool | None
    source: str


class SetMeta(OwnModel):
    """What a packager wants to know besides."""

    homepage: str | None
    changelog: str | None
    main_program: str | None
    fhs_exempt: bool


class SetPackage(OwnModel):
    """One package of a set, available or not."""

    pname: str
    attr: str
    alias_of: str | None = Field(description="The entry that this one is another name of")
    redist: str | None = Field(description="Null: only policy names the package")
    release: Label | None
    version: str | None
    description: str | None
    status: Status
    reasons: tuple[Reason, ...]
    platforms: tuple[str, ...] = Field(description="Platforms the release publishes it for")
    archive: SetArchive | None
    outputs: tuple[OutputName, ...] = Field(description="Declared ones, in nixpkgs' order")
    collapsed: str | None = Field(description="Why all files stay in `out`; null: they do not")
    contents: dict[OutputName, OutputContents] = Field(
        description="What the archive has for each output, before `normalise`; empty: not examined"
    )
    normalise: tuple[TreeChange, ...]
    propagates: dict[OutputName, tuple[OutputName, ...]]
    provides: tuple[Provided, ...]
    needs: tuple[Needed, ...]
    opens: tuple[Opened, ...] = optional(
        "Libraries that its files may open at run time: a guess, and no dependency. What policy "
        "confirms is in `needs`. Absent: none",
        (),
    )
    depends: tuple[Depends, ...]
    driver_runpath: bool = Field(
        description="Whether it is for Linux and has binaries: their run path leads to the driver"
    )
    compat_runpath: bool = Field(description="Whether the compatibility driver's come before it")
    gpu_architectures: dict[str, tuple[str, ...]] = Field(description="By directory of libraries")
    coverage: dict[CapabilityName, Coverage] = optional(
        "By effective capability; absent: not available, or made by an earlier version", {}
    )
    license: SetLicense
    meta: SetMeta
    overlay: tuple[str, ...] = Field(description="What an overlay changed")


class SonameProvider(OwnModel):
    """One library of the set with some soname."""

    attr: str
    output: OutputName
    path: str
    stub: bool


class ExternalSoname(OwnModel):
    """A library that the set needs and does not hold."""

    owner: Owner
    provider: str | None
    needed_by: tuple[str, ...]


class Diagnostic(OwnModel):
    """Something a maintainer should know of the set."""

    level: Literal["note", "warning", "error"]
    code: str
    subject: str
    text: str


class DriverVersion(OwnModel):
    """A version of NVIDIA's driver, and the file that states it."""

    version: str
    source: str


class SetDriver(OwnModel):
    """Drivers for a CUDA release."""

    published: DriverVersion | None = Field(
        description="Published with the release for the platform; null: no manifest states it"
    )
    lowest: DriverVersion | None = Field(
        description="Runs programs of the CUDA major, with minor version compatibility; null: no "
        "policy states it"
    )


class PackageSet(OwnModel):
    """`cuda-<release>.json`: the packages of one CUDA release on one platform."""

    schema_version: SchemaVersion
    format: Literal["cudaredist.package-set/1"] = Field(alias="schema")
    channel: Literal["redist", "wheels"]
    inputs: tuple[Input, ...]
    cuda: CudaRelease
    platform: SetPlatform
    capabilities: Flags
    host_compiler: HostCompiler
    driver: SetDriver | None = optional("Absent: made by an earlier version")
    runfile: Runfile | None = optional("Runfile installer of the CUDA release; absent: no record")
    redists: dict[str, ChosenRelease]
    packages: dict[str, SetPackage] = Field(description="Every known name")
    sonames: dict[str, tuple[SonameProvider, ...]]
    external: dict[str, ExternalSoname]
    diagnostics: tuple[Diagnostic, ...]


class IndexedSet(OwnModel):
    """One document of an index."""

    path: str
    sha256: HexSha256
    cuda: Label
    platform: str
    attribute: str
    capabilities: tuple[CapabilityName, ...] = Field(description="Asked for; empty: the default")
    counts: dict[Status, Annotated[int, Field(ge=0)]]


class SkippedSet(OwnModel):
    """A package set that was not made."""

    cuda: Label
    platform: str
    reason: str


class PackageSetIndex(OwnModel):
    """`build/index.json`: the package sets that lie beside it."""

    schema_version: SchemaVersion
    sets: tuple[IndexedSet, ...]
    skipped: tuple[SkippedSet, ...]
