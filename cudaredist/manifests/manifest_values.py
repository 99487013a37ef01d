"""What a manifest says, as frozen values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.errors import Problem
from cudaredist.primitives import Sha256, Version

Shape: TypeAlias = Literal["early", "flat", "nested", "mixed"]


class Archive(NamedTuple):
    """One archive that a manifest names; its identity is its `sha256`, never its path."""

    package: str
    version: Version
    platform: str
    variant: str | None
    """The key under the platform, such as `cuda12`; None where the platform holds the archive."""
    relative_path: str
    """The place below the manifest's folder, checked to stay there (or in NVIDIA's pool)."""
    sha256: Sha256 | None
    """None only in early manifests, which state none."""
    md5: str | None
    size: int | None
    """Bytes; None where the manifest does not say."""


class Package(NamedTuple):
    """One package of a manifest with its archives, in the manifest's order."""

    name: str
    title: str | None
    """The manifest's `name`, a phrase for people; None in early manifests."""
    license: str | None
    license_path: str | None
    versions: tuple[Version, ...]
    """One version, except that an early manifest may list several."""
    variants: tuple[str, ...]
    """The declared variants with their prefix (`cuda11`, `cuda12`), in the manifest's order."""
    archives: tuple[Archive, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one manifest says, in its own order, with what was odd about it."""

    label: Version | None
    """The label of the file's name, else the one inside; None where neither is known."""
    shape: Shape
    release_date: str | None
    """As written, `YYYY-MM-DD`; no order of releases can be read from it."""
    release_product: str | None
    packages: tuple[Package, ...]
    unknown: tuple[tuple[str, object], ...]
    """What no rule knows, kept: the path to it, and its value."""
    warnings: tuple[Problem, ...]

    @property
    def archives(self) -> Iterator[Archive]:
        """All archives, package by package."""
        return (archive for package in self.packages for archive in package.archives)

    @property
    def platforms(self) -> frozenset[str]:
        """Every platform that at least one archive is for."""
        return frozenset(archive.platform for archive in self.archives)
