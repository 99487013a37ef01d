"""The pages of GPUs, host compilers and the search."""

from collections.abc import Iterator, Mapping

from cudaredist.commands.site.page_models import CompilersPage, GpuPage, GpusPage, SearchPage
from cudaredist.commands.site.site_data import SiteData
from cudaredist.primitives import Version
from cudaredist.redists import CUDA
from cudaredist.tables.explain_driver import SYSTEMS, lowest_driver, on_systems
from cudaredist.tables.gpus.capability import Capability


def make_gpus_page(data: SiteData) -> GpusPage:
    """Return the page with all capabilities, the newest first."""
    entries = {} if data.gpus is None else data.gpus.capabilities
    names = sorted(entries, key=Capability.parse, reverse=True)
    return GpusPage(
        channel=data.channel,
        title="GPUs",
        capabilities=None if data.gpus is None else {name: entries[name] for name in names},
    )


def make_gpu_pages(data: SiteData) -> Iterator[GpuPage]:
    """Yield the page of each capability."""
    entries = {} if data.gpus is None else data.gpus.capabilities
    for name, entry in entries.items():
        newest = data.newest.get(entry.base)
        cuda = newest.releases.get(CUDA) if newest and not entry.jetson else None
        yield GpuPage(
            channel=data.channel,
            title=f"Compute capability {name}",
            capability=name,
            entry=entry,
            topic=data.capabilities[name],
            newest=newest,
            drivers=_drivers(Version.parse(cuda), data) if cuda else None,
            coverage=tuple(part for part in data.coverage if part.capability == name),
        )


def _drivers(cuda: Version, data: SiteData) -> str | None:
    """Return the lowest drivers of a CUDA release with their systems."""
    linux, windows = (lowest_driver(cuda, system, data.drivers) for system in SYSTEMS)
    return on_systems(linux, windows) or None


def make_compilers_page(data: SiteData) -> CompilersPage:
    """Return the page with the host compilers, the newest release first."""
    releases = {} if data.compat is None else data.compat.releases
    labels = sorted(releases, key=Version.parse, reverse=True)
    names = {name: None for label in labels for name in releases[label].compilers}
    return CompilersPage(
        channel=data.channel,
        title="Host compilers",
        compilers=tuple(names),
        releases=None if data.compat is None else {label: releases[label] for label in labels},
    )


def make_search_page(counts: Mapping[str, int], data: SiteData) -> SearchPage:
    """Return the page of the search."""
    return SearchPage(
        channel=data.channel,
        title="Search",
        counts=dict(counts),
        libraries=len(data.symbols),
        unknown_libraries=data.unknown_libraries,
    )
