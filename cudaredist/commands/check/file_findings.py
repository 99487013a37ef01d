"""Check the feature files, tables, lock and folders of a data folder."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.commands.check.archive_tables import ArchiveTables
from cudaredist.commands.check.checked_files import CheckedFiles, Facts
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.inventory import Inventory
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError, ReadError
from cudaredist.features.derive import RULES
from cudaredist.features.legacy import is_legacy
from cudaredist.features.wheel_notes import unusual_notes
from cudaredist.formats.base import OwnModel
from cudaredist.formats.registry import (
    FILE_KINDS,
    FileKind,
    names_schema_version,
    parse_own_json,
    read_own_file,
)
from cudaredist.hints import command_line
from cudaredist.primitives import Version, sha256_of
from cudaredist.redists import REDISTS
from cudaredist.store.data_folder import Store
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.files import read_file
from cudaredist.store.read_data import load_features
from cudaredist.store.table_registry import TABLES, Table, releases_of
from cudaredist.words import plural

if TYPE_CHECKING:
    from cudaredist.formats.features import Features


def feature_findings(
    store: Store,
    local: Mapping[str, Inventory],
    redists: Sequence[str],
    tables: Sequence[ArchiveTables],
    checked: CheckedFiles,
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
            facts = None
            if _is_legacy_file(path):
                message = "in nixpkgs' format: libraries and dependencies are unknown"
                yield about("legacy-features", message)
            else:
                facts = yield from checked.read(path, FILE_KINDS["features"], _facts_of_features)
            if label not in hashes:
                yield about("orphan-features", "a feature file without a manifest")
            elif facts is not None:
                yield from chain.from_iterable(
                    each.lacking(facts, redist, label) for each in tables
                )
                if facts["made_from"] != [hashes[label], redist, str(label)]:
                    message = "made from a different manifest than the local one"
                    yield about("stale-features", message, hint=hint)
                elif facts["rules"] != RULES:
                    message = (
                        f"made by rules version {facts['rules']}; the current version is {RULES}"
                    )
                    yield about("stale-features", message, hint=hint)


def _facts_of_features(features: "Features") -> Facts:
    # Most files are known from an earlier run, and the models are slow to import.
    from cudaredist.commands.check.feature_facts import facts_of_features  # noqa: PLC0415

    return facts_of_features(features)


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
    store: Store, cuda_labels: Sequence[Version], shipped: Store | None, checked: CheckedFiles
) -> Iterator[Finding]:
    """Find tables that are broken or lack a local CUDA release.

    A release in a `shipped` table is not missing.
    """
    for table in TABLES:
        path = store.table_path(table.name)
        hint = f"run `{command_line(table.command, channel=store.channel)}`"
        about = partial(finding, path=store.relative(path), hint=hint)
        complete = () if shipped is None else _shipped_releases(shipped, table, checked)
        labels = [str(label) for label in cuda_labels if str(label) not in complete]
        if not path.exists():
            if labels:
                message = f"no table for the local CUDA releases {', '.join(labels)}"
                yield about("table-missing", message)
            continue
        facts = yield from checked.read(path, _kind_of(table), _table_facts)
        known = None if facts is None else facts["releases"]
        lacking = [label for label in labels if known is not None and label not in known]
        if lacking:
            yield about("table-lacks", f"has no entry for CUDA {', '.join(lacking)}")


def _table_facts(table: OwnModel) -> Facts:
    """Return the CUDA releases of a table."""
    releases = releases_of(table)
    return {"releases": None if releases is None else [*releases]}


def _shipped_releases(shipped: Store, table: Table[OwnModel], checked: CheckedFiles) -> list[str]:
    """Return the CUDA releases of a shipped table. Raises `InvalidFileError`."""
    data = shipped.read_table(table.name)
    if data is None:
        return []
    facts = checked.facts(_kind_of(table).name, sha256_of(data))
    facts = _table_facts(read_own_file(data, table.model)) if facts is None else facts
    return facts["releases"] or []


def _kind_of(table: Table[OwnModel]) -> FileKind:
    return FILE_KINDS[table.name.replace("_", "-")]


def lock_findings(store: Store, checked: CheckedFiles) -> Iterator[Finding]:
    """Find defects of the lock file."""
    if store.stored_lock_path.exists():
        yield from checked.read(store.stored_lock_path, FILE_KINDS["lock"], lambda _: {})
