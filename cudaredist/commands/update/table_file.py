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
from cudaredist.features.facts import Extract
from cudaredist.formats.base import OwnModel
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
    is_read: bool
    """Whether this run read the archive."""

    @property
    def path(self) -> str:
        """Path relative to the archive's top folder."""
        path = self.extract.name.removeprefix("./")
        if path not in EXTRACT_PATHS[self.extract.kind]:
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
        extract = next((e for e in facts.extracts if e.kind == table.extract), None)
        if extract is not None:
            if extract.problem is None:
                return TableFile(archive=archive, extract=extract, is_read=is_read)
            if extract.kind == "host-config":
                raise TooLargeError(EXTRACT_PATHS[extract.kind][0], HEADER_LIMIT)
            raise InvalidFileError(extract.kind, [Problem("", extract.problem)])
    names, packages = " or ".join(EXTRACT_PATHS[table.extract]), " and ".join(table.packages)
    raise ContentError(f"none of the {len(archives)} archives of {packages} has {names}")
