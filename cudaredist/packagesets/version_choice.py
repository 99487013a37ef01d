"""Which release of each redistributable a set takes, and why none newer."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cudaredist.errors import UnknownNameError, UsageError, command_line, shown
from cudaredist.manifests.manifest_values import Archive
from cudaredist.packagesets.inputs import HeldManifest, SetData, is_within
from cudaredist.packagesets.outputs import nested_refusal
from cudaredist.packagesets.platforms import Absence, select_archive
from cudaredist.packagesets.requirements import (
    SetTarget,
    package_problem,
    requirements_of,
    target_problems,
)
from cudaredist.packagesets.set_coverage import RequiredCoverage, coverage_problem
from cudaredist.primitives import Version
from cudaredist.redists import CUDA, REDISTS
from cudaredist.schema.features import ExaminedArchive
from cudaredist.schema.packageset import ChosenRelease, RejectedRelease
from cudaredist.schema.policy import Constraint

EARLY = "has no hashes, so no set can be built from it"
"""The reason against releases whose manifest has the early form."""

_Unmet: TypeAlias = Callable[[HeldManifest, Archive], str | None]
"""Returns the requirement of a release's package that the set does not meet."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The release of one redistributable."""

    held: HeldManifest | None
    """None where none is published for the set."""
    chosen: ChosenRelease
    uncovered: RejectedRelease | None = None
    """The newest release that only lacks the required coverage."""


def find_cuda(text: str, data: SetData) -> Version:
    """Return the CUDA release of that label, or the newest patch of that minor.

    Raises `UsageError`, which suggests the nearest, where it is not held or names no hashes.
    """
    labels = data.cuda_labels
    found = [label for label in labels if str(label) == text]
    found = found or [label for label in labels if label.line == text]
    if found:
        return found[-1]
    early = [label for label in data.early_labels if text in {str(label), label.line}]
    if early:
        raise UsageError(
            f"the manifest of CUDA {early[-1]} {EARLY}",
            hint=f"the oldest local release with hashes is {labels[0]}" if labels else None,
        )
    if not labels:
        raise _no_cuda(data)
    raise UsageError(f"CUDA {shown(text)} is not held", hint=_nearest_hint(text, labels))


def _nearest_hint(text: str, labels: Sequence[Version]) -> str:
    """Name the releases held next to what was asked for; of a major alone, its minors."""
    try:
        wanted = Version.parse(text)
    except ValueError:
        return f"held: {', '.join(map(str, labels))}"
    if len(wanted.components) == 1:
        minors = dict.fromkeys(x.line for x in labels if x.components[:1] == wanted.components)
        if minors:
            return f"name a minor: {', '.join(minors)}"
    older = [label for label in labels if label < wanted][-1:]
    newer = [label for label in labels if label > wanted][:1]
    return f"the nearest held: {' and '.join(map(str, [*older, *newer]))}"


def newest_patches(data: SetData) -> list[Version]:
    """Return the newest release of each CUDA minor held, in ascending order.

    Raises `UsageError` where none is held.
    """
    newest = list({label.line: label for label in data.cuda_labels}.values())
    if not newest:
        raise _no_cuda(data)
    return newest


def _no_cuda(data: SetData) -> UsageError:
    download = command_line("download-manifests", channel=data.channel, redist=CUDA)
    return UsageError("no local CUDA manifest has hashes", hint=f"run `{download}`")


def choose_releases(
    target: SetTarget,
    pins: Mapping[str, HeldManifest],
    data: SetData,
    *,
    coverage: RequiredCoverage | None = None,
) -> dict[str, Choice]:
    """Choose the release of every redistributable: the pinned one, else the newest that fits.

    Redistributables that require versions of others are chosen after those. If a coverage is
    required, releases without it are never chosen, except CUDA's own and pinned ones.
    """
    fixed = {**pins, CUDA: data.manifests[CUDA][target.cuda]}
    requirements = data.policies.requirements.requirements
    requiring = {data.names[entry.package].redist for entry in requirements if entry.needs_packages}
    choices: dict[str, Choice] = {}
    for redist in sorted(data.manifests, key=lambda name: (name in requiring, name)):
        held = fixed.get(redist)
        choices[redist] = (
            _fitting(redist, target, choices, data, coverage) if held is None else _pinned(held)
        )
    return dict(sorted(choices.items()))


def find_release(redist: str, text: str, data: SetData) -> HeldManifest:
    """Return the held manifest of a redistributable; `UsageError` where there is none."""
    if redist not in data.manifests:
        raise UnknownNameError("held redistributable", redist, data.manifests)
    labels = data.manifests[redist]
    found = next((held for label, held in labels.items() if str(label) == text), None)
    if found is None:
        hint = _nearest_hint(text, sorted(labels))
        raise UsageError(f"{redist} {shown(text)} is not held", hint=hint)
    return found


def broken_constraints(
    redist: str, label: Version, cuda: Version, data: SetData
) -> list[Constraint]:
    """Return the constraints of policy that a release breaks with a CUDA release."""
    return [
        entry
        for entry in data.policies.constraints.constraints
        if entry.redist == redist
        and is_within(label, entry.releases)
        and not is_within(cuda, entry.cuda)
    ]


def built_for_other(label: Version, cuda: Version) -> str | None:
    """Say which other CUDA a label names, as NCCL's do; None where it names none."""
    if not label.suffix or label.suffix[0] == cuda.components[0]:
        return None
    return f"built for CUDA {label.suffix[0]}"


def _pinned(held: HeldManifest) -> Choice:
    return Choice(held, ChosenRelease(release=str(held.label), mode="pinned", newer_rejected=()))


def _fitting(
    redist: str,
    target: SetTarget,
    choices: Mapping[str, Choice],
    data: SetData,
    coverage: RequiredCoverage | None,
) -> Choice:
    """Return the newest release whose requirements the set meets, else the newest published."""
    uncovered: set[str] = set()

    def uncovered_reason(held: HeldManifest, archive: Archive) -> str | None:
        if coverage is None:
            return None
        examined = examined_archive(held, archive, data)
        problem = coverage_problem(examined, archive, target, coverage, data)
        if problem is not None:
            uncovered.add(problem)
        return problem

    def unmet(held: HeldManifest, archive: Archive) -> str | None:
        reason = next(_unmet(held, archive, target, choices, data), None)
        return reason or uncovered_reason(held, archive)

    fitting = _newest(redist, target, data, unmet)
    if not uncovered:
        return fitting if fitting.held else _newest(redist, target, data)
    if fitting.held is not None:
        return _naming_newest(fitting, uncovered)
    rejected = fitting.chosen.newer_rejected
    newest = next(entry for entry in rejected if entry.reason in uncovered)
    return replace(_newest(redist, target, data, uncovered_reason), uncovered=newest)


def _naming_newest(choice: Choice, uncovered: Collection[str]) -> Choice:
    """Name the chosen release in the reasons against newer ones that lack coverage."""
    suffix = f"; the newest that has it is {choice.chosen.release}"
    named = {
        entry.release: entry.model_copy(update={"reason": entry.reason + suffix})
        for entry in choice.chosen.newer_rejected
        if entry.reason in uncovered
    }
    rejected = tuple(named.get(entry.release, entry) for entry in choice.chosen.newer_rejected)
    chosen = choice.chosen.model_copy(update={"newer_rejected": rejected})
    return replace(choice, chosen=chosen, uncovered=next(iter(named.values())))


def _unmet(
    held: HeldManifest,
    archive: Archive,
    target: SetTarget,
    choices: Mapping[str, Choice],
    data: SetData,
) -> Iterator[str]:
    """Yield the reasons why a set does not meet the requirements of a release's package."""
    for entry in requirements_of(archive.package, held.label, target, data):
        for _, problem in target_problems(entry, target):
            yield f"{entry.reason}: {problem}"
        for name, bounds in sorted((entry.needs_packages or {}).items()):
            other = choices.get(data.names[name].redist or "")
            package = other.held.packages.get(name) if other and other.held else None
            found = package and select_archive(package, target.platform, target.cuda)
            versions = [found.version] if isinstance(found, Archive) else []
            lacking = package_problem(name, bounds, versions)
            if lacking is not None:
                yield f"{entry.reason}: {lacking}"


def _newest(redist: str, target: SetTarget, data: SetData, unmet: _Unmet | None = None) -> Choice:
    """Return the newest release that serves a set.

    Of NCCL's builds for several toolkits of one major, those for a later minor than the set's come
    last.
    """
    cuda = target.cuda
    refusals: dict[Version, str | None] = {}
    best: Version | None = None
    for label in sorted(data.manifests[redist], reverse=True):
        is_settled = best is not None and not is_for_later_cuda(best, cuda)
        if best is not None and is_settled and label.components < best.components:
            break
        refusals[label] = _refusal(data.manifests[redist][label], target, data, unmet)
        if refusals[label] is None and (best is None or _rank(label, cuda) > _rank(best, cuda)):
            best = label
    rejected = tuple(
        RejectedRelease(
            release=str(label),
            reason=refusal or f"built for another CUDA {cuda.components[0]} than the set's",
        )
        for label, refusal in refusals.items()
        if best is None or label > best
    )
    chosen = ChosenRelease(
        release=None if best is None else str(best), mode="auto", newer_rejected=rejected
    )
    return Choice(None if best is None else data.manifests[redist][best], chosen)


def _rank(label: Version, cuda: Version) -> tuple[object, ...]:
    """Order releases: by version, then by toolkit, and builds for a later minor last."""
    is_later = is_for_later_cuda(label, cuda)
    distance = tuple(-number for number in label.suffix) if is_later else label.suffix
    return (not is_later, label.components, distance)


def is_for_later_cuda(label: Version, cuda: Version) -> bool:
    """Check if a label names a later CUDA minor, as NCCL's can."""
    return label.suffix > cuda.components[:2]


def _refusal(
    held: HeldManifest, target: SetTarget, data: SetData, unmet: _Unmet | None
) -> str | None:
    """Return the reason why a release does not serve a set, or None."""
    other = built_for_other(held.label, target.cuda)
    if other is not None:
        return other
    for entry in broken_constraints(held.redist, held.label, target.cuda, data):
        return entry.reason
    refusals = []
    for name in _main_packages(held, data):
        found = select_archive(held.packages[name], target.platform, target.cuda)
        if isinstance(found, Absence):
            refusal: str | None = found.text
        else:
            refusal = _nested(held, found, target.cuda, data)
            if refusal is None and unmet is not None:
                refusal = unmet(held, found)
        if refusal is None:
            return None
        refusals.append(refusal)
    return refusals[0] if refusals else "names no package that a set takes"


def _main_packages(held: HeldManifest, data: SetData) -> Iterable[str]:
    """Return what a release is judged by: the product's first package, else all not withheld."""
    known = REDISTS.get(held.redist)
    first = known.packages[:1] if known else ()
    main = [name for name in first if name in held.packages]
    withheld = data.policies.withheld.withheld
    return main or sorted(name for name in held.packages if name not in withheld)


def _nested(held: HeldManifest, archive: Archive, cuda: Version, data: SetData) -> str | None:
    examined = examined_archive(held, archive, data)
    return None if examined is None else nested_refusal(examined, cuda)


def examined_archive(held: HeldManifest, archive: Archive, data: SetData) -> ExaminedArchive | None:
    """Return what is known of an archive; None if it was not examined."""
    features = data.read_features(held.redist, held.label)
    if features is None or archive.sha256 is None:
        return None
    return features.examined.get((archive.package, archive.sha256))
