"""The pages that compare two releases of a product."""

import json
from collections.abc import Iterator
from typing import Any

from cudaredist.commands.explain.newest_together import COMMON_PLATFORMS
from cudaredist.commands.site.page_models import ComparePage
from cudaredist.commands.site.release_pages import product_title, version_words
from cudaredist.commands.site.site_data import ArchiveFacts, ReleaseFacts, SiteData
from cudaredist.tables.explanation import Fact, FactValue

_TITLES = {
    "nvcc": "nvcc",
    "known": "Targets of ptxas",
    "supported": "Supported targets",
    "default": "Targets that package sets select by default",
    "driver.native": "Lowest driver with all features",
    "driver.lowest": "Lowest driver",
}
_ENDS = {"min": ", oldest", "max": ", newest"}


def make_compare_page(redist: str, data: SiteData) -> ComparePage:
    """Return the page that compares the releases of a product."""
    product = product_title(redist)
    return ComparePage(
        title=f"Compare releases of {product}",
        redist=redist,
        product=product,
        releases=tuple(str(facts.label) for facts in reversed(data.releases[redist])),
    )


def compare_script(redist: str, data: SiteData) -> bytes:
    """Return the script with the facts of a product's releases, in one statement."""
    releases = {
        str(facts.label): {"facts": list(_facts(facts)), "packages": list(_packages(facts))}
        for facts in data.releases[redist]
    }
    text = json.dumps(releases, separators=(",", ":"))
    return f"window.cudaredistReleases={text};\n".encode("ascii")


def _packages(facts: ReleaseFacts) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield each package with its version and archives, the most common platform first."""
    places: dict[str, list[Any]] = {package.name: [] for package in facts.manifest.packages}
    newest_variant_first = sorted(facts.archives, key=lambda x: x.archive.id.place, reverse=True)
    for item in sorted(newest_variant_first, key=_rank):
        history = item.history
        facts_of_code = history.symbols, history.device_code, history.sonames
        row = item.archive.id.place, history.size, *facts_of_code
        places[item.archive.package].append(row)
    for package in facts.manifest.packages:
        yield package.name, version_words(package), places[package.name]


def _rank(item: ArchiveFacts) -> int:
    """Return the place of an archive's platform among the common ones, which come first."""
    platform = item.archive.platform
    if platform in COMMON_PLATFORMS:
        return COMMON_PLATFORMS.index(platform)
    return len(COMMON_PLATFORMS)


def _facts(facts: ReleaseFacts) -> Iterator[tuple[str, FactValue]]:
    """Yield the title and value of each fact."""
    for topic in facts.topics:
        for fact in topic.facts:
            # Topics describe a release line, and each of its releases can have its own driver.
            is_other = fact.name == "driver.native" and f"CUDA {facts.label}:" not in fact.statement
            if fact.name != "releases" and not is_other:
                yield _title(fact), "none" if fact.value is None else fact.value


def _title(fact: Fact) -> str:
    """Return the name of a fact without its value."""
    end = _ENDS.get(fact.name.rpartition(".")[2], "")
    title = fact.statement.partition(":")[0].removesuffix(f" {fact.value}")
    return _TITLES.get(fact.name) or f"{title}{end}"
