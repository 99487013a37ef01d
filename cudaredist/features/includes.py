"""Includes of headers, each with its condition.

Comments are removed first, so an `#include` in a comment does not count. Macros are unknown here:
an include below `#if` is recorded with the text of its condition, for callers to evaluate. An
include guard is not a condition.
"""

import re
from functools import reduce

from cudaredist.features.facts import Include, IncludeLines
from cudaredist.primitives import cut

INCLUDES_SIZE_LIMIT = 4 << 20
"""Limit for the size of a header in bytes. NVIDIA's headers have 2 MB at most."""
CONDITION_LIMIT = 160
"""Limit for the characters of a condition. A longer one is cut and ends in an ellipsis."""
_NAME_LIMIT = 256
_HEADER_INCLUDES_LIMIT = 1000
"""Limit for the distinct includes of one header."""
_ARCHIVE_INCLUDES_LIMIT = 50_000
"""Limit for the includes of an archive: five times those of cuda_cccl, the largest."""
_DEPTH_LIMIT = 200
_FOLDER = "include"

# As in every compiler, an unclosed quote ends at the end of its line.
_comments_or_quotes = re.compile(
    rb"""("(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?"""
)
_directives = re.compile(
    rb"^[ \t]*+#[ \t]*+(include(?:_next)?|if|ifdef|ifndef|elif|elifdef|elifndef|else|endif|define)"
    rb"\b([^\n]*+)",
    re.MULTILINE,
)
_name = re.compile(rb"\s*(?:<([^>\n]+)>|\"([^\"\n]+)\")").match
_macro = re.compile(r"\w+").match
_guard = re.compile(r"!\s*+defined\s*+(?:\(\s*+)?(\w++)\s*+\)?").fullmatch
_is_single = re.compile(r"!*\s*(?:\w+|defined\s*\(\s*\w+\s*\)|defined\s+\w+)").fullmatch


class Includes:
    """Reads the includes of an archive's headers."""

    def __init__(self) -> None:
        self._same: dict[Include, Include] = {}
        """Shared instances, because most includes are in many headers."""
        self._room = _ARCHIVE_INCLUDES_LIMIT

    def read(self, data: bytes) -> IncludeLines | None:
        """Return the unique includes of the archive's next header, or None without any."""
        lines = read_includes(data)
        if lines is None:
            return None
        if len(lines.includes) > self._room:
            return IncludeLines(unread=f"more than {_ARCHIVE_INCLUDES_LIMIT:,} in the archive")
        self._room -= len(lines.includes)
        shared = tuple(self._same.setdefault(line, line) for line in lines.includes)
        return IncludeLines(includes=shared, unread=lines.unread)


def is_header(path: str) -> bool:
    """Check if a file is a header (below `include`)."""
    return _FOLDER in path.split("/")[:-1]


def read_includes(data: bytes) -> IncludeLines | None:
    """Return the unique includes of a header, or None without any."""
    if len(data) > INCLUDES_SIZE_LIMIT:
        return IncludeLines(unread=f"larger than {INCLUDES_SIZE_LIMIT:,} bytes")
    text = data.replace(b"\r\n", b"\n").replace(b"\\\n", b"")
    if b"include" not in text or b"\0" in text:
        return None
    reader = _HeaderReader()
    for match in _directives.finditer(_comments_or_quotes.sub(rb"\1 ", text)):
        reader.take(match[1].decode(), match[2])
        if reader.problem:
            return IncludeLines(unread=reader.problem)
    return IncludeLines(includes=tuple(reader.includes)) if reader.includes else None


def join_conditions(one: str, other: str) -> str:
    """Join two conditions with `&&`. An empty condition is always true."""
    if not one or not other or one == other:
        return one or other
    return cut(" && ".join(map(_part, (one, other))), CONDITION_LIMIT)


class _ConditionGroup:
    """The branches from an `#if` to its `#endif`."""

    def __init__(self, condition: str) -> None:
        self.own = condition
        """The condition of the current branch. Empty in an include guard."""
        self._before = ""

    @property
    def condition(self) -> str:
        """Return the condition of the current branch, with earlier ones negated."""
        return join_conditions(self._before, self.own)

    def turn(self, condition: str) -> None:
        """Begin the next branch, with an empty condition for `#else`."""
        if self.own:
            self._before = join_conditions(self._before, _negated(self.own))
        self.own = condition


class _HeaderReader:
    """Processes the directives of one header in order."""

    def __init__(self) -> None:
        self.includes: dict[Include, None] = {}
        self.problem: str | None = None
        self._groups: list[_ConditionGroup] = []
        self._maybe_guard: str | None = None
        """The macro, if the last directive was an `#ifndef`."""

    def take(self, directive: str, rest: bytes) -> None:
        """Process the next directive."""
        guard, self._maybe_guard = self._maybe_guard, None
        groups = self._groups
        match directive:
            case "include" | "include_next":
                self._include(rest)
            case "if" | "ifdef" | "ifndef":
                condition = _condition(directive, rest)
                groups.append(_ConditionGroup(condition))
                negated = _guard(condition)
                self._maybe_guard = negated[1] if negated else None
                if len(groups) > _DEPTH_LIMIT:
                    self.problem = f"more than {_DEPTH_LIMIT} nested conditions"
            case "define":
                macro = _macro(_words(rest))
                if macro is not None and macro[0] == guard:
                    groups[-1].own = ""
            case _ if not groups:
                # An `#endif` or `#else` without an `#if` is an error in any compiler.
                pass
            case "endif":
                groups.pop()
            case "else":
                groups[-1].turn("")
            case _:
                groups[-1].turn(_condition(directive.removeprefix("el"), rest))

    def _include(self, rest: bytes) -> None:
        match = _name(rest)
        name = (match[1] or match[2]).decode("utf-8", "replace").strip() if match else ""
        if not name or len(name) > _NAME_LIMIT or not name.isprintable():
            # The name is a macro or invalid.
            return
        condition = reduce(join_conditions, (group.condition for group in self._groups), "")
        self.includes[Include(name=name, condition=condition)] = None
        if len(self.includes) > _HEADER_INCLUDES_LIMIT:
            self.problem = f"more than {_HEADER_INCLUDES_LIMIT:,}"


def _condition(directive: str, rest: bytes) -> str:
    text = _words(rest)
    if directive == "if":
        return cut(text, CONDITION_LIMIT)
    macro = _macro(text)
    return f"{'!' if directive == 'ifndef' else ''}defined({macro[0] if macro else '?'})"


def _words(rest: bytes) -> str:
    text = " ".join(rest.decode("utf-8", "replace").split())
    return text if text.isprintable() else "?"


def _negated(condition: str) -> str:
    if condition.startswith("!") and _is_single(condition):
        return condition.removeprefix("!").strip()
    negated = f"!{condition}" if _is_single(condition) else f"!({condition})"
    return cut(negated, CONDITION_LIMIT)


def _part(condition: str) -> str:
    is_safe = "||" not in condition and "?" not in condition
    return condition if is_safe else f"({condition})"
