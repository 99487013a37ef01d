"""Make the shipped JSON Schemas anew: `python -m tools.schemas`."""

from pathlib import Path

from cudaredist.jsontext import canonical_json
from cudaredist.schema.registry import FILE_KINDS, FileKind

FOLDER = Path(__file__).parents[1] / "cudaredist" / "schemas"


def made_schema(kind: FileKind) -> dict[str, object]:
    """Make the JSON Schema of a kind from its model."""
    schema = kind.model.model_json_schema()
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "patternProperties" in node:
                # pydantic leaves other keys open, which its own validation does not.
                node.setdefault("additionalProperties", False)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


if __name__ == "__main__":
    for kind in FILE_KINDS.values():
        (FOLDER / f"{kind.name}.json").write_bytes(canonical_json(made_schema(kind)))
