"""Findings about feature files, tables, the lock and folders of a data folder."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cudaredist.errors import (
    ReadError,
)
from cudaredist.features.derive import RULES
from cudaredist.pipeline.findings import finding, own_file_findings
from cudaredist.pipeline.manifests.inventory import (
    Inventory,
)
from cudaredist.primitives import Version
from cudaredist.redists import REDISTS
from cudaredist.reports.manifest_reports import Finding
from cudaredist.schema.features import Features
from cudaredist.schema.registry import FILE_KINDS
from cudaredist.schema.tables import Gpus, NvccCompat
from cudaredist.store.data_folder import Store

_PROCESS_HINT = "cudaredist process-manifests makes what is missing"
_TABLES = {"nvcc_compat": "nvcc-compat", "gpus": "gpus"}
TABLE_COMMANDS = {"nvcc_compat": "update-nvcc-compat", "gpus": "update-gpus"}
"""The command that makes each table."""


def feature_findings(
    store: Store, held: Mapping[str, Inventory], redists: Sequence[str]
) -> Iterator[Finding]:
    """Find manifests whose feature file is missing, stale or broken, and orphaned feature files."""
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
                yield about("no-features", "no feature file", hint=_PROCESS_HINT)
                continue
            model = yield from own_file_findings(store, path, FILE_KINDS["features"])
            if label not in hashes:
                yield about("orphan-features", "a feature file without its manifest")
            elif isinstance(model, Features) and (
                model.manifest_sha256 != hashes[label]
                or (model.redist, model.label) != (redist, str(label))
            ):
                words = "made from another manifest than the one held"
                yield about("stale-features", words, hint=_PROCESS_HINT)
            elif isinstance(model, Features) and model.rules != RULES:
                words = f"made by other rules than today's ({model.rules}, not {RULES})"
                yield about("stale-features", words, hint=_PROCESS_HINT)


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
    for name, kind in _TABLES.items():
        path = store.table_path(name)
        if not path.exists():
            if cuda_labels:
                held = ", ".join(map(str, cuda_labels))
                yield finding(
                    "table-missing",
                    f"no such table, for the CUDA releases held: {held}",
                    path=store.relative(path),
                    hint=_table_hint(store, name, "makes it"),
                )
            continue
        model = yield from own_file_findings(store, path, FILE_KINDS[kind])
        if isinstance(model, NvccCompat):
            known = set(model.releases)
        elif isinstance(model, Gpus):
            known = set(model.sources)
        else:
            continue
        lacking = [str(label) for label in cuda_labels if str(label) not in known]
        if lacking:
            yield finding(
                "table-lacks",
                f"has no entry for CUDA {', '.join(lacking)}",
                path=store.relative(path),
                hint=_table_hint(store, name, "adds it"),
            )


def _table_hint(store: Store, name: str, does: str) -> str:
    channel = "" if store.channel == "redist" else f" --channel {store.channel}"
    return f"cudaredist {TABLE_COMMANDS[name]}{channel} {does}"


def lock_findings(store: Store) -> Iterator[Finding]:
    """Find what is wrong with the lock file itself."""
    if store.lock_path.exists():
        yield from own_file_findings(store, store.lock_path, FILE_KINDS["lock"])
