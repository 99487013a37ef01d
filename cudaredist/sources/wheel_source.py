"""The wheel channel as a source, with the layout of a server."""

import logging
from collections.abc import Iterable, Iterator, Mapping

from packaging.specifiers import SpecifierSet

from cudaredist.errors import NotAtSourceError, TooLargeError
from cudaredist.primitives import Version, label_of_manifest_name, parse_label
from cudaredist.sources.protocol import Delivery, Settings
from cudaredist.sources.wheel_index import INDEX, LocalMetadata, WheelIndex
from cudaredist.wheels import (
    FAMILIES,
    METAPACKAGE,
    PLATFORMS,
    Wheel,
    best_wheel,
    lower_bound,
    manifest_bytes,
    newest_builds,
    newest_wheel,
    package_of,
    parse_wheel,
    requirements_on,
)

_log = logging.getLogger(__name__)

_Places = dict[tuple[str, str | None], Wheel]


class WheelSource:
    """NVIDIA's wheels in the layout of NVIDIA's server."""

    def __init__(self, settings: Settings, local_metadata: LocalMetadata = lambda _: None) -> None:
        self._index = WheelIndex(settings, local_metadata)

    @property
    def name(self) -> str:
        """The name of all indexes together, for messages."""
        return INDEX

    def place_of(self, path: str) -> str:
        """Return the path, because several indexes may have the file."""
        return f"{INDEX}: {path}"

    def close(self) -> None:
        """Close connections and end threads."""
        self._index.close()

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return a redistributable's labels: its wheels' versions, truncated to three numbers."""
        projects = self._projects(_redist_in(folder))
        wheels = self._index.wheels(list(projects.values()))
        labels = {label for of_project in wheels.values() for label in _newest_builds(of_project)}
        if not labels:
            raise NotAtSourceError(
                INDEX,
                f"no wheels of {_redist_in(folder)}",
                hint="check the indexes with `pip config list`",
            )
        return tuple(sorted(map(parse_label, labels)))

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:  # noqa: ARG002 - indexes have none for it
        """Return a manifest for the wheels of a release."""
        folder, _, name = path.rpartition("/")
        label = label_of_manifest_name(name)
        redist = _redist_in(folder)
        if label is None:
            raise NotAtSourceError(INDEX, f"{name} is not a manifest")
        is_cuda = redist == "cuda"
        packages = self._release(str(label)) if is_cuda else self._family(redist, str(label))
        if not packages:
            raise NotAtSourceError(INDEX, f"no wheels of {redist} {label}")
        wheels = [wheel for places in packages.values() for wheel in places.values()]
        verified = dict(zip(wheels, self._index.verified(wheels), strict=True))
        packages = {
            package: {place: verified[wheel] for place, wheel in places.items()}
            for package, places in packages.items()
        }
        metadata = self._index.metadata([newest_wheel(places) for places in packages.values()])
        of_package = dict(zip(packages, metadata, strict=True))
        data = manifest_bytes(redist, str(label), packages, of_package)
        if len(data) > limit:
            raise TooLargeError(self.place_of(path), limit)
        return Delivery(self.name, data)

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a wheel's bytes, beginning at byte `start`."""
        return self._index.stream(self._wheel(path), start, size)

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

    def metapackages(self, labels: Iterable[str]) -> list[Wheel]:
        """Return the metapackages of CUDA releases, with their hashes."""
        releases = self._index.wheels([METAPACKAGE])[METAPACKAGE]
        return self._index.verified([_metapackage(releases, label) for label in labels])

    def _wheel(self, path: str) -> Wheel:
        wheel = self.wheels_at([path]).get(path)
        if wheel is None:
            raise NotAtSourceError(INDEX, f"no wheel {path}")
        return wheel

    def _projects(self, redist: str) -> dict[str, str]:
        """Return the projects that determine a redistributable's labels, by variant."""
        if redist == "cuda":
            return {"": METAPACKAGE}
        family = FAMILIES.get(redist)
        if family is None:
            raise NotAtSourceError(
                INDEX,
                f"NVIDIA does not publish wheels of {redist}",
                hint=f"available as wheels: cuda, {', '.join(FAMILIES)}",
            )
        return dict(family.projects)

    # -- CUDA itself

    def _release(self, label: str) -> dict[str, _Places]:
        """Return the wheels that the metapackage requires, by package."""
        releases = self._index.wheels([METAPACKAGE])[METAPACKAGE]
        builds = _newest_builds(releases)
        (release,) = self._index.metadata([_metapackage(releases, label)])
        requirements_of = {
            platform: requirements_on(platform, release.requires) for platform in PLATFORMS
        }
        projects = dict.fromkeys(name for names in requirements_of.values() for name in names)
        wheels = self._index.wheels(list(projects))
        packages: dict[str, _Places] = {}
        for platform, requirements in requirements_of.items():
            for project, versions in requirements.items():
                if lower_bound(versions) is None:
                    _log.warning("%s does not pin %s to a version", METAPACKAGE, project)
                wheel = best_wheel(wheels[project], platform, versions)
                if wheel is not None:
                    package, is_known = package_of(project)
                    if not is_known:
                        _log.warning("unknown project %s: using package %s", project, package)
                    packages.setdefault(package, {})[platform, None] = wheel
        if label == max(builds, key=Version.parse):
            _warn_about_newer(wheels, (w for places in packages.values() for w in places.values()))
        return packages

    # -- other products

    def _family(self, redist: str, label: str) -> dict[str, _Places]:
        places: _Places = {}
        projects = self._projects(redist)
        wheels = self._index.wheels(list(projects.values()))
        for variant, project in projects.items():
            released = _released(wheels[project])
            version = _newest_builds(released).get(label)
            for platform in PLATFORMS if version is not None else ():
                wheel = best_wheel(released, platform, SpecifierSet(f"=={version}"))
                if wheel is not None:
                    places[platform, variant] = wheel
        return {FAMILIES[redist].package: places} if places else {}


def _redist_in(folder: str) -> str:
    parts = folder.split("/")
    return parts[1] if parts[:1] == ["compute"] and len(parts) > 1 else folder


def _released(wheels: Iterable[Wheel]) -> list[Wheel]:
    return [wheel for wheel in wheels if not wheel.is_yanked]


def _newest_builds(wheels: Iterable[Wheel]) -> dict[str, str]:
    return newest_builds(str(wheel.version) for wheel in _released(wheels))


def _metapackage(releases: Iterable[Wheel], label: str) -> Wheel:
    """Return the newest build of a CUDA release."""
    released = _released(releases)
    build = _newest_builds(released).get(label)
    if build is None:
        raise NotAtSourceError(INDEX, f"no {METAPACKAGE} {label}")
    return next(wheel for wheel in released if str(wheel.version) == build)


def _warn_about_newer(wheels: Mapping[str, Iterable[Wheel]], released: Iterable[Wheel]) -> None:
    """Warn about wheels newer than the newest release."""
    pins = {wheel.project: wheel.version for wheel in sorted(released, key=lambda w: w.version)}
    newer = []
    for project, pin in sorted(pins.items()):
        versions = [w.version for w in _released(wheels[project]) if not w.version.is_prerelease]
        if max(versions, default=pin) > pin:
            newer.append(f"{project} {max(versions)}")
    if newer:
        _log.warning("skipped, because newer than any release: %s", ", ".join(newer))
