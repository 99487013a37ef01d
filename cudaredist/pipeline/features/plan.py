"""What a run of process-manifests is about: manifests held, archives chosen, what is known of each.

An archive is worked on once, however many manifests name it. What was found is taken, in this
order, from the cache of features, from the cache of facts (the rules are applied again), and from
the feature file that is there, if it was made by the same rules.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from cudaredist.errors import (
    IncompleteError,
    InvalidFileError,
    Problem,
    UnknownNameError,
)
from cudaredist.features import FACTS_SCHEMA, RULES, Facts, derive, facts_from_bytes
from cudaredist.jsontext import canonical_json
from cudaredist.manifests import Archive, Manifest
from cudaredist.pipeline.features.examine import Wanted
from cudaredist.pipeline.selection import redist_at
from cudaredist.primitives import Version
from cudaredist.redists import NVIDIA_BASE, Redist
from cudaredist.reports import ArchivePlace, ArchiveStatus, ErrorReport
from cudaredist.schema import (
    ArchiveFeatures,
    Features,
    read_own_file,
    validation_problems,
)
from cudaredist.store import Cache, FeatureFolder, ManifestFolder, Store

Document: TypeAlias = dict[str, Any]
"""A part of a feature file as plain JSON values."""

FACTS_KIND = f"facts/{FACTS_SCHEMA}"
FEATURES_KIND = f"features/{FACTS_SCHEMA}.{RULES}"
FILES_KIND = f"files/{FACTS_SCHEMA}.{RULES}"
"""By a manifest's hash, the hash of the feature file that describes all of it."""

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
_PROBLEMS_SHOWN = 5
_USUAL_END = re.compile(r"(.*[^:/])/(compute/[^/]+/redist)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureTarget:
    """One redistributable of a run: where its manifests are, and where its features go."""

    redist: Redist
    manifests: ManifestFolder
    features: FeatureFolder
    folders: tuple[str, ...]
    """Folders under a source's root that archives' paths are relative to."""
    bases: tuple[str, ...]
    """The sources its archives come from, in order."""


def in_store(
    store: Store, redists: Iterable[Redist], bases: Iterable[str]
) -> tuple[FeatureTarget, ...]:
    """Return the redistributables of a data folder, with the sources of their archives.

    Where NVIDIA's own server is one of them, what NVIDIA has elsewhere is looked for there as well.
    """
    common = tuple(bases)
    return tuple(
        FeatureTarget(
            redist=redist,
            manifests=store.manifests(redist.name),
            features=store.features(redist.name),
            folders=redist.archive_folders,
            bases=(*common, redist.archive_base)
            if redist.archive_base is not None and NVIDIA_BASE in common
            else common,
        )
        for redist in redists
    )


def in_folder(url: str, folder: Path) -> tuple[FeatureTarget, ...]:
    """Return a plain folder of manifests whose archives lie under one address.

    Where the address has the usual end, its root is what comes before: some paths lead there.
    """
    redist = redist_at(url)
    usual = _USUAL_END.fullmatch(url.rstrip("/"))
    base, below = (usual[1], usual[2]) if usual else (url, "")
    return (
        FeatureTarget(
            redist=redist,
            manifests=ManifestFolder(folder),
            features=FeatureFolder(folder),
            folders=(below,),
            bases=(base,),
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
class Item:
    """One archive of one manifest in a run, and what became of it so far."""

    archive: Archive
    status: ArchiveStatus
    reason: str | None = None
    """Why it is not examined: the words that the feature file has for it."""
    error: ErrorReport | None = None
    features: Document | None = None
    """What is known, where that stands in no cache."""

    def entry(self, features: Document | None, *, has_several: bool) -> Document:
        """Return what the feature file says of it; `features` is None where nothing is known."""
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
        note = _machine_note(archive.platform, features["machine"])
        if note:
            entry["notes"] = [*features["notes"], note]
        if archive.sha256 is None:
            entry["verified"] = False
        return entry


@dataclass(slots=True, kw_only=True)
class Subject:
    """One manifest of a run, and what is found of its archives as the run goes on."""

    target: FeatureTarget
    label: Version
    manifest: Manifest
    manifest_sha256: str
    warnings: tuple[str, ...] = ()
    items: list[Item] = field(default_factory=list)
    waiting: int = 0
    """Archives that an engine has in hand or still to do."""
    earlier: dict[object, Document] | None = None
    """The entries of the feature file that is there, once they were asked for."""

    def versions_of(self, package: str) -> tuple[Version, ...]:
        """Return the versions that the manifest lists of a package."""
        return next(p.versions for p in self.manifest.packages if p.name == package)

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
            paths=tuple(self.paths(archive)),
            sha256=archive.sha256,
            size=archive.size,
        )

    def paths(self, archive: Archive) -> Iterator[str]:
        """Yield where an archive may lie under a source's root; nothing where that leaves it."""
        for folder in self.target.folders:
            path = posixpath.normpath(posixpath.join(folder, archive.relative_path))
            if not path.startswith("../"):
                yield path

    def read_file(self) -> bytes | None:
        """Return the bytes of the feature file that is there."""
        return self.target.features.read(self.label)

    def document(self, cache: Cache, earlier: Callable[[], Mapping[object, Document]]) -> Document:
        """Return the feature file as far as it is known.

        `earlier` gives the entries of the file that is there: an archive that this run says nothing
        of keeps its own. It is asked only where one is lacking, so that a broken file is simply
        made anew where everything is known.
        """
        entries: dict[str, list[Document]] = {}
        several = {p.name: len(p.versions) > 1 for p in self.manifest.packages}
        for item in self.items:
            package = item.archive.package
            has_several = several[package]
            features = item.features or recalled(cache, item.archive.sha256)
            entry = item.entry(features, has_several=has_several)
            if features is None:
                kept = earlier().get(identity(package, entry))
                is_choice = item.status == "skipped" and (item.reason or "").startswith(EXCLUDED)
                if kept and (kept["status"] == "examined" or is_choice):
                    entry = kept
            entries.setdefault(package, []).append(entry)
        return {
            "schema_version": 1,
            "redist": self.target.redist.name,
            "label": str(self.label),
            "manifest_sha256": self.manifest_sha256,
            "rules": RULES,
            "packages": {
                package.name: {
                    "version": None if several[package.name] else str(package.versions[0]),
                    "archives": sorted(entries.get(package.name, []), key=_order),
                }
                for package in self.manifest.packages
            },
        }


EXCLUDED = "excluded by "
"""How the reason begins that stands for a choice of the run, which says nothing of the archive."""


def _order(entry: Document) -> tuple[str, str, tuple[Version, ...]]:
    version = (Version.parse(entry["version"]),) if "version" in entry else ()
    return entry["platform"], entry["variant"] or "", version


def identity(package: str, entry: Document) -> object:
    """Return what makes an entry of a feature file the same archive's in another one."""
    return (
        package,
        entry["platform"],
        entry["variant"],
        entry["sha256"],
        entry.get("version"),
    )


def entries_of(document: Document) -> dict[object, Document]:
    """Return the entries of a feature file by their identity."""
    return {
        identity(package, entry): entry
        for package, features in document["packages"].items()
        for entry in features["archives"]
    }


def _machine_note(platform: str, machine: str | None) -> str | None:
    expected = _MACHINES.get(platform)
    if machine is None or expected is None or machine == expected:
        return None
    return f"binaries for {machine}, which {platform}{_ON_PLATFORM}"


def earlier_entries(data: bytes | None, name: str) -> dict[object, Document]:
    """Return the entries of the feature file that is there, to be built upon.

    Raises `InvalidFileError` where it is broken or made by newer rules, and `IncompleteError` where
    it was made by older ones: what they say of an archive cannot stand beside what today's say.
    """
    if data is None:
        return {}
    try:
        features = Features.model_validate_json(data)
    except ValidationError as error:
        problems = validation_problems(error)[:_PROBLEMS_SHOWN]
        raise InvalidFileError(f"feature file, that of {name}", problems) from None
    if features.rules > RULES:
        raise InvalidFileError(
            f"feature file, that of {name}",
            [Problem("rules", f"made by newer rules ({features.rules}, not {RULES})")],
        )
    if features.rules < RULES:
        raise IncompleteError(
            f"{name}: its feature file was made by older rules, and the cache lacks some archives",
            hint="process the whole manifest, without --package, --platform and --variant",
        )
    return entries_of(json.loads(data))


def features_in(entry: Document) -> Document:
    """Return the features in an entry of a feature file, without what is about its place."""
    return {
        **{name: entry[name] for name in ArchiveFeatures.model_fields},
        "notes": [note for note in entry["notes"] if not note.endswith(_ON_PLATFORM)],
    }


def recalled(cache: Cache, sha256: str | None) -> Document | None:
    """Return what the cache knows of an archive's features; the rules are applied again if due."""
    if sha256 is None:
        return None
    data = cache.get(FEATURES_KIND, sha256)
    if data is not None:
        document: Document = json.loads(data)
        return document
    facts = known_facts(cache, sha256)
    return None if facts is None else remember_features(cache, sha256, derive(facts))


def known_facts(cache: Cache, sha256: str | None) -> Facts | None:
    """Return the facts of an archive; None where the cache does not know it."""
    data = None if sha256 is None else cache.get(FACTS_KIND, sha256)
    return None if data is None else facts_from_bytes(data)


def remember_features(cache: Cache, sha256: str | None, features: ArchiveFeatures) -> Document:
    """Keep derived features, unless they are of an archive that was not proved, and return them."""
    document: Document = features.model_dump(mode="json")
    if sha256 is not None:
        data = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
        cache.put(FEATURES_KIND, sha256, data)
    return document


def checked_bytes(document: Document) -> bytes:
    """Return a feature file's bytes; raises `InvalidFileError` where they break its schema."""
    data = canonical_json(document)
    read_own_file(data, Features)
    return data
