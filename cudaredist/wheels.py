"""NVIDIA's wheels as a second channel: their files, requirements and manifests.

This module sends no requests.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from email.message import Message
from operator import attrgetter
from typing import Any, NamedTuple

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from cudaredist.jsontext import canonical_json
from cudaredist.primitives import ArchiveId
from cudaredist.wheel_projects import (
    PLATFORMS,
)

SIMPLE = "simple"
"""The folder of wheels in a mirror, with one folder per project."""

_is_plain_name = re.compile(r"[A-Za-z0-9_.+!-]{1,255}").fullmatch
_LINE_LIMIT, _PARENTHESES_LIMIT = 1000, 50
"""Maximum characters and opening parentheses of a requirement, against hostile metadata."""


def requirements_on(platform: str, requires: Iterable[str]) -> dict[str, SpecifierSet]:
    """Return the projects of a release on a platform, including all extras.

    Markers are evaluated for that platform, not for this machine. Invalid lines are skipped.
    """
    projects: dict[str, SpecifierSet] = {}
    for requirement in filter(None, map(_requirement, requires)):
        if applies_on(requirement, platform):
            projects[canonicalize_name(requirement.name)] = requirement.specifier
    return projects


def applies_on(requirement: Requirement, platform: str | None) -> bool:
    """Check if a requirement, or any extra with it, applies on a platform.

    Requirements apply on platforms without wheels.
    """
    marker = requirement.marker
    if marker is None or platform not in PLATFORMS:
        return True
    environment = dict(PLATFORMS[platform].environment)
    extras = {"", *re.findall(r"extra == ['\"]([^'\"]+)['\"]", str(marker))}
    return any(evaluate_marker(marker, environment | {"extra": extra}) for extra in extras)


def evaluate_marker(marker: Marker, environment: dict[str, str]) -> bool:
    """Return whether a marker applies.

    A marker with an undefined comparison does not apply.
    """
    try:
        return marker.evaluate(environment)
    except ValueError:  # such as os_name ~= "posix"
        return False


def parse_requirements(metadata: Message) -> list[Requirement]:
    """Return the valid requirements of a wheel's METADATA."""
    lines = map(str, metadata.get_all("Requires-Dist", ()))
    return list(filter(None, map(_requirement, lines)))


@functools.cache
def _requirement(line: str) -> Requirement | None:
    """Return a requirement, None if it is invalid or too long."""
    if len(line) > _LINE_LIMIT or line.count("(") > _PARENTHESES_LIMIT:
        return None
    with suppress(InvalidRequirement):
        return Requirement(line)
    return None


def lower_bound(specifier: SpecifierSet) -> str | None:
    """Return the lowest version in a requirement.

    Unlike the newest one, it does not change when new wheels are published.
    """
    lower = [part.version for part in specifier if part.operator in {"==", ">=", "~=", "==="}]
    bounds = [Version(text.removesuffix(".*")) for text in lower]
    return str(max(bounds)) if bounds else None


class Wheel(NamedTuple):
    """A wheel in an index."""

    project: str
    version: Version
    file_name: str
    tags: frozenset[str]
    """The platforms in its name."""
    url: str
    sha256: str | None = None
    size: int | None = None
    is_yanked: bool = False
    metadata_sha256: str | None = None
    """The hash of its metadata file: empty if the hash is unknown, None without a file."""
    uploaded: str | None = None
    """The day of its upload, such as 2026-11-04, if the index states it."""

    def rank_on(self, platform: str) -> int | None:
        """Return the rank of a wheel on a platform, None for other platforms.

        Wheels for the oldest systems rank first, those for every platform last.
        """
        known = PLATFORMS[platform].tags
        ranks = [known.index(tag) for tag in self.tags if tag in known]
        if ranks:
            return min(ranks)
        return len(known) if "any" in self.tags else None


def parse_wheel(file_name: str, url: str) -> Wheel | None:
    """Parse a wheel's name, and return None if manifests cannot contain it.

    Manifests contain no extension modules and no other platforms. Wheels of version 0.0.0 are
    skipped, because they only reserve a project's name.
    """
    if not _is_plain_name(file_name):
        return None
    stem, _, platforms = file_name.rpartition("-none-")
    try:
        # Tags are combinations of all parts, so a hostile name would have too many of them.
        project, version, _, _ = parse_wheel_filename(f"{stem}-none-any.whl")
    except (InvalidWheelFilename, InvalidVersion):
        return None
    tags = frozenset(platforms.removesuffix(".whl").lower().split("."))
    wheel = Wheel(project, version, file_name, tags, url)
    is_known = any(wheel.rank_on(platform) is not None for platform in PLATFORMS)
    is_wheel = file_name.endswith(".whl") and version.release[:3] != (0, 0, 0)
    return wheel if is_wheel and is_known else None


def newest_builds(wheels: Iterable[Wheel], form: str = "{}.{}.{}") -> dict[str, list[Wheel]]:
    """Return the wheels of the newest build for each label (its first three numbers).

    Yanked wheels are skipped.
    """
    builds: dict[str, list[Wheel]] = {}
    for wheel in wheels:
        version, numbers = wheel.version, wheel.version.release
        if wheel.is_yanked or version.is_prerelease or version.epoch or len(numbers) < 2:  # noqa: PLR2004 - a label has two
            continue
        label = ".".join(form.split(".")[: len(numbers)]).format(*numbers)
        newest = builds.setdefault(label, [wheel])[0]
        if version > newest.version:
            builds[label] = [wheel]
        elif wheel is not newest and str(version) == str(newest.version):
            builds[label].append(wheel)
    return builds


def best_wheel(wheels: Iterable[Wheel], platform: str, versions: SpecifierSet) -> Wheel | None:
    """Return a platform's wheel for the lowest version in a requirement.

    If the platform lacks that version, the lowest matching one is used. A yanked wheel is used only
    for the version in the requirement, and only if there is no other wheel.
    """
    lowest_text = lower_bound(versions)
    if lowest_text is None:
        return None
    on_platform = [wheel for wheel in wheels if wheel.rank_on(platform) is not None]
    candidates = [wheel for wheel in on_platform if wheel.version == Version(lowest_text)]
    if not candidates:
        fitting = [
            wheel for wheel in on_platform if wheel.version in versions and not wheel.is_yanked
        ]
        lowest = min((wheel.version for wheel in fitting), default=None)
        candidates = [wheel for wheel in fitting if wheel.version == lowest]
    return min(
        candidates, key=lambda wheel: (wheel.is_yanked, wheel.rank_on(platform) or 0), default=None
    )


class Metadata(NamedTuple):
    """The fields of a wheel's metadata that manifests use."""

    summary: str
    license: str
    requires: tuple[str, ...]


def newest_wheels(wheels: Mapping[ArchiveId, Wheel]) -> dict[str, Wheel]:
    """Return the wheel with the metadata and version of each package."""
    newest: dict[str, Wheel] = {}
    for archive, wheel in wheels.items():
        other = newest.get(archive.package, wheel)
        newest[archive.package] = max(other, wheel, key=attrgetter("version"))
    return newest


def release_date(
    wheels: Mapping[ArchiveId, Wheel], listed: Mapping[str, Iterable[Wheel]]
) -> str | None:
    """Return the day on which the last package of a release had its first wheel.

    Wheels for further platforms and repackaged builds (`.post1`), which NVIDIA often adds later, do
    not change it. `listed` has all wheels of each project.
    """
    first: dict[str, str] = {}
    for archive, wheel in wheels.items():
        builds = (
            other
            for other in listed[wheel.project]
            if other.version.release == wheel.version.release and not other.version.is_prerelease
        )
        days = [build.uploaded for build in builds if build.uploaded is not None]
        if archive.package in first:
            days.append(first[archive.package])
        if days:
            first[archive.package] = min(days)
    has_all = first.keys() == {archive.package for archive in wheels}
    return max(first.values(), default=None) if has_all else None


def manifest_bytes(
    redist: str,
    label: str,
    wheels: Mapping[ArchiveId, Wheel],
    metadata: Mapping[str, Metadata],
    day: str | None = None,
) -> bytes:
    """Return a deterministic manifest of wheels, with the day of the release if it is known.

    It has no sizes, because not every index has them.
    """
    document: dict[str, Any] = {"release_label": label, "release_product": redist}
    if day is not None:
        document["release_date"] = day
    for package, newest in newest_wheels(wheels).items():
        document[package] = {
            "name": metadata[package].summary,
            "license": metadata[package].license,
            "version": ".".join(map(str, newest.version.release)),
        }
    for (package, platform, variant), wheel in wheels.items():
        entry = document[package]
        archive = {"relative_path": f"{wheel.project}/{wheel.file_name}", "sha256": wheel.sha256}
        if variant is None:
            entry[platform] = archive
        else:
            entry.setdefault(platform, {})[variant] = archive
            variants = {*entry.get("cuda_variant", ()), variant.removeprefix("cuda")}
            entry["cuda_variant"] = sorted(variants)
    return canonical_json(document)
