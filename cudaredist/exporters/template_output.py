"""Write the text of a template to a file, or between two lines of a file."""

from pathlib import Path

from cudaredist.errors import UsageError
from cudaredist.formats.names import ManifestStatus
from cudaredist.store.files import require_file, update_output
from cudaredist.words import shown


def write_text(
    path: Path, text: bytes, between: tuple[str, str] | None, *, may_write: bool
) -> tuple[ManifestStatus, bytes]:
    """Write a text to a file if it differs, and return the outcome and the file's new bytes.

    With `between`, only the lines between two marker lines are replaced. Raises `UsageError`,
    `ReadError` and `WriteError`.
    """
    if between is not None:
        text = between_markers(path, text, *between)
    return update_output(path, text, may_write=may_write), text


def between_markers(path: Path, text: bytes, begin: str, end: str) -> bytes:
    """Return a file with other lines between the line with `begin` and that with `end`.

    Raises `UsageError` and `ReadError`.
    """
    lines = require_file(path).splitlines(keepends=True)
    first, last = _line_with(begin, lines, path), _line_with(end, lines, path)
    if last <= first:
        raise UsageError(
            f"{path}: the line with {shown(end)} is not after that with {shown(begin)}"
        )
    if text and not text.endswith(b"\n"):
        text += b"\n"
    return b"".join([*lines[: first + 1], text, *lines[last:]])


def _line_with(marker: str, lines: list[bytes], path: Path) -> int:
    """Return the number of the only line with a marker."""
    numbers = [number for number, line in enumerate(lines) if marker.encode() in line]
    if not marker or len(numbers) != 1:
        problem = f"{len(numbers)} lines" if marker else "every line"
        raise UsageError(
            f"{path}: {problem} with the marker {shown(marker)}, but --between requires one",
            hint="use the whole text of the line, for example '# BEGIN cudaredist'",
        )
    return numbers[0]
