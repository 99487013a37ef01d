"""Plots as values: positions in a drawing that a template turns into SVG."""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from cudaredist.progress import size_words

WIDTH, HEIGHT = 720, 260
_BARS_WIDTH = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 40
_BAR, _GAP, _NAMES, _VALUES = 18, 8, 112, 88
_STEPS = (1, 2, 5)


class Tick(NamedTuple):
    """A value or name on an axis."""

    position: float
    text: str


class Line(NamedTuple):
    """The values of one series."""

    name: str
    points: tuple[tuple[float, float, str], ...]
    """Position, and the value in words."""

    runs: tuple[str, ...]
    """The points between gaps, as SVG's `points` has them."""


class LinePlot(NamedTuple):
    """Series of values over releases."""

    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


class Bar(NamedTuple):
    """One value of a bar plot."""

    name: str
    kind: str
    top: float
    length: float
    text: str


class BarPlot(NamedTuple):
    """Values as horizontal bars."""

    bars: tuple[Bar, ...]
    height: int
    width: int = _BARS_WIDTH
    left: int = _NAMES
    thickness: int = _BAR


def line_plot(series: Mapping[str, Mapping[str, int]], names: Sequence[str]) -> LinePlot:
    """Return a plot of series over names, each value by its name."""
    most = max((value for values in series.values() for value in values.values()), default=0)
    step = _step(most / 6)
    top = max(step, _divided_up(most, step) * step)
    between = (WIDTH - _LEFT - _RIGHT) / max(1, len(names) - 1)
    across = {name: round(_LEFT + number * between, 1) for number, name in enumerate(names)}

    def up(value: int) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - value / top), 1)

    def line(title: str, values: Mapping[str, int]) -> Line:
        points = {
            name: (across[name], up(values[name]), f"{title}, {name}: {size_words(values[name])}")
            for name in names
            if name in values
        }
        runs = []
        for run in _runs(names, points):
            positions = (points[name][:2] for name in run)
            runs.append(" ".join(f"{x:g},{y:g}" for x, y in positions))
        return Line(title, tuple(points.values()), tuple(runs))

    # About ten names have space: the first, and others in equal steps that end at the last.
    every, last = _divided_up(len(names), 10), len(names) - 1
    labels = [
        place
        for place in range(len(names))
        if place == 0 or (place >= every and (last - place) % every == 0)
    ]
    return LinePlot(
        lines=tuple(line(title, values) for title, values in series.items()),
        across=tuple(Tick(across[names[number]], names[number]) for number in labels),
        up=tuple(Tick(up(value), size_words(value)) for value in range(0, top + 1, step)),
    )


def _runs(names: Sequence[str], known: Container[str]) -> list[list[str]]:
    """Return the adjacent names that are known, a list for each part between gaps."""
    runs: list[list[str]] = [[]]
    for name in names:
        if name in known:
            runs[-1].append(name)
        else:
            runs.append([])
    return [run for run in runs if run]


def _divided_up(number: int, divisor: int) -> int:
    """Return the quotient, rounded up."""
    return -(-number // divisor)


def bar_plot(values: Mapping[str, int]) -> BarPlot:
    """Return a plot of values by architecture."""
    scale = (_BARS_WIDTH - _NAMES - _VALUES) / (max(values.values(), default=0) or 1)
    rows = [number * (_BAR + _GAP) + _GAP for number in range(len(values) + 1)]
    bars = (
        Bar(name, name.partition("_")[0], top, round(value * scale, 1), size_words(value))
        for top, (name, value) in zip(rows, values.items(), strict=False)
    )
    return BarPlot(tuple(bars), height=rows[-1])


def _step(least: float) -> int:
    """Return the smallest round number that is at least this."""
    numbers: Iterator[int] = (step * 10**power for power in count() for step in _STEPS)
    return next(number for number in numbers if number >= least)
