"""Plan a bump: newer upstream releases, and unfinished local ones."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from cudaredist.commands.bump.report import BumpedRelease, ReleaseState
from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.process.feature_run import FAILED, UNREACHED
from cudaredist.commands.versions.local_versions import newest_before
from cudaredist.commands.versions.report import VersionsReport
from cudaredist.errors import CudaRedistError
from cudaredist.formats.features import UnexaminedArchive
from cudaredist.primitives import Version, find_release, parse_label
from cudaredist.redists import CUDA, Redist
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import load_features
from cudaredist.store.table_registry import TABLES, releases_of


class Step(NamedTuple):
    """A release to bump to."""

    redist: Redist
    label: Version
    old: Version | None
    """The newest older local release: of its line, else of all."""
    is_recorded: bool
    """Whether the manifest is already in the data folder and in the lock."""

    @property
    def key(self) -> tuple[str, str]:
        """The redistributable and the label, as in reports."""
        return self.redist.name, str(self.label)

    def report(
        self, status: ReleaseState, files: tuple[str, ...] = (), diff: DiffReport | None = None
    ) -> BumpedRelease:
        """Return the report on the release."""
        return BumpedRelease(
            redist=self.redist.name,
            old=None if self.old is None else str(self.old),
            new=str(self.label),
            status=status,
            files=files,
            diff=diff,
        )


class BumpPlan:
    """The releases that a bump adds.

    These are the releases that upstream lists for `named` labels or prefixes. Without `named`, they
    are the newest label of each line with newer ones upstream, and of each new line that is newer
    than all local labels. For a redistributable without local manifests, only the newest label is
    selected.

    Unfinished releases are added: the ones that an interrupted bump started, and the newest local
    release of a line if the lock does not record it or, `with_archives`, if its features are
    incomplete or a CUDA table lacks it.
    """

    def __init__(
        self, store: Store, upstream: VersionsReport, named: Sequence[str], *, with_archives: bool
    ) -> None:
        """Raise `InvalidFileError` for a broken lock or table."""
        self._store, self._upstream, self._named = store, upstream, named
        self._lock, self._pending = store.lock(), store.pending()
        self._tables: list[frozenset[Version]] | None = None
        """The CUDA releases in each existing table."""
        if with_archives:
            known = (releases_of(table.read(store)) for table in TABLES)
            self._tables = [frozenset(map(parse_label, labels)) for labels in known if labels]

    def steps(self, redist: Redist) -> Iterator[Step]:
        """Yield the releases of a redistributable."""
        local = self._store.manifests(redist.name).labels()
        known = {*map(Version.parse, self._upstream.releases.get(redist.name, ())), *local}
        requests = {find_release(text, known) for text in self._named}
        labels = self._labels_to_bump(redist.name, local, requests)
        for label in {label.line: label for label in sorted(local)}.values():
            if self._named and label not in requests:
                continue
            is_newest = not any(new.line == label.line and new > label for new in labels)
            if is_newest and self._is_unfinished(redist.name, label):
                labels.add(label)
        before = [label for label in local if label not in labels]
        recorded = self._lock.redists.get(redist.name, {})
        for label in sorted(labels):
            yield Step(
                redist=redist,
                label=label,
                old=newest_before(label, before),
                is_recorded=label in local and str(label) in recorded,
            )

    def _labels_to_bump(
        self, name: str, local: Sequence[Version], requests: Collection[Version | None]
    ) -> set[Version]:
        """Return the new labels, and the local ones not reported yet."""
        listed = self._upstream.releases.get(name, ())
        started = {label for redist, label in self._pending if redist == name}
        pending = started.intersection(local)
        if requests:
            labels = {label for label in requests if label is not None and str(label) in listed}
            return labels.difference(local) | pending.intersection(requests)
        behind = [line for line in self._upstream.lines if line.redist == name and line.is_behind]
        # Without local labels, every line is new. Use download-manifests to get the older ones.
        newest = {Version.parse(line.missing[-1]) for line in (behind if local else behind[-1:])}
        lines = {label.line for label in newest}
        # The interrupted bump may have finished a newer line and not yet downloaded an older one.
        rest = {label for label in started if str(label) in listed and label.line not in lines}
        return newest | pending | rest

    def _is_unfinished(self, name: str, label: Version) -> bool:
        """Check if an interrupted bump left a local release incomplete.

        A missing record, feature file or table entry counts only if an older release has one.
        If no older release has one, the maintainer chose not to have any.
        """
        recorded = {Version.parse(text) for text in self._lock.redists.get(name, {})}
        if label not in recorded and _is_next(label, recorded):
            return True
        if self._tables is None:
            return False
        examined = self._store.features(name).labels()
        if label not in examined:
            return _is_next(label, examined)
        if _has_failures(self._store, name, label):
            return True
        return name == CUDA and any(
            label not in known and _is_next(label, known) for known in self._tables
        )


def _is_next(label: Version, known: Collection[Version]) -> bool:
    """Check if a label is newer than known ones of its line, or than all."""
    is_in_line = any(other.line == label.line and other < label for other in known)
    return is_in_line or (bool(known) and label > max(known))


def _has_failures(store: Store, redist: str, label: Version) -> bool:
    """Check if another run may complete a label's features.

    This is so if an archive failed or was not reached, or if the file is unreadable.
    """
    try:
        features = load_features(store, redist, label)
    except CudaRedistError:
        return True
    # Feature files of other tools are ignored, as in process-manifests.
    return features is not None and any(
        isinstance(archive, UnexaminedArchive) and archive.reason.startswith((FAILED, UNREACHED))
        for package in features.packages.values()
        for archive in package.archives
    )
