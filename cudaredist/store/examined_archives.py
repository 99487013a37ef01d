"""The archives that a feature file describes."""

from collections.abc import Iterator

from cudaredist.formats.features import ExaminedArchive, Features, PackageFeatures
from cudaredist.primitives import ArchiveId


def examined_archives(
    features: Features | None,
) -> Iterator[tuple[ArchiveId, PackageFeatures, int, ExaminedArchive]]:
    """Yield each examined archive with its key, package and position."""
    for package, entry in features.packages.items() if features else ():
        for position, archive in enumerate(entry.archives):
            if isinstance(archive, ExaminedArchive):
                identity = ArchiveId(package, archive.platform, archive.variant)
                yield identity, entry, position, archive
