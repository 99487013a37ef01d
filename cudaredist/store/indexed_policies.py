"""Entries of policies by the index, for lookups. They need no models."""

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from cudaredist.store.facts_index import Index, Question


class ExternalLibraries(NamedTuple):
    """Libraries outside package sets, and their provider."""

    owner: str
    provider: str | None
    names: tuple[str, ...]
    packages: tuple[str, ...]
    """Packages with a copy of the libraries."""
    symbols: tuple[str, ...]
    """Beginnings of the symbols that the libraries export."""
    reason: str


class LibraryRules(NamedTuple):
    """The policy of libraries, as far as lookups need it."""

    external: tuple[ExternalLibraries, ...]


class DroppedFiles(NamedTuple):
    """Files that package sets omit, in a range of versions of a package."""

    package: str
    min: str | None
    max: str | None
    source: str
    """The pattern of the files."""


class OutputRules(NamedTuple):
    """The policy of outputs, as far as lookups need it."""

    drops: tuple[DroppedFiles, ...]
    collapsed: frozenset[str]
    """Packages with all files in one output."""


class _Layer(NamedTuple):
    layer: str


_LAYER = Question(_Layer, "SELECT layer FROM documents WHERE name = ? ORDER BY layer LIMIT 1")


class _Entry(NamedTuple):
    part: str
    name: str
    entry: str
    """As JSON."""


_ENTRIES = Question(
    _Entry,
    """
    SELECT part, policies.name, entry
    FROM policies JOIN documents ON documents.id = document
    WHERE documents.name = ? AND documents.layer = ?
    ORDER BY policies.rowid""",
)


def library_rules(index: Index) -> LibraryRules:
    """Return the libraries outside package sets. Raises `InvalidFileError`."""
    return LibraryRules(
        tuple(
            ExternalLibraries(
                owner=entry["owner"],
                provider=entry.get("provider"),
                names=tuple(entry["names"]),
                packages=tuple(entry.get("packages", ())),
                symbols=tuple(entry.get("symbols", ())),
                reason=entry["reason"],
            )
            for _, _, entry in _entries(index, "libraries")
        )
    )


def output_rules(index: Index) -> OutputRules:
    """Return the dropped files and the packages with one output. Raises `InvalidFileError`."""
    entries = [*_entries(index, "outputs")]
    return OutputRules(
        drops=tuple(
            DroppedFiles(
                package=entry["package"],
                min=entry["versions"].get("min"),
                max=entry["versions"].get("max"),
                source=entry["from"],
            )
            for part, _, entry in entries
            if part == "normalise" and entry["op"] == "drop"
        ),
        collapsed=frozenset(name for part, name, _ in entries if part == "collapse"),
    )


def main_programs(index: Index) -> dict[str, str]:
    """Return the main program of packages. Raises `InvalidFileError`."""
    return {
        name: entry["main_program"]
        for _, name, entry in _entries(index, "meta")
        if "main_program" in entry
    }


def _entries(index: Index, name: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the part, the name and the content of a policy's entries.

    They are from the index. It has no broken policy, whose error is raised, and not the shipped one
    if the call is without shipped data.
    """
    path = f"policy/{name}"
    is_broken = any(document.name == path for document in index.unreadable())
    layers = index.ask(_LAYER, path)
    if is_broken or not layers:
        # Most lookups import no models.
        rows = import_module("cudaredist.store.policy_rows").read_policy_rows(index.store, name)
    else:
        rows = index.ask(_ENTRIES, path, layers[0].layer)
    for part, entry_name, text in rows:
        yield part, entry_name, json.loads(text)
