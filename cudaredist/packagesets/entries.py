"""The packages of a set, and why each of the others is not available."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from cudaredist.errors import UsageError
from cudaredist.manifests.manifest_values import Archive
from cudaredist.packagesets.draft import Draft
from cudaredist.packagesets.inputs import HeldFeatures, HeldManifest, SetData, is_within
from cudaredist.packagesets.outputs import nested_refusal, order_outputs, split_outputs
from cudaredist.packagesets.platforms import UNSUPPORTED, Absence, select_archive
from cudaredist.packagesets.requirements import (
    package_problem,
    requirements_of,
    target_problems,
)
from cudaredist.packagesets.spec import SetSpec
from cudaredist.packagesets.version_choice import (
    Choice,
    broken_constraints,
    built_for_other,
)
from cudaredist.primitives import Version
from cudaredist.schema.base import OutputName
from cudaredist.schema.packageset import ReasonCode
from cudaredist.schema.policy import Fixup, Requirement

FindVersions: TypeAlias = Callable[[str, Draft], list[Draft]]
"""Finds the versions of a package, by any of its names, that can serve another package."""


def make_entries(spec: SetSpec, choices: Mapping[str, Choice], data: SetData) -> dict[str, Draft]:
    """Return a draft for every known name, and for further versions under versioned names.

    Requirements on other packages are not checked here. Raises `UsageError` if two entries would
    have one name.
    """
    entries = {}
    for name, known in data.names.items():
        choice = choices.get(known.redist) if known.redist else None
        held = choice.held if choice else None
        draft = _draft(Draft(attr=name, pname=name, redist=known.redist, held=held), spec, data)
        is_absent = held is None and draft.is_available
        entries[name] = _explain_absence(draft, choice, spec, data) if is_absent else draft
    for held in spec.also:
        for name in held.packages:
            if name in data.policies.withheld.withheld:
                continue
            attr = versioned_attr(name, held.label)
            if attr in entries:
                raise UsageError(
                    f"{held.redist} {held.label} would be {attr}, which is in the set already",
                    hint="take one release of each line",
                )
            draft = Draft(attr=attr, pname=name, redist=held.redist, held=held)
            entries[attr] = _draft(draft, spec, data)
    for attr, draft in entries.items():
        allowed = _with_fixups(_with_requirements(draft, spec, data), spec, data)
        entries[attr] = _with_outputs(allowed, spec, data) if allowed.has_files else allowed
    return entries


def find_aliases(entries: Mapping[str, Draft], data: SetData) -> dict[str, str]:
    """Map each alias to its package.

    If a package was renamed, its name in the release is the entry, and all others lead to it. If a
    release has the same archives under both names, there is one package under the new name. An
    alias of policy alone always leads to its package.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in data.names:
        groups[data.root(name)].append(name)
    found: dict[str, str] = {}
    for root, names in groups.items():
        published = [name for name in names if entries[name].package is not None]
        main = published[0] if len(published) == 1 else root
        apart = {main} if root in published and _are_one(published, entries) else {main, *published}
        found |= {
            name: main
            for name in names
            if name not in apart and (published or name in data.policies.names.aliases)
        }
    return found


def _are_one(names: Iterable[str], entries: Mapping[str, Draft]) -> bool:
    """Check if a release has the same archives under all of these names."""
    packages = (entries[name].package for name in names)
    archives = {
        frozenset((archive.platform, archive.variant, archive.sha256) for archive in p.archives)
        for p in packages
        if p is not None
    }
    return len(archives) == 1 and all(sha256 for each in archives for *_, sha256 in each)


def versioned_attr(name: str, label: Version) -> str:
    """Return the name of one version beside the chosen one: `cudnn_8_9`."""
    return f"{name}_{'_'.join(label.line.partition('-')[0].split('.'))}"


def source_of(held: HeldManifest) -> str:
    """Return the manifest that states a fact, as it is shown."""
    place = f"{held.redist}/redistrib_{held.label}.json"
    return f"overlay {place}" if held.is_overlay else place


def _draft(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    """Decide what the release alone says about a package."""
    name, held, policies = draft.pname, draft.held, data.policies
    if held is not None and held.is_overlay:
        draft = draft.noted("manifest")
    systems = data.names[name].systems
    is_for_others = bool(systems) and not systems & {"any", spec.platform.os}
    if is_for_others and spec.platform != UNSUPPORTED:
        text = f"{name} is published for {' and '.join(sorted(systems))} only"
        return draft.refused("foreign", "other-operating-system", text, name, "manifests")
    package = draft.package
    found = None if package is None else select_archive(package, spec.platform, spec.cuda)
    if isinstance(found, Archive):
        draft = replace(draft, archive=found)
    withheld = policies.withheld.withheld.get(name)
    if withheld is not None:
        source = policies.source("withheld", withheld)
        draft = draft.refused("withheld", "withheld-by-policy", withheld.reason, name, source)
        return draft.noted(*policies.notes("withheld", withheld))
    if ("withheld", name) in policies.taken_away:
        draft = draft.noted("policy/withheld.json")
    return draft if held is None else _with_release(draft, held, found, spec, data)


def _with_release(
    draft: Draft, held: HeldManifest, found: Archive | Absence | None, spec: SetSpec, data: SetData
) -> Draft:
    """Refuse a package that its release does not have, or not for the set."""
    name = draft.pname
    if found is None:
        text = f"{held.redist} {held.label} has no {name}{_split_from(name, spec, data)}"
        return draft.refused("unsupported", "not-in-manifest", text, name, source_of(held))
    if isinstance(found, Absence):
        return draft.refused("unsupported", found.code, found.text, name, source_of(held))
    other = built_for_other(held.label, spec.cuda)
    if other is not None:
        code: ReasonCode = "cuda-version-unsupported"
        draft = draft.refused("unsupported", code, other, name, source_of(held))
    for entry in broken_constraints(held.redist, held.label, spec.cuda, data):
        text = f"{entry.reason}, and the set is for CUDA {spec.cuda}"
        source = data.policies.source("constraints", entry)
        draft = draft.refused("broken", "cuda-version-unsupported", text, name, source)
        draft = draft.noted(*data.policies.notes("constraints", entry))
    return draft


def _split_from(name: str, spec: SetSpec, data: SetData) -> str:
    """Name the package that has the files of another one as long as that one is not published."""
    for whole, split in data.policies.names.splits.items():
        since = Version.parse(split.since)
        if name in split.into and spec.cuda.components < since.components:
            return f"; before CUDA {since} its files lie in {whole}"
    return ""


def _explain_absence(draft: Draft, choice: Choice | None, spec: SetSpec, data: SetData) -> Draft:
    """Refuse a package if no release serves the set, with the reason against the newest one."""
    refusals = choice.chosen.newer_rejected if choice else ()
    if choice is not None and choice.uncovered is not None:
        refusals = (choice.uncovered,)
    for rejected in refusals:
        held = data.manifests[draft.redist or ""][Version.parse(rejected.release)]
        package = held.packages.get(draft.pname)
        if package is None:
            continue
        found = select_archive(package, spec.platform, spec.cuda)
        if not isinstance(found, Absence):
            is_uncovered = choice is not None and rejected is choice.uncovered
            found = Absence(
                "capability-unsupported" if is_uncovered else "cuda-version-unsupported",
                rejected.reason,
            )
        newest = f"no release of {draft.redist} serves this set; the newest, {held.label}"
        text = f"{newest}: {found.text}"
        return draft.refused("unsupported", found.code, text, draft.pname, source_of(held))
    text = f"no manifest held names {draft.pname}"
    return draft.refused("unsupported", "not-in-manifest", text, draft.pname, "manifests")


# -- requirements of policy


def require_packages(draft: Draft, find: FindVersions, spec: SetSpec, data: SetData) -> Draft:
    """Refuse a package that requires others, or versions of others, that the set lacks."""
    for entry in _requirements_of(draft, spec, data):
        source = data.policies.source("requirements", entry)
        for name, bounds in sorted((entry.needs_packages or {}).items()):
            others = [other for other in find(name, draft) if other.is_available]
            versions = [other.archive.version for other in others if other.archive is not None]
            problem = package_problem(name, bounds, versions)
            if problem is not None:
                text = f"{entry.reason}: {problem}"
                code: ReasonCode = "dependency-unavailable"
                draft = draft.refused(entry.kind, code, text, draft.pname, source)
    return draft


def _requirements_of(draft: Draft, spec: SetSpec, data: SetData) -> list[Requirement]:
    if draft.held is None or not draft.has_files:
        return []
    return requirements_of(draft.pname, draft.held.label, spec.target, data)


def _with_requirements(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    for entry in _requirements_of(draft, spec, data):
        source = data.policies.source("requirements", entry)
        draft = draft.noted(*data.policies.notes("requirements", entry))
        for code, problem in target_problems(entry, spec.target):
            text = f"{entry.reason}: {problem}"
            draft = draft.refused(entry.kind, code, text, draft.pname, source)
    return draft


# -- changes by the user


def fixups_for(name: str, spec: SetSpec, data: SetData) -> list[Fixup]:
    """Return the user's own changes to a package in a set, under any of its names."""
    return [
        fixup
        for fixup in data.policies.fixups.fixups
        if data.root(fixup.package) == data.root(name)
        and is_within(spec.cuda, fixup.cuda)
        and fixup.platform in {None, spec.platform}
    ]


def _with_fixups(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    for fixup in fixups_for(draft.pname, spec, data):
        name, source = draft.pname, data.policies.source("fixups", fixup)
        draft = draft.noted(f"fixup: {fixup.reason}")
        if fixup.withheld is not None and draft.status != "foreign":
            draft = draft.refused("withheld", "withheld-by-policy", fixup.withheld, name, source)
        if fixup.broken is not None and draft.archive is not None:
            draft = draft.refused("broken", "marked-broken", fixup.broken, name, source)
    return draft


# -- outputs


def _with_outputs(draft: Draft, spec: SetSpec, data: SetData) -> Draft:
    """Split a package into outputs by its features, or note why they are missing."""
    held, archive = draft.held, draft.archive
    if held is None or archive is None or archive.sha256 is None:
        return draft
    fixups = fixups_for(draft.pname, spec, data)
    # Overlays stand before what they add to, so that the first one counts.
    declared = next((f.outputs for f in fixups if f.outputs is not None), None)
    fixed = None if declared is None else order_outputs(declared)
    draft = replace(draft, outputs=fixed or ("out",)).noted(*_output_notes(draft.pname, data))
    features = data.read_features(held.redist, held.label)
    if features is None:
        return replace(draft, missing=f"no feature file of {held.redist} {held.label}")
    if features.is_overlay:
        draft = draft.noted("features")
    examined = features.examined.get((draft.pname, archive.sha256))
    if examined is None:
        return _with_legacy_outputs(draft, features, archive, fixed, data)
    refusal = nested_refusal(examined, spec.cuda)
    if refusal is not None:
        source = f"{held.redist}/feature_{held.label}.json"
        code: ReasonCode = "cuda-version-unsupported"
        return draft.refused("unsupported", code, refusal, draft.pname, source)
    policy = data.policies.outputs
    split = split_outputs(draft.pname, archive.version, examined, spec.cuda, policy, declared=fixed)
    empty = [name for name in split.outputs if not split.contents[name].files]
    empty = [name for name in empty if name not in {"out", "dev"}]
    if empty:
        text = f"nothing would be in {', '.join(empty)}, which is declared"
        draft = draft.refused("broken", "outputs-empty", text, draft.pname, "policy/fixups.json")
    headers = features.headers.get((draft.pname, archive.sha256))
    return replace(draft, split=split, outputs=split.outputs, headers=headers)


def _with_legacy_outputs(
    draft: Draft,
    features: HeldFeatures,
    archive: Archive,
    fixed: tuple[OutputName, ...] | None,
    data: SetData,
) -> Draft:
    """Take the outputs from a file of the earlier form, or note why the features are missing."""
    name, sha256 = draft.pname, archive.sha256 or ""
    legacy = features.legacy.get((name, archive.platform, archive.variant))
    if legacy is not None:
        is_fixed = fixed is not None or name in data.policies.outputs.collapse
        return draft if is_fixed else replace(draft, outputs=order_outputs(legacy))
    known = {package for package, *_ in (*features.examined, *features.unexamined)}
    unknown = f"its feature file is of another archive (not {sha256[:12]}…)"
    if name not in known:
        unknown = "its feature file does not have it"
    return replace(draft, missing=features.unexamined.get((name, sha256), unknown))


def _output_notes(name: str, data: SetData) -> tuple[str, ...]:
    policy = data.policies.outputs
    normalise = (entry for entry in policy.normalise if entry.package == name)
    entries = (policy.collapse.get(name), policy.propagates.get(name), *normalise)
    return data.policies.notes("outputs", *entries)
