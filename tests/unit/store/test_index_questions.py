"""Each question to the index is a query whose columns are the fields of its rows."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, NamedTuple

import pytest

import cudaredist
from cudaredist.store.facts_index import Question
from cudaredist.store.index_schema import index_schema


class Release(NamedTuple):
    redist: str
    label: str


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(index_schema())
        yield connection


def questions() -> dict[str, Question[Any]]:
    """Return the questions of all modules by their names."""
    found = {}
    for module in walk_packages(cudaredist.__path__, "cudaredist."):
        if not module.name.endswith("__main__"):
            for name, value in vars(import_module(module.name)).items():
                if isinstance(value, Question):
                    found[f"{module.name}.{name}"] = value
    return found


def number_of_values(sql: str) -> int:
    """Return how many values replace the `?` and `?1` of a query."""
    marks = re.findall(r"\?\d*", sql)
    return marks.count("?") + len({*marks} - {"?"})


def test_questions_name_all_columns_after_the_fields_of_rows(database: sqlite3.Connection) -> None:
    found = questions()
    assert len(found) > 20
    for name, question in found.items():
        asked = question.where("TRUE")
        values = ["[]"] * number_of_values(asked.sql)
        assert not asked.rows(values, database), name


def test_rows_have_columns_by_name(database: sqlite3.Connection) -> None:
    query = "SELECT value AS redist, '13.0' AS label FROM json_each(?)"
    question = Question(Release, f"{query} WHERE {{condition}}")
    row = ("nccl", "13.0")
    assert question.where("value > 'm'").rows(['["cuda", "nccl"]'], database) == [row]
    assert question.where("TRUE").rows(['["nccl"]'], database)[0].label == "13.0"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT label, redist FROM releases",
        "SELECT redist, label AS release FROM releases",
        "SELECT redist FROM releases",
        "SELECT redist, label, layer FROM releases",
    ],
)
def test_question_with_other_columns_is_an_error(database: sqlite3.Connection, sql: str) -> None:
    with pytest.raises(TypeError, match="are not the fields of Release"):
        Question(Release, sql).rows((), database)
