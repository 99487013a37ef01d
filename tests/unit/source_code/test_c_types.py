"""Tests of the comparison of types of C."""

import pytest

from cudaredist.source_code.c_types import type_of

TYPEDEFS = {
    "CUdevice": "typedef CUdevice_v1 CUdevice",
    "CUdevice_v1": "typedef int CUdevice_v1",
    "handle": "typedef context *handle",
    "const_handle": "typedef const context *const_handle",
    "loop": "typedef loop loop",
    "callback": "typedef void (*callback)(int)",
}


@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [
        ("int device", "CUdevice dev", True),
        ("int device", "CUdevice_v1", True),
        ("int device", "unsigned int device", False),
        ("const int device", "int device", True),
        ("context *x", "handle x", True),
        ("struct context *x", "handle x", True),
        ("const context *x", "const_handle x", True),
        ("context *x", "const_handle x", False),
        ("context *const x", "const handle x", True),
        ("context **x", "handle *x", True),
        ("context *const *x", "const handle *x", True),
        ("const context **x", "const handle *x", False),
        ("int x[4]", "int *x", True),
        ("loop x", "loop y", True),
        ("callback x", "callback y", True),
        ("void (*f)(int)", "void (*f)(long)", False),
        ("unsigned long long x", "unsigned long long", True),
    ],
)
def test_parameters_are_compared_through_typedefs(
    first: str, second: str, *, is_equal: bool
) -> None:
    types = [type_of(text, TYPEDEFS.get).as_parameter() for text in (first, second)]
    assert (types[0] == types[1]) == is_equal


@pytest.mark.parametrize(
    ("first", "second"),
    [("int x[4]", "int x[5]"), ("int x : 3", "int x : 4"), ("int x", "int x[2]")],
)
def test_fields_of_other_sizes_differ(first: str, second: str) -> None:
    assert type_of(first, TYPEDEFS.get) != type_of(second, TYPEDEFS.get)
