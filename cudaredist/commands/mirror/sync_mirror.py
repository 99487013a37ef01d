"""mirror sync: copy and verify selected manifests and archives."""

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path

from cudaredist.archives.wheel_metadata import metadata_in
from cudaredist.cli.session import Session, open_cache
from cudaredist.commands.download.download import ManifestDownload, store_destination
from cudaredist.commands.mirror.fitting_releases import FittingReleases
from cudaredist.commands.mirror.mirror_contents import Content, MirrorContents
from cudaredist.commands.mirror.mirror_folder import MirrorFolder, mode_for_all_users
from cudaredist.commands.mirror.mirror_pages import generated_files
from cudaredist.commands.mirror.mirror_paths import MirrorSelection, published_path
from cudaredist.commands.mirror.options import MirrorOptions
from cudaredist.commands.mirror.report import ArchiveCopy, MirroredArchive, MirrorSyncReport
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    CudaRedistError,
    IncompleteError,
)
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.mirror_lock import METADATA_SUFFIX, ListedRelease, MirrorFile
from cudaredist.formats.outcomes import ManifestOutcome
from cudaredist.formats.report import exit_code_of
from cudaredist.hints import again
from cudaredist.primitives import Sha256, Version, sha256_of
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.wheel_source import WheelSource
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.files import read_file
from cudaredist.store.kept_archive import part_of
from cudaredist.store.selection import EVERY_RELEASE
from cudaredist.store.targets import (
    LocalManifest,
    limited_to,
    parse_local,
    read_local_manifests,
    targets_in_store,
)
from cudaredist.tasks import each, raise_if_stopped
from cudaredist.wheels import SIMPLE, Wheel

_SAVE_EVERY = 32
"""Archives after which the lock is saved, so that a killed run verifies few of them again."""


class MirrorSync:
    """One run of mirror sync."""

    def __init__(self, options: MirrorOptions, session: Session, mirror: MirrorFolder) -> None:
        """Open the sources, and lock the mirror unless this is a dry run."""
        self.mirror, self.checksum = mirror, options.checksum
        self.selection = selection = MirrorSelection.of(options)
        bases = session.connect(options.network, selection.channel)
        if mirror.may_write:
            session.lock(mirror.root)()
        else:
            mirror.require_folder()
        self.store = store = mirror.store(selection.channel)
        recorded = mirror.recorded_manifests(store)
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
        destination = store_destination(store, selection.redists, recorded, is_explicit=is_explicit)
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
            write=mirror.may_write,
            accept_changed=options.replace,
            replace_command=again("--replace"),
        )
        self.service = ArchiveService(
            chains=chains,
            stop=session.settings.stop,
            jobs=options.jobs.count,
            downloads=options.jobs.count,
            max_archive=options.jobs.max_size,
            progress=session.progress("archives"),
        )
        self._files: dict[str, MirrorFile] = {}
        """The lock's records."""
        self._path_of: dict[Sha256, str] = {}
        """A recorded path of each content that the mirror has."""
        self._claims: Mapping[str, Sha256] = {}
        """The required content of each selected path."""
        self._archives: list[MirroredArchive] = []
        self._missing: list[int | None] = []
        """In a dry run, the bytes to fetch of each missing archive, None if unknown."""
        self._mutex = threading.Lock()
        self._unsaved = 0

    def run(self) -> MirrorSyncReport:
        """Copy manifests and archives, and publish them with index pages.

        Files that the mirror already has are replaced only by verified ones. A dry run fetches
        manifests, and reports the files that a run would write.
        """
        is_dry_run = not self.mirror.may_write
        self._files = self.mirror.records_or_none()
        self._path_of = {file.sha256: path for path, file in self._files.items()}
        self.mirror.remove_leftovers({*self._files, *generated_files(self._files)})
        # A new mirror has a lock from now on, so that a killed run can be resumed.
        self.mirror.save_lock(self._files)
        downloaded = self.download.run()
        manifests = self._manifests(
            {
                (one.redist, Version.parse(one.release))
                for one in downloaded.manifests
                if _is_local(one)
            }
        )
        try:
            self._copy_all(manifests)
            self._publish(manifests)
        finally:
            self.mirror.save_lock(self._files)
        for path, data in generated_files(self._files).items():
            self.mirror.write(path, data)
        if is_dry_run and downloaded.is_lock_changed:
            self.mirror.would_change.add(self.mirror.name_of(self.store.lock_path))
        archives = tuple(sorted(self._archives, key=lambda one: one.path))
        own_code = EXIT_FINDINGS if self.mirror.would_change else EXIT_OK
        return MirrorSyncReport(
            folder=str(self.mirror.root),
            redists=downloaded.redists,
            manifests=downloaded.manifests,
            archives=archives,
            errors=downloaded.errors,
            fetched_bytes=self.service.fetched,
            missing_bytes=sum(size or 0 for size in self._missing),
            unknown_sizes=self._missing.count(None),
            other_files=tuple(sorted(self.mirror.would_change - {one.path for one in archives})),
            is_dry_run=is_dry_run,
            compared_by="checksum" if self.checksum else "size and time",
            exit_code=exit_code_of(archives, downloaded.exit_code, own_code),
        )

    def _copy_all(self, manifests: Sequence[LocalManifest]) -> None:
        """Copy the archives of manifests."""
        selected = MirrorContents(manifests, self.selection, self._files, self.wheels)
        contents, self._claims = selected.largest_first(), selected.claims
        for path, error in selected.errors:
            self._report(path, error)
        self.service.expect([content.request.size for content in contents])
        results = each(contents, self._copy, self.service.jobs, self.service.stop)
        for content, result in zip(contents, results, strict=True):
            for path in content.paths:
                # In a dry run, the result is that of the paths to change.
                is_unchanged = not self.mirror.may_write and path not in self.mirror.would_change
                is_failed = isinstance(result, CudaRedistError)
                self._report(path, "present" if is_unchanged and not is_failed else result)

    # -- the archives to copy

    def _manifests(self, releases: set[tuple[str, Version]]) -> Sequence[LocalManifest]:
        """Return the manifests of these releases, in a dry run also those that are not local."""
        releases_of_set = self.selection.labels
        selected = releases if releases_of_set is None else releases_of_set & releases
        unwritten = {key: new for key, new in self.download.unwritten.items() if key in selected}
        by_name = {target.redist.name: target for target in self.targets}
        manifests = [
            parse_local(by_name[name], label, upstream.data)
            for (name, label), upstream in unwritten.items()
        ]
        targets = limited_to(self.targets, selected - unwritten.keys())
        if targets:
            local = read_local_manifests(targets, EVERY_RELEASE)
            manifests += local.readable
            for outcome in local.broken:
                if outcome.error is not None:
                    self._report(outcome.subject, outcome.error)
        entry, order = self.download.to.entry, list(by_name)
        return sorted(
            (one._replace(entry=entry(one.target.redist.name, one.label)) for one in manifests),
            key=lambda one: (order.index(one.target.redist.name), one.label),
        )

    # -- one archive

    def _report(self, path: str, result: ArchiveCopy | CudaRedistError | ErrorReport) -> None:
        """Add the outcome of a path."""
        if isinstance(result, CudaRedistError | ErrorReport):
            archive = MirroredArchive(path=path, status="failed", error=ErrorReport.of(result))
        else:
            archive = MirroredArchive(path=path, status=result, size=self._files[path].size)
        self._archives.append(archive)

    def _copy(self, content: Content) -> ArchiveCopy:
        """Copy one content to all its paths. A dry run compares only."""
        raise_if_stopped(self.service.stop)
        intact, is_damaged = self._find(content)
        partial = self.mirror.partial / f"{content.sha256}{content.request.suffix}"
        if intact:
            self.service.progress.done()
            self._put(content, self.mirror.path(intact[0]), intact)
            self.mirror.remove_regular(partial, part_of(partial))
            if not self.mirror.may_write:
                return "would-repair" if is_damaged else "would-link"
            return "repaired" if is_damaged else "present"
        if not self.mirror.may_write:
            self.service.progress.done()
            kept = self.mirror.kept_bytes(partial, content.sha256, content.request.size)
            self._plan(content, kept)
            return "would-repair" if is_damaged else "would-copy"
        self.service.fetch(content.request, partial)
        self._put(content, partial)
        partial.unlink(missing_ok=True)
        with self._mutex:
            self._unsaved += 1
            if self._unsaved >= _SAVE_EVERY:
                self._unsaved = 0
                self.mirror.save_lock(self._files)
        return "repaired" if is_damaged else "copied"

    def _plan(self, content: Content, kept: int) -> None:
        """Record an archive as fetched, for a dry run.

        `kept` is the size of its partial download.
        """
        size = content.request.size
        with self._mutex:
            self._missing.append(None if size is None else size - kept)
            for path in content.paths:
                earlier = self._files.get(path)
                is_same = earlier is not None and earlier.sha256 == content.sha256
                requires = earlier.requires_python if earlier and is_same else None
                self._files[path] = MirrorFile(
                    size=size or 0,
                    sha256=content.sha256,
                    yanked=content.yanked,
                    requires_python=requires,
                )
                self.mirror.require_file(self.mirror.path(path))
                self.mirror.would_change.add(path)
                name = f"{path}{METADATA_SUFFIX}"
                if self.selection.channel == "wheels" and not (is_same and self._is_intact(name)):
                    self.mirror.would_change.add(name)

    def _find(self, content: Content) -> tuple[list[str], bool]:
        """Return the paths that have this content, and whether a path of it is damaged.

        A file is also damaged if some users cannot read it.
        """
        sha256 = content.sha256
        with self._mutex:
            recorded = {path: self._files[path] for path in content.paths if path in self._files}
            other = self._path_of.get(sha256)
            # Another thread may replace a file that is to have another content.
            if other is not None and self._claims.get(other, sha256) == sha256:
                recorded[other] = self._files[other]
        # A file that a killed run did not record is read.
        unrecorded = [path for path in content.paths if path not in recorded]
        recorded = {path: file for path, file in recorded.items() if file.sha256 == sha256}
        intact = list(self.mirror.intact(recorded, checksum=self.checksum))
        damaged = [path for path in content.paths if path in recorded and path not in intact]
        is_damaged = any(os.path.lexists(self.mirror.path(path)) for path in damaged)
        intact += (path for path in unrecorded if self.mirror.hash_at(path) == sha256)
        is_damaged |= any(mode_for_all_users(self.mirror.path(path)) is not None for path in intact)
        return intact, is_damaged

    def _put(self, content: Content, source: Path, intact: Sequence[str] = ()) -> None:
        """Link the paths of a content to a verified file, and record them."""
        file = _record_of(source, content.sha256).model_copy(update={"yanked": content.yanked})
        added: dict[str, MirrorFile] = {}
        for path in content.paths:
            if self.selection.channel == "wheels":
                file, more = self._metadata(path, source, file)
                added |= more
            added[path] = file
        self.mirror.put(source, content.paths, intact)
        with self._mutex:
            self._files |= added

    def _metadata(
        self, path: str, source: Path, file: MirrorFile
    ) -> tuple[MirrorFile, Mapping[str, MirrorFile]]:
        """Write the metadata of a wheel next to it, and return both records."""
        name = f"{path}{METADATA_SUFFIX}"
        earlier, metadata = self._files.get(path), self._files.get(name)
        is_same = earlier is not None and earlier.sha256 == file.sha256
        if earlier and metadata and is_same and self._is_intact(name):
            requires = earlier.requires_python
        else:
            data = metadata_in(source, source.name)
            self.mirror.write(name, data)
            # The parser of `packaging` takes quadratic time for many different headers.
            headers = HeaderParser().parsestr(data.decode(errors="replace"))
            requires = headers.get("Requires-Python")
            # A dry run has not written the file.
            time = None if name in self.mirror.would_change else self.mirror.time_of(name)
            metadata = MirrorFile(size=len(data), sha256=sha256_of(data), mtime_ns=time)
        return file.model_copy(update={"requires_python": requires}), {name: metadata}

    def _is_intact(self, name: str) -> bool:
        """Check if a file agrees with its record."""
        recorded = {name: self._files[name]} if name in self._files else {}
        return any(self.mirror.intact(recorded, checksum=self.checksum))

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
            path, name = published_path(manifest), (manifest.target.redist.name, manifest.label)
            if name in self.download.unwritten:
                record = MirrorFile(size=0, sha256=manifest.sha256)
                self.mirror.require_file(self.mirror.path(path))
                self.mirror.would_change.add(path)
            else:
                self.mirror.put(place, [path], [path] if self._is_intact(path) else ())
                record = _record_of(place, manifest.sha256)
            self._unlist(manifest)
            self._files[path] = record.model_copy(update={"lists": _listed_release(manifest)})

    def _unlist(self, manifest: LocalManifest) -> None:
        """Remove a release from `releases.json`. Its earlier manifest stays until `prune`."""
        release = manifest.target.redist.name, str(manifest.label)
        for path, file in self._files.items():
            if file.lists is not None and (file.lists.redist, file.lists.release) == release:
                self._files[path] = file.model_copy(update={"lists": None})


def _is_local(outcome: ManifestOutcome) -> bool:
    """Check if the mirror has a manifest after the download.

    If a manifest changed upstream, the mirror has the earlier one. Only incomplete ones are
    missing.
    """
    return outcome.error is None or outcome.error.exit_code != IncompleteError.exit_code


def _listed_release(manifest: LocalManifest) -> ListedRelease | None:
    """Return the release as an entry of `releases.json`, None if it is not in that."""
    nvidia_channel = None if manifest.entry is None else manifest.entry.nvidia_channel
    if nvidia_channel is None:
        return None
    return ListedRelease(
        redist=manifest.target.redist.name,
        release=str(manifest.label),
        nvidia_channel=nvidia_channel,
    )


def _record_of(path: Path, sha256: Sha256) -> MirrorFile:
    """Return the lock's record of a verified file."""
    about = path.stat()
    return MirrorFile(size=about.st_size, sha256=sha256, mtime_ns=about.st_mtime_ns)
