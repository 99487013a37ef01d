"""From the words of a request to the exact package set: every name is resolved here, once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.packagesets.flags import (
    capability_problems,
    make_flags,
    release_defaults,
    set_attribute,
)
from cudaredist.packagesets.inputs import HeldManifest, SetData
from cudaredist.packagesets.platforms import (
    JETSON,
    SBSA,
    UNSUPPORTED,
    below_threshold,
    jetson_defaults,
    platform_of_system,
)
from cudaredist.packagesets.requirements import SetTarget
from cudaredist.packagesets.set_coverage import RequiredCoverage
from cudaredist.packagesets.version_choice import find_release
from cudaredist.primitives import Platform, Version
from cudaredist.redists import CUDA
from cudaredist.schema.packageset import Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """Options that need no resolution."""

    default_gcc: int | None = None
    available_gcc: tuple[int, ...] = ()
    wheel_base: str | None = None
    """Address that the wheels' paths are relative to."""
    allow_missing_features: bool = False
    allow_hollow: bool = False
    """Whether to make a set without nvcc or cudart."""
    require_coverage: RequiredCoverage | None = None
    """The coverage of every capability that chosen releases must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(SetOptions):
    """A request for one set or for several, in the user's words."""

    platform: str | None = None
    system: str | None = None
    """A Nix system, instead of the platform."""
    capabilities: tuple[str, ...] = ()
    """Empty: the defaults of the release on the platform."""
    forward_compat: bool | None = None
    """Whether to embed portable code; None: if possible."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """Release by redistributable; the others are chosen."""
    also: tuple[tuple[str, str], ...] = ()
    """Further releases, by redistributable, under versioned names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSpec:
    """One package set to build, with all names resolved."""

    cuda: Version
    platform: Platform
    nix_system: str | None
    """As requested; None: the platform's own."""
    flags: Flags
    pins: Mapping[str, HeldManifest]
    also: tuple[HeldManifest, ...]
    options: SetOptions

    @property
    def target(self) -> SetTarget:
        """What policy's requirements are about."""
        return SetTarget(self.cuda, self.platform, self.flags.effective)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The requested capabilities; empty: the defaults."""
        return self.flags.requested


@dataclass(frozen=True, slots=True)
class RefusedSet:
    """A package set that cannot be built, and the reason."""

    cuda: Version
    capabilities: tuple[str, ...]
    platform: Platform | None
    """None: no platform was found for the Nix system."""
    error: UsageError
    is_unpublished: bool = False
    """Whether the reason is that the release is not published for the platform."""


def resolve_set(request: Request, cuda: Version, data: SetData) -> SetSpec | RefusedSet:
    """Resolve a request for one CUDA release.

    Raises `UsageError` for names that are wrong for every release.
    """
    pins = {redist: find_release(redist, label, data) for redist, label in request.pins.items()}
    also = [find_release(redist, label, data) for redist, label in dict.fromkeys(request.also)]
    named = None if request.platform is None else _check_platform(request.platform, data)
    platform = named
    try:
        platform = _resolve_platform(request, named, cuda, data)
        if not request.allow_hollow and platform not in data.cuda_platforms(cuda):
            unpublished = _unpublished(request.system, platform, cuda, data)
            return RefusedSet(cuda, request.capabilities, named, unpublished, is_unpublished=True)
        flags = make_flags(
            request.capabilities,
            _default_capabilities(platform, cuda, data),
            cuda,
            data.gpus,
            forward_compat=request.forward_compat,
        )
    except UsageError as error:
        return RefusedSet(cuda, request.capabilities, platform, error)
    if CUDA in dict(request.also):
        several = UsageError("a set is for one release of CUDA", hint="build one set for each")
        return RefusedSet(cuda, request.capabilities, platform, several)
    return SetSpec(
        cuda=cuda,
        platform=platform,
        nix_system=request.system,
        flags=flags,
        pins=pins,
        also=tuple(also),
        options=request,
    )


def _check_platform(name: str, data: SetData) -> Platform:
    if name not in data.platforms:
        raise UnknownNameError("platform", name, data.platforms)
    return Platform(name)


def _resolve_platform(
    request: Request, named: Platform | None, cuda: Version, data: SetData
) -> Platform:
    """Return the platform requested by its name or by a Nix system.

    Raises one `UsageError` for all that is wrong with the capabilities.
    """
    good, problems = capability_problems(request.capabilities, cuda, data.gpus)
    platform = named
    if platform is None:
        capabilities = good or release_defaults(cuda, data.gpus)
        policy = data.policies.platforms
        platform = platform_of_system(request.system or "", capabilities, cuda, policy, data.gpus)
    problems += _jetson_problems(good, platform, cuda, data)
    if problems:
        raise UsageError(
            f"{set_attribute(cuda.line)}: {'; '.join(problems)}",
            hint=f"cudaredist explain cuda {cuda.line} lists what it supports",
        )
    return platform


def _default_capabilities(platform: Platform, cuda: Version, data: SetData) -> tuple[str, ...]:
    """Return the capabilities of a platform's GPUs that a set is for by default."""
    default = release_defaults(cuda, data.gpus)
    if platform != JETSON:
        return default
    return jetson_defaults(cuda, data.policies.platforms, data.gpus) or default


def _jetson_problems(
    requested: Sequence[str], platform: Platform, cuda: Version, data: SetData
) -> Iterable[str]:
    """Yield the reasons why the Jetsons among the capabilities cannot be in one set."""
    jetson = [name for name in requested if data.gpus.capabilities[name].jetson]
    below = below_threshold(requested, cuda, data.policies.platforms, data.gpus)
    others = [name for name in requested if name not in below]
    above = [name for name in jetson if name not in below]
    if jetson and platform not in {JETSON, SBSA}:
        yield (
            f"{platform} is no platform of Jetsons, which {', '.join(jetson)} stands for: take "
            "--system aarch64-linux"
        )
    if below and others:
        yield (
            f"{', '.join(below)} stands for Jetsons that have builds of their own in CUDA {cuda}, "
            f"so that {', '.join(others)} cannot be in the same set: build one set for each"
        )
    elif below and platform == SBSA:
        yield f"in CUDA {cuda}, {JETSON} and not {SBSA} serves {', '.join(below)}"
    elif above and platform == JETSON:
        yield f"in CUDA {cuda}, {SBSA} and not {JETSON} serves {', '.join(above)}"


def _unpublished(
    system: str | None, platform: Platform, cuda: Version, data: SetData
) -> UsageError:
    if platform == UNSUPPORTED:
        known = data.policies.platforms.platforms.values()
        systems = {name for entry in known for name in entry.nix_systems}
        return UnknownNameError("Nix system that NVIDIA publishes for", system or "", systems)
    return UsageError(
        f"CUDA {cuda} is not published for {platform}",
        hint=f"published: {', '.join(data.cuda_platforms(cuda))}",
    )
