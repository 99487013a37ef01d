"""The wheel channel as a source, with the layout of a server."""

import logging
from collections.abc import Iterable, Iterator, Mapping

from cudaredist.errors import NotAtSourceError, TooLargeError
from cudaredist.primitives import ArchiveId, Version, label_of_manifest_name, parse_label
from cudaredist.sources.protocol import Delivery, Settings
from cudaredist.sources.wheel_index import INDEX, LocalMetadata, WheelIndex
from cudaredist.wheels import (
    FAMILIES,
    PLATFORMS,
    Family,
    Wheel,
    best_wheel,
    lower_bound,
    manifest_bytes,
    newest_builds,
    newest_wheels,
    package_of,
    parse_wheel,
    requirements_on,
)

_log = logging.getLogger(__name__)


class WheelSource:
    """NVIDIA's wheels in the layout of NVIDIA's server."""

    name = INDEX
    """The name of all indexes together, for messages."""

    def __init__(self, settings: Settings, local_metadata: LocalMetadata = lambda _: None) -> None:
        self._index = WheelIndex(settings, local_metadata)

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
            reason = ": ".join(filter(None, (f"no wheels of {redist}", family.elsewhere)))
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
        archives = dict(zip(archives, self._index.verified([*archives.values()]), strict=True))
        newest = newest_wheels(archives)
        metadata = dict(zip(newest, self._index.metadata([*newest.values()]), strict=True))
        data = manifest_bytes(redist, str(label), archives, metadata)
        if len(data) > limit:
            raise TooLargeError(self.place_of(path), limit)
        return Delivery(self.name, data)

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a wheel's bytes, beginning at byte `start`."""
        wheel = self.wheels_at([path]).get(path)
        if wheel is None:
            raise NotAtSourceError(INDEX, f"no wheel {path}")
        return self._index.stream(wheel, start, size)

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:
        """Return the known sizes of wheels by path."""
        wheels = self.wheels_at(paths)
        sizes = self._index.sizes(list(wheels.values()))
        return {path: size for path, size in zip(wheels, sizes, strict=True) if size is not None}

    def wheels_at(self, paths: Iterable[str]) -> dict[str, Wheel]:
        """Return the wheels at paths of a manifest, without missing ones."""
        names = {path: parse_wheel(path.rpartition("/")[2], "") for path in paths}
        listed = self._index.wheels(list({w.project for w in names.values() if w is not None}))
        wheels = {wheel.file_name: wheel for of_one in listed.values() for wheel in of_one}
        return {p: wheels[w.file_name] for p, w in names.items() if w and w.file_name in wheels}

    def metapackages(self, redist: str, label: str) -> list[Wheel]:
        """Return the metapackages of a redistributable's release, with their hashes.

        Raises `NotAtSourceError` if the release requires one and all its wheels are yanked.
        """
        family = _family(redist)
        if family.package:
            return []
        wheels = [w for builds in self._builds(family).values() for w in builds.get(label, ())]
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
        releases = {v: builds[label][0] for v, builds in newest.items() if label in builds}
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
        archives: dict[ArchiveId, Wheel] = {}
        for (platform, variant), requirements in requirements_of.items():
            for project, versions in requirements.items():
                if lower_bound(versions) is None:
                    release = releases[variant].project
                    _log.warning("%s does not pin %s to a version", release, project)
                wheel = best_wheel(wheels[project], platform, versions)
                if wheel is not None:
                    package = family.package or _package_of(project)
                    archives[ArchiveId(package, platform, variant)] = wheel
        labels = {name for builds in newest.values() for name in builds}
        if family.package is None and label == max(labels, key=Version.parse, default=None):
            _warn_about_newer(wheels, archives.values())
        return archives


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


def _warn_about_newer(wheels: Mapping[str, Iterable[Wheel]], of_release: Iterable[Wheel]) -> None:
    """Warn about wheels newer than the newest release."""
    pins = {wheel.project: wheel.version for wheel in sorted(of_release, key=lambda w: w.version)}
    newer = []
    for project, pin in sorted(pins.items()):
        released = (w for w in wheels[project] if not w.is_yanked)
        versions = [w.version for w in released if not w.version.is_prerelease]
        if max(versions, default=pin) > pin:
            newer.append(f"{project} {max(versions)}")
    if newer:
        _log.warning("skipped, because newer than any release: %s", ", ".join(newer))
