"""The web site: addresses, plots, pages and links of small data."""

import json
import posixpath
import re
import shutil
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import html5lib
import pytest
from markupsafe import escape
from pydantic import TypeAdapter
from support import binaries
from support.bulletins import write_bulletin
from support.factory import manifest
from support.releases import put, release
from support.running import succeed
from support.small_sets import library, make_data, make_sets, site_contents

from cudaredist.commands.explain.report import PackageCoverage
from cudaredist.commands.site.addresses import (
    package_address,
    page_link,
    product_address,
    release_address,
)
from cudaredist.commands.site.page_models import PackagePage, PackageSummary, SonameSpan
from cudaredist.commands.site.plots import bar_plot, line_plot
from cudaredist.commands.site.render_site import support_bars
from cudaredist.commands.site.search_index import search_entries
from cudaredist.commands.site.set_pages import dependency_graph
from cudaredist.commands.site.site_data import SiteData
from cudaredist.formats.packageset import PackageSet
from cudaredist.redists import NVIDIA_BASE
from cudaredist.store.data_folder import Store, shipped_data

OLD_ELEMENTS = re.compile(r"<(center|font|marquee|big|tt)\b")


def links_of(content: bytes) -> tuple[list[str], list[str]]:
    """Return the addresses in a page, and its anchors. Text of the data has no quotes."""
    text = content.decode()
    addresses = re.findall(r' (?:href|src|action)="([^"]*)"', text)
    return list(map(unescape, addresses)), list(map(unescape, re.findall(r' id="([^"]*)"', text)))


def broken_site_links(files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """List the pages and addresses that lead out of the site, nowhere or to a missing anchor."""
    pages = {path: links_of(content) for path, content in files.items() if path.endswith(".html")}
    broken = []
    for path, (addresses, _) in pages.items():
        for address in addresses:
            parts = urlsplit(address)
            below = posixpath.join(posixpath.dirname(path), unquote(parts.path))
            target = posixpath.normpath(below) if parts.path else path
            if address.startswith((f"{NVIDIA_BASE}/", "https://docs.nvidia.com/cuda/archive/")):
                continue
            is_elsewhere = parts.scheme or parts.netloc or address.startswith("/")
            has_anchor = not parts.fragment or parts.fragment in pages.get(target, ([], []))[1]
            if is_elsewhere or target not in files or not has_anchor:
                broken.append((path, address))
    return broken


def html_problems(content: bytes) -> list[str]:
    """List the problems of a page: parse errors, and identifiers that are not unique."""
    parser = html5lib.HTMLParser()
    parser.parse(content.decode())
    problems = [f"{place}: {code}" for place, code, _ in parser.errors]
    _, anchors = links_of(content)
    problems += [f"id {name}" for name in sorted(set(anchors)) if anchors.count(name) > 1]
    return problems + OLD_ELEMENTS.findall(content.decode())


HOSTILE = "<img src=x onerror=alert(1)>\"'&javascript:alert(1)"


def site_of(root: Path, *sets: PackageSet) -> dict[str, bytes]:
    """Return the files of the site of a data folder and sets, with the shipped tables.

    All shipped manifests, features and symbols would take seconds and 100 MB.
    """
    tables = root / "shipped"
    if not tables.exists():
        tables.mkdir()
        for name in ("gpus.json", "nvcc_compat.json", "policy"):
            (tables / name).symlink_to(shipped_data() / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cudaredist.store.data_folder.shipped_data", lambda: tables)
        return site_contents(Store(root, base=Store(tables, examined_only=True)), *sets)


def write_manifests(root: Path, *labels: str, folder: str = "cuda", **fields: Any) -> None:
    """Write manifests with the package libx to a data folder."""
    manifests = root / "manifests" / folder
    manifests.mkdir(parents=True)
    for label in labels:
        content = manifest(label, packages=["libx"], **fields)
        (manifests / f"redistrib_{label}.json").write_bytes(content)


def process(root: Path, redist: str, archives: Mapping[str, bytes]) -> Path:
    """Put archives on a server, examine them, and return the data folder."""
    put(root / f"source/compute/{redist}/redist", archives)
    places = ("--data-dir", root / "data", "--base-url", root / "source")
    succeed("download-manifests", "--redist", redist, *places)
    succeed("process-manifests", "--cache-dir", root / "cache", *places)
    return root / "data"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one release of CUDA, examined."""
    root = tmp_path_factory.mktemp("site")
    make_data(root)
    return root / "data"


@pytest.fixture(scope="module")
def files(small: Path) -> dict[str, bytes]:
    """The site of the small data and a package set."""
    return site_of(small, make_sets(small.parent)["linux-x86_64"])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (release_address("cuda", "13.0.2"), "cuda/13.0.2"),
        (package_address("libcublas"), "packages/libcublas"),
        (product_address("packages"), "%70ackages"),
        (product_address(".."), "%2E%2E"),
        (product_address("a/b <c>"), "a%2Fb%20%3Cc%3E"),
    ],
)
def test_address_is_one_safe_folder_for_each_name(address: str, expected: str) -> None:
    assert address == expected


def test_links_between_pages_are_relative() -> None:
    assert page_link("cuda/13.0.2", "packages/libcublas") == "../../cuda/13.0.2/index.html"
    assert page_link("", "") == "index.html"
    assert page_link("a%20b", "") == "a%2520b/index.html"


def test_line_plot_of_one_value_and_of_none_is_inside_the_drawing() -> None:
    for series in ({"linux": {"1.0": 5}}, {"linux": {"1.0": 0}}, {}):
        plot = line_plot(series, ["1.0"])
        positions = [(x, y) for line in plot.lines for x, y, _ in line.points]
        assert all(plot.left <= x <= plot.right and 0 <= y <= plot.bottom for x, y in positions)


def test_line_plot_labels_the_first_and_last_release_without_a_neighbor() -> None:
    names = [f"1.{number}" for number in range(25)]
    plot = line_plot({"linux": dict.fromkeys(names, 5)}, names)
    assert [tick.text for tick in plot.across] == ["1.0", *(f"1.{n}" for n in range(3, 25, 3))]


def test_bar_plot_scales_to_the_largest_value() -> None:
    plot = bar_plot({"sm_80": 50, "compute_90": 100})
    assert [bar.kind for bar in plot.bars] == ["sm", "compute"]
    assert plot.bars[0].length * 2 == plot.bars[1].length


def test_every_page_type_is_written_with_its_json(files: dict[str, bytes]) -> None:
    kinds = {
        json.loads(content)["kind"] for path, content in files.items() if path.endswith("json")
    }
    assert kinds == {
        *("start", "product", "release", "packages", "package", "files"),
        *("gpus", "gpu", "compilers", "compare", "search", "sets", "set"),
    }
    pages = {posixpath.dirname(path) for path in files if path.endswith("index.html")}
    assert pages == {posixpath.dirname(path) for path in files if path.endswith("index.json")}


def test_all_links_lead_to_a_file_and_anchor_of_the_site(files: dict[str, bytes]) -> None:
    assert broken_site_links(files) == []


def test_every_page_is_valid_html(files: dict[str, bytes]) -> None:
    pages = {path: content for path, content in files.items() if path.endswith(".html")}
    problems = {path: html_problems(content) for path, content in pages.items()}
    assert {path: found for path, found in problems.items() if found} == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cuda/12.9.1", '<a href="../../packages/libcublas/index.html">libcublas</a>'),
        ("cuda/12.9.1", "nvcc of CUDA 12.9"),
        ("cuda/12.9.1", "This is the first release in the data."),
        ("cudnn/9.10.2", "NVIDIA&#39;s archives</span>"),
        ("cudnn/9.10.2", '<a href="../../index.html#releases">Releases</a>'),
        ("gpus/7.0", "<dd>branch 580</dd>"),
    ],
)
def test_page_has_text(files: dict[str, bytes], path: str, text: str) -> None:
    assert text in files[f"{path}/index.html"].decode()


@pytest.mark.parametrize("path", ["cuda/12.9.1/index.html", "packages/libcublas/index.html"])
def test_page_lists_archives_with_address_and_hash(files: dict[str, bytes], path: str) -> None:
    page = files[path].decode()
    row = next(row for row in page.split("<tr>") if 'class="hash"' in row and "libcublas" in row)
    address = f'<a href="{NVIDIA_BASE}/compute/cuda/redist/libcublas/linux-x86_64/libcublas-'
    assert address in row
    assert re.search("<code>[0-9a-f]{64}</code>", row)
    assert re.search("<td>[a-z, ]*lib[a-z, ]*</td>", row)


def test_page_without_addresses_names_the_wheel(tmp_path: Path) -> None:
    write_manifests(tmp_path, "12.9.1", folder="wheels/cuda")
    path = tmp_path / "manifests/wheels/cuda/redistrib_12.9.1.json"
    path.write_bytes(path.read_bytes().replace(b".tar.xz", b".whl"))
    page = site_contents(Store(tmp_path, "wheels"))["cuda/12.9.1/index.html"].decode()
    row = next(row for row in page.split("<tr>") if 'class="hash"' in row)
    assert ".whl</td>" in row
    assert "<td>unknown</td>" in row


def test_set_page_lists_packages_reasons_and_dependencies(files: dict[str, bytes]) -> None:
    folder = "sets/cudaPackages_12_9-linux-x86_64"
    data, page = json.loads(files[f"{folder}/index.json"]), files[f"{folder}/index.html"].decode()
    assert data["depends"]["libcusolver"] == ["libcublas"]
    link = '<a href="../../packages/libcublas/index.html">'
    assert f"{link}libcublas</a>" in page
    assert re.search(f"{link}\\s*<rect", page)
    assert "<title>libcusolver requires libcublas</title>" in page
    missing = {one["package"]: one["reason"] for one in data["summary"]["missing"]}
    assert missing["nsight_vse"]
    assert str(escape(missing["nsight_vse"])) in page


def test_set_page_lists_known_vulnerabilities(small: Path, tmp_path: Path) -> None:
    row = ("Linux", "NVIDIA CUDA Toolkit", "All versions prior to 13.0", "13.0")
    description = "The CUDA Toolkit contains a vulnerability in cuBLAS."
    write_bulletin(tmp_path / "bulletins", [row], description=description)
    data = shutil.copytree(small, tmp_path / "data")
    places = ("--source", tmp_path / "bulletins", "--data-dir", data)
    succeed("update-advisories", *places)
    package_set = make_sets(small.parent)["linux-x86_64"]
    page = site_of(data, package_set)["sets/cudaPackages_12_9-linux-x86_64/index.html"]
    table = page.decode().partition('id="vulnerabilities"')[2].partition("</table>")[0]
    assert ">CVE-2030-1000</a></th><td>3.3</td>" in table
    assert 'packages/libcublas/index.html">libcublas</a></td><td>affected</td><td>13.0.0<' in table
    assert not html_problems(page)


def test_graph_has_packages_to_the_right_of_those_they_require() -> None:
    graph = dependency_graph(
        {"base": set(), "one": {"two", "base"}, "two": {"one"}, "app": {"base", "one"}, "lone": ()}
    )
    across = {one.package: one.x for one in graph.nodes}
    assert across["base"] < across["one"] == across["two"] < across["app"]
    assert len({(one.x, one.y) for one in graph.nodes}) == 4
    assert [line[:2] for line in graph.lines if line[0] == "app"] == [
        ("app", "base"),
        ("app", "one"),
    ]
    assert all(one.x + one.width < graph.width and one.y < graph.height for one in graph.nodes)
    assert dependency_graph({}).nodes == ()


def test_package_page_lists_sonames_and_dependencies(files: dict[str, bytes]) -> None:
    page = json.loads(files["packages/libcusolver/index.json"])
    assert [one["soname"] for one in page["sonames"]] == ["libcusolver.so.11"]
    assert page["newest"][0]["depends"] == {"libcublas": ["libcublas.so.12"]}


def test_search_index_contains_sonames_files_and_packages(files: dict[str, bytes]) -> None:
    script = files["assets/search-index.js"].decode()
    prefix, _, document = script.partition("=")
    assert prefix == "window.cudaredistIndex"
    index = json.loads(document.rstrip(";\n"))
    entries = {
        (index["kinds"][kind], text.split("\t")[0]): index["texts"][link]
        for kind, text, link, _ in index["entries"]
    }
    hidden = "libcublas, LIBCUBLAS\tcublas\tlibcublas\tlibcublas12\tlibcublasLt"
    assert hidden in {text for _, text, _, _ in index["entries"]}
    assert "cudnn 8.9.7 to 9.10.2" in index["texts"]
    package = "packages/libcublas/index.html"
    assert entries["soname", "libcublas.so.12"] == f"{package}#sonames"
    assert entries["package", "libcublas, LIBCUBLAS"] == package
    assert entries["file", "include/cublas_v2.h"].startswith("packages/libcublas/files/")


def test_search_index_contains_names_of_dlls_without_versions() -> None:
    dlls = ("cudart32_75.dll", "cudart64_75.dll", "cupti64_2026.1.2.dll", "nvrtc64_102_0.alt.dll")
    span: dict[str, Any] = {"redist": "cuda", "first": "7.5", "newest": "7.5", "releases": 1}
    package: dict[str, Any] = {
        "package": "cuda_x",
        "title": None,
        "version": "7.5",
        "license": None,
    }
    page = PackagePage(
        title="cuda_x",
        summary=PackageSummary(**package, spans=(), platforms=(), projects=()),
        platforms=(),
        releases=(),
        history=(),
        sonames=tuple(SonameSpan(soname=name, platforms=(), **span) for name in dlls),
        newest=(),
        device_code=(),
        coverage=(),
        files=None,
    )
    entry = next(iter(search_entries({"packages/cuda_x": page}, {"cuda_x": "x-tool"})))
    hidden = ["cudart", "cudart32", "cupti64_2026.1.2", "nvrtc", "x", "x-tool", "x7"]
    assert entry.names.split("\t") == ["cuda_x", *hidden]


def test_search_page_has_statistics_below_the_results(files: dict[str, bytes]) -> None:
    page = files["search/index.html"].decode()
    assert page.index('id="results"') < page.index("<details>") < page.index("sonames, ")


def test_start_page_has_drivers_compilers_gpus_and_libraries_of_each_release(
    files: dict[str, bytes],
) -> None:
    (row,) = json.loads(files["index.json"])["cuda"]
    assert (row["linux"], row["windows"]) == ("525.60.13", "528.33")
    assert (row["gcc"]["min"], row["gcc"]["max"]) == (6, 14)
    assert (row["gpus"][0], row["gpus"][-1]) == ("5.0", "12.1")
    assert row["newest"] == {"cudnn": "9.10.2"}
    assert row["dropped"] == []


@pytest.mark.parametrize(
    ("native", "ptx", "bars"),
    [
        (("12.9.1", "12.9.1"), None, [("sm", 0.0, 50.0)]),
        (("12.9.1", "12.9.1"), ("13.0.0", "13.0.0"), [("sm", 0.0, 50.0), ("compute", 50.0, 100.0)]),
        (None, ("12.9.1", "13.0.0"), [("compute", 0.0, 100.0)]),
        (("9.0.0", "12.9.1"), None, []),  # a release that the site does not have
    ],
)
def test_support_is_shown_over_the_releases(
    native: tuple[str, str] | None,
    ptx: tuple[str, str] | None,
    bars: list[tuple[str, float, float]],
) -> None:
    keys = ("first", "newest", "since", "until")
    spans = [one and dict(zip(keys, one * 2, strict=True)) for one in (native, ptx)]
    about = {"capability": "7.0", "redist": "cuda", "package": "libx", "without": None}
    counts = {"releases": 2, "unknown": 0, "native": spans[0], "ptx": spans[1]}
    part = TypeAdapter(PackageCoverage).validate_json(json.dumps(about | counts))
    facts = [SimpleNamespace(label=label) for label in ("12.9.1", "13.0.0")]
    assert support_bars(part, cast("SiteData", SimpleNamespace(releases={"cuda": facts}))) == bars


def test_release_without_an_entry_in_the_table_drops_no_gpus(tmp_path: Path) -> None:
    write_manifests(tmp_path, "12.9.1", "12.99.0", "13.0.2")
    start = json.loads(site_of(tmp_path)["index.json"])
    dropped = {one["release"]: one["dropped"] for one in start["cuda"]}
    assert dropped["12.99.0"] == []
    assert "7.0" in dropped["13.0.2"]


def test_comparison_has_the_facts_of_all_releases(files: dict[str, bytes]) -> None:
    page = json.loads(files["cudnn/compare/index.json"])
    script = files["assets/compare/cudnn.js"].decode("ascii")
    releases = json.loads(script.removeprefix("window.cudaredistReleases=").removesuffix(";\n"))
    assert sorted(releases) == sorted(page["releases"])
    for label, facts in releases.items():
        release = json.loads(files[f"cudnn/{label}/index.json"])
        shown = {one["package"]: one for one in release["packages"]}
        assert [name for name, *_ in facts["packages"]] == list(shown)
        for name, version, archives in facts["packages"]:
            assert version == shown[name]["version"]
            sizes = sorted((one["platform"], one["unpacked"]) for one in shown[name]["archives"])
            assert sizes == sorted((place.split("/")[0], size) for place, size, *_ in archives)


def test_comparison_names_compilers_gpus_and_drivers(tmp_path: Path) -> None:
    write_manifests(tmp_path, "12.9.1", "13.0.2")
    releases = json.loads(site_of(tmp_path)["assets/compare/cuda.js"].partition(b"=")[2][:-2])
    facts = dict(releases["13.0.2"]["facts"])
    assert facts["GCC, newest"] == 15
    assert facts["Intel ICC"] == "refused"
    assert facts["Lowest driver"] == "580"
    assert facts["Lowest driver with all features"] == "580.95.05"
    assert facts["Supported targets"][0] == "7.5"


def test_same_data_gives_the_same_bytes(small: Path, files: dict[str, bytes]) -> None:
    assert site_of(small, make_sets(small.parent)["linux-x86_64"]) == files


def test_hostile_names_appear_as_text(tmp_path: Path) -> None:
    fields = {"license": HOSTILE, "name": HOSTILE}
    write_manifests(tmp_path, "12.9.1", "13.0.0", folder="<b>javascript:x", **fields)
    files = site_of(tmp_path)
    assert broken_site_links(files) == []
    for path, page in files.items():
        if path.endswith(".html"):
            assert html_problems(page) == [], path
            assert b"<img" not in page
            assert b"<b>" not in page
            assert not [link for link in links_of(page)[0] if link.startswith("javascript")]
    assert b"&lt;img src=x" in files["packages/libx/index.html"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("NVIDIA Proprietary Software", "CUDA EULA"),
        ("LicenseRef-NVIDIA-Proprietary", "CUDA EULA"),
        ("Apache 2.0", "Apache-2.0"),
        ("Terms of libx", "Terms of libx"),
    ],
)
def test_spellings_of_a_license_have_one_name(tmp_path: Path, word: str, shown: str) -> None:
    write_manifests(tmp_path, "12.9.1", license=word)
    files = site_of(tmp_path)
    assert json.loads(files["packages/libx/index.json"])["summary"]["license"] == shown
    [package] = json.loads(files["cuda/12.9.1/index.json"])["packages"]
    assert package["license"] == shown


def test_hostile_sonames_and_files_appear_as_text(tmp_path: Path) -> None:
    name = HOSTILE.replace("/", "")
    contents = {f"include/{name}.h": b"//\n", "lib/libx.so": library("x86_64", name, name)}
    archives = release("12.9.1", {"libx": {"linux-x86_64": {"LICENSE": b"terms\n", **contents}}})
    files = site_of(process(tmp_path, "cuda", archives))
    assert b"&lt;img src=x" in files["packages/libx/index.html"]
    assert all(b"<img" not in page for path, page in files.items() if path.endswith(".html"))


def test_package_page_names_each_variant_in_plots_and_device_code(tmp_path: Path) -> None:
    files = {"LICENSE": b"terms\n", "lib/x.fatbin": binaries.fatbin()}
    places = ("linux-sbsa/cuda12", "linux-x86_64/cuda12", "linux-x86_64/cuda11")
    archives = release("9.1.0", {"cudnn": dict.fromkeys(places, files)}, product="cudnn")
    page = site_of(process(tmp_path, "cudnn", archives))["packages/cudnn/index.html"].decode()
    legend = page.partition('<ul class="legend">')[2].partition("</ul>")[0]
    assert re.findall(r'class="(series-\d dashes-\d)">.*?</svg>([^<]*)<', legend) == [
        ("series-0 dashes-0", "linux-x86_64 cuda11"),
        ("series-0 dashes-1", "linux-x86_64 cuda12"),
        ("series-1 dashes-1", "linux-sbsa cuda12"),
    ]
    code = page.partition('id="device-code"')[2].partition("</section>")[0]
    assert sorted(re.findall("<summary>(.*?)</summary>", code)) == [
        "linux-sbsa cuda12",
        "linux-x86_64 cuda11",
        "linux-x86_64 cuda12",
    ]


def test_page_of_gpus_lists_releases_of_jetpack_with_their_sources(files: dict[str, bytes]) -> None:
    text = files["gpus/index.html"].decode()
    row = text.partition('id="jetpack-6.2"')[2].partition("</tr>")[0]
    assert "<td>36.4.3</td><td>12.6</td><td>9.3.0.75</td><td>10.3.0.30</td>" in row
    assert "cuda_compat 12.9.40580548 <small>up to CUDA 12.9</small>" in row
    assert "https://github.com/OE4T/meta-tegra/tree/777775d53f8e" in row
    assert text.count('<tr id="jetpack-') == len(
        json.loads(files["gpus/index.json"])["jetpack"]["releases"]
    )


def test_site_without_tables_and_sets_says_so(small: Path) -> None:
    files = site_contents(Store(small))
    assert 'href="sets/index.html"' not in files["index.html"].decode()
    assert [path for path in files if path.startswith("sets/")] == []
    assert "has no symbols" in files["search/index.html"].decode()
    assert "no table of GPUs" in files["gpus/index.html"].decode()
    assert "no table of host compilers" in files["compilers/index.html"].decode()
    assert "no coverage" in files["packages/libcublas/index.html"].decode()
    assert broken_site_links(files) == []


def test_site_of_wheels_lists_archives_of_manifests(tmp_path: Path) -> None:
    """Their manifests are in the data, but their contents were not examined."""
    write_manifests(tmp_path, "12.9.0", "12.9.1")
    wheels = tmp_path / "manifests/wheels/cuda"
    wheels.mkdir(parents=True)
    (wheels / "redistrib_12.9.1.json").write_bytes(manifest("12.9.1", packages=["liby"]))
    store = Store(tmp_path, "wheels")
    files = site_contents(store, other=Store(tmp_path))
    page = json.loads(files["archives/index.json"])
    [package] = page["packages"]
    assert (page["channel"], package["package"]) == ("redist", "libx")
    assert package["span"] == {
        "redist": "cuda",
        "first": "12.9.0",
        "newest": "12.9.1",
        "releases": 2,
    }
    document = json.loads((tmp_path / "manifests/cuda/redistrib_12.9.1.json").read_bytes())
    hashes = {archive["platform"]: archive["sha256"] for archive in package["archives"]}
    assert hashes["linux-x86_64"] == document["libx"]["linux-x86_64"]["sha256"]
    assert package["archives"][0]["address"].startswith("https://developer.download.nvidia.com/")
    assert html_problems(files["archives/index.html"]) == []
    assert broken_site_links(files) == []
    assert "packages/libx/index.html" not in files
    assert b'"libx, LIBX"' in files["assets/search-index.js"]
    assert "archives/index.html" not in site_contents(store)


def test_search_finds_archives_by_their_main_program(tmp_path: Path) -> None:
    archives = tmp_path / "manifests/cuda"
    archives.mkdir(parents=True)
    data = manifest("12.9.1", packages=["nsight_systems"])
    (archives / "redistrib_12.9.1.json").write_bytes(data)
    wheels = tmp_path / "manifests/wheels/cuda"
    wheels.mkdir(parents=True)
    (wheels / "redistrib_12.9.1.json").write_bytes(manifest("12.9.1", packages=["liby"]))
    files = site_contents(Store(tmp_path, "wheels"), other=Store(tmp_path))
    index = files["assets/search-index.js"]
    assert b"\\tnsys" in index
    assert b"archives/index.html#cuda-nsight_systems" in index
