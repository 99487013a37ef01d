"""Render pages as HTML and JSON, and list all files of the site."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cudaredist import __version__
from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.diff.style import DiffStyle
from cudaredist.commands.diff.text import diff_sections, diff_summary
from cudaredist.commands.explain.package_history import history_tables
from cudaredist.commands.explain.report import PackageCoverage
from cudaredist.commands.site.addresses import (
    compare_address,
    compare_script_path,
    files_address,
    gpu_address,
    other_kind_address,
    package_address,
    page_link,
    product_address,
    relative,
    release_address,
    set_address,
)
from cudaredist.commands.site.compare_pages import compare_script, make_compare_page
from cudaredist.commands.site.package_pages import (
    make_files_page,
    make_package_page,
    make_packages_page,
    package_histories,
)
from cudaredist.commands.site.page_models import (
    ComparePage,
    FileSpan,
    OtherKindPage,
    PackagePage,
    PlatformTotal,
    ReleaseArchive,
    SetPage,
    SetsPage,
    SitePage,
)
from cudaredist.commands.site.plots import LinePlot, bar_plot, line_plot
from cudaredist.commands.site.release_pages import (
    make_product_page,
    make_release_pages,
    make_start_page,
    platform_order,
    product_title,
)
from cudaredist.commands.site.search_answers import answer_entries
from cudaredist.commands.site.search_index import (
    INDEX_PATH,
    count_entries,
    index_script,
    search_entries,
    span_words,
)
from cudaredist.commands.site.set_pages import dependency_graph, make_set_page
from cudaredist.commands.site.site_data import SiteData
from cudaredist.commands.site.symbol_index import piece_path, symbol_pieces
from cudaredist.commands.site.table_pages import (
    make_compilers_page,
    make_gpu_pages,
    make_gpus_page,
    make_search_page,
)
from cudaredist.features.distributions import distribution_in_words
from cudaredist.formats.tables import span as range_words
from cudaredist.jsontext import canonical_json
from cudaredist.progress import size_words
from cudaredist.redists import REDISTS
from cudaredist.tables.gpus.coverage import describe_coverage

_Part = TypeVar("_Part", ReleaseArchive, PlatformTotal)

_FOLDERS_SHOWN = 60
"""Maximum number of folders to show without folding."""
_ASSETS = ("compare.js", "copy.js", "gpu.js", "icon.svg", "search.js", "style.css")


def site_files(data: SiteData) -> dict[str, Callable[[], bytes]]:
    """Map the paths of the site's files to functions that return the contents."""
    pages = _pages(data)
    packages = frozenset(page.title for page in pages.values() if isinstance(page, PackagePage))
    pieces = symbol_pieces(data.symbols.values(), packages)
    entries = [*search_entries(pages, data.programs), *answer_entries(data)]
    pages["search"] = make_search_page(count_entries(entries, pieces), data)
    environment = _environment(data, packages)
    files: dict[str, Callable[[], bytes]] = {INDEX_PATH: partial(index_script, entries, pieces)}
    for number, piece in enumerate(pieces):
        files[piece_path(number)] = partial(piece.script, number)
    for address, page in pages.items():
        channel = _channel_of(page, data)
        folder = f"{address}/" if address else ""
        files[f"{folder}index.html"] = partial(_html, environment, address, page, channel)
        files[f"{folder}index.json"] = partial(_json, page, channel)
        if isinstance(page, ComparePage):
            files[compare_script_path(page.redist)] = partial(compare_script, page.redist, data)
    assets = resources.files("cudaredist.commands.site") / "assets"
    return files | {f"assets/{name}": (assets / name).read_bytes for name in _ASSETS}


def _channel_of(page: SitePage, data: SiteData) -> str:
    match page:
        case SetPage():
            return page.summary.channel
        case OtherKindPage():
            return page.of_channel
        case _:
            return data.channel


def _json(page: SitePage, channel: str) -> bytes:
    return canonical_json(page.model_dump(mode="json") | {"channel": channel})


def _pages(data: SiteData) -> dict[str, SitePage]:
    """Return the pages by address, without the search."""
    histories = package_histories(data)
    pages: dict[str, SitePage] = {
        "": make_start_page(data, len(histories)),
        "packages": make_packages_page(histories),
        "gpus": make_gpus_page(data),
        "compilers": make_compilers_page(data),
    }
    for redist in data.releases:
        pages[product_address(redist)] = make_product_page(redist, data)
        if len(data.releases[redist]) > 1:
            pages[compare_address(redist)] = make_compare_page(redist, data)
        for release in make_release_pages(redist, data):
            pages[release_address(redist, release.summary.release)] = release
    for name, history in histories.items():
        package = make_package_page(name, history, data)
        pages[package_address(name)] = package
        if name in data.files:
            pages[files_address(name)] = make_files_page(name, package.summary.spans, data)
    if data.other is not None:
        pages[other_kind_address(data.other.of_channel)] = data.other
    for gpu in make_gpu_pages(data):
        pages[gpu_address(gpu.capability)] = gpu
    sets = [make_set_page(package_set, data.sets, data.known) for package_set in data.sets]
    for page in sets:
        pages[set_address(page.summary.attribute, page.summary.platform)] = page
    if sets:
        summaries = tuple(page.summary for page in sets)
        pages["sets"] = SetsPage(title="Package sets", sets=summaries)
    return pages


def _environment(data: SiteData, packages: Collection[str]) -> Environment:
    environment = Environment(
        loader=PackageLoader("cudaredist.commands.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"size": size_words, "heading": _heading, "commands": _commands}
    environment.globals |= {
        "version": __version__,
        "products": frozenset(data.releases),
        "packages": packages,
        "titles": {
            name: product_title(name).removesuffix(" Toolkit")
            for name in {*data.releases, *REDISTS}
        },
        "releases": {
            (name, str(facts.label)) for name, group in data.releases.items() for facts in group
        },
        "has_sets": bool(data.sets),
        "other": data.other and (other_kind_address(data.other.of_channel), data.other.title),
        "capabilities": frozenset(data.capabilities),
        "span_words": span_words,
        "range_words": range_words,
        "listed_in_words": distribution_in_words,
        "bar_plot": bar_plot,
        "support_bars": partial(support_bars, data=data),
        "history_tables": history_tables,
        "dependency_graph": dependency_graph,
        "size_plot": size_plot,
        "on_platform": on_platform,
        "folder_groups": folder_groups,
        "coverage_words": describe_coverage,
    }
    return environment


def _heading(text: str) -> str:
    """Return a title with a capital letter, unless it begins with the name of a program."""
    return text if text.startswith("nvcc") else f"{text[:1].upper()}{text[1:]}"


def _commands(text: str) -> Markup:
    """Return a sentence as HTML, with the commands between its backticks as code."""
    return Markup(re.sub("`(.*?)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _html(environment: Environment, address: str, page: SitePage, channel: str) -> bytes:
    @cache
    def link(make: Callable[..., str], *names: str) -> str:
        return page_link(make(*names), address)

    links: dict[str, Any] = {
        "to_start": page_link("", address),
        "to_file": partial(relative, source=address),
        "to_page": partial(page_link, source=address),
        "to_product": partial(link, product_address),
        "to_compare": partial(link, compare_address),
        "to_compare_script": lambda redist: relative(compare_script_path(redist), address),
        "to_release": partial(link, release_address),
        "to_package": partial(link, package_address),
        "to_files": partial(link, files_address),
        "to_gpu": partial(link, gpu_address),
        "to_set": partial(link, set_address),
    }

    packages: Any = environment.globals["packages"]

    def name_html(text: str) -> str:
        if text in packages:
            return f'<a href="{escape(links["to_package"](text))}">{escape(text)}</a>'
        return f"<code>{escape(text)}</code>"

    style = DiffStyle(name_html, lambda text: str(escape(text)))
    template = environment.get_template(f"{page.kind}.html")
    changes = partial(change_sections, style=style)
    return template.render(page=page, channel=channel, changes=changes, **links).encode()


def change_sections(
    report: DiffReport, *, style: DiffStyle
) -> tuple[str, list[tuple[str, list[tuple[Markup, list[Markup]]]]]]:
    """Return the summary of changes, and the sections with lines as HTML.

    The style escapes all text of the data.
    """
    sections = [
        (section.title, [(_line(line), list(map(_line, below))) for line, below in section.lines])
        for section in diff_sections(report, style)
    ]
    return diff_summary(report), sections


def _line(text: str) -> Markup:
    # A line can break after a hyphen, but not after a minus.
    text = re.sub(r" -(?=[\w.])", " \N{MINUS SIGN}", re.sub(" -(>|&gt;) ", " → ", text))
    return Markup(text)  # noqa: S704 - the style has escaped the data


def support_bars(part: PackageCoverage, data: SiteData) -> list[tuple[str, float, float]]:
    """Return the kind, start and end of bars over the releases of a product, in percent.

    A bar spans the releases that run on a GPU by machine code (`sm`) or PTX (`compute`).
    """
    labels = [str(facts.label) for facts in data.releases.get(part.redist, ())]
    share = 100 / max(1, len(labels))
    return [
        (kind, labels.index(span.first) * share, (labels.index(span.newest) + 1) * share)
        for kind, span in (("sm", part.native), ("compute", part.ptx))
        if span and {span.first, span.newest} <= set(labels)
    ]


def folder_groups(
    folders: Mapping[str, Sequence[FileSpan]],
) -> dict[str, list[tuple[int, str, Sequence[FileSpan]]]]:
    """Return numbered folders with their files by their first two names, to be folded.

    Few folders are one group without a name.
    """
    groups: dict[str, list[tuple[int, str, Sequence[FileSpan]]]] = {}
    for number, (folder, files) in enumerate(folders.items()):
        group = "/".join(folder.split("/")[:2]) if len(folders) > _FOLDERS_SHOWN else ""
        groups.setdefault(group, []).append((number, folder, files))
    return groups


def on_platform(parts: Iterable[_Part], platform: str) -> list[_Part]:
    """Return the archives or sizes for a platform."""
    return [part for part in parts if part.platform == platform]


def size_plot(page: PackagePage) -> Mapping[str, LinePlot]:
    """Return plots of a package's unpacked sizes over its releases, by product."""
    plots = {}
    for span in page.summary.spans:
        releases = [release for release in reversed(page.releases) if release.redist == span.redist]
        series: dict[str, dict[str, int]] = {}
        for release in releases:
            for archive in release.archives:
                if archive.unpacked is not None:
                    name = " ".join(filter(None, (archive.platform, archive.variant)))
                    series.setdefault(name, {})[release.release] = archive.unpacked
        if series:
            names = [release.release for release in releases]
            ordered = sorted(series, key=lambda name: (platform_order(name.split()[0]), name))
            plots[span.redist] = line_plot({name: series[name] for name in ordered}, names)
    return plots
