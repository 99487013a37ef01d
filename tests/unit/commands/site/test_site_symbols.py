"""Symbols on the web site: the scripts of the search, and changes between releases."""

import json
import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from support.binaries import Symbol, elf
from support.patching import Patch
from support.releases import Files, put, release
from support.running import succeed
from support.small_sets import site_contents

from cudaredist.commands.diff.diff_releases import compare_releases
from cudaredist.commands.site import symbol_index
from cudaredist.commands.site.site_data import read_site_data
from cudaredist.commands.site.site_symbols import ExportSpan, SymbolGroups
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index
from cudaredist.store.known_vulnerabilities import known_vulnerabilities

SONAME = "libcublasLt.so.12"
INTERNAL = "_ZN2lt4initEv"
NAMES = {
    "12.4.1": ("ltMatmul", "ltGone", INTERNAL),
    "12.9.1": ("ltMatmul", "ltMode", "LTMATMUL"),
    "13.0.0": ("ltMatmul", "ltMode", "ltGone", "LTMATMUL"),
}
"""The exports of a library on Linux, by release."""


def library(*names: str) -> bytes:
    symbols = [Symbol(name, version=SONAME) for name in names]
    return elf(symbols=symbols, defines=[SONAME], soname=SONAME)


def packages(label: str) -> Mapping[str, Mapping[str, Files]]:
    real, stub = library(*NAMES[label]), library("ltMatmul")
    files: Files = {f"lib/{SONAME}": real, "lib/stubs/libcublasLt.so": stub}
    return {
        "libcublas": {"linux-x86_64": files, "linux-sbsa": files},
        "cuda_driver_dev": {"linux-x86_64": {"lib/stubs/libcublasLt.so": stub}},
    }


def make_data(root: Path) -> Path:
    """Make a data folder with examined releases and tables of symbols."""
    for label in NAMES:
        files = release(label, packages(label))
        put(root / "source/compute/cuda/redist", files)
        put(root / "data/manifests/cuda", {n: d for n, d in files.items() if "/" not in n})
    places = ("--data-dir", root / "data", "--cache-dir", root / "cache")
    sources = ("--base-url", root / "source", *places)
    succeed("process-manifests", "-q", *sources)
    succeed("update-symbols", "-q", *sources)
    return root / "data"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("site-symbols"))


@pytest.fixture(scope="module")
def files(data: Path) -> dict[str, bytes]:
    """The site of the data."""
    return site_contents(Store(data))


def symbols_of(files: Mapping[str, bytes]) -> dict[str, list[list[str]]]:
    """Return the links of each symbol, from the scripts of the search."""
    names: dict[str, list[list[str]]] = {}
    scripts = [path for path in files if path.startswith("assets/symbols/")]
    for number in range(len(scripts)):
        content = files[f"assets/symbols/{number}.js"].decode()
        target, _, text = content.partition("=")
        assert target == f"window.cudaredistIndex.pieces[{number}]"
        piece = json.loads(text.removesuffix(";\n"))
        name, fields = "", piece["names"].split(" ")
        for shared, rest, place in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
            name = name[: int(shared)] + rest
            names[name] = piece["packages"][int(place)]
    return names


def test_search_has_every_symbol_with_packages_and_releases(files: dict[str, bytes]) -> None:
    symbols = symbols_of(files)
    assert list(symbols) == [INTERNAL, "ltGone", "LTMATMUL", "ltMatmul", "ltMode"]
    page = "packages/libcublas/index.html#sonames"
    spans = {name: [text for _, text in links] for name, links in symbols.items()}
    assert symbols["ltMode"] == [[page, f"libcublas, cuda: {SONAME} 12.9.1 to 13.0.0"]]
    assert spans["ltGone"] == [f"libcublas, cuda: {SONAME} 12.4.1 and 13.0.0"]
    assert spans[INTERNAL] == [f"libcublas, cuda: {SONAME} 12.4.1 (removed)"]
    stub = f"{SONAME} 12.4.1 to 13.0.0 (for linking only)"
    assert spans["ltMatmul"] == [
        f"cuda_driver_dev, cuda: {stub}",
        f"libcublas, cuda: {SONAME} 12.4.1 to 13.0.0",
    ]


@pytest.mark.parametrize("size", [1, 30])
def test_small_pieces_have_the_same_symbols(
    data: Path, files: dict[str, bytes], patch: Patch, size: int
) -> None:
    expected = symbols_of(files)
    patch(symbol_index, "PIECE_SIZE", size)
    small = site_contents(Store(data))
    assert symbols_of(small) == expected
    pieces = json.loads(small["assets/search-index.js"].partition(b"=")[2][:-2])["symbols"]
    assert sum(count for _, count in pieces) == len(expected)
    # Names that differ in case only are in one piece.
    assert [first for first, _ in pieces][: 5 - size] == ["", "l", "ltm", "ltmo"][: 5 - size]


def test_symbols_have_whole_names_and_packages_with_a_page() -> None:
    span = ExportSpan("libx", "libx.so", "cuda", "12.9.1", is_newest=True, is_stub=False)
    groups: SymbolGroups = [((span,), ["a😀b", "a😀c", "ab", "ac"])]
    (piece,) = symbol_index.symbol_pieces([groups], {"libx"})
    assert piece.rows == ["0 ab 0", "1 c 0", "0 a😀b 0", "0 a😀c 0"]
    assert symbol_index.symbol_pieces([groups], {"liby"}) == []


def test_symbols_of_releases_without_a_page_are_left_out(data: Path, tmp_path: Path) -> None:
    for name in ("manifests/cuda", "symbols"):
        (tmp_path / name).mkdir(parents=True)
        for path in (data / name).iterdir():
            if "12.4.1" not in path.name and "12.9.1" not in path.name:
                (tmp_path / name / path.name).write_bytes(path.read_bytes())
    symbols = symbols_of(site_contents(Store(tmp_path)))
    assert INTERNAL not in symbols
    assert [text for _, text in symbols["ltGone"]] == [f"libcublas, cuda: {SONAME} 13.0.0"]


@pytest.fixture
def without_symbols(data: Path, tmp_path: Path) -> Path:
    """The data without the symbols of a release."""
    shutil.copytree(data, tmp_path / "data")
    table = tmp_path / f"data/symbols/{SONAME}.json"
    document = json.loads(table.read_bytes())
    for provider in document["providers"]:
        provider["unread"] = {"12.9.1": provider["releases"].pop("12.9.1")}
    document["exports"] = []
    table.write_text(json.dumps(document))
    return tmp_path / "data"


def test_release_page_counts_and_lists_changed_exports(files: dict[str, bytes]) -> None:
    pages = {label: json.loads(files[f"cuda/{label}/index.json"]) for label in NAMES}
    assert pages["12.4.1"]["exports"] is None
    assert pages["12.9.1"]["exports"] == [
        {
            "package": "libcublas",
            "library": SONAME,
            "places": ["linux-sbsa", "linux-x86_64"],
            "removed": 2,
            "added": 2,
            "removed_names": ["ltGone"],
            "added_names": ["LTMATMUL", "ltMode"],
        }
    ]
    assert [one["added_names"] for one in pages["13.0.0"]["exports"]] == [["ltGone"]]
    text = files["cuda/12.9.1/index.html"].decode()
    assert f"{SONAME} [linux-sbsa, linux-x86_64]: 2 removed, 2 added" in text
    assert "<li>-ltGone</li><li>+LTMATMUL</li><li>+ltMode</li><li>and 1 more</li>" in text
    assert "cudaredist diff cuda@12.4.1 cuda@12.9.1 --symbols" in text


def test_release_and_search_pages_state_unknown_symbols(without_symbols: Path) -> None:
    files = site_contents(Store(without_symbols))
    page = files["search/index.html"].decode()
    assert f"The symbols of some releases are unknown: {SONAME}." in page
    for label in ("12.9.1", "13.0.0"):
        page = json.loads(files[f"cuda/{label}/index.json"])
        assert (page["exports"], page["unknown_exports"]) == ([], ["libcublas"])
        text = files[f"cuda/{label}/index.html"].decode()
        assert "symbols of libcublas are unknown in one of the two releases" in text


def test_release_page_states_unexamined_packages_as_unknown(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "data")
    for path in (tmp_path / "data/features/cuda").glob("*13.0.0*"):
        path.unlink()
    page = json.loads(site_contents(Store(tmp_path / "data"))["cuda/13.0.0/index.json"])
    assert page["exports"] == []
    assert page["unknown_exports"] == ["libcublas"]


def test_release_page_without_tables_states_that(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "data")
    shutil.rmtree(tmp_path / "data/symbols")
    files = site_contents(Store(tmp_path / "data"))
    assert json.loads(files["cuda/12.9.1/index.json"])["exports"] is None
    assert "This data has no symbols." in files["cuda/12.9.1/index.html"].decode()


@pytest.mark.slow
def test_shipped_releases_have_the_changes_of_diff(tmp_path: Path) -> None:
    store, cache = Store(shipped_data(), "wheels"), Cache(tmp_path)
    known = known_vulnerabilities(store)
    pairs = {("cuda", "12.9.0"), ("cudss", "0.8.0"), ("cudnn", "9.26.0")}
    for redist, releases in read_site_data(Index(store, cache)).releases.items():
        for old, new in pairwise(releases):
            if (redist, str(new.label)) not in pairs:
                continue
            sides = f"{redist}@{old.label}", f"{redist}@{new.label}"
            expected = {
                (package.package, place, *name.partition(":")[::2], is_added)
                for package in compare_releases(*sides, store, cache, known).packages
                for delta in package.deltas
                if delta.field == "exports"
                for is_added, names in enumerate((delta.gone, delta.added))
                for place in delta.places
                for name in names
            }
            assert new.exports is not None
            actual = {
                (change.package, place, change.library, name, is_added)
                for change in new.exports.changes
                for is_added, names in enumerate((change.removed, change.added))
                for place in change.places
                for name in names
            }
            assert actual == expected != set()
            pairs.remove((redist, str(new.label)))
    assert pairs == set()


def test_package_page_has_the_history_of_symbols(files: dict[str, bytes]) -> None:
    history = json.loads(files["packages/libcublas/index.json"])["history"]
    counts = {one["release"]: (one["symbols"], one["added"], one["removed"]) for one in history}
    assert counts == {"12.4.1": (3, None, None), "12.9.1": (3, 2, 2), "13.0.0": (4, 1, 0)}
    text = files["packages/libcublas/index.html"].decode()
    assert "<small>sonames:</small>" in text
