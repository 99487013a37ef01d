"""Entries of policies by the index, for lookups. They need no models."""

import json
from collections.abc import Mapping
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


class _Policy(NamedTuple):
    content: str


_POLICY = Question(_Policy, "SELECT content FROM policies WHERE name = ? ORDER BY layer LIMIT 1")


def library_rules(index: Index) -> LibraryRules:
    """Return the libraries outside package sets. Raises `InvalidFileError`."""
    entries = _read(index, "libraries")["external"]
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
            for entry in entries
        )
    )


def output_rules(index: Index) -> OutputRules:
    """Return the dropped files and the packages with one output. Raises `InvalidFileError`."""
    policy = _read(index, "outputs")
    drops = (entry for entry in policy["normalise"] if entry["op"] == "drop")
    return OutputRules(
        drops=tuple(
            DroppedFiles(
                package=entry["package"],
                min=entry["versions"].get("min"),
                max=entry["versions"].get("max"),
                source=entry["from"],
            )
            for entry in drops
        ),
        collapsed=frozenset(policy["collapse"]),
    )


def main_programs(index: Index) -> dict[str, str]:
    """Return the main program of packages. Raises `InvalidFileError`."""
    packages = _read(index, "meta")["packages"].items()
    return {name: one["main_program"] for name, one in packages if "main_program" in one}


def _read(index: Index, name: str) -> Mapping[str, Any]:
    """Return a policy as JSON: from the index, else from its file.

    The index has no broken policy, and not the shipped one if the call is without shipped data.
    """
    is_broken = any(document.name == f"policy/{name}" for document in index.unreadable())
    rows = [] if is_broken else index.ask(_POLICY, name)
    if rows:
        content: Mapping[str, Any] = json.loads(rows[0].content)
        return content
    # Most lookups import no models.
    document: Mapping[str, Any] = import_module("cudaredist.store.policy_rows").read_policy(
        index.store, name
    )
    return document
