"""Models of the policy files that `build` reads, one per subject, each entry with its reason."""

from typing import Annotated, Literal

from pydantic import Field

from cudaredist.schema.base import (
    CudaMinor,
    OutputName,
    OwnModel,
    SchemaVersion,
    VersionText,
    optional,
)
from cudaredist.schema.tables import CapabilityName, PlainCapability

_PLATFORM = "Name of a platform of NVIDIA's manifests; absent: every platform"


class Bounds(OwnModel):
    """A range of versions; both ends belong to it, and `12.9` as an end stands for all 12.9.x."""

    min: VersionText | None = optional("Absent: no lower end")
    max: VersionText | None = optional("Absent: no upper end")


class Reasoned(OwnModel):
    """What every entry of a policy states: why it is so, and who says so."""

    reason: str = Field(min_length=1)
    reference: str = Field(description="The document or the observation behind it")


class PlatformEntry(Reasoned):
    """One platform of package sets."""

    nix_systems: tuple[str, ...] = Field(description="Nix systems that use it; empty: none does")
    pkgs_cross: str | None = Field(description="Attribute of nixpkgs' cross sets")
    elf_machine: int | None = Field(description="e_machine of its binaries; null: they are PE")


class JetsonThreshold(Reasoned):
    """From which Jetson capability on `linux-sbsa` serves Jetson as well."""

    cuda: Bounds
    capability: PlainCapability


class OldestJetson(Reasoned):
    """The oldest Jetson capability that `linux-aarch64` is published for."""

    capability: PlainCapability


class PlatformPolicy(OwnModel):
    """`policy/platforms.json`: platforms, and which of the two for ARM a Nix system means."""

    schema_version: SchemaVersion
    platforms: dict[str, PlatformEntry]
    jetson_thresholds: tuple[JetsonThreshold, ...] = Field(
        description="The first whose bounds hold the CUDA release decides"
    )
    oldest_jetson: OldestJetson | None = optional("Absent: no lower limit")


class LowestDriver(Reasoned):
    """The oldest driver that runs programs of a CUDA major."""

    version: VersionText


class DriverPolicy(OwnModel):
    """`policy/drivers.json`: the lowest driver for each CUDA major, as NVIDIA documents it."""

    schema_version: SchemaVersion
    lowest: dict[str, LowestDriver] = Field(description="By CUDA major")


class NamePolicy(OwnModel):
    """`policy/names.json`: aliases of package sets and packages, renames and splits."""

    schema_version: SchemaVersion
    sets: "SetAliases"
    aliases: dict[str, "Alias"] = Field(description="Other names of packages, in every set")
    renames: dict[str, "Rename"] = Field(description="By the old name")
    splits: dict[str, "Split"] = Field(description="By the package that was split")


class SetAliases(Reasoned):
    """Which release line the short names of package sets mean."""

    default: str = Field(description="Major of `cudaPackages`")
    majors: dict[str, CudaMinor] = Field(description="Minor of each `cudaPackages_<major>`")


class Alias(Reasoned):
    """Another name of a package."""

    to: str


class Rename(Reasoned):
    """A package that has another name from a release on."""

    to: str
    since: VersionText


class Split(Reasoned):
    """A package that lost parts to new packages from a release on."""

    into: tuple[str, ...]
    since: VersionText


class WithheldEntry(Reasoned):
    """A package that is published and left out on purpose."""


class WithheldPolicy(OwnModel):
    """`policy/withheld.json`: packages left out of every package set on purpose."""

    schema_version: SchemaVersion
    withheld: dict[str, WithheldEntry]


class Collapse(Reasoned):
    """A package whose files stay in one output."""


class Propagation(Reasoned):
    """Outputs that a package's `dev` brings along besides bin, include and lib."""

    outputs: tuple[OutputName, ...]


class Normalisation(Reasoned):
    """A change of a package's tree before it is split into outputs."""

    package: str
    versions: Bounds = Field(default=Bounds(), description="Of the package")
    op: Literal["lift", "rename", "drop", "symlink"]
    source: str = Field(alias="from")
    to: str | None = None
    split_only: bool = optional(
        "Only where packages lie apart: merged, nvcc finds its parts beside itself", default=False
    )


class OutputPolicy(OwnModel):
    """`policy/outputs.json`: packages that stay whole, what they propagate, how trees change."""

    schema_version: SchemaVersion
    collapse: dict[str, Collapse]
    propagates: dict[str, Propagation]
    normalise: tuple[Normalisation, ...]


class Requirement(Reasoned):
    """What must hold for a package to be available; every condition given must."""

    package: str
    kind: Literal["unsupported", "broken"] = Field(
        description="Unsupported: cannot be had; broken: would not work"
    )
    releases: Bounds = Field(default=Bounds(), description="Of the redistributable")
    cuda: Bounds = Field(default=Bounds(), description="CUDA releases that it is about")
    platform: str | None = optional(_PLATFORM)
    min_capability: CapabilityName | None = optional("Every capability is at least this one")
    only_capabilities: tuple[CapabilityName, ...] | None = optional("No other is asked for")
    exact_capabilities: tuple[CapabilityName, ...] | None = optional("Exactly these")
    needs_cuda: Bounds | None = optional("CUDA releases it works with")
    needs_packages: dict[str, Bounds] | None = optional("Versions of others it works with")


class RequirementPolicy(OwnModel):
    """`policy/requirements.json`: what packages require that no manifest states."""

    schema_version: SchemaVersion
    requirements: tuple[Requirement, ...]


class Constraint(Reasoned):
    """CUDA releases that a redistributable's releases are made for."""

    redist: str
    releases: Bounds
    cuda: Bounds


class ConstraintPolicy(OwnModel):
    """`policy/constraints.json`: which CUDA releases a redistributable's releases are made for."""

    schema_version: SchemaVersion
    constraints: tuple[Constraint, ...]


Owner = Literal[
    "glibc", "gcc", "driver", "jetson", "distribution", "windows", "msvc", "python", "unknown"
]


class External(Reasoned):
    """Libraries that no package set holds, and who has them."""

    owner: Owner
    provider: str | None = optional("The distribution's package that has them")
    names: tuple[str, ...] = Field(
        description="Sonames; `*` stands for any characters, and case counts not for DLLs"
    )


class LoadedLibrary(Reasoned):
    """A library that another one loads while it runs, which no table of its file shows."""

    package: str
    versions: Bounds = Field(default=Bounds(), description="Of the package")
    by: str = Field(description="Name of the loading library, before `.so`")
    loads: str = Field(description="Name of the library loaded, before `.so`")


class Dependency(Reasoned):
    """A package that another one needs beside the libraries its files name."""

    package: str
    cuda: Bounds = Field(default=Bounds())
    needs: str
    kind: Literal["header", "runtime"]


class LibraryPolicy(OwnModel):
    """`policy/libraries.json`: libraries outside a set, loaded ones, and needed headers."""

    schema_version: SchemaVersion
    external: tuple[External, ...]
    loaded: tuple[LoadedLibrary, ...]
    dependencies: tuple[Dependency, ...]
    compat_run_path: tuple["CompatRunPath", ...]


class CompatRunPath(Reasoned):
    """Where the libraries of a compatibility package go before the driver's."""

    package: str
    platform: str


class License(Reasoned):
    """What is known of a licence."""

    spdx: str | None
    short_name: str
    url: str | None
    free: bool
    redistributable: bool | None = Field(description="Null: not known")


class LicensePolicy(OwnModel):
    """`policy/licenses.json`: licences by package, by redistributable, by the manifest's word."""

    schema_version: SchemaVersion
    packages: dict[str, License]
    manifests: dict[str, License] = Field(description="By the manifest's `license`")
    redists: dict[str, License]
    default: License


class PackageMeta(Reasoned):
    """What a packager adds about a package."""

    homepage: str | None = optional("Where the product is described")
    changelog: str | None = optional("Where its changes are described")
    main_program: str | None = optional("The program one means by the package's name")
    fhs_exempt: bool | None = optional("Its files may name paths such as /usr")


class MetaPolicy(OwnModel):
    """`policy/meta.json`: home pages, main programs, exemptions."""

    schema_version: SchemaVersion
    redists: dict[str, PackageMeta]
    packages: dict[str, PackageMeta]


class Fixup(Reasoned):
    """A change that a user makes to a package, in every set or in chosen ones."""

    package: str
    cuda: Bounds = Field(default=Bounds(), description="CUDA releases; absent: all")
    platform: str | None = optional(_PLATFORM)
    outputs: tuple[OutputName, ...] | None = optional("Declare exactly these, `out` first")
    broken: str | None = optional("Mark it broken, with this text")
    withheld: str | None = optional("Leave it out, with this text")
    depends: tuple[str, ...] | None = optional("Packages it needs as well")


class FixupPolicy(OwnModel):
    """`policy/fixups.json`: a user's own changes, and where added packages come from."""

    schema_version: SchemaVersion
    fixups: tuple[Fixup, ...]
    urls: dict[str, Annotated[str, Field(pattern="^[a-z][a-z0-9+.-]*://")]] = Field(
        default={}, description="By redistributable: the address its paths are relative to"
    )
