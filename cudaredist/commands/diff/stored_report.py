"""The reports of comparisons of releases in the cache.

The same releases are often compared again: with all names, as Markdown or as JSON. Each report is
stored under the state of all data files and of the program, so that every change makes a new one.
To read it, no models are imported.
"""

import json
from collections.abc import Callable
from typing import TypeVar

from cudaredist.commands.diff.report import (
    ApiChange,
    ApiCount,
    ApiDiffReport,
    Delta,
    DiffReport,
    FileChange,
    Move,
    PackageDelta,
    RunPathChange,
    VulnerabilityChange,
)
from cudaredist.formats.plain_report import Parts, as_json, from_json
from cudaredist.jsontext import load_json
from cudaredist.primitives import find_release, sha256_of
from cudaredist.store.cache import Cache
from cudaredist.store.facts_index import Index

_KIND = "folders/compared"
"""Like the facts of folders, old ones are removed: the state of the data never returns."""

_Report = TypeVar("_Report", DiffReport, ApiDiffReport)

_PARTS: Parts = {
    ApiDiffReport: {"counts": ApiCount, "changes": ApiChange},
    DiffReport: {
        "packages": PackageDelta,
        "platforms": Delta,
        "moves": Move,
        "files": FileChange,
        "run_paths": RunPathChange,
        "tables": Delta,
        "vulnerabilities": VulnerabilityChange,
        "api": ApiCount,
    },
    PackageDelta: {"deltas": Delta},
}


def stored_report(
    kind: type[_Report], key: str, cache: Cache, make: Callable[[], _Report]
) -> _Report:
    """Return the report with a key. If there is none, make and store it.

    Without a key, it is not stored.
    """
    data = cache.get(_KIND, key) if key else None
    if data is not None:
        return from_json(kind, load_json(data), _PARTS)
    report = make()
    # The index has its own folder, and a warning, if the cache cannot be written.
    if key and cache.temporary_folder() is not None:
        cache.put(_KIND, key, json.dumps(as_json(report), ensure_ascii=False).encode())
    return report


def key_of_comparison(index: Index, *about: object) -> str:
    """Return the key of a report with some options. Empty: a file changed just now."""
    state = index.database.state()
    layers = [layer.examined_only for layer in index.store.layers]
    return state and sha256_of(repr((state, index.channels, layers, about)).encode())


def are_examined(releases: list[tuple[str, str]], index: Index) -> bool:
    """Check if releases have feature files. Otherwise, their files are those in the cache."""
    examined = index.examined_releases({redist for redist, _ in releases})
    labels = examined.get(index.store.channel, {})
    return all(
        str(find_release(text, index.store.manifests(redist).labels())) in labels.get(redist, ())
        for redist, text in releases
    )
