"""mirror prune: remove files outside the selection."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from cudaredist.cli.session import Session
from cudaredist.commands.mirror.mirror_folder import MirrorFolder
from cudaredist.commands.mirror.mirror_pages import generated_files
from cudaredist.commands.mirror.mirror_paths import MirrorSelection, mirrored_manifests, paths_of
from cudaredist.commands.mirror.options import MirrorOptions
from cudaredist.commands.mirror.report import MirrorPruneReport
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, IncompleteError, UsageError
from cudaredist.formats.base import Channel
from cudaredist.formats.mirror_lock import MIRROR_LOCK
from cudaredist.grouping import grouped
from cudaredist.hints import quoted
from cudaredist.primitives import find_release
from cudaredist.store.selection import EVERY_RELEASE
from cudaredist.store.targets import Filter, LocalManifest


class MirrorPrune:
    """One run of mirror prune."""

    def __init__(self, options: MirrorOptions, session: Session, mirror: MirrorFolder) -> None:
        """Lock the mirror. If the options name no release, select all in the mirror."""
        self.mirror, self.write = mirror, not options.check
        selection, releases = MirrorSelection.of(options), options.releases
        has_releases = releases.version or releases.min_version or releases.max_version
        if not has_releases and selection.labels is None:
            selection = replace(selection, releases=EVERY_RELEASE)
        self.selection, self.redists = selection, options.redist or ()
        mirror.records()
        session.lock(mirror.root)()

    def run(self) -> MirrorPruneReport:
        """Remove files, after the lock and the pages that named them.

        Raises `UsageError` if nothing is selected, and `IncompleteError` for a broken manifest: its
        archives are unknown.
        """
        files, selection = self.mirror.records(), self.selection
        local = self._local(selection.channel)
        selected = self._selected(local)
        # The files of the other channel stay.
        channel: Channel = "wheels" if selection.channel == "redist" else "redist"
        other = replace(selection, channel=channel, filter=Filter(), of_set=None)
        others = self._local(channel)
        names = {
            *(path for m in selected for path in paths_of(m, selection, files)),
            *(path for m in others for path in paths_of(m, other, files)),
        }
        kept = {path: file for path, file in files.items() if path in names}
        pages = generated_files(kept)
        known = {*kept, *pages, MIRROR_LOCK}
        removed = [path for path in self.mirror.served() if path not in known]
        freed = self._freed(removed, kept)
        if self.write:
            self.mirror.save_lock(kept)
            for path, data in pages.items():
                self.mirror.write(path, data)
            gone = {(m.target.redist.name, m.label) for m in local if m not in selected}
            if gone:
                self.mirror.remove_manifests(selection.channel, gone)
            for path in removed:
                self.mirror.remove(self.mirror.path(path))
            self.mirror.remove_leftovers()
            self.mirror.remove_partial()
        return MirrorPruneReport(
            folder=str(self.mirror.root),
            releases=(*(m.name for m in selected), *(f"{m.name} ({channel})" for m in others)),
            removed=tuple(removed),
            kept=len(kept),
            freed_bytes=freed,
            is_dry_run=not self.write,
            exit_code=EXIT_FINDINGS if removed and not self.write else EXIT_OK,
        )

    def _local(self, channel: Channel) -> tuple[LocalManifest, ...]:
        manifests = mirrored_manifests(self.mirror.store(channel))
        for outcome in manifests.broken:
            hint = f"run `cudaredist mirror verify {quoted(str(self.mirror.root))}`"
            raise IncompleteError(f"the manifest {outcome.subject} cannot be read", hint=hint)
        return manifests.readable

    def _selected(self, local: Sequence[LocalManifest]) -> list[LocalManifest]:
        """Return the selected manifests. Raises `UsageError` if there are none."""
        selection, releases = self.selection, self.selection.releases
        of_redist = grouped((m.target.redist.name, (m.label, m.is_preview)) for m in local)
        labels = {
            (redist, label)
            for redist, present in of_redist.items()
            if not self.redists or redist in self.redists
            for label in releases.of(tuple(dict(present)), dict(present).__getitem__)
        }
        if selection.labels is not None:
            labels &= selection.labels
        selected = [m for m in local if (m.target.redist.name, m.label) in labels]
        present = [label for _, label in labels]
        unknown = [text for text in releases.named if find_release(text, present) is None]
        unknown += [name for name in self.redists if name not in of_redist]
        if local and (not selected or unknown):
            message = f"the mirror has no manifest {', '.join(unknown) or 'of this selection'}"
            hint = f"list its files: `cat {quoted(str(self.mirror.path(MIRROR_LOCK)))}`"
            raise UsageError(message, hint=hint)
        if local:
            selection.filter.check(a for m in selected for a in m.manifest.archives)
        return selected

    def _freed(self, removed: Collection[str], kept: Collection[str]) -> int:
        """Return the bytes that are freed.

        Contents that other files have do not count.
        """
        stay = {self.mirror.path(p).lstat().st_ino for p in kept if self.mirror.path(p).exists()}
        files = [self.mirror.path(path).lstat() for path in removed]
        sizes = {about.st_ino: about.st_size for about in files}
        return sum(size for inode, size in sizes.items() if inode not in stay)
