"""Tests of the shipped symbol tables and of the link closure of shipped sets."""

import json
from collections import defaultdict
from functools import cache

import pytest
from conftest import REPOSITORY, Run

from cudaredist.commands.build.build_sets import build_one, specs_for
from cudaredist.formats.features import ExaminedArchive, Features
from cudaredist.formats.symbol_tables import Symbols
from cudaredist.sets.invariants.symbols import check_set_symbols
from cudaredist.sets.load import read_set_data
from cudaredist.sets.spec import Request
from cudaredist.store.data_folder import Store
from cudaredist.store.selection import ALL
from cudaredist.store.symbol_folder import LayeredSymbols, SymbolFolder, table_name
from cudaredist.tables.symbols.label_ranges import KEY_SIZE
from cudaredist.tables.symbols.symbol_check import LinkedLibrary, check_symbols
from cudaredist.tables.symbols.symbol_table import SymbolColumns

STORE = Store(REPOSITORY / "data", "wheels")
FOLDER = SymbolFolder(STORE.symbol_path)
LIMIT = 10_000_000


@cache
def documents() -> dict[str, Symbols]:
    found = {soname: FOLDER.document(soname) for soname in FOLDER.names()}
    return {soname: document for soname, document in found.items() if document is not None}


def test_symbol_tables_are_small() -> None:
    sizes = [path.stat().st_size for path in STORE.symbol_path.iterdir()]
    assert len(sizes) > 300
    assert sum(sizes) < LIMIT


def test_symbol_tables_contain_every_library_of_features() -> None:
    known: dict[str, set[str]] = defaultdict(set)
    for soname, document in documents().items():
        for provider in document.providers:
            known[soname] |= {*provider.releases.values(), *provider.unread.values()}
    expected: dict[str, set[str]] = defaultdict(set)
    for redist in STORE.redists():
        for label in STORE.features(redist).labels():
            features = Features.model_validate_json(STORE.features(redist).read(label) or b"")
            for package in features.packages.values():
                for archive in package.archives:
                    if isinstance(archive, ExaminedArchive):
                        for library in archive.libraries:
                            expected[table_name(library)].add((archive.sha256 or "")[:KEY_SIZE])
    assert known == expected


def test_only_symbols_beyond_the_limits_are_unread() -> None:
    unread = {
        (soname, label)
        for soname, document in documents().items()
        for provider in document.providers
        for label in provider.unread
    }
    assert unread == {("libcusparseLt.so.0", "0.7.1")}


def test_symbols_page_states_totals_of_shipped_tables(run: Run) -> None:
    sql = """SELECT count(DISTINCT library) AS libraries, count(*) AS files,
        (SELECT count(*) FROM exports) AS exports
        FROM symbol_archives JOIN symbol_providers ON provider = symbol_providers.id"""
    row = json.loads(run("query", "--format", "json", sql).stdout)
    libraries, files, exports = next(iter(row["rows"]))
    text = " ".join((REPOSITORY / "docs/symbols.md").read_text().split())
    assert f"tables have {libraries} libraries" in text
    assert f"these are {files:,} files with {exports:,} exports" in text


@pytest.mark.parametrize("soname", ["libcublasLt.so.12", "nvJitLink_120_0.dll", "libnccl.so.2"])
def test_rewritten_symbol_table_is_the_same(soname: str) -> None:
    document = documents()[soname]
    assert SymbolColumns.of(document).document() == document


@pytest.mark.slow
def test_every_package_set_has_a_link_closure() -> None:
    data, symbols = read_set_data(STORE), LayeredSymbols(STORE.symbol_paths)
    checks = {
        (spec.cuda, spec.platform): check_set_symbols(build_one(spec, data), symbols)
        # CUDA 12.3.1 has no wheel of nvcc for linux-sbsa.
        for spec in specs_for(Request(allow_hollow=True), data, [ALL])
    }
    assert len(checks) > 50
    assert [one for check in checks.values() for one in check.missing] == []
    # Its 26 MB of names are beyond the limit.
    unknown = {library.soname for check in checks.values() for library in check.unknown}
    assert unknown == {"libcusparseLt.so.0"}


def archive_of(soname: str, label: str, platform: str = "linux-x86_64") -> str:
    (key,) = {
        provider.releases[label]
        for provider in documents()[soname].providers
        if provider.platform == platform and label in provider.releases
    }
    return key


@pytest.mark.parametrize(
    ("user", "provider", "missing"),
    [
        (
            ("libcublas.so.12", "12.9.1"),
            ("libcublasLt.so.12", "12.8.2"),
            ("cublasLtGetEnvironmentMode", "cublasLtSetEnvironmentMode"),
        ),
        (("libcublas.so.12", "12.9.1"), ("libcublasLt.so.12", "12.9.1"), ()),
        (("libcublas.so.12", "12.8.2"), ("libcublasLt.so.12", "12.9.1"), ()),
    ],
)
def test_known_pairs_of_cublas_and_cublaslt_have_expected_symbols(
    user: tuple[str, str], provider: tuple[str, str], missing: tuple[str, ...]
) -> None:
    """The expected symbols are the output of `ldd -r` for the libraries of the wheels."""
    libraries = {}
    for soname, label in (user, provider):
        key = archive_of(soname, label)
        release = SymbolColumns.of(documents()[soname]).in_archive(key)
        libraries[LinkedLibrary(soname, soname, key)] = release
    names = [name for one in check_symbols(libraries).missing for name in one.names]
    assert names == [f"{name}@libcublasLt.so.12" for name in missing]


def test_which_symbol_finds_first_and_last_release(run: Run) -> None:
    options = ("which", "--symbol", "cublasLtGetEnvironmentMode", "--json")
    hits = json.loads(run(*options, "--platform", "linux-x86_64").stdout)["symbols"]
    assert (hits[0]["library"], hits[0]["first"]) == ("libcublasLt.so.12", "12.9.1")
