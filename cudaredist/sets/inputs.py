"""Input of package sets: all data files, read and merged."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import NamedTuple, get_type_hints

from cudaredist.errors import Problem, UnknownNameError, UsageError
from cudaredist.formats.base import OwnModel
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.features import ExaminedArchive, MissingHeaders
from cudaredist.formats.fixup_policy import FixupPolicy
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.license_policy import LicensePolicy
from cudaredist.formats.lock import LockEntry
from cudaredist.formats.meta_policy import MetaPolicy
from cudaredist.formats.names import Channel, OutputName
from cudaredist.formats.output_policy import OutputPolicy
from cudaredist.formats.packageset import Input
from cudaredist.formats.policy import (
    ConstraintPolicy,
    NamePolicy,
    PlatformPolicy,
    RequirementPolicy,
    WithheldPolicy,
)
from cudaredist.formats.runfile_records import Runfile
from cudaredist.formats.set_policy import Bounds, SetPolicy
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.manifests.manifest_values import Archive, Manifest, Package
from cudaredist.primitives import (
    LINUX_ALL,
    SOURCE,
    ArchiveId,
    Platform,
    Sha256,
    Version,
    manifest_name,
)
from cudaredist.redists import CUDA, REDISTS
from cudaredist.sets.cuda_majors import CudaMajors, StatedRelease
from cudaredist.similar_names import misspelled_names
from cudaredist.store.indexed_policies import PackageNames
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.tables.gpus.coverage import CoverageRules


@dataclass(frozen=True)
class Policies:
    """All policy files, with overlays merged in."""

    platforms: PlatformPolicy
    drivers: DriverPolicy
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
    removals: frozenset[tuple[str, str]] = frozenset()
    """Entries that an overlay removed, each by the subject and its name."""

    def notes(self, subject: str, *entries: OwnModel | None) -> tuple[str, ...]:
        """Return a note if an overlay defines one of these entries."""
        return (f"policy/{subject}.json",) if any(map(self.is_overlaid, entries)) else ()

    def source(self, subject: str, entry: OwnModel | None) -> str:
        """Return the file of an entry, for display.

        The text begins with "overlay" if an overlay defines the entry.
        """
        path = f"policy/{subject}.json"
        return f"overlay {path}" if self.is_overlaid(entry) else path

    @cached_property
    def entries(self) -> tuple[tuple[str, OwnModel], ...]:
        """All policies and their entries, with their paths."""
        return tuple(
            (f"{subject}{path}", entry)
            for subject, policy in self._policies()
            for path, entry in policy.entries
        )

    @cached_property
    def platform_names(self) -> tuple[tuple[str, str], ...]:
        """The platforms of all entries, with their paths."""
        return tuple(
            (f"{subject}{path}", platform)
            for subject, policy in self._policies()
            for path, platform in policy.platform_names
        )

    def _policies(self) -> Iterator[tuple[str, SetPolicy]]:
        subjects = (field.name for field in fields(self) if field.name in POLICY_MODELS)
        for subject in subjects:
            yield subject, getattr(self, subject)

    def is_overlaid(self, entry: OwnModel | None) -> bool:
        """Check if an overlay defines the entry."""
        return any(entry is other for other in self.from_overlay)

    @cached_property
    def package_names(self) -> PackageNames:
        """The names of packages in all policies."""
        policies = (policy for _, policy in self._policies())
        entries = (self.names.aliases, self.names.renames)
        return PackageNames(
            renamed={old: entry.to for part in entries for old, entry in part.items()},
            packages=frozenset(name for policy in policies for name in policy.named_packages()),
        )


POLICY_MODELS: Mapping[str, type[OwnModel]] = {
    subject: kind
    for subject, kind in sorted(get_type_hints(Policies).items())
    if isinstance(kind, type) and issubclass(kind, OwnModel)
}
"""By subject; each model describes the file `policy/<subject>.json`."""


@dataclass(frozen=True, slots=True)
class InputManifest:
    """A manifest of the data folder, or of an overlay."""

    redist: str
    label: Version
    manifest: Manifest
    sha256: Sha256
    is_overlay: bool
    packages: Mapping[str, Package]
    """By name."""
    is_shipped: bool = False
    """Whether it is in the shipped data only."""
    is_edited: bool = False
    """Whether it differs from the bytes that the lock recorded."""
    entry: LockEntry | None = None
    """The lock's entry."""

    @property
    def is_preview(self) -> bool:
        """Whether the release is early access."""
        stated = None if self.entry is None else self.entry.is_preview
        return self.manifest.is_preview if stated is None else stated

    @property
    def address(self) -> str | None:
        """The path of the manifest on NVIDIA's second server. None: it is not from there."""
        return None if self.entry is None else self.entry.address

    @property
    def source(self) -> str:
        """The file, for display as the source of a fact."""
        path = f"{self.redist}/{manifest_name(self.label)}"
        return f"overlay {path}" if self.is_overlay else path


class ArchiveHeaders(NamedTuple):
    """The headers in an archive, and those missing."""

    paths: tuple[str, ...]
    missing: MissingHeaders


def archive_headers(files: Iterable[str], missing: MissingHeaders) -> ArchiveHeaders:
    """Return the headers of an archive with these files."""
    return ArchiveHeaders(tuple(path for path in files if path.startswith("include/")), missing)


@dataclass(frozen=True, slots=True)
class InputFeatures:
    """A feature file, with its facts by archive."""

    sha256: Sha256
    is_overlay: bool
    examined: Mapping[tuple[str, Sha256], ExaminedArchive]
    """By package and the archive's SHA-256."""
    unexamined: Mapping[tuple[str, Sha256], str]
    """The reason why an archive was not examined."""
    legacy: Mapping[ArchiveId, tuple[OutputName, ...]]
    """Outputs by archive, from a feature file in the form that nixpkgs used."""
    headers: Mapping[tuple[str, Sha256], ArchiveHeaders] = field(default_factory=dict)
    """Like `examined`, without archives whose headers are unknown."""


class KnownName(NamedTuple):
    """A package name from the data or policy."""

    redist: str | None
    systems: frozenset[str]
    """Operating systems with a build in any release: linux, windows, or any."""


@dataclass(frozen=True)
class SetData:
    """All input of `build_set`."""

    channel: Channel
    manifests: Mapping[str, Mapping[Version, InputManifest]]
    """By redistributable and label."""
    read_features: Callable[[str, Version], InputFeatures | None]
    nvcc: NvccCompat
    gpus: Gpus
    policies: Policies
    runfiles: Mapping[str, Mapping[str, Runfile]]
    """By CUDA release and platform."""
    inputs: tuple[Input, ...]
    """Tables and policies. Manifests and features are added when a set uses them."""
    read_files: Callable[[str, Version, ArchiveId], Mapping[str, OutputName] | None] = lambda *_: (
        None
    )
    """Returns the files of an archive of a release with their outputs, None if unknown."""
    shipped_wheels: Callable[[str], Iterable[StatedRelease]] = lambda _: ()
    """Returns the releases of a redistributable in the shipped wheels, for archives of NVIDIA's
    server without variants."""

    symbols: LayeredSymbols = field(default_factory=lambda: LayeredSymbols(()))
    """The tables of symbols."""
    archives_of_cuda: Callable[[Version], Sequence[Archive]] = lambda _: ()
    """Returns NVIDIA's archives of a CUDA release, empty if its manifest is not in the data."""

    @cached_property
    def coverage_rules(self) -> CoverageRules:
        """The rules that relate device code to GPUs."""
        return CoverageRules(self.gpus)

    @cached_property
    def cuda_majors(self) -> CudaMajors:
        """The CUDA majors that manifests and the shipped wheels state."""

        def releases_of(redist: str) -> Iterator[StatedRelease]:
            for label, entry in self.manifests.get(redist, {}).items():
                yield StatedRelease(label, entry.manifest, is_wheel=False)
            yield from self.shipped_wheels(redist)

        return CudaMajors(releases_of, self.policies.constraints.first_wheels)

    @cached_property
    def cuda_labels(self) -> list[Version]:
        """The CUDA releases to select from, in ascending order, without early access.

        Manifests of the early form contain no hashes, so their archives cannot be verified.
        """
        manifests = self.manifests.get(CUDA, {})
        return sorted(
            label
            for label, entry in manifests.items()
            if entry.manifest.shape != "early" and not entry.is_preview
        )

    @cached_property
    def early_labels(self) -> list[Version]:
        """The CUDA releases with manifests of the early form, in ascending order."""
        manifests = self.manifests.get(CUDA, {})
        return sorted(x for x, entry in manifests.items() if entry.manifest.shape == "early")

    def cuda_platforms(self, label: Version) -> list[Platform]:
        """Return the platforms of a CUDA release, sorted."""
        published = self.manifests[CUDA][label].manifest.platforms
        return sorted(map(Platform, published - {SOURCE, LINUX_ALL}))

    @cached_property
    def releases_by_path(self) -> Mapping[tuple[str, str], list[tuple[Sha256 | None, Version]]]:
        """The hashes and releases of archives, by redistributable and path."""
        by_path: dict[tuple[str, str], list[tuple[Sha256 | None, Version]]] = defaultdict(list)
        for redist, releases in self.manifests.items():
            for label, entry in sorted(releases.items()):
                for archive in entry.manifest.archives:
                    by_path[redist, archive.relative_path].append((archive.sha256, label))
        return by_path

    @cached_property
    def platforms(self) -> frozenset[str]:
        """The platforms in policy or in any CUDA manifest."""
        manifests = self.manifests.get(CUDA, {}).values()
        published = (entry.manifest.platforms for entry in manifests)
        return frozenset(self.policies.platforms.platforms).union(*published) - {SOURCE, LINUX_ALL}

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Contradictions in the policies, and unknown names in them."""
        return (
            *_contradictions(self.policies),
            *self._unknown_platforms(),
            *self._mistyped_names(),
        )

    def _unknown_platforms(self) -> Iterator[Problem]:
        """Yield the platforms in policies that are not known."""
        for path, platform in self.policies.platform_names:
            if platform not in self.platforms:
                yield _unknown("platform", platform, self.platforms, path)

    def _mistyped_names(self) -> Iterator[Problem]:
        """Yield names in overlay policies that resemble known names.

        An overlay may name packages that are not in the data folder.
        """
        fixups = self.policies.fixups
        packages = {name for redist in REDISTS.values() for name in redist.packages}
        packages |= {name for name, known in self.names.items() if known.redist is not None}
        for name, entry in self.policies.withheld.withheld.items():
            if self.policies.is_overlaid(entry):
                yield from _mistyped("package", name, packages, f"withheld.{name}")
        packages.update(self.policies.package_names.packages)
        for number, fixup in enumerate(fixups.fixups):
            path = f"fixups.fixups[{number}].package"
            yield from _mistyped("package", fixup.package, packages, path)
        redists = self.manifests.keys() | REDISTS.keys()
        for name in fixups.urls:
            yield from _mistyped("redistributable", name, redists, f"fixups.urls.{name}")

    @cached_property
    def names(self) -> Mapping[str, KnownName]:
        """Every package name in the data or policy, sorted.

        Raises `UsageError` if two redistributables have the same package.
        """
        redists: dict[str, str] = {}
        systems: dict[str, set[str]] = defaultdict(set)
        for redist, labels in sorted(self.manifests.items()):
            for manifest in labels.values():
                for name, package in manifest.packages.items():
                    redists[name] = _owner(name, redist, redists.get(name, redist))
                    systems[name].update(Platform(a.platform).os for a in package.archives)
        fixed = (fixup.package for fixup in self.policies.fixups.fixups)
        for name in (*self.policies.package_names.packages, *fixed):
            systems.setdefault(name, set())
        return {
            name: KnownName(redists.get(name), frozenset(systems[name])) for name in sorted(systems)
        }


def _owner(name: str, redist: str, other: str) -> str:
    """Return the preferred one of two redistributables with a package.

    NVIDIA publishes parts of the driver both with CUDA and alone; sets use CUDA's. Any other pair
    is ambiguous.
    """
    if redist == other:
        return redist
    if CUDA in {redist, other} and {redist, other} <= REDISTS.keys():
        return CUDA
    message = f"package {name} is in the manifests of {other} and of {redist}"
    raise UsageError(message, hint="rename one of them")


def _contradictions(policies: Policies) -> Iterator[Problem]:
    """Yield contradictions in policies: circular renames and aliases, odd bounds and outputs."""
    names = policies.names
    onward = {old: entry.to for old, entry in (names.renames | names.aliases).items()}
    for start in sorted(onward):
        path = [start]
        while (to := onward.get(path[-1])) and to not in path:
            path.append(to)
        if to == start:
            circle = " -> ".join([*path, start])
            yield Problem(f"names.{start}", f"is renamed in a circle: {circle}")
    for name in sorted(names.renames.keys() & names.aliases.keys()):
        yield Problem(f"names.{name}", "is both an alias and an old name")
    for where, value in policies.entries:
        if isinstance(value, Bounds) and value.min and value.max:
            low, high = Version.parse(value.min), Version.parse(value.max)
            if high.components < low.components[: len(high.components)]:
                yield Problem(where, f"begins at {low}, after its end {high}")
    for number, fixup in enumerate(policies.fixups.fixups):
        outputs = ("out",) if fixup.outputs is None else fixup.outputs
        if outputs[:1] != ("out",) or len(set(outputs)) < len(outputs):
            text = "declares outputs without `out` first, or an output twice"
            yield Problem(f"fixups.fixups[{number}]", text)


def _mistyped(what: str, name: str, known: Collection[str], path: str) -> Iterator[Problem]:
    if name not in known and misspelled_names(name, known):
        yield _unknown(what, name, known, path)


def _unknown(what: str, name: str, known: Collection[str], path: str) -> Problem:
    error = UnknownNameError(what, name, known)
    return Problem(path, f"{error.message}; {error.hint}")
