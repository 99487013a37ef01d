"""Tests that the reference pages match the program."""

import re

import pytest
from conftest import REPOSITORY

from cudaredist.formats.registry import FILE_KINDS
from tools.reference import FOLDER, pages


@pytest.mark.parametrize("name", sorted(pages()))
def test_reference_pages_match_program(name: str) -> None:
    assert (FOLDER / name).read_text() == pages()[name], "run make docs"


def test_every_kind_of_file_and_every_command_has_a_section() -> None:
    assert set(re.findall(r"^## (\S+)$", pages()["data-files.md"], re.MULTILINE)) == set(FILE_KINDS)
    commands = re.findall(r"^## cudaredist (\S+)$", pages()["commands.md"], re.MULTILINE)
    assert len(commands) == len(set(commands)) >= 8


def test_contributing_map_lists_every_module() -> None:
    plan = (REPOSITORY / "CONTRIBUTING.md").read_text().partition("```text")[2].partition("```")[0]
    listed = set(re.findall(r"(?<![\w*/])(\w+)(?:/|\.py)", plan))
    package = REPOSITORY / "cudaredist"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert {path.stem for path in package.glob("[!_]*.py")} | folders <= listed
