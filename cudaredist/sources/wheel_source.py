"""The wheels channel as a source, with the layout of a server."""

import contextlib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version as WheelVersion

from cudaredist.errors import (
    CudaRedistError,
    InvalidFileError,
    NotAtSourceError,
    Problem,
    TooLargeError,
)
from cudaredist.formats.wheel_policy import WheelPolicy
from cudaredist.primitives import ArchiveId, Version, label_of_manifest_name, parse_label
from cudaredist.sources.protocol import Delivery, PartReader, Settings
from cudaredist.sources.wheel_index import INDEX, LocalMetadata, WheelIndex
from cudaredist.wheel_projects import FAMILIES, PLATFORMS, Family, package_of
from cudaredist.wheels import (
    Wheel,
    best_wheel,
    lower_bound,
    manifest_bytes,
    newest_builds,
    newest_wheels,
    parse_wheel,
    release_date,
    requirements_on,
)
from cudaredist.words import plural

_log = logging.getLogger(__name__)


class WheelSource:
    """NVIDIA's wheels in the layout of NVIDIA's server."""

    name = INDEX
    """The name of all indexes together, for messages."""

    def __init__(
        self,
        settings: Settings,
        local_metadata: LocalMetadata = lambda _: None,
        policy: WheelPolicy | None = None,
    ) -> None:
        self._index = WheelIndex(settings, local_metadata)
        self._releases = {} if policy is None else policy.metapackages

    def place_of(self, path: str) -> str:
        """Return the path, because several indexes may have the file."""
        return f"{INDEX}: {path}"

    def close(self) -> None:
        """Close connections and end threads."""
        self._index.close()

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return a redistributable's labels: its wheels' versions, truncated to three numbers."""
        redist = _redist_in(folder)
        family = _family(redist)
        labels = {label for builds in self._builds(family).values() for label in builds}
        if not labels:
            reason = f"no wheels of {redist}"
            if family.elsewhere:
                reason += f": {family.elsewhere}"
            hint = "check the indexes with `pip config list`"
            raise NotAtSourceError(INDEX, reason, hint=hint)
        return tuple(sorted(map(parse_label, labels)))

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:  # noqa: ARG002 - indexes have none for it
        """Return a manifest for the wheels of a release."""
        folder, _, name = path.rpartition("/")
        label = label_of_manifest_name(name)
        redist = _redist_in(folder)
        if label is None:
            raise NotAtSourceError(INDEX, f"{name} is not a manifest")
        archives = self._archives(redist, str(label))
        if not archives:
            raise NotAtSourceError(INDEX, f"no wheels of {redist} {label}")
        verified = self._index.verified([*archives.values()])
        archives = dict(zip(archives, verified, strict=True))
        newest = newest_wheels(archives)
        metadata_of_newest = self._index.metadata([*newest.values()])
        metadata = dict(zip(newest, metadata_of_newest, strict=True))
        listed = self._index.wheels(list({wheel.project for wheel in archives.values()}))
        day = release_date(archives, listed)
        data = manifest_bytes(redist, str(label), archives, metadata, day)
        if len(data) > limit:
            raise TooLargeError(self.place_of(path), limit)
        doubts: tuple[str, ...] = ()
        # The release itself is complete, even if its neighbors cannot be read.
        with contextlib.suppress(CudaRedistError):
            doubts = tuple(self._doubts(redist, str(label), archives))
        return Delivery(self.name, data, is_generated=True, doubts=doubts)

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a wheel's bytes, beginning at byte `start`."""
        wheel = self.wheels_at([path]).get(path)
        if wheel is None:
            raise NotAtSourceError(INDEX, f"no wheel {path}")
        return self._index.stream(wheel, start, size)

    def local_path(self, path: str) -> Path | None:
        """Return the path of a wheel in a local folder, None for other wheels."""
        wheel = self.wheels_at([path]).get(path)
        return None if wheel is None else self._index.local_path(wheel)

    def part_reader(self, path: str) -> PartReader | None:
        """Return a function to read some bytes of a wheel on a server, None for other wheels."""
        wheel = self.wheels_at([path]).get(path)
        if wheel is None or self._index.local_path(wheel) is not None:
            return None
        return partial(self._index.part, wheel)

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:
        """Return the known sizes of wheels by path."""
        wheels = self.wheels_at(paths)
        sizes = self._index.sizes(list(wheels.values()))
        return {path: size for path, size in zip(wheels, sizes, strict=True) if size is not None}

    def wheels_at(self, paths: Iterable[str]) -> dict[str, Wheel]:
        """Return the wheels at paths of a manifest, without missing ones."""
        file_names: dict[str, str] = {}
        projects: set[str] = set()
        for path in paths:
            file_name = path.rpartition("/")[2]
            wheel = parse_wheel(file_name, "")
            if wheel is not None:
                file_names[path] = file_name
                projects.add(wheel.project)
        listed = self._index.wheels(list(projects))
        wheels = {wheel.file_name: wheel for of_one in listed.values() for wheel in of_one}
        return {path: wheels[name] for path, name in file_names.items() if name in wheels}

    def metapackages(self, redist: str, label: str) -> list[Wheel]:
        """Return the metapackages of a redistributable's release, with their hashes.

        Raises `NotAtSourceError` if the release requires one and all its wheels are yanked.
        """
        family = _family(redist)
        if family.package:
            return []
        wheels = [
            wheel for builds in self._builds(family).values() for wheel in builds.get(label, ())
        ]
        if not wheels:
            raise NotAtSourceError(INDEX, f"no {', '.join(family.projects.values())} {label}")
        return self._index.verified(wheels)

    def _builds(self, family: Family) -> dict[str | None, dict[str, list[Wheel]]]:
        """Return the wheels of the newest builds by variant and label."""
        listed = self._index.wheels([*family.projects.values()])
        return {
            variant: newest_builds(listed[project], family.label)
            for variant, project in family.projects.items()
        }

    def _archives(self, redist: str, label: str) -> dict[ArchiveId, Wheel]:
        """Return the wheels of a release."""
        family = _family(redist)
        newest = self._builds(family)
        releases = {
            variant: builds[label][0] for variant, builds in newest.items() if label in builds
        }
        if family.package is None:
            metadata = self._index.metadata([*releases.values()])
            required = [of_release.requires for of_release in metadata]
        else:
            required = [(f"{wheel.project}=={wheel.version}",) for wheel in releases.values()]
        requirements_of = {
            (platform, variant): requirements_on(platform, lines)
            for platform in PLATFORMS
            for variant, lines in zip(releases, required, strict=True)
        }
        names = dict.fromkeys(name for pins in requirements_of.values() for name in pins)
        wheels = self._index.wheels([*names])
        decision = self._releases.get(redist, {}).get(label)
        stated = {} if decision is None else decision.versions
        archives: dict[ArchiveId, Wheel] = {}
        for (platform, variant), requirements in requirements_of.items():
            for project, requirement in requirements.items():
                package = family.package or _package_of(project)
                own = stated.get(package)
                versions = requirement if own is None else SpecifierSet(f"=={own}")
                if lower_bound(versions) is None:
                    release = releases[variant].project
                    _log.warning("%s does not pin %s to a version", release, project)
                wheel = best_wheel(wheels[project], platform, versions)
                if wheel is not None:
                    archives[ArchiveId(package, platform, variant)] = wheel
        packages = {family.package or _package_of(project) for project in names}
        _raise_for_unused(f"{redist}.{label}", stated, packages, archives)
        return archives

    def _doubts(
        self, redist: str, label: str, archives: Mapping[ArchiveId, Wheel]
    ) -> Iterator[str]:
        """Yield reasons why a metapackage may require the wheels of another release."""
        family = _family(redist)
        if family.package is not None:
            return
        every_label = {text for builds in self._builds(family).values() for text in builds}
        labels = sorted(every_label, key=Version.parse)
        position = labels.index(label)
        pins = _pins(archives)
        wheels = self._index.wheels([*pins])
        if position > 0:
            previous = labels[position - 1]
            if _files(self._archives(redist, previous)) == _files(archives):
                yield f"the wheels are those of {previous}"
        if label == labels[-1]:
            _warn_about_newer(wheels, pins)
            return
        following = _pins(self._archives(redist, labels[position + 1]))
        newer: list[str] = []
        for project, pin in pins.items():
            versions = _between(wheels[project], pin, following.get(project, pin))
            if versions:
                newer.append(f"{project} {max(versions)} (required: {pin})")
        if newer:
            count = plural(len(newer), "project")
            yield f"newer builds exist for {count}, such as {min(newer)}"


def _between(
    wheels: Iterable[Wheel], pin: WheelVersion, following: WheelVersion
) -> list[WheelVersion]:
    """Return the versions between those of a release and of the next one.

    Early-access versions, and the same build in a new wheel (`.post1`), are not included.
    """
    versions = (wheel.version for wheel in wheels if not wheel.is_yanked)
    later = (
        version for version in versions if pin < version < following and not version.is_prerelease
    )
    return [version for version in later if version.release != pin.release]


def _pins(archives: Mapping[ArchiveId, Wheel]) -> dict[str, WheelVersion]:
    """Return the newest version of each project."""
    wheels = sorted(archives.values(), key=lambda wheel: wheel.version)
    return {wheel.project: wheel.version for wheel in wheels}


def _files(archives: Mapping[ArchiveId, Wheel]) -> set[str]:
    return {wheel.file_name for wheel in archives.values()}


def _raise_for_unused(
    release: str,
    stated: Mapping[str, str],
    packages: Collection[str],
    archives: Iterable[ArchiveId],
) -> None:
    """Raise `InvalidFileError` if the policy states wheels that do not exist.

    `packages` are those that the release's metapackage requires.
    """
    problems: list[Problem] = []
    for package in sorted(stated.keys() - {archive.package for archive in archives}):
        if package in packages:
            message = f"the index has no wheel of version {stated[package]}"
        else:
            message = "the release has no package of this name"
        problems.append(Problem(f"metapackages.{release}.versions.{package}", message))
    if problems:
        raise InvalidFileError("policy/wheels.json", problems)


def _redist_in(folder: str) -> str:
    parts = folder.split("/")
    return parts[1] if len(parts) > 1 else folder


def _family(redist: str) -> Family:
    if redist not in FAMILIES:
        hint = f"available as wheels: {', '.join(FAMILIES)}"
        raise NotAtSourceError(INDEX, f"NVIDIA does not publish wheels of {redist}", hint=hint)
    return FAMILIES[redist]


def _package_of(project: str) -> str:
    package, is_known = package_of(project)
    if not is_known:
        _log.warning("unknown project %s: using package %s", project, package)
    return package


def _warn_about_newer(
    wheels: Mapping[str, Iterable[Wheel]], pins: Mapping[str, WheelVersion]
) -> None:
    """Warn about wheels newer than the newest release."""
    newer = []
    for project, pin in sorted(pins.items()):
        released = (wheel.version for wheel in wheels[project] if not wheel.is_yanked)
        versions = [version for version in released if not version.is_prerelease]
        if max(versions, default=pin) > pin:
            newer.append(f"{project} {max(versions)}")
    if newer:
        _log.warning("skipped, because newer than any release: %s", ", ".join(newer))
