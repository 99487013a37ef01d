"""Select the manifests and archives of a run."""

import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cudaredist.errors import CudaRedistError, IncompleteError, UnknownNameError, UsageError
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.lock import LockEntry
from cudaredist.formats.outcomes import FeatureOutcome
from cudaredist.formats.registry import parse_own_json
from cudaredist.hints import again, command_line
from cudaredist.manifests.manifest_values import Archive, Manifest
from cudaredist.primitives import Version, find_release, resolved_path, sha256_of
from cudaredist.redists import NVIDIA_BASE, Redist
from cudaredist.store.data_folder import FeatureFolder, ManifestFolder, Store
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.selection import Selection, redist_at
from cudaredist.store.upstream import validate_manifest
from cudaredist.words import shortened

_has_usual_end = re.compile(r"(.*[^:/])/((?:compute|release)/[^/]+/redist)").fullmatch


class FeatureTarget(NamedTuple):
    """A redistributable with its manifest folder, feature folder and sources."""

    redist: Redist
    manifests: ManifestFolder
    features: FeatureFolder
    folders: tuple[str, ...]
    """Folders below a source's root. The archives' paths are relative to them."""
    bases: tuple[str, ...]
    """The sources of its archives, in the order to try."""
    only: tuple[Version, ...] | None = None
    """The labels to process. None: all in the folder."""

    def labels(self) -> tuple[Version, ...]:
        """Return the labels of its manifests, in ascending order."""
        return self.manifests.labels() if self.only is None else tuple(sorted(self.only))


def targets_in_store(
    store: Store, redists: Iterable[Redist], bases: Iterable[str]
) -> tuple[FeatureTarget, ...]:
    """Return the redistributables of a data folder with their sources.

    If NVIDIA's server is a source, NVIDIA's other address of a redistributable is one too. A user's
    own packages come from the address in `policy/fixups.json`, never from NVIDIA's server.
    """
    common = tuple(bases)
    own_urls = _own_urls(store)
    targets = []
    for redist in redists:
        folders = redist.archive_folders
        bases_of_redist = common
        if redist.name in own_urls:
            folders = (*folders, "")
            others = (base for base in common if base != NVIDIA_BASE)
            bases_of_redist = (*others, own_urls[redist.name])
        elif redist.archive_base is not None and NVIDIA_BASE in common:
            bases_of_redist = (*common, redist.archive_base)
        target = FeatureTarget(
            redist=redist,
            manifests=store.manifests(redist.name),
            features=store.features(redist.name),
            folders=folders,
            bases=bases_of_redist,
        )
        targets.append(target)
    return tuple(targets)


def limited_to(
    targets: Iterable[FeatureTarget], releases: Collection[tuple[str, Version]]
) -> list[FeatureTarget]:
    """Limit targets to releases, and leave out those without manifests of them."""
    limited: list[FeatureTarget] = []
    for target in targets:
        name = target.redist.name
        labels = tuple(label for label in target.labels() if (name, label) in releases)
        if labels:
            limited.append(target._replace(only=labels))
    return limited


def _own_urls(store: Store) -> Mapping[str, str]:
    """Return the addresses in the data folder's fixups, by redistributable."""
    data = store.own_policy("fixups")
    document = None if data is None else parse_own_json(data, "policy file (fixups)")
    urls = document.get("urls") if isinstance(document, dict) else None
    return urls if isinstance(urls, dict) else {}


def targets_in_folder(url: str, folder: Path) -> tuple[FeatureTarget, ...]:
    """Return a plain folder of manifests with one source of archives.

    If the address ends with `compute/<name>/redist` or `release/<name>/redist`, the part before
    that is the root of the source, because some archives' paths lead to it with `..`.
    """
    redist = redist_at(url)
    usual = _has_usual_end(url.rstrip("/"))
    base, below = (usual[1], usual[2]) if usual else (url, "")
    manifests, features = ManifestFolder(folder), FeatureFolder(folder)
    return (FeatureTarget(redist, manifests, features, (below,), (base,)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter for archives. An empty set selects all."""

    names: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The selected names by field of an archive."""

    def excluding(self, archive: Archive) -> str | None:
        """Return the option that excludes an archive, or None."""
        for option, names in self.names.items():
            if names and getattr(archive, option) not in names:
                return f"--{option}"
        return None

    def check(self, archives: Iterable[Archive]) -> None:
        """Raise `UsageError` for a name without archives in the run."""
        known = list(archives)
        for option, names in self.names.items():
            present = {getattr(archive, option) for archive in known} - {None}
            if names and not present:
                message = f"no selected archive has a {option}"
                raise UsageError(message, hint=f"run `{again(without=[f'--{option}'])}`")
            for name in sorted(names - present):
                raise UnknownNameError(option, name, present)


class LocalManifest(NamedTuple):
    """A manifest in a data folder."""

    target: FeatureTarget
    label: Version
    manifest: Manifest
    sha256: str
    warnings: tuple[str, ...] = ()
    entry: LockEntry | None = None
    """The lock's entry."""

    @property
    def name(self) -> str:
        """The redistributable and its label, for messages."""
        return f"{self.target.redist.name} {self.label}"

    def key(self, archive: Archive) -> str:
        """Return an archive's hash, or its path without one."""
        return archive.sha256 or f"{self.target.redist.name}/{archive.relative_path}"

    def request(self, archive: Archive) -> ArchiveRequest:
        """Return the request to read an archive."""
        name, paths = posixpath.basename(archive.relative_path), tuple(self.paths(archive))
        return ArchiveRequest(name, paths, archive.sha256, archive.size, self.target.bases)

    def paths(self, archive: Archive) -> Iterator[str]:
        """Yield the paths of an archive to try in each source.

        Paths outside the root are left out.
        """
        for folder in self.folders:
            path = resolved_path(folder, archive.relative_path)
            if path is not None:
                yield path

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that archives' paths are relative to, below a source's root."""
        address = None if self.entry is None else self.entry.address
        return self.target.folders if address is None else (posixpath.dirname(address),)

    @property
    def is_preview(self) -> bool:
        """Whether it is of an early-access release."""
        return self.target.manifests.is_preview(self.label)


class LocalManifests(NamedTuple):
    """The manifests of a run, readable or not."""

    readable: tuple[LocalManifest, ...]
    broken: tuple[FeatureOutcome, ...]


def read_local_manifests(
    targets: Sequence[FeatureTarget], selection: Selection, *, strict: bool = False
) -> LocalManifests:
    """Read the selected manifests.

    An unreadable manifest becomes a failed outcome. Raises `UsageError` if the folder has no
    manifests, or none with a label that the user named.
    """
    labels = {target.redist.name: target.labels() for target in targets}
    folder = os.path.commonpath([target.manifests.path for target in targets])
    _require(labels, selection, folder)
    selected = {
        target.redist.name: selection.of(labels[target.redist.name], target.manifests.is_preview)
        for target in targets
    }
    with_previews = selection._replace(pre=True)
    if not any(selected.values()) and any(map(with_previews.of, labels.values())):
        message = f"{folder} has only early-access releases of this selection"
        raise UsageError(message, hint=f"run `{again('--pre')}`")
    readable: list[LocalManifest] = []
    broken: list[FeatureOutcome] = []
    for target in targets:
        name = target.redist.name
        for label in selected[name]:
            try:
                readable.append(read_release(target, label, strict=strict))
            except CudaRedistError as error:
                failure = ErrorReport.of(error)
                broken.append(
                    FeatureOutcome(redist=name, release=str(label), status="failed", error=failure)
                )
    return LocalManifests(tuple(readable), tuple(broken))


def _require(labels: Mapping[str, Sequence[Version]], selection: Selection, folder: str) -> None:
    if not any(labels.values()):
        message = f"no local manifests of any known redistributable in {folder}"
        raise UsageError(message, hint=f"run `{command_line('download-manifests')}`")
    for text in selection.named:
        if not any(find_release(text, of_redist) for of_redist in labels.values()):
            hint = f"run `{command_line('download-manifests', version=text)}`"
            raise UsageError(f"no local manifest {text} in {folder}", hint=hint)


def read_release(target: FeatureTarget, label: Version, *, strict: bool = False) -> LocalManifest:
    """Read the manifest of a release.

    Raises `IncompleteError` if it was removed during the run, and `InvalidManifestError`.
    """
    data = target.manifests.read(label)
    if data is None:
        path = target.manifests.path_of(label)
        raise IncompleteError(f"{path}: removed during the run", hint=f"run `{again()}`")
    return parse_local(target, label, data, strict=strict)


def parse_local(
    target: FeatureTarget, label: Version, data: bytes, *, strict: bool = False
) -> LocalManifest:
    """Return a manifest with these bytes. Raises `InvalidManifestError`."""
    manifest, warnings = validate_manifest(data, label, target.redist, strict=strict)
    entry = target.manifests.recorded(label)
    return LocalManifest(target, label, manifest, sha256_of(data), shortened(warnings), entry)
