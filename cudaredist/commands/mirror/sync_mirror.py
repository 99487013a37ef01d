"""mirror sync: copy and verify selected manifests and archives."""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from cudaredist.archives.wheel_metadata import metadata_in
from cudaredist.cli.session import Session, open_cache
from cudaredist.commands.download.download import ManifestDownload, store_destination
from cudaredist.commands.mirror.fitting_releases import FittingReleases
from cudaredist.commands.mirror.mirror_folder import MirrorFolder
from cudaredist.commands.mirror.mirror_pages import METADATA_SUFFIX, generated_files
from cudaredist.commands.mirror.mirror_paths import MirrorSelection, archive_path_in, published_path
from cudaredist.commands.mirror.options import MirrorOptions
from cudaredist.commands.mirror.report import ArchiveCopy, MirroredArchive, MirrorSyncReport
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    CudaRedistError,
    IncompleteError,
    IntegrityError,
    NotAtSourceError,
)
from cudaredist.formats.mirror_lock import ListedRelease, MirrorFile
from cudaredist.formats.report import ErrorReport, exit_code_of
from cudaredist.hints import command_line
from cudaredist.primitives import Sha256, Version, sha256_of
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.wheel_source import WheelSource
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.files import read_file, write_file
from cudaredist.store.selection import EVERY_RELEASE
from cudaredist.store.targets import (
    LocalManifest,
    limited_to,
    read_local_manifests,
    targets_in_store,
)
from cudaredist.tasks import each, raise_if_stopped
from cudaredist.wheels import SIMPLE, Wheel

_SAVE_EVERY = 32
"""Archives after which the lock is saved, so that a killed run verifies few of them again."""


@dataclass(slots=True)
class _Content:
    """One distinct content and its paths in the mirror."""

    sha256: Sha256
    request: ArchiveRequest
    paths: list[str]
    yanked: bool = False


class MirrorSync:
    """One run of mirror sync."""

    def __init__(self, options: MirrorOptions, session: Session, mirror: MirrorFolder) -> None:
        """Open the sources, and lock the mirror unless this is a dry run."""
        self.mirror, self.checksum, self.write = mirror, options.checksum, not options.check
        self.selection = selection = MirrorSelection.of(options)
        bases = session.connect(options.network, selection.channel)
        if self.write:
            session.lock(mirror.root)()
        else:
            mirror.work_on_copy(Path(session.enter_context(tempfile.TemporaryDirectory())))
        mirror.remove_broken_lock(selection.channel)
        store = mirror.store(selection.channel)
        self.targets = targets_in_store(store, selection.redists, bases)
        self.wheels: WheelSource | None = None
        """The package index, in the wheels channel."""
        if selection.channel == "wheels":
            self.wheels = WheelSource(session.settings, self._local_metadata)
            sources = session.enter_context(contextlib.closing(SourceChain([self.wheels])))
            chains = {bases: sources}
        else:
            sources = session.sources(bases)
            chains = {one: session.sources(one) for one in {t.bases for t in self.targets}}
        is_explicit = options.redist is not None or selection.labels is not None
        destination = store_destination(store, selection.redists, is_explicit=is_explicit)
        destination.sweep()
        cache, releases = open_cache(options.cache_dir), selection.releases
        if selection.labels is None and options.archives.variant:
            fitting = FittingReleases(sources, cache, store, selection.filter)
            releases = fitting.of(releases, selection.redists)
        self.download = ManifestDownload(
            sources,
            destination,
            releases,
            cache,
            session.workers("manifests"),
            accept_changed=options.replace,
        )
        self.service = ArchiveService(
            chains=chains,
            stop=session.settings.stop,
            jobs=options.jobs.count,
            max_archive=options.jobs.max_size,
            progress=session.progress("archives"),
        )
        self._files: dict[str, MirrorFile] = {}
        """The lock's records."""
        self._by_hash: dict[Sha256, str] = {}
        self._claims: dict[str, Sha256] = {}
        """The required content of each selected path."""
        self._archives: list[MirroredArchive] = []
        self._mutex = threading.Lock()
        self._unsaved = 0

    def run(self) -> MirrorSyncReport:
        """Copy manifests and archives, and publish them with index pages.

        Files that the mirror already has are replaced only by verified ones. A dry run fetches
        manifests to a temporary folder, and compares archives with the mirror.
        """
        self._files = self.mirror.lock_or_new()
        if self.write:
            self.mirror.sweep()
            self.mirror.save_lock(self._files)
        downloaded = self.download.run()
        # A manifest that changed upstream is still local.
        labels = {
            (o.redist, Version.parse(o.release))
            for o in downloaded.manifests
            if o.error is None or o.error.exit_code != IncompleteError.exit_code
        }
        manifests, outcomes = self._manifests(labels), downloaded.manifests
        missing = 0
        if self.write:
            self._copy_all(manifests)
        else:
            outcomes = tuple(
                one.model_copy(update={"status": "would-write"}) if one.status == "written" else one
                for one in outcomes
            )
            missing = self._compare(manifests)
        statuses = {*(one.status for one in outcomes), *(one.status for one in self._archives)}
        would_change = not statuses.isdisjoint({"would-write", "would-copy", "would-repair"})
        return MirrorSyncReport(
            folder=str(self.mirror.root),
            redists=downloaded.redists,
            manifests=outcomes,
            archives=tuple(sorted(self._archives, key=lambda one: one.path)),
            errors=downloaded.errors,
            fetched_bytes=self.service.fetched,
            missing_bytes=missing,
            is_dry_run=not self.write,
            compared_by="checksum" if self.checksum else "size and time",
            exit_code=exit_code_of(
                self._archives, downloaded.exit_code, EXIT_FINDINGS if would_change else EXIT_OK
            ),
        )

    def _copy_all(self, manifests: Sequence[LocalManifest]) -> None:
        """Copy the archives of manifests, then publish the manifests and write the pages."""
        try:
            contents = self._contents(manifests)
            self.service.expect([content.request.size for content in contents])
            results = each(contents, self._copy, self.service.jobs, self.service.stop)
            for content, result in zip(contents, results, strict=True):
                for path in content.paths:
                    self._report(path, result)
            self._publish(manifests)
        finally:
            self.mirror.save_lock(self._files)
        for path, data in generated_files(self._files).items():
            write_file(self.mirror.path(path), data)

    def _compare(self, manifests: Sequence[LocalManifest]) -> int:
        """Report the archives that a run would copy, and return their stated bytes."""
        missing = 0
        contents = self._contents(manifests)
        local = each(contents, self._local, self.service.jobs, self.service.stop)
        for content, found in zip(contents, local, strict=True):
            size = content.request.size
            if isinstance(found, CudaRedistError):
                for path in content.paths:
                    self._report(path, found)
                continue
            source, is_damaged = found
            if source is None:
                missing += size or 0
            for path in content.paths:
                status: ArchiveCopy = "present"
                if is_damaged:
                    status = "would-repair"
                elif source is None or path not in self._files:
                    status = "would-copy"
                self._archives.append(MirroredArchive(path=path, status=status, size=size))
        return missing

    # -- the archives to copy

    def _manifests(self, labels: set[tuple[str, Version]]) -> Sequence[LocalManifest]:
        """Read the local manifests of these releases."""
        of_set = self.selection.labels
        selected = labels if of_set is None else of_set & labels
        targets = limited_to(self.targets, selected)
        if not targets:
            return []
        manifests = read_local_manifests(targets, EVERY_RELEASE)
        for outcome in manifests.broken:
            if outcome.error is not None:
                self._report(outcome.subject, outcome.error)
        return manifests.readable

    def _contents(self, manifests: Sequence[LocalManifest]) -> list[_Content]:
        """Return the distinct contents that manifests name, largest first."""
        if manifests:
            self.selection.filter.check(a for m in manifests for a in m.manifest.archives)
        places = [
            (manifest, archive, archive_path_in(manifest, archive, self.selection.channel))
            for manifest in manifests
            for archive in self.selection.archives(manifest)
        ]
        self._claim((path, archive.sha256) for _, archive, path in places)
        contents: dict[Sha256, _Content] = {}
        for manifest, archive, path in places:
            about = f"{manifest.name}: {archive.relative_path}"
            if path is None:
                self._report(about, IntegrityError(f"{about}: not a path that a mirror can have"))
            elif archive.sha256 is None:
                self._report(path, IncompleteError(f"{about}: the manifest states no SHA-256"))
            elif self._claims[path] != archive.sha256:
                self._report(path, _conflict(manifest, about))
            else:
                _add(contents, path, manifest.request(archive))
        for sha256, package in (self.selection.of_set or {}).items():
            if manifests and sha256 not in contents:
                error = NotAtSourceError(package, "no manifest has the archive of the package set")
                self._report(package, error)
        if self.wheels is not None:
            self._add_wheels(self.wheels, contents, manifests)
        return sorted(contents.values(), key=lambda content: -(content.request.size or 0))

    def _claim(self, stated: Iterable[tuple[str | None, Sha256 | None]]) -> None:
        """Select the content of each path.

        If manifests disagree, it is the content in the mirror, or else that of the newest manifest.
        """
        for path, sha256 in stated:
            if path is not None and sha256 is not None:
                file = self._files.get(path)
                if file is None or self._claims.get(path) != file.sha256:
                    self._claims[path] = sha256

    def _add_wheels(
        self,
        source: WheelSource,
        contents: dict[Sha256, _Content],
        manifests: Sequence[LocalManifest],
    ) -> None:
        """Add the metapackages of each release, mark yanked wheels, and set the index's sizes."""
        for manifest in manifests:
            for wheel in source.metapackages(manifest.target.redist.name, str(manifest.label)):
                name = f"{wheel.project}/{wheel.file_name}"
                request = ArchiveRequest(
                    wheel.file_name, (name,), wheel.sha256, wheel.size, manifest.target.bases
                )
                _add(contents, f"{SIMPLE}/{name}", request)
        paths = {path: content for content in contents.values() for path in content.paths}
        for path, wheel in source.wheels_at(paths).items():
            content = paths[path]
            content.yanked = wheel.is_yanked
            # Manifests of wheels have no sizes, and without one a wheel could fill the disk.
            if content.request.size is None:
                content.request = content.request._replace(size=wheel.size)

    # -- one archive

    def _report(self, path: str, result: ArchiveCopy | CudaRedistError | ErrorReport) -> None:
        """Add the outcome of a path."""
        if isinstance(result, str):
            archive = MirroredArchive(path=path, status=result, size=self._files[path].size)
        else:
            archive = MirroredArchive(path=path, status="failed", error=ErrorReport.of(result))
        self._archives.append(archive)

    def _copy(self, content: _Content) -> ArchiveCopy:
        """Copy one content to all its paths."""
        raise_if_stopped(self.service.stop)
        request, (source, is_damaged) = content.request, self._local(content)
        if source is not None:
            self.service.progress.done()
            self._record(content, source)
            return "repaired" if is_damaged else "present"
        source = self.mirror.partial / f"{content.sha256}{request.suffix}"
        self.service.fetch(request, source)
        self._record(content, source)
        source.unlink(missing_ok=True)
        with self._mutex:
            self._unsaved += 1
            if self._unsaved >= _SAVE_EVERY:
                self._unsaved = 0
                self.mirror.save_lock(self._files)
        return "repaired" if is_damaged else "copied"

    def _local(self, content: _Content) -> tuple[Path | None, bool]:
        """Return an intact file with this content, and whether another one is damaged.

        A file that a killed run did not record is read.
        """
        sha256 = content.sha256
        with self._mutex:
            recorded = {p: self._files[p] for p in content.paths if p in self._files}
            if not self._by_hash:
                self._by_hash = {file.sha256: path for path, file in self._files.items()}
            other = self._by_hash.get(sha256)
            # Another thread may replace a file that is to have another content.
            if other is not None and self._claims.get(other, sha256) == sha256:
                recorded[other] = self._files[other]
        recorded = {path: file for path, file in recorded.items() if file.sha256 == sha256}
        intact = list(self.mirror.intact(recorded, checksum=self.checksum))
        damaged = (path for path in content.paths if path in recorded and path not in intact)
        is_damaged = any(os.path.lexists(self.mirror.path(path)) for path in damaged)
        unrecorded = (path for path in content.paths if path not in self._files)
        intact += (path for path in unrecorded if self.mirror.hash_of(path) == sha256)
        return (self.mirror.path(intact[0]) if intact else None), is_damaged

    def _record(self, content: _Content, source: Path) -> None:
        """Give a content its paths, and record them."""
        file = _record_of(source, content.sha256).model_copy(update={"yanked": content.yanked})
        added: dict[str, MirrorFile] = {}
        for path in content.paths:
            if self.selection.channel == "wheels":
                file, more = self._metadata(path, source, file)
                added |= more
            added[path] = file
        self.mirror.put(source, content.paths)
        with self._mutex:
            self._files |= added

    def _metadata(
        self, path: str, source: Path, file: MirrorFile
    ) -> tuple[MirrorFile, Mapping[str, MirrorFile]]:
        """Write the metadata of a wheel next to it, and return both records."""
        name = f"{path}{METADATA_SUFFIX}"
        earlier, metadata = self._files.get(path), self._files.get(name)
        known = {} if metadata is None else {name: metadata}
        is_intact = any(self.mirror.intact(known, checksum=self.checksum))
        if metadata is not None and is_intact and earlier and earlier.sha256 == file.sha256:
            requires = earlier.requires_python
        else:
            data = metadata_in(source, source.name)
            write_file(self.mirror.path(name), data)
            # The parser of `packaging` takes quadratic time for many different headers.
            headers = HeaderParser().parsestr(data.decode(errors="replace"))
            requires = headers.get("Requires-Python")
            metadata = _record_of(self.mirror.path(name), sha256_of(data))
        return file.model_copy(update={"requires_python": requires}), {name: metadata}

    def _local_metadata(self, wheel: Wheel) -> bytes | None:
        """Return the metadata of a wheel in the mirror, if it is intact."""
        path = f"{SIMPLE}/{wheel.project}/{wheel.file_name}"
        file, metadata = self._files.get(path), self._files.get(f"{path}{METADATA_SUFFIX}")
        if file is None or metadata is None or file.sha256 != wheel.sha256:
            return None
        data = read_file(self.mirror.path(f"{path}{METADATA_SUFFIX}"))
        return data if data is not None and sha256_of(data) == metadata.sha256 else None

    # -- manifests

    def _publish(self, manifests: Sequence[LocalManifest]) -> None:
        """Give manifests their final names, after their archives."""
        for manifest in manifests if self.selection.channel == "redist" else ():
            place = manifest.target.manifests.path_of(manifest.label)
            path = published_path(manifest)
            self.mirror.put(place, [path])
            self._unlist(manifest)
            record = _record_of(place, manifest.sha256)
            self._files[path] = record.model_copy(update={"lists": _listed_release(manifest)})

    def _unlist(self, manifest: LocalManifest) -> None:
        """Remove a release from `releases.json`. Its earlier manifest stays until `prune`."""
        release = manifest.target.redist.name, str(manifest.label)
        for path, file in self._files.items():
            if file.lists is not None and (file.lists.redist, file.lists.release) == release:
                self._files[path] = file.model_copy(update={"lists": None})


def _listed_release(manifest: LocalManifest) -> ListedRelease | None:
    """Return the channel of a release. None: it is not in `releases.json`."""
    channel = None if manifest.entry is None else manifest.entry.nvidia_channel
    if channel is None:
        return None
    redist = manifest.target.redist.name
    return ListedRelease(redist=redist, release=str(manifest.label), nvidia_channel=channel)


def _record_of(path: Path, sha256: Sha256) -> MirrorFile:
    """Return the lock's record of a verified file."""
    about = path.stat()
    return MirrorFile(size=about.st_size, sha256=sha256, mtime_ns=about.st_mtime_ns)


def _conflict(manifest: LocalManifest, about: str) -> IntegrityError:
    """Return the error for a path that has the content of another manifest."""
    name, label = manifest.target.redist.name, manifest.label
    command = command_line("mirror sync", f"mirror-{label}", redist=name, version=label)
    return IntegrityError(
        f"{about}: another manifest states another SHA-256 for this path",
        hint=f"run `{command}`, and select the other releases "
        "of this mirror with --version, --min-version or --max-version",
    )


def _add(contents: dict[Sha256, _Content], path: str, request: ArchiveRequest) -> None:
    sha256 = request.sha256 or ""
    content = contents.setdefault(sha256, _Content(sha256, request, []))
    if path not in content.paths:
        content.paths.append(path)
