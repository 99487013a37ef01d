"""Validation of --json reports against their JSON Schemas."""

import json

from cudaredist.schema.registry import schema_problems


def assert_report_fits(stdout: str) -> None:
    """Validate the report on stdout, if any, against its schema."""
    try:
        document = json.loads(stdout)
    except ValueError:
        return
    if isinstance(document, dict) and "command" in document:
        name = document["command"].partition(" ")[0]
        is_error = "error" in document
        assert schema_problems(document, "report-error" if is_error else f"report-{name}") == []
