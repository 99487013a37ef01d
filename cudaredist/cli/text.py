"""Shared formatting: columns, tables, JSON and escapes."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from cudaredist.formats.plain_report import PlainAnswer, as_json
from cudaredist.words import listed, printable

if TYPE_CHECKING:
    from cudaredist.formats.report import Answer

_Word = TypeVar("_Word", bound=str)

_ANNOTATIONS_SHOWN = 9


def report_json(report: "Answer | PlainAnswer") -> str:
    """Return a report as one JSON document, `schema_version` first and `exit_code` last."""
    if isinstance(report, PlainAnswer):
        document = as_json(report)
    else:
        document = report.model_dump(mode="json")
    # A serializer in the model would turn Ctrl-C into another exception.
    if "exit_code" in document:
        document["exit_code"] = document.pop("exit_code")
    return json.dumps(document, indent=2) + "\n"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align rows of cells in columns, without truncation."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def text_blocks(*parts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of all parts that are not empty, with an empty line between parts."""
    for number, lines in enumerate(filter(None, map(list, parts))):
        if number:
            yield ""
        yield from lines


def megabytes(size: int) -> str:
    """Return a size in millions of bytes, such as `1,205.6 MB`."""
    return f"{size / 1e6:,.1f} MB"


def counted(counts: Mapping[_Word, int]) -> str:
    """Return the numbers that are not zero with their words."""
    return ", ".join(
        f"{number} {word.replace('-', ' ')}" for word, number in counts.items() if number
    )


def flag(value: bool) -> str:
    """Return a boolean in the form of `$GITHUB_OUTPUT`."""
    return "true" if value else "false"


def markdown_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table. The first row is its header."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(map(escape_markdown, row))} |"
        if number == 0:
            yield f"| {' | '.join('---' for _ in row)} |"


def annotations(messages: Iterable[tuple[str, Mapping[str, str], str]]) -> Iterator[str]:
    """Yield GitHub's workflow commands for levels, properties and messages.

    GitHub shows at most ten per level in a step, so the tenth counts the rest.
    """
    counts: Counter[str] = Counter()
    for level, properties, message in messages:
        counts[level] += 1
        if counts[level] <= _ANNOTATIONS_SHOWN:
            attributes = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
            yield f"::{level} {attributes}::{_data(message)}"
    for level, count in counts.items():
        if count > _ANNOTATIONS_SHOWN:
            yield f"::{level} title=cudaredist::and {count - _ANNOTATIONS_SHOWN} more"


def escape_markdown(text: str) -> str:
    """Escape Markdown and unprintable characters."""
    return "".join(
        f"\\{character}" if character in "\\`*_[]<>|" else character
        for character in printable(text)
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def nvidia_channel_lines(
    redist: str, nvidia_channels: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield the releases of each channel of NVIDIA's second server."""
    for name, labels in nvidia_channels.items():
        yield f"{redist}: channel {name} has {listed(labels) or 'no releases'}"
