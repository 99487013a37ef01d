"""Releases that fit a set only together with another version of a package that they require."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial

from cudaredist.formats.policy import Requirement
from cudaredist.formats.set_policy import Bounds
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version
from cudaredist.redists import CUDA
from cudaredist.sets.bounds import is_within
from cudaredist.sets.draft import Draft
from cudaredist.sets.platforms import select_archive
from cudaredist.sets.spec import SetSpec
from cudaredist.sets.version_choice import find_refused_pins


def with_pairs(drafts: Mapping[str, Draft], spec: SetSpec) -> dict[str, Draft]:
    """Add the pair of releases that fits to the reason against each missing package."""
    selected = {
        (draft.redist, str(draft.manifest.label)) for draft in drafts.values() if draft.manifest
    }
    return {attr: _with_pair(draft, selected, spec) for attr, draft in drafts.items()}


def _with_pair(draft: Draft, selected: AbstractSet[tuple[str | None, str]], spec: SetSpec) -> Draft:
    if draft.status not in {"unsupported", "broken"} or draft.is_additional_version:
        return draft
    pair = _find_pair(draft, spec)
    # If the set has the required releases, something else is against the package.
    if {*pair[1:]} <= selected:
        return draft
    names = " with ".join(f"{redist} {label}" for redist, label in pair)
    option = spec.request.options.also
    options = " ".join(f"{option} {redist}={label}" for redist, label in reversed(pair))
    (status, reason), *others = draft.refusals
    text = f"{reason.text}; {names} fits: add `{options}`"
    first = (status, reason.changed(text=text))
    return replace(draft, refusals=(first, *others))


def _find_pair(draft: Draft, spec: SetSpec) -> list[tuple[str, str]]:
    """Return the newest release of a package that fits with others, and these others."""
    for entry in spec.policies.requirements.requirements:
        if entry.package != draft.pname or not entry.needs_packages or not _applies(entry, spec):
            continue
        own = _newest(draft.pname, partial(_has_label, entry.releases), spec)
        others = [
            _newest(name, partial(_has_version, bounds), spec)
            for name, bounds in entry.needs_packages.items()
        ]
        pair = [release for release in (own, *others) if release is not None]
        if own is not None and len(pair) == 1 + len(others):
            return pair
    return []


def _has_label(bounds: Bounds, label: Version, _: Archive) -> bool:
    return is_within(label, bounds)


def _has_version(bounds: Bounds, _: Version, archive: Archive) -> bool:
    return is_within(archive.version, bounds)


def _applies(entry: Requirement, spec: SetSpec) -> bool:
    return is_within(spec.cuda, entry.cuda) and entry.platform in {None, spec.platform}


def _newest(
    name: str, fits: Callable[[Version, Archive], bool], spec: SetSpec
) -> tuple[str, str] | None:
    """Return the newest local release of a package that fits, with its redistributable."""
    redist, data = spec.data.names[name].redist, spec.data
    if redist is None or redist == CUDA:
        return None
    for label, manifest in sorted(data.manifests.get(redist, {}).items(), reverse=True):
        package = manifest.packages.get(name)
        selection = package and select_archive(package, spec.platform, spec.cuda)
        if not isinstance(selection, Archive) or not fits(label, selection):
            continue
        if not find_refused_pins(spec.target, {redist: manifest}, data):
            return redist, str(label)
    return None
