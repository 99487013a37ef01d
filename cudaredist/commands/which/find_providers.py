"""which: find the packages that provide a file or a soname."""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import translate
from typing import TypeAlias

from cudaredist.commands.which.report import OutsideProvider, WhichHit, WhichReport
from cudaredist.errors import EXIT_FINDINGS, EXIT_INCOMPLETE, EXIT_OK, UnknownNameError
from cudaredist.formats.base import OutputName
from cudaredist.formats.features import ExaminedArchive
from cudaredist.formats.policy import LibraryPolicy, OutputPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version, natural_order
from cudaredist.redists import CUDA
from cudaredist.sets.libraries import find_external
from cudaredist.sets.outputs import is_for_other_cuda, resolve, split_outputs
from cudaredist.sets.usable import UsableWithCuda
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import (
    examined_archives,
    load_features,
    load_manifest,
    process_command,
    require_manifests,
)

_library = re.compile(r"\.(?:so|dll)(?:$|[.*?\[])", re.IGNORECASE)


def find_providers(
    name: str,
    store: Store,
    *,
    redists: Sequence[str] = (),
    usable: UsableWithCuda | None = None,
    platform: str | None = None,
) -> WhichReport:
    """Return the local packages that provide a soname or a file.

    `name` is a soname, a file name or the end of a path, and `*` matches any characters. `usable`
    limits the archives to those for a CUDA release. Without `redists`, search all. If nothing
    matches, but archives with unknown files may have the file, the exit code is 3. Raises
    `UsageError` without local manifests, and `UnknownNameError` for a platform without local
    archives.
    """
    policy = read_own_file(store.read_policy("outputs"), OutputPolicy)
    search = _Search(_pattern(name), store, platform, usable, policy)
    searched: dict[str, tuple[str, ...]] = {}
    for redist in redists or require_manifests(store):
        labels = store.manifests(redist).labels()
        searched[redist] = tuple(map(str, labels))
        for label in labels:
            search.add_release(redist, label)
    if platform is not None and platform not in search.platforms:
        raise UnknownNameError("platform in the local manifests", platform, search.platforms)
    outside = _outside_provider(name, store)
    code = EXIT_OK
    if not search.hits and outside is None:
        # All libraries of examined archives are known.
        candidates = search.unexamined if _library.search(name) else search.unknown
        code = EXIT_INCOMPLETE if candidates else EXIT_FINDINGS
    return WhichReport(
        name=name,
        cuda=None if usable is None else str(usable.cuda),
        searched=searched,
        hits=tuple(search.hits),
        outside=outside,
        unknown=search.unknown,
        suggestions=() if code == EXIT_OK else _similar(name, search.sonames),
        hint=process_command(store, redists, platform) if search.unknown else None,
        exit_code=code,
    )


_Features: TypeAlias = tuple[ExaminedArchive, Mapping[str, OutputName] | None]
"""The features of an archive, and its files (None if they are unknown)."""


@dataclass
class _Search:
    """A search for a name, and the matches in the releases so far."""

    pattern: re.Pattern[str]
    store: Store
    platform: str | None
    usable: UsableWithCuda | None
    policy: OutputPolicy
    hits: list[WhichHit] = field(default_factory=list)
    sonames: set[str] = field(default_factory=set)
    platforms: set[str] = field(default_factory=set)
    unknown: int = 0
    """Archives with unknown files."""
    unexamined: int = 0
    """Archives without features."""

    def add_release(self, redist: str, label: Version) -> None:
        """Search the archives of a release."""
        if self.usable is not None and redist == CUDA and label != self.usable.cuda:
            return
        known = _features(self.store, redist, label)
        for archive in load_manifest(self.store, redist, label).archives:
            self.platforms.add(archive.platform)
            is_selected = self.platform in {None, archive.platform}
            if is_selected and (self.usable is None or self.usable.has(redist, label, *archive.id)):
                features = known.get((archive.package, archive.sha256))
                self.hits += (
                    WhichHit.of(redist, label, archive, path=path, output=output)
                    for path, output in sorted(self._paths(archive, features).items())
                )

    def _paths(self, archive: Archive, features: _Features | None) -> dict[str, OutputName | None]:
        """Return the matching files of an archive, with the output of each in package sets."""
        if features is None:
            self.unknown += 1
            self.unexamined += 1
            return {}
        examined, files = features
        self.sonames |= {library.soname or "" for library in examined.libraries}
        self.unknown += files is None or examined.unlisted > 0
        listed = (item for item in (files or {}).items() if self.pattern.match(item[0]))
        paths = {**dict(listed), **dict(self._binaries(examined))}
        split = split_outputs(archive.package, archive.version, examined, None, self.policy)
        return {
            path: None if split.drops(path) else resolve((output,), split.outputs)
            for path, output in paths.items()
            if self.usable is None or not is_for_other_cuda(path, examined, self.usable.cuda)
        }

    def _binaries(self, examined: ExaminedArchive) -> Iterator[tuple[str, OutputName]]:
        for library in examined.libraries:
            if any(map(self.pattern.match, (library.soname or "", library.path, *library.links))):
                yield library.path, library.output
        for program in examined.programs:
            if self.pattern.match(program.path):
                yield program.path, program.output


def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of files that match by name, by path or, with a `/`, by a path's end."""
    start = ".*/" if "/" in name else r".*/(?=[^/]*\Z)"
    return re.compile(f"(?s:{start})?{translate(name)}")


def _outside_provider(name: str, store: Store) -> OutsideProvider | None:
    """Return the policy's provider of a library outside all redistributables."""
    policy = read_own_file(store.read_policy("libraries"), LibraryPolicy)
    entry = find_external(posixpath.basename(name), policy)
    if entry is None:
        return None
    return OutsideProvider(owner=entry.owner, provider=entry.provider, reason=entry.reason)


def _similar(name: str, sonames: Collection[str]) -> tuple[str, ...]:
    """Return the sonames that begin with a name, else similar ones."""
    prefix = posixpath.basename(name).lower()
    matches = [soname for soname in sonames if soname.lower().startswith(f"{prefix}.")]
    similar = matches or get_close_matches(prefix, sonames, cutoff=0.7)
    return tuple(sorted(similar, key=natural_order))


def _features(store: Store, redist: str, label: Version) -> dict[tuple[str, str | None], _Features]:
    features = load_features(store, redist, label)
    return {
        (package, archive.sha256): (archive, entry.files_of(position))
        for (package, *_), entry, position, archive in examined_archives(features)
    }
