"""Tests of the man pages: they exist for each command and format without warnings."""

import subprocess
from pathlib import Path

import pytest
from conftest import Run
from support.optional_programs import needs
from support.pages import COMMANDS

from tools.man_pages import man_pages

PAGES = man_pages()


def test_each_command_has_a_page_with_its_options() -> None:
    assert set(PAGES) == {"cudaredist.1", *(f"cudaredist-{name}.1" for name in COMMANDS)}
    for name, command in COMMANDS.items():
        page = PAGES[f"cudaredist-{name}.1"].replace("\\-", "-")
        assert f".BR cudaredist-{name} (1)" in PAGES["cudaredist.1"].replace("\\-", "-")
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert all(option in page for option in parameter.opts), (name, parameter.opts)


@needs("groff")
def test_pages_format_without_warnings(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in PAGES]
    command = ["groff", "-man", "-Tascii", "-ww", "-P-c", *map(str, paths)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stderr == ""
    assert "--require-gpu" in process.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_existing_page(run: Run, name: str) -> None:
    run()
    address = COMMANDS[name].epilog.split("`")[1]
    assert Path(address).is_file()
    assert Path(address).name in "".join(run(name, "--help").stdout.split())
