"""A feature file in progress, with an item per archive."""

import contextlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import ValidationError

from cudaredist.commands.process.report import ArchiveStatus
from cudaredist.errors import IncompleteError, InvalidFileError, Problem
from cudaredist.features.derive import RULES, derive
from cudaredist.features.facts import Facts
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.features import Features
from cudaredist.formats.registry import parse_own_json, read_own_file, validation_problems
from cudaredist.hints import again
from cudaredist.jsontext import canonical_json, parse_json
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Platform, Version
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import known_facts
from cudaredist.store.targets import LocalManifest

Document: TypeAlias = dict[str, Any]
"""A part of a feature file as plain JSON values."""

_FEATURES_LIMIT = 16 << 20
"""The limit in bytes for the features of one archive: a thousand times the largest known ones."""
_PROBLEMS_SHOWN = 5
_IDENTITY = ("platform", "variant", "sha256")
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
    """Its features, unless they can be derived again from cached facts."""

    def entry(self, features: Document | None, *, has_several: bool) -> Document:
        """Return its entry in the feature file.

        `features` is None if they are unknown.
        """
        archive = self.archive
        entry: Document = {name: getattr(archive, name) for name in _IDENTITY}
        if has_several:
            entry["version"] = str(archive.version)
        if features is None:
            return entry | {"status": "not-examined", "reason": self.reason}
        entry |= features | {"status": "examined"}
        machine, expected = features["machine"], Platform(archive.platform).machine
        if machine and expected and machine != expected:
            note = f"binaries for {machine}, which {archive.platform} archives do not contain"
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
    _earlier: dict[object, Document] | None = None

    @property
    def key(self) -> tuple[str, Version]:
        """The redistributable and the release."""
        return self.source.target.redist.name, self.source.label

    def read(self) -> bytes | None:
        """Return the bytes of the existing feature file, or None."""
        return self.source.target.features.read(self.source.label)

    def earlier_entry(self, item: ArchiveItem) -> Document | None:
        """Return an archive's entry in the existing feature file, if any.

        Raises the errors of its reader.
        """
        if self._earlier is None:
            self._earlier = _entries_in(self.read(), self.source.name)
        package = item.archive.package
        entry = item.entry(None, has_several=package in self._several)
        return self._earlier.get(_identity(package, entry))

    @property
    def _several(self) -> frozenset[str]:
        """The packages with several versions."""
        packages = self.source.manifest.packages
        return frozenset(package.name for package in packages if len(package.versions) > 1)

    def forget(self) -> None:
        """Free features that can be read again from the cache or the feature file."""
        self._earlier = None
        for item in self.items:
            if item.archive.sha256 is not None:
                item.features = None

    def document(self, cache: Cache, *, is_new: bool) -> Document:
        """Return the feature file with all features known so far.

        Unless it is new, an archive without new features keeps its entry. The existing file is read
        only if features are missing, so that a broken one is replaced without an error.
        """
        entries: dict[str, list[Document]] = defaultdict(list)
        several = self._several
        for item in self.items:
            package = item.archive.package
            features = item.features or known_features(cache, item.archive.sha256)
            entry = item.entry(features, has_several=package in several)
            if features is None and not is_new:
                previous = self.earlier_entry(item)
                is_choice = item.status == "skipped" and (item.reason or "").startswith(EXCLUDED)
                if previous and (previous["status"] == "examined" or is_choice):
                    entry = previous
            entries[package].append(entry)
        return {
            "schema_version": 1,
            "redist": self.source.target.redist.name,
            "label": str(self.source.label),
            "manifest_sha256": self.source.sha256,
            "rules": RULES,
            "packages": {
                package.name: {
                    "version": None if package.name in several else str(package.versions[0]),
                    **share_parts(sorted(entries[package.name], key=_order)),
                }
                for package in self.source.manifest.packages
            },
        }


def _order(entry: Document) -> tuple[str, str, tuple[Version, ...]]:
    version = (Version.parse(entry["version"]),) if "version" in entry else ()
    return entry["platform"], entry["variant"] or "", version


def share_parts(entries: list[Document]) -> Document:
    """Return a package's archives, with the fields that several share."""
    parts: dict[str, dict[str, Document]] = defaultdict(dict)

    def share(name: str, position: int, part: Document) -> None:
        """Add an archive to the part that it shares."""
        key = json.dumps(part, sort_keys=True)
        shared = parts[name].setdefault(key, {"archives": [], **part})
        shared["archives"].append(position)

    for position, entry in enumerate(entries):
        for output, folders in entry.get("files", {}).items():
            share("files", position, {"output": output, "folders": folders})
        if "missing_headers" in entry:
            share("missing_headers", position, {"headers": entry["missing_headers"]})
    packed = [{key: entry[key] for key in entry if key not in _SHARED} for entry in entries]
    return {"archives": packed, **{name: list(of_name.values()) for name, of_name in parts.items()}}


def _identity(package: str, entry: Document) -> object:
    """Return a key that identifies an archive across feature files."""
    return package, *(entry[name] for name in _IDENTITY), entry.get("version")


def _unshared(features: Document) -> list[Document]:
    entries: list[Document] = features["archives"]
    for shared in features.get("files", ()):
        for position in shared["archives"]:
            entries[position].setdefault("files", {})[shared["output"]] = shared["folders"]
    for shared in features.get("missing_headers", ()):
        for position in shared["archives"]:
            entries[position]["missing_headers"] = shared["headers"]
    return entries


def _entries_in(data: bytes | None, name: str) -> dict[object, Document]:
    """Return the entries of a feature file.

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
        problem = "its feature file was made by older rules, and the cache lacks some archives"
        hint = f"run `{again(without=['--package', '--platform', '--variant'])}`"
        raise IncompleteError(f"{name}: {problem}", hint=hint)
    return {
        _identity(package, entry): entry
        for package, entries in document["packages"].items()
        for entry in _unshared(entries)
    }


def known_features(cache: Cache, sha256: str | None) -> Document | None:
    """Derive an archive's features from cached facts. Invalid features count as missing."""
    facts = known_facts(cache, sha256)
    with contextlib.suppress(InvalidFileError):
        return None if facts is None else features_of(facts)
    return None


def features_of(facts: Facts) -> Document:
    """Derive an archive's features.

    Raises `InvalidFileError` for values that a feature file must not contain, because one archive
    must not invalidate the file for all others.
    """
    data = derive(facts).model_dump_json().encode()
    features: Any = parse_json(data, what="feature entry", limit=_FEATURES_LIMIT)
    return dict(features)


def checked_bytes(document: Document) -> bytes:
    """Return a feature file's bytes.

    Raises `InvalidFileError` if they violate its schema.
    """
    data = canonical_json(document)
    read_own_file(data, Features)
    return data
