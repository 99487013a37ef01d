"""Tests of --json: common keys of all reports, and errors.

The fixture `run` compares every report with its JSON Schema.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Run
from pydantic import TypeAdapter

from cudaredist.commands.schema.report import report_models


def property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from property_names(part)


@pytest.mark.parametrize("name", report_models())
def test_reports_use_common_keys(name: str) -> None:
    other_names = {"bytes", "file", "filename", "label", "pname"}  # of size, path, release, package
    for model in report_models()[name]:
        assert not other_names & set(
            property_names(TypeAdapter(model).json_schema(mode="serialization"))
        )


@pytest.mark.parametrize(
    "call",
    [
        ("build", "--cuda", "1.0"),
        ("build", "--no-such-option"),
        ("no-such-command",),
        ("validate",),
        ("validate", "no-such-file", "--no-such-option"),
        ("explain", "set", "no-such-file"),
        ("check", "--data-dir", "no-such-folder"),
    ],
)
def test_error_is_a_report_on_stdout_and_text_on_stderr(run: Run, call: tuple[str, ...]) -> None:
    result = run(*call, "--json")
    assert json.loads(result.stdout)["error"]["exit_code"] == result.exit_code
    assert result.stderr
