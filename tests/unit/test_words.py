"""Tests of the words in docstrings, comments and pages."""

from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.pages import ALL_PAGES

from tools.count_logic import modules
from tools.count_words import CONDITION, HARD_WORDS, FirstLines, Prose, first_lines_of, prose_of

MODULES = modules(REPOSITORY / "cudaredist")
MOST = {
    "what": 2.0,
    "where": 2.0,
    "say, tell": 1.0,
    "lie, stand": 0.3,
    "hold, held": 0.5,
    "is no, are no": 0.3,
}
"""Uses per 1,000 words. A page may use each word once."""
LEAST_CONDITIONS = 5.0


@pytest.fixture(scope="module", params=[MODULES, ALL_PAGES], ids=["code", "pages"])
def prose(request: pytest.FixtureRequest) -> Prose:
    return prose_of(request.param)


def test_prose_rarely_uses_hard_words(prose: Prose) -> None:
    rates = {word: round(prose.rate(pattern), 1) for word, pattern in HARD_WORDS.items()}
    assert {word: rate for word, rate in rates.items() if rate > MOST[word]} == {}


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_page_rarely_uses_hard_words(page: Path) -> None:
    prose = prose_of([page])
    uses = {word: prose.uses(pattern) for word, pattern in HARD_WORDS.items()}
    limits = {word: max(1, most * prose.words / 1000) for word, most in MOST.items()}
    assert {word: count for word, count in uses.items() if count > limits[word]} == {}


def test_prose_uses_if_for_conditions(prose: Prose) -> None:
    assert round(prose.rate(CONDITION), 1) >= LEAST_CONDITIONS


def test_first_lines_of_docstrings_are_short_and_direct() -> None:
    first = first_lines_of(MODULES)
    assert first.relative <= 6
    assert first.semicolon <= 1
    assert first.words <= 9.5


def test_count_ignores_code_and_addresses(tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("If `what` [it](what.md) says.\n```sh\nwhat\n```\n")
    module.write_text('"""Say what; really.\n\nWhere?\n"""\nwhat = "what"  # is no what\n')
    both = prose_of([page, module])
    words = {name: both.uses(pattern) for name, pattern in HARD_WORDS.items()}
    assert words == {
        "what": 2,
        "where": 1,
        "say, tell": 2,
        "lie, stand": 0,
        "hold, held": 0,
        "is no, are no": 1,
    }
    assert both.uses(CONDITION) == 1
    assert both.words == 10


def test_first_lines_are_measured_as_shares() -> None:
    first = FirstLines(("Return it.", "Return what; it is which one."))
    assert (first.relative, first.semicolon, first.words) == (50, 50, 4)
