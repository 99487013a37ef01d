"""What a run of process-manifests is about: manifests held, archives chosen, what is known of each.

An archive is worked on once, however many manifests name it. What was found is taken, in this
order, from the cache of features, from the cache of facts (the rules are applied again), and from
the feature file that is there, if it was made by the same rules.
"""

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from cudaredist.errors import InvalidFileError, UnknownNameError
from cudaredist.features import FACTS_SCHEMA, RULES, derive, facts_from_bytes
from cudaredist.jsontext import canonical_json
from cudaredist.manifests import Archive, Manifest
from cudaredist.pipeline.examine import Wanted
from cudaredist.pipeline.selection import redist_at
from cudaredist.primitives import Version
from cudaredist.redists import Redist
from cudaredist.reports import ArchivePlace
from cudaredist.schema import FILE_KINDS, ArchiveFeatures, read_own_file
from cudaredist.store import Cache, FeatureFolder, ManifestFolder, Store

Document: TypeAlias = dict[str, Any]
"""A part of a feature file as plain JSON values."""

FACTS_KIND = f"facts/{FACTS_SCHEMA}"
FEATURES_KIND = f"features/{FACTS_SCHEMA}.{RULES}"

EXCLUDED = "excluded by "
"""How the reason begins that stands for a choice of the run, which says nothing of the archive."""

_ON_PLATFORM = " archives do not hold"
"""How a note ends that is about the platform, and not the archive alone."""

_MACHINES = {
    "linux-x86_64": "x86_64",
    "linux-sbsa": "aarch64",
    "linux-aarch64": "aarch64",
    "linux-ppc64le": "ppc64le",
    "windows-x86_64": "x86_64",
    "windows-arm64": "aarch64",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureTarget:
    """One redistributable of a run: where its manifests are, and where its features go."""

    redist: Redist
    manifests: ManifestFolder
    features: FeatureFolder
    folders: tuple[str, ...]
    """Folders under a source's root that archives' paths are relative to."""


def in_store(store: Store, redists: Iterable[Redist]) -> tuple[FeatureTarget, ...]:
    """Return the redistributables of a data folder."""
    return tuple(
        FeatureTarget(
            redist=redist,
            manifests=store.manifests(redist.name),
            features=store.features(redist.name),
            folders=redist.archive_folders,
        )
        for redist in redists
    )


def in_folder(url: str, folder: Path) -> tuple[FeatureTarget, ...]:
    """Return a plain folder of manifests whose archives lie under one address."""
    redist = redist_at(url)
    return (
        FeatureTarget(
            redist=redist,
            manifests=ManifestFolder(folder),
            features=FeatureFolder(folder),
            folders=redist.archive_folders,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which archives of the manifests are meant; nothing given means all."""

    packages: frozenset[str] = frozenset()
    platforms: frozenset[str] = frozenset()
    variants: frozenset[str] = frozenset()

    def excluding(self, archive: Archive) -> str | None:
        """Return the option that leaves an archive out; None where it is meant."""
        if self.packages and archive.package not in self.packages:
            return "--package"
        if self.platforms and archive.platform not in self.platforms:
            return "--platform"
        if self.variants and archive.variant not in self.variants:
            return "--variant"
        return None

    def check(self, archives: Iterable[Archive]) -> None:
        """Raise `UnknownNameError` for a name that no archive of the run has."""
        known = list(archives)
        for what, given, present in (
            ("package", self.packages, {archive.package for archive in known}),
            ("platform", self.platforms, {archive.platform for archive in known}),
            ("variant", self.variants, {archive.variant for archive in known} - {None}),
        ):
            for name in sorted(given - present):
                raise UnknownNameError(what, name, (text for text in present if text))


@dataclass(slots=True, kw_only=True)
class Subject:
    """One manifest of a run, and what is found of its archives as the run goes on."""

    target: FeatureTarget
    label: Version
    manifest: Manifest
    manifest_sha256: str
    existing: Document | None
    """The feature file that is there, if it was made by the rules of today."""
    existing_data: bytes | None
    """The bytes of the feature file that is there, whoever made it."""
    warnings: tuple[str, ...] = ()
    found: dict[str, Document] = field(default_factory=dict)
    """Features by the key of an archive."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why an archive was not examined, by its key."""

    @property
    def name(self) -> str:
        """The redistributable and its label, for messages."""
        return f"{self.target.redist.name} {self.label}"

    def key(self, archive: Archive) -> str:
        """Return an archive's identity: its hash, or where none is stated its place."""
        return archive.sha256 or f"{self.target.redist.name}/{archive.relative_path}"

    def place(self, archive: Archive) -> ArchivePlace:
        """Return where an archive stands, for reports."""
        return ArchivePlace(
            redist=self.target.redist.name,
            label=str(self.label),
            package=archive.package,
            version=str(archive.version),
            platform=archive.platform,
            variant=archive.variant,
            size=archive.size,
        )

    def wanted(self, archive: Archive) -> Wanted:
        """Return what a worker has to know of an archive."""
        return Wanted(
            name=posixpath.basename(archive.relative_path),
            paths=tuple(self._paths(archive.relative_path)),
            sha256=archive.sha256,
            size=archive.size,
        )

    def _paths(self, relative: str) -> Iterator[str]:
        for folder in self.target.folders:
            path = posixpath.normpath(posixpath.join(folder, relative))
            if not path.startswith("../"):
                yield path

    def document(self) -> Document:
        """Return the feature file as far as it is known."""
        earlier = _entries(self.existing)
        packages: Document = {}
        for package in self.manifest.packages:
            has_several = len(package.versions) > 1
            archives = [
                self._entry(archive, earlier, has_several=has_several)
                for archive in package.archives
            ]
            archives.sort(
                key=lambda e: (
                    (e["platform"], e["variant"] or "", Version.parse(e["version"]))
                    if has_several
                    else (e["platform"], e["variant"] or "")
                )
            )
            packages[package.name] = {
                "version": None if has_several else str(package.versions[0]),
                "archives": archives,
            }
        return {
            "schema_version": 1,
            "redist": self.target.redist.name,
            "label": str(self.label),
            "manifest_sha256": self.manifest_sha256,
            "rules": RULES,
            "packages": packages,
        }

    def _entry(
        self, archive: Archive, earlier: Mapping[object, Document], *, has_several: bool
    ) -> Document:
        entry: Document = {
            "platform": archive.platform,
            "variant": archive.variant,
            "sha256": archive.sha256,
        }
        if has_several:
            entry["version"] = str(archive.version)
        key = self.key(archive)
        features = self.found.get(key)
        if features is not None:
            entry |= features | {"status": "examined"}
            note = _machine_note(archive.platform, features["machine"])
            if note:
                entry["notes"] = [*features["notes"], note]
            if archive.sha256 is None:
                entry["verified"] = False
            return entry
        reason = self.reasons.get(key, EXCLUDED)
        kept = earlier.get(_identity(archive.package, entry))
        if kept is not None and (kept["status"] == "examined" or reason.startswith(EXCLUDED)):
            return kept
        return entry | {"status": "not-examined", "reason": reason}

    def to_bytes(self) -> bytes:
        """Return the feature file's bytes; raises `InvalidFileError` where they break its schema.

        Bytes that are there already need no proof.
        """
        data = canonical_json(self.document())
        if data != self.existing_data:
            read_own_file(data, FILE_KINDS["features"])
        return data


def _identity(package: str, entry: Document) -> object:
    return (
        package,
        entry["platform"],
        entry["variant"],
        entry["sha256"],
        entry.get("version"),
    )


def _entries(document: Document | None) -> dict[object, Document]:
    if document is None:
        return {}
    return {
        _identity(package, entry): entry
        for package, features in document["packages"].items()
        for entry in features["archives"]
    }


def known_before(document: Document | None) -> dict[str, Document]:
    """Return the features in a feature file by the hash of their archive."""
    return {
        entry["sha256"]: {
            **{name: entry[name] for name in ArchiveFeatures.model_fields},
            "notes": [note for note in entry["notes"] if not note.endswith(_ON_PLATFORM)],
        }
        for entry in _entries(document).values()
        if entry["status"] == "examined" and entry["sha256"] is not None
    }


def _machine_note(platform: str, machine: str | None) -> str | None:
    expected = _MACHINES.get(platform)
    if machine is None or expected is None or machine == expected:
        return None
    return f"binaries for {machine}, which {platform}{_ON_PLATFORM}"


def read_existing(data: bytes | None) -> Document | None:
    """Return a feature file that can be built upon: valid, and made by the rules of today."""
    if data is None:
        return None
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.get("rules") != RULES:
            return None
        read_own_file(data, FILE_KINDS["features"])
    except (ValueError, RecursionError, InvalidFileError):
        return None
    return document


def recalled(cache: Cache, sha256: str | None) -> Document | None:
    """Return what the cache knows of an archive's features; the rules are applied again if due."""
    if sha256 is None:
        return None
    data = cache.get(FEATURES_KIND, sha256)
    if data is not None:
        try:
            return _checked(data)
        except ValueError:
            pass
    kept = cache.get(FACTS_KIND, sha256)
    facts = None if kept is None else facts_from_bytes(kept)
    return None if facts is None else remember_features(cache, sha256, derive(facts))


def _checked(data: bytes) -> Document:
    """Return cached features as plain values, if they are whole."""
    document = json.loads(data)
    if not isinstance(document, dict) or document.keys() != ArchiveFeatures.model_fields.keys():
        raise ValueError("not what was kept")
    return document


def remember_features(cache: Cache, sha256: str | None, features: ArchiveFeatures) -> Document:
    """Keep derived features, unless they are of an archive that was not proved, and return them."""
    document: Document = features.model_dump(mode="json")
    if sha256 is not None:
        data = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
        cache.put(FEATURES_KIND, sha256, data)
    return document
