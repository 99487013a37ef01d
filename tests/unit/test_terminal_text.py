"""Tests of text for a terminal: its width and the pager."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudaredist.cli.terminal_text import pager_command, show_in_pager, wrapped


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("short", ["short"]),
        (
            "  a sentence of a block that is too long for forty columns",
            ["  a sentence of a block that is too long", "      for forty columns"],
        ),
        (
            "libcublas  13.0.2  linux-sbsa, linux-x86_64, windows-x86_64",
            [
                "libcublas  13.0.2  linux-sbsa,",
                " " * 19 + "linux-x86_64,",
                " " * 19 + "windows-x86_64",
            ],
        ),
        (
            "to see more, run `cudaredist explain package libcublas --all`",
            ["to see more, run", "    `cudaredist explain package libcublas --all`"],
        ),
        ("x" * 50, ["x" * 50]),
        ("an odd ` mark in a line that is longer than forty", None),
    ],
)
def test_wrapped_breaks_line_at_spaces(line: str, result: list[str] | None) -> None:
    lines = list(wrapped([line], 40))
    assert " ".join(part.strip() for part in lines).split() == line.split()
    assert result is None or lines == result


@given(st.text("ab `-:", max_size=200), st.integers(1, 120))
def test_wrapped_keeps_words_in_order(line: str, width: int) -> None:
    lines = list(wrapped([line], width))
    assert " ".join(lines).split() == line.split()
    for part in lines:
        assert len(part) <= max(width, 40) or "`" in part or max(map(len, part.split())) > 20


@pytest.mark.parametrize(
    ("value", "words"),
    [("less -S", ["less", "-S"]), ("", []), ("  ", []), ("'", [])],
)
def test_pager_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, words: list[str]
) -> None:
    monkeypatch.setenv("PAGER", value)
    assert pager_command() == words


def test_default_pager_is_less_if_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGER", raising=False)
    monkeypatch.setenv("PATH", "")
    assert pager_command() == []


def test_missing_pager_is_reported() -> None:
    assert not show_in_pager("text", ["/nonexistent/pager"])


def test_pager_may_end_before_it_read_everything() -> None:
    assert show_in_pager("text\n" * 10**6, ["true"])
