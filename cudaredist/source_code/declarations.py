"""The names of an API that a source declares itself, and the files that see them.

A file sees the declarations in the files that it includes. A header also sees those of the files
that are included with it, since they can come first. Includes are compared by the name of the file,
without its folder.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from cudaredist.source_code.read_code import CodeFile

_find_includes = re.compile(
    rb"^[ \t]*#[ \t]*(?:include(?:_next)?|import)[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE
).findall
_WORK_LIMIT = 5_000_000
"""Files that are visited for all declarations. Above it, every file sees the other ones."""


class Includes:
    """The includes of all files of a source."""

    def __init__(self) -> None:
        self._included: dict[str, Collection[str]] = {}
        """The names that each path includes."""
        self._paths: dict[str, list[str]] = defaultdict(list)
        """The paths of each name."""
        self._including: dict[str, list[str]] = defaultdict(list)
        """The paths that include a name."""

    def add(self, path: str, names: Collection[str]) -> None:
        """Add a file with the names that it includes."""
        self._included[path] = names
        self._paths[_name(path)].append(path)
        for name in names:
            self._including[name].append(path)

    def has_file(self, path: str) -> bool:
        """Check if the source has a file at a path."""
        return path in self._included

    def has_header(self, header: str) -> bool:
        """Check if the source has a file with the path of an include in any of its folders."""
        paths = self._paths.get(_name(header), ())
        return any(f"/{path}".endswith(f"/{header}") for path in paths)

    def seeing(self, path: str) -> set[str]:
        """Return the paths that may see the declarations of a path."""
        including = _reached([path], lambda one: self._including.get(_name(one), ()))
        return _reached(including, self._included_by)

    def _included_by(self, path: str) -> Iterator[str]:
        for name in self._included.get(path, ()):
            yield from self._paths.get(name, ())


class Declarations:
    """The names that files declare, with the releases for which they do."""

    def __init__(self, files: Iterable[CodeFile], includes: Includes) -> None:
        self._includes = includes
        self._left = _WORK_LIMIT
        self._declaring: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for file in files:
            for name, releases in file.own.items():
                self._declaring[name].append((file.path, releases))
        self._seeing: dict[str, set[str]] = {}
        self._known: dict[str, tuple[Mapping[str, int], int]] = {}
        """For each name the releases by path, and those for all paths."""

    def releases(self, name: str, path: str) -> int:
        """Return the releases for which a file may see a declaration of a name."""
        if name not in self._declaring:
            return 0
        if name not in self._known:
            self._known[name] = self._releases_by_path(name)
        by_path, everywhere = self._known[name]
        return everywhere | by_path.get(path, 0)

    def _releases_by_path(self, name: str) -> tuple[Mapping[str, int], int]:
        by_path: dict[str, int] = defaultdict(int)
        everywhere = 0
        for path, releases in self._declaring[name]:
            if self._left < 0:
                everywhere |= releases
                continue
            if path not in self._seeing:
                self._seeing[path] = self._includes.seeing(path)
                self._left -= len(self._seeing[path])
            for one in self._seeing[path]:
                by_path[one] |= releases
            self._left -= len(self._seeing[path])
        return by_path, everywhere


def includes_of(data: bytes) -> set[str]:
    """Return the names of the files that a file includes, without folders."""
    return {_name(each.decode("latin-1")) for each in _find_includes(data)}


def _reached(start: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the paths that follow from some paths, with these."""
    reached = set(start)
    pending = list(reached)
    while pending:
        for path in following(pending.pop()):
            if path not in reached:
                reached.add(path)
                pending.append(path)
    return reached


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
