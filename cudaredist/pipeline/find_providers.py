"""which: the packages that provide a file or a soname, by feature files."""

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    UnknownNameError,
    UsageError,
)
from cudaredist.packagesets.libraries import find_external
from cudaredist.pipeline.read_data import held_features, held_manifest, require_manifests
from cudaredist.pipeline.selection import Selection
from cudaredist.primitives import Version, natural_order
from cudaredist.reports.answer_reports import OutsideProvider, WhichHit, WhichReport
from cudaredist.schema.base import OutputName
from cudaredist.schema.features import ExaminedArchive
from cudaredist.schema.policy import LibraryPolicy
from cudaredist.schema.registry import read_own_file
from cudaredist.store.data_folder import Store, shipped_data

_library = re.compile(r"\.(?:so|dll)(?:$|[.*?\[])", re.IGNORECASE)


def find_providers(
    name: str,
    store: Store,
    *,
    redists: Sequence[str] = (),
    cuda: Selection | None = None,
    platform: str | None = None,
) -> WhichReport:
    """Return which packages of the releases held provide a soname or a file.

    A name is a soname, a file's name or its path's end; `*` stands for any characters. `cuda`
    leaves out other releases of CUDA, and nothing of other redistributables. Without `redists` all
    that is held is meant. If nothing is found and archives with unknown files may have it, the exit
    code is 3. Raises `UsageError` where nothing is held, or no release of CUDA is
    meant, and `UnknownNameError` for a platform that nothing held is for.
    """
    search = _Search(name, store, platform)
    for redist in redists or require_manifests(store):
        labels = store.manifests(redist).labels()
        if cuda is not None and redist == "cuda":
            labels = _chosen(cuda, labels)
        for label in labels:
            search.add_release(redist, label)
    if platform is not None and platform not in search.platforms:
        raise UnknownNameError("platform of what is held", platform, search.platforms)
    outside = _outside(name, store)
    code = EXIT_OK
    if not search.hits and outside is None:
        # Of examined archives, all libraries are known.
        lacking = search.unexamined if _library.search(name) else search.unknown
        code = EXIT_INCOMPLETE if lacking else EXIT_FINDINGS
    return WhichReport(
        name=name,
        hits=tuple(search.hits),
        outside=outside,
        unknown=search.unknown,
        suggestions=() if code == EXIT_OK else _similar(name, search.sonames),
        hint=_process_command(store, redists, platform) if search.unknown else None,
        exit_code=code,
    )


_Features: TypeAlias = tuple[ExaminedArchive, Mapping[str, OutputName] | None]
"""The features of an archive, and its files; None: unknown."""


@dataclass
class _Search:
    """One name, and what the releases searched so far provide of it."""

    name: str
    store: Store
    platform: str | None
    hits: list[WhichHit] = field(default_factory=list)
    sonames: set[str] = field(default_factory=set)
    platforms: set[str] = field(default_factory=set)
    unknown: int = 0
    """Archives with unknown files."""
    unexamined: int = 0
    """Of these, the ones without features."""

    def add_release(self, redist: str, label: Version) -> None:
        """Search the archives of a release."""
        known = _features(self.store, redist, label)
        for archive in held_manifest(self.store, redist, label).archives:
            self.platforms.add(archive.platform)
            if self.platform in {None, archive.platform}:
                features = known.get((archive.package, archive.sha256 or ""))
                self.hits += (
                    WhichHit.of(redist, label, archive, path=path, output=output)
                    for path, output in sorted(self._paths(features).items())
                )

    def _paths(self, features: _Features | None) -> dict[str, OutputName]:
        """Return the matching files of an archive, with the output of each."""
        if features is None:
            self.unknown += 1
            self.unexamined += 1
            return {}
        examined, files = features
        self.sonames |= {library.soname or "" for library in examined.libraries}
        self.unknown += files is None or examined.unlisted > 0
        listed = ((path, output) for path, output in (files or {}).items() if self._fits(path))
        return {**dict(listed), **dict(self._binaries(examined))}

    def _binaries(self, examined: ExaminedArchive) -> Iterator[tuple[str, OutputName]]:
        for library in examined.libraries:
            if any(map(self._fits, (library.soname or "", library.path, *library.links))):
                yield library.path, library.output
        for program in examined.programs:
            if self._fits(program.path):
                yield program.path, program.output

    def _fits(self, path: str) -> bool:
        """Check if a file is meant: by its name, its path, or its path's end, as in `#include`."""
        is_end = "/" in self.name and fnmatchcase(path, f"*/{self.name}")
        name = posixpath.basename(path)
        return is_end or fnmatchcase(path, self.name) or fnmatchcase(name, self.name)


def _outside(name: str, store: Store) -> OutsideProvider | None:
    """Return policy's provider of a library that no redistributable contains."""
    policy = read_own_file(store.read_policy("libraries"), LibraryPolicy)
    entry = find_external(posixpath.basename(name), policy)
    if entry is None:
        return None
    return OutsideProvider(owner=entry.owner, provider=entry.provider, reason=entry.reason)


def _similar(name: str, sonames: Collection[str]) -> tuple[str, ...]:
    """Return the sonames that begin with a name, else those that look like it."""
    begin = posixpath.basename(name).lower()
    found = [soname for soname in sonames if soname.lower().startswith(f"{begin}.")]
    return tuple(sorted(found or get_close_matches(begin, sonames, cutoff=0.7), key=natural_order))


def _process_command(store: Store, redists: Sequence[str], platform: str | None) -> str:
    words = ["cudaredist", "process-manifests"]
    words += ["--channel", store.channel] if store.channel != "redist" else []
    is_default = store.root in {Path("data"), shipped_data()}
    words += [] if is_default else ["--data-dir", str(store.root)]
    for redist in redists:
        words += ["--redist", redist]
    words += ["--platform", platform] if platform else []
    return shlex.join(words)


def _chosen(cuda: Selection, labels: Sequence[Version]) -> tuple[Version, ...]:
    chosen = cuda.of(labels)
    if not chosen:
        held = ", ".join(map(str, labels)) or "none"
        raise UsageError(f"no CUDA release {cuda.min_version} is held", hint=f"held: {held}")
    return chosen


def _features(store: Store, redist: str, label: Version) -> dict[tuple[str, str], _Features]:
    features = held_features(store, redist, label)
    return {
        (name, archive.sha256 or ""): (archive, package.files_of(position))
        for name, package in (features.packages.items() if features else ())
        for position, archive in enumerate(package.archives)
        if isinstance(archive, ExaminedArchive)
    }
