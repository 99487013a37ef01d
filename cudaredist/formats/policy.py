"""Models of the policy files."""

from collections.abc import Iterator
from itertools import chain
from typing import Literal

from pydantic import Field

from cudaredist.formats.base import Reasoned, optional
from cudaredist.formats.field_types import CapabilityName, CudaMinor, PlainCapability, VersionText
from cudaredist.formats.names import RedistName
from cudaredist.formats.set_policy import Bounds, SetPolicy
from cudaredist.formats.specifier import Specifier

_PLATFORM = "Platform of NVIDIA's manifests. Absent: every platform"


class PlatformEntry(Reasoned):
    """A platform of package sets."""

    nix_systems: tuple[str, ...] = Field(description="Nix systems that use it. Empty: none")
    pkgs_cross: str | None = Field(description="Attribute of nixpkgs' cross sets")
    elf_machine: int | None = Field(description="e_machine of its binaries. Null: PE binaries")


class JetsonThreshold(Reasoned):
    """The first Jetson capability that `linux-sbsa` supports."""

    cuda: Bounds
    capability: PlainCapability


class OldestJetson(Reasoned):
    """The oldest Jetson capability that `linux-aarch64` supports."""

    capability: PlainCapability


class PlatformPolicy(SetPolicy):
    """`policy/platforms.json`: platforms, and the choice between the two for ARM."""

    platforms: dict[str, PlatformEntry]
    jetson_thresholds: tuple[JetsonThreshold, ...] = Field(
        description="The first entry with bounds that include the CUDA release applies"
    )
    oldest_jetson: OldestJetson | None = optional("Absent: no lower limit")


class NamePolicy(SetPolicy):
    """`policy/names.json`: aliases of package sets and packages, renames and splits."""

    sets: "SetAliases"
    aliases: dict[str, "Alias"] = Field(description="Aliases of packages in every set")
    renames: dict[str, "Rename"] = Field(description="By old name")
    splits: dict[str, "Split"] = Field(description="By the split package")

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        yield from chain(self.renames, self.splits, self.aliases)
        yield from (rename.to for rename in self.renames.values())
        yield from (alias.to for alias in self.aliases.values())
        yield from chain.from_iterable(split.into for split in self.splits.values())


class SetAliases(Reasoned):
    """The CUDA minors that short names of package sets refer to."""

    default: str = Field(description="Major of `cudaPackages`")
    majors: dict[str, CudaMinor] = Field(description="Minor of each `cudaPackages_<major>`")


class Alias(Reasoned):
    """An alias of a package."""

    to: str


class Rename(Reasoned):
    """A package with another name since a release."""

    to: str
    since: VersionText


class Split(Reasoned):
    """A package with parts that moved to new packages in a release."""

    into: tuple[str, ...]
    since: VersionText


class WithheldEntry(Reasoned):
    """A published package that sets deliberately omit."""

    lacks: tuple[str, ...] = optional(
        "Required packages and sonames that no set contains (I14)", ()
    )


class WithheldPolicy(SetPolicy):
    """`policy/withheld.json`: packages that sets deliberately omit."""

    withheld: dict[str, WithheldEntry]

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        yield from self.withheld


class Requirement(Reasoned):
    """Conditions for a package to be available. All given ones must be true."""

    package: str
    kind: Literal["unsupported", "broken", "warning"] = Field(
        description="unsupported: not available; broken: would not work; warning: may not work, "
        "and stays available"
    )
    releases: Bounds = Field(default=Bounds(), description="Releases of the redistributable")
    cuda: Bounds = Field(default=Bounds(), description="Affected CUDA releases")
    platform: str | None = optional(_PLATFORM)
    min_capability: CapabilityName | None = optional("Lower bound of every requested capability")
    only_capabilities: tuple[CapabilityName, ...] | None = optional("Allowed capabilities")
    exact_capabilities: tuple[CapabilityName, ...] | None = optional(
        "The exact list of requested capabilities"
    )
    without_capabilities: tuple[PlainCapability, ...] = optional(
        "Unsupported capabilities, with or without a letter", ()
    )
    needs_cuda: Bounds | None = optional("Compatible CUDA releases")
    needs_packages: dict[str, Bounds] | None = optional("Compatible versions of other packages")


class RequirementPolicy(SetPolicy):
    """`policy/requirements.json`: requirements of packages that no manifest states."""

    requirements: tuple[Requirement, ...]
    wheels: dict[str, dict[str, dict[str, Specifier]]] = optional(
        "Versions in Requires-Dist of wheels: by project, version and required project", {}
    )

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        for requirement in self.requirements:
            yield from (requirement.package, *(requirement.needs_packages or ()))


class Constraint(Reasoned):
    """The compatible CUDA releases of a redistributable's releases."""

    redist: RedistName
    releases: Bounds
    cuda: Bounds


class ConstraintPolicy(SetPolicy):
    """`policy/constraints.json`: compatible CUDA releases of redistributables."""

    constraints: tuple[Constraint, ...]
    first_wheels: dict[str, dict[str, VersionText]] = optional(
        "First release with wheels, by redistributable and CUDA major", {}
    )
