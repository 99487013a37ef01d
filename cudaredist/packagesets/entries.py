"""Which packages a set has, and why each of the others is not available."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cudaredist.gpus import Capability
from cudaredist.manifests import Archive
from cudaredist.packagesets.data import HeldManifest, SetData, bounds_text, is_within
from cudaredist.packagesets.draft import Draft
from cudaredist.packagesets.outputs import make_layout, nested_refusal, order_outputs
from cudaredist.packagesets.platforms import Absence, select_archive
from cudaredist.packagesets.versions import Choice, broken_constraints
from cudaredist.primitives import Version
from cudaredist.schema import Fixup, ReasonCode, Requirement


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

    An available package whose features are missing is named, and has no outputs but `out`.
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
                entries[attr] = _entry(attr, name, held.redist, held, target, data)
    for entry in entries.values():
        _apply_requirements(entry, target, entries, data)
        _apply_fixups(entry, target, data)
    missing = []
    for entry in entries.values():
        if entry.archive is not None and entry.status in {"available", "broken"}:
            reason = _lay_out(entry, target, data)
            if reason is not None and entry.is_available:
                missing.append(MissingFeatures(entry.attr, reason))
    return entries, missing


def versioned_attr(name: str, label: Version) -> str:
    """Return the name of one version beside the chosen one: `cudnn_8_9`."""
    return f"{name}_{'_'.join(label.line.partition('-')[0].split('.'))}"


def source_of(held: HeldManifest | None) -> str:
    """Return where a fact of a manifest stands, as it is shown."""
    if held is None:
        return "manifests"
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
    known = data.names[name]
    if known.systems and "any" not in known.systems and target.system not in known.systems:
        systems = " and ".join(sorted(known.systems))
        text = f"{name} is published for {systems} only"
        draft.refuse("foreign", "other-operating-system", text, name, "manifests")
        return draft
    found = None if package is None else select_archive(package, target.platform, target.cuda)
    withheld = data.policies.withheld.withheld.get(name)
    if withheld is not None:
        draft.archive = found if isinstance(found, Archive) else None
        source = data.policies.source("withheld", withheld)
        draft.refuse("withheld", "withheld-by-policy", withheld.reason, name, source)
        if data.policies.is_overlaid(withheld):
            draft.overlay.append("policy/withheld.json")
        return draft
    if held is None:
        return draft
    if found is None:
        text = f"{held.redist} {held.label} has no {name}"
        draft.refuse("unsupported", "not-in-manifest", text, name, source_of(held))
    elif isinstance(found, Absence):
        draft.refuse("unsupported", found.code, found.text, name, source_of(held))
    else:
        draft.archive = found
        for entry in broken_constraints(held.redist, held.label, target.cuda, data):
            text = f"{entry.reason} (CUDA {bounds_text(entry.cuda)})"
            source = data.policies.source("constraints", entry)
            draft.refuse("broken", "cuda-version-unsupported", text, name, source)
    return draft


def _explain_absence(draft: Draft, choice: Choice | None, target: Target, data: SetData) -> None:
    """Refuse a package of which no release serves the set, by what speaks against the newest."""
    if choice is None:
        text = f"no manifest held names {draft.pname}"
        draft.refuse("unsupported", "not-in-manifest", text, draft.pname, "manifests")
        return
    for rejected in choice.chosen.newer_rejected:
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


def _apply_requirements(
    draft: Draft, target: Target, entries: Mapping[str, Draft], data: SetData
) -> None:
    if draft.archive is None or draft.held is None or draft.status == "withheld":
        return
    for entry in data.policies.requirements.requirements:
        if (
            entry.package != draft.pname
            or not is_within(draft.held.label, entry.releases)
            or not is_within(target.cuda, entry.cuda)
            or entry.platform not in {None, target.platform}
        ):
            continue
        source = data.policies.source("requirements", entry)
        if data.policies.is_overlaid(entry):
            draft.overlay.append("policy/requirements.json")
        for code, text in _failures(entry, target, entries):
            draft.refuse(entry.kind, code, f"{entry.reason}: {text}", draft.pname, source)
    if draft.status == "unsupported":
        draft.archive = None


def _failures(
    entry: Requirement, target: Target, entries: Mapping[str, Draft]
) -> Iterator[tuple[ReasonCode, str]]:
    names = target.capabilities
    parsed = {name: Capability.parse(name) for name in names}
    if entry.min_capability is not None:
        least = Capability.parse(entry.min_capability)
        low = [name for name in names if parsed[name].base < least]
        if low:
            yield "capability-unsupported", f"{', '.join(low)} are asked for"
    if entry.only_capabilities is not None:
        others = [name for name in names if name not in entry.only_capabilities]
        if others:
            yield "capability-unsupported", f"{', '.join(others)} are asked for"
    if entry.exact_capabilities is not None and set(names) != set(entry.exact_capabilities):
        wanted = ", ".join(entry.exact_capabilities)
        yield "capability-unsupported", f"exactly {wanted} must be asked for"
    if entry.needs_cuda is not None and not is_within(target.cuda, entry.needs_cuda):
        yield "cuda-version-unsupported", f"needs CUDA {bounds_text(entry.needs_cuda)}"
    for name, bounds in sorted((entry.needs_packages or {}).items()):
        other = entries.get(name)
        if other is None or other.archive is None or not other.is_available:
            yield "dependency-unavailable", f"{name} is not available"
        elif not is_within(other.archive.version, bounds):
            text = f"needs {name} {bounds_text(bounds)}, the set has {other.archive.version}"
            yield "dependency-unavailable", text


def fixups_for(name: str, target: Target, data: SetData) -> list[Fixup]:
    """Return the user's own changes to a package in a set."""
    return [
        fixup
        for fixup in data.policies.fixups.fixups
        if fixup.package == name
        and is_within(target.cuda, fixup.cuda)
        and fixup.platform in {None, target.platform}
    ]


def _apply_fixups(draft: Draft, target: Target, data: SetData) -> None:
    for fixup in fixups_for(draft.pname, target, data):
        source = data.policies.source("fixups", fixup)
        draft.overlay.append(f"fixup: {fixup.reason}")
        if draft.archive is None:
            continue
        if fixup.withheld is not None:
            draft.refuse("withheld", "withheld-by-policy", fixup.withheld, draft.pname, source)
        if fixup.broken is not None:
            draft.refuse("broken", "marked-broken", fixup.broken, draft.pname, source)


def _lay_out(draft: Draft, target: Target, data: SetData) -> str | None:
    """Split a package into outputs by its features; say why not where there are none."""
    held, archive = draft.held, draft.archive
    if held is None or archive is None or archive.sha256 is None:
        return None
    features = data.read_features(held.redist, held.label)
    fixed = [f.outputs for f in fixups_for(draft.pname, target, data) if f.outputs is not None]
    if features is None:
        draft.outputs = fixed[-1] if fixed else ("out",)
        return f"no feature file of {held.redist} {held.label}"
    key = (draft.pname, archive.sha256)
    examined = features.examined.get(key)
    if examined is None:
        legacy = features.legacy.get((draft.pname, archive.platform, archive.variant))
        if legacy is not None:
            draft.outputs = fixed[-1] if fixed else order_outputs(legacy)
            return None
        draft.outputs = fixed[-1] if fixed else ("out",)
        reason = features.unexamined.get(key)
        of_other = f"the feature file of {held.redist} {held.label} is of another archive"
        return reason if reason is not None else f"{of_other} (not {archive.sha256[:12]}…)"
    refusal = nested_refusal(examined, target.cuda)
    if refusal is not None:
        source = f"{held.redist}/feature_{held.label}.json"
        draft.refuse("unsupported", "cuda-version-unsupported", refusal, draft.pname, source)
        draft.archive = None
        return None
    draft.examined = examined
    draft.layout = make_layout(
        draft.pname, archive.version, examined, target.cuda, data.policies.outputs
    )
    draft.outputs = fixed[-1] if fixed else draft.layout.outputs
    if fixed:
        # What the user declares stands; what the features say of other outputs goes to `out`.
        draft.layout = draft.layout._replace(outputs=draft.outputs)
    collapse = data.policies.outputs.collapse.get(draft.pname)
    if collapse is not None and data.policies.is_overlaid(collapse):
        draft.overlay.append("policy/outputs.json")
    return None
