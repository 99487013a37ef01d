"""The web site of the shipped data in Chromium: search, keyboard, accessibility, addresses."""

import functools
import http.server
import os
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
import tinycss2
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Locator, Page, Route, expect, sync_playwright
from support.factory import manifest
from support.optional_programs import find_program
from support.running import succeed

from cudaredist.commands.site.render_site import site_files
from cudaredist.commands.site.set_pages import read_sets
from cudaredist.commands.site.site_data import read_site_data
from cudaredist.commands.site.write_site import write_site
from cudaredist.commands.which.find_symbols import find_symbols
from cudaredist.commands.which.search import Search
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern

CHROMIUM = find_program("chromium", "chromium-browser")
PREFIX = "some/prefix"
HANGING = 240_000
"""Milliseconds after which a step hangs. Playwright reports it before the test ends."""
PAGES = {
    "start": "index.html",
    "product": "cuda/index.html",
    "compare": "cuda/compare/index.html?before=12.9.1&after=13.0.2",
    "release": "cuda/13.0.2/index.html",
    "variants": "cudnn/9.10.2/index.html",
    "packages": "packages/index.html",
    "package": "packages/libcublas/index.html",
    "files": "packages/libcublas/files/index.html",
    "gpus": "gpus/index.html",
    "gpu": "gpus/7.0/index.html",
    "target": "gpus/10.0a/index.html",
    "compilers": "compilers/index.html",
    "sets": "sets/index.html",
    "set": "sets/cudaPackages_13_0-linux-x86_64/index.html",
    "search": "search/index.html?q=cublas",
    "symbols": "search/index.html?q=_ZN5cudnn",
}
SHIPPED = Store(shipped_data(), "wheels")
TABLES = LayeredSymbols(SHIPPED.symbol_paths)
CODE_ONLY = {"skip_comments": True, "skip_whitespace": True}
HOSTILE = "<img src=x onerror=alert(1)>\"'&javascript:alert(1)"

expect.set_options(timeout=HANGING)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a log."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the site of the shipped data below a prefix."""
    root = tmp_path_factory.mktemp("served")
    index = Index(SHIPPED, Cache(root / "cache"))
    path = root / "set.json"
    succeed("build", "--cuda", "13.0", "--platform", "linux-x86_64", "--output", path, "--quiet")
    sets, _ = read_sets([path])
    write_site(site_files(read_site_data(index, sets)), root / PREFIX, ())
    return root


@pytest.fixture(scope="module")
def files(folder: Path) -> str:
    """The address of the site as files."""
    return f"{folder.as_uri()}/{PREFIX}/"


@pytest.fixture(scope="module", params=["file", "http"])
def base(request: pytest.FixtureRequest, folder: Path, files: str) -> Iterator[str]:
    """The address of the site, as files and below a prefix of a server."""
    if request.param == "file":
        yield files
        return
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{PREFIX}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium of the distribution. Its sandbox does not work for root."""
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield running
        running.close()


@pytest.fixture
def problems() -> list[str]:
    """Messages of the console, errors and dialogs of the page."""
    return []


@pytest.fixture
def page(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """A page that must have no problems."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(HANGING)
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("dialog", lambda dialog: problems.append(dialog.message))
    yield opened
    context.close()
    assert problems == []


def row_of(place: Page | Locator, name: str) -> Locator:
    """Return the first row with a name in its first column, on a page or a part of it."""
    # The header is searched in each row, so its locator must not begin with the place.
    page = place.page if isinstance(place, Locator) else place
    header = page.get_by_role("rowheader", name=name, exact=True)
    return place.get_by_role("row").filter(has=header).first


STATE = """() => {
  const results = document.getElementById("results");
  const status = document.getElementById("status");
  if (!results) return document.querySelector(".hero") ? null : "opened";
  if (!results.querySelector("a") || status.textContent.includes("searching")) return null;
  return results.dataset.opens ? "opened" : "listed";
}"""


def is_only_result(page: Page) -> bool:
    """Wait for the results of a search, and return whether the only one opens."""
    try:
        return bool(page.wait_for_function(STATE).json_value() == "opened")
    except Error:  # the page with the search is gone
        return True


def follow(page: Page, link: Locator) -> None:
    """Open the page of a link by its address: a busy browser lost a click without a message."""
    page.goto(link.evaluate("link => link.href"))


@pytest.mark.parametrize(
    ("query", "kind", "text", "target"),
    [
        ("libcublas.so.12", "Sonames", "libcublas.so.12", "packages/libcublas/index.html#sonames"),
        ("cudnn", "Packages", "cudnn", "packages/cudnn/index.html"),
        ("cudnn9", "Packages", "cudnn", "packages/cudnn/index.html"),
        ("nvcc", "Packages", "cuda_nvcc", "packages/cuda_nvcc/index.html"),
        ("libnvrtc-builtins", "Packages", "cuda_nvrtc", "packages/cuda_nvrtc/index.html"),
        ("nvJitLink", "Packages", "libnvjitlink", "packages/libnvjitlink/index.html"),
        ("cublas_v2.h", "Files", "include/cublas_v2.h", "packages/libcublas/files/index.html"),
        ("RTX 5090", "GPUs", "12.0", "gpus/12.0/index.html?gpu=GeForce%20RTX%205090"),
        ("sm_61", "GPUs", "6.1", "gpus/6.1/index.html"),
        ("12.8.2", "Releases", "12.8.2", "cuda/12.8.2/index.html"),
        ("12.8.1", "Releases", "12.8.1", "cuda/12.8.1/index.html"),
        ("11.7", "Releases", "11.7", "compilers/index.html#11.7"),
        ("nvidia-cublas-cu12", "Packages", "libcublas", "packages/libcublas/index.html"),
        ("NVIDIA Tesla V100", "GPUs", "7.0", "gpus/7.0/index.html"),
        ("GTX 1080", "GPUs", "6.1", "gpus/6.1/index.html"),
        ("12.9", "Releases", "CUDA Toolkit 12.9.2", "cuda/12.9.2/index.html"),
        ("cuDNN 9.10.2", "Releases", "cuDNN 9.10.2", "cudnn/9.10.2/index.html"),
        ("CUBLASLTMATMUL", "Symbols", "cublasLtMatmul", "packages/libcublas/index.html#sonames"),
        ("cudnnAddTensor@@libcudnn.so.9", "Symbols", "cudnnAddTensor", "packages/cudnn/index.html"),
        ("_ZN5cudnn", "Symbols", "_ZN5cudnn", "packages/cudnn/index.html"),
        ("?", "Symbols", "?", "packages/"),
    ],
)
def test_search_finds_the_right_page(
    page: Page, base: str, query: str, kind: str, text: str, target: str
) -> None:
    page.goto(f"{base}search/index.html?q={quote(query)}")
    if not is_only_result(page):
        title = page.locator("#results h2", has_text=kind)
        link = title.locator("+ ul").get_by_role("link").first
        assert text in link.inner_text()
        follow(page, link)
    page.wait_for_url(lambda url: url.startswith(f"{base}{target}"))
    assert page.locator("main h1").count() == 1


def test_search_without_result_reports_none(page: Page, base: str) -> None:
    page.goto(f"{base}search/index.html?q=no-such-library")
    expect(page.get_by_role("status")).to_have_text("0 results")


def test_symbol_has_libraries_and_releases_of_the_which_command(
    page: Page, base: str, tmp_path: Path
) -> None:
    page.goto(f"{base}search/index.html?q=cublasLtGetEnvironmentMode")
    expect(page.get_by_role("status")).to_have_text("1 result")
    text = page.locator("#results li").inner_text()
    index = Index(SHIPPED, Cache(tmp_path))
    hits = find_symbols(SymbolPattern("cublasLtGetEnvironmentMode"), Search(index)).symbols
    assert {hit.library for hit in hits} == set(re.findall(r"\S+\.\S+(?= [0-9]+\.)", text))
    assert "libcublasLt.so.12 12.9.0 to 12.9.2" in text


@pytest.mark.parametrize("prefix", ["cublas", "_ZN", "nccl", "CU"])
def test_symbols_with_a_prefix_are_all_counted(page: Page, base: str, prefix: str) -> None:
    names = {
        export.name
        for table in TABLES.tables(TABLES.sonames()).values()
        for export in table.exports
        if export.name.lower().startswith(prefix.lower())
    }
    page.goto(f"{base}search/index.html?q={prefix}")
    title = page.locator("#results h2", has_text="Symbols")
    title.wait_for()
    more = title.locator("+ ul + p").inner_text()
    shown = len(set(title.locator("+ ul").get_by_role("link").all_inner_texts()))
    assert int(more.split()[1].replace(",", "")) + shown == len(names)


@pytest.mark.parametrize("body", [None, "window.cudaredistIndex.pieces["], ids=["no", "cut"])
def test_unreadable_symbols_are_reported_and_loaded_again(
    page: Page, base: str, problems: list[str], body: str | None
) -> None:
    def answer(route: Route) -> None:
        if body is None:
            route.abort()
        else:
            route.fulfill(body=body, content_type="text/javascript")

    page.route("**/assets/symbols/*", answer)
    page.goto(f"{base}search/index.html?q=cublasLtGetEnvironmentMode")
    status = page.get_by_role("status")
    expect(status).to_have_text("0 results; symbols could not be loaded")
    assert len(problems) == 1
    problems.clear()
    page.unroute("**/assets/symbols/*")
    page.get_by_role("button", name="Search").click()
    expect(status).to_have_text("1 result")


GPU, RELEASE, LIBRARY = "GPU", "CUDA", "library"
FIELDS = {
    GPU: "Name or compute capability",
    RELEASE: "Version",
    LIBRARY: "Library, symbol, file or package",
}


@pytest.mark.parametrize(
    ("field", "query", "result", "answer"),
    [
        pytest.param(*row, id=question)
        for question, *row in (
            ("newest releases for a GPU", GPU, "V100", "7.0", "CUDA 12.9.2, cuDNN 9.10.2"),
            ("lowest driver for a GPU", GPU, "V100", "7.0", "525.60.13 on Linux"),
            ("newest CUDA by marketing name", GPU, "GTX 1080", "6.1", "CUDA 12.9.2"),
            ("last driver branch for a GPU", GPU, "TITAN V", "7.0", "branch 580"),
            ("driver of a release", RELEASE, "12.9.1", "12.9.1", "525.60.13 on Linux"),
            ("GPUs of a release", RELEASE, "13.0", "13.0", "compute capabilities of CUDA 13.0"),
            ("newest GCC of a release", RELEASE, "12.9.2", "12.9.2", "* to 14"),
            ("package of a soname", LIBRARY, "libcublas.so.12", "libcublas.so.12", "libcublas"),
            ("package of a symbol", LIBRARY, "cublasLtMatmul", "cublasLtMatmul", "libcublas"),
            ("package of a header", LIBRARY, "cudnn.h", "cudnn.h", "Files of cudnn"),
            ("license of a package", LIBRARY, "libcublas", "libcublas", "CUDA EULA"),
            ("wheels with hashes", LIBRARY, "libcublas", "libcublas", "nvidia_cublas-"),
        )
    ],
)
def test_question_is_answered_in_three_actions(
    page: Page, base: str, field: str, query: str, result: str, answer: str
) -> None:
    page.goto(base + PAGES["start"])
    page.get_by_label(FIELDS[field], exact=True).fill(query)
    page.keyboard.press("Enter")
    if not is_only_result(page):
        follow(page, page.locator("#results a", has_text=result).first)
    page.wait_for_url(lambda url: "/search/" not in url)
    assert answer.lower() in page.locator("main").inner_text().lower()


@pytest.mark.parametrize(
    ("release", "answer"),
    [("12.9.2", "525.60.13"), ("13.0.2", "580"), ("13.0.2", "7.5 to 12.1")],
)
def test_start_page_answers_questions_about_a_release(
    page: Page, base: str, release: str, answer: str
) -> None:
    page.goto(base + PAGES["start"])
    assert answer in row_of(page, release).inner_text()


def test_search_works_with_the_keyboard_only(page: Page, base: str) -> None:
    page.goto(f"{base}gpus/index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "top-search":
            break
    page.keyboard.type("libcudnn.so.9")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/index.html?q=libcudnn.so.9")
    assert page.evaluate("document.activeElement.id") == "query"
    page.locator("#results a").first.wait_for()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}packages/cudnn/index.html*")


@pytest.mark.parametrize("name", PAGES)
def test_page_fits_a_phone_and_loads_nothing_from_elsewhere(
    page: Page, base: str, name: str
) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"{base}{PAGES[name]}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert [url for url in requests if not url.startswith(base)] == []


@pytest.mark.parametrize("name", PAGES)
def test_page_shows_the_focus_of_the_keyboard(page: Page, files: str, name: str) -> None:
    page.goto(files + PAGES[name])
    for _ in range(25):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            """() => {
              const style = getComputedStyle(document.activeElement);
              return [document.activeElement.tagName, style.outlineStyle, style.outlineWidth];
            }"""
        )
        assert focus[0] == "BODY" or focus[1:] == ["solid", "3px"]


@pytest.mark.parametrize(("width", "limit"), [(1280, 6000), (390, 7500)])
def test_no_page_is_long(page: Page, folder: Path, width: int, limit: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    heights = {}
    for path in sorted((folder / PREFIX).rglob("*.html")):
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        heights[path] = page.evaluate("document.documentElement.scrollHeight")
    assert len(heights) > 300
    assert [(str(path), height) for path, height in heights.items() if height > limit] == []


@pytest.mark.parametrize("text", ["cu", "cuda", "lib", "12"])
def test_search_with_many_results_fits_page_limit(page: Page, base: str, text: str) -> None:
    page.goto(f"{base}search/index.html?q={text}")
    expect(page.locator("#status")).to_have_text(re.compile(r"^[0-9,]+ results$"))
    assert page.evaluate("document.documentElement.scrollHeight") < 6000


def test_tables_of_start_page_fit(page: Page, files: str) -> None:
    page.goto(f"{files}index.html")
    widths = "tables => tables.map(table => table.scrollWidth - table.parentElement.clientWidth)"
    assert max(page.locator("table").evaluate_all(widths)) <= 0


def test_long_comparison_is_folded(page: Page, files: str) -> None:
    page.goto(f"{files}cuda/compare/index.html?before=11.8.0&after=13.5.0")
    assert page.locator("#comparison details").count() > 0
    assert page.evaluate("document.documentElement.scrollHeight") < 6000


def test_commands_on_a_page_of_a_gpu_have_no_backticks(page: Page, files: str) -> None:
    page.goto(f"{files}gpus/7.2/index.html")
    assert page.locator("main p code").count() == 2
    assert "`" not in page.inner_text("main")


def test_search_opens_a_folded_folder(page: Page, files: str) -> None:
    page.goto(f"{files}packages/cuda_cccl/files/index.html")
    target = page.locator("details.folders h2").last
    assert not target.is_visible()
    address = f"{files}packages/cuda_cccl/files/index.html#{target.get_attribute('id')}"
    # A search result is on another page, and a reload would restore the position instead.
    page.goto("about:blank")
    page.goto(address)
    expect(target).to_be_visible(timeout=HANGING)


def test_first_column_stays_in_view_on_a_phone(page: Page, files: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(files + PAGES["packages"])
    name = page.get_by_role("rowheader").first
    before = name.bounding_box()
    page.locator(".scroll").evaluate("table => table.scrollBy(200, 0)")
    assert page.locator(".scroll").evaluate("table => table.scrollLeft") == 200
    assert before is not None
    assert name.bounding_box() == before


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "light"),
        pytest.param(390, "dark", marks=pytest.mark.nightly),
        pytest.param(1280, "light", marks=pytest.mark.nightly),
        pytest.param(1280, "dark", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("name", PAGES)
def test_page_has_no_problem_of_accessibility(
    page: Page, files: str, name: str, scheme: Literal["light", "dark"], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(files + PAGES[name])
    # Without preload, axe does not fetch style sheets, which browsers refuse for files.
    options = {"resultTypes": ["violations"], "preload": False}
    violations = Axe().run(page, options=options).response["violations"]
    assert {rule["id"]: [node["html"] for node in rule["nodes"]] for rule in violations} == {}


def rules_of(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the rules of a style sheet, also those in media queries."""
    for node in nodes:
        assert node.type in {"qualified-rule", "at-rule"}, node
        if node.type == "qualified-rule":
            yield node
        else:
            yield from rules_of(tinycss2.parse_rule_list(node.content, **CODE_ONLY))


def test_browser_knows_every_selector_and_property_of_the_style_sheet(
    page: Page, folder: Path
) -> None:
    page.goto(f"{folder.as_uri()}/{PREFIX}/index.html")
    text = (folder / PREFIX / "assets/style.css").read_text()
    unknown = []
    for rule in rules_of(tinycss2.parse_stylesheet(text, **CODE_ONLY)):
        selector = tinycss2.serialize(rule.prelude)
        page.evaluate("selector => document.querySelector(selector)", selector)
        for one in tinycss2.parse_declaration_list(rule.content, **CODE_ONLY):
            assert one.type == "declaration", f"{selector}: {one}"
            pair = [one.name, tinycss2.serialize(one.value).strip()]
            if not page.evaluate("pair => CSS.supports(...pair)", pair):
                unknown.append((selector, *pair))
    assert unknown == []


def write_small_site(root: Path) -> str:
    """Write the site of a data folder with the shipped tables, and return its address."""
    store = Store(root / "data", base=Store(shipped_data(), examined_only=True))
    data = read_site_data(Index(store, Cache(root / "cache")))
    write_site(site_files(data), root / "site", ())
    return (root / "site").as_uri()


def test_search_shows_hostile_names_as_text(page: Page, tmp_path: Path) -> None:
    manifests = tmp_path / "data/manifests" / "<b>javascript:x"
    manifests.mkdir(parents=True)
    content = manifest("12.9.1", packages=["libx"], name=HOSTILE)
    (manifests / "redistrib_12.9.1.json").write_bytes(content)
    page.goto(f"{write_small_site(tmp_path)}/search/index.html?q={quote('<')}")
    assert HOSTILE in page.locator("#results").inner_text()
    assert page.locator("#results img").count() == 0
    follow(page, page.get_by_role("link", name=HOSTILE).first)
    assert HOSTILE in page.locator("main").inner_text()


def test_button_copies_the_hash_of_an_archive(page: Page, base: str) -> None:
    page.goto(f"{base}packages/libcublas/index.html")
    cell = page.locator(".hash").first
    cell.get_by_role("button").click()
    expect(cell.get_by_role("button")).to_have_text("Copied")
    page.locator("#top-search").focus()
    page.keyboard.press("ControlOrMeta+V")
    expect(page.locator("#top-search")).to_have_value(cell.locator("code").inner_text())


def test_common_platform_of_builds_for_several_majors_is_compared(page: Page, base: str) -> None:
    page.goto(f"{base}cudnn/compare/index.html?before=9.10.2&after=9.11.1")
    expect(row_of(page.get_by_role("region", name="Packages"), "cudnn")).to_contain_text(
        "linux-x86_64/cuda12"
    )


def test_packages_named_as_properties_of_objects_are_compared(page: Page, tmp_path: Path) -> None:
    names = ["constructor", "hasOwnProperty", "toString"]
    manifests = tmp_path / "data/manifests/cuda"
    manifests.mkdir(parents=True)
    for label in ("12.9.1", "13.0.2"):
        content = manifest(label, packages=names)
        (manifests / f"redistrib_{label}.json").write_bytes(content)
    address = write_small_site(tmp_path)
    page.goto(f"{address}/cuda/compare/index.html?before=12.9.1&after=13.0.2")
    rows = page.get_by_role("region", name="Packages").locator("tbody tr")
    texts = [text.split("\t")[:3] for text in rows.all_inner_texts()]
    assert texts == [[name, "12.9.1", "13.0.2"] for name in names]


def test_comparison_begins_with_losses(page: Page, base: str) -> None:
    page.goto(f"{base}cuda/compare/index.html?before=12.9.2&after=13.0.3")
    first = page.locator("#comparison section").first
    expect(first.get_by_role("heading")).to_have_text("May break")
    texts = [row.split("\t") for row in first.locator("tbody tr").all_inner_texts()]
    assert ["libcublas", "linux-x86_64", "libcublas.so.12 gone", "libcublas.so.13"] in texts
    facts = page.get_by_role("region", name="Compilers, GPUs and drivers")
    expect(row_of(facts, "PTX")).to_have_text("PTX8.89.0")


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("driver 535", "Driver 535 on Linux runs CUDA 11.0 to 12.2 with all features"),
        ("535.104.05", "Driver 535 on Linux runs CUDA 11.0 to 12.2 with all features"),
        ("gcc 13", "GCC 13 is accepted by CUDA 12.4 to 13.5"),
        ("clang 13", "Clang 13 is accepted by CUDA 11.7 to 13.5"),
    ],
)
def test_search_answers_for_drivers_and_compilers(
    page: Page, base: str, query: str, answer: str
) -> None:
    page.goto(f"{base}search/index.html?q={quote(query)}")
    expect(page.locator("#results li").first).to_contain_text(answer)


def test_boxes_of_start_page_fit_the_screen_of_a_phone(page: Page, base: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(base + PAGES["start"])
    box = page.locator(".ways").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 740


def test_two_releases_are_compared(page: Page, base: str) -> None:
    page.goto(f"{base}cuda/13.0.0/index.html")
    follow(page, page.get_by_role("link", name="Compare with 12.9.2"))
    row = row_of(page.get_by_role("region", name="Packages"), "libcublas")
    expect(row).to_contain_text("12.9.2.10")
    expect(row).to_contain_text("13.0.0.19")
    page.get_by_label("Before").select_option("11.8.0")
    expect(page).to_have_url(re.compile(r"before=11\.8\.0&after=13\.0\.0"))
    expect(row).to_contain_text("11.11.3.6")
    for summary in page.locator("#comparison summary").all():
        summary.click()
    code = page.get_by_role("region", name="Device code")
    expect(code.get_by_role("row", name="libcublas linux-x86_64 sm_90").first).to_be_visible()
    page.get_by_label("After").select_option("11.8.0")
    expect(page.get_by_text("No differences.")).to_have_count(4)
