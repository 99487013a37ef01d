"""The pages that compare two releases of a product."""

import json
from typing import Any

from cudaredist.commands.explain.newest_together import COMMON_PLATFORMS
from cudaredist.commands.site.page_models import ComparePage
from cudaredist.commands.site.release_pages import product_title
from cudaredist.commands.site.site_data import ArchiveFacts, ReleaseFacts, SiteData
from cudaredist.tables.explanation import FactValue


def make_compare_page(redist: str, data: SiteData) -> ComparePage:
    """Return the page that compares the releases of a product."""
    product = product_title(redist)
    return ComparePage(
        channel=data.channel,
        title=f"Compare releases of {product}",
        redist=redist,
        product=product,
        releases=tuple(str(facts.label) for facts in reversed(data.releases[redist])),
    )


def compare_script(redist: str, data: SiteData) -> bytes:
    """Return the script with the facts of a product's releases, in one statement."""
    releases = {str(facts.label): _release(facts) for facts in data.releases[redist]}
    text = json.dumps(releases, separators=(",", ":"))
    return f"window.cudaredistReleases={text};\n".encode("ascii")


def _release(facts: ReleaseFacts) -> dict[str, Any]:
    packages: dict[str, dict[str, Any]] = {
        package.name: {
            "version": ", ".join(map(str, package.versions)),
            "places": {},
        }
        for package in facts.manifest.packages
    }
    newest_variant_first = sorted(facts.archives, key=lambda x: x.archive.id.place, reverse=True)
    for one in sorted(newest_variant_first, key=_rank):
        packages[one.archive.package]["places"][one.archive.id.place] = [
            one.history.size,
            one.history.symbols,
            one.history.device_code,
        ]
    stated = {
        fact.name: _words(fact.value)
        for topic in facts.topics
        for fact in topic.facts
        # Topics describe a release line, and each of its releases can have its own driver.
        if fact.name != "driver.native" or f"CUDA {facts.label}:" in fact.statement
    }
    stated.pop("releases", None)
    return {"facts": stated, "packages": packages}


def _rank(one: ArchiveFacts) -> int:
    """Return the place of an archive's platform among the common ones, which come first."""
    name = one.archive.platform
    return COMMON_PLATFORMS.index(name) if name in COMMON_PLATFORMS else len(COMMON_PLATFORMS)


def _words(value: FactValue) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(value)
        case _:
            return str(value)
