"""The contents of a manifest as frozen values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.errors import Problem
from cudaredist.primitives import ArchiveId, Sha256, Version, is_pool_path

Shape: TypeAlias = Literal["early", "flat", "nested", "mixed"]


class Archive(NamedTuple):
    """One archive of a manifest.

    The `sha256` identifies the archive, not the path.
    """

    package: str
    version: Version
    platform: str
    variant: str | None
    """The key under the platform, such as `cuda12`. None if the platform has no variants."""
    relative_path: str
    """The path relative to the manifest's folder. It cannot leave that folder, except into NVIDIA's
    early-access pool."""
    sha256: Sha256 | None
    """None only in early manifests, because they contain no hashes."""
    md5: str | None
    size: int | None
    """Bytes, None if the manifest does not state the size."""

    @property
    def id(self) -> ArchiveId:
        """The archive's key in the manifest."""
        return ArchiveId(self.package, self.platform, self.variant)

    @property
    def project(self) -> str | None:
        """The project of a wheel in the package index, None for NVIDIA's archives."""
        return self.relative_path.partition("/")[0] if self.relative_path.endswith(".whl") else None


class Package(NamedTuple):
    """One package of a manifest with its archives."""

    name: str
    title: str | None
    """The manifest's `name`, a human-readable title. None in early manifests."""
    license: str | None
    license_path: str | None
    versions: tuple[Version, ...]
    """Usually one version. An early manifest may list several."""
    variants: tuple[str, ...]
    """The declared variants with their prefix (`cuda11`, `cuda12`), in the manifest's order."""
    archives: tuple[Archive, ...]
    """The archives in the manifest's order."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of one manifest in its own order, with warnings."""

    label: Version | None
    """The label in the file's name, otherwise the one in the file. None if neither is known."""
    shape: Shape
    release_date: str | None
    """The date as written, `YYYY-MM-DD`. The dates do not determine the order of releases."""
    release_product: str | None
    packages: tuple[Package, ...]
    unknown: tuple[tuple[str, object], ...]
    """The path and value of each unknown key."""
    warnings: tuple[Problem, ...]

    @property
    def archives(self) -> Iterator[Archive]:
        """All archives by package."""
        return (archive for package in self.packages for archive in package.archives)

    @property
    def is_preview(self) -> bool:
        """Whether archives are in NVIDIA's early-access pool."""
        return any(is_pool_path(archive.relative_path) for archive in self.archives)

    @property
    def platforms(self) -> frozenset[str]:
        """All platforms with at least one archive."""
        return frozenset(archive.platform for archive in self.archives)
