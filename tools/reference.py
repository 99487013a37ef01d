"""Make the reference pages anew from commands and schemas: `python -m tools.reference`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cudaredist.cli import app
from cudaredist.errors import EXIT_CODES
from cudaredist.schema.registry import FILE_KINDS

from .schemas import made_schema

FOLDER = Path(__file__).parents[1] / "docs"
COMMANDS, DATA_FILES = "commands.md", "data-files.md"
_MADE = "<!-- Made by `make docs` from the program itself; a test fails where they differ. -->"


def pages() -> dict[str, str]:
    """Return the text of each reference page, by its name."""
    return {COMMANDS: "\n".join(_commands()), DATA_FILES: "\n".join(_data_files())}


def _commands() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    yield from ("# Commands", "", _MADE, "")
    yield "Every command has `--help`. Its examples run in order in an empty folder. Those marked"
    yield "`# needs network` need NVIDIA's server, a package index, or the result of such a call."
    yield from (
        "",
        "Exit codes are the same everywhere; of several the worst one counts (4, 5, 3, 1, 0):",
    )
    yield from ("", "| code | meaning |", "| --- | --- |")
    for code, meaning in EXIT_CODES.items():
        yield f"| {code} | {meaning} |"
    for name, command in group.commands.items():
        yield from ("", f"## cudaredist {name}", "")
        yield _paragraphs(command.help)
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option"]
        if arguments:
            yield from ("", "| argument | meaning |", "| --- | --- |")
            for argument in arguments:
                yield f"| `{argument.metavar or argument.name.upper()}` | {argument.help or ''} |"
        yield from ("", "| option | meaning |", "| --- | --- |")
        for option in options:
            names = ", ".join(f"`{opt}`" for opt in (*option.opts, *option.secondary_opts))
            variable = f" Variable: `{option.envvar}`." if option.envvar else ""
            yield f"| {names} | {_cell(option.help or '')}{variable} |"
    yield ""


def examples_of(text: str) -> list[str]:
    """Return the examples of a help text; those that need the network are marked."""
    before, _, after = text.partition("Examples that need the network:")
    _, _, offline = before.partition("Examples:")
    here, there = (re.findall(r"cudaredist .+", part) for part in (offline, after))
    return [*here, *(f"{line}  # needs network" for line in there)]


def _paragraphs(text: str) -> str:
    body, *_ = text.partition("Examples")
    lines = examples_of(text)
    shown = "\n".join(("```console", *(f"$ {line}" for line in lines), "```"))
    words = [" ".join(part.split()) for part in body.split("\n\n") if part.strip()]
    return "\n\n".join([*words, shown] if lines else words)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _data_files() -> Iterator[str]:
    yield from ("# Data files", "", _MADE, "")
    yield "Each kind has a JSON Schema: `cudaredist schema NAME`. Other keys are refused."
    for kind in FILE_KINDS.values():
        schema = json.loads(json.dumps(made_schema(kind)))
        yield from ("", f"## {kind.name}", "", " ".join(schema.get("description", "").split()))
        for title, model in [(None, schema), *sorted(schema.get("$defs", {}).items())]:
            if "properties" not in model:
                continue
            if title is not None:
                yield from ("", f"### {kind.name}: {title}", "")
                yield " ".join(model.get("description", "").split())
            yield from ("", "| key | type | meaning |", "| --- | --- | --- |")
            for key, value in model["properties"].items():
                yield f"| `{key}` | {_type(value)} | {_cell(value.get('description', ''))} |"
    yield ""


def _type(value: dict[str, Any]) -> str:  # noqa: PLR0911 - one line for each form
    if "$ref" in value:
        return str(value["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf"):
        if several in value:
            return " or ".join(_type(one) for one in value[several])
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return " or ".join(f"`{one}`" for one in value["enum"])
    match value.get("type"):
        case "array":
            items = value.get("items")
            return f"list of {_type(items)}" if isinstance(items, dict) else "list"
        case "object":
            inner = value.get("additionalProperties")
            pattern = next(iter(value.get("patternProperties", {}).values()), None)
            of = inner if isinstance(inner, dict) else pattern
            return f"object of {_type(of)}" if isinstance(of, dict) else "object"
        case kind:
            return str(kind or "any")


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
