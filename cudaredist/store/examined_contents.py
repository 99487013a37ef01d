"""The contents of archives in the index, as models."""

from collections.abc import Collection
from typing import NamedTuple

from cudaredist.formats.features import ExaminedArchive
from cudaredist.store.facts_index import Index, Question


class _FactsRow(NamedTuple):
    contents: int
    facts: str
    """The entry of the feature file, as JSON."""


_FACTS = Question(
    _FactsRow,
    """
    SELECT id AS contents, json_set(facts, '$.code_by_file', json(code)) AS facts FROM contents
    WHERE id IN (SELECT value FROM json_each(?))""",
)


def examined_contents(index: Index, contents: Collection[int]) -> dict[int, ExaminedArchive]:
    """Return the contents of archives by their rows."""
    return {
        row.contents: ExaminedArchive.model_validate_json(row.facts)
        for row in index.ask(_FACTS, contents)
    }
