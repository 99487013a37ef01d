"""Find the regular expressions of the program, and texts that make a slow one take long."""

import ast
import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import cudaredist

# The parser of the standard library has no public name.
_parser: Any = importlib.import_module("re._parser")

_SEEDS = ("a", " ", "\t", "\n", "_1", "[", '"', "'", "/*a", "://", ".so", "lib-", "lib.so.1.1.1")
"""Texts that begin many matches, which all fail at the end."""
_NAME = "name"
"""The text for a part of an expression that the program adds."""


class Expression(NamedTuple):
    """A regular expression with the method that the program calls."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    def run(self, text: str) -> None:
        """Apply the expression to a text."""
        data = text if isinstance(self.pattern.pattern, str) else text.encode()
        if self.method == "sub":
            self.pattern.sub(data[:0], data)
        elif self.method == "finditer":
            assert sum(1 for _ in self.pattern.finditer(data)) >= 0
        else:
            getattr(self.pattern, self.method)(data)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield beginnings, and parts to repeat after them.

        The parts are what a repetition of the expression matches, and what its beginning matches.
        """
        source = self.pattern.pattern
        text = source if isinstance(source, str) else source.decode("latin-1")
        flags = self.pattern.flags if isinstance(source, str) else self.pattern.flags | re.ASCII
        items = list(_parser.parse(text, flags & ~re.DEBUG))
        yield from (("", seed) for seed in _SEEDS)
        for count in range(1, len(items) + 1):
            for part in _samples(items[:count]):
                yield "", part
            before = _samples(items[: count - 1])[-1]
            for repeated in _repetitions(items[count - 1 : count]):
                yield from ((before, part) for part in _samples(repeated))


def _samples(items: Any) -> list[str]:
    """Return two texts that a sequence of the parser matches, at least nearly."""
    first, last = "", ""
    for item in items:
        options = _options(item) or [""]
        first, last = first + options[0], last + options[-1]
    return [first, last]


def _options(item: Any) -> list[str]:
    """Return texts that one item of the parser matches."""
    options: list[str] = []
    match str(item[0]), item[1]:
        case "LITERAL", code:
            options = [chr(code)]
        case "NOT_LITERAL" | "ANY", _:
            options = ["a", "("]
        case "IN", choices:
            options = [text for text in 'a0 A._-/"*\t(\n' if _is_in(choices, text)]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT", (least, _, body):
            options = [text * max(least, 1) for text in _samples(body)]
        case "SUBPATTERN", (*_, body):
            options = _samples(body)
        case "ATOMIC_GROUP", body:
            options = _samples(body)
        case "BRANCH", (_, branches):
            options = [_samples(branches[0])[0], _samples(branches[-1])[-1]]
        case _:
            pass
    return options


def _is_in(choices: Any, character: str) -> bool:
    """Check if a character is in a set of the parser."""
    code = ord(character)
    tests: dict[str, Callable[[str], bool]] = {
        "DIGIT": str.isdigit,
        "SPACE": str.isspace,
        "WORD": lambda text: text.isalnum() or text == "_",
    }
    is_in = False
    for operation, value in choices:
        match str(operation):
            case "LITERAL":
                is_in |= code == value
            case "RANGE":
                is_in |= value[0] <= code <= value[1]
            case "CATEGORY":
                name = str(value).removeprefix("CATEGORY_")
                is_in |= tests[name.removeprefix("NOT_")](character) != name.startswith("NOT_")
            case _:
                pass
    return is_in != (str(choices[0][0]) == "NEGATE")


def _repetitions(items: Any) -> Iterator[Any]:
    """Yield the repeated sequences in a sequence of the parser."""
    for item in items:
        match str(item[0]), item[1]:
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT", (_, _, body):
                yield body
                yield from _repetitions(body)
            case "SUBPATTERN", (*_, body):
                yield from _repetitions(body)
            case "ATOMIC_GROUP", body:
                yield from _repetitions(body)
            case "BRANCH", (_, branches):
                for branch in branches:
                    yield from _repetitions(branch)
            case _:
                pass


def expressions() -> Iterator[Expression]:
    """Yield the regular expressions of all modules and schemas."""
    for info in pkgutil.walk_packages(cudaredist.__path__, "cudaredist."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            yield from _stored(module)
            yield from _in_functions(module)
    for schema in (resources.files("cudaredist") / "schemas").iterdir():
        for pattern in _patterns(json.loads(schema.read_text("utf-8"))):
            # jsonschema searches for it.
            yield Expression(schema.name, re.compile(pattern), "search")


def _stored(module: ModuleType) -> Iterator[Expression]:
    """Yield the expressions in a module's variables."""
    waiting = [(name, value) for name, value in vars(module).items() if not name.startswith("__")]
    while waiting:
        name, value = waiting.pop()
        place = f"{module.__name__}.{name}"
        owner = getattr(value, "__self__", None)
        if isinstance(value, re.Pattern):
            yield Expression(place, value, "search")
        elif isinstance(owner, re.Pattern):
            yield Expression(place, owner, value.__name__)
        elif isinstance(value, dict):
            waiting += [(f"{name}[{key!r}]", item) for key, item in value.items()]
        elif isinstance(value, tuple | list):
            waiting += [(f"{name}[{number}]", item) for number, item in enumerate(value)]


def _in_functions(module: ModuleType) -> Iterator[Expression]:
    """Yield the expressions in a module's functions."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    nodes = {node for function in functions for node in ast.walk(function)}
    known = vars(module) | _imported(nodes)
    methods = {
        node.value: node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and re.fullmatch(r"re\.[a-z]+", ast.unparse(node.func)):
            place = f"{module.__name__}:{node.lineno}: {ast.unparse(node)}"
            function = ast.unparse(node.func).removeprefix("re.")
            # The patterns of `fnmatch` are linear.
            if function != "escape" and "translate(" not in ast.unparse(node):
                method = methods.get(node, "search") if function == "compile" else function
                pattern = _evaluated(node.args[0], known, place)
                options = [*node.args[1:], *(each.value for each in node.keywords)]
                flags = [
                    getattr(re, each.attr)
                    for each in options
                    if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "re"
                ]
                yield Expression(place, re.compile(pattern, *flags), method)


def _imported(nodes: Iterable[ast.AST]) -> dict[str, Any]:
    """Return what functions import."""
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    names = [(str(node.module), alias.name) for node in imports for alias in node.names]
    own = [(module, name) for module, name in names if module.startswith("cudaredist.")]
    return {name: getattr(importlib.import_module(module), name, None) for module, name in own}


def _evaluated(node: ast.expr, known: Mapping[str, Any], place: str) -> Any:
    """Return the value of an expression of Python, with a name for what only a call knows."""
    if isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.FormattedValue) and not _is_constant(part.value, known):
                part.value = ast.Constant(_NAME)
    assert _is_constant(node, known), f"{place}: write the expression where it is used"
    code = compile(ast.Expression(ast.fix_missing_locations(node)), place, "eval")
    return eval(code, dict(known))  # noqa: S307 - the program's own code


def _is_constant(node: ast.expr, known: Mapping[str, Any]) -> bool:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names <= known.keys() and not any(isinstance(p, ast.Call) for p in ast.walk(node))


def _patterns(schema: Any) -> Iterator[str]:
    """Yield the values of `pattern` and `patternProperties` in a schema."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "pattern" and isinstance(value, str):
                yield value
            if key == "patternProperties":
                yield from value
            yield from _patterns(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _patterns(item)
