"""Model of a package set: a CUDA release on a platform, with reasons."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.coverage import Coverage
from cudaredist.formats.features import OutputSize
from cudaredist.formats.field_types import (
    ArchivePath,
    CapabilityName,
    CudaMinor,
    HexSha256,
    InnerFolder,
    InnerPath,
    Label,
)
from cudaredist.formats.host_compilers import HostCompiler
from cudaredist.formats.library_policy import Owner
from cudaredist.formats.names import Distribution, OutputName, RedistName
from cudaredist.formats.reason import Reason
from cudaredist.formats.runfile_records import Runfile

PACKAGE_SET_FORMAT: Literal["cudaredist.package-set/1"] = "cudaredist.package-set/1"

ArchiveFormat = Literal["tar.xz", "tar.gz", "tar.zst", "tar", "zip", "whl"]

Status = Literal["available", "unsupported", "broken", "withheld", "foreign"]


class Input(OwnModel):
    """An input file of the set."""

    kind: Literal["manifest", "features", "nvcc", "capabilities", "policy", "runfiles"]
    name: str = Field(description="Redistributable, or name of the policy")
    label: Label | None
    sha256: HexSha256
    overlay: bool = Field(description="Whether it comes from an overlay")


class CudaRelease(OwnModel):
    """The set's CUDA release and names."""

    release: Label
    major_minor: CudaMinor
    major: str
    attribute: str = Field(
        description="Such as cudaPackages_12_6, or cudaPackages_12_6_2 if a newer patch is local"
    )
    name_prefix: str = Field(description="Such as cuda12.6")
    aliases: tuple[str, ...] = Field(description="Short names of this set, from policy")
    early_access: bool = optional("Whether this is an early-access release", default=False)


class SetPlatform(OwnModel):
    """The set's platform."""

    redist_system: str
    nix_system: str | None
    pkgs_cross: str | None
    elf_machine: int | None
    jetson: bool = Field(description="Whether the effective capabilities include a Jetson")


class Cross(OwnModel):
    """The platforms of a pair of sets for a cross toolkit."""

    host: str = Field(description="Platform of the compilers")
    target: str = Field(description="Platform of the programs")


class Flags(OwnModel):
    """Compute capabilities and their compiler flags.

    The flags up to `cmake_cuda_architectures` have nixpkgs' form: in the requested order, with
    portable code for the last capability without a letter. If portable code is on,
    capabilities with a letter have `-real` in CMake's list. The next two flags are sorted, with
    portable code for the highest capability.
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
    lto_arches: tuple[str, ...] = optional(
        "Targets for link-time optimization, such as lto_90. Absent: made by an earlier version", ()
    )
    gencode_lto: tuple[str, ...] = optional(
        "`gencode` with `lto_arches` instead of machine code. Absent: made by an earlier version",
        (),
    )
    cmake_cuda_architectures: str
    cmake_architectures_real_virtual: str
    torch_cuda_arch_list: str

    @property
    def has_plain(self) -> bool:
        """Whether a capability has no letter and allows portable code."""
        return any(name[-1].isdigit() for name in self.effective)


class RejectedRelease(OwnModel):
    """A newer release of a redistributable that was not selected."""

    release: Label
    reason: str
    is_unpublished: bool = optional(
        "Whether it has no archive for the platform or the CUDA release", default=False
    )


class ChosenRelease(OwnModel):
    """The selected release of a redistributable, and rejected newer ones."""

    release: Label | None = Field(description="Null: no release for this set")
    mode: Literal["pinned", "auto"]
    newer_rejected: tuple[RejectedRelease, ...] = Field(description="Newest first")


class SetArchive(OwnModel):
    """The archive of a package."""

    relative_path: ArchivePath = Field(
        description="Below the product's folder on the server. Of a wheel: its project and file"
    )
    url: str | None = Field(description="Null: unknown address, as for wheels")
    sha256: HexSha256
    sri: str = Field(description="The hash in the form of Nix and browsers")
    md5: str | None
    size: int | None = Field(gt=0, description="Bytes. Null: not in the manifest")
    platform: str = Field(
        description="Platform in the manifest. `source` and `linux-all` serve several platforms"
    )
    cuda_variant: str | None
    format: ArchiveFormat | None
    strip_prefix: str | None = Field(
        description="The single top directory of the archive. Null: detect it"
    )
    strip_pattern: str | None = optional(
        "Regular expression for the beginning of a wheel's paths that is not part of the package. "
        "Absent: no wheel"
    )


class TreeChange(OwnModel):
    """A change of the archive's tree before the split into outputs."""

    op: Literal["lift", "rename", "drop", "symlink"]
    source: InnerPath = Field(alias="from")
    to: InnerFolder | None
    split_only: bool = optional(
        "Skipped if packages are merged into one tree. Absent: always applied", default=False
    )


class Provided(OwnModel):
    """A library of a package."""

    soname: str = Field(description="The soname, or else the file name")
    path: InnerPath
    output: OutputName
    stub: bool


class InSet(OwnModel):
    """The provider of a library in the set."""

    attr: str
    output: OutputName


class OutsideSet(OwnModel):
    """The provider of a library outside package sets."""

    external: Owner


class Needed(OwnModel):
    """A library that a package's file requires."""

    soname: str
    by_path: InnerPath
    output: OutputName
    satisfied_by: InSet | OutsideSet | None
    kind: Literal["needed", "dlopen"]
    is_optional: bool = optional(
        "Whether most functions work without the library that it opens. Absent: they do not",
        default=False,
    )


class Opened(OwnModel):
    """A library name in a file's data, which it may open at run time."""

    soname: str
    by_path: InnerPath
    satisfied_by: InSet | OutsideSet | None = Field(description="Null: no known provider")
    is_optional: bool = optional(
        "Whether `policy/libraries.json` lists it as optional. Absent: it does not", default=False
    )


class Depends(OwnModel):
    """A dependency on another package of the set."""

    attr: str
    output: OutputName
    kind: Literal["runtime", "header", "dlopen"] = Field(
        description="runtime: its files list the libraries; dlopen: they open them at run time"
    )
    is_optional: bool = optional(
        "Whether its files can do without the libraries that they open. Absent: they cannot",
        default=False,
    )
    header: str | None = optional(
        "One of its headers that the package includes. Absent: from policy"
    )
    included_by: str | None = optional("The package's header that includes it")


class SetLicense(OwnModel):
    """The license of a package."""

    manifest: str | None = Field(description="The manifest's license field")
    manifest_path: ArchivePath | None = optional(
        "The manifest's path to its text, relative to the archives' address. Absent: none"
    )
    files: dict[InnerPath, HexSha256] | None = optional(
        "SHA-256 of each license and notice in the archive, by path. Absent: unknown"
    )
    text: str | None = optional(
        "The policy's name for the license text in the archive. `unknown`: not in the policy, so "
        "`redistributable` is null. Absent: no text"
    )
    distribution: dict[InnerPath, Distribution] = optional(
        "Whether the text lists each library as distributable, by path. Absent: unknown, or there "
        "are no libraries",
        {},
    )
    spdx: str | None
    short_name: str = Field(description="The policy's name for the license, or else the manifest's")
    url: str | None
    free: bool
    redistributable: bool | None
    source: str


class SetMeta(OwnModel):
    """Additional metadata for packagers."""

    homepage: str | None
    changelog: str | None
    main_program: str | None
    fhs_exempt: bool


class SetPackage(OwnModel):
    """A package of a set, available or not."""

    pname: str
    attr: str
    alias_of: str | None = Field(
        description="The package for which this name is an alias. Null: not an alias"
    )
    redist: RedistName | None = Field(description="Null: the package is only in policy")
    release: Label | None
    version: str | None
    description: str | None
    status: Status
    reasons: tuple[Reason, ...]
    platforms: tuple[str, ...] = Field(description="Platforms of the package in the release")
    archive: SetArchive | None
    outputs: tuple[OutputName, ...] = Field(description="Declared outputs, in nixpkgs' order")
    collapsed: str | None = Field(
        description="Reason why all files stay in `out`. Null: they do not"
    )
    contents: dict[OutputName, OutputSize] = Field(
        description="The archive's outputs before `normalise`. Empty: not inspected"
    )
    files: dict[OutputName, tuple[InnerPath, ...]] | None = optional(
        "Regular files by output, without the archive's prefix and before `normalise`. Absent: "
        "not requested (`build --files`), or unknown"
    )
    links: dict[InnerPath, InnerPath] | None = optional(
        "Links to libraries, by path, with the path of the library. Absent: as `files`"
    )
    normalise: tuple[TreeChange, ...]
    propagates: dict[OutputName, tuple[OutputName, ...]]
    provides: tuple[Provided, ...]
    needs: tuple[Needed, ...]
    opens: tuple[Opened, ...] = optional(
        "Libraries that its files may open at run time, by names in their data. Their packages "
        "are in `depends`. If policy confirms one, it is in `needs`. Absent: none",
        (),
    )
    depends: tuple[Depends, ...]
    driver_runpath: bool = Field(
        description="Whether the driver's folder must be in the run path of its binaries"
    )
    compat_runpath: bool = Field(
        description="Whether a compatibility driver precedes the driver in the run path"
    )
    gpu_architectures: dict[InnerFolder, tuple[str, ...]] = Field(
        description="By directory of libraries"
    )
    coverage: dict[CapabilityName, Coverage] = optional(
        "By effective capability. Absent: not available, or from an earlier version", {}
    )
    license: SetLicense
    meta: SetMeta
    overlay: tuple[str, ...] = Field(description="Changes by overlays")

    @property
    def unpacked_size(self) -> int:
        """Bytes of all files of its archive, 0 if it was not inspected."""
        return sum(part.bytes for part in self.contents.values())


class SonameProvider(InSet):
    """A library of the set with a soname."""

    path: InnerPath
    stub: bool


class ExternalSoname(OwnModel):
    """A library that the set requires but does not contain."""

    owner: Owner
    provider: str | None
    distributions: dict[str, str] | None = optional(
        "Distributions with an old library, and the package that must provide it. Absent: the "
        "library is not old"
    )
    needed_by: tuple[str, ...]


class Diagnostic(OwnModel):
    """A message about the set for maintainers."""

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
    native: DriverVersion | None = optional(
        "Lowest driver with all features of the release; absent: no source states it"
    )
    lowest: DriverVersion | None = Field(
        description="Runs programs of the CUDA major, with minor version compatibility; null: no "
        "policy states it"
    )


class PackageSet(OwnFile):
    """`cuda-<release>.json`: the packages of a CUDA release on a platform."""

    format: Literal["cudaredist.package-set/1"] = Field(alias="schema")
    channel: Literal["redist", "wheels"]
    inputs: tuple[Input, ...]
    cuda: CudaRelease
    platform: SetPlatform
    cross: Cross | None = optional("Pair to which the set belongs. Absent: none")
    name: str | None = optional("Name of a declared set. Absent: it has no name of its own")
    capabilities: Flags
    host_compiler: HostCompiler
    driver: SetDriver | None = optional("Absent: made by an earlier version")
    runfile: Runfile | None = optional("Runfile installer of the CUDA release; absent: no record")
    redists: dict[RedistName, ChosenRelease]
    packages: dict[str, SetPackage] = Field(description="All known names")
    sonames: dict[str, tuple[SonameProvider, ...]]
    external: dict[str, ExternalSoname]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def full_name(self) -> str:
        """The attribute with the set's own name, or with its requested capabilities.

        With the platform, it identifies a set of a distribution, such as `cudaPackages_13_0-thor`.
        """
        name = self.name or "_".join(self.capabilities.requested)
        return f"{self.cuda.attribute}-{name}" if name else self.cuda.attribute

    @property
    def lacks_nvcc(self) -> bool:
        """Whether the package cuda_nvcc has programs, but not nvcc, as the wheels of CUDA 12.

        They are dynamically linked, so that a set has the libraries that they need.
        """
        package = self.packages.get("cuda_nvcc")
        paths = {need.by_path for need in package.needs} if package else set()
        programs = {path.removesuffix(".exe") for path in paths if path.startswith("bin/")}
        return bool(programs) and "bin/nvcc" not in programs

    @property
    def own(self) -> dict[str, SetPackage]:
        """The packages, except aliases."""
        return {name: entry for name, entry in self.packages.items() if entry.alias_of is None}

    @property
    def available(self) -> dict[str, SetPackage]:
        """The available packages, except aliases."""
        return {name: entry for name, entry in self.own.items() if entry.status == "available"}
