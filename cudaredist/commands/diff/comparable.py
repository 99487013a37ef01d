"""One side of a comparison: the compared fields and files."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from cudaredist.primitives import Place, Version

Value: TypeAlias = str | frozenset[str]
"""A text, or a set of names that are compared one by one."""
Fields: TypeAlias = dict[tuple[str, Place], Value]
"""By field name and place."""


class PackageRelease(NamedTuple):
    """The release of a package, whose known vulnerabilities are compared."""

    redist: str
    package: str
    label: Version
    platforms: tuple[str, ...] = ()
    """The compared platforms. Empty: all."""


@dataclass(slots=True)
class Comparable:
    """One side of a comparison."""

    name: str
    packages: dict[str, Fields] = field(default_factory=dict)
    tables: dict[str, Fields] = field(default_factory=dict)
    """Values from each table with the CUDA release."""
    files: dict[str, frozenset[str]] = field(default_factory=dict)
    """Relative paths of each package's files, if known."""
    paths: dict[Place, dict[str, frozenset[str]]] = field(default_factory=dict)
    """Relative paths of each package's files by platform, if known. Links count as files."""
    run_paths: dict[Place, dict[str, dict[str, tuple[str, ...]]]] = field(default_factory=dict)
    """Run paths of libraries and programs by platform, package and path."""
    kind: str = "manifest"
    redist: str | None = None
    """The redistributable, if the file states it."""
    releases: dict[str, PackageRelease] = field(default_factory=dict)
    """By name of the package, if the release is known."""


def of_platforms(side: Comparable, platforms: Collection[str]) -> Comparable:
    """Return a side with some platforms only. Packages without them are left out."""

    def is_selected(place: Place) -> bool:
        return place.partition("/")[0] in platforms

    packages = {}
    for name, fields in side.packages.items():
        kept = {key: value for key, value in fields.items() if not key[1] or is_selected(key[1])}
        places = kept.get(("platforms", ""))
        if isinstance(places, frozenset):
            selected = frozenset(filter(is_selected, places))
            if not selected:
                continue
            kept["platforms", ""] = selected
        packages[name] = kept
    releases = {
        name: release._replace(platforms=tuple(platforms))
        for name, release in side.releases.items()
        if name in packages
    }
    return replace(
        side,
        packages=packages,
        releases=releases,
        files={name: files for name, files in side.files.items() if name in packages},
        paths={place: files for place, files in side.paths.items() if is_selected(place)},
        run_paths={place: files for place, files in side.run_paths.items() if is_selected(place)},
    )


def add_releases(side: Comparable, redist: str, label: Version) -> None:
    """State the release of all packages."""
    side.releases = {name: PackageRelease(redist, name, label) for name in side.packages}


def files_of(side: Comparable) -> dict[str, frozenset[str]]:
    """Return the paths of each package's files on all platforms together."""
    files: dict[str, frozenset[str]] = {}
    for packages in side.paths.values():
        for package, paths in packages.items():
            files[package] = files.get(package, frozenset()) | paths
    return files
