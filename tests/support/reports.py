"""Reports that commands print with --json, held to the JSON Schema that `schema` prints."""

import json

from cudaredist.schema.registry import schema_problems


def assert_report_fits(stdout: str) -> None:
    """Compare the report on stdout, if there is one, with its schema."""
    try:
        document = json.loads(stdout)
    except ValueError:
        return
    if isinstance(document, dict) and "command" in document:
        name = document["command"].partition(" ")[0]
        is_error = "error" in document
        assert schema_problems(document, "report-error" if is_error else f"report-{name}") == []
