"""Properties of reading any bulletin: it is invalid, or no stated version is lost."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from support.bulletins import POLICY, Row, bulletin, cve_record, read

from cudaredist.errors import ContentError
from cudaredist.formats.advisories import Advisories
from cudaredist.formats.registry import read_own_file
from cudaredist.tables.advisories.products import product_called
from cudaredist.tables.advisories.read_bulletin import ReadBulletin

CVE = "CVE-2030-1000"
ROWS: tuple[Row, ...] = (
    ("Windows, Linux", "NVIDIA CUDA Toolkit", "All versions prior to 13.1", "13.1"),
    ("Linux", "cuDNN", "All versions up to and including 9.1", "9.2"),
    ("Windows", "cuDNN", "9.0", "9.2"),
    ("All", "TensorRT-LLM", "All versions prior to 0.2", "0.2"),
    ("Linux(R535)", "Tesla", "All driver versions prior to 535.2", "535.2"),
)
ODD: tuple[object, ...] = (
    *(None, True, 0, -1, 1e300, 10**19, [], {}, [[]], [None], {"": 1}),
    *("", " ", "\t", "\x1b[31mred", "\u202e", "\ud800", "x" * 400, "../../x", "v" + "9" * 200),
    *(CVE, "Linux", "cuDNN", "NVIDIA CUDA Toolkit", "All versions prior to 99.9"),
)
Path = tuple[Any, ...]


def paths(value: object, start: Path = ()) -> Iterator[Path]:
    """Yield the paths of all values in a document."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield (*start, key)
        yield from paths(item, (*start, key))


def change(document: Any, draw: st.DataObject) -> None:
    """Replace, remove, repeat or move a value of a document."""
    *owner_path, key = draw.draw(st.sampled_from([*paths(document)]))
    owner = document
    for step in owner_path:
        owner = owner[step]
    kind = draw.draw(st.sampled_from(["replace", "remove", "repeat", "nest"]))
    if kind == "replace":
        owner[key] = draw.draw(st.sampled_from(ODD))
    elif kind == "remove":
        del owner[key]
    elif kind == "nest":
        owner[key] = [copy.deepcopy(owner[key])]
    elif isinstance(owner, list):
        owner.append(copy.deepcopy(owner[key]))
    else:
        owner[f"{key}s"] = copy.deepcopy(owner[key])


def stated(document: Any) -> set[tuple[str, str, str, str]]:
    """Return all stated versions of our products: platform, product, status and version."""
    versions: dict[str, tuple[str, str, str]] = {}

    def walk(branches: list[Any], platform: str) -> None:
        for branch in branches:
            own = branch["name"] if branch["category"] == "architecture" else platform
            if branch["category"] == "product_version":
                product = branch["product"]
                versions[product["product_id"]] = (own, branch["name"], product["name"])
            walk(branch.get("branches", []), own)

    walk(document["product_tree"].get("branches", []), "not stated")
    return {
        (platform, name, status, text)
        for entry in document.get("vulnerabilities", [])
        for status, identifiers in entry["product_status"].items()
        for platform, name, text in (versions[one] for one in identifiers)
        if product_called(name, POLICY) is not None
    }


def read_versions(result: ReadBulletin) -> set[tuple[str, str, str, str]]:
    """Return the versions in the result in the same form."""
    return {
        (row.platform, product, status, text)
        for one in result.vulnerabilities
        for row in one.versions
        for product in row.products
        for status, texts in (("known_affected", row.affected), ("fixed", row.fixed))
        for text in texts
    }


@given(st.data())
@examples(4)
def test_changed_bulletin_is_invalid_or_read_without_loss(draw: st.DataObject) -> None:
    document = bulletin(rows=ROWS)
    for _ in range(draw.draw(st.integers(1, 3))):
        change(document, draw)
    try:
        result = read(json.dumps(document).encode())
    except ContentError as error:
        assert error.message.replace("\n", "").isprintable()
        return
    assert read_versions(result) == {
        tuple(" ".join(text.split()) for text in row) for row in stated(document)
    }
    fields = {
        "schema_version": 1,
        "source": "",
        "newest": result.bulletin.changed,
        "bulletins": {result.id: result.bulletin},
        "vulnerabilities": result.vulnerabilities,
    }
    table = Advisories.model_validate(fields)
    assert read_own_file(table.canonical(), Advisories) == table


def affected(record: Any) -> set[tuple[str, ...]]:
    """Return the affected versions of our products in a CVE record."""
    return {
        tuple(" ".join(text.split()) for text in (platform, one["product"], version["version"]))
        for one in record["containers"]["cna"].get("affected", [])
        for platform in one.get("platforms", []) or ["not stated"]
        for version in one.get("versions", [])
        if version.get("status") == "affected"
        if product_called(one["product"], POLICY) is not None
    }


@given(st.data())
@examples(2)
def test_changed_cve_record_is_invalid_or_its_difference_is_a_fact(draw: st.DataObject) -> None:
    original = cve_record(CVE, ROWS[:2])
    record = copy.deepcopy(original)
    change(record, draw)
    try:
        (result,) = read(bulletin(rows=ROWS[:2]), {CVE: record}).vulnerabilities
    except ContentError as error:
        assert error.message.replace("\n", "").isprintable()
        return
    assert bool(result.differences) == (affected(record) != affected(original))


@given(st.binary(max_size=200))
@examples(1)
def test_any_bytes_are_no_bulletin(data: bytes) -> None:
    try:
        read(data)
    except ContentError as error:
        assert error.message.replace("\n", "").isprintable()
    else:
        raise AssertionError(data)
