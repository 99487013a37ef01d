"""update-advisories: read NVIDIA's bulletins, verify them, and write the table.

A bulletin stays in the table if the source does not have it. A changed bulletin replaces the known
one only with permission. If a document fails, the others are still read.
"""

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cudaredist.commands.update.report import AdvisoryReport, BulletinOutcome
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    CudaRedistError,
    IncompleteError,
    IntegrityError,
    NotAtSourceError,
)
from cudaredist.formats.advisories import Advisories, AdvisoryPolicy, Bulletin, Vulnerability
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.report import exit_code_of
from cudaredist.primitives import natural_order, sha256_of
from cudaredist.sources.protocol import Source
from cudaredist.store.data_folder import Store
from cudaredist.store.files import names_in, write_output
from cudaredist.store.known_vulnerabilities import ADVISORIES, read_advisories, read_advisory_policy
from cudaredist.tables.advisories.products import is_undecided
from cudaredist.tables.advisories.read_bulletin import (
    DOCUMENT_LIMIT,
    ReadBulletin,
    compare_records,
    read_bulletin,
)
from cudaredist.tasks import each

REPOSITORY = "https://github.com/NVIDIA/product-security"
RAW_FILES = "https://raw.githubusercontent.com/NVIDIA/product-security/main"
FIRST_YEAR = 2022

_HASH_LIMIT = 4096
_MOST_BULLETINS = 20_000
_is_year = re.compile(r"20[0-9]{2}").fullmatch
_is_id = re.compile(r"[0-9]{4,6}").fullmatch
_links = re.compile(r"\]\((?:\./)?([0-9]{4,6})/").findall
_find_digest = re.compile(r"(?<![0-9a-f])([0-9a-f]{128}|[0-9a-f]{64})(?![0-9a-f])").search


class _Place(NamedTuple):
    """The path of a bulletin at the source."""

    id: str
    folder: str

    @property
    def path(self) -> str:
        return self.file(f"{self.id}.json")

    def file(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name


@dataclass
class AdvisoryRun:
    """Inputs and options of an update."""

    source: Source
    store: Store
    jobs: int
    write: bool = True
    replace: bool = False
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> AdvisoryReport:
        """Read all bulletins of the source, and write the table if it changed."""
        policy = read_advisory_policy(self.store)
        table = read_advisories(self.store)
        bulletins = {} if table is None else dict(table.bulletins)
        own = [] if table is None else list(table.vulnerabilities)
        places = list(self._places())
        if not places:
            raise IncompleteError(f"{self.source.name} has no bulletins (YEAR/ID/ID.json)")
        results = each(places, lambda place: self._read(place, policy), self.jobs, self.stop)
        outcomes = []
        for place, result in zip(places, results, strict=True):
            outcome = self._outcome(place, result, bulletins, policy)
            outcomes.append(outcome)
            if isinstance(result, ReadBulletin) and outcome.status != "changed":
                bulletins[result.id] = result.bulletin
                own = [one for one in own if one.bulletin != result.id]
                own += result.vulnerabilities
        return self._report(outcomes, bulletins, own)

    # -- reading

    def _places(self) -> Iterator[_Place]:
        """Yield the bulletins of a folder, or of the lists for each year on a server."""
        root = self.source.local_path("")
        if root is not None:
            yield from sorted({*_places_in(root)}, key=lambda place: (len(place.id), place.id))
            return
        for year in range(FIRST_YEAR, FIRST_YEAR + 100):
            try:
                listing = self.source.read(f"{year}/README.md", DOCUMENT_LIMIT).data or b""
            except NotAtSourceError:
                return
            names = sorted({*_links(listing.decode("utf-8", "replace"))}, key=natural_order)
            yield from (_Place(name, f"{year}/{name}") for name in names[:_MOST_BULLETINS])

    def _read(self, place: _Place, policy: AdvisoryPolicy) -> ReadBulletin:
        data = self._verified(place.path)
        result = read_bulletin(data, sha256_of(data), policy)
        if result.id != place.id:
            raise IntegrityError(f"{place.path} is bulletin {result.id}")
        names = [one.cve for one in result.vulnerabilities]
        records = {cve: self._verified(place.file(f"{cve}.json")) for cve in names}
        return compare_records(result, records, policy)

    def _verified(self, path: str) -> bytes:
        """Return a document that matches its checksum file.

        NVIDIA's checksums of some documents are of the text with line ends of Windows. A checksum
        can also be a SHA-512.
        """
        data = self.source.read(path, DOCUMENT_LIMIT).data or b""
        stated = self.source.read(f"{path}.sha256", _HASH_LIMIT).data or b""
        digest = _find_digest(stated.decode("ascii", "replace").lower())
        if digest is None:
            raise IntegrityError(f"{path}.sha256 has no SHA-256 or SHA-512")
        make = (
            hashlib.sha256 if len(digest[1]) == hashlib.sha256().digest_size * 2 else hashlib.sha512
        )
        windows = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        if digest[1] not in {make(text).hexdigest() for text in (data, windows)}:
            actual = make(data).hexdigest()
            raise IntegrityError(
                f"{path}: the checksum is {actual}, but {path}.sha256 states {digest[1]}"
            )
        return data

    # -- results

    def _outcome(
        self,
        place: _Place,
        result: ReadBulletin | CudaRedistError,
        known: Mapping[str, Bulletin],
        policy: AdvisoryPolicy,
    ) -> BulletinOutcome:
        if isinstance(result, CudaRedistError):
            return BulletinOutcome(bulletin=place.id, status="failed", error=ErrorReport.of(result))
        before, unmapped = known.get(result.id), result.bulletin.unmapped
        about = {
            "bulletin": result.id,
            "version": result.bulletin.version,
            "changed": result.bulletin.changed,
            "vulnerabilities": len(result.vulnerabilities),
            "unmapped": unmapped,
            "undecided": tuple(name for name in unmapped if is_undecided(name, policy)),
        }
        if before is None:
            return BulletinOutcome.model_validate(about | {"status": "new"})
        if before.sha256 == result.bulletin.sha256:
            return BulletinOutcome.model_validate(about | {"status": "known"})
        status = "replaced" if self.replace else "changed"
        about["known_version"] = before.version
        return BulletinOutcome.model_validate(about | {"status": status})

    def _report(
        self,
        outcomes: list[BulletinOutcome],
        bulletins: Mapping[str, Bulletin],
        vulnerabilities: list[Vulnerability],
    ) -> AdvisoryReport:
        path, before = self.store.table_path(ADVISORIES), self.store.read_table(ADVISORIES)
        status: ManifestStatus = "unchanged"
        if bulletins:
            ordered = sorted(
                vulnerabilities, key=lambda one: (natural_order(one.cve), one.bulletin)
            )
            fields = {
                "schema_version": 1,
                "source": REPOSITORY,
                "newest": max(one.changed for one in bulletins.values()),
                "bulletins": dict(bulletins),
                "vulnerabilities": tuple(ordered),
            }
            data = Advisories.model_validate(fields).canonical()
            read_own_file(data, Advisories)
            if data != before:
                status = "written" if self.write else "would-write"
                if self.write:
                    write_output(path, data, self.store.checkout)
        has_findings = status == "would-write" or any(o.status == "changed" for o in outcomes)
        return AdvisoryReport(
            table=path.name,
            status=status,
            bulletins=tuple(outcomes),
            total_bulletins=len(bulletins),
            total_vulnerabilities=len(vulnerabilities),
            exit_code=exit_code_of(outcomes, EXIT_FINDINGS if has_findings else EXIT_OK),
        )


def _places_in(root: Path) -> Iterator[_Place]:
    """Yield the bulletins of a folder: YEAR/ID/ID.json, ID/ID.json or ID.json."""
    names = [name for name in names_in(root) if _is_year(name) or _is_id(name)]
    for name in names_in(root):
        if name.endswith(".json") and _is_id(name.removesuffix(".json")):
            yield _Place(name.removesuffix(".json"), "")
    for name in names:
        folder = root / name
        if not folder.is_dir():
            continue
        if (folder / f"{name}.json").is_file():
            yield _Place(name, name)
            continue
        for below in names_in(folder):
            if _is_id(below) and (folder / below / f"{below}.json").is_file():
                yield _Place(below, f"{name}/{below}")
