"""What all of these share: columns, JSON, and the escapes of what others read."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cudaredist.reports.report import Answer

_ANNOTATIONS_SHOWN = 9


def report_json(report: Answer) -> str:
    """Return a report as one JSON document, `schema_version` first."""
    return json.dumps(report.model_dump(mode="json"), indent=2) + "\n"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lay out rows of cells so that columns line up; nothing is ever cut."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def flag(value: bool) -> str:  # noqa: FBT001 - one value in, its word out
    """Return a truth as `$GITHUB_OUTPUT` has it."""
    return "true" if value else "false"


def markdown_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lay out rows of cells as a table in Markdown; the first row is its head."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(map(escape_markdown, row))} |"
        if number == 0:
            yield f"| {' | '.join('---' for _ in row)} |"


def annotations(said: Iterable[tuple[str, Mapping[str, str], str]]) -> Iterator[str]:
    """Return GitHub's workflow commands for levels, properties and messages.

    At most ten of a level are shown in a step, so the tenth counts the others.
    """
    counts: Counter[str] = Counter()
    for level, properties, message in said:
        counts[level] += 1
        if counts[level] <= _ANNOTATIONS_SHOWN:
            listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
            yield f"::{level} {listed}::{_data(message)}"
    for level, count in counts.items():
        if count > _ANNOTATIONS_SHOWN:
            yield f"::{level} title=cudaredist::and {count - _ANNOTATIONS_SHOWN} more"


def escape_markdown(text: str) -> str:
    """Return text as Markdown that shows it as it is."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|" else c for c in text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
