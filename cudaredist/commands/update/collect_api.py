"""update-api: the tables of APIs, from the headers of archives.

A release's headers are parsed together with those that they include. Those of a product come from
the newest local release of the same CUDA major. A release that fails keeps its part of the tables,
and the others continue.
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import NamedTuple

from cudaredist.commands.update.report import ApiArchive, ApiReport, UnreadHeader
from cudaredist.commands.update.table_run import TableRun, archive_order
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, IncompleteError
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.report import exit_code_of
from cudaredist.hints import command_line
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version
from cudaredist.redists import CUDA, find_redist
from cudaredist.store.api_folder import ApiFolder
from cudaredist.store.archive_headers import ArchiveHeaders
from cudaredist.store.targets import LocalManifest, read_release
from cudaredist.store.temporary_folders import temporary_folder
from cudaredist.tables.api.api_columns import ApiColumn, ApiColumns, ApiOrigin
from cudaredist.tables.api.api_packages import (
    API_PACKAGES,
    CPP_LIBRARY,
    INCLUDED_PACKAGES,
    PLATFORM,
    headers_of_cpp,
    is_included,
    public_headers,
)
from cudaredist.tables.api.header_forms import HeaderForms, forms_of_json
from cudaredist.tables.api.header_process import ParseRequest, parse_headers
from cudaredist.tables.api.include_tree import IncludeTree
from cudaredist.tables.symbols.label_ranges import KEY_SIZE
from cudaredist.tasks import each, raise_if_stopped

_KIND = "api/1"
"""Names of headers by the hash of their contents, in the cache."""


class _Unit(NamedTuple):
    """Archives that are parsed with the same headers."""

    manifest: LocalManifest
    variant: str | None
    archives: tuple[Archive, ...]


class _Parsed(NamedTuple):
    archive: Archive
    headers: dict[str, HeaderForms]
    is_cached: bool


@dataclass
class ApiRun(TableRun):
    """One run of update-api."""

    _tables: dict[str, ApiColumns] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._headers = ArchiveHeaders(self.service)
        self._parsers = ThreadPoolExecutor(self.service.jobs, thread_name_prefix="cudaredist")
        """The threads that wait for the processes of parsers, one for each package."""
        self._adding = Lock()

    def run(self) -> ApiReport:
        """Bring the tables up to the releases of the run.

        Raises `InvalidFileError` for a broken table.
        """
        folder = ApiFolder(self.store.api_path)
        for package in folder.names():
            document = folder.document(package)
            if document is not None:
                self._tables[package] = ApiColumns.of(document)
        self._drop_removed_archives()
        units = list(self._units())
        self.service.progress.expect(sum(len(unit.archives) for unit in units))
        results = each(
            units, self._examine, self.service.jobs, self.service.stop, fail_fast=self.fail_fast
        )
        self._parsers.shutdown()
        outcomes: list[ApiArchive] = []
        for unit, result in zip(units, results, strict=True):
            if isinstance(result, list):
                outcomes += result
            else:
                error = ErrorReport.of(result)
                outcomes += (_outcome(unit, one, status="failed", error=error) for one in unit[2])
        changed = folder.changed(self._tables)
        if self.write and changed:
            folder.sweep()
            folder.write(changed)
        return self._report(changed, outcomes)

    # -- the archives

    def _units(self) -> Iterator[_Unit]:
        """Yield the archives that the tables do not have, by release and variant."""
        known = {
            (package, column) for package, table in self._tables.items() for column in table.columns
        }
        for manifest in self.manifests.readable:
            by_variant: dict[str | None, list[Archive]] = defaultdict(list)
            for archive in _archives_of(manifest):
                if (archive.package, self._column(manifest, archive)) not in known:
                    by_variant[archive.variant].append(archive)
            for variant, archives in by_variant.items():
                yield _Unit(manifest, variant, tuple(archives))

    def _drop_removed_archives(self) -> None:
        """Drop the columns of archives that are no longer in the releases of the run."""
        releases = {(one.target.redist.name, str(one.label)) for one in self.manifests.readable}
        current = {
            (archive.package, self._column(manifest, archive))
            for manifest in self.manifests.readable
            for archive in _archives_of(manifest)
        }

        def is_removed(package: str, column: ApiColumn) -> bool:
            is_of_run = (
                column.origin.channel == self.store.channel
                and (column.origin.redist, column.label) in releases
            )
            return is_of_run and (package, column) not in current

        for package, table in self._tables.items():
            table.drop(partial(is_removed, package))

    def _column(self, manifest: LocalManifest, archive: Archive) -> ApiColumn:
        names = manifest.target.redist.name, archive.platform, archive.variant or ""
        key = (archive.sha256 or "")[:KEY_SIZE]
        return ApiColumn(ApiOrigin(self.store.channel, *names), str(manifest.label), key)

    def _examine(self, unit: _Unit) -> list[ApiArchive]:
        """Read and parse the headers of a unit's archives, and add their names to the tables."""
        own = {archive: self._read(unit.manifest, archive) for archive in unit.archives}
        included: dict[str, bytes] = {}
        for manifest, archive in self._included(unit):
            if archive not in own:
                included |= _included_headers(archive, self._read(manifest, archive)[0])
        for archive, (headers, _) in own.items():
            included |= _included_headers(archive, headers)
        tree = IncludeTree(included)
        pending = [
            (archive, is_cached, headers, self._parsers.submit(self._forms, tree, archive, headers))
            for archive, (headers, is_cached) in own.items()
        ]
        nothing = HeaderForms()
        parsed = []
        for archive, is_cached, headers, future in pending:
            forms = future.result()
            names = {path: forms.get(path, nothing) for path in headers}
            parsed.append(_Parsed(archive, names, is_cached))
        # The names of all releases take gigabytes, but most are equal in the tables.
        with self._adding:
            return [self._add(unit, one) for one in parsed]

    def _read(self, manifest: LocalManifest, archive: Archive) -> tuple[dict[str, bytes], bool]:
        return self._headers.of(manifest.request(archive))

    def _included(self, unit: _Unit) -> Iterator[tuple[LocalManifest, Archive]]:
        """Yield the archives of CUDA with headers that those of a unit include."""
        manifest = unit.manifest
        if manifest.target.redist.name != CUDA:
            manifest = self._newest_cuda(manifest, unit.variant)
        for archive in manifest.manifest.archives:
            if archive.platform == PLATFORM and archive.package in INCLUDED_PACKAGES:
                yield manifest, archive

    def _newest_cuda(self, manifest: LocalManifest, variant: str | None) -> LocalManifest:
        """Return the newest local release of CUDA for a product's variant.

        Raises `IncompleteError` if there is none.
        """
        manifests = self.store.manifests(CUDA)
        major = (variant or "").removeprefix("cuda")
        labels = [label for label in manifests.labels() if _is_of_major(label, major)]
        if not labels:
            command = command_line("download-manifests", redist=CUDA, channel=self.store.channel)
            message = f"no local manifest of CUDA {major}, whose headers {manifest.name} includes"
            raise IncompleteError(message, hint=f"run `{command}`")
        redist = find_redist(CUDA)
        target = manifest.target._replace(
            redist=redist, manifests=manifests, folders=redist.archive_folders, only=None
        )
        return read_release(target, max(labels))

    def _forms(
        self, tree: IncludeTree, archive: Archive, headers: Mapping[str, bytes]
    ) -> dict[str, HeaderForms]:
        """Return the names of an archive's public headers, from the cache if it has them."""
        raise_if_stopped(self.service.stop)
        if archive.package == CPP_LIBRARY:
            tree = IncludeTree({**tree.headers, **headers})
            request = ParseRequest(headers_of_cpp(headers), is_library=True)
        else:
            public = public_headers(headers)
            request = ParseRequest({path: tree.includers(path, public) for path in public})
        cache, key = self.service.cache, tree.key(request.headers)
        cached = None if cache is None else cache.get(_KIND, key)
        if cached is not None:
            forms = forms_of_json(json.loads(zlib.decompress(cached)))
        elif request.headers:
            with temporary_folder() as folder:
                forms = parse_headers(tree.write(folder, request.headers), request)
            if cache is not None and not any(one.is_transient for one in forms.values()):
                cache.put(_KIND, key, zlib.compress(json.dumps(forms).encode()))
        else:
            forms = {}
        self.service.progress.done()
        return forms

    # -- the tables

    def _add(self, unit: _Unit, parsed: _Parsed) -> ApiArchive:
        """Add the names of an archive to its table, and return the outcome."""
        archive, headers = parsed.archive, parsed.headers
        table = self._tables.setdefault(archive.package, ApiColumns(archive.package))
        table.add(self._column(unit.manifest, archive), headers)
        return _outcome(
            unit,
            archive,
            status="cached" if parsed.is_cached else "read",
            headers=len(headers),
            unread=tuple(
                UnreadHeader(path=path, reason=forms.error)
                for path, forms in sorted(headers.items())
                if forms.error
            ),
        )

    def _report(self, changed: Mapping[str, bytes | None], outcomes: list[ApiArchive]) -> ApiReport:
        broken = self.broken_manifests()
        archives = sum(len(list(_archives_of(one))) for one in self.manifests.readable)
        status = self.status(changed=bool(changed))
        return ApiReport(
            status=status,
            tables=sum(bool(table.columns) for table in self._tables.values()),
            changed=tuple(package for package, data in changed.items() if data is not None),
            removed=tuple(package for package, data in changed.items() if data is None),
            releases=tuple(manifest.name for manifest in self.manifests.readable),
            known=archives - len(outcomes),
            archives=tuple(sorted(outcomes, key=archive_order)),
            manifests=broken,
            archives_read=self.service.opened,
            fetched_bytes=self.service.fetched,
            exit_code=exit_code_of(
                [*outcomes, *broken], EXIT_FINDINGS if status == "would-write" else EXIT_OK
            ),
        )


def _archives_of(manifest: LocalManifest) -> Iterator[Archive]:
    """Yield the archives of a release that have a table."""
    for archive in manifest.manifest.archives:
        is_known = archive.package in API_PACKAGES and archive.platform == PLATFORM
        if is_known and archive.sha256:
            yield archive


def _included_headers(archive: Archive, headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the headers of an archive that those of other packages can include."""
    return {path: data for path, data in headers.items() if is_included(archive.package, path)}


def _is_of_major(label: Version, major: str) -> bool:
    return not major or str(label).partition(".")[0] == major


def _outcome(unit: _Unit, archive: Archive, **more: object) -> ApiArchive:
    manifest = unit.manifest
    return ApiArchive.of(manifest.target.redist.name, manifest.label, archive, **more)
