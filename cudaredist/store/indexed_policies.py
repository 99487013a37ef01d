"""Entries of policies by the index, for lookups. They need no models."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from cudaredist.store.documents import STORED_POLICIES
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


class PackageNames(NamedTuple):
    """The names of packages in policies."""

    renamed: Mapping[str, str]
    """The newer name of a package, by an older one or an alias."""
    packages: frozenset[str]
    """All packages that policies name, except those of fixups."""

    def root(self, name: str) -> str:
        """Return the newest name of a package, following renames and aliases."""
        while name in self.renamed:
            name = self.renamed[name]
        return name


class Withheld(NamedTuple):
    """A published package that sets deliberately omit."""

    reason: str
    lacks: tuple[str, ...]
    """Required packages and sonames that no set contains."""


class LicenseTerms(NamedTuple):
    """The terms of a license, as far as lookups need them."""

    short_name: str
    redistributable: bool | None
    reason: str


class ListedNames(NamedTuple):
    """Names of files of one platform that a license text lists as distributable."""

    system: str
    files: tuple[str, ...]
    is_conditional: bool


class LicenseText(NamedTuple):
    """A license whose text is in archives."""

    terms: LicenseTerms
    title: str
    files: tuple[str, ...]
    """The SHA-256 of each file with this text."""
    has_list: bool | None
    """Whether the text lists the files that may be distributed. None: unknown."""
    listed: tuple[ListedNames, ...]


class LicenseRules(NamedTuple):
    """The policy of licenses."""

    packages: Mapping[str, LicenseTerms]
    manifests: Mapping[str, LicenseTerms]
    """By the manifest's `license`."""
    redists: Mapping[str, LicenseTerms]
    default: LicenseTerms
    texts: Mapping[str, LicenseText]
    """By SHA-256 of the normalized text."""


class _Entry(NamedTuple):
    part: str | None
    """None: the policy has no entries."""
    name: str
    entry: str
    """As JSON."""


_ENTRIES = Question(
    _Entry,
    """
    SELECT part, policies.name, entry
    FROM documents LEFT JOIN policies ON document = documents.id
    WHERE documents.name = ?1 AND is_readable
        AND documents.layer = (SELECT min(layer) FROM documents WHERE name = ?1)
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
            for _, _, entry in _entries(index, "libraries", "external")
        )
    )


def output_rules(index: Index) -> OutputRules:
    """Return the dropped files and the packages with one output. Raises `InvalidFileError`."""
    entries = [*_entries(index, "outputs", "normalise", "collapse")]
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
        for _, name, entry in _entries(index, "meta", "packages")
        if "main_program" in entry
    }


def names_in_policies(index: Index) -> PackageNames:
    """Return the names of packages in all policies. Raises `InvalidFileError`."""
    parts = ("aliases", "renames", "named")
    rows = [row for name in STORED_POLICIES for row in _entries(index, name, *parts)]
    renamed = {
        part: {name: entry["to"] for of_part, name, entry in rows if of_part == part}
        for part in ("aliases", "renames")
    }
    return PackageNames(
        renamed=renamed["aliases"] | renamed["renames"],
        packages=frozenset(name for part, name, _ in rows if part == "named"),
    )


def withheld_packages(index: Index) -> dict[str, Withheld]:
    """Return the packages that sets deliberately omit. Raises `InvalidFileError`."""
    return {
        name: Withheld(entry["reason"], tuple(entry.get("lacks", ())))
        for _, name, entry in _entries(index, "withheld", "withheld")
    }


def archive_urls(index: Index) -> dict[str, str]:
    """Return the base addresses of archives by redistributable. Raises `InvalidFileError`."""
    return {name: entry for _, name, entry in _entries(index, "fixups", "urls")}


def license_rules(index: Index) -> LicenseRules:
    """Return the policy of licenses. Raises `InvalidFileError`."""
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    with_terms = ("packages", "manifests", "redists", "default")
    for part, name, entry in _entries(index, "licenses", "texts", *with_terms):
        parts[part][name] = entry
    terms = {
        part: {name: _terms(entry) for name, entry in parts[part].items()} for part in with_terms
    }
    return LicenseRules(
        packages=terms["packages"],
        manifests=terms["manifests"],
        redists=terms["redists"],
        default=terms["default"][""],
        texts={name: _text(entry) for name, entry in parts["texts"].items()},
    )


def _terms(entry: Mapping[str, Any]) -> LicenseTerms:
    return LicenseTerms(entry["short_name"], entry["redistributable"], entry["reason"])


def _text(entry: Mapping[str, Any]) -> LicenseText:
    return LicenseText(
        terms=_terms(entry),
        title=entry["title"],
        files=tuple(entry["files"]),
        has_list=entry.get("has_list"),
        listed=tuple(
            ListedNames(one["system"], tuple(one["files"]), one.get("is_conditional", False))
            for one in entry.get("listed", ())
        ),
    )


def _entries(index: Index, name: str, *parts: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the part, the name and the content of the entries in some parts of a policy.

    They are from the index. It has no broken policy, whose error is raised, and not the shipped one
    if the call is without shipped data.
    """
    rows = index.ask(_ENTRIES, f"policy/{name}")
    if not rows:
        # Most lookups import no models.
        rows = import_module("cudaredist.store.policy_rows").read_policy_rows(index.store, name)
    for part, entry_name, text in rows:
        if part in parts:
            yield part, entry_name, json.loads(text)
