"""What package sets are made from, as one frozen value: the data files, read and merged."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cudaredist.errors import Problem, UsageError
from cudaredist.manifests import Manifest, Package
from cudaredist.primitives import Sha256, Version
from cudaredist.schema import (
    Bounds,
    Channel,
    ConstraintPolicy,
    ExaminedArchive,
    FixupPolicy,
    Gpus,
    Input,
    LibraryPolicy,
    LicensePolicy,
    MetaPolicy,
    NamePolicy,
    NvccCompat,
    OutputName,
    OutputPolicy,
    OwnModel,
    PlatformPolicy,
    RequirementPolicy,
    WithheldPolicy,
)

CUDA = "cuda"
SOURCE, LINUX_ALL = "source", "linux-all"
"""Platforms of archives that serve every platform, or every Linux."""


@dataclass(frozen=True, slots=True)
class Policies:
    """Every policy file, overlays merged in."""

    platforms: PlatformPolicy
    names: NamePolicy
    withheld: WithheldPolicy
    outputs: OutputPolicy
    requirements: RequirementPolicy
    constraints: ConstraintPolicy
    libraries: LibraryPolicy
    licenses: LicensePolicy
    meta: MetaPolicy
    fixups: FixupPolicy
    from_overlay: tuple[OwnModel, ...] = ()
    """Entries that an overlay added or replaced."""

    def source(self, subject: str, entry: OwnModel) -> str:
        """Return where an entry stands, as it is shown: the file, and whether an overlay's."""
        place = f"policy/{subject}.json"
        return f"overlay {place}" if self.is_overlaid(entry) else place

    def is_overlaid(self, entry: OwnModel) -> bool:
        """Say whether an overlay brought the entry."""
        return any(entry is other for other in self.from_overlay)


@dataclass(frozen=True, slots=True)
class HeldManifest:
    """A manifest of the data folder, or of an overlay."""

    redist: str
    label: Version
    manifest: Manifest
    sha256: Sha256
    is_overlay: bool
    packages: Mapping[str, Package]
    """By name."""


@dataclass(frozen=True, slots=True)
class HeldFeatures:
    """A feature file: what is known of archives, by what identifies them."""

    sha256: Sha256
    is_overlay: bool
    examined: Mapping[tuple[str, Sha256], ExaminedArchive]
    """By package and the archive's SHA-256."""
    unexamined: Mapping[tuple[str, Sha256], str]
    """Why an archive was not looked into."""
    legacy: Mapping[tuple[str, str, str | None], tuple[OutputName, ...]]
    """Outputs by package, platform and variant, of a file of nixpkgs' earlier form."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """A package name that data or policy knows."""

    redist: str | None
    systems: frozenset[str]
    """Operating systems that it was ever published for: linux, windows, or any."""


@dataclass(frozen=True)
class SetData:
    """All that `build` reads."""

    channel: Channel
    manifests: Mapping[str, Mapping[Version, HeldManifest]]
    """By redistributable and label."""
    read_features: Callable[[str, Version], HeldFeatures | None]
    nvcc: NvccCompat
    gpus: Gpus
    policies: Policies
    inputs: tuple[Input, ...]
    """Of tables and policies; those of manifests and features are added as they are used."""
    _usable: dict[str, list[Version]] = field(default_factory=dict, repr=False)

    def cuda_labels(self) -> list[Version]:
        """Return the CUDA releases that sets can be made for, in ascending order.

        Manifests of the early form name no hashes, so that nothing can be fetched by them.
        """
        if CUDA not in self._usable:
            held = self.manifests.get(CUDA, {})
            self._usable[CUDA] = sorted(
                label for label, entry in held.items() if entry.manifest.shape != "early"
            )
        return self._usable[CUDA]

    def cuda_platforms(self, label: Version) -> list[str]:
        """Return the platforms that a CUDA release is published for, sorted."""
        published = self.manifests[CUDA][label].manifest.platforms
        return sorted(published - {SOURCE, LINUX_ALL})

    @cached_property
    def names(self) -> Mapping[str, KnownName]:
        """Every package name that data or policy knows, sorted."""
        redists: dict[str, str] = {}
        systems: dict[str, set[str]] = defaultdict(set)
        for redist, labels in sorted(self.manifests.items()):
            for held in labels.values():
                for name, package in held.packages.items():
                    other = redists.setdefault(name, redist)
                    if other != redist:
                        raise UsageError(
                            f"package {name} is in the manifests of {other} and of {redist}",
                            hint="give one of them another name",
                        )
                    systems[name].update(_system_of(a.platform) for a in package.archives)
        for name in self._policy_names():
            systems.setdefault(name, set())
        return {
            name: KnownName(redists.get(name), frozenset(systems[name])) for name in sorted(systems)
        }

    def _policy_names(self) -> Iterable[str]:
        yield from self.policies.withheld.withheld
        for name, rename in self.policies.names.renames.items():
            yield from (name, rename.to)
        for name, split in self.policies.names.splits.items():
            yield from (name, *split.into)
        yield from self.policies.names.aliases
        yield from (alias.to for alias in self.policies.names.aliases.values())
        yield from self.policies.outputs.collapse


def _system_of(platform: str) -> str:
    return "any" if platform == SOURCE else platform.partition("-")[0]


def is_within(version: Version, bounds: Bounds) -> bool:
    """Say whether a version lies within bounds; an end of fewer numbers stands for all it begins.

    `12.9` as the newest takes 12.9.1. Suffixes do not count.
    """
    low, high = bounds.min, bounds.max
    if low is not None and version.components < Version.parse(low).components:
        return False
    if high is None:
        return True
    end = Version.parse(high).components
    return version.components[: len(end)] <= end


def bounds_text(bounds: Bounds) -> str:
    """Say in words which versions bounds hold."""
    if bounds.min and bounds.max:
        return bounds.min if bounds.min == bounds.max else f"{bounds.min} to {bounds.max}"
    if bounds.min:
        return f"{bounds.min} or newer"
    return f"{bounds.max} or older" if bounds.max else "any"


def policy_problems(policies: Policies) -> list[Problem]:
    """Return where policies contradict themselves: renames and aliases in a circle, odd bounds."""
    names = policies.names
    problems = []
    onward = {old: entry.to for old, entry in (names.renames | names.aliases).items()}
    for start in sorted(onward):
        seen, at = {start}, onward[start]
        while at in onward and at not in seen:
            seen.add(at)
            at = onward[at]
        if at == start:
            path = " -> ".join([*_circle(start, onward), start])
            problems.append(Problem(f"names.{start}", f"is renamed in a circle: {path}"))
    problems += [
        Problem(f"names.{name}", "is both an alias and an old name")
        for name in sorted(names.renames.keys() & names.aliases.keys())
    ]
    dated = [
        *(
            (f"requirements[{i}]", r.releases)
            for i, r in enumerate(policies.requirements.requirements)
        ),
        *((f"constraints[{i}]", c.cuda) for i, c in enumerate(policies.constraints.constraints)),
        *(
            (f"constraints[{i}]", c.releases)
            for i, c in enumerate(policies.constraints.constraints)
        ),
    ]
    for path, bounds in dated:
        if bounds.min and bounds.max:
            low, high = Version.parse(bounds.min), Version.parse(bounds.max)
            if high.components < low.components[: len(high.components)]:
                problems.append(Problem(path, f"begins at {low}, after its end {high}"))
    problems += [
        Problem(f"fixups[{i}]", "declares outputs without `out` first, or one twice")
        for i, fixup in enumerate(policies.fixups.fixups)
        if fixup.outputs is not None
        and (fixup.outputs[:1] != ("out",) or len(set(fixup.outputs)) < len(fixup.outputs))
    ]
    return problems


def _circle(start: str, onward: Mapping[str, str]) -> Iterable[str]:
    at = start
    while True:
        yield at
        at = onward[at]
        if at == start:
            return
