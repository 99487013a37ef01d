"""The pages of GPUs, host compilers and the search."""

from collections.abc import Iterator, Mapping

from cudaredist.commands.site.page_models import CompilersPage, GpuPage, GpusPage, SearchPage
from cudaredist.commands.site.site_data import SiteData
from cudaredist.primitives import Version
from cudaredist.redists import CUDA
from cudaredist.tables.driver_support import SYSTEMS, lowest_driver, on_systems
from cudaredist.tables.gpus.capability import Capability


def make_gpus_page(data: SiteData) -> GpusPage:
    """Return the page with all capabilities, the newest first."""
    if data.gpus is None:
        return GpusPage(title="GPUs", capabilities=None, jetpack=data.jetpack)
    entries = data.gpus.capabilities
    names = sorted(entries, key=Capability.parse, reverse=True)
    capabilities = {name: entries[name] for name in names}
    return GpusPage(title="GPUs", capabilities=capabilities, jetpack=data.jetpack)


def make_gpu_pages(data: SiteData) -> Iterator[GpuPage]:
    """Yield the page of each capability."""
    entries = {} if data.gpus is None else data.gpus.capabilities
    for name, entry in entries.items():
        newest = data.newest.get(entry.base)
        cuda = newest.releases.get(CUDA) if newest and not entry.jetson else None
        yield GpuPage(
            title=f"Compute capability {name}",
            capability=name,
            entry=entry,
            topic=data.capabilities[name],
            newest=newest,
            drivers=cuda and _drivers(Version.parse(cuda), data),
            coverage=tuple(part for part in data.coverage if part.capability == name),
        )


def _drivers(cuda: Version, data: SiteData) -> str | None:
    """Return the lowest drivers of a CUDA release with their systems."""
    return on_systems(*(lowest_driver(cuda, system, data.drivers) for system in SYSTEMS)) or None


def make_compilers_page(data: SiteData) -> CompilersPage:
    """Return the page with the host compilers, the newest release first."""
    if data.compat is None:
        return CompilersPage(title="Host compilers", compilers=(), releases=None)
    known = data.compat.releases
    releases = {label: known[label] for label in sorted(known, key=Version.parse, reverse=True)}
    names = dict.fromkeys(name for release in releases.values() for name in release.compilers)
    return CompilersPage(title="Host compilers", compilers=tuple(names), releases=releases)


def make_search_page(counts: Mapping[str, int], data: SiteData) -> SearchPage:
    """Return the page of the search."""
    return SearchPage(
        title="Search",
        counts=dict(counts),
        libraries=len(data.symbols),
        unknown_libraries=data.unknown_libraries,
    )
