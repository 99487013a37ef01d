"""Properties of JSON Schemas: each accepts every document that its model accepts."""

import copy
import json
from functools import cache
from typing import Any

import pytest
from conftest import REPOSITORY, examples
from hypothesis import given
from hypothesis import strategies as st
from support import package_sets

from cudaredist.errors import InvalidFileError
from cudaredist.formats.registry import (
    FILE_KINDS,
    read_own_file,
    schema_problems,
)

SHIPPED = {
    "features": "data/features/wheels/cudnn/feature_9.28.0.json",
    "gpus": "data/gpus.json",
    "lock": "data/manifests/wheels/lock.json",
    "nvcc-compat": "data/nvcc_compat.json",
    **{
        name: f"data/policy/{name.removeprefix('policy-')}.json"
        for name in FILE_KINDS
        if name.startswith("policy-")
    },
}
OTHERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.sampled_from(["12.9\n", "12.9", "linux-x86_64", "a" * 64, 1.0, [], {}, [[]], ["a", "a"]]),
)


@cache
def shipped(kind: str) -> str:
    """Return a shipped file with shortened lists and objects, so that each change matters."""

    def cut(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: cut(value) for key, value in list(node.items())[:30]}
        return [cut(value) for value in node[:3]] if isinstance(node, list) else node

    if kind == "package-set":
        document = package_sets.document()
    else:
        document = json.loads((REPOSITORY / SHIPPED[kind]).read_text())
    text = json.dumps({key: cut(value) for key, value in document.items()})
    read_own_file(text.encode(), FILE_KINDS[kind].model)  # The shortened file must be valid.
    return text


def nodes_of(node: Any) -> list[tuple[Any, Any]]:
    """Return every list and object of a document with each of its keys or indexes."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if type(node) is list else ()
    return [place for key in keys for place in [(node, key), *nodes_of(node[key])]]


@pytest.mark.parametrize("kind", ["package-set", *SHIPPED])
@given(data=st.data())
@examples(1 / 4)
def test_schema_accepts_documents_of_model(kind: str, data: st.DataObject) -> None:
    document = json.loads(shipped(kind))
    for _ in range(data.draw(st.integers(1, 3))):
        node, key = data.draw(st.sampled_from(nodes_of(document)))
        change = data.draw(st.sampled_from(["other", "gone", "again"]))
        if change == "other":
            node[key] = copy.deepcopy(data.draw(OTHERS))
        elif change == "gone":
            del node[key]
        elif isinstance(node, dict):
            node[data.draw(st.text(max_size=4))] = copy.deepcopy(node[key])
        else:
            node.append(copy.deepcopy(node[key]))
        if not nodes_of(document):
            break
    text = json.dumps(document).encode()
    try:
        read_own_file(text, FILE_KINDS[kind].model)
    except InvalidFileError:
        return
    assert schema_problems(document, kind) == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "problem"),
    [
        ("features", '"label"', '"label": "1.2", "label"', None),
        ("policy-outputs", '"collapse"', '"collapse": [], "collapse"', "repeated key"),
        ("features", '"label": "', '"label": "\\u0007', "a control character"),
        ("features", '"label": "', '"label": "\x9b', "a control character"),
        ("features", '"label": "', '"label": "\x7f', "a control character"),
        ("features", '"label": "', '"label": "é', "does not match"),
    ],
)
def test_own_file_is_parsed_strictly_only_if_needed(
    kind: str, old: str, new: str, problem: str | None
) -> None:
    files = {"features": "features/wheels/nccl/feature_2.27.7.json"}
    text = (REPOSITORY / "data" / files.get(kind, "policy/outputs.json")).read_text("utf-8")
    data = text.replace(old, new, 1).encode()
    if problem is None:
        read_own_file(data, FILE_KINDS[kind].model)
        return
    with pytest.raises(InvalidFileError, match=problem):
        read_own_file(data, FILE_KINDS[kind].model)
