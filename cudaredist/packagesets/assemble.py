"""From data and a request to a package set: the one function all of this is for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cudaredist.errors import IncompleteError, InvalidFileError, UsageError
from cudaredist.packagesets.data import HeldManifest, SetData, policy_problems
from cudaredist.packagesets.draft import Draft
from cudaredist.packagesets.entries import MissingFeatures, Target, make_entries
from cudaredist.packagesets.finish import finish
from cudaredist.packagesets.flags import (
    check_capabilities,
    effective_capabilities,
    make_flags,
    set_attribute,
)
from cudaredist.packagesets.hosts import choose_host
from cudaredist.packagesets.libraries import connect, external_sonames, soname_index
from cudaredist.packagesets.platforms import (
    UNSUPPORTED,
    below_threshold,
    platform_of_system,
    threshold_of,
)
from cudaredist.packagesets.versions import Choice, choose_releases, find_cuda, find_release
from cudaredist.primitives import Version, manifest_name
from cudaredist.schema import (
    PACKAGE_SET_FORMAT,
    CudaRelease,
    Diagnostic,
    Flags,
    Input,
    PackageSet,
    SetPlatform,
)

ESSENTIAL = ("cuda_nvcc", "cuda_cudart")
"""Packages without which a set is of no use to anyone."""

_ORIN_ON_SERVER_BUILD = Version.parse("13.2")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Which set is asked for."""

    cuda: str
    """A label held, or a minor."""
    platform: str | None = None
    system: str | None = None
    """A Nix system, instead of the platform."""
    capabilities: tuple[str, ...] = ()
    """As asked for; empty: the release's defaults."""
    forward_compat: bool | None = None
    """Whether to embed portable code; None: where it can be."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """Release by redistributable; the others are chosen."""
    also: tuple[tuple[str, str], ...] = ()
    """Further releases, by redistributable, under versioned names."""
    default_gcc: int | None = None
    available_gcc: tuple[int, ...] = ()
    wheel_base: str | None = None
    """Address that the wheels' paths are relative to."""
    allow_missing_features: bool = False
    allow_hollow: bool = False
    """Whether a set without nvcc or cudart may be made."""


def build_set(request: Request, data: SetData) -> PackageSet:
    """Return the package set asked for; the same data and request give the same set.

    Raises `UsageError` where the request cannot be met, `IncompleteError` where features are
    missing, `InvalidFileError` where policies contradict themselves.
    """
    problems = policy_problems(data.policies)
    if problems:
        raise InvalidFileError("policy", problems)
    cuda = find_cuda(request.cuda, data)
    platform = resolve_platform(request, data)
    flags = make_flags(request.capabilities, cuda, data.gpus, forward_compat=request.forward_compat)
    target = Target(cuda, platform, flags.effective)
    choices = choose_releases(cuda, platform, request.pins, data)
    also = [find_release(redist, label, data) for redist, label in request.also]
    entries, missing = make_entries(target, choices, also, data)
    if missing and not request.allow_missing_features:
        raise _missing_error(missing, target)
    aliases = _aliases(entries, data)
    real = {name: aliases.get(name, name) for name in entries}
    for name in aliases:
        del entries[name]
    diagnostics = connect(entries, real, target, data)
    _add_compat(entries, target, data)
    packages = {
        attr: finish(draft, target, data, wheel_base=request.wheel_base)
        for attr, draft in entries.items()
    }
    for name, to in aliases.items():
        packages[name] = packages[to].model_copy(update={"attr": name, "alias_of": to})
    hollow = [
        name for name in ESSENTIAL if name not in packages or packages[name].status != "available"
    ]
    if hollow and not request.allow_hollow:
        raise _hollow_error(hollow, entries, target, request)
    diagnostics += _diagnostics(entries, missing, hollow, flags, target, data)
    return PackageSet(
        schema_version=1,
        schema=PACKAGE_SET_FORMAT,
        channel=data.channel,
        inputs=tuple(_inputs(choices, also, data)),
        cuda=_cuda_release(cuda, data),
        platform=_set_platform(platform, flags, request, data),
        capabilities=flags,
        host_compiler=choose_host(
            cuda, data.nvcc, default=request.default_gcc, available=request.available_gcc
        ),
        redists={name: choice.chosen for name, choice in choices.items()},
        packages=dict(sorted(packages.items())),
        sonames=soname_index(entries.values()),
        external=external_sonames(entries.values(), data),
        diagnostics=tuple(sorted(diagnostics, key=lambda d: (d.level, d.code, d.subject, d.text))),
    )


# -- platform


def resolve_platform(request: Request, data: SetData) -> str:
    """Return the platform asked for, or what a Nix system means; `UsageError` if it cannot be."""
    cuda, policy = find_cuda(request.cuda, data), data.policies.platforms
    check_capabilities(request.capabilities, cuda, data.gpus)
    capabilities = effective_capabilities(request.capabilities, cuda, data.gpus)
    if request.platform is None:
        if request.system is None:
            raise UsageError("a set is for a platform", hint="name --platform or --system")
        platform = platform_of_system(request.system, capabilities, cuda, policy, data.gpus)
    else:
        platform = request.platform
    jetson = [name for name in request.capabilities if data.gpus.capabilities[name].jetson]
    below = below_threshold(request.capabilities, cuda, policy, data.gpus)
    if jetson and platform not in {"linux-aarch64", "linux-sbsa"}:
        raise UsageError(
            f"{', '.join(jetson)} are Jetson's, and {platform} is no platform of a Jetson's",
            hint="take --system aarch64-linux",
        )
    if below and set(below) != set(request.capabilities):
        others = [name for name in request.capabilities if name not in below]
        raise UsageError(
            f"{', '.join(below)} are of Jetsons that have builds of their own in CUDA {cuda}, "
            f"so {', '.join(others)} cannot be in the same set",
            hint="build one set for each",
        )
    if below and platform == "linux-sbsa":
        raise UsageError(
            f"in CUDA {cuda}, {', '.join(below)} are served by linux-aarch64, not by linux-sbsa",
            hint="take --platform linux-aarch64, or --system aarch64-linux",
        )
    if platform != UNSUPPORTED and platform not in data.cuda_platforms(cuda):
        published = ", ".join(data.cuda_platforms(cuda))
        if not request.allow_hollow:
            raise UsageError(
                f"CUDA {cuda} is not published for {platform}", hint=f"published: {published}"
            )
    return platform


def _set_platform(platform: str, flags: Flags, request: Request, data: SetData) -> SetPlatform:
    known = data.policies.platforms.platforms.get(platform)
    systems = known.nix_systems if known else ()
    return SetPlatform(
        redist_system=platform,
        nix_system=request.system or (systems[0] if systems else None),
        pkgs_cross=known.pkgs_cross if known else None,
        elf_machine=known.elf_machine if known else None,
        jetson=any(data.gpus.capabilities[name].jetson for name in flags.effective),
    )


# -- names


def _aliases(entries: Mapping[str, Draft], data: SetData) -> dict[str, str]:
    """Return which names of the set are other names of which.

    Of a package that was renamed, the name that the release has is the entry, and the other one
    leads to it.
    """
    names = data.policies.names
    found = {}
    for old, rename in names.renames.items():
        pair = [name for name in (rename.to, old) if name in entries]
        is_published = [name for name in pair if entries[name].package is not None]
        if len(pair) == 2 and len(is_published) == 1:  # noqa: PLR2004 - the old name and the new
            other = next(name for name in pair if name not in is_published)
            found[other] = is_published[0]
    for name, alias in names.aliases.items():
        if name in entries and alias.to in entries and entries[name].package is None:
            found[name] = found.get(alias.to, alias.to)
    return found


def _cuda_release(cuda: Version, data: SetData) -> CudaRelease:
    major = str(cuda.components[0])
    short = data.policies.names.sets
    aliases = []
    if short.majors.get(major) == cuda.line:
        aliases.append(f"cudaPackages_{major}")
        if short.default == major:
            aliases.append("cudaPackages")
    return CudaRelease(
        release=str(cuda),
        major_minor=cuda.line,
        major=major,
        attribute=set_attribute(cuda),
        name_prefix=f"cuda{cuda.line}",
        aliases=tuple(aliases),
    )


def _add_compat(entries: Mapping[str, Draft], target: Target, data: SetData) -> None:
    for entry in data.policies.libraries.compat_run_path:
        compat = entries.get(entry.package)
        if compat is None or not compat.is_available or entry.platform != target.platform:
            continue
        for draft in entries.values():
            draft.compat_runpath |= draft.is_available and draft is not compat


# -- inputs, findings, refusals


def _inputs(
    choices: Mapping[str, Choice], also: Sequence[HeldManifest], data: SetData
) -> Iterable[Input]:
    used = {
        (held.redist, held.label): held
        for held in [*(choice.held for choice in choices.values()), *also]
        if held is not None
    }
    for _, held in sorted(used.items()):
        yield Input(
            kind="manifest",
            name=held.redist,
            label=str(held.label),
            sha256=held.sha256,
            overlay=held.is_overlay,
        )
        features = data.read_features(held.redist, held.label)
        if features is not None:
            yield Input(
                kind="features",
                name=held.redist,
                label=str(held.label),
                sha256=features.sha256,
                overlay=features.is_overlay,
            )
    yield from data.inputs


def _diagnostics(
    entries: Mapping[str, Draft],
    missing: Sequence[MissingFeatures],
    hollow: Sequence[str],
    flags: Flags,
    target: Target,
    data: SetData,
) -> Iterable[Diagnostic]:
    if missing:
        yield Diagnostic(
            level="warning",
            code="features-missing",
            subject="packages",
            text=f"{len(missing)} packages were not examined, so that their outputs and libraries "
            f"are unknown: {', '.join(item.package for item in missing)}",
        )
    for name in hollow:
        text = "not available, so that nothing can be compiled with this set"
        yield Diagnostic(level="warning", code="hollow", subject=name, text=text)
    jetson = [name for name in flags.effective if data.gpus.capabilities[name].jetson]
    threshold = threshold_of(target.cuda, data.policies.platforms)
    if (
        target.platform == "linux-sbsa"
        and jetson
        and threshold is not None
        and threshold.capability in jetson
        and threshold.cuda.min is not None
        and target.cuda.components < _ORIN_ON_SERVER_BUILD.components
    ):
        yield Diagnostic(
            level="warning",
            code="jetson-unsupported",
            subject=", ".join(jetson),
            text=threshold.reason,
        )
    if target.platform == "linux-aarch64" and not jetson:
        yield Diagnostic(
            level="note",
            code="no-jetson-capability",
            subject=", ".join(flags.effective),
            text="linux-aarch64 is Jetson's, and no capability of a Jetson's is asked for",
        )
    for draft in entries.values():
        if draft.status == "broken":
            yield Diagnostic(
                level="warning",
                code="broken",
                subject=draft.attr,
                text="; ".join(reason.text for reason in draft.reasons),
            )
        for need in draft.needs if draft.is_available else ():
            if need.satisfied_by is None:
                text = f"{need.by_path} loads {need.soname}, which the set lacks"
                yield Diagnostic(
                    level="warning", code="unresolved-dlopen", subject=draft.attr, text=text
                )


def _missing_error(missing: Sequence[MissingFeatures], target: Target) -> IncompleteError:
    named = "; ".join(f"{item.package} ({item.reason})" for item in missing[:_SHOWN])
    more = f"; and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return IncompleteError(
        f"CUDA {target.cuda} on {target.platform}: features are missing of {len(missing)} "
        f"packages: {named}{more}",
        hint="cudaredist process-manifests makes them; --allow-missing-features goes on without",
    )


def _hollow_error(
    hollow: Sequence[str], entries: Mapping[str, Draft], target: Target, request: Request
) -> UsageError:
    texts = [
        f"{name} ({'; '.join(r.text for r in entries[name].reasons) or entries[name].status})"
        if name in entries
        else f"{name} (no manifest held names it)"
        for name in hollow
    ]
    where = request.system if target.platform == UNSUPPORTED else target.platform
    return UsageError(
        f"CUDA {target.cuda} on {where} would be a set without {' and '.join(texts)}",
        hint=f"see {manifest_name(target.cuda)}; --allow-hollow makes it all the same",
    )
