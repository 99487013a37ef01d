"""The wheel channel as a source: listings, manifests and archives like any other, through pip."""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion
from packaging.version import Version as WheelVersion

from cudaredist.errors import NotAtSourceError, SourceError, TooLargeError
from cudaredist.primitives import Version, label_of_manifest_name, parse_label
from cudaredist.source.pip import AT_ONCE, INDEX, Listed, Pip
from cudaredist.source.protocol import Delivery, Part, Settings
from cudaredist.wheels import (
    FAMILIES,
    METAPACKAGE,
    PLATFORMS,
    Wheel,
    lower_bound,
    manifest_bytes,
    newest_builds,
    package_of,
    platform_of,
    requirements_on,
)

_log = logging.getLogger(__name__)

_CHUNK = 1 << 18


class WheelSource:
    """What a package index has of NVIDIA's wheels, in the shape of NVIDIA's own server."""

    def __init__(self, settings: Settings) -> None:
        self._pip = Pip(settings)
        self._known: dict[tuple[str, str | None], Listed] = {}
        self._asking: dict[tuple[str, str | None], threading.Lock] = {}

    @property
    def name(self) -> str:
        """What pip asks."""
        return INDEX

    def place_of(self, path: str) -> str:
        """Return the path, since the index's address is not known."""
        return f"{INDEX}: {path}"

    def close(self) -> None:
        """Remove temporary files."""
        self._pip.close()

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return the labels of a redistributable: its wheels' versions, cut to three numbers."""
        labels: set[Version] = set()
        for project in self._projects(_redist_in(folder)).values():
            labels |= {parse_label(label) for label in newest_builds(self._versions(project))}
        if not labels:
            raise NotAtSourceError(
                INDEX,
                f"no wheels of {_redist_in(folder)}",
                hint="is pip configured for the right index?",
            )
        return tuple(sorted(labels))

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:  # noqa: ARG002 - pip has none
        """Return the manifest that the wheels of a release amount to."""
        folder, _, name = path.rpartition("/")
        label = label_of_manifest_name(name)
        redist = _redist_in(folder)
        if label is None:
            raise NotAtSourceError(INDEX, f"{name} is no manifest")
        wheels = self._release(str(label)) if redist == "cuda" else self._family(redist, str(label))
        if not wheels:
            raise NotAtSourceError(INDEX, f"no wheels of {redist} {label}")
        data = manifest_bytes(redist, str(label), wheels)
        if len(data) > limit:
            raise TooLargeError(self.place_of(path), limit)
        return Delivery(self.name, data)

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:  # noqa: ARG002 - judged by its hash
        """Yield a wheel's bytes; pip brings it to the staging folder first."""
        *_, project, file_name = path.split("/")
        try:
            _, version, _, _ = parse_wheel_filename(file_name)
        except (InvalidWheelFilename, InvalidVersion) as error:
            raise NotAtSourceError(INDEX, f"{file_name} is no wheel") from error
        platform = platform_of(file_name)
        tags = PLATFORMS[platform].tags if platform in PLATFORMS else ()
        with self._pip.temporary() as folder:
            found = self._pip.download(project, str(version), tags, folder)
            try:
                with found.open("rb") as file:
                    file.seek(start)
                    while chunk := file.read(_CHUNK):
                        yield chunk
            except OSError as error:
                raise SourceError(str(found), error.strerror or str(error)) from error

    def part(self, path: str, start: int | None, length: int, etag: str | None = None) -> Part:  # noqa: ARG002 - the protocol's
        """Refuse: pip brings whole wheels only."""
        raise SourceError(self.place_of(path), "pip brings whole wheels only")

    # -- what there is

    def _projects(self, redist: str) -> dict[str, str]:
        """Return the projects whose versions are a redistributable's labels, by variant."""
        if redist == "cuda":
            return {"": METAPACKAGE}
        family = FAMILIES.get(redist)
        if family is None:
            raise NotAtSourceError(
                INDEX,
                f"NVIDIA makes no wheels of {redist}",
                hint=f"there are wheels of cuda, {', '.join(FAMILIES)}",
            )
        return dict(family.projects)

    def _listed(self, project: str, platform: str | None = None) -> Listed:
        """Return what there is of a project for a platform, else for this machine; asked once."""
        key = (project, platform)
        with self._asking.setdefault(key, threading.Lock()):
            if key not in self._known:
                tags = PLATFORMS[platform].tags if platform else ()
                self._known[key] = self._pip.versions(project, tags)
            return self._known[key]

    def _versions(self, project: str) -> tuple[str, ...]:
        return self._listed(project).versions

    # -- CUDA itself

    def _release(self, label: str) -> dict[str, dict[tuple[str, str | None], Wheel]]:
        builds = newest_builds(self._versions(METAPACKAGE))
        if label not in builds:
            raise NotAtSourceError(INDEX, f"no {METAPACKAGE} {label}")
        (release,) = self._pip.resolve([f"{METAPACKAGE}=={builds[label]}"])
        if release.is_yanked:
            raise SourceError(
                INDEX, f"{METAPACKAGE} {builds[label]} was yanked", hint="choose another release"
            )
        packages: dict[str, dict[tuple[str, str | None], Wheel]] = {}
        pins: dict[str, str] = {}
        for platform in PLATFORMS:
            requirements = requirements_on(platform, release.requires)
            for wheel in self._resolved(platform, requirements):
                package, is_known = package_of(wheel.project)
                if not is_known:
                    _log.warning("%s stands in no table; taken as %s", wheel.project, package)
                packages.setdefault(package, {})[platform, None] = wheel
                pins[wheel.project] = wheel.version
        if label == max(builds, key=Version.parse):
            self._report_newer(pins)
        return packages

    def _resolved(self, platform: str, requirements: dict[str, SpecifierSet]) -> list[Wheel]:
        """Return the wheels of a platform, of each project the version that it has there.

        A question is a process, so most releases are asked for all at once. Where a platform lacks
        one, pip says no to all, and the lists of what it has answer for every other release too.
        """
        exact = {name: lower_bound(specifier) for name, specifier in requirements.items()}
        for name in (name for name, version in exact.items() if version is None):
            _log.warning("%s states no version of %s", METAPACKAGE, name)
        pinned = {name: version for name, version in exact.items() if version is not None}
        wheels = None
        if not self._are_listed(pinned, platform):
            wheels = self._together(pinned, platform)
        if wheels is None:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                versions = pool.map(
                    lambda name: self._nearest(name, pinned[name], requirements[name], platform),
                    pinned,
                )
                there = {name: v for name, v in zip(pinned, versions, strict=True) if v is not None}
            wheels = self._together(there, platform)
        if wheels is None:
            raise SourceError(INDEX, f"lists wheels for {platform} that it does not have")
        return [wheel for wheel in wheels if _fits(wheel, platform)]

    def _together(self, versions: Mapping[str, str], platform: str) -> list[Wheel] | None:
        """Return one wheel of each project; None where the platform lacks one of them."""
        if not versions:
            return []
        pins = [f"{name}=={version}" for name, version in versions.items()]
        try:
            return self._pip.resolve(pins, PLATFORMS[platform].tags)
        except NotAtSourceError:
            return None

    def _are_listed(self, projects: Iterable[str], platform: str) -> bool:
        return all((name, platform) in self._known for name in projects)

    def _nearest(
        self, name: str, version: str, specifier: SpecifierSet, platform: str
    ) -> str | None:
        """Return a platform's version, else its lowest that fits; None where it has none."""
        there = self._listed(name, platform)
        listed = {WheelVersion(text) for text in there.versions}
        if WheelVersion(version) in listed:
            return version
        # A release may name what was yanked since.
        if there.has_yanked and self._together({name: version}, platform):
            return version
        fitting = [other for other in listed if other in specifier]
        return str(min(fitting)) if fitting else None

    def _report_newer(self, pins: dict[str, str]) -> None:
        """Say which components are newer than the newest release; they are not taken."""

        def newest(project: str) -> str | None:
            versions = self._versions(project)
            return versions[0] if versions else None

        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = dict(zip(pins, pool.map(newest, pins), strict=True))
        newer = [
            f"{project} {version}"
            for project, version in sorted(found.items())
            if version is not None and WheelVersion(version) > WheelVersion(pins[project])
        ]
        if newer:
            _log.warning("newer than any release, and not taken: %s", ", ".join(newer))

    # -- other products

    def _family(self, redist: str, label: str) -> dict[str, dict[tuple[str, str | None], Wheel]]:
        places: dict[tuple[str, str | None], Wheel] = {}
        for variant, project in self._projects(redist).items():
            version = newest_builds(self._versions(project)).get(label)
            if version is None:
                continue
            for platform in PLATFORMS:
                try:
                    wheels = self._pip.resolve([f"{project}=={version}"], PLATFORMS[platform].tags)
                except NotAtSourceError:
                    continue
                for wheel in wheels:
                    if _fits(wheel, platform) and not wheel.is_yanked:
                        places[platform, variant] = wheel
        return {FAMILIES[redist].package: places} if places else {}


def _redist_in(folder: str) -> str:
    parts = folder.split("/")
    return parts[1] if parts[:1] == ["compute"] and len(parts) > 1 else folder


def _fits(wheel: Wheel, platform: str) -> bool:
    """Say whether a wheel is for a platform: pip may fall back to a placeholder for all of them."""
    if wheel.version.startswith("0.0.0"):
        return False
    return platform_of(wheel.file_name) in {platform, "any"}
