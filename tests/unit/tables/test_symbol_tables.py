"""Tests of symbol tables: columns, documents, patterns and the link closure."""

import base64
import bz2
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cudaredist.errors import InvalidFileError
from cudaredist.formats import symbol_tables
from cudaredist.formats.symbol_tables import ExportGroup, Symbols
from cudaredist.store.symbol_folder import LayeredSymbols, SymbolFolder
from cudaredist.tables.symbols.symbol_check import LinkedLibrary, check_symbols
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.tables.symbols.symbol_table import (
    Column,
    Export,
    Import,
    LibraryRelease,
    Provider,
    SymbolColumns,
    ranges_of,
)

LINUX = Provider("wheels", "cuda", "libcublas", "linux-x86_64", "", False)  # noqa: FBT003 - a stub
SBSA = LINUX._replace(platform="linux-sbsa")
LABELS = ("12.0.1", "12.4.1", "12.9.1", "12.10.0")


def archive(label: str, salt: str = "") -> str:
    return (label.replace(".", "") + salt).encode().hex().ljust(16, "0")[:16]


def column(provider: Provider, label: str, salt: str = "") -> Column:
    return Column(provider, label, archive(label, provider.platform[-1] + salt))


def table(
    soname: str,
    exports: dict[str, str],
    imports: Iterable[tuple[Import, str]] = (),
    provider: Provider = LINUX,
) -> SymbolColumns:
    """Return a table of symbols, each with its releases as `12.0.1 12.4.1`."""
    columns = SymbolColumns(soname)
    of_imports = list(imports)
    for label in LABELS:
        here = column(provider, label)
        columns.add(here, (Export(n) for n, text in exports.items() if label in text.split()))
        columns.add_imports(here, (one for one, text in of_imports if label in text.split()))
    return columns


def document(columns: SymbolColumns) -> Symbols:
    found = columns.document()
    assert found is not None
    return found


ALL = " ".join(LABELS)


def test_document_has_symbols_of_same_releases_in_one_group() -> None:
    names = {"b": ALL, "a": ALL, "new": "12.9.1 12.10.0", "old": "12.0.1"}
    columns = table("libx.so.1", names | {"restored": "12.0.1 12.9.1 12.10.0"})
    columns.add(column(SBSA, "12.9.1"), [Export("a"), Export("v", "@@V1")])
    made = document(columns)
    assert [provider.platform for provider in made.providers] == ["linux-sbsa", "linux-x86_64"]
    assert [(group.version, group.releases, group.names) for group in made.exports] == [
        ("", (), "a"),
        ("", ("", "*"), "b"),
        ("", ("", "12.0.1"), "old"),
        ("", ("", "12.0.1 12.9.1..12.10.0"), "restored"),
        ("", ("", "12.9.1..12.10.0"), "new"),
        ("@@V1", ("*", ""), "v"),
    ]


names = st.sampled_from(["a", "b", "_Z1cv", "d"])
cells = st.dictionaries(
    st.tuples(st.sampled_from([LINUX, SBSA]), st.sampled_from(LABELS)),
    st.tuples(
        st.frozensets(st.builds(Export, names, st.sampled_from(["", "@@V", "@U"]))),
        st.frozensets(st.builds(Import, names, st.just("V"), st.sampled_from(["l.so", "m.so"]))),
    ),
    min_size=1,
)


@given(cells)
def test_columns_round_trip_through_document(
    releases: dict[tuple[Provider, str], tuple[frozenset[Export], frozenset[Import]]],
) -> None:
    columns = SymbolColumns("libx.so.1")
    for (provider, label), (exports, imports) in releases.items():
        columns.add(column(provider, label), exports)
        columns.add_imports(column(provider, label), imports)
    made = document(columns)
    again = SymbolColumns.of(Symbols.model_validate_json(made.model_dump_json()))
    assert document(again) == made
    for (provider, label), (exports, imports) in releases.items():
        release = again.in_archive(column(provider, label).archive)
        assert release is not None
        assert set(release.imports()) == imports
        assert set(release.exports()) == exports
        assert set(release.versions) == {one.name for one in exports}


def test_dropped_release_is_removed() -> None:
    columns = table("libx.so.1", {"a": ALL, "old": "12.0.1"})
    columns.drop(lambda one: one.label == "12.0.1")
    made = document(columns)
    assert list(made.providers[0].releases) == ["12.4.1", "12.9.1", "12.10.0"]
    assert [group.names for group in made.exports] == ["a"]
    columns.drop(lambda _: True)
    assert columns.document() is None


def test_table_of_data_folder_overrides_shipped_table(tmp_path: Path) -> None:
    for layer, name in (("shipped", "old"), ("local", "new")):
        content = document(table("libx.so.1", {name: ALL})).canonical()
        SymbolFolder(tmp_path / layer).write({"libx.so.1": content})
    layers = LayeredSymbols([tmp_path / "shipped", tmp_path / "local"])
    (columns,) = layers.tables(["libx.so.1"]).values()
    assert {export.name for export, mask in columns.exports.items() if mask} == {"new"}


def test_upper_layer_replaces_same_archive_of_lower_layer() -> None:
    lower, upper = table("libx.so.1", {"a": ALL, "b": ALL}), SymbolColumns("libx.so.1")
    upper.add(column(LINUX, "12.9.1"), [Export("c")])
    upper.add(column(LINUX, "13.0.0"), [Export("a")])
    merged = upper.overlay_on(lower)
    bits = merged.bits_by_provider()[LINUX]
    found = {export.name: ranges_of(mask, bits) for export, mask in merged.exports.items()}
    assert found == {
        "a": "12.0.1..12.4.1 12.10.0..13.0.0",
        "b": "12.0.1..12.4.1 12.10.0",
        "c": "12.9.1",
    }


@pytest.mark.parametrize("releases", [("12.0.1", ""), ("12.5.0",), ("12.0.1..12.5.0",), ("*", "*")])
def test_document_with_unknown_releases_is_refused(releases: tuple[str, ...]) -> None:
    made = document(table("libx.so.1", {"a": ALL})).model_dump(mode="json")
    made["exports"][0]["releases"] = list(releases)
    with pytest.raises(ValidationError):
        Symbols.model_validate(made, strict=False)


def test_releases_whose_symbols_are_unread_are_kept_apart() -> None:
    columns = table("libx.so.1", {"a": ALL})
    columns.unread.add(column(LINUX, "13.0.0"))
    columns.unread.add(column(SBSA, "13.0.0"))
    made = document(columns)
    assert [dict(provider.unread) for provider in made.providers] == [
        {"13.0.0": column(SBSA, "13.0.0").archive},
        {"13.0.0": column(LINUX, "13.0.0").archive},
    ]
    assert made.exports[0].releases == ()
    again = SymbolColumns.of(made)
    assert document(again) == made
    assert again.in_archive(column(LINUX, "13.0.0").archive) is None
    assert document(again.overlay_on(SymbolColumns("libx.so.1"))) == made
    again.drop(lambda _: True)
    assert again.document() is None


def test_many_cpp_names_are_packed() -> None:
    mangled = [f"_ZN4cask{number:06}E" for number in range(3000)]
    columns = SymbolColumns("libx.so.1")
    columns.add(column(LINUX, "12.9.1"), map(Export, [*mangled, "create"]))
    made = document(columns)
    (group,) = made.exports
    assert group.names == "create"
    assert len(group.packed) < 10_000
    assert sorted(group.symbols()) == sorted([*mangled, "create"])
    again = SymbolColumns.of(Symbols.model_validate_json(made.model_dump_json()))
    assert document(again) == made
    one = again.in_archive(column(LINUX, "12.9.1").archive)
    assert one is not None
    assert set(one.versions) == {*mangled, "create"}


@pytest.mark.parametrize("packed", ["%%", "AAAA", "QlpoOTEK"])
def test_broken_packed_names_are_refused(packed: str) -> None:
    group = ExportGroup(names="a", packed=packed)
    with pytest.raises(InvalidFileError):
        group.symbols()


def test_packed_names_above_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = base64.b64encode(bz2.compress(bytes(1 << 20))).decode()
    assert ExportGroup(packed=packed).symbols() == ["\0" * (1 << 20)]
    assert symbol_tables._UNPACKED_LIMIT <= 64 << 20
    monkeypatch.setattr(symbol_tables, "_UNPACKED_LIMIT", (1 << 20) - 1)
    with pytest.raises(InvalidFileError):
        ExportGroup(packed=packed).symbols()


# -- patterns


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("cublasSgemm", "cublasSgemm", True),
        ("cublasSgemm", "cublasSgemmEx", False),
        ("cublasSgemm*", "cublasSgemmEx", True),
        ("*gemm?x", "cublasSgemmEx", True),
        ("?f@@YA*", "?f@@YAXXZ", True),
        ("cublas[!A]gemm", "cublasDgemm", True),
        ("cublas\udcff", "cublas", False),
        ("*" * 100_000, "cublas", True),
        ("cublas[SD]gemm", "cublasDgemm", True),
        ("CUBLASSGEMM", "cublasSgemm", False),
    ],
)
def test_pattern_fits_whole_names(pattern: str, name: str, *, fits: bool) -> None:
    symbol = SymbolPattern(pattern)
    assert symbol.fits(name) is fits
    with closing(sqlite3.connect(":memory:")) as database:
        [(is_read,)] = database.execute("SELECT ? GLOB ?", (name, symbol.glob))
    assert is_read or not fits


def test_demangled_pattern_fits_readable_name() -> None:
    pattern = SymbolPattern("cudnn::backend::*", demangle=True)
    assert pattern.fits("_ZN5cudnn7backend6createEi")
    assert not pattern.fits("_ZN4cuda7backend6createEi")
    assert pattern.readable("_ZN5cudnn7backend6createEi") == "cudnn::backend::create(int)"
    assert pattern.readable("cudnnCreate") is None


# -- link closure

NEEDS = [
    (Import("ltNew", "libl.so.1", "libl.so.1"), "12.9.1 12.10.0"),
    (Import("ltOld", "libl.so.1", "libl.so.1"), ALL),
    (Import("plain", "", "libl.so.1"), ALL),
    (Import("elsewhere", "", "libother.so.1"), ALL),
]


def provider_table() -> SymbolColumns:
    columns = SymbolColumns("libl.so.1")
    for label in LABELS:
        new = [Export("ltNew", "@@libl.so.1")] if label in {"12.9.1", "12.10.0"} else []
        old = [Export("ltOld", "@@libl.so.1"), Export("plain", "@@libl.so.1")]
        columns.add(column(LINUX, label, "l"), [*old, *new])
    return columns


def release(columns: SymbolColumns, label: str, salt: str = "") -> LibraryRelease | None:
    return columns.in_archive(column(LINUX, label, salt).archive)


def linked(user: str, provider: str) -> dict[LinkedLibrary, LibraryRelease | None]:
    return {
        LinkedLibrary("libx.so.1", "libx", "0"): release(table("libx.so.1", {}, NEEDS), user),
        LinkedLibrary("libl.so.1", "libl", "1"): release(provider_table(), provider, "l"),
    }


@pytest.mark.parametrize(
    ("user", "provider", "missing"),
    [
        ("12.9.1", "12.9.1", []),
        ("12.9.1", "12.10.0", []),
        ("12.4.1", "12.0.1", []),
        ("12.9.1", "12.4.1", ["ltNew@libl.so.1"]),
    ],
)
def test_library_next_to_older_one_lacks_symbols(
    user: str, provider: str, missing: list[str]
) -> None:
    check = check_symbols(linked(user, provider))
    assert [name for one in check.missing for name in one.names] == missing
    assert check.unknown == ()


def exporting(*exports: Export) -> LibraryRelease | None:
    columns = SymbolColumns("lib.so.1")
    columns.add(column(LINUX, "12.9.1"), exports)
    return release(columns, "12.9.1")


PROVIDER = LinkedLibrary("libl.so.1", "libl", "1")


def test_symbol_without_version_is_found_in_another_library() -> None:
    libraries = linked("12.9.1", "12.9.1")
    libraries[PROVIDER] = exporting(Export("ltNew", "@@libl.so.1"), Export("ltOld", "@libl.so.1"))
    assert [library.names for library in check_symbols(libraries).missing] == [("plain",)]
    libraries[LinkedLibrary("libm.so.1", "libm", "2")] = exporting(Export("plain"))
    assert check_symbols(libraries).missing == ()


def test_symbol_with_another_version_is_missing() -> None:
    libraries = linked("12.9.1", "12.9.1")
    libraries[PROVIDER] = exporting(
        Export("ltNew", "@@libl.so.2"), Export("ltOld"), Export("plain")
    )
    assert [library.names for library in check_symbols(libraries).missing] == [("ltNew@libl.so.1",)]


def test_library_without_table_is_unknown_and_misses_nothing() -> None:
    check = check_symbols(linked("12.9.1", "12.9.1") | {PROVIDER: None})
    assert (check.missing, check.unknown) == ((), (PROVIDER,))
