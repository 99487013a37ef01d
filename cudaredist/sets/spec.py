"""Resolution of a request: every name becomes exact here, once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.packageset import Cross, Flags
from cudaredist.hints import again, command_for_archives, command_line, correction_line, takes
from cudaredist.primitives import JETSON, SBSA, Platform, Version
from cudaredist.redists import CUDA
from cudaredist.sets.flags import capability_problems, make_flags, release_defaults, set_attribute
from cudaredist.sets.inputs import InputManifest, Policies, SetData
from cudaredist.sets.platforms import (
    UNSUPPORTED,
    below_threshold,
    jetson_defaults,
    platform_of_system,
)
from cudaredist.sets.request_options import RequestOptions
from cudaredist.sets.requirements import SetTarget
from cudaredist.sets.set_coverage import RequiredCoverage
from cudaredist.sets.version_choice import find_manifest
from cudaredist.store.selection import ALL
from cudaredist.tables.gpus.gpu_names import capability_of
from cudaredist.tables.gpus.gpu_table import supported_capabilities
from cudaredist.words import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A user's request for one or several sets."""

    platform: str | None = None
    system: str | None = None
    """A Nix system, an alternative to the platform."""
    capabilities: tuple[str, ...] = ()
    """Capabilities or names of GPUs. Empty: the defaults of the release on the platform.

    `all`: a set for each capability.
    """
    forward_compat: bool | None = None
    """Whether to embed PTX for later GPUs. None: if possible."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """Release by redistributable; all others are selected automatically."""
    also: tuple[tuple[str, str], ...] = ()
    """Additional releases with their redistributables, under versioned names."""
    default_gcc: int | None = None
    available_gcc: tuple[int, ...] = ()
    wheel_base: str | None = None
    """Base URL of the wheels' paths."""
    allow: frozenset[str] = frozenset()
    """The redistributables and packages to use although policy calls them broken."""
    allow_missing_features: bool = False
    allow_hollow: bool = False
    """Whether to build a set without nvcc or cudart."""
    require_coverage: RequiredCoverage | None = None
    """The coverage that selected releases must have for every capability."""
    cross: Cross | None = None
    """The pair to which the set belongs."""
    with_files: bool = False
    """Whether packages list their files by output."""
    name: str | None = None
    """The name of a declared set. None: it has no name of its own."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Release or line by alias, instead of policy's aliases."""
    alias_labels: tuple[Version, ...] = ()
    """The CUDA releases to which aliases can refer. Empty: all local ones."""
    alias_fallback: bool = False
    """Whether an alias follows to the newest minor if there is none of policy's minor."""
    options: RequestOptions = field(default_factory=RequestOptions)
    """The options of the command, for messages and hints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSpec:
    """One package set to build from data, with all names resolved."""

    cuda: Version
    platform: Platform
    flags: Flags
    pins: Mapping[str, InputManifest]
    also: tuple[InputManifest, ...]
    request: Request
    data: SetData

    @property
    def target(self) -> SetTarget:
        """The target for policy's requirements."""
        return SetTarget(self.cuda, self.platform, self.flags.effective)

    @property
    def policies(self) -> Policies:
        """The policies of the data."""
        return self.data.policies


class RefusedSet(NamedTuple):
    """A package set that cannot be built, and the reason."""

    cuda: Version
    platform: Platform | None
    """None if the Nix system has no platform."""
    error: UsageError
    is_unpublished: bool = False
    """Whether the reason is that the release is not published for the platform."""


def requests_by_capability(request: Request, cuda: Version, data: SetData) -> list[Request]:
    """Return a request for each capability of a release if all are requested.

    Like the sets in nixpkgs' `pkgsForCudaArch`, each is without portable code. Capabilities without
    a build for the platform or system are omitted. If there are none, `resolve_set` refuses the
    result with the reason.
    """
    if ALL not in request.capabilities:
        return [request]
    try:
        names = supported_capabilities(cuda.line, data.gpus)
    except UnknownNameError:
        names = ()
    return [
        replace(request, capabilities=(name,), forward_compat=False)
        for name in names
        if _has_build(name, request, cuda, data)
    ] or [replace(request, capabilities=())]


def _has_build(name: str, request: Request, cuda: Version, data: SetData) -> bool:
    of_system = platform_of_system(request.system or "", (name,), cuda, data)
    platform = Platform(request.platform or of_system)
    if not request.allow_hollow and platform not in data.cuda_platforms(cuda):
        return False
    if platform == JETSON:
        return name in jetson_defaults(cuda, data)
    return not any(_jetson_problems(request, (name,), platform, cuda, data))


def resolve_set(request: Request, cuda: Version, data: SetData) -> SetSpec | RefusedSet:
    """Resolve a request for one CUDA release.

    Raises `UsageError` for names that are wrong for every release.
    """
    names = tuple(capability_of(text, data.gpus, cuda.line) for text in request.capabilities)
    request = replace(request, capabilities=names)
    pins = {name: find_manifest(name, text, cuda, data) for name, text in request.pins.items()}
    also = tuple(find_manifest(*release, cuda, data) for release in dict.fromkeys(request.also))
    named = None if request.platform is None else _check_platform(request.platform, data)
    platform = named
    for name in sorted(request.allow - data.manifests.keys() - data.names.keys()):
        raise UnknownNameError("redistributable or package", name, [*data.manifests, *data.names])
    try:
        platform = _resolve_platform(request, named, cuda, data)
        if not request.allow_hollow and platform not in data.cuda_platforms(cuda):
            unpublished = _unpublished(request, platform, cuda, data)
            return RefusedSet(cuda, named, unpublished, is_unpublished=True)
        for_jetsons = jetson_defaults(cuda, data) if platform == JETSON else ()
        default = for_jetsons or release_defaults(cuda, data.gpus)
        flags = make_flags(
            names,
            default,
            cuda,
            data.gpus,
            forward_compat=request.forward_compat,
            options=request.options,
        )
    except UsageError as error:
        return RefusedSet(cuda, platform, error)
    if CUDA in dict(request.also):
        hint = "build a separate set for each release"
        several = UsageError("a set has only one CUDA release", hint=hint)
        return RefusedSet(cuda, platform, several)
    return SetSpec(
        cuda=cuda, platform=platform, flags=flags, pins=pins, also=also, request=request, data=data
    )


def _check_platform(name: str, data: SetData) -> Platform:
    if name not in data.platforms:
        other = name.replace("amd64", "x86_64").replace("arm64", "aarch64")
        similar = [other] if other in data.platforms else []
        raise UnknownNameError("platform", name, data.platforms, similar)
    return Platform(name)


def _resolve_platform(
    request: Request, named: Platform | None, cuda: Version, data: SetData
) -> Platform:
    """Return the platform for the requested name or Nix system.

    Raises one `UsageError` for all problems with the capabilities.
    """
    good, problems = capability_problems(request.capabilities, cuda, data.gpus)
    platform = named
    if platform is None:
        capabilities = good or release_defaults(cuda, data.gpus)
        platform = platform_of_system(request.system or "", capabilities, cuda, data)
    problems += _jetson_problems(request, good, platform, cuda, data)
    if problems:
        message = f"{set_attribute(cuda.line)}: {'; '.join(problems)}"
        raise UsageError(message, hint=_capability_hint(request, cuda, data))
    return platform


def _capability_hint(request: Request, cuda: Version, data: SetData) -> str:
    """Suggest the newest local release with all requested capabilities, if another one has them."""
    fitting = [
        label
        for label in data.cuda_labels
        if not capability_problems(request.capabilities, label, data.gpus)[1]
    ]
    if fitting and cuda not in fitting and takes(request.options.gpu):
        return f"run `{again(cuda=fitting[-1].line)}`"
    return f"run `{command_line(f'explain cuda {cuda.line}')}` to list its capabilities"


def _jetson_problems(
    request: Request,
    capabilities: Sequence[str],
    platform: Platform,
    cuda: Version,
    data: SetData,
) -> Iterable[str]:
    """Yield the reasons against the Jetsons of a request's capabilities."""
    jetson = [name for name in capabilities if data.gpus.capabilities[name].jetson]
    below = below_threshold(capabilities, cuda, data)
    others = [name for name in capabilities if name not in below]
    above = [name for name in jetson if name not in below]
    if jetson and platform not in {JETSON, SBSA}:
        yield (
            f"capability {', '.join(jetson)} is a Jetson GPU, but {platform} has no Jetson build: "
            f"use {request.options.system} aarch64-linux"
        )
    if below and others:
        yield (
            f"capability {', '.join(below)} is a Jetson with its own build in CUDA {cuda}, so it "
            f"cannot be in one set with {', '.join(others)}: build a separate set for each"
        )
    elif below and platform == SBSA:
        yield f"in CUDA {cuda}, {', '.join(below)} requires {JETSON}, not {SBSA}"
    elif above and platform == JETSON:
        yield f"in CUDA {cuda}, {', '.join(above)} requires {SBSA}, not {JETSON}"


def _unpublished(request: Request, platform: Platform, cuda: Version, data: SetData) -> UsageError:
    if platform == UNSUPPORTED:
        known = data.policies.platforms.platforms.values()
        systems = {name for entry in known for name in entry.nix_systems}
        return UnknownNameError("supported Nix system", request.system or "", systems)
    published = data.cuda_platforms(cuda)
    if data.channel == "wheels":
        return _without_wheels(platform, cuda, data, published)
    hint = f"published: {', '.join(published)}"
    # In a pair, few other platforms are possible.
    hint = hint if request.cross else correction_line(hint, platform, published)
    return UsageError(f"CUDA {cuda} is not published for {platform}", hint=hint)


def _without_wheels(
    platform: Platform, cuda: Version, data: SetData, published: Sequence[Platform]
) -> UsageError:
    """Return the error for a platform for which a CUDA release has no wheels."""
    archives = data.archives_of_cuda(cuda)
    names = {archive.package for archive in archives if archive.platform == platform}
    message = f"CUDA {cuda} has no wheels for {platform}"
    if not names:
        hint = f"wheels: {', '.join(published)}"
        return UsageError(message, hint=correction_line(hint, platform, published))
    message += f", but NVIDIA's manifest has archives of {plural(len(names), 'package')}"
    about = {"redist": CUDA, "version": cuda}
    download = command_for_archives("download-manifests", **about)
    inspect = command_for_archives("process-manifests", **about, platform=platform)
    hint = f"run `{download} && {inspect} && {again(channel='redist')}`"
    return UsageError(message, hint=hint)
