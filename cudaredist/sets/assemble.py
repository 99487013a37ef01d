"""Assembly of a package set."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from packaging.specifiers import SpecifierSet
from packaging.version import Version as WheelVersion

from cudaredist.errors import IncompleteError, UsageError
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.packageset import (
    PACKAGE_SET_FORMAT,
    CudaRelease,
    Diagnostic,
    Input,
    OutsideSet,
    PackageSet,
    SetPackage,
    SetPlatform,
    Status,
)
from cudaredist.formats.set_policy import Bounds
from cudaredist.hints import again, command_line, takes
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import JETSON, Version, find_release, manifest_name
from cudaredist.redists import CUDA
from cudaredist.sets.bounds import is_within
from cudaredist.sets.cuda_releases import broken_constraints, is_for_later_cuda
from cudaredist.sets.distributions import find_distributions, is_old_library, old_library_text
from cudaredist.sets.draft import PRECEDENCE, Draft
from cudaredist.sets.drivers import find_driver
from cudaredist.sets.entries import find_aliases, make_entries
from cudaredist.sets.flags import set_attribute
from cudaredist.sets.host_compiler import choose_host
from cudaredist.sets.inputs import InputFeatures, InputManifest, SetData
from cudaredist.sets.libraries import (
    external_sonames,
    note,
    resolve_dependencies,
    soname_index,
    warning,
)
from cudaredist.sets.library_names import find_external
from cudaredist.sets.metadata import make_package
from cudaredist.sets.platforms import (
    UNSUPPORTED,
    select_archive,
)
from cudaredist.sets.release_pairs import with_pairs
from cudaredist.sets.requested_releases import requested_diagnostics
from cudaredist.sets.requirements import (
    package_problems,
    requirement_problems,
    requirements_of,
)
from cudaredist.sets.set_coverage import coverage_diagnostics, jetson_diagnostics
from cudaredist.sets.spec import SetSpec
from cudaredist.sets.stated_cuda import is_cuda_known
from cudaredist.sets.version_choice import (
    Choice,
    choose_releases,
)
from cudaredist.wheels import parse_wheel
from cudaredist.words import listed, shortened

ESSENTIAL = ("cuda_nvcc", "cuda_cudart")
"""Packages that every compilation requires."""

OLDER_RELEASE = "older-release"
"""The diagnostic code of a release that was selected for its coverage."""

_SHOWN = 5


def build_set(spec: SetSpec) -> PackageSet:
    """Build a package set.

    The same data and spec always give the same set. Unless the options allow it, raises
    `UsageError` if nvcc or cudart is not available, and `IncompleteError` if features are missing.
    """
    data, request = spec.data, spec.request
    choices = choose_releases(spec.target, spec.pins, data, coverage=request.require_coverage)
    entries = make_entries(spec, choices)
    missing = [draft for draft in entries.values() if draft.missing and draft.is_available]
    if missing and not request.allow_missing_features:
        raise _missing_error(missing, spec)
    aliases = find_aliases(entries, data)
    own = {name: draft for name, draft in entries.items() if name not in aliases}
    drafts, diagnostics = resolve_dependencies(own, aliases, spec)
    drafts = with_pairs(drafts, spec)
    packages = _packages(drafts, aliases, spec)
    available = {attr for attr, package in packages.items() if package.status == "available"}
    hollow = [name for name in ESSENTIAL if name not in available]
    if hollow and not request.allow_hollow:
        raise _hollow_error(hollow, packages, spec)
    diagnostics += _diagnostics(drafts, missing, hollow, data)
    diagnostics += coverage_diagnostics(packages)
    diagnostics += jetson_diagnostics(packages, data.coverage_rules)
    diagnostics += _platform_diagnostics(spec)
    diagnostics += _alias_diagnostics(spec)
    diagnostics += _release_diagnostics(choices, drafts, spec)
    diagnostics += requested_diagnostics(drafts, spec)
    return PackageSet(
        schema_version=1,
        schema=PACKAGE_SET_FORMAT,
        channel=data.channel,
        inputs=tuple(_inputs(choices, spec)),
        cuda=_cuda_release(spec),
        platform=_set_platform(spec),
        cross=request.cross,
        name=request.name,
        capabilities=spec.flags,
        host_compiler=choose_host(spec),
        driver=find_driver(spec),
        runfile=data.runfiles.get(str(spec.cuda), {}).get(spec.platform),
        redists={name: choice.chosen for name, choice in choices.items()},
        packages=packages,
        sonames=soname_index(drafts.values()),
        external=external_sonames(drafts.values(), spec.policies.libraries),
        diagnostics=tuple(sorted(diagnostics, key=lambda d: (d.level, d.code, d.subject, d.text))),
    )


# -- packages


def _packages(
    drafts: Mapping[str, Draft], aliases: Mapping[str, str], spec: SetSpec
) -> dict[str, SetPackage]:
    """Return the finished entries and their aliases, sorted."""
    with_compat = _compat_runpaths(drafts, spec)
    packages = {
        attr: make_package(draft, spec, compat_runpath=attr in with_compat)
        for attr, draft in drafts.items()
    }
    for name, to in aliases.items():
        packages[name] = packages[to].model_copy(update={"attr": name, "alias_of": to})
    return dict(sorted(packages.items()))


def _compat_runpaths(drafts: Mapping[str, Draft], spec: SetSpec) -> set[str]:
    """Return the packages whose run path includes the compatibility driver."""
    available = {attr for attr, draft in drafts.items() if draft.is_available}
    attrs: set[str] = set()
    for entry in spec.policies.libraries.compat_run_path:
        only = entry.only_capabilities
        is_for_set = only is None or set(spec.flags.effective) <= set(only)
        if entry.package in available and entry.platform == spec.platform and is_for_set:
            attrs |= available - {entry.package}
    return attrs


# -- release and platform


def _cuda_release(spec: SetSpec) -> CudaRelease:
    cuda, data = spec.cuda, spec.data
    # Only the newest local patch of a minor for the platform gets the minor's name.
    newer = [label for label in data.cuda_labels if label.line == cuda.line and label > cuda]
    is_newest = not any(spec.platform in data.cuda_platforms(label) for label in newer)
    return CudaRelease(
        release=str(cuda),
        major_minor=cuda.line,
        major=str(cuda.components[0]),
        attribute=set_attribute(cuda.line if is_newest else str(cuda)),
        name_prefix=f"cuda{cuda.line}",
        aliases=tuple(_attribute_aliases(spec, is_newest=is_newest)),
        early_access=data.manifests[CUDA][cuda].is_preview,
    )


def _attribute_aliases(spec: SetSpec, *, is_newest: bool) -> list[str]:
    """Return the other names of a set, such as `cudaPackages_13`.

    `is_newest` is whether the set has the newest patch of its CUDA minor.
    """
    cuda, short = spec.cuda, spec.policies.names.sets
    if spec.request.aliases:
        labels = spec.data.cuda_labels
        declared = spec.request.aliases.items()
        return [name for name, text in declared if find_release(text, labels) == cuda]
    if spec.request.name or not is_newest or _alias_line(spec) != cuda.line:
        return []
    major = str(cuda.components[0])
    aliases = [f"cudaPackages_{major}"]
    if short.default == major:
        aliases.append("cudaPackages")
    return aliases


def _alias_line(spec: SetSpec) -> str | None:
    """Return the line to which the alias of the set's CUDA major refers.

    If there is no release of policy's line, it is the newest line, if that is allowed.
    """
    line = spec.policies.names.sets.majors.get(str(spec.cuda.components[0]))
    lines = [label.line for label in _alias_labels(spec)]
    return lines[-1] if line not in lines and spec.request.alias_fallback else line


def _alias_labels(spec: SetSpec) -> list[Version]:
    """Return the releases of the set's CUDA major to which aliases can refer, sorted."""
    labels = spec.request.alias_labels or spec.data.cuda_labels
    return [label for label in labels if label.components[0] == spec.cuda.components[0]]


def _set_platform(spec: SetSpec) -> SetPlatform:
    known = spec.policies.platforms.platforms.get(spec.platform)
    systems = known.nix_systems if known else ()
    return SetPlatform(
        redist_system=spec.platform,
        nix_system=spec.request.system or (systems[0] if systems else None),
        pkgs_cross=known.pkgs_cross if known else None,
        elf_machine=known.elf_machine if known else None,
        jetson=bool(_jetson_capabilities(spec)),
    )


def _jetson_capabilities(spec: SetSpec) -> list[str]:
    return [name for name in spec.flags.effective if spec.data.gpus.capabilities[name].jetson]


# -- inputs, diagnostics, errors


def _input(
    kind: Literal["manifest", "features"],
    manifest: InputManifest,
    file: InputManifest | InputFeatures,
) -> Input:
    """Return the record of a release's manifest or feature file."""
    return Input(
        kind=kind,
        name=manifest.redist,
        label=str(manifest.label),
        sha256=file.sha256,
        overlay=file.is_overlay,
    )


def _inputs(choices: Mapping[str, Choice], spec: SetSpec) -> Iterable[Input]:
    for manifest in _manifests_of(choices, spec):
        yield _input("manifest", manifest, manifest)
        features = spec.data.read_features(manifest.redist, manifest.label)
        if features is not None:
            yield _input("features", manifest, features)
    yield from spec.data.inputs


def _manifests_of(choices: Mapping[str, Choice], spec: SetSpec) -> list[InputManifest]:
    """Return the manifests used by a set, sorted."""
    manifests = [*(choice.manifest for choice in choices.values()), *spec.also]
    used = {(entry.redist, entry.label): entry for entry in manifests if entry is not None}
    return [used[key] for key in sorted(used)]


def _diagnostics(
    drafts: Mapping[str, Draft], missing: Sequence[Draft], hollow: Sequence[str], data: SetData
) -> Iterable[Diagnostic]:
    if missing:
        text = (
            f"{len(missing)} packages were not examined; their outputs and libraries are unknown: "
            f"{listed([draft.attr for draft in missing])}"
        )
        yield warning("features-missing", "packages", text)
    # Feature files in nixpkgs' form have only outputs.
    available = [draft for draft in drafts.values() if draft.is_available]
    partial = [d.attr for d in available if d.split is None and d.missing is None]
    if partial:
        text = (
            f"only the outputs of {len(partial)} packages are known, from a feature file in "
            f"nixpkgs' form; their libraries and dependencies are unknown: {listed(partial)}"
        )
        yield warning("outputs-only", "packages", text)
    text = "is not available; nothing can be compiled with this set"
    yield from (warning("hollow", name, text) for name in hollow)
    for fixup in data.policies.fixups.fixups:
        if data.names[fixup.package].redist is None:
            text = "a fixup changes this package, but no local manifest contains it"
            yield warning("unknown-package", fixup.package, text)
    for attr, draft in drafts.items():
        if draft.status == "broken":
            yield warning("broken", attr, "; ".join(reason.text for reason in draft.reasons))
        if draft.is_available:
            yield from _file_diagnostics(draft)
            yield from _old_libraries(draft, data.policies.libraries)


def _file_diagnostics(draft: Draft) -> Iterable[Diagnostic]:
    for need in draft.needs:
        if need.satisfied_by is None:
            text = f"{need.by_path} loads {need.soname}, which is not in the set"
            yield warning("unresolved-dlopen", draft.attr, text)
    for load in draft.opens:
        if load.satisfied_by is None and not load.is_optional:
            yield note("unresolved-opens", draft.attr, f"{load.by_path} may open {load.soname}")
    if draft.split is None:
        return
    for file, path, _ in draft.split.placed(draft.split.binaries):
        if file.unread:
            text = f"{path}: {', '.join(file.unread)} could not be read and are unknown"
            yield warning("unread", draft.attr, text)


def _doubtful_versions(
    draft: Draft, drafts: Mapping[str, Draft], spec: SetSpec
) -> Iterable[Diagnostic]:
    """Yield a warning for each requirement of policy that does not refuse a package."""

    def versions_of(name: str) -> list[Version]:
        return [
            other.archive.version
            for other in drafts.values()
            if other.pname == name and other.archive and other.is_available and draft.can_use(other)
        ]

    if draft.manifest is None:
        return
    release, policy = draft.manifest.label, spec.policies.requirements
    for entry in requirements_of(draft.pname, release, spec.target, policy, are_warnings=True):
        for _, problem in requirement_problems(entry, spec.target):
            yield warning("doubtful-version", draft.attr, problem)
        for name, problem in package_problems(entry, versions_of):
            bounds = (entry.needs_packages or {})[name]
            pin = _fitting_pin(name, partial(_is_within, bounds), spec)
            yield warning("doubtful-version", draft.attr, f"{entry.reason}: {problem}{pin}")


def _doubtful_wheels(
    draft: Draft, drafts: Mapping[str, Draft], spec: SetSpec
) -> Iterable[Diagnostic]:
    """Yield a warning for each wheel that the build of a package's wheel does not accept."""
    version, archive = _wheel_version(draft.archive), draft.archive
    if version is None or archive is None or archive.project is None:
        return
    builds = spec.policies.requirements.wheels.get(archive.project, {})
    for project, text in builds.get(str(version), {}).items():
        versions = SpecifierSet(text)
        for other in drafts.values():
            other_version = _wheel_version(other.archive)
            is_project = other.archive is not None and other.archive.project == project
            if not is_project or other_version is None or not other.is_available:
                continue
            if draft.can_use(other) and other_version not in versions:
                pin = _fitting_pin(other.pname, partial(_is_in, versions), spec)
                yield warning(
                    "doubtful-version",
                    draft.attr,
                    f"the wheel of {draft.pname} {version} requires {project}{text}, but the set "
                    f"has {other_version}{pin}",
                )


def _wheel_version(archive: Archive | None) -> WheelVersion | None:
    """Return the version in the name of a wheel, or None."""
    if archive is None or archive.project is None:
        return None
    wheel = parse_wheel(archive.relative_path.rpartition("/")[2], "")
    return None if wheel is None else wheel.version


def _is_within(bounds: Bounds, archive: Archive) -> bool:
    return is_within(archive.version, bounds)


def _is_in(versions: SpecifierSet, archive: Archive) -> bool:
    version = _wheel_version(archive)
    return version is not None and version in versions


def _fitting_pin(name: str, fits: Callable[[Archive], bool], spec: SetSpec) -> str:
    """Return the option that selects a package's newest fitting release, as the end of a text."""
    redist, data = spec.data.names[name].redist, spec.data
    if redist is None or redist == CUDA:
        return ""
    for label, manifest in sorted(data.manifests.get(redist, {}).items(), reverse=True):
        package = manifest.packages.get(name)
        selection = package and select_archive(package, spec.platform, spec.cuda)
        broken = broken_constraints(redist, label, spec.cuda, spec.policies.constraints)
        if isinstance(selection, Archive) and fits(selection) and not broken:
            option = spec.request.options.redist
            return f"; to select a version that fits, add `{option} {redist}={label}`"
    return ""


def _old_libraries(draft: Draft, policy: LibraryPolicy) -> Iterable[Diagnostic]:
    """Yield a warning for each library that current distributions no longer have."""
    for need in draft.needs:
        if isinstance(need.satisfied_by, OutsideSet):
            entry = find_external(need.soname, policy)
            distributions = find_distributions(need.soname, entry, policy)
            if distributions is not None and is_old_library(distributions, policy):
                text = old_library_text(distributions, policy)
                yield warning(
                    "old-library", draft.attr, f"{need.by_path} needs {need.soname}, {text}"
                )


def _release_diagnostics(
    choices: Mapping[str, Choice], drafts: Mapping[str, Draft], spec: SetSpec
) -> Iterable[Diagnostic]:
    for manifest in _manifests_of(choices, spec):
        if manifest.is_edited:
            # `command_line` would add options of the call, but sets must not depend on these.
            channel = "" if spec.data.channel == "redist" else f"--channel {spec.data.channel} "
            command = (
                f"cudaredist download-manifests {channel}"
                f"--redist {manifest.redist} --version {manifest.label}"
            )
            text = (
                f"{manifest_name(manifest.label)} differs from the downloaded file; to restore it, "
                f"delete it and run `{command}`"
            )
            yield warning("edited-manifest", manifest.redist, text)
    for redist, choice in choices.items():
        if choice.uncovered is not None:
            text = f"{choice.uncovered.release} is not selected: {choice.uncovered.reason}"
            report = note if choice.manifest else warning
            yield report(OLDER_RELEASE, redist, text)
        if choice.manifest is not None and is_for_later_cuda(choice.manifest.label, spec.cuda):
            minor = ".".join(map(str, choice.manifest.label.suffix))
            text = f"{choice.manifest.label} is built for CUDA {minor}, newer than the set's CUDA"
            yield note("later-cuda", redist, text)
    for attr, draft in drafts.items():
        if draft.archive is None or draft.redist is None or not draft.is_available:
            continue
        yield from _doubtful_versions(draft, drafts, spec)
        yield from _doubtful_wheels(draft, drafts, spec)
        if not is_cuda_known(draft, spec):
            text = (
                f"{draft.pname} {draft.archive.version} has no variants, so nothing states its "
                f"CUDA major; if it is not for CUDA {spec.cuda.components[0]}, add its CUDA "
                "releases to policy/constraints.json of an overlay"
            )
            yield warning("cuda-unstated", attr, text)
        path, own = draft.archive.relative_path, draft.archive.sha256
        releases = spec.data.releases_by_path[draft.redist, path]
        others = [str(label) for sha256, label in releases if sha256 != own]
        if others:
            text = (
                f"{draft.redist} {', '.join(others)} has a different file at {path}: a server has "
                "only one of them, so downloads of the other one fail"
            )
            yield warning("path-clash", attr, text)


def _platform_diagnostics(spec: SetSpec) -> Iterable[Diagnostic]:
    jetson = _jetson_capabilities(spec)
    if spec.platform == JETSON and not jetson:
        text = "linux-aarch64 is the Jetson platform, but no selected capability is a Jetson GPU"
        yield note("no-jetson-capability", ", ".join(spec.flags.effective), text)


def _alias_diagnostics(spec: SetSpec) -> Iterable[Diagnostic]:
    """Yield a warning in the newest set of a major if policy's alias of the major has no set."""
    line, labels = _alias_line(spec), _alias_labels(spec)
    has_set = line is None or line in {label.line for label in labels}
    is_unnamed = not spec.request.aliases and spec.request.name is None
    if not has_set and is_unnamed and spec.cuda in labels[-1:]:
        where = "declared" if spec.request.alias_labels else "local"
        text = (
            f"refers to CUDA {line}, which is not {where}, so no set has this alias; with "
            "`alias-fallback = true` in the configuration file, it follows to CUDA "
            f"{labels[-1].line}"
        )
        yield warning("alias-without-set", f"cudaPackages_{spec.cuda.components[0]}", text)


def _missing_error(missing: Sequence[Draft], spec: SetSpec) -> IncompleteError:
    packages = [f"{draft.attr} ({draft.missing})" for draft in missing]
    command = command_line("process-manifests")
    if any(draft.manifest is not None and draft.manifest.is_shipped for draft in missing):
        # Shipped manifests must be downloaded before.
        command = f"{command_line('download-manifests')} && {command}"
    option = spec.request.options.allow_missing_features
    # check and bump build the declared sets, which have settings instead of options.
    choice = "declare `allow-missing-features = true`"
    if takes(option):
        choice = f"run `{again(option)}` to build the set without the contents of archives"
    return IncompleteError(
        f"CUDA {spec.cuda} on {spec.platform}: {len(missing)} packages have no features: "
        f"{'; '.join(shortened(packages, _SHOWN))}",
        hint=f"run `{command}` to create them, or {choice}",
    )


def _hollow_error(
    hollow: Sequence[str], packages: Mapping[str, SetPackage], spec: SetSpec
) -> UsageError:
    texts = []
    for name in hollow:
        reasons = packages[name].reasons if name in packages else ()
        text = "; ".join(reason.text for reason in reasons) or "not in any local manifest"
        texts.append(f"{name} ({text})")
    system = spec.request.system if spec.platform == UNSUPPORTED else spec.platform
    option = spec.request.options.allow_hollow
    hint = f"see {manifest_name(spec.cuda)}"
    if takes(option):
        hint += f", or use {option} to create the set anyway: `{again(option)}`"
    message = f"CUDA {spec.cuda} on {system}: the set would be without {' and '.join(texts)}"
    return UsageError(message, hint=hint)


def count_statuses(package_set: PackageSet) -> dict[Status, int]:
    """Count the packages with each status, without aliases."""
    counts = Counter(package.status for package in package_set.own.values())
    return {status: counts[status] for status in reversed(PRECEDENCE)}
