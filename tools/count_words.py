"""Count words that make prose hard to read, in docstrings, comments and pages.

`python -m tools.count_words PATH...` prints the uses per 1,000 words of `*.py` and `*.md` files.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HARD_WORDS = {
    "what": r"what",
    "where": r"where",
    "say, tell": r"say|says|said|tell|tells|told",
    "lie, stand": r"lie|lies|lay|stand|stands|stood",
    "hold, held": r"hold|holds|held",
    "is no, are no": r"(?:is|are) no",
}
CONDITION = "if"
_RELATIVE = re.compile(r"\b(?:what|which|where|who|whose)\b", re.IGNORECASE)
_CODE_IN_MARKDOWN = re.compile(r"^```.*?^```|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Prose:
    """The text of files, without code."""

    text: str = field(repr=False)

    @property
    def words(self) -> int:
        """The number of words."""
        return len(re.findall(r"[A-Za-z']+", self.text))

    def uses(self, pattern: str) -> int:
        """Count the uses of a word."""
        return len(re.findall(rf"\b(?:{pattern})\b", self.text, re.IGNORECASE))

    def rate(self, pattern: str) -> float:
        """Return the uses of a word per 1,000 words."""
        return 1000 * self.uses(pattern) / max(1, self.words)


@dataclass(frozen=True)
class FirstLines:
    """The first lines of docstrings."""

    lines: tuple[str, ...] = field(repr=False)

    @property
    def relative(self) -> float:
        """The share with what, which, where, who or whose, in percent."""
        return self._share(bool(_RELATIVE.search(line)) for line in self.lines)

    @property
    def semicolon(self) -> float:
        """The share with a semicolon, in percent."""
        return self._share(";" in line for line in self.lines)

    @property
    def words(self) -> float:
        """The mean number of words."""
        return sum(len(line.split()) for line in self.lines) / len(self.lines)

    def _share(self, matches: Iterable[bool]) -> float:
        return 100 * sum(matches) / len(self.lines)


def prose_of(paths: Iterable[Path]) -> Prose:
    """Return the docstrings and comments of modules, and the text of pages."""
    return Prose("\n".join(part for path in paths for part in _parts(path)))


def first_lines_of(paths: Iterable[Path]) -> FirstLines:
    """Return the first lines of the docstrings of modules."""
    trees = (ast.walk(ast.parse(path.read_text())) for path in paths)
    nodes = (node for tree in trees for node in tree if isinstance(node, _DOCUMENTED))
    docstrings = filter(None, map(ast.get_docstring, nodes))
    return FirstLines(tuple(text.splitlines()[0] for text in docstrings))


def _parts(path: Path) -> Iterator[str]:
    text = path.read_text()
    if path.suffix == ".md":
        yield _CODE_IN_MARKDOWN.sub("", text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        comment = token.string.removeprefix("#").strip()
        if token.type == tokenize.COMMENT and not comment.startswith(("!", "noqa", "type:")):
            yield comment


def _report(root: Path) -> Iterator[str]:
    paths = [root] if root.is_file() else sorted(p for p in root.rglob("*.*") if p.is_file())
    prose = prose_of(path for path in paths if path.suffix in {".py", ".md"})
    yield f"{root}: {prose.words} words"
    for name, pattern in {**HARD_WORDS, CONDITION: CONDITION}.items():
        yield f"  {name}: {prose.rate(pattern):.1f}"
    modules = [path for path in paths if path.suffix == ".py"]
    if modules:
        first = first_lines_of(modules)
        yield f"  first lines with what/which/where/who: {first.relative:.1f} %"
        yield f"  first lines with a semicolon: {first.semicolon:.1f} %"
        yield f"  words in a first line: {first.words:.1f}"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print("\n".join(_report(Path(argument))))
