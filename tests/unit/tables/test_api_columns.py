"""Tests of the tables of APIs: forms, ranges of releases, and the stored document."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudaredist.formats.api_tables import ApiTable
from cudaredist.formats.declarations import declaration
from cudaredist.tables.api.api_columns import (
    ApiColumn,
    ApiColumns,
    ApiOrigin,
    without_parameter_names,
)
from cudaredist.tables.api.header_forms import Declared, HeaderForms
from cudaredist.tables.api.include_tree import IncludeTree

ORIGIN = ApiOrigin("wheels", "cuda", "linux-x86_64", "")
LABELS = ("12.9.0", "12.9.1", "13.0.0")


def column(label: str, origin: ApiOrigin = ORIGIN) -> ApiColumn:
    return ApiColumn(origin, label, "0" * 16)


def function(text: str, note: str | None = None) -> Declared:
    return Declared("functions", "", "f", text, "", note)


def table_of(releases: Mapping[str, HeaderForms]) -> ApiTable:
    table = ApiColumns("cuda_cudart")
    for label, forms in releases.items():
        table.add(column(label), {"a.h": forms})
    document = table.document()
    assert document is not None
    return document


def test_other_names_of_parameters_are_the_same_form() -> None:
    document = table_of(
        {
            "12.9.0": HeaderForms((function("int (void *p, size_t size)"),)),
            "13.0.0": HeaderForms((function("int (void *data, size_t count)"),)),
        }
    )
    (group,) = document.headers["a.h"].groups
    assert not group.releases
    assert group.functions == {"f": "int (void *data, size_t count)"}


@pytest.mark.parametrize(
    "later",
    [function("int (void *p, int size)"), function("int (void *p, size_t size)", ""), None],
)
def test_changed_form_begins_a_group(later: Declared | None) -> None:
    first = function("int (void *p, size_t size)")
    document = table_of(
        {
            "12.9.0": HeaderForms((first,)),
            "12.9.1": HeaderForms((first,)),
            "13.0.0": HeaderForms(() if later is None else (later,)),
        }
    )
    header = document.headers["a.h"]
    assert [group.releases for group in header.groups] == [
        ("12.9.0..12.9.1",),
        *([] if later is None else [("13.0.0",)]),
    ]
    assert not header.releases


def test_unread_header_states_releases_and_reason() -> None:
    document = table_of({"12.9.0": HeaderForms(), "13.0.0": HeaderForms((), "a.h:1: broken")})
    (unread,) = document.headers["a.h"].unread
    assert (unread.releases, unread.reason) == (("13.0.0",), "a.h:1: broken")


def test_document_gives_the_same_columns_in_any_order() -> None:
    names = [
        Declared("functions", "", "f", "int (int x)", "f_v2", "Use g"),
        Declared("types", "", "s", "struct"),
        Declared("fields", "s", "x", "int", "", ""),
        Declared("enumerators", "e", "one", "1"),
        Declared("typedefs", "", "t", "int"),
        Declared("macros", "", "M", "(x)"),
        Declared("names", "", "lib::half", ""),
    ]
    headers = {label: HeaderForms(tuple(names[n:])) for n, label in enumerate(LABELS)}
    document = table_of(headers)
    assert document == table_of(dict(reversed(headers.items())))
    again = ApiColumns.of(document)
    assert again.document() == document
    again.drop(lambda one: one.label == "13.0.0")
    assert again.document() == table_of({label: headers[label] for label in LABELS[:2]})
    again.drop(lambda _: True)
    assert again.document() is None


@pytest.mark.parametrize(
    ("releases", "problem"),
    [(("12.9.0", "*"), "2 providers, not 1"), (("12.8.0",), "cuda has no release 12.8.0")],
)
def test_document_with_unknown_releases_is_refused(releases: tuple[str, ...], problem: str) -> None:
    data = table_of({"12.9.0": HeaderForms()}).model_dump(mode="json")
    data["headers"]["a.h"]["groups"] = [{"releases": releases, "macros": {"M": "1"}}]
    with pytest.raises(ValueError, match=problem):
        ApiTable.model_validate_json(json.dumps(data))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int", "int x"),
        ("void *", "void *x"),
        ("char[256]", "char x[256]"),
        ("void (*)(int)", "void (*x)(int)"),
        ("int (void)", "int x(void)"),
        ("void * (size_t size)", "void *x(size_t size)"),
        ("int (*)[3]", "int (*x)[3]"),
        ("int (*[2])(void)", "int (*x[2])(void)"),
    ],
)
def test_declaration_has_name_at_its_place(text: str, expected: str) -> None:
    assert declaration(text, "x") == expected


_TYPES = st.sampled_from(
    ["int", "unsigned long long", "const void *", "cudaStream_t", "const double[]", "CUdevice *"]
)
_NAMES = st.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"char", "int", "long", "short", "float", "double", "const", "bool"}
)


@given(st.lists(st.tuples(_TYPES, _NAMES, _NAMES), min_size=1, max_size=5))
def test_names_of_parameters_do_not_count(parameters: list[tuple[str, str, str]]) -> None:
    def text(position: int) -> str:
        listed = ", ".join(declaration(one[0], str(one[position])) for one in parameters)
        return f"int ({listed})"

    unnamed = f"int ({', '.join(one[0] for one in parameters)})"
    first, second = without_parameter_names(text(1)), without_parameter_names(text(2))
    assert first == second == without_parameter_names(unnamed)


def test_key_of_header_follows_all_included_files() -> None:
    headers = {"a.h": b'#include "b.h"', "b.h": b"#include <c/d.h>", "c/d.h": b"1", "e.h": b"2"}
    key = IncludeTree(headers).key(["a.h"])
    assert IncludeTree(headers | {"e.h": b"3"}).key(["a.h"]) == key
    assert IncludeTree(headers | {"c/d.h": b"3"}).key(["a.h"]) != key
    by_macro = {"a.h": b"#include NAME", "b.h": b"1"}
    assert IncludeTree(by_macro).key(["a.h"]) != IncludeTree(by_macro | {"b.h": b"2"}).key(["a.h"])
