"""Count lines of logic, and list modules and functions that are too long.

`python -m tools.count_logic [FOLDER]` counts without imports, `__all__`, docstrings, comments and
blank lines.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LONGEST_MODULE, LONGEST_FUNCTION = 450, 60


def modules(root: Path) -> list[Path]:
    """List the modules of a package."""
    return sorted(root.rglob("*.py"))


def length(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text().splitlines())


def logic(path: Path) -> int:
    """Count the lines of logic of a module."""
    source = path.read_text()
    other: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not _is_logic(node):
            other.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in other
        for number, line in enumerate(source.splitlines(), 1)
    )


def _is_logic(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
            return False
        case ast.Assign():
            return not any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        case _:
            return True


def long_modules(root: Path) -> dict[str, int]:
    """Map each module that is too long to its length."""
    lengths = {path: length(path) for path in modules(root)}
    return {
        path.relative_to(root).as_posix(): lines
        for path, lines in lengths.items()
        if lines > LONGEST_MODULE
    }


def long_functions(root: Path) -> dict[str, int]:
    """Map each too long function to its length."""
    return {
        f"{path.relative_to(root).as_posix()}:{node.name}": lines
        for path in modules(root)
        for node, lines in _functions(path)
        if lines > LONGEST_FUNCTION
    }


def _functions(path: Path) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, (node.end_lineno or node.lineno) - node.lineno + 1


def main() -> None:
    """Print the totals, and everything that exceeds a limit."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "cudaredist")
    counts: Counter[str] = Counter()
    for path in modules(root):
        relative = path.relative_to(root)
        counts[relative.parts[0] if len(relative.parts) > 1 else "(top)"] += logic(path)
    print(f"{counts.total():6,} lines of logic")
    for package, count in counts.most_common():
        print(f"{count:6,} {package}")
    for name, lines in {**long_modules(root), **long_functions(root)}.items():
        print(f"{name}: {lines} lines")


if __name__ == "__main__":
    main()
