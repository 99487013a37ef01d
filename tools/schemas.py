"""Generate the shipped JSON Schemas: `python -m tools.schemas`."""

from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cudaredist.commands.schema.report import report_models
from cudaredist.formats.base import OwnModel
from cudaredist.formats.registry import FILE_KINDS, UPSTREAM_KINDS
from cudaredist.formats.settings import CONFIGURATION, Configuration
from cudaredist.jsontext import canonical_json
from tools.upstream_schemas import upstream_schema

_DIALECT: dict[str, object] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
FOLDER = Path(__file__).parents[1] / "cudaredist" / "schemas"


def made_schema(model: type[OwnModel]) -> dict[str, object]:
    """Return the JSON Schema of a file, from its model."""
    schema = model.model_json_schema()
    pending: list[object] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "patternProperties" in node:
                # pydantic's schema allows other keys, but its validation does not.
                node.setdefault("additionalProperties", False)
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return _DIALECT | schema


def report_schema(name: str) -> dict[str, object]:
    """Return the JSON Schema of a command's reports."""
    union: Any = reduce(or_, report_models()[name])
    schema: dict[str, object] = TypeAdapter(union).json_schema()
    return _DIALECT | schema


def made_schemas() -> dict[str, dict[str, object]]:
    """Return every shipped schema, by name."""
    own = {kind.name: made_schema(kind.model) for kind in FILE_KINDS.values()}
    own[CONFIGURATION] = made_schema(Configuration)
    upstream = {name: upstream_schema(name) for name in UPSTREAM_KINDS}
    return own | upstream | {name: report_schema(name) for name in report_models()}


if __name__ == "__main__":
    for name, schema in made_schemas().items():
        (FOLDER / f"{name}.json").write_bytes(canonical_json(schema))
