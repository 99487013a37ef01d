"""which: who provides a file or a soname, from features, and from the cache for any file."""

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    UnknownNameError,
    UsageError,
)
from cudaredist.features.archive_tree import build_tree
from cudaredist.features.placement import place_all
from cudaredist.features.wheel import as_redistributable
from cudaredist.manifests.manifest_values import Archive
from cudaredist.packagesets.libraries import find_external
from cudaredist.pipeline.facts_cache import known_facts
from cudaredist.pipeline.read_data import held_features, held_manifest, require_manifests
from cudaredist.pipeline.selection import Selection
from cudaredist.primitives import Version, natural_order
from cudaredist.reports.answer_reports import OutsideProvider, WhichHit, WhichReport
from cudaredist.schema.base import OutputName
from cudaredist.schema.features import ExaminedArchive
from cudaredist.schema.policy import LibraryPolicy
from cudaredist.schema.registry import read_own_file
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store

_library = re.compile(r"\.(?:so|dll)(?:$|[.*?\[])", re.IGNORECASE)


def find_providers(
    name: str,
    store: Store,
    cache: Cache,
    *,
    redists: Sequence[str] = (),
    cuda: Selection | None = None,
    platform: str | None = None,
) -> WhichReport:
    """Return which packages of the releases held provide a soname or a file.

    A name is a soname, a file's name or its path's end; `*` stands for any characters. Libraries
    and programs are found by the features, other files where the cache knows the archive. `cuda`
    leaves out other releases of CUDA, and nothing of other redistributables. Without `redists` all
    that is held is meant. If nothing is found and archives are unknown that may have it, the exit
    code is 3. Raises `UsageError` where nothing is held, or no release of CUDA is
    meant, and `UnknownNameError` for a platform that nothing held is for.
    """
    search = _Search(name, store, cache, platform)
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
        hint=_fill_command(store, redists, platform) if search.unknown else None,
        exit_code=code,
    )


@dataclass
class _Search:
    """One name, and what the releases searched so far provide of it."""

    name: str
    store: Store
    cache: Cache
    platform: str | None
    hits: list[WhichHit] = field(default_factory=list)
    sonames: set[str] = field(default_factory=set)
    platforms: set[str] = field(default_factory=set)
    unknown: int = 0
    """Archives that are not in the cache."""
    unexamined: int = 0
    """Of these, the ones without features."""

    def add_release(self, redist: str, label: Version) -> None:
        """Search the archives of a release."""
        known = _features(self.store, redist, label)
        for archive in held_manifest(self.store, redist, label).archives:
            self.platforms.add(archive.platform)
            if self.platform in {None, archive.platform}:
                examined = known.get((archive.package, archive.sha256 or ""))
                paths = self._paths(archive, examined)
                self.hits += (
                    WhichHit.of(redist, label, archive, path=path, output=output)
                    for path, output in sorted(paths.items())
                )

    def _paths(self, archive: Archive, examined: ExaminedArchive | None) -> dict[str, OutputName]:
        """Return the matching files of an archive, with the output of each."""
        found: dict[str, OutputName] = {}
        if examined is not None:
            found |= _in_features(self.name, examined)
            self.sonames |= {library.soname or "" for library in examined.libraries}
        cached = _in_cache(self.name, archive, self.cache)
        if cached is None:
            self.unknown += 1
            self.unexamined += examined is None
        return found | (cached or {})


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


def _fill_command(store: Store, redists: Sequence[str], platform: str | None) -> str:
    words = ["cudaredist", "process-manifests", "--fill-cache"]
    words += ["--channel", store.channel] if store.channel != "redist" else []
    root = store.manifest_root
    words += ["--data-dir", str(root)] if root != Path("data") else []
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


def _features(store: Store, redist: str, label: Version) -> dict[tuple[str, str], ExaminedArchive]:
    features = held_features(store, redist, label)
    return {
        (name, archive.sha256 or ""): archive
        for name, package in (features.packages.items() if features else ())
        for archive in package.archives
        if isinstance(archive, ExaminedArchive)
    }


def _in_features(name: str, examined: ExaminedArchive) -> Iterator[tuple[str, OutputName]]:
    for library in examined.libraries:
        if any(_fits(name, one) for one in (library.soname or "", library.path, *library.links)):
            yield library.path, library.output
    for program in examined.programs:
        if _fits(name, program.path):
            yield program.path, program.output


def _in_cache(name: str, archive: Archive, cache: Cache) -> dict[str, OutputName] | None:
    """Return the files of an archive with that name; None where the cache does not know it."""
    facts = known_facts(cache, archive.sha256)
    if facts is None:
        return None
    members, _ = as_redistributable(facts.members)
    placed = place_all(build_tree(members).files)
    return {path: output for path, (_, output) in placed.items() if _fits(name, path)}


def _fits(name: str, path: str) -> bool:
    """Say whether a file is meant: by its name, its path, or its path's end, as in `#include`."""
    is_end = "/" in name and fnmatchcase(path, f"*/{name}")
    return is_end or fnmatchcase(path, name) or fnmatchcase(posixpath.basename(path), name)
