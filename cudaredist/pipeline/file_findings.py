"""Findings about feature files, tables, the lock and folders of a data folder."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cudaredist.errors import CudaRedistError, ReadError, command_line
from cudaredist.features.derive import RULES
from cudaredist.features.legacy import is_legacy
from cudaredist.pipeline.findings import finding, own_file_findings
from cudaredist.pipeline.manifests.inventory import Inventory
from cudaredist.pipeline.tables.table_registry import TABLES, releases_of
from cudaredist.primitives import Version
from cudaredist.redists import REDISTS
from cudaredist.reports.manifest_reports import Finding
from cudaredist.schema.features import Features
from cudaredist.schema.registry import FILE_KINDS, parse_own_json
from cudaredist.store.data_folder import Store
from cudaredist.store.files import read_file


def feature_findings(
    store: Store, held: Mapping[str, Inventory], redists: Sequence[str]
) -> Iterator[Finding]:
    """Find manifests whose feature file is missing, stale or broken, and orphaned feature files."""
    command = command_line("process-manifests", channel=store.channel)
    hint = f"{command} makes what is missing"
    for redist in redists:
        hashes = held[redist].sha256 if redist in held else {}
        try:
            with_features = store.features(redist).labels()
        except ReadError as error:
            yield finding("unreadable", error.message, redist=redist)
            continue
        for label in sorted({*hashes, *with_features}):
            path = store.features(redist).place(label)
            about = partial(finding, redist=redist, label=label, path=store.relative(path))
            if label not in with_features:
                yield about("no-features", "no feature file", hint=hint)
                continue
            model = None
            if _is_legacy_file(path):
                words = "in nixpkgs' form: outputs only, libraries and dependencies are unknown"
                yield about("legacy-features", words)
            else:
                model = yield from own_file_findings(store, path, FILE_KINDS["features"])
            if label not in hashes:
                yield about("orphan-features", "a feature file without its manifest")
            elif isinstance(model, Features) and (
                model.manifest_sha256 != hashes[label]
                or (model.redist, model.label) != (redist, str(label))
            ):
                words = "made from another manifest than the one held"
                yield about("stale-features", words, hint=hint)
            elif isinstance(model, Features) and model.rules != RULES:
                words = f"made by other rules than today's ({model.rules}, not {RULES})"
                yield about("stale-features", words, hint=hint)


def _is_legacy_file(path: Path) -> bool:
    """Check if a file is readable and in nixpkgs' form; other findings report what is not."""
    try:
        return is_legacy(parse_own_json(read_file(path) or b""))
    except CudaRedistError:
        return False


def unknown_redist_findings(names: Sequence[str]) -> Iterator[Finding]:
    """Find names in the data folder or its lock that stand in no catalogue."""
    for name in names:
        if name not in REDISTS:
            yield finding(
                "unknown-redist",
                "is no redistributable, so nothing of it is checked",
                redist=name,
                hint="is the folder's name spelled right?",
            )


def table_findings(store: Store, cuda_labels: Sequence[Version]) -> Iterator[Finding]:
    """Find tables that are broken or lack a CUDA release that is held."""
    for table in TABLES:
        path = store.table_path(table.name)
        command = command_line(table.command, channel=store.channel)
        if not path.exists():
            if cuda_labels:
                held = ", ".join(map(str, cuda_labels))
                yield finding(
                    "table-missing",
                    f"no such table, for the CUDA releases held: {held}",
                    path=store.relative(path),
                    hint=f"{command} makes it",
                )
            continue
        model = yield from own_file_findings(store, path, table.file_kind)
        known = releases_of(model)
        if known is None:
            continue
        lacking = [str(label) for label in cuda_labels if str(label) not in known]
        if lacking:
            yield finding(
                "table-lacks",
                f"has no entry for CUDA {', '.join(lacking)}",
                path=store.relative(path),
                hint=f"{command} adds it",
            )


def lock_findings(store: Store) -> Iterator[Finding]:
    """Find what is wrong with the lock file itself."""
    if store.lock_path.exists():
        yield from own_file_findings(store, store.lock_path, FILE_KINDS["lock"])
