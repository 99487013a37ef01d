"""Generate the picture of terminal output in docs: `python -m tools.pictures`.

It is the beginning of the real output of a command on the shipped data.
"""

import html
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "explain-set.svg"
SET = "build/linux-x86_64/cuda-13.0.3.json"
CALLS = ("build --cuda 13.0.3 --platform linux-x86_64", f"explain set {SET}")
LINES = 24


def current_output() -> str:
    """Return the current output of the last call."""
    output = ""
    with tempfile.TemporaryDirectory() as folder:
        for words in CALLS:
            output = subprocess.run(
                [sys.executable, "-m", "cudaredist", *words.split()],
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
    return output


def shown_lines(output: str) -> list[str]:
    """Return the lines of the picture of an output."""
    return [f"$ cudaredist {CALLS[-1]}", *output.splitlines()[:LINES], "..."]


def lines_of(picture: str) -> list[str]:
    """Return the lines of text in a picture, without empty lines."""
    rows: dict[float, str] = {}
    for y, text in re.findall(r'<text class="t-r\d+"[^>]* y="([\d.]+)"[^>]*>(.*?)</text>', picture):
        rows[float(y)] = rows.get(float(y), "") + html.unescape(text).replace("\xa0", " ")
    return [rows[y].rstrip() for y in sorted(rows)]


def picture(lines: list[str]) -> str:
    """Return lines as an SVG image of a terminal, without fonts of other servers."""
    console = Console(record=True, width=max(map(len, lines)) + 1, file=io.StringIO())
    for line in lines:
        console.print(Text(line))
    svg = console.export_svg(title="cudaredist", unique_id="t")
    return re.sub(r" *@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(picture(shown_lines(current_output())))
