"""mirror prune: remove files outside the selection."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from cudaredist.cli.session import Session
from cudaredist.commands.mirror.mirror_folder import MirrorFolder
from cudaredist.commands.mirror.mirror_pages import generated_files
from cudaredist.commands.mirror.mirror_paths import MirrorSelection, mirrored_manifests, paths_of
from cudaredist.commands.mirror.options import MirrorOptions
from cudaredist.commands.mirror.report import MirrorPruneReport
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, IncompleteError, UsageError
from cudaredist.formats.mirror_lock import MIRROR_LOCK, MirrorFile
from cudaredist.formats.names import Channel
from cudaredist.grouping import grouped
from cudaredist.hints import quoted
from cudaredist.primitives import find_release
from cudaredist.store.files import has_bytes
from cudaredist.store.selection import EVERY_RELEASE
from cudaredist.store.targets import Filter, LocalManifest


class MirrorPrune:
    """One run of mirror prune."""

    def __init__(self, options: MirrorOptions, session: Session, mirror: MirrorFolder) -> None:
        """Lock the mirror. If the options name no release, select all in the mirror."""
        self.mirror = mirror
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
        strays = self._to_remove(files, {*kept, *pages, MIRROR_LOCK})
        freed = self._freed(strays, kept)
        self.mirror.save_lock(kept)
        for path, data in pages.items():
            self.mirror.write(path, data)
        gone = {(m.target.redist.name, m.label) for m in local if m not in selected}
        if gone:
            self.mirror.remove_manifests(selection.channel, gone)
        for path in strays:
            self.mirror.remove(self.mirror.path(path))
        self.mirror.remove_leftovers(kept)
        self.mirror.remove_partial()
        changed = self.mirror.would_change.difference(strays)
        is_dry_run = not self.mirror.may_write
        return MirrorPruneReport(
            folder=str(self.mirror.root),
            releases=(*(m.name for m in selected), *(f"{m.name} ({channel})" for m in others)),
            removed=tuple(strays),
            kept=len(kept),
            freed_bytes=freed,
            other_files=tuple(sorted(changed)),
            is_dry_run=is_dry_run,
            exit_code=EXIT_FINDINGS if is_dry_run and (strays or changed) else EXIT_OK,
        )

    def _to_remove(self, files: Mapping[str, MirrorFile], kept: Collection[str]) -> list[str]:
        """Return the served files to remove, and the linked folders that become useless.

        `files` are the recorded ones.
        """
        before = generated_files(files)
        known = {*files, *before, MIRROR_LOCK}
        links = self.mirror.linked_folders(known)

        def is_removable(path: str) -> bool:
            is_linked = any(str(folder) in links for folder in PurePosixPath(path).parents)
            if not is_linked:
                return True
            # The lock may be wrong, and the folder may have files of other programs.
            if path in before:
                return has_bytes(self.mirror.path(path), before[path])
            return self.mirror.is_as_recorded(path, files[path])

        strays = (path for path in self.mirror.served(known) if path not in kept)
        useless = links - self.mirror.linked_folders(kept)
        return [*filter(is_removable, strays), *sorted(useless)]

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
        stay = {inode for inode, _ in self._sizes(kept)}
        return sum(size for inode, size in {*self._sizes(removed)} if inode not in stay)

    def _sizes(self, paths: Iterable[str]) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield the inode and the size of each path that exists."""
        for path in paths:
            with contextlib.suppress(OSError):
                about = self.mirror.path(path).lstat()
                yield (about.st_dev, about.st_ino), about.st_size
