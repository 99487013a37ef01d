"""Check the feature files, tables, lock and folders of a data folder."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from cudaredist.commands.check.archive_tables import ArchiveTables
from cudaredist.commands.check.findings import finding, own_file_findings
from cudaredist.commands.check.inventory import Inventory
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError, ReadError
from cudaredist.features.derive import RULES
from cudaredist.features.legacy import is_legacy
from cudaredist.features.wheel_notes import unusual_notes
from cudaredist.formats.features import Features
from cudaredist.formats.registry import (
    FILE_KINDS,
    names_schema_version,
    parse_own_json,
    read_own_file,
)
from cudaredist.hints import command_line
from cudaredist.primitives import Version
from cudaredist.redists import REDISTS
from cudaredist.store.data_folder import Store
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.files import read_file
from cudaredist.store.read_data import load_features
from cudaredist.store.table_registry import TABLES, releases_of
from cudaredist.words import plural


def feature_findings(
    store: Store,
    local: Mapping[str, Inventory],
    redists: Sequence[str],
    tables: Sequence[ArchiveTables],
) -> Iterator[Finding]:
    """Find missing, stale, broken and orphaned feature files, and what tables lack of them."""
    hint = f"run `{command_line('process-manifests', channel=store.channel)}`"
    for redist in redists:
        hashes = local[redist].sha256 if redist in local else {}
        try:
            with_features = store.features(redist).labels()
        except ReadError as error:
            yield finding("unreadable", error.message, redist=redist)
            continue
        for label in sorted({*hashes, *with_features}):
            path = store.features(redist).path_of(label)
            about = partial(finding, redist=redist, label=label, path=store.relative(path))
            if label not in with_features:
                yield about("no-features", "no feature file", hint=hint)
                continue
            model = None
            if _is_legacy_file(path):
                message = "in nixpkgs' format: libraries and dependencies are unknown"
                yield about("legacy-features", message)
            else:
                model = yield from own_file_findings(store, path, FILE_KINDS["features"])
            if label not in hashes:
                yield about("orphan-features", "a feature file without a manifest")
            elif isinstance(model, Features):
                yield from chain.from_iterable(
                    each.lacking(model, redist, label) for each in tables
                )
                made_from = model.manifest_sha256, model.redist, model.label
                if made_from != (hashes[label], redist, str(label)):
                    message = "made from a different manifest than the local one"
                    yield about("stale-features", message, hint=hint)
                elif model.rules != RULES:
                    message = f"made by rules version {model.rules}; the current version is {RULES}"
                    yield about("stale-features", message, hint=hint)


def archive_notes(store: Store, redists: Sequence[str]) -> Iterator[Finding]:
    """Find notes on unusual contents of archives in feature files, such as links to nothing.

    Feature files that cannot be read are other findings.
    """
    for redist in redists:
        for label in store.features(redist).labels():
            with suppress(CudaRedistError):
                features = load_features(store, redist, label)
                notes = [
                    f"{' '.join(filter(None, identity))}: {note}"
                    for identity, _, _, archive in examined_archives(features)
                    for note in unusual_notes(archive.notes)
                ]
                if notes:
                    yield finding(
                        "archive-notes",
                        f"{plural(len(notes), 'note')} on unusual contents of archives",
                        label=label,
                        redist=redist,
                        path=store.relative(store.features(redist).path_of(label)),
                        details=tuple(notes),
                    )


def _is_legacy_file(path: Path) -> bool:
    """Check if a file is readable and in nixpkgs' format."""
    try:
        data = read_file(path) or b""
        return not names_schema_version(data) and is_legacy(parse_own_json(data))
    except CudaRedistError:
        return False


def unknown_redist_findings(names: Sequence[str]) -> Iterator[Finding]:
    """Find unknown redistributables in the data folder or its lock."""
    for name in names:
        if name not in REDISTS:
            message = "not a known redistributable, so its files are not checked"
            hint = "check the spelling of the folder's name"
            yield finding("unknown-redist", message, redist=name, hint=hint)


def table_findings(
    store: Store, cuda_labels: Sequence[Version], shipped: Store | None
) -> Iterator[Finding]:
    """Find tables that are broken or lack a local CUDA release.

    A release in a `shipped` table is not missing.
    """
    for table in TABLES:
        path = store.table_path(table.name)
        hint = f"run `{command_line(table.command, channel=store.channel)}`"
        about = partial(finding, path=store.relative(path), hint=hint)
        below = None if shipped is None else shipped.read_table(table.name)
        complete = () if below is None else releases_of(read_own_file(below, table.model)) or ()
        labels = [str(label) for label in cuda_labels if str(label) not in complete]
        if not path.exists():
            if labels:
                message = f"no table for the local CUDA releases {', '.join(labels)}"
                yield about("table-missing", message)
            continue
        model = yield from own_file_findings(store, path, FILE_KINDS[table.name.replace("_", "-")])
        known = releases_of(model)
        lacking = [label for label in labels if known is not None and label not in known]
        if lacking:
            yield about("table-lacks", f"has no entry for CUDA {', '.join(lacking)}")


def lock_findings(store: Store) -> Iterator[Finding]:
    """Find defects of the lock file."""
    if store.stored_lock_path.exists():
        yield from own_file_findings(store, store.stored_lock_path, FILE_KINDS["lock"])
