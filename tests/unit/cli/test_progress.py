"""Tests of progress: its text, a line every ten seconds, and terminal bars."""

import io
import re
import sys
from collections.abc import Callable

import pytest
from rich.console import Console as RichConsole
from support.patching import Patch

from cudaredist.cli.console import Console, TerminalProgress
from cudaredist.progress import Progress, size_words, total_size

GB = 10**9


class Clock:
    """A clock that tests control."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def piped(clock: Clock) -> TerminalProgress:
    """Return the progress of two archives with 5 GB in total, without a terminal."""
    progress = Console(clock=clock).progress("archives")
    progress.expect(2, 5 * GB)
    return progress


def tally_after(seconds: float, received: int, *, items: int = 4, total: int | None = 0) -> str:
    """Return the text after one of several items and some bytes."""
    clock = Clock()
    tally = Progress(clock)
    tally.expect(items, total)
    clock.now += seconds
    tally.done(received)
    return str(tally)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (596_500_000, "596 MB"), (7_250_000, "7.2 MB")],
)
def test_size_words_have_two_or_three_digits(size: int, expected: str) -> None:
    assert size_words(size) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (tally_after(10, GB, total=5 * GB), "1 of 4, 1.0 GB of 5.0 GB, 100 MB/s, 0:40 left"),
        (tally_after(10, GB, total=None), "1 of 4, 1.0 GB (total unknown), 100 MB/s, 0:30 left"),
        (tally_after(10, 0), "1 of 4, 0:30 left"),
        (tally_after(0, 0, total=GB), "1 of 4, 0 B of 1.0 GB, 0 B/s, time unknown"),
        (tally_after(10, 999, total=GB), "1 of 4, 999 B of 1.0 GB, 100 B/s, 2780:33:20 left"),
        # More bytes than stated in the manifests: the total is at least the received size.
        (tally_after(10, GB, total=5), "1 of 4, 1.0 GB of 1.0 GB, 100 MB/s, 0:00 left"),
        (str(Progress(Clock())), "0 of 0, time unknown"),
    ],
)
def test_tally_states_items_bytes_rate_and_time_left(words: str, expected: str) -> None:
    assert words == expected


def test_rate_covers_last_seconds(clock: Clock) -> None:
    tally = Progress(clock)
    tally.expect(1, 100 * GB)
    number = tally.begin("a", 100 * GB)
    for second in range(1, 101):
        clock.now += 1
        tally.advance(number, GB if second <= 50 else GB // 10)
    assert ", 100 MB/s, 7:30 left" in str(tally)
    clock.now += 1
    tally.advance(number, -tally.received)
    assert "0 B of 100 GB, 0 B/s, time unknown" in str(tally)


def test_total_size_with_unknown_size_is_unknown() -> None:
    assert total_size([1, 2]) == 3
    assert total_size([1, None]) is None
    assert total_size([]) == 0


def test_piped_progress_prints_line_every_ten_seconds(
    piped: TerminalProgress, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:
    number = piped.begin("a.tar.xz", 5 * GB)
    for _ in range(250):
        clock.now += 0.1
        piped.advance(number, GB // 100)
    assert capfd.readouterr().err.splitlines() == [
        "archives 0 of 2, 1.0 GB of 5.0 GB, 100 MB/s, 0:40 left",
        "archives 0 of 2, 2.0 GB of 5.0 GB, 100 MB/s, 0:30 left",
    ]


def test_quiet_progress_prints_nothing(clock: Clock, capfd: pytest.CaptureFixture[str]) -> None:
    with Console(quiet=True, clock=clock).progress("archives") as progress:
        progress.expect(2, GB)
        clock.now += 60
        progress.done(GB)
    assert capfd.readouterr().err == ""


@pytest.fixture
def screen(clock: Clock, monkeypatch: pytest.MonkeyPatch, patch: Patch) -> Callable[..., list[str]]:
    """Return a function that renders progress on a terminal of 80 columns."""
    patch(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")

    def show(count: int, size: int | None) -> list[str]:
        console, file = Console(clock=clock), io.StringIO()
        terminal = RichConsole(width=80, force_terminal=True, file=file, color_system=None)
        patch(console, "rich", lambda: terminal)
        with console.progress("archives") as progress:
            progress.expect(count, None if size is None else count * size)
            name = "libcublas-linux-x86_64-13.1.1.3-archive-with-a-very-long-name-indeed.tar.xz"
            numbers = [progress.begin(name, size) for _ in range(count)]
            for _ in range(20):
                clock.now += 1
                progress.advance(numbers[0], 44_288_363)
            progress.end(numbers[1])
            assert progress._bars is not None
            file.truncate(0)
            progress._bars._progress.refresh()
            output = file.getvalue()
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00\r]", "", output).strip("\n").split("\n")

    return show


def test_terminal_progress_fits_80_columns(screen: Callable[..., list[str]]) -> None:
    whole, item = (row.rstrip() for row in screen(2, 5_000_000_000))
    assert whole.endswith("archives 1 of 2, 886 MB of 10.0 GB, 44.3 MB/s, 3:26 left")
    assert "886 MB of 5.0 GB  libcublas-linux-x86_64" in item
    assert item.endswith("…")
    assert max(len(whole), len(item)) <= 80


def test_terminal_progress_shows_unknown_total(screen: Callable[..., list[str]]) -> None:
    whole, item = screen(2, None)
    assert "archives 1 of 2, 886 MB (total unknown), 44.3 MB/s, 0:20 left" in whole
    assert "886 MB (total unknown)" in item
    assert "━" not in item


def test_step_has_a_remaining_time_of_its_own() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress.expect(100)
    for _ in range(100):
        progress.done()
    clock.now += 90
    progress.step("second", 20)
    clock.now += 10
    progress.done()
    assert str(progress) == "1 of 20, time unknown"
    progress.done()
    assert str(progress) == "2 of 20, 1:30 left"
