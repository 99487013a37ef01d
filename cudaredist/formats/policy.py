"""Models of the policy files."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, Field, field_validator

from cudaredist.formats.base import (
    CudaMinor,
    HexSha256,
    InnerFolder,
    InnerPath,
    OwnFile,
    OwnModel,
    Reasoned,
    RedistName,
    VersionText,
    optional,
)
from cudaredist.formats.names import OutputName
from cudaredist.formats.tables import CapabilityName, PlainCapability
from cudaredist.wheels import METAPACKAGES

_PLATFORM = "Platform of NVIDIA's manifests. Absent: every platform"


def _specifier(text: str) -> str:
    """Check that a text is a range of versions of wheels."""
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError("expected versions such as >=0.10,<0.11") from error
    return text


Specifier = Annotated[str, AfterValidator(_specifier)]
"""Versions of wheels, in the form of Requires-Dist."""


class SetPolicy(OwnFile):
    """Base class of the policies of package sets."""

    @cached_property
    def entries(self) -> tuple[tuple[str, OwnModel], ...]:
        """The policy and the models in it, with their paths from the policy.

        Each content of a policy is read once, and its models are listed once.
        """
        return tuple(_models(self, ""))

    @cached_property
    def platform_names(self) -> tuple[tuple[str, str], ...]:
        """The platforms of the policy's entries, with their paths from the policy."""
        platforms = ((path, getattr(entry, "platform", None)) for path, entry in self.entries)
        return tuple(
            (f"{path}.platform", platform)
            for path, platform in platforms
            if isinstance(platform, str)
        )


def _models(value: object, path: str) -> Iterator[tuple[str, OwnModel]]:
    """Yield a model and its nested models, with their paths."""
    if isinstance(value, OwnModel):
        yield path, value
        for name in type(value).model_fields:
            yield from _models(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from _models(entry, f"{path}.{name}")
    elif isinstance(value, tuple):
        for number, entry in enumerate(value):
            yield from _models(entry, f"{path}[{number}]")


class Bounds(OwnModel):
    """An inclusive range of versions. As a bound, `12.9` includes all 12.9.x."""

    min: VersionText | None = optional("Absent: no lower bound")
    max: VersionText | None = optional("Absent: no upper bound")


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


class LowestDriver(Reasoned):
    """The lowest driver that runs programs of a CUDA major."""

    version: VersionText = Field(description="On Linux")
    windows: VersionText | None = optional("On Windows; absent: no source states it")


class ReleaseDrivers(OwnModel):
    """The lowest drivers with all features of a CUDA release."""

    linux: VersionText | None = optional("Absent: no source states it")
    windows: VersionText | None = optional("Absent: no source states it")
    reference: str = Field(description="The document that states them")


class ReleasePtx(OwnModel):
    """The newest version of PTX that a CUDA release writes, and its driver compiles."""

    version: VersionText
    reference: str = Field(description="The document, or the library of the release with such PTX")


class ForwardCompatibility(Reasoned):
    """Driver branches that run a newer CUDA minor with its package `cuda_compat`."""

    branches: tuple[str, ...]


class LastBranch(Reasoned):
    """The last driver branch for a GPU architecture."""

    branch: str


class DriverPolicy(SetPolicy):
    """`policy/drivers.json`: the drivers for CUDA releases and GPUs, as NVIDIA documents them."""

    lowest: dict[str, LowestDriver] = Field(description="By CUDA major")
    releases: dict[str, ReleaseDrivers] = optional("By CUDA release", {})
    forward: dict[str, ForwardCompatibility] = optional("By CUDA minor", {})
    last_branches: dict[str, LastBranch] = optional("By GPU architecture", {})
    ptx: dict[str, ReleasePtx] = optional("By CUDA minor", {})


class NamePolicy(SetPolicy):
    """`policy/names.json`: aliases of package sets and packages, renames and splits."""

    sets: "SetAliases"
    aliases: dict[str, "Alias"] = Field(description="Aliases of packages in every set")
    renames: dict[str, "Rename"] = Field(description="By old name")
    splits: dict[str, "Split"] = Field(description="By the split package")


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


class Collapse(Reasoned):
    """A package with all files in one output."""


class Propagation(Reasoned):
    """Outputs that a package's `dev` propagates, in addition to bin, include and lib."""

    outputs: tuple[OutputName, ...]


class Normalisation(Reasoned):
    """A change of a package's tree before the split into outputs."""

    package: str
    versions: Bounds = Field(default=Bounds(), description="Versions of the package")
    op: Literal["lift", "rename", "drop", "symlink"]
    source: InnerPath = Field(alias="from")
    to: InnerFolder | None = None
    split_only: bool = optional(
        "Only for separate packages. In a merged tree, nvcc finds its parts itself", default=False
    )


class OutputPolicy(SetPolicy):
    """`policy/outputs.json`: unsplit packages, propagated outputs, tree changes."""

    collapse: dict[str, Collapse]
    propagates: dict[str, Propagation]
    normalise: tuple[Normalisation, ...]


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


Owner = Literal[
    "glibc", "gcc", "driver", "jetson", "distribution", "windows", "msvc", "python", "unknown"
]


class External(Reasoned):
    """Libraries outside package sets, and their providers."""

    owner: Owner
    provider: str | None = optional("The distribution's package with them")
    names: tuple[str, ...] = Field(
        description="Sonames. `*` matches any characters. DLL names ignore case"
    )
    packages: tuple[str, ...] = optional(
        "Packages of NVIDIA with a copy of the libraries, for special cases", ()
    )
    symbols: tuple[str, ...] = optional(
        "Beginnings of the symbols that the libraries export, with `*` and `[A-Z]`", ()
    )


class Distribution(Reasoned):
    """A distribution, with its libraries that names with `*` in `external` match."""

    is_complete: bool = Field(
        description="Whether it has no other such libraries. If not, others are unknown"
    )
    is_old: bool = Field(description="Whether a newer release of the distribution is listed")
    sonames: dict[str, str] = Field(description="The distribution's package, by soname")


class LoadedLibrary(Reasoned):
    """A library that another one loads at run time.

    The loading file does not list it as needed.
    """

    package: str
    versions: Bounds = Field(default=Bounds(), description="Versions of the package")
    by: str = Field(description="Name of the loading library, without `.so`")
    loads: str = Field(description="Name of the loaded library, without `.so`")
    is_optional: bool = Field(
        default=False, description="Most functions work without the loaded library"
    )


class OptionalLibrary(Reasoned):
    """Libraries that packages open at run time, and can do without."""

    packages: tuple[str, ...] = Field(description="Packages. `*` matches any characters")
    names: tuple[str, ...] = Field(
        description="Names in the data of their files. `*` matches any characters. DLL names "
        "ignore case"
    )


class Dependency(Reasoned):
    """A dependency that is not in the files' lists of libraries."""

    package: str
    cuda: Bounds = Field(default=Bounds())
    needs: str
    kind: Literal["header", "runtime"]


class Preload(Reasoned):
    """Libraries of NVIDIA's wheels that a Python package loads before its own files."""

    projects: tuple[str, ...] = Field(description="The projects of the package")
    module: InnerPath = Field(description="Path below site-packages of the file that loads them")
    function: str = Field(description="A name in that file. Absent from versions that load nothing")
    names: tuple[str, ...] = Field(description="Names of files. `*` matches any characters")
    is_optional: bool = optional("Whether the package can be imported without them", default=False)
    is_called: bool = optional(
        "Whether the package does not call the function itself, so that programs must call it",
        default=False,
    )


class LibraryPolicy(SetPolicy):
    """`policy/libraries.json`: external, loaded and optional libraries, and dependencies."""

    external: tuple[External, ...]
    distributions: dict[str, Distribution] = optional(
        "Distributions by name. A library that only a name with `*` in `external` matches must be "
        "in one of them. Absent: any such library exists",
        {},
    )
    loaded: tuple[LoadedLibrary, ...]
    optional_libraries: tuple[OptionalLibrary, ...] = optional(
        "Opened libraries that are not required", ()
    )
    preloads: tuple[Preload, ...] = optional("Libraries that Python packages load", ())
    dependencies: tuple[Dependency, ...]
    compat_run_path: tuple["CompatRunPath", ...]


class CompatRunPath(Reasoned):
    """A platform where a compatibility package precedes the driver."""

    package: str
    platform: str
    only_capabilities: tuple[CapabilityName, ...] | None = optional(
        "Limits it to sets for only these capabilities. Absent: no limit"
    )


class License(Reasoned):
    """The facts about a license."""

    spdx: str | None
    short_name: str
    url: str | None
    free: bool
    redistributable: bool | None = Field(description="Null: unknown")


Operating = Literal["All", "Windows", "Mac OSX", "Linux", "Android"]


class ListedFiles(OwnModel):
    """Files of one component and platform that a license text lists as distributable."""

    component: str | None = Field(description="Null: the list has no components")
    system: Operating
    files: tuple[str, ...] = Field(
        description="Names without version and architecture, or suffixes such as `.so`"
    )
    is_conditional: bool = optional(
        "Whether the text permits it only in applications that meet further criteria",
        default=False,
    )


class LicenseText(License):
    """A license whose text is in archives."""

    title: str = Field(description="Name of the text, with its date if it has one")
    files: tuple[HexSha256, ...] = Field(description="SHA-256 of each file with this text")
    has_list: bool | None = optional(
        "Whether the text lists the files that may be distributed. Absent: not read"
    )
    listed: tuple[ListedFiles, ...] = optional(
        "The list, as `tools.distribution_lists` reads it", ()
    )


class LicensePolicy(SetPolicy):
    """`policy/licenses.json`: licenses by text, package, redistributable or manifest's word."""

    texts: dict[HexSha256, LicenseText] = optional(
        "By SHA-256 of the normalized text: in UTF-8, with a single space for each sequence of "
        "white space",
        {},
    )

    packages: dict[str, License]
    manifests: dict[str, License] = Field(description="By the manifest's `license`")
    redists: dict[RedistName, License]
    default: License


class PackageMeta(Reasoned):
    """Additional metadata of a package."""

    homepage: str | None = optional("URL of the product page")
    changelog: str | None = optional("URL of the release notes")
    main_program: str | None = optional("The package's main program")
    fhs_exempt: bool | None = optional("Whether its files may contain paths such as /usr")


class MetaPolicy(SetPolicy):
    """`policy/meta.json`: home pages, main programs, exemptions."""

    redists: dict[RedistName, PackageMeta]
    packages: dict[str, PackageMeta]


class Fixup(Reasoned):
    """A user's change to a package, in all sets or some."""

    package: str
    cuda: Bounds = Field(default=Bounds(), description="CUDA releases. Absent: all")
    platform: str | None = optional(_PLATFORM)
    outputs: tuple[OutputName, ...] | None = optional("The exact list of outputs, `out` first")
    broken: str | None = optional("Mark the package broken, with this reason")
    withheld: str | None = optional("Omit the package, with this reason")
    depends: tuple[str, ...] | None = optional("Additional dependencies")


class WheelRelease(Reasoned):
    """The wheels of a release whose metapackage requires other ones."""

    versions: dict[str, VersionText] = Field(description="Version of the wheel by package")


class WheelPolicy(OwnFile):
    """`policy/wheels.json`: wheels of releases with wrong metapackages."""

    metapackages: dict[str, dict[VersionText, WheelRelease]] = Field(
        description="By redistributable (cuda, cuquantum, nvpl) and release"
    )

    @field_validator("metapackages")
    @classmethod
    def _have_metapackages(cls, releases: dict[str, Any]) -> dict[str, Any]:
        known = sorted(set(METAPACKAGES.values()))
        unknown = sorted(releases.keys() - known)
        if unknown:
            names = ", ".join(known)
            raise ValueError(f"{unknown[0]} has no metapackage. Redistributables with one: {names}")
        return releases


class FixupPolicy(SetPolicy):
    """`policy/fixups.json`: a user's changes, and addresses of added packages."""

    fixups: tuple[Fixup, ...]
    urls: dict[str, Annotated[str, Field(pattern="^[a-z][a-z0-9+.-]*://")]] = Field(
        default={}, description="Base address of archives, by redistributable"
    )
