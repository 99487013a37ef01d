"""Count lines of logic.

`python -m tools.count_logic [FOLDER]` counts without imports, `__all__`, docstrings, comments and
blank lines.
"""

import ast
import sys
from collections import Counter
from pathlib import Path


def modules(root: Path) -> list[Path]:
    """List the modules of a package."""
    return sorted(root.rglob("*.py"))


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


def main() -> None:
    """Print the total, and the count of each package."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "cudaredist")
    counts: Counter[str] = Counter()
    for path in modules(root):
        relative = path.relative_to(root)
        counts[relative.parts[0] if len(relative.parts) > 1 else "(top)"] += logic(path)
    print(f"{counts.total():6,} lines of logic")
    for package, count in counts.most_common():
        print(f"{count:6,} {package}")


if __name__ == "__main__":
    main()
