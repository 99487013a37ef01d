"""Tests of the structure of the code, its tests and its configuration."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from conftest import REPOSITORY

from tools.count_logic import modules

PACKAGE = REPOSITORY / "cudaredist"


@cache
def parsed() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in modules(PACKAGE)}


def test_packages_do_not_export_names_of_their_modules() -> None:
    for path, tree in parsed().items():
        nodes = list(ast.walk(tree))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        imported = {alias.asname or alias.name for node in imports for alias in node.names}
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        if path.name == "__init__.py":
            assert imported <= used, path


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports: at its top, inside functions and for its types."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
                yield module
            case _:
                pass


def circle_of(imports: dict[str, set[str]]) -> list[str]:
    """Return the modules of a circle of imports, empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_have_no_circle() -> None:
    names = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): tree
        for path, tree in parsed().items()
    }
    assert circle_of({name: names.keys() & imports_of(tree) for name, tree in names.items()}) == []


def test_circle_is_found_in_lazy_import() -> None:
    lazy = ast.parse("def run():\n    from work import Run\n")
    typed = ast.parse("if TYPE_CHECKING:\n    import command.Options\n")
    imports = {"command": set(imports_of(lazy)), "work": {"command"}}
    assert set(circle_of(imports)) == {"command", "work"}
    assert set(imports_of(typed)) == {"command.Options"}


def test_pytest_collects_each_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """By default, pytest skips folders with names such as `build`."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = {path.parent.name for path in (REPOSITORY / "tests").rglob("test_*.py")}
    assert [name for name in folders for one in patterns if fnmatch(name, one)] == []


def test_classifiers_name_the_versions_of_fresh_machines() -> None:
    script = (REPOSITORY / "tools/fresh_machines.sh").read_text()
    machines = re.findall(r"^(?:MACHINES=\"\\\n)?[a-z]+ +(3\.\d+) ", script, re.MULTILINE)
    classifiers = (REPOSITORY / "pyproject.toml").read_text()
    assert machines == re.findall(r":: Python :: (3\.\d+)\"", classifiers)
