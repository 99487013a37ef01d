"""Find the file of a release that a table is built from."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from cudaredist.errors import (
    ContentError,
    IncompleteError,
    InvalidFileError,
    Problem,
    TooLargeError,
)
from cudaredist.features.extracts import EXTRACT_PATHS, HEADER_LIMIT
from cudaredist.features.facts import Extract, Facts
from cudaredist.formats.base import OwnModel
from cudaredist.formats.names import ExtractKind
from cudaredist.jsontext import load_json
from cudaredist.manifests.manifest_values import Archive
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.table_registry import Table
from cudaredist.store.targets import LocalManifest
from cudaredist.tables.gpus.capability import Capability

_wheel_top = re.compile(r"(?:nvidia/)?[^/]+/").match
_any_top = re.compile(r"[^/]+/").match


class TableFile(NamedTuple):
    """File of a release, with its archive."""

    archive: Archive
    extract: Extract
    second: Extract | None
    """Extract of the table's second file. None if the archive has none."""
    is_read: bool
    """Whether this run read the archive."""

    def path_of(self, extract: Extract) -> str:
        """Return the path of a file relative to the archive's top folder."""
        path = extract.name.removeprefix("./")
        if path not in EXTRACT_PATHS[extract.kind]:
            top = _wheel_top if self.archive.relative_path.endswith(".whl") else _any_top
            match = top(path)
            if match is not None:
                path = path[match.end() :]
        return path.encode("ascii", "backslashreplace").decode("ascii")

    @property
    def header(self) -> bytes:
        """Contents of `host_config.h`."""
        return self.extract.content.encode("latin-1")

    @property
    def families(self) -> dict[Capability, str]:
        """Architecture name of each capability in `ptxas`."""
        families = load_json(self.extract.content.encode())
        return {Capability.parse(name): family for name, family in families.items()}


def archives_to_read(
    service: ArchiveService,
    manifest: LocalManifest,
    table: Table[OwnModel],
    known_sha256: str | None,
) -> list[Archive]:
    """Return the archives to read for a release's file, those in the cache first.

    `known_sha256` is the archive of the table's entry. If the manifest still lists this archive,
    and its facts are not in the cache, the entry stays and nothing is read. Raises
    `IncompleteError` if no archive can be verified.
    """
    archives = [a for a in manifest.manifest.archives if a.package in table.packages]
    hashed = {archive.sha256: archive for archive in archives if archive.sha256 is not None}
    if not hashed:
        missing = "no hash for any archive" if archives else "no archive"
        raise IncompleteError(f"the manifest has {missing} of {' or '.join(table.packages)}")
    if known_sha256 in hashed and service.known(known_sha256) is None:
        return []
    return sorted(
        hashed.values(),
        key=lambda archive: (
            archive.sha256 != known_sha256,
            service.known(archive.sha256) is None,
            float("inf") if archive.size is None else archive.size,
            archive.relative_path,
        ),
    )


def find_table_file(
    service: ArchiveService,
    manifest: LocalManifest,
    table: Table[OwnModel],
    archives: Sequence[Archive],
) -> TableFile:
    """Return a release's file from the first archive that has it.

    Reads an archive only if the cache lacks its facts. Raises `CudaRedistError` if no archive has
    the file, or if an archive cannot be read.
    """
    for position, archive in enumerate(archives):
        if position:
            service.progress.expect(1, 0 if service.known(archive.sha256) else archive.size)
        facts, is_read = service.examine(manifest.request(archive))
        extract, second = _extract(facts, table.extract), _extract(facts, table.second_extract)
        if extract and not second and table.second_extract and not is_read:
            # Facts of earlier releases of cudaredist lack the second file.
            facts, is_read = service.examine(manifest.request(archive), again=True)
            second = _extract(facts, table.second_extract)
        if extract is not None:
            return TableFile(archive=archive, extract=extract, second=second, is_read=is_read)
    names, packages = " or ".join(EXTRACT_PATHS[table.extract]), " and ".join(table.packages)
    raise ContentError(f"none of the {len(archives)} archives of {packages} has {names}")


def _extract(facts: Facts, kind: ExtractKind | None) -> Extract | None:
    """Return an archive's topmost file of a kind, or None.

    Raises `TooLargeError` for a large header, and `InvalidFileError` for another unreadable file.
    """
    extract = next((extract for extract in facts.extracts if extract.kind == kind), None)
    if extract is None or extract.problem is None:
        return extract
    if extract.kind == "ptxas":
        raise InvalidFileError(extract.kind, [Problem("", extract.problem)])
    raise TooLargeError(EXTRACT_PATHS[extract.kind][0], HEADER_LIMIT)
