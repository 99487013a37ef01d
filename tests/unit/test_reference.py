"""Tests that the reference pages match the program."""

import re

from conftest import REPOSITORY
from support.pages import COMMANDS

from cudaredist.formats.registry import FILE_KINDS
from tools.reference import FOLDER, GENERATED_FOLDERS, pages


def test_reference_pages_match_program() -> None:
    other = [name for name, page in pages().items() if (FOLDER / name).read_text() != page]
    assert other == [], "run make docs"


def test_every_kind_of_file_and_every_command_has_a_page() -> None:
    names = {folder: {p.stem for p in (FOLDER / folder).iterdir()} for folder in GENERATED_FOLDERS}
    assert names == {"commands": set(COMMANDS), "data-files": set(FILE_KINDS)}


def test_contributing_map_lists_every_module() -> None:
    plan = (REPOSITORY / "CONTRIBUTING.md").read_text().partition("```text")[2].partition("```")[0]
    listed = set(re.findall(r"(?<![\w*/])(\w+)(?:/|\.py)", plan))
    package = REPOSITORY / "cudaredist"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert {path.stem for path in package.glob("[!_]*.py")} | folders <= listed
