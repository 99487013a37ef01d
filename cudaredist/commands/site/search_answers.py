"""Answers in the search: the CUDA releases for a driver or a compiler."""

from collections.abc import Iterator

from cudaredist.commands.site.addresses import page_link
from cudaredist.commands.site.search_index import SearchEntry
from cudaredist.commands.site.site_data import SiteData
from cudaredist.formats.tables import CompilerRange, NvccCompat
from cudaredist.primitives import parse_label
from cudaredist.redists import CUDA
from cudaredist.tables.explain_compiler import explain_compiler
from cudaredist.tables.explain_driver import driver_answer

_COMPILERS = ("gcc", "clang")


def answer_entries(data: SiteData) -> Iterator[SearchEntry]:
    """Yield an entry with the answer for each driver branch, and each version of GCC and Clang."""
    releases = [facts.label for facts in data.releases.get(CUDA, ())]
    link = f"{page_link('', '')}#releases"
    for branch in _driver_branches(data):
        answer, *_ = driver_answer(str(branch), data.drivers, releases).splitlines()
        yield SearchEntry("driver", f"driver {branch}\t{branch}\tr{branch}", link, answer)
    if data.compat is None:
        return
    link = page_link("compilers", "")
    for compiler in _COMPILERS:
        for version in _versions(compiler, data.compat):
            name = f"{compiler} {version}"
            answer, *_ = explain_compiler(name, data.compat)[0].splitlines()
            yield SearchEntry("compiler", f"{name}\t{compiler}{version}", link, answer)


def _driver_branches(data: SiteData) -> list[int]:
    """Return the branches of all stated drivers."""
    stated = data.drivers.releases.values()
    drivers = (name for entry in stated for name in (entry.linux, entry.windows) if name)
    return sorted({parse_label(name).components[0] for name in drivers})


def _versions(compiler: str, compat: NvccCompat) -> range:
    """Return the major versions from the oldest to the newest one that any release accepts."""
    answers = (entry.compilers.get(compiler) for entry in compat.releases.values())
    ranges = [answer for answer in answers if isinstance(answer, CompilerRange)]
    oldest = [one.min for one in ranges if one.min is not None]
    newest = [one.max for one in ranges if one.max is not None]
    return range(min(oldest), max(newest) + 1) if oldest and newest else range(0)
