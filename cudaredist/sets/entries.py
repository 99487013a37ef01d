"""Packages of a set, with reasons against unavailable ones."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from cudaredist.errors import UsageError
from cudaredist.formats.fixup_policy import Fixup
from cudaredist.formats.packageset import RejectedRelease, Status
from cudaredist.formats.reason import ReasonCode
from cudaredist.manifests.manifest_values import Archive, Package
from cudaredist.primitives import Version, versioned_attr
from cudaredist.sets.bounds import is_within
from cudaredist.sets.cuda_libraries import CudaLibraries
from cudaredist.sets.cuda_releases import broken_constraints, built_for_other
from cudaredist.sets.draft import Draft
from cudaredist.sets.inputs import InputFeatures, InputManifest, Policies, SetData
from cudaredist.sets.omissions import reasons_to_withhold, unpublished
from cudaredist.sets.outputs import order_outputs, split_outputs
from cudaredist.sets.platforms import UNSUPPORTED, Absence, select_archive
from cudaredist.sets.requirements import requirement_problems, requirements_of
from cudaredist.sets.spec import SetSpec
from cudaredist.sets.version_choice import Choice
from cudaredist.wheel_projects import FAMILIES

FindVersions: TypeAlias = Callable[[str, Draft], list[Draft]]
"""Finds the versions of a package, under any of its names, that another package can use."""


def make_entries(spec: SetSpec, choices: Mapping[str, Choice]) -> dict[str, Draft]:
    """Return a draft for each known name and additional version.

    Requirements on other packages are not checked here. Raises `UsageError` if two entries would
    have the same name.
    """
    entries = {}
    for name, known in spec.data.names.items():
        choice = choices.get(known.redist or "")
        manifest = choice.manifest if choice else None
        draft = Draft(attr=name, pname=name, redist=known.redist, manifest=manifest)
        entries[name] = _with_archive(draft, spec, choice)
    for manifest in spec.also:
        for name in manifest.packages:
            if name in spec.policies.withheld.withheld:
                continue
            attr = versioned_attr(name, manifest.label)
            if attr in entries:
                raise UsageError(
                    f"{manifest.redist} {manifest.label} would be {attr}, which is already in the "
                    "set",
                    hint="select one release of each release line",
                )
            draft = Draft(attr=attr, pname=name, redist=manifest.redist, manifest=manifest)
            entries[attr] = _with_archive(draft, spec)
    libraries = CudaLibraries(spec.cuda, spec.platform, spec.data)
    for attr, draft in entries.items():
        allowed = _with_fixups(with_requirements(draft, spec), spec)
        entries[attr] = _with_outputs(allowed, spec, libraries) if allowed.has_files else allowed
    return entries


def find_aliases(entries: Mapping[str, Draft], data: SetData) -> dict[str, str]:
    """Map each alias to its package.

    If a package was renamed, its name in the release is the entry, and its other names are aliases.
    If a release has the same archives under both names, the new name is the entry. An alias that
    only policy defines always refers to its package.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in data.names:
        groups[data.policies.package_names.root(name)].append(name)
    aliases: dict[str, str] = {}
    for root, names in groups.items():
        published: dict[str, Package] = {}
        for name in names:
            package = entries[name].package
            if package is not None:
                published[name] = package
        main = next(iter(published)) if len(published) == 1 else root
        with_own_entry = {main, *published}
        if root in published and _have_same_archives(published.values()):
            with_own_entry = {main}
        for name in names:
            is_alias = bool(published) or name in data.policies.names.aliases
            if is_alias and name not in with_own_entry:
                aliases[name] = main
    return aliases


def _have_same_archives(packages: Iterable[Package]) -> bool:
    """Check if all packages have the same archives."""
    archives = {frozenset((a.platform, a.variant, a.sha256) for a in p.archives) for p in packages}
    return len(archives) == 1 and all(sha256 for each in archives for *_, sha256 in each)


def _with_archive(draft: Draft, spec: SetSpec, choice: Choice | None = None) -> Draft:
    """Add the archive of a package, or refuse the package for reasons that concern its release."""
    name, manifest, policies = draft.pname, draft.manifest, spec.policies
    if manifest is not None and manifest.is_overlay:
        draft = draft.noted("manifest")
    systems = spec.data.names[name].systems
    is_for_others = bool(systems) and not systems & {"any", spec.platform.os}
    if is_for_others and spec.platform != UNSUPPORTED:
        text = f"the local releases of {name} are for {' and '.join(sorted(systems))} only"
        return draft.refused("foreign", "other-operating-system", text, "manifests")
    package = draft.package
    selection = None if package is None else select_archive(package, spec.platform, spec.cuda)
    if isinstance(selection, Archive):
        draft = replace(draft, archive=selection)
    if name in policies.withheld.withheld:
        return withheld_draft(draft, policies)
    if ("withheld", name) in policies.removals:
        draft = draft.noted("policy/withheld.json")
    if manifest is None:
        return _explain_absence(draft, choice, spec)
    if selection is None:
        text = f"{manifest.redist} {manifest.label} has no {name}{_split_from(name, spec)}"
        return draft.refused("unsupported", "not-in-manifest", text, manifest.source)
    if isinstance(selection, Absence):
        return draft.refused("unsupported", selection.code, selection.text, manifest.source)
    return _with_constraints(draft, manifest, spec)


def _with_constraints(draft: Draft, manifest: InputManifest, spec: SetSpec) -> Draft:
    """Refuse a package if its release is for other CUDA releases."""
    policies, label = spec.policies, manifest.label
    code: ReasonCode = "cuda-version-unsupported"
    other = built_for_other(label, spec.cuda)
    if other is not None:
        draft = draft.refused("unsupported", code, other, manifest.source)
    if draft.archive is not None:
        majors = spec.data.cuda_majors
        stated = majors.refusal(manifest.redist, label, draft.archive.id, spec.cuda)
        if stated is not None:
            draft = draft.refused("unsupported", code, stated.text, stated.source)
    for entry in broken_constraints(manifest.redist, label, spec.cuda, policies.constraints):
        text = f"{entry.reason}, but the set is for CUDA {spec.cuda}"
        if _is_allowed(draft, spec):
            draft = draft.with_allowed(text)
        else:
            draft = draft.refused("broken", code, text, policies.source("constraints", entry))
        draft = draft.noted(*policies.notes("constraints", entry))
    return draft


def withheld_draft(draft: Draft, policies: Policies) -> Draft:
    """Refuse a package if policy withholds it."""
    entry = policies.withheld.withheld.get(draft.pname)
    if entry is None:
        return draft
    source = policies.source("withheld", entry)
    for reason in reasons_to_withhold(draft.pname, entry, source):
        draft = draft.refused_for("withheld", reason)
    return draft.noted(*policies.notes("withheld", entry))


def _split_from(name: str, spec: SetSpec) -> str:
    """Return a note if older releases use another package.

    Before a split, the files of the new packages are in the old one.
    """
    for whole, split in spec.policies.names.splits.items():
        since = Version.parse(split.since)
        if name in split.into and spec.cuda.components < since.components:
            return f"; before CUDA {since} its files are in {whole}"
    return ""


def _explain_absence(draft: Draft, choice: Choice | None, spec: SetSpec) -> Draft:
    """Refuse a package without a suitable release.

    The reason is the one against the newest release.
    """
    code: ReasonCode = "cuda-version-unsupported"
    rejected_releases: Sequence[RejectedRelease] = ()
    if choice is not None and choice.uncovered is not None:
        code = "capability-unsupported"
        rejected_releases = (choice.uncovered,)
    elif choice is not None:
        rejected_releases = choice.chosen.newer_rejected
    for rejected in rejected_releases:
        manifest = spec.data.manifests[draft.redist or ""][Version.parse(rejected.release)]
        package = manifest.packages.get(draft.pname)
        if package is None:
            continue
        selection = select_archive(package, spec.platform, spec.cuda)
        if not isinstance(selection, Absence):
            selection = Absence(code, rejected.reason)
        newest = f"no release of {draft.redist} supports this set; the newest, {manifest.label}"
        text = f"{newest}: {selection.text}{_newest_wheel(draft, spec)}"
        return draft.refused("unsupported", selection.code, text, manifest.source)
    if spec.data.channel == "wheels":
        return _without_wheel(draft, spec)
    return unpublished_draft(draft)


def _newest_wheel(draft: Draft, spec: SetSpec) -> str:
    """Name the newest wheel of a package for the CUDA major of a set, if there is one."""
    redist, variant = draft.redist or "", f"cuda{spec.cuda.components[0]}"
    labels = [
        release.label
        for release in spec.data.shipped_wheels(redist)
        for archive in release.manifest.archives
        if archive.package == draft.pname
        and (archive.platform, archive.variant) == (spec.platform, variant)
    ]
    if not labels or redist not in FAMILIES:
        return ""
    return f"; NVIDIA's newest wheel is {FAMILIES[redist].projects[variant]} {max(labels)}"


def _without_wheel(draft: Draft, spec: SetSpec) -> Draft:
    """Refuse a package that no manifest of wheels contains, and name its archive if it has one."""
    archives = spec.data.archives_of_cuda(spec.cuda)
    has_archive = any(archive.package == draft.pname for archive in archives)
    other = f"; NVIDIA's archives of CUDA {spec.cuda} have it" if has_archive else ""
    text = f"no known wheel of {draft.pname}{other}"
    return draft.refused("unsupported", "not-in-manifest", text, "manifests")


def unpublished_draft(draft: Draft) -> Draft:
    """Refuse a package that no manifest contains."""
    return draft.refused_for("unsupported", unpublished(draft.pname))


# -- requirements of policy


def with_requirements(draft: Draft, spec: SetSpec, find: FindVersions | None = None) -> Draft:
    """Refuse a package if the set lacks a requirement.

    Without `find`, other packages are not checked.
    """
    manifest, policies = draft.manifest, spec.policies
    if manifest is None or not draft.has_files:
        return draft

    def versions_of(name: str) -> list[Version]:
        others = find(name, draft) if find else ()
        return [other.archive.version for other in others if other.archive and other.is_available]

    for entry in requirements_of(draft.pname, manifest.label, spec.target, policies.requirements):
        source = policies.source("requirements", entry)
        draft = draft.noted(*policies.notes("requirements", entry))
        for code, problem in requirement_problems(entry, spec.target, find and versions_of):
            status: Status = "unsupported" if entry.kind == "unsupported" else "broken"
            if status == "broken" and _is_allowed(draft, spec):
                draft = draft.with_allowed(problem)
            else:
                draft = draft.refused(status, code, problem, source)
    return draft


def _is_allowed(draft: Draft, spec: SetSpec) -> bool:
    """Check if the user allows a package that policy calls broken."""
    return bool({draft.redist, draft.pname} & spec.request.allow)


# -- changes by the user


def fixups_for(name: str, spec: SetSpec) -> list[Fixup]:
    """Return the user's changes to a package, by any name."""
    root = spec.policies.package_names.root
    return [
        fixup
        for fixup in spec.policies.fixups.fixups
        if root(fixup.package) == root(name)
        and is_within(spec.cuda, fixup.cuda)
        and fixup.platform in {None, spec.platform}
    ]


def _with_fixups(draft: Draft, spec: SetSpec) -> Draft:
    for fixup in fixups_for(draft.pname, spec):
        source = spec.policies.source("fixups", fixup)
        draft = draft.noted(f"fixup: {fixup.reason}")
        if fixup.withheld is not None and draft.status != "foreign":
            draft = draft.refused("withheld", "withheld-by-policy", fixup.withheld, source)
        if fixup.broken is not None and draft.archive is not None:
            draft = draft.refused("broken", "marked-broken", fixup.broken, source)
    return draft


# -- outputs


def _with_outputs(draft: Draft, spec: SetSpec, libraries: CudaLibraries) -> Draft:
    """Split a package into outputs, or note missing features."""
    name, manifest, archive = draft.pname, draft.manifest, draft.archive
    if manifest is None or archive is None or archive.sha256 is None:
        return draft
    policy = spec.policies.outputs
    normalise = (entry for entry in policy.normalise if entry.package == name)
    entries = (policy.collapse.get(name), policy.propagates.get(name), *normalise)
    # Overlays precede the files that they extend, so the first declaration wins.
    declarations = (fixup.outputs for fixup in fixups_for(name, spec))
    fixed = next((order_outputs(names) for names in declarations if names is not None), None)
    draft = draft.noted(*spec.policies.notes("outputs", *entries))
    draft = replace(draft, outputs=fixed or ("out",))
    features = spec.data.read_features(manifest.redist, manifest.label)
    if features is None:
        return replace(draft, missing=f"no feature file of {manifest.redist} {manifest.label}")
    if features.is_overlay:
        draft = draft.noted("features")
    examined = features.examined.get((name, archive.sha256))
    if examined is None:
        legacy = features.legacy.get(archive.id)
        if legacy is None:
            return replace(draft, missing=_reason_against(name, archive.sha256, features))
        is_fixed = fixed is not None or name in policy.collapse
        return draft if is_fixed else replace(draft, outputs=order_outputs(legacy))
    refusal = libraries.refusal(examined)
    if refusal is not None:
        source = f"{manifest.redist}/feature_{manifest.label}.json"
        return draft.refused("unsupported", "cuda-version-unsupported", refusal, source)
    split = split_outputs(name, archive.version, examined, spec.cuda, policy, declared=fixed)
    empty = [output for output, size in split.contents.items() if not size.files]
    empty = [output for output in empty if output not in {"out", "dev"}]
    if empty:
        text = f"{', '.join(empty)} would be empty, but is declared"
        draft = draft.refused("broken", "outputs-empty", text, "policy/fixups.json")
    headers = features.headers.get((name, archive.sha256))
    return replace(draft, split=split, outputs=split.outputs, headers=headers)


def _reason_against(name: str, sha256: str, features: InputFeatures) -> str:
    """Return the reason why a feature file has no facts of an archive."""
    known = {package for package, _ in (*features.examined, *features.unexamined)}
    unknown = f"its feature file describes another archive (not {sha256[:12]}…)"
    if name not in known:
        unknown = "its feature file does not contain it"
    return features.unexamined.get((name, sha256), unknown)
