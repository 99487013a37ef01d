"""Packages of a set, with reasons against unavailable ones."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from cudaredist.errors import UsageError
from cudaredist.formats.packageset import ReasonCode
from cudaredist.formats.policy import Fixup, Requirement
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version
from cudaredist.sets.draft import Draft
from cudaredist.sets.inputs import InputFeatures, InputManifest, Policies, SetData, is_within
from cudaredist.sets.outputs import nested_refusal, order_outputs, split_outputs
from cudaredist.sets.platforms import UNSUPPORTED, Absence, select_archive
from cudaredist.sets.requirements import package_problem, requirements_of, target_problems
from cudaredist.sets.spec import SetSpec
from cudaredist.sets.version_choice import Choice, broken_constraints, built_for_other

FindVersions: TypeAlias = Callable[[str, Draft], list[Draft]]
"""Finds the versions of a package, under any of its names, that another package can use."""


def make_entries(spec: SetSpec, choices: Mapping[str, Choice], data: SetData) -> dict[str, Draft]:
    """Return a draft for each known name and additional version.

    Requirements on other packages are not checked here. Raises `UsageError` if two entries would
    have the same name.
    """
    entries = {}
    for name, known in data.names.items():
        choice = choices.get(known.redist) if known.redist else None
        manifest = choice.manifest if choice else None
        draft = _draft(
            Draft(attr=name, pname=name, redist=known.redist, manifest=manifest), spec, data
        )
        is_absent = manifest is None and draft.is_available
        entries[name] = _explain_absence(draft, choice, spec, data) if is_absent else draft
    for manifest in spec.also:
        for name in manifest.packages:
            if name in data.policies.withheld.withheld:
                continue
            attr = versioned_attr(name, manifest.label)
            if attr in entries:
                raise UsageError(
                    f"{manifest.redist} {manifest.label} would be {attr}, which is already in the "
                    "set",
                    hint="select one release of each release line",
                )
            draft = Draft(attr=attr, pname=name, redist=manifest.redist, manifest=manifest)
            entries[attr] = _draft(draft, spec, data)
    for attr, draft in entries.items():
        allowed = _with_fixups(_with_requirements(draft, spec, data), spec, data)
        entries[attr] = _with_outputs(allowed, spec, data) if allowed.has_files else allowed
    return entries


def find_aliases(entries: Mapping[str, Draft], data: SetData) -> dict[str, str]:
    """Map each alias to its package.

    If a package was renamed, its name in the release is the entry, and its other names are aliases.
    If a release has the same archives under both names, the new name is the entry. An alias that
    only policy defines always refers to its package.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in data.names:
        groups[data.policies.root(name)].append(name)
    aliases: dict[str, str] = {}
    for root, names in groups.items():
        published = [name for name in names if entries[name].package is not None]
        main = published[0] if len(published) == 1 else root
        apart = {main} if root in published and _are_one(published, entries) else {main, *published}
        aliases |= {
            name: main
            for name in names
            if name not in apart and (published or name in data.policies.names.aliases)
        }
    return aliases


def _are_one(names: Iterable[str], entries: Mapping[str, Draft]) -> bool:
    """Check if all names have the same archives."""
    packages = (entries[name].package for name in names)
    archives = {
        frozenset((archive.platform, archive.variant, archive.sha256) for archive in p.archives)
        for p in packages
        if p is not None
    }
    return len(archives) == 1 and all(sha256 for each in archives for *_, sha256 in each)


def versioned_attr(name: str, label: Version) -> str:
    """Return the name of an additional version, such as `cudnn_8_9`."""
    return f"{name}_{'_'.join(label.line.partition('-')[0].split('.'))}"


def source_of(manifest: InputManifest) -> str:
    """Return the manifest of a fact, for display."""
    path = f"{manifest.redist}/redistrib_{manifest.label}.json"
    return f"overlay {path}" if manifest.is_overlay else path


def _draft(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    """Refuse a package for reasons that concern only its release."""
    name, manifest, policies = draft.pname, draft.manifest, data.policies
    if manifest is not None and manifest.is_overlay:
        draft = draft.noted("manifest")
    systems = data.names[name].systems
    is_for_others = bool(systems) and not systems & {"any", spec.platform.os}
    if is_for_others and spec.platform != UNSUPPORTED:
        text = f"{name} is published for {' and '.join(sorted(systems))} only"
        return draft.refused("foreign", "other-operating-system", text, "manifests")
    package = draft.package
    selection = None if package is None else select_archive(package, spec.platform, spec.cuda)
    if isinstance(selection, Archive):
        draft = replace(draft, archive=selection)
    if name in policies.withheld.withheld:
        return withheld_draft(draft, policies)
    if ("withheld", name) in policies.removals:
        draft = draft.noted("policy/withheld.json")
    return _with_release(draft, selection, spec, data)


def withheld_draft(draft: Draft, policies: Policies) -> Draft:
    """Refuse a package if policy withholds it."""
    entry = policies.withheld.withheld.get(draft.pname)
    if entry is None:
        return draft
    source = policies.source("withheld", entry)
    draft = draft.refused("withheld", "withheld-by-policy", entry.reason, source)
    for name in entry.lacks:
        text = f"requires {name}, which no set has"
        draft = draft.refused("withheld", "dependency-unavailable", text, source, name)
    return draft.noted(*policies.notes("withheld", entry))


def _with_release(
    draft: Draft, selection: Archive | Absence | None, spec: SetSpec, data: SetData
) -> Draft:
    """Refuse a package if its release has no suitable build."""
    name, manifest = draft.pname, draft.manifest
    if manifest is None:
        return draft
    if selection is None:
        text = f"{manifest.redist} {manifest.label} has no {name}{_split_from(name, spec, data)}"
        return draft.refused("unsupported", "not-in-manifest", text, source_of(manifest))
    if isinstance(selection, Absence):
        return draft.refused("unsupported", selection.code, selection.text, source_of(manifest))
    other = built_for_other(manifest.label, spec.cuda)
    if other is not None:
        code: ReasonCode = "cuda-version-unsupported"
        draft = draft.refused("unsupported", code, other, source_of(manifest))
    constraints = data.policies.constraints.constraints
    for entry in broken_constraints(manifest.redist, manifest.label, spec.cuda, constraints):
        text = f"{entry.reason}, but the set is for CUDA {spec.cuda}"
        source = data.policies.source("constraints", entry)
        draft = draft.refused("broken", "cuda-version-unsupported", text, source)
        draft = draft.noted(*data.policies.notes("constraints", entry))
    return draft


def _split_from(name: str, spec: SetSpec, data: SetData) -> str:
    """Return a note if older releases use another package.

    Before a split, the files of the new packages are in the old one.
    """
    for whole, split in data.policies.names.splits.items():
        since = Version.parse(split.since)
        if name in split.into and spec.cuda.components < since.components:
            return f"; before CUDA {since} its files are in {whole}"
    return ""


def _explain_absence(draft: Draft, choice: Choice | None, spec: SetSpec, data: SetData) -> Draft:
    """Refuse a package without a suitable release.

    The reason is the one against the newest release.
    """
    refusals = choice.chosen.newer_rejected if choice else ()
    if choice is not None and choice.uncovered is not None:
        refusals = (choice.uncovered,)
    for rejected in refusals:
        manifest = data.manifests[draft.redist or ""][Version.parse(rejected.release)]
        package = manifest.packages.get(draft.pname)
        if package is None:
            continue
        selection = select_archive(package, spec.platform, spec.cuda)
        if not isinstance(selection, Absence):
            is_uncovered = choice is not None and rejected is choice.uncovered
            selection = Absence(
                "capability-unsupported" if is_uncovered else "cuda-version-unsupported",
                rejected.reason,
            )
        newest = f"no release of {draft.redist} supports this set; the newest, {manifest.label}"
        text, source = f"{newest}: {selection.text}", source_of(manifest)
        return draft.refused("unsupported", selection.code, text, source)
    return unpublished_draft(draft)


def unpublished_draft(draft: Draft) -> Draft:
    """Refuse a package that no manifest contains."""
    text = f"no local manifest contains {draft.pname}"
    return draft.refused("unsupported", "not-in-manifest", text, "manifests")


# -- requirements of policy


def require_packages(draft: Draft, find: FindVersions, spec: SetSpec, data: SetData) -> Draft:
    """Refuse a package if the set lacks a requirement.

    Requirements are other packages, and versions of them.
    """
    for entry in _requirements_of(draft, spec, data):
        source = data.policies.source("requirements", entry)
        for name, bounds in sorted((entry.needs_packages or {}).items()):
            others = [other for other in find(name, draft) if other.is_available]
            versions = [other.archive.version for other in others if other.archive is not None]
            problem = package_problem(name, bounds, versions)
            if problem is not None:
                text = f"{entry.reason}: {problem}"
                draft = draft.refused(entry.kind, "dependency-unavailable", text, source)
    return draft


def _requirements_of(draft: Draft, spec: SetSpec, data: SetData) -> list[Requirement]:
    if draft.manifest is None or not draft.has_files:
        return []
    requirements = data.policies.requirements.requirements
    return requirements_of(draft.pname, draft.manifest.label, spec.target, requirements)


def _with_requirements(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    for entry in _requirements_of(draft, spec, data):
        source = data.policies.source("requirements", entry)
        draft = draft.noted(*data.policies.notes("requirements", entry))
        for code, problem in target_problems(entry, spec.target):
            draft = draft.refused(entry.kind, code, f"{entry.reason}: {problem}", source)
    return draft


# -- changes by the user


def fixups_for(name: str, spec: SetSpec, data: SetData) -> list[Fixup]:
    """Return the user's changes to a package, by any name."""
    return [
        fixup
        for fixup in data.policies.fixups.fixups
        if data.policies.root(fixup.package) == data.policies.root(name)
        and is_within(spec.cuda, fixup.cuda)
        and fixup.platform in {None, spec.platform}
    ]


def _with_fixups(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    for fixup in fixups_for(draft.pname, spec, data):
        source = data.policies.source("fixups", fixup)
        draft = draft.noted(f"fixup: {fixup.reason}")
        if fixup.withheld is not None and draft.status != "foreign":
            draft = draft.refused("withheld", "withheld-by-policy", fixup.withheld, source)
        if fixup.broken is not None and draft.archive is not None:
            draft = draft.refused("broken", "marked-broken", fixup.broken, source)
    return draft


# -- outputs


def _with_outputs(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    """Split a package into outputs, or note missing features."""
    manifest, archive = draft.manifest, draft.archive
    if manifest is None or archive is None or archive.sha256 is None:
        return draft
    fixups = fixups_for(draft.pname, spec, data)
    # Overlays precede the files that they extend, so the first declaration wins.
    declared = next((f.outputs for f in fixups if f.outputs is not None), None)
    fixed = None if declared is None else order_outputs(declared)
    draft = replace(draft, outputs=fixed or ("out",)).noted(*_output_notes(draft.pname, data))
    features = data.read_features(manifest.redist, manifest.label)
    if features is None:
        return replace(draft, missing=f"no feature file of {manifest.redist} {manifest.label}")
    if features.is_overlay:
        draft = draft.noted("features")
    examined = features.examined.get((draft.pname, archive.sha256))
    if examined is None:
        is_fixed = fixed is not None or draft.pname in data.policies.outputs.collapse
        return _with_legacy_outputs(draft, features, archive, is_fixed=is_fixed)
    refusal = nested_refusal(examined, spec.cuda)
    if refusal is not None:
        source = f"{manifest.redist}/feature_{manifest.label}.json"
        return draft.refused("unsupported", "cuda-version-unsupported", refusal, source)
    policy = data.policies.outputs
    split = split_outputs(draft.pname, archive.version, examined, spec.cuda, policy, declared=fixed)
    empty = [name for name in split.outputs if not split.contents[name].files]
    empty = [name for name in empty if name not in {"out", "dev"}]
    if empty:
        text = f"{', '.join(empty)} would be empty, but is declared"
        draft = draft.refused("broken", "outputs-empty", text, "policy/fixups.json")
    headers = features.headers.get((draft.pname, archive.sha256))
    return replace(draft, split=split, outputs=split.outputs, headers=headers)


def _with_legacy_outputs(
    draft: Draft, features: InputFeatures, archive: Archive, *, is_fixed: bool
) -> Draft:
    """Read outputs from an early feature file, or note their absence."""
    name, sha256 = draft.pname, archive.sha256 or ""
    legacy = features.legacy.get(archive.id)
    if legacy is not None:
        return draft if is_fixed else replace(draft, outputs=order_outputs(legacy))
    known = {package for package, *_ in (*features.examined, *features.unexamined)}
    unknown = f"its feature file describes another archive (not {sha256[:12]}…)"
    if name not in known:
        unknown = "its feature file does not contain it"
    return replace(draft, missing=features.unexamined.get((name, sha256), unknown))


def _output_notes(name: str, data: SetData) -> tuple[str, ...]:
    policy = data.policies.outputs
    normalise = (entry for entry in policy.normalise if entry.package == name)
    entries = (policy.collapse.get(name), policy.propagates.get(name), *normalise)
    return data.policies.notes("outputs", *entries)
