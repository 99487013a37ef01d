"""Which packages a set has, and why each of the others is not available."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cudaredist.errors import UsageError
from cudaredist.manifests import Archive
from cudaredist.packagesets.draft import Draft
from cudaredist.packagesets.inputs import (
    HeldFeatures,
    HeldManifest,
    SetData,
    bounds_text,
    is_within,
)
from cudaredist.packagesets.outputs import (
    make_layout,
    nested_refusal,
    order_outputs,
)
from cudaredist.packagesets.platforms import UNSUPPORTED, Absence, select_archive
from cudaredist.packagesets.version_choice import Choice, broken_constraints, built_for_other
from cudaredist.primitives import Version
from cudaredist.schema import Fixup, ReasonCode, Requirement
from cudaredist.tables.gpus import Capability


@dataclass(frozen=True, slots=True)
class Target:
    """What a set is for."""

    cuda: Version
    platform: str
    capabilities: tuple[str, ...]
    """Effective ones."""

    @property
    def system(self) -> str:
        """The operating system: linux, windows."""
        return self.platform.partition("-")[0]


@dataclass(frozen=True, slots=True)
class MissingFeatures:
    """A package whose archive was not examined, and why."""

    package: str
    reason: str


def make_entries(
    target: Target,
    choices: Mapping[str, Choice],
    also: Sequence[HeldManifest],
    data: SetData,
) -> tuple[dict[str, Draft], list[MissingFeatures]]:
    """Return an entry for every known name, and for further versions under their versioned names.

    An available package whose features are missing is named, and has no outputs but `out`. What a
    package requires of others is not looked at here. Raises `UsageError` where two entries would
    have one name.
    """
    entries = {}
    for name, known in data.names.items():
        choice = choices.get(known.redist) if known.redist else None
        held = choice.held if choice else None
        entries[name] = _entry(name, name, known.redist, held, target, data)
        if held is None and entries[name].is_available:
            _explain_absence(entries[name], choice, target, data)
    for held in also:
        for name in held.packages:
            if name not in data.policies.withheld.withheld:
                attr = versioned_attr(name, held.label)
                if attr in entries:
                    raise UsageError(
                        f"{held.redist} {held.label} would be {attr}, which is in the set already",
                        hint="take one release of each line",
                    )
                entries[attr] = _entry(attr, name, held.redist, held, target, data)
    missing = []
    for entry in entries.values():
        _apply_requirements(entry, target, data)
        _apply_fixups(entry, target, data)
        reason = _lay_out(entry, target, data) if entry.has_files else None
        if reason is not None and entry.is_available:
            missing.append(MissingFeatures(entry.attr, reason))
    return entries, missing


def find_aliases(entries: Mapping[str, Draft], data: SetData) -> dict[str, str]:
    """Return which names of a set are other names of which.

    Of a package that was renamed, the name that the release has is the entry, and all others lead
    to it. A release that has the same archives under both names has one package, which goes by the
    new one. What only policy calls an alias leads to its package in any case.
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
    """Say whether a release has the same archives under all of these names."""
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
    """Return where a fact of a manifest stands, as it is shown."""
    place = f"{held.redist}/redistrib_{held.label}.json"
    return f"overlay {place}" if held.is_overlay else place


def _entry(
    attr: str,
    name: str,
    redist: str | None,
    held: HeldManifest | None,
    target: Target,
    data: SetData,
) -> Draft:
    package = held.packages.get(name) if held else None
    draft = Draft(attr=attr, pname=name, redist=redist, held=held, package=package)
    if held is not None and held.is_overlay:
        draft.overlay.append("manifest")
    systems = data.names[name].systems
    is_for_others = bool(systems) and not systems & {"any", target.system}
    if is_for_others and target.platform != UNSUPPORTED:
        text = f"{name} is published for {' and '.join(sorted(systems))} only"
        draft.refuse("foreign", "other-operating-system", text, name, "manifests")
        return draft
    found = None if package is None else select_archive(package, target.platform, target.cuda)
    if isinstance(found, Archive):
        draft.archive = found
    withheld = data.policies.withheld.withheld.get(name)
    if withheld is not None:
        source = data.policies.source("withheld", withheld)
        draft.refuse("withheld", "withheld-by-policy", withheld.reason, name, source)
        draft.note(data.policies, "withheld", withheld)
        return draft
    if ("withheld", name) in data.policies.taken_away:
        draft.overlay.append("policy/withheld.json")
    if held is not None:
        _check_release(draft, held, found, target, data)
    return draft


def _check_release(
    draft: Draft, held: HeldManifest, found: Archive | Absence | None, target: Target, data: SetData
) -> None:
    """Refuse a package that its release does not have, or not for the set."""
    name = draft.pname
    if found is None:
        text = f"{held.redist} {held.label} has no {name}{_split_from(name, target, data)}"
        draft.refuse("unsupported", "not-in-manifest", text, name, source_of(held))
    elif isinstance(found, Absence):
        draft.refuse("unsupported", found.code, found.text, name, source_of(held))
    else:
        other = built_for_other(held.label, target.cuda)
        if other is not None:
            draft.refuse("unsupported", "cuda-version-unsupported", other, name, source_of(held))
        for entry in broken_constraints(held.redist, held.label, target.cuda, data):
            text = f"{entry.reason}, and the set is for CUDA {target.cuda}"
            source = data.policies.source("constraints", entry)
            draft.refuse("broken", "cuda-version-unsupported", text, name, source)
            draft.note(data.policies, "constraints", entry)


def _split_from(name: str, target: Target, data: SetData) -> str:
    """Say in which package the files of another one lie as long as it is not there."""
    for whole, split in data.policies.names.splits.items():
        since = Version.parse(split.since)
        if name in split.into and target.cuda.components < since.components:
            return f"; before CUDA {since} its files lie in {whole}"
    return ""


def _explain_absence(draft: Draft, choice: Choice | None, target: Target, data: SetData) -> None:
    """Refuse a package of which no release serves the set, by what speaks against the newest."""
    for rejected in choice.chosen.newer_rejected if choice else ():
        held = data.manifests[draft.redist or ""][Version.parse(rejected.release)]
        package = held.packages.get(draft.pname)
        if package is None:
            continue
        found = select_archive(package, target.platform, target.cuda)
        code = found.code if isinstance(found, Absence) else "cuda-version-unsupported"
        text = found.text if isinstance(found, Absence) else rejected.reason
        text = f"no release of {draft.redist} serves this set; the newest, {held.label}: {text}"
        draft.refuse("unsupported", code, text, draft.pname, source_of(held))
        return
    text = f"no manifest held names {draft.pname}"
    draft.refuse("unsupported", "not-in-manifest", text, draft.pname, "manifests")


# -- what packages require


def requirements_of(draft: Draft, target: Target, data: SetData) -> list[Requirement]:
    """Return what policy requires for a package of a set."""
    held = draft.held
    if held is None or not draft.has_files:
        return []
    return [
        entry
        for entry in data.policies.requirements.requirements
        if entry.package == draft.pname
        and is_within(held.label, entry.releases)
        and is_within(target.cuda, entry.cuda)
        and entry.platform in {None, target.platform}
    ]


def require_packages(
    draft: Draft,
    target: Target,
    entries: Mapping[str, Draft],
    real: Mapping[str, str],
    data: SetData,
) -> None:
    """Refuse a package that requires others, or versions of others, that the set has not."""
    for entry in requirements_of(draft, target, data):
        source = data.policies.source("requirements", entry)
        for name, bounds in sorted((entry.needs_packages or {}).items()):
            other = entries.get(real.get(name, name))
            if other is None or other.archive is None or not other.is_available:
                text = f"{entry.reason}: {name} is not available"
            elif not is_within(other.archive.version, bounds):
                text = (
                    f"{entry.reason}: needs {name} {bounds_text(bounds)}, "
                    f"the set has {other.archive.version}"
                )
            else:
                continue
            draft.refuse(entry.kind, "dependency-unavailable", text, draft.pname, source)


def _apply_requirements(draft: Draft, target: Target, data: SetData) -> None:
    for entry in requirements_of(draft, target, data):
        source = data.policies.source("requirements", entry)
        draft.note(data.policies, "requirements", entry)
        for code, text in _failures(entry, target):
            draft.refuse(entry.kind, code, f"{entry.reason}: {text}", draft.pname, source)


def _failures(entry: Requirement, target: Target) -> Iterator[tuple[ReasonCode, str]]:
    names = target.capabilities
    if entry.min_capability is not None:
        least = Capability.parse(entry.min_capability)
        low = [name for name in names if Capability.parse(name).base < least]
        if low:
            yield "capability-unsupported", f"the set is for {', '.join(low)} as well"
    if entry.only_capabilities is not None:
        others = [name for name in names if name not in entry.only_capabilities]
        if others:
            yield "capability-unsupported", f"the set is for {', '.join(others)} as well"
    if entry.exact_capabilities is not None and set(names) != set(entry.exact_capabilities):
        wanted = ", ".join(entry.exact_capabilities)
        yield "capability-unsupported", f"it takes exactly {wanted}, the set {', '.join(names)}"
    if entry.needs_cuda is not None and not is_within(target.cuda, entry.needs_cuda):
        yield "cuda-version-unsupported", f"needs CUDA {bounds_text(entry.needs_cuda)}"


# -- what a user changes


def fixups_for(name: str, target: Target, data: SetData) -> list[Fixup]:
    """Return the user's own changes to a package in a set, under whichever of its names."""
    return [
        fixup
        for fixup in data.policies.fixups.fixups
        if data.root(fixup.package) == data.root(name)
        and is_within(target.cuda, fixup.cuda)
        and fixup.platform in {None, target.platform}
    ]


def _apply_fixups(draft: Draft, target: Target, data: SetData) -> None:
    for fixup in fixups_for(draft.pname, target, data):
        source = data.policies.source("fixups", fixup)
        draft.overlay.append(f"fixup: {fixup.reason}")
        if fixup.withheld is not None and draft.status != "foreign":
            draft.refuse("withheld", "withheld-by-policy", fixup.withheld, draft.pname, source)
        if fixup.broken is not None and draft.archive is not None:
            draft.refuse("broken", "marked-broken", fixup.broken, draft.pname, source)


# -- outputs


def _lay_out(draft: Draft, target: Target, data: SetData) -> str | None:
    """Split a package into outputs by its features; say why not where there are none."""
    held, archive = draft.held, draft.archive
    if held is None or archive is None or archive.sha256 is None:
        return None
    # Overlays stand before what they add to, so that the first one counts.
    declared = next(
        (f.outputs for f in fixups_for(draft.pname, target, data) if f.outputs is not None), None
    )
    if declared is not None:
        draft.outputs = order_outputs(declared)
    _note_policy(draft, data)
    features = data.read_features(held.redist, held.label)
    if features is None:
        return f"no feature file of {held.redist} {held.label}"
    if features.is_overlay:
        draft.overlay.append("features")
    examined = features.examined.get((draft.pname, archive.sha256))
    if examined is None:
        return _lay_out_unexamined(draft, features, archive, data, is_fixed=declared is not None)
    refusal = nested_refusal(examined, target.cuda)
    if refusal is not None:
        source = f"{held.redist}/feature_{held.label}.json"
        draft.refuse("unsupported", "cuda-version-unsupported", refusal, draft.pname, source)
        return None
    layout = make_layout(
        draft.pname,
        archive.version,
        examined,
        target.cuda,
        data.policies.outputs,
        declared=None if declared is None else draft.outputs,
    )
    empty = [name for name, part in layout.contents.items() if not part.files]
    empty = [name for name in empty if name not in {"out", "dev"}]
    if empty:
        text = f"nothing would be in {', '.join(empty)}, which is declared"
        draft.refuse("broken", "outputs-empty", text, draft.pname, "policy/fixups.json")
    draft.examined, draft.layout, draft.outputs = examined, layout, layout.outputs
    return None


def _lay_out_unexamined(
    draft: Draft, features: HeldFeatures, archive: Archive, data: SetData, *, is_fixed: bool
) -> str | None:
    """Take the outputs that a file of the earlier form names; say why not where none does."""
    sha256 = archive.sha256 or ""
    legacy = features.legacy.get((draft.pname, archive.platform, archive.variant))
    if legacy is None:
        known = {name for name, *_ in (*features.examined, *features.unexamined)}
        unknown = f"its feature file is of another archive (not {sha256[:12]}…)"
        if draft.pname not in known:
            unknown = "its feature file does not have it"
        return features.unexamined.get((draft.pname, sha256), unknown)
    if not is_fixed and draft.pname not in data.policies.outputs.collapse:
        draft.outputs = order_outputs(legacy)
    return None


def _note_policy(draft: Draft, data: SetData) -> None:
    policy = data.policies.outputs
    draft.note(data.policies, "outputs", policy.collapse.get(draft.pname))
    draft.note(data.policies, "outputs", policy.propagates.get(draft.pname))
    for entry in policy.normalise:
        if entry.package == draft.pname:
            draft.note(data.policies, "outputs", entry)
