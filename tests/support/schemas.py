"""Make the shipped JSON Schemas anew: `python -m tests.support.schemas`."""

from pathlib import Path

from cudaredist.jsontext import canonical_json
from cudaredist.schema.registry import FILE_KINDS, made_schema

FOLDER = Path(__file__).parents[2] / "cudaredist" / "schemas"

if __name__ == "__main__":
    for kind in FILE_KINDS.values():
        (FOLDER / f"{kind.name}.json").write_bytes(canonical_json(made_schema(kind)))
