"""What a bump has to bring in: what upstream has newer, and what an interrupted bump left."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cudaredist.errors import CudaRedistError
from cudaredist.pipeline.features.process import FAILED, UNREACHED
from cudaredist.pipeline.read_data import held_features
from cudaredist.pipeline.tables.table_registry import TABLES, releases_of
from cudaredist.primitives import Version, parse_label
from cudaredist.redists import CUDA, Redist
from cudaredist.reports.manifest_reports import VersionsReport
from cudaredist.schema.features import Lock, UnexaminedArchive
from cudaredist.store.data_folder import Store


@dataclass(frozen=True, slots=True)
class Step:
    """One release to bring in."""

    redist: Redist
    label: Version
    old: Version | None
    """The newest held before it: of its line, else of all."""
    is_recorded: bool
    """Whether its manifest is held and in the lock already."""


def plan_steps(
    store: Store,
    redists: Sequence[Redist],
    upstream: VersionsReport,
    *,
    named: Sequence[str] = (),
    with_archives: bool = True,
) -> tuple[Step, ...]:
    """Return the releases to bring in, by redistributable and label.

    Those are the labels `named` wherever upstream lists them, else the newest of each release line
    that is behind, and of each new line that is newer than everything held; of a redistributable
    that nothing is held of, only the newest. Besides, what an interrupted bump began with, and
    the newest held of a line that has no record in the lock, and, `with_archives`, no whole
    features or, for CUDA, no entry in a table. Raises `InvalidFileError` for a broken lock or
    table.
    """
    lock, untold = store.lock(), store.untold()
    tables = _table_labels(store) if with_archives else ()
    steps: list[Step] = []
    for redist in redists:
        name = redist.name
        held = store.manifests(name).labels()
        begun = {label for redist_name, label in untold if redist_name == name}
        wanted = _wanted(upstream, name, held, named, begun)
        for label in _newest_of_lines(held):
            if named and str(label) not in named:
                continue
            if not any(new.line == label.line and new > label for new in wanted) and _is_unfinished(
                store, lock, redist, label, tables if with_archives else None
            ):
                wanted.add(label)
        before = [label for label in held if label not in wanted]
        for label in sorted(wanted):
            entries = lock.redists.get(name, {})
            steps.append(
                Step(
                    redist=redist,
                    label=label,
                    old=_newest_before(label, before),
                    is_recorded=label in held and str(label) in entries,
                )
            )
    return tuple(steps)


def _wanted(
    upstream: VersionsReport,
    name: str,
    held: Sequence[Version],
    named: Sequence[str],
    begun: Collection[Version],
) -> set[Version]:
    """Return the labels to bring in that are not held, and those held that are to be told of."""
    listed = upstream.releases.get(name, ())
    untold = {label for label in held if label in begun}
    if named:
        labels = {Version.parse(text) for text in named if text in listed}
        return labels.difference(held) | {label for label in untold if str(label) in named}
    behind = [line for line in upstream.lines if line.redist == name and line.is_behind]
    # Where nothing is held, every line is new; the history is what download-manifests is for.
    newest = {Version.parse(line.missing[-1]) for line in (behind if held else behind[-1:])}
    lines = {label.line for label in newest}
    # An older line is brought in too where the interrupted bump came to the newer one first.
    left = {label for label in begun if str(label) in listed and label.line not in lines}
    return newest | untold | left


def _newest_of_lines(held: Sequence[Version]) -> Iterator[Version]:
    newest = {label.line: label for label in sorted(held)}
    yield from newest.values()


def _newest_before(label: Version, held: Sequence[Version]) -> Version | None:
    older = [other for other in held if other < label]
    in_line = [other for other in older if other.line == label.line]
    return max(in_line or older, default=None)


def _is_unfinished(
    store: Store,
    lock: Lock,
    redist: Redist,
    label: Version,
    tables: Collection[frozenset[Version]] | None,
) -> bool:
    """Say whether a bump began with a held label and was interrupted.

    That a maintainer never recorded, processed or tabled something is a choice; that the one before
    it was and this one is not is no choice.
    """
    recorded = {Version.parse(text) for text in lock.redists.get(redist.name, {})}
    if label not in recorded and _is_next(label, recorded):
        return True
    if tables is None:
        return False
    examined = store.features(redist.name).labels()
    if label not in examined:
        return _is_next(label, examined)
    if _has_failures(store, redist.name, label):
        return True
    return redist.name == CUDA and any(
        label not in known and _is_next(label, known) for known in tables
    )


def _is_next(label: Version, known: Collection[Version]) -> bool:
    """Say whether a label follows known ones: in its line, or as the newest of all."""
    is_in_line = any(other.line == label.line and other < label for other in known)
    return is_in_line or (bool(known) and label > max(known))


def _has_failures(store: Store, redist: str, label: Version) -> bool:
    """Say whether the features lack archives that another run may get, or cannot be read."""
    try:
        features = held_features(store, redist, label)
    except CudaRedistError:
        return True
    # Those of another tool are left alone, as process-manifests does.
    return features is not None and any(
        isinstance(archive, UnexaminedArchive) and archive.reason.startswith((FAILED, UNREACHED))
        for package in features.packages.values()
        for archive in package.archives
    )


def _table_labels(store: Store) -> tuple[frozenset[Version], ...]:
    """Return the CUDA releases that each table there knows."""
    known = (releases_of(table.read(store)) for table in TABLES)
    return tuple(frozenset(map(parse_label, labels)) for labels in known if labels)
