"""Tests of reports on a terminal: width, pager and unchanged formats."""

import os
import pty
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import pytest
from conftest import SAMPLE
from support.running import PROGRAM

QUESTION = ("explain", "nvcc", "12.4")
LONG = ("versions", "--offline")
RELEASES = [str(SAMPLE / f"compute/cuda/redist/redistrib_{x}.json") for x in ("12.9.0", "13.0.2")]
MARKDOWN = ("diff", *RELEASES, "--format", "markdown")
MARKED = "sed s/^/paged:/"


def screen(folder: Path, *words: str, columns: int = 80, rows: int = 24, pager: str = "") -> str:
    """Run the tool on a terminal, and return the text on it."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    inherited = {name: x for name, x in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen(
        [*PROGRAM, *words],
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env={**inherited, "TERM": "xterm", "PAGER": pager},
    )
    os.close(slave)
    written = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        written += block
    assert process.wait() == 0
    os.close(master)
    return written.decode().replace("\r\n", "\n")


def test_report_fits_terminal(tmp_path: Path) -> None:
    wide = screen(tmp_path, *QUESTION, columns=500)
    for columns in (60, 100):
        narrow = screen(tmp_path, *QUESTION, columns=columns)
        assert max(map(len, narrow.splitlines())) <= columns
        assert narrow.split() == wide.split()
        assert len(narrow.splitlines()) > len(wide.splitlines())


def test_long_report_is_shown_in_pager(tmp_path: Path) -> None:
    paged = screen(tmp_path, *LONG, pager=MARKED)
    assert all(line.startswith("paged:") for line in paged.splitlines())
    plain = screen(tmp_path, *LONG, pager="")
    assert paged.replace("paged:", "") == plain


@pytest.mark.parametrize(
    "words",
    [
        (*LONG, "--no-pager"),
        (*LONG, "--json"),
        QUESTION,
        MARKDOWN,
    ],
    ids=["no-pager", "json", "short", "markdown"],
)
def test_report_is_shown_without_pager(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert "paged:" not in screen(tmp_path, *words, pager=MARKED)


def test_markdown_keeps_its_lines_on_terminal(tmp_path: Path) -> None:
    result = subprocess.run([*PROGRAM, *MARKDOWN], cwd=tmp_path, capture_output=True, check=True)
    assert max(map(len, result.stdout.decode().splitlines())) > 60
    assert screen(tmp_path, *MARKDOWN, columns=60) == result.stdout.decode()


def test_words_of_warnings_are_yellow_on_a_terminal(tmp_path: Path) -> None:
    build = ("build", "--cuda", "12.8", "--platform", "linux-x86_64", "--output", "set.json")
    colored = screen(tmp_path, *build, "--color", "always")
    assert "    \x1b[33mwarning\x1b[0m: " in colored
    plain = screen(tmp_path, *build, "--color", "never")
    assert "\x1b" not in plain
    assert "    warning: " in plain
