"""drop: remove releases from a data folder."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cudaredist.cli.configuration import DeclaredSets, place_in_sets
from cudaredist.commands.drop.report import DroppedFile, DropReport
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError, UsageError
from cudaredist.formats.registry import parse_own_json
from cudaredist.formats.runfile_records import Runfiles
from cudaredist.formats.set_index import IndexedSet, PackageSetIndex
from cudaredist.hints import quoted
from cudaredist.primitives import Version, find_release, parse_label, sha256_of
from cudaredist.redists import CUDA
from cudaredist.sets.flags import set_attribute
from cudaredist.store.data_folder import Store
from cudaredist.store.files import is_inside, read_file, write_or_remove
from cudaredist.store.read_data import RUNFILES, read_file_given
from cudaredist.store.symbol_folder import SymbolFolder
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE, read_gpu_policy
from cudaredist.tables.gpus.gpu_table import known_of_table, make_table
from cudaredist.tables.symbols.symbol_table import Column, SymbolColumns
from cudaredist.words import shown, without_secrets


class ReleaseKey(NamedTuple):
    """A release of a redistributable."""

    redist: str
    label: str


class _Change(NamedTuple):
    """A file to write, or to remove if it has no data."""

    path: Path
    data: bytes | None


def drop_releases(
    names: Sequence[str],
    store: Store,
    sets: Path,
    declared: DeclaredSets | None,
    *,
    may_write: bool,
) -> DropReport:
    """Remove releases, such as `cuda@12.6.3`, from all files of a data folder.

    Sets of a dropped CUDA release are removed from the folder `sets`. The lock is written last, so
    that another run completes one that was interrupted. Raises `UsageError` for an unknown release.
    """
    keys = [_find(name, store) for name in dict.fromkeys(names)]
    index = _read_index(sets)
    changes = [
        *_set_changes(keys, store, sets, index),
        *_table_changes(keys, store),
        *_symbol_changes(keys, store),
        *_release_files(keys, store),
    ]
    lock = {name: dict(labels) for name, labels in store.lock().redists.items()}
    is_locked = False
    for redist, label in keys:
        if label in lock.get(redist, {}):
            del lock[redist][label]
            is_locked = True
    remaining = tuple(_remaining(keys, store, sets, index, declared))
    pending = store.pending() - {(key.redist, parse_label(key.label)) for key in keys}
    if may_write:
        for change in changes:
            write_or_remove(change.path, change.data, store.checkout)
        if is_locked:
            store.save_lock({name: labels for name, labels in lock.items() if labels})
        store.write_pending(pending)
    if is_locked:
        changes.append(_Change(store.stored_lock_path, b""))
    return DropReport(
        releases=tuple(f"{key.redist}@{key.label}" for key in keys),
        files=tuple(_report(change, may_write=may_write) for change in changes),
        remaining=remaining,
        exit_code=EXIT_OK if may_write or not changes else EXIT_FINDINGS,
    )


def _report(change: _Change, *, may_write: bool) -> DroppedFile:
    path = str(change.path)
    if change.data is None:
        return DroppedFile(path=path, status="removed" if may_write else "would-remove")
    return DroppedFile(path=path, status="written" if may_write else "would-write")


def _find(name: str, store: Store) -> ReleaseKey:
    """Return the release that a name means."""
    redist, _, label = without_secrets(name).partition("@")
    known: dict[str, set[str]] = defaultdict(set)
    for own in {*store.redists(), *store.feature_redists()}:
        for folder in (store.manifests(own), store.features(own)):
            known[own].update(map(str, folder.labels()))
    for own, labels in store.lock().redists.items():
        known[own].update(labels)
    if redist not in known:
        raise UnknownNameError("local redistributable", redist, known)
    if not label:
        hint = f"run `cudaredist drop {quoted(f'{redist}@{min(known[redist])}')} --check`"
        raise UsageError(f"{name}: expected NAME@LABEL", hint=hint)
    if label not in known[redist]:
        # No hint suggests to drop another release.
        local = ", ".join(map(str, sorted(map(parse_label, known[redist]))))
        raise UsageError(
            f"no local release of {redist} is called {shown(label)}",
            hint=f"local releases: {local}",
        )
    return ReleaseKey(redist, label)


def _cuda_labels(keys: Collection[ReleaseKey], store: Store) -> set[str]:
    """Return the dropped CUDA releases that no other channel has."""
    kept = set(map(str, store.in_other_channel().manifests(CUDA).labels()))
    return {key.label for key in keys if key.redist == CUDA} - kept


def _release_files(keys: Collection[ReleaseKey], store: Store) -> Iterator[_Change]:
    for redist, label in keys:
        for folder in (store.features(redist), store.manifests(redist)):
            for own, name in folder.files():
                if str(own) == label:
                    yield _Change(folder.path / name, None)


def _table_changes(keys: Collection[ReleaseKey], store: Store) -> Iterator[_Change]:
    """Yield the tables of CUDA releases without the dropped ones."""
    labels = _cuda_labels(keys, store)
    compat, gpus = NVCC_TABLE.read(store), GPU_TABLE.read(store)
    if compat is not None and labels & compat.releases.keys():
        releases = _without(compat.releases, labels)
        data = compat.model_copy(update={"releases": releases}).canonical() if releases else None
        yield _Change(store.table_path(NVCC_TABLE.name), data)
    if gpus is not None and labels & gpus.sources.keys():
        known = _without(known_of_table(gpus), labels)
        data = make_table(known, read_gpu_policy(store))[0].canonical() if known else None
        yield _Change(store.table_path(GPU_TABLE.name), data)
    path = store.table_path(RUNFILES)
    content = read_file(path)
    records = {} if content is None else read_file_given(path, content, Runfiles).runfiles
    if labels & records.keys():
        rest = _without(records, labels)
        data = Runfiles(schema_version=1, runfiles=rest).canonical() if rest else None
        yield _Change(path, data)


def _symbol_changes(keys: Collection[ReleaseKey], store: Store) -> Iterator[_Change]:
    """Yield the tables of symbols without the dropped releases."""
    folder = SymbolFolder(store.symbol_path)

    def is_dropped(column: Column) -> bool:
        provider = column.provider
        is_of_channel = provider.channel == store.channel
        return is_of_channel and ReleaseKey(provider.redist, column.label) in keys

    for soname in folder.names():
        table = folder.document(soname)
        if table is None:
            continue
        columns = SymbolColumns.of(table)
        if any(map(is_dropped, (*columns.columns, *columns.unread))):
            columns.drop(is_dropped)
            for name, data in folder.changed({soname: columns}).items():
                yield _Change(folder.place(name), data)


def _read_index(sets: Path) -> PackageSetIndex | None:
    path = sets / "index.json"
    data = read_file(path)
    return None if data is None else read_file_given(path, data, PackageSetIndex)


def _read_set(entry: IndexedSet, sets: Path) -> bytes | None:
    """Return the bytes of a set, None for one that is missing or outside of the folder."""
    path = sets / entry.path
    return read_file(path) if is_inside(path, sets) else None


def _set_changes(
    keys: Collection[ReleaseKey], store: Store, sets: Path, index: PackageSetIndex | None
) -> Iterator[_Change]:
    """Yield the sets of dropped CUDA releases, and the index without them."""
    labels = {key.label for key in keys if key.redist == CUDA}
    if index is None:
        return
    dropped = [
        entry
        for entry in index.sets
        if entry.cuda in labels and _channel_of(entry, sets) in {store.channel, None}
    ]
    paths = {entry.path for entry in dropped}
    yield from (_Change(sets / entry.path, None) for entry in dropped if _is_unchanged(entry, sets))
    kept = tuple(entry for entry in index.sets if entry.path not in paths)
    skipped = tuple(entry for entry in index.skipped if entry.cuda not in labels)
    rest = index.model_copy(update={"sets": kept, "skipped": skipped})
    if rest != index:
        yield _Change(sets / "index.json", rest.canonical())


def _document(entry: IndexedSet, sets: Path) -> dict[str, Any]:
    data = _read_set(entry, sets)
    document = {} if data is None else parse_own_json(data, f"package set ({entry.path})")
    return document if isinstance(document, dict) else {}


def _channel_of(entry: IndexedSet, sets: Path) -> object:
    return _document(entry, sets).get("channel")


def _is_unchanged(entry: IndexedSet, sets: Path) -> bool:
    """Check if a set exists as the index records it."""
    data = _read_set(entry, sets)
    return data is not None and sha256_of(data) == entry.sha256


def _without(items: Mapping[str, Any], labels: Collection[str]) -> dict[str, Any]:
    return {label: item for label, item in items.items() if label not in labels}


# -- what remains


def _remaining(
    keys: Collection[ReleaseKey],
    store: Store,
    sets: Path,
    index: PackageSetIndex | None,
    declared: DeclaredSets | None,
) -> Iterator[str]:
    """Yield what still names a dropped release: declarations, and sets that selected it."""
    labels = {key.label for key in keys if key.redist == CUDA}
    for entry in index.sets if index else ():
        if entry.cuda in labels:
            if not is_inside(sets / entry.path, sets):
                yield f"{sets / entry.path} leads out of {sets} by a link, so it is kept"
            elif (sets / entry.path).exists() and not _is_unchanged(entry, sets):
                yield f"{sets / entry.path} was changed, so it is kept"
            continue
        chosen = _document(entry, sets).get("redists", {})
        for redist, label in keys:
            if redist != CUDA and chosen.get(redist, {}).get("release") == label:
                yield f"{sets / entry.path} has {redist} {label}: build it again"
        if _gets_short_name(entry, labels, store):
            short = set_attribute(parse_label(entry.cuda).line)
            yield f"{sets / entry.path} is now the set for {short}: build it again"
    if declared is not None:
        yield from _declarations(keys, store, declared)


def _gets_short_name(entry: IndexedSet, dropped: Collection[str], store: Store) -> bool:
    """Check if a set has the newest patch of its CUDA minor, but not the minor's name."""
    line = parse_label(entry.cuda).line
    patches = [label for label in store.manifests(CUDA).labels() if label.line == line]
    rest = [label for label in patches if str(label) not in dropped]
    is_renamed = max(patches, default=None) != max(rest, default=None)
    is_newest = bool(rest) and str(max(rest)) == entry.cuda
    return (
        is_renamed and is_newest and entry.attribute.partition("-")[0] == set_attribute(entry.cuda)
    )


def _declarations(
    keys: Collection[ReleaseKey], store: Store, declared: DeclaredSets
) -> Iterator[str]:
    """Yield the declarations that no release fits any more."""

    def is_gone(redist: str, text: str) -> bool:
        dropped = {parse_label(key.label) for key in keys if key.redist == redist}
        local: list[Version] = sorted(store.manifests(redist).labels())
        rest = [label for label in local if label not in dropped]
        return bool(dropped) and find_release(text, rest) is None

    for number, entry in enumerate(declared.sets):
        named = [("cuda", CUDA, text) for text in entry.cuda]
        named += [("redist", redist, text) for redist, text in entry.redist.items()]
        for text in entry.also:
            redist, _, label = text.partition("=")
            named.append(("also", redist, label))
        named += [("aliases", CUDA, text) for text in entry.aliases.values()]
        for key, redist, text in named:
            if is_gone(redist, text):
                place = place_in_sets(declared.path, number, key)
                yield f"{place}: `{key}` names {redist} {text}, which is no longer local"
