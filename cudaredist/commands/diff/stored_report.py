"""The reports of comparisons of releases in the cache.

The same releases are often compared again: with all names, as Markdown or as JSON. Each report is
stored under the state of all data files and of the program, so that every change makes a new one.
To read it, no models are imported.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

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
from cudaredist.formats.plain_report import PlainEntry, as_json
from cudaredist.jsontext import load_json
from cudaredist.primitives import find_release, sha256_of
from cudaredist.store.cache import Cache
from cudaredist.store.facts_index import Index

_KIND = "folders/compared"
"""Like the facts of folders, old ones are removed: the state of the data never returns."""

_Entry = TypeVar("_Entry", bound=PlainEntry)
_Report = TypeVar("_Report", DiffReport, ApiDiffReport)

_PARTS: Mapping[type[PlainEntry], Mapping[str, type[PlainEntry]]] = {
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
"""The fields of reports that have parts."""


def stored_report(
    kind: type[_Report], key: str, cache: Cache, make: Callable[[], _Report]
) -> _Report:
    """Return the report with a key. If there is none, make and store it.

    Without a key, it is not stored.
    """
    data = cache.get(_KIND, key) if key else None
    if data is not None:
        return _parsed(kind, load_json(data))
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


def _parsed(kind: type[_Entry], values: Mapping[str, Any]) -> _Entry:
    parts = _PARTS.get(kind, {})
    return kind(**{name: _value(value, parts.get(name)) for name, value in values.items()})


def _value(value: Any, part: type[PlainEntry] | None) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        return tuple(value) if part is None else tuple(_parsed(part, one) for one in value)
    return value if value is None or part is None else _parsed(part, value)
