"""explain gpu: the newest releases that run on a GPU together."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter

from cudaredist.commands.explain.coverage_history import ArchiveCoverage
from cudaredist.commands.explain.newest_releases import NewestReleases
from cudaredist.commands.explain.report import NewestTogether
from cudaredist.errors import CudaRedistError
from cudaredist.formats.coverage import Coverage
from cudaredist.formats.tables import CapabilityEntry, Gpus
from cudaredist.primitives import JETSON, ArchiveId, Version
from cudaredist.redists import CUDA, REDISTS
from cudaredist.sets.usable import UsableWithCuda
from cudaredist.store.data_folder import Store
from cudaredist.store.local_manifests import load_manifest
from cudaredist.tables.gpus.gpu_table import fact_of, is_supported

_PACKAGES = {CUDA: "libcublas", "cudnn": "cudnn", "nccl": "nccl", "cutensor": "libcutensor"}
"""The package that decides if a release runs on a GPU. Most programs and libraries use cuBLAS."""
_TITLES = {CUDA: "CUDA", **{name: REDISTS[name].title for name in _PACKAGES if name != CUDA}}
COMMON_PLATFORMS = (
    "linux-x86_64",
    "linux-sbsa",
    "linux-aarch64",
    "windows-x86_64",
    "windows-arm64",
)
"""Platforms, the most common first."""


def newest_together(
    capabilities: Iterable[str], archives: Sequence[ArchiveCoverage], store: Store, gpus: Gpus
) -> Iterator[NewestTogether]:
    """Yield the newest releases that run on each capability's GPUs together."""
    bases = dict.fromkeys(gpus.capabilities[name].base for name in capabilities)
    newest = newest_by_capability(bases, archives, store, gpus)
    yield from (one.report() for one in newest.values())


def newest_by_capability(
    bases: Iterable[str], archives: Sequence[ArchiveCoverage], store: Store, gpus: Gpus
) -> dict[str, NewestReleases]:
    """Return the newest releases that run together, by capability without a letter.

    The newest CUDA release decides, then the newest releases of the others that are usable with it.
    Without releases of CUDA in the feature files, none are known.
    """
    decisive = [one for one in archives if _PACKAGES.get(one.redist) == one.archive.package]
    if not any(one.redist == CUDA for one in decisive):
        return {}
    return {
        base: _newest(base, [one for one in decisive if base in one.by_capability], store, gpus)
        for base in bases
    }


def newest_with_cuda(
    cuda: Version, archives: Iterable[tuple[str, Version, ArchiveId]], store: Store
) -> dict[str, str]:
    """Return the newest usable release of CUDA, cuDNN, NCCL and cuTENSOR, by redistributable.

    `archives` are those of one platform, each with its redistributable and release.
    """
    usable = UsableWithCuda(cuda, store)
    newest: dict[str, Version] = {}
    for redist, label, archive in sorted(archives, key=itemgetter(1), reverse=True):
        is_decisive = _PACKAGES.get(redist) == archive.package
        if is_decisive and redist not in newest and usable.has(redist, label, archive):
            newest[redist] = label
    return {redist: str(newest[redist]) for redist in _PACKAGES if redist in newest}


def _newest(
    name: str, archives: Sequence[ArchiveCoverage], store: Store, gpus: Gpus
) -> NewestReleases:
    entry = gpus.capabilities[name]
    running = [one for one in archives if one.by_capability[name].value in {"native", "ptx"}]
    for platform in COMMON_PLATFORMS:
        here = [one for one in running if one.archive.platform == platform]
        of_cuda = [one.label for one in here if one.redist == CUDA]
        labels = [label for label in of_cuda if is_supported(entry, label.line)]
        if labels:
            local = [(one.redist, one.label, one.archive) for one in here]
            releases = newest_with_cuda(max(labels), local, store)
            parts = [one.by_capability[name] for one in here if one.label == max(labels)]
            return NewestReleases(
                capability=name,
                platform=platform,
                releases=releases,
                statement=_statement(name, platform, releases),
                desktop_code=_desktop_code(entry, parts),
                unexamined=_unexamined_jetsons(entry, here, store),
                renamed_to=None,
            )
    unexamined = _unexamined_jetsons(entry, archives, store)
    if unexamined is not None:
        statement = f"The newest release that runs on compute capability {name} is unknown."
    else:
        known = sorted({one.archive.platform for one in archives if one.redist == CUDA})
        statement = (
            f"No known release of CUDA that supports compute capability {name} has a cuBLAS that "
            f"runs on it (known platforms: {', '.join(known) or 'none'})."
        )
    return NewestReleases(
        capability=name,
        platform=None,
        releases={},
        statement=statement,
        desktop_code=None,
        unexamined=unexamined,
        renamed_to=fact_of(entry.policy, "renamed_to"),
    )


def _desktop_code(entry: CapabilityEntry, parts: Iterable[Coverage]) -> str | None:
    """Return the first CUDA minor with which a Tegra part runs code for other GPUs, if it does."""
    is_used = any(part.by_desktop_code for part in parts)
    return fact_of(entry.policy, "desktop_code") if is_used else None


def _unexamined_jetsons(
    entry: CapabilityEntry, archives: Iterable[ArchiveCoverage], store: Store
) -> str | None:
    """Return the newest CUDA release with archives for Jetsons, if none of them was examined."""
    if not entry.jetson or any(one.archive.platform == JETSON for one in archives):
        return None
    release = _newest_for_jetsons(entry, store)
    return None if release is None else str(release)


def _newest_for_jetsons(entry: CapabilityEntry, store: Store) -> Version | None:
    """Return the newest release of NVIDIA's archives for Jetsons that supports a capability."""
    archives = store.of_channel("redist")
    for label in reversed(archives.manifests(CUDA).labels()):
        if is_supported(entry, label.line):
            with suppress(CudaRedistError):
                if JETSON in load_manifest(archives, CUDA, label).platforms:
                    return label
    return None


def _statement(name: str, platform: str, releases: dict[str, str]) -> str:
    titles = [f"{_TITLES[redist]} {label}" for redist, label in releases.items()]
    lacking = [_TITLES[redist] for redist in _PACKAGES if redist not in releases]
    verb = "is the newest known release that runs"
    if len(titles) > 1:
        verb = "are the newest known releases that run together"
    words = f"{_listed(titles, 'and')} {verb} on compute capability {name} ({platform})"
    return f"{words}; no known {_listed(lacking, 'or')} does." if lacking else f"{words}."


def _listed(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
