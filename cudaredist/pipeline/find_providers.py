"""which: who provides a file or a soname, from features, and from the cache for any file."""

import posixpath
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError, UsageError
from cudaredist.features.archive_tree import build_tree
from cudaredist.features.placement import place_all
from cudaredist.features.wheel import as_redistributable
from cudaredist.manifests.manifest_values import Archive
from cudaredist.pipeline.facts_cache import known_facts
from cudaredist.pipeline.read_data import held_features, held_manifest, require_manifests
from cudaredist.pipeline.selection import Selection
from cudaredist.primitives import Version
from cudaredist.reports.answer_reports import WhichHit, WhichReport
from cudaredist.schema.base import OutputName
from cudaredist.schema.features import ExaminedArchive
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store


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
    that is held is meant. Raises `UsageError` where nothing is held, or no release of CUDA is
    meant, and `UnknownNameError` for a platform that nothing held is for.
    """
    hits: list[WhichHit] = []
    unknown = 0
    platforms: set[str] = set()
    held = require_manifests(store)
    for redist in redists or held:
        labels = store.manifests(redist).labels()
        if cuda is not None and redist == "cuda":
            labels = _chosen(cuda, labels)
        for label in labels:
            known = _features(store, redist, label)
            for archive in held_manifest(store, redist, label).archives:
                platforms.add(archive.platform)
                if platform is not None and archive.platform != platform:
                    continue
                examined = known.get((archive.package, archive.sha256 or ""))
                found = dict(_in_features(name, examined)) if examined else {}
                cached = _in_cache(name, archive, cache)
                unknown += cached is None
                hits += (
                    WhichHit(
                        redist=redist,
                        label=str(label),
                        package=archive.package,
                        version=str(archive.version),
                        platform=archive.platform,
                        variant=archive.variant,
                        path=path,
                        output=output,
                    )
                    for path, output in sorted((found | (cached or {})).items())
                )
    if platform is not None and platform not in platforms:
        raise UnknownNameError("platform of what is held", platform, platforms)
    return WhichReport(
        name=name,
        hits=tuple(hits),
        unknown=unknown,
        exit_code=EXIT_OK if hits else EXIT_FINDINGS,
    )


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
