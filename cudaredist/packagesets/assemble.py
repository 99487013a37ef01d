"""From data and a request to a package set: the one function all of this is for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cudaredist.errors import IncompleteError, InvalidFileError, UnknownNameError, UsageError
from cudaredist.packagesets.draft import Draft
from cudaredist.packagesets.entries import MissingFeatures, Target, find_aliases, make_entries
from cudaredist.packagesets.flags import (
    capability_problems,
    effective_capabilities,
    make_flags,
    set_attribute,
)
from cudaredist.packagesets.host_compiler import choose_host
from cudaredist.packagesets.inputs import CUDA, HeldManifest, SetData
from cudaredist.packagesets.libraries import (
    connect,
    external_sonames,
    soname_index,
    unread_files,
)
from cudaredist.packagesets.metadata import finish
from cudaredist.packagesets.platforms import (
    UNSUPPORTED,
    below_threshold,
    platform_of_system,
    threshold_of,
)
from cudaredist.packagesets.version_choice import Choice, choose_releases, find_cuda, find_release
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
    if data.problems:
        raise InvalidFileError("policy", data.problems)
    cuda = find_cuda(request.cuda, data)
    platform = resolve_platform(request, data)
    flags = make_flags(request.capabilities, cuda, data.gpus, forward_compat=request.forward_compat)
    target = Target(cuda, platform, flags.effective)
    choices = choose_releases(cuda, platform, request.pins, data)
    also = _also(request, data)
    entries, missing = make_entries(target, choices, also, data)
    if missing and not request.allow_missing_features:
        raise _missing_error(missing, target)
    aliases = find_aliases(entries, data)
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


def _also(request: Request, data: SetData) -> list[HeldManifest]:
    if CUDA in dict(request.also):
        raise UsageError("a set is for one release of CUDA", hint="build one set for each")
    return [find_release(redist, label, data) for redist, label in dict.fromkeys(request.also)]


# -- platform


def resolve_platform(request: Request, data: SetData) -> str:
    """Return the platform asked for, or what a Nix system means; `UsageError` if it cannot be.

    All that is wrong with the capabilities is said at once.
    """
    cuda, policy = find_cuda(request.cuda, data), data.policies.platforms
    good, problems = capability_problems(request.capabilities, cuda, data.gpus)
    if request.platform is not None:
        platform = request.platform
        check_platform(platform, data)
    elif request.system is not None:
        capabilities = good or effective_capabilities((), cuda, data.gpus)
        platform = platform_of_system(request.system, capabilities, cuda, policy, data.gpus)
    else:
        raise UsageError("a set is for a platform", hint="name --platform or --system")
    problems += _jetson_problems(good, platform, cuda, data)
    if problems:
        raise UsageError(
            f"{set_attribute(cuda)}: {'; '.join(problems)}",
            hint=f"cudaredist explain cuda {cuda.line} lists what it supports",
        )
    if not request.allow_hollow:
        _check_published(request, platform, cuda, data)
    return platform


def check_platform(name: str, data: SetData) -> None:
    """Raise `UsageError`, which suggests the nearest, for a platform that nothing names."""
    if name not in data.platforms:
        raise UnknownNameError("platform", name, data.platforms)


def _jetson_problems(
    requested: Sequence[str], platform: str, cuda: Version, data: SetData
) -> Iterable[str]:
    """Yield why the Jetsons among the capabilities asked for cannot be in one set."""
    jetson = [name for name in requested if data.gpus.capabilities[name].jetson]
    below = below_threshold(requested, cuda, data.policies.platforms, data.gpus)
    others = [name for name in requested if name not in below]
    above = [name for name in jetson if name not in below]
    if jetson and platform not in {"linux-aarch64", "linux-sbsa"}:
        yield (
            f"{platform} is no platform of Jetsons, which {', '.join(jetson)} stands for: take "
            "--system aarch64-linux"
        )
    if below and others:
        yield (
            f"{', '.join(below)} stands for Jetsons that have builds of their own in CUDA {cuda}, "
            f"so that {', '.join(others)} cannot be in the same set: build one set for each"
        )
    elif below and platform == "linux-sbsa":
        yield f"in CUDA {cuda}, linux-aarch64 and not linux-sbsa serves {', '.join(below)}"
    elif above and platform == "linux-aarch64":
        yield f"in CUDA {cuda}, linux-sbsa and not linux-aarch64 serves {', '.join(above)}"


def _check_published(request: Request, platform: str, cuda: Version, data: SetData) -> None:
    if platform == UNSUPPORTED:
        known = data.policies.platforms.platforms.values()
        systems = {system for entry in known for system in entry.nix_systems}
        raise UnknownNameError(
            "Nix system that NVIDIA publishes for", request.system or "", systems
        )
    if platform not in data.cuda_platforms(cuda):
        raise UsageError(
            f"CUDA {cuda} is not published for {platform}",
            hint=f"published: {', '.join(data.cuda_platforms(cuda))}",
        )


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
            f"are unknown: {_some([item.package for item in missing], ', ')}",
        )
    for name in hollow:
        text = "not available, so that nothing can be compiled with this set"
        yield Diagnostic(level="warning", code="hollow", subject=name, text=text)
    yield from _platform_diagnostics(flags, target, data)
    for fixup in data.policies.fixups.fixups:
        if data.names[fixup.package].redist is None:
            yield Diagnostic(
                level="warning",
                code="unknown-package",
                subject=fixup.package,
                text="a fixup is about it, and no manifest held names it",
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
        for path, fields in unread_files(draft) if draft.is_available else ():
            text = (
                f"{path}: {', '.join(fields)} could not be read, and are unknown rather than none"
            )
            yield Diagnostic(level="warning", code="unread", subject=draft.attr, text=text)


def _platform_diagnostics(flags: Flags, target: Target, data: SetData) -> Iterable[Diagnostic]:
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


def _some(texts: Sequence[str], separator: str) -> str:
    """Join the first few texts, and say how many more there are."""
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return separator.join([*texts[:_SHOWN], *more])


def _missing_error(missing: Sequence[MissingFeatures], target: Target) -> IncompleteError:
    named = _some([f"{item.package} ({item.reason})" for item in missing], "; ")
    return IncompleteError(
        f"CUDA {target.cuda} on {target.platform}: features are missing of {len(missing)} "
        f"packages: {named}",
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
