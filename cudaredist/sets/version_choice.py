"""Selection of each redistributable's release for a set."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.packageset import ChosenRelease, RejectedRelease
from cudaredist.hints import command_line, correction_line
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version, find_release
from cudaredist.redists import CUDA, REDISTS
from cudaredist.sets.cuda_libraries import CudaLibraries
from cudaredist.sets.cuda_releases import (
    broken_constraints,
    built_for_other,
    is_for_later_cuda,
    missing_release,
)
from cudaredist.sets.inputs import InputManifest, SetData
from cudaredist.sets.linked_symbols import LinkedSymbols, examined_archive
from cudaredist.sets.platforms import Absence, select_archive
from cudaredist.sets.requirements import (
    SetTarget,
    requirement_problems,
    requirements_of,
)
from cudaredist.sets.set_coverage import RequiredCoverage, coverage_problem
from cudaredist.wheel_projects import package_of_project
from cudaredist.words import shown

EARLY = "has no hashes, so no set can be built from it"
"""The reason against releases with manifests of the early form."""


class _Refusal(NamedTuple):
    """The reason against a release."""

    text: str
    lacks_coverage: bool = False
    """Whether it only lacks the required coverage."""
    is_unpublished: bool = False
    """Whether it has no archive for the platform or the CUDA release."""


_UNPUBLISHED = frozenset({"platform-not-published", "variant-not-published"})
"""Codes of absent archives that do not exist at all."""
_Check: TypeAlias = Callable[[InputManifest, Archive], _Refusal | None]
"""Returns a reason against a release with this archive, or None."""


class RefusedPin(NamedTuple):
    """A pinned release that a set cannot use, or that policy calls broken there."""

    label: str
    reason: str
    is_published: bool
    """Whether the set has an archive of it, so that only policy refuses it."""


class Choice(NamedTuple):
    """The selected release of one redistributable."""

    manifest: InputManifest | None
    """None if no release is published for the set."""
    chosen: ChosenRelease
    uncovered: RejectedRelease | None = None
    """The newest release that only lacks the required coverage."""


def find_cuda(text: str, data: SetData) -> Version:
    """Return the CUDA release for a label or prefix.

    An early-access release requires its whole label. Raises `UsageError`, which suggests the
    nearest release, if the release is not in the data folder or its manifest has no hashes.
    """
    labels = data.cuda_labels
    manifests = data.manifests.get(CUDA, {})
    previews = {str(label): label for label, x in manifests.items() if x.is_preview}
    release = find_release(text, labels) or previews.get(text)
    if release is not None:
        return release
    early = find_release(text, data.early_labels)
    if early is not None:
        hint = f"the oldest local release with hashes is {labels[0]}" if labels else None
        raise UsageError(f"the manifest of CUDA {early} {EARLY}", hint=hint)
    if not labels:
        raise _no_cuda(data)
    raise missing_release("CUDA", text, labels)


def newest_patches(data: SetData) -> list[Version]:
    """Return the newest local release of each CUDA minor.

    Raises `UsageError` if there is none.
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
    pins: Mapping[str, InputManifest],
    data: SetData,
    *,
    coverage: RequiredCoverage | None = None,
) -> dict[str, Choice]:
    """Choose the pinned or newest suitable release of every redistributable.

    Redistributables that require versions of others are chosen after those. If coverage is
    required, releases without it are never chosen, except CUDA's own release and pinned ones.
    """
    fixed = {**pins, CUDA: data.manifests[CUDA][target.cuda]}
    policy = data.policies.requirements
    requiring = {entry.package for entry in policy.requirements if entry.needs_packages}
    requiring |= {package_of_project(project) for project in policy.wheels}
    last = {data.names[package].redist for package in requiring if package in data.names}
    libraries = CudaLibraries(target.cuda, target.platform, data)
    symbols = LinkedSymbols(target, data)
    symbols.add(fixed[CUDA])
    chooser = _Chooser(target, data, coverage, libraries, symbols)
    for redist in sorted(data.manifests, key=lambda name: (name in last, name)):
        manifest = fixed.get(redist)
        if manifest is None:
            chooser.choices[redist] = chooser.fitting(redist)
        else:
            pinned = ChosenRelease(release=str(manifest.label), mode="pinned", newer_rejected=())
            chooser.choices[redist] = Choice(manifest, pinned)
        selected = chooser.choices[redist].manifest
        if selected is not None and redist != CUDA:
            symbols.add(selected)
    return dict(sorted(chooser.choices.items()))


def find_refused_pins(
    target: SetTarget, pins: Mapping[str, InputManifest], data: SetData
) -> dict[str, RefusedPin]:
    """Return the pinned releases that a set cannot use, by redistributable.

    Requirements on other packages are not checked.
    """
    libraries = CudaLibraries(target.cuda, target.platform, data)
    chooser = _Chooser(target, data, None, libraries, LinkedSymbols(target, data))
    refused = {redist: chooser.refused_pin(manifest) for redist, manifest in pins.items()}
    return {redist: pin for redist, pin in refused.items() if pin is not None}


def find_manifest(redist: str, text: str, cuda: Version, data: SetData) -> InputManifest:
    """Return the manifest of a redistributable's release, for a label or prefix.

    NCCL's builds for the CUDA release are preferred to others. Raises `UsageError` if the release
    is not in the data folder.
    """
    if redist not in data.manifests:
        raise UnknownNameError("local redistributable", redist, data.manifests)
    manifests = data.manifests[redist]
    fitting = [label for label in manifests if built_for_other(label, cuda) is None]
    of_minor = [label for label in fitting if not is_for_later_cuda(label, cuda)]
    for labels in (of_minor, fitting, manifests):
        release = find_release(text, labels)
        if release is not None:
            return manifests[release]
    label, mark, _ = text.partition(".post")
    if mark and find_release(label, manifests) is not None:
        hint = "`policy/wheels.json` in the data folder selects the build of a release"
        message = f"{shown(text)} is a build of the wheel of {redist} {label}, not a release"
        raise UsageError(message, hint=correction_line(hint, text, [label]))
    raise missing_release(redist, text, sorted(manifests))


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Chooses releases that are not pinned."""

    target: SetTarget
    data: SetData
    coverage: RequiredCoverage | None
    libraries: CudaLibraries
    symbols: LinkedSymbols
    """The symbols of the libraries chosen so far."""
    choices: dict[str, Choice] = field(default_factory=dict)
    """The choices so far."""

    def fitting(self, redist: str) -> Choice:
        """Return the newest suitable release, else the newest published one.

        If every suitable release lacks symbols, the set gets the newest of them with a warning.
        """
        checks = (self._unmet, self._uncovered)
        choice = self._newest(redist, self._lacking_symbols, *checks, names_newest=True)
        if choice.manifest is None:
            choice = self._newest(redist, *checks, names_newest=True)
        if choice.manifest is not None:
            return choice
        if choice.uncovered is None:
            return self._newest(redist)
        return self._newest(redist, self._uncovered)._replace(uncovered=choice.uncovered)

    def _unmet(self, manifest: InputManifest, archive: Archive) -> _Refusal | None:
        """Return the first unmet requirement of a release's package, or None."""
        target, policy = self.target, self.data.policies.requirements
        for entry in requirements_of(archive.package, manifest.label, target, policy):
            for _, problem in requirement_problems(entry, target, self._versions_of):
                return _Refusal(problem)
        return None

    def _lacking_symbols(self, manifest: InputManifest, archive: Archive) -> _Refusal | None:
        """Return the symbols that a release's package needs and the set lacks, or None."""
        problem = self.symbols.refusal(manifest, archive)
        return _Refusal(problem) if problem else None

    def _versions_of(self, name: str) -> list[Version]:
        """Return the version of a package in the releases chosen so far."""
        choice = self.choices.get(self.data.names[name].redist or "")
        package = choice.manifest.packages.get(name) if choice and choice.manifest else None
        selection = package and select_archive(package, self.target.platform, self.target.cuda)
        return [selection.version] if isinstance(selection, Archive) else []

    def _uncovered(self, manifest: InputManifest, archive: Archive) -> _Refusal | None:
        """Return the gaps in the required coverage of a release's package, or None."""
        if self.coverage is None:
            return None
        examined = examined_archive(manifest, archive, self.data)
        problem = coverage_problem(examined, archive, self.target, self.coverage, self.data)
        return _Refusal(problem, lacks_coverage=True) if problem else None

    def _for_other_cuda(self, manifest: InputManifest, archive: Archive) -> _Refusal | None:
        """Return a refusal if a release's package is for other CUDA releases, or None."""
        redist, label, cuda = manifest.redist, manifest.label, self.target.cuda
        stated = self.data.cuda_majors.refusal(redist, label, archive.id, cuda)
        if stated is not None:
            return _Refusal(stated.text)
        examined = examined_archive(manifest, archive, self.data)
        problem = self.libraries.refusal(examined) if examined else None
        return _Refusal(problem) if problem else None

    def refused_pin(self, manifest: InputManifest) -> RefusedPin | None:
        """Return the reason against a pinned release, or None."""
        label, cuda = manifest.label, self.target.cuda
        refused: RefusedPin | None = None
        for entry in broken_constraints(
            manifest.redist, label, cuda, self.data.policies.constraints
        ):
            refused = RefusedPin(str(label), entry.reason, is_published=True)
        packages = [
            self._refused_package(name, manifest) for name in main_packages(manifest, self.data)
        ]
        return packages[0] if packages and all(packages) else refused

    def _refused_package(self, name: str, manifest: InputManifest) -> RefusedPin | None:
        """Return the reason against a package of a pinned release, or None."""
        label, target = str(manifest.label), self.target
        other = built_for_other(manifest.label, target.cuda)
        if other is not None:
            return RefusedPin(label, other, is_published=False)
        selection = select_archive(manifest.packages[name], target.platform, target.cuda)
        if isinstance(selection, Absence):
            return RefusedPin(label, selection.text, is_published=False)
        refusal = self._for_other_cuda(manifest, selection)
        if refusal is not None:
            return RefusedPin(label, refusal.text, is_published=False)
        policy, refused = self.data.policies.requirements, None
        for entry in requirements_of(name, manifest.label, target, policy):
            for _, problem in requirement_problems(entry, target):
                if entry.kind == "unsupported":
                    return RefusedPin(label, problem, is_published=False)
                refused = RefusedPin(label, problem, is_published=True)
        return refused

    def _newest(self, redist: str, *checks: _Check, names_newest: bool = False) -> Choice:
        """Return the newest release that supports a set.

        NCCL has builds for several CUDA releases of one major. Those for a minor newer than the
        set's are the last choice. `names_newest` adds the release to reasons against uncovered
        ones.
        """
        cuda, manifests = self.target.cuda, self.data.manifests[redist]
        refusals: dict[Version, _Refusal | None] = {}
        best: Version | None = None
        for label in sorted(manifests, reverse=True):
            if best and not is_for_later_cuda(best, cuda) and label.components < best.components:
                break
            refusals[label] = self._refusal(manifests[label], checks)
            if refusals[label] is None and (best is None or _rank(label, cuda) > _rank(best, cuda)):
                best = label
        for_other = _Refusal(f"built for a CUDA {cuda.components[0]} release other than the set's")
        suffix = f"; the newest release with it is {best}" if best and names_newest else ""
        rejected = []
        uncovered: RejectedRelease | None = None
        for label, refusal in refusals.items():
            if best is None or label > best:
                reason, lacks_coverage, is_unpublished = refusal or for_other
                reason += suffix if lacks_coverage else ""
                rejected.append(
                    RejectedRelease(
                        release=str(label), reason=reason, is_unpublished=is_unpublished
                    )
                )
                if lacks_coverage and uncovered is None:
                    uncovered = rejected[-1]
        release = None if best is None else str(best)
        chosen = ChosenRelease(release=release, mode="auto", newer_rejected=tuple(rejected))
        return Choice(None if best is None else manifests[best], chosen, uncovered)

    def _refusal(self, manifest: InputManifest, checks: Sequence[_Check]) -> _Refusal | None:
        """Return the reason against a release, or None."""
        cuda, data = self.target.cuda, self.data
        other = built_for_other(manifest.label, cuda)
        if other is not None:
            return _Refusal(other)
        if manifest.is_preview:
            return _Refusal("is an early-access release")
        policy = data.policies.constraints
        for entry in broken_constraints(manifest.redist, manifest.label, cuda, policy):
            return _Refusal(entry.reason, is_unpublished=self._is_unpublished(manifest))
        refusals = []
        for name in main_packages(manifest, data):
            selection = select_archive(manifest.packages[name], self.target.platform, cuda)
            if isinstance(selection, Absence):
                is_unpublished = selection.code in _UNPUBLISHED
                refusals.append(_Refusal(selection.text, is_unpublished=is_unpublished))
            else:
                results = (check(manifest, selection) for check in (self._for_other_cuda, *checks))
                refusal = next(filter(None, results), None)
                if refusal is None:
                    return None
                refusals.append(refusal)
        without = _Refusal("has no package that a set can include")
        return max(refusals, key=attrgetter("lacks_coverage"), default=without)

    def _is_unpublished(self, manifest: InputManifest) -> bool:
        """Check if a release has no archive for the platform and the CUDA release."""
        target = self.target
        selections = [
            select_archive(manifest.packages[name], target.platform, target.cuda)
            for name in main_packages(manifest, self.data)
        ]
        return all(isinstance(x, Absence) and x.code in _UNPUBLISHED for x in selections)


def _rank(label: Version, cuda: Version) -> tuple[object, ...]:
    """Return the rank of a release, the best one highest.

    Ranks order by version, then by CUDA minor. Builds for a minor newer than the set's rank lowest.
    """
    is_later = is_for_later_cuda(label, cuda)
    distance = tuple(-number for number in label.suffix) if is_later else label.suffix
    return (not is_later, label.components, distance)


def main_packages(manifest: InputManifest, data: SetData) -> Iterable[str]:
    """Return the packages that decide if a release fits.

    That is the product's first package, or else all packages that are not withheld.
    """
    known = REDISTS.get(manifest.redist)
    first = known.packages[:1] if known else ()
    main = [name for name in first if name in manifest.packages]
    withheld = data.policies.withheld.withheld
    return main or sorted(name for name in manifest.packages if name not in withheld)
