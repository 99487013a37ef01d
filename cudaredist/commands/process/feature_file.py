"""A feature file in progress, with an item per archive."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from cudaredist.commands.process.report import ArchiveStatus
from cudaredist.errors import IncompleteError, InvalidFileError, Problem
from cudaredist.features.derive import RULES
from cudaredist.formats.features import Features, WholeFeatures
from cudaredist.formats.registry import parse_own_json, read_own_file, validation_problems
from cudaredist.formats.report import ErrorReport
from cudaredist.jsontext import canonical_json
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Platform, Version
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import Document, known_features
from cudaredist.store.targets import LocalManifest

_ON_PLATFORM = " archives do not hold"
"""The end of notes that depend on the platform, not only on the archive's contents."""

_PROBLEMS_SHOWN = 5
_SHARED = frozenset({"files", "missing_headers"})
"""Fields that are mostly equal in the archives of a package. A feature file stores them once."""

EXCLUDED = "excluded by "
"""The beginning of a reason that is the user's choice and not a property of the archive."""


@dataclass(slots=True, kw_only=True)
class ArchiveItem:
    """An archive of a manifest, and its state in the run."""

    archive: Archive
    status: ArchiveStatus
    reason: str | None = None
    """Why it is not examined, in the words of the feature file."""
    error: ErrorReport | None = None
    features: Document | None = None
    """Its features, if they are not in the cache."""

    def entry(self, features: Document | None, *, has_several: bool) -> Document:
        """Return its entry in the feature file.

        `features` is None if they are unknown.
        """
        archive = self.archive
        entry: Document = {
            "platform": archive.platform,
            "variant": archive.variant,
            "sha256": archive.sha256,
        }
        if has_several:
            entry["version"] = str(archive.version)
        if features is None:
            return entry | {"status": "not-examined", "reason": self.reason}
        entry |= features | {"status": "examined"}
        machine, expected = features["machine"], Platform(archive.platform).machine
        if machine and expected and machine != expected:
            note = f"binaries for {machine}, which {archive.platform}{_ON_PLATFORM}"
            entry["notes"] = [*features["notes"], note]
        if archive.sha256 is None:
            entry["verified"] = False
        return entry


@dataclass(slots=True, kw_only=True)
class FeatureFile:
    """A manifest's feature file, and the state of its archives."""

    source: LocalManifest
    items: list[ArchiveItem] = field(default_factory=list)
    waiting: int = 0
    """The number of archives that an engine has not finished."""
    earlier: dict[object, Document] | None = None
    """The entries of the existing feature file, or None if they were not needed yet."""

    def read(self) -> bytes | None:
        """Return the bytes of the existing feature file, or None."""
        return self.source.target.features.read(self.source.label)

    def document(self, cache: Cache, earlier: Callable[[], Mapping[object, Document]]) -> Document:
        """Return the feature file with all features known so far.

        `earlier` returns the entries of the existing file. An archive without new features keeps
        its entry. `earlier` is called only if features are missing, so that a broken file is
        replaced without an error if all features are known.
        """
        entries: dict[str, list[Document]] = {}
        several = {p.name: len(p.versions) > 1 for p in self.source.manifest.packages}
        for item in self.items:
            package = item.archive.package
            has_several = several[package]
            features = item.features or known_features(cache, item.archive.sha256)
            entry = item.entry(features, has_several=has_several)
            if features is None:
                previous = earlier().get(identity(package, entry))
                is_choice = item.status == "skipped" and (item.reason or "").startswith(EXCLUDED)
                if previous and (previous["status"] == "examined" or is_choice):
                    entry = previous
            entries.setdefault(package, []).append(entry)
        return {
            "schema_version": 1,
            "redist": self.source.target.redist.name,
            "label": str(self.source.label),
            "manifest_sha256": self.source.sha256,
            "rules": RULES,
            "packages": {
                package.name: {
                    "version": None if several[package.name] else str(package.versions[0]),
                    **share_parts(sorted(entries.get(package.name, []), key=_order)),
                }
                for package in self.source.manifest.packages
            },
        }


def _order(entry: Document) -> tuple[str, str, tuple[Version, ...]]:
    version = (Version.parse(entry["version"]),) if "version" in entry else ()
    return entry["platform"], entry["variant"] or "", version


def share_parts(entries: list[Document]) -> Document:
    """Return a package's archives, with the fields that several share."""
    files: dict[str, Document] = {}
    headers: dict[str, Document] = {}
    for position, entry in enumerate(entries):
        for output, folders in entry.get("files", {}).items():
            shared = {"archives": [], "output": output, "folders": folders}
            files.setdefault(json.dumps(shared), shared)["archives"].append(position)
        if "missing_headers" in entry:
            shared = {"archives": [], "headers": entry["missing_headers"]}
            headers.setdefault(json.dumps(shared), shared)["archives"].append(position)
    packed = [{key: entry[key] for key in entry if key not in _SHARED} for entry in entries]
    tables = {"files": list(files.values()), "missing_headers": list(headers.values())}
    return {"archives": packed, **{name: table for name, table in tables.items() if table}}


def identity(package: str, entry: Document) -> object:
    """Return a key that identifies an archive across feature files."""
    return package, entry["platform"], entry["variant"], entry["sha256"], entry.get("version")


def _unshared(features: Document) -> list[Document]:
    entries: list[Document] = features["archives"]
    for shared in features.get("files", ()):
        for position in shared["archives"]:
            entries[position].setdefault("files", {})[shared["output"]] = shared["folders"]
    for shared in features.get("missing_headers", ()):
        for position in shared["archives"]:
            entries[position]["missing_headers"] = shared["headers"]
    return entries


def earlier_entries(data: bytes | None, name: str) -> dict[object, Document]:
    """Return the entries of the existing feature file.

    Raises `InvalidFileError` if it is broken or was made by newer rules, and `IncompleteError` if
    it was made by older rules: a file cannot mix the results of different rules.
    """
    if data is None:
        return {}
    document: Any = parse_own_json(data, f"feature file of {name}")
    try:
        features = Features.model_validate_json(data)
    except ValidationError as error:
        problems = validation_problems(error)[:_PROBLEMS_SHOWN]
        raise InvalidFileError(f"feature file of {name}", problems) from None
    if features.rules > RULES:
        message = f"made by rules version {features.rules}, but this cudaredist has {RULES}"
        raise InvalidFileError(f"feature file of {name}", [Problem("rules", message)])
    if features.rules < RULES:
        raise IncompleteError(
            f"{name}: its feature file was made by older rules, and the cache lacks some archives",
            hint="run the command again without --package, --platform and --variant",
        )
    return {
        identity(package, entry): entry
        for package, entries in document["packages"].items()
        for entry in _unshared(entries)
    }


def features_in(entry: Document) -> Document:
    """Return an entry's features, without the notes about its platform."""
    return {
        **{name: entry[name] for name in WholeFeatures.model_fields if name in entry},
        "notes": [note for note in entry["notes"] if not note.endswith(_ON_PLATFORM)],
    }


def checked_bytes(document: Document) -> bytes:
    """Return a feature file's bytes.

    Raises `InvalidFileError` if they violate its schema.
    """
    data = canonical_json(document)
    read_own_file(data, Features)
    return data
