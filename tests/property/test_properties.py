"""Properties of parsers and files for any input."""

import contextlib
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.factory import manifest

from cudaredist.errors import CudaRedistError, InvalidFileError
from cudaredist.formats.registry import FILE_KINDS, read_own_file
from cudaredist.jsontext import DEPTH_LIMIT, canonical_json, is_too_deep, load_json, parse_json
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, is_safe_relative_path
from cudaredist.sources.index import is_whole, parse_index

versions = st.builds(
    lambda numbers, suffix: ".".join(numbers) + suffix,
    st.lists(st.from_regex(r"[0-9]{1,6}", fullmatch=True), min_size=1, max_size=5),
    st.one_of(st.just(""), st.from_regex(r"-cuda[0-9]{1,2}\.[0-9]", fullmatch=True)),
)
keys = st.one_of(
    st.sampled_from(
        [
            "release_date",
            "release_label",
            "release_product",
            "name",
            "license",
            "license_path",
            "version",
            "cuda_variant",
            "linux-x86_64",
            "windows-arm64",
            "source",
            "cuda12",
            "relative_path",
            "sha256",
            "md5",
            "size",
            "cuda_nvcc",
            "460.27.04",
        ]
    ),
    st.text(max_size=8),
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["12.9.1", "a" * 64, "b" * 32, "1000", "a/b.tar.xz", "../x", "2025-06-04"]),
)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=30,
)


@given(versions)
def test_version_is_printed_in_input_form(text: str) -> None:
    assert str(Version.parse(text)) == text


@given(versions, versions, versions)
def test_versions_have_a_total_order(a: str, b: str, c: str) -> None:
    x, y, z = map(Version.parse, (a, b, c))
    assert (x < y) + (x == y) + (x > y) == 1
    assert (x == y) == (a == b)
    if x <= y <= z:
        assert x <= z


@given(st.text())
def test_any_text_is_a_version_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        Version.parse(text)


@given(st.binary(), st.text(max_size=40))
def test_index_parser_never_raises_on_bytes(page: bytes, address: str) -> None:
    parse_index(page, address)
    is_whole(page)


@given(st.text(alphabet="<>ahref='\" \n/.:?#%&;[]redistb_0123json-!"), st.text(max_size=20))
def test_index_parser_never_raises_on_almost_html(page: str, address: str) -> None:
    parse_index(page.encode(), f"https://host/{address}")


@given(st.lists(versions.filter(lambda v: 2 <= v.partition("-")[0].count(".") + 1 <= 4)))
def test_index_parser_finds_every_label(labels: list[str]) -> None:
    page = "".join(f"<a href='redistrib_{label}.json'>" for label in labels).encode()
    assert {str(label) for label in parse_index(page, "https://host/x/")} == set(labels)


@given(st.binary())
def test_manifest_reader_raises_only_own_errors_for_bytes(data: bytes) -> None:
    with contextlib.suppress(InvalidFileError):
        read_manifest(data)


@given(documents)
def test_manifest_reader_raises_only_own_errors_for_json(document: object) -> None:
    try:
        read_manifest(json.dumps(document).encode())
    except InvalidFileError as error:
        assert error.problems


@given(st.data())
def test_manifest_reader_raises_only_own_errors_for_edited_manifest(data: st.DataObject) -> None:
    good = bytearray(manifest())
    position = data.draw(st.integers(0, len(good) - 1))
    good[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        result = read_manifest(bytes(good))
    except InvalidFileError:
        return
    assert all(is_safe_relative_path(archive.relative_path) for archive in result.archives)
    assert all(len(archive.sha256 or "") == 64 for archive in result.archives)


@given(documents)
def test_own_file_reader_raises_only_own_errors(document: object) -> None:
    for kind in FILE_KINDS.values():
        with contextlib.suppress(CudaRedistError):
            read_own_file(json.dumps(document).encode(), kind.model)


@given(documents.filter(lambda d: "nan" not in repr(d) and "inf" not in repr(d)))
def test_canonical_json_is_a_fixed_point(document: object) -> None:
    try:
        once = canonical_json(document)
        again = parse_json(once, what="test", limit=1 << 20)
    except (InvalidFileError, UnicodeEncodeError):
        return  # data files never contain control characters or lone surrogates
    assert canonical_json(again) == once


@given(st.dictionaries(st.text("abc_", min_size=1), st.integers(0, 9)), st.randoms())
def test_canonical_json_ignores_order_of_keys(document: dict[str, int], random: object) -> None:
    items = list(document.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert canonical_json(dict(items)) == canonical_json(document)


def depth(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    items = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, items), default=0)


marked = st.text(alphabet='"\\[]{}:,a\n', max_size=8)
with_marks = st.recursive(
    marked, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(marked, inner, max_size=3)
)


@given(document=with_marks, in_lists=st.booleans(), indent=st.sampled_from([None, 2]))
def test_depth_limit_ignores_brackets_in_strings(
    *, document: Any, in_lists: bool, indent: int | None
) -> None:
    for _ in range(DEPTH_LIMIT - depth(document)):
        document = [document] if in_lists else {"a": document}
    shallow, deep = (json.dumps(value, indent=indent).encode() for value in (document, [document]))
    assert not is_too_deep(shallow)
    assert is_too_deep(deep)


@pytest.mark.parametrize("part", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("end", [b"", b"1", b"NaN", b"]" * 70])
def test_deep_text_is_refused_before_other_faults(part: bytes, end: bytes) -> None:
    for read in (load_json, partial(parse_json, what="x", limit=1 << 20)):
        with pytest.raises((ValueError, InvalidFileError), match="nested more than 64 levels deep"):
            read(part * 100_000 + end)
