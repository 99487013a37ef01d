"""The pages of package sets, with the graphs of their dependencies."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from cudaredist.commands.explain.summarize_set import summarize
from cudaredist.commands.site.page_models import SetPage
from cudaredist.errors import UsageError
from cudaredist.formats.packageset import PackageSet
from cudaredist.sets.read_set import read_package_set
from cudaredist.tables.advisories.states import KnownVulnerabilities

_COLUMN, _ROW, _HEIGHT, _MARGIN, _CURVE = 230, 34, 26, 34, 26
_LETTER, _PADDING = 8, 20


class GraphNode(NamedTuple):
    """A package in a drawing: the middle of its left side, and its width."""

    package: str
    x: int
    y: int
    width: int


class DependencyGraph(NamedTuple):
    """A drawing of packages and their dependencies."""

    nodes: tuple[GraphNode, ...]
    lines: tuple[tuple[str, str, str], ...]
    """A package, one that it requires, and the path for SVG."""

    width: int
    height: int
    thickness: int = _HEIGHT


def read_sets(paths: Iterable[Path]) -> tuple[list[PackageSet], list[str]]:
    """Return the package sets, and the hashes of their files.

    Raises `UsageError` for two sets with one name and platform.
    """
    sets: dict[tuple[str, str], PackageSet] = {}
    hashes: list[str] = []
    for path in paths:
        package_set, sha256 = read_package_set(path)
        key = _key(package_set)
        if key in sets:
            name, platform = key
            message = f"two package sets for {platform} are called {name}, the second in {path}"
            raise UsageError(message, hint="write one site for each of them")
        sets[key] = package_set
        hashes.append(sha256)
    return list(sets.values()), hashes


def _key(package_set: PackageSet) -> tuple[str, str]:
    """Return the name and platform of a package set, which identify its page."""
    return package_set.full_name, package_set.platform.redist_system


def make_set_page(
    package_set: PackageSet, sets: Iterable[PackageSet], known: KnownVulnerabilities
) -> SetPage:
    """Return the page of a package set, one of all sets of the site."""
    own_name, platform = _key(package_set)
    available = package_set.available
    requires = {
        name: {needed.attr for needed in package.depends} & available.keys() - {name}
        for name, package in available.items()
    }
    required = {
        name: {needed.attr for needed in package.depends if not needed.is_optional}
        for name, package in available.items()
    }
    return SetPage(
        title=f"{own_name} for {platform}",
        others=tuple(
            other for name, other in map(_key, sets) if name == own_name and other != platform
        ),
        summary=summarize(own_name, package_set, known),
        depends={name: tuple(sorted(others)) for name, others in requires.items()},
        optional={
            name: tuple(sorted(others - required[name])) for name, others in requires.items()
        },
    )


def dependency_graph(depends: Mapping[str, Iterable[str]]) -> DependencyGraph:
    """Return a drawing with each package to the right of those that it requires.

    Packages without a connection are omitted.
    """
    linked: set[str] = set()
    for name, others in depends.items():
        for other in others:
            linked.update((name, other))
    requires = {name: set(depends[name]) for name in depends if name in linked}
    nodes: dict[str, GraphNode] = {}
    columns = _columns(requires)
    tallest = max(map(len, columns), default=0)
    for number, column in enumerate(columns):
        # Near the packages that it requires, so that the lines are short.
        middles = {
            name: sum(nodes[one].y for one in requires[name] - column) / (len(requires[name]) or 1)
            for name in column
        }
        top = (tallest - len(column)) * _ROW // 2 + _ROW // 2
        for row, name in enumerate(sorted(column, key=lambda name: (middles[name], name))):
            width = len(name) * _LETTER + _PADDING
            nodes[name] = GraphNode(name, _MARGIN + number * _COLUMN, top + row * _ROW, width)
    return DependencyGraph(
        tuple(nodes.values()),
        tuple(
            (name, other, _path(nodes[name], nodes[other]))
            for name in nodes
            for other in sorted(requires[name])
        ),
        width=max((node.x + node.width for node in nodes.values()), default=0) + _MARGIN,
        height=tallest * _ROW,
    )


def _columns(requires: Mapping[str, AbstractSet[str]]) -> Sequence[AbstractSet[str]]:
    """Group packages by the longest path to one that requires none.

    Packages that require each other are in one group.
    """
    indirect = {name: set(others) for name, others in requires.items()}
    for through in requires:
        for others in indirect.values():
            if through in others:
                others.update(indirect[through])

    def is_ready(name: str) -> bool:
        # Packages that require this one in turn belong to the same group.
        pending = indirect[name] & remaining
        return all(name in indirect[other] for other in pending)

    columns: list[AbstractSet[str]] = []
    remaining = set(requires)
    while remaining:
        column = {name for name in remaining if is_ready(name)}
        columns.append(column)
        remaining -= column
    return columns


def _path(start: GraphNode, end: GraphNode) -> str:
    """Return the line from a package to one that it requires, for SVG."""
    across = end.x if end.x == start.x else end.x + end.width
    bend = start.x - _CURVE if end.x == start.x else (start.x + across) // 2
    return f"M{start.x} {start.y}C{bend} {start.y} {bend} {end.y} {across} {end.y}"
