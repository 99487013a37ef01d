"""Tests of README, docs and help: shown output is printed and calls parse."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY, SAMPLE, Run
from support.pages import (
    ALL_PAGES,
    COMMANDS,
    DOCS,
    DOCS_FOLDER,
    FENCED,
    GROUP,
    PAGES,
    README,
    WRITTEN_PAGES,
    blocks,
    is_shown,
    name_of,
    problem_with,
)

from cudaredist import errors
from tools import pictures
from tools.reference import examples_of


def prose(page: Path) -> str:
    """Return the text of a page without fenced blocks."""
    return FENCED.sub("", page.read_text())


def shown_after(page: Path, call: str) -> str:
    """Return the documented output of the only call with a given start."""
    (output,) = [part.partition("\n")[2] for part in blocks(page) if part.startswith(f"$ {call}")]
    return output


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """List the links of a page to a file or heading that does not exist."""
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose(page)):
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    return broken


NO_CALLS = {"CONTRIBUTING.md", "commands.md", "manifests.md", "releasing.md"}
CHECKED_PAGES = [*PAGES, REPOSITORY / "CONTRIBUTING.md"]
OF_OTHER_PROGRAMS = {
    "--system-site-packages",
    "--add-rpath",
    "--build",
    "--cut-dirs",
    "--check-json",
    "--dest",
    "--dest-dir",
    "--eval",
    "--arg",
    "--expr",
    "--out-link",
    "--hard-links",
    "--index-url",
    "--no-deps",
    "--persist-credentials",
    "--python",
    "--dyn-syms",
    "--refresh-golden",
    "--require-hashes",
    "--with",
}


def calls(page: Path) -> Iterator[list[str]]:
    """Yield the words of every cudaredist call on a page."""
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]
    for text in [*spans, *(line for block in blocks(page) for line in block.splitlines())]:
        match = re.search(r"(?<![\w/'])cudaredist ((?:-h|--|[a-z]).*)", text)
        if match is None or (text in spans and not text.startswith("cudaredist ")):
            continue
        call = re.split(r" [|>#&]|\$\(", match[1])[0].strip()
        yield shlex.split(call if call.count('"') % 2 == 0 else call.rstrip('"'))


@pytest.mark.parametrize("page", CHECKED_PAGES, ids=name_of)
def test_every_call_on_a_page_parses(run: Run, page: Path) -> None:
    page_calls = list(calls(page))
    problems = {" ".join(w): problem_with(w, may_lack_words=True) for w in page_calls if w}
    assert {call: problem for call, problem in problems.items() if problem} == {}
    assert page_calls or page.name in NO_CALLS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_examples_that_parse(run: Run, command: str) -> None:
    lines = examples_of(COMMANDS[command].help)
    assert lines, f"{command} has no example"
    for line in lines:
        program, *words = shlex.split(re.split(r" +(?:[|>]|# )", line)[0])
        assert program == "cudaredist"
        assert problem_with(words, may_lack_words=False) is None, line


def test_invalid_call_on_a_page_is_reported(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`cudaredist build\n--cud 12`\n```sh\n$ cudaredist nope\n```\n")
    problems = [problem_with(words, may_lack_words=True) for words in calls(page)]
    assert [str(problem).split(":")[0] for problem in problems] == [
        "NoSuchOption",
        "no command nope",
    ]


@pytest.mark.parametrize("page", CHECKED_PAGES, ids=name_of)
def test_every_option_on_a_page_exists(run: Run, page: Path) -> None:
    parameters = [p for one in (GROUP, *COMMANDS.values()) for p in one.params]
    known = {name for p in parameters for name in (*p.opts, *p.secondary_opts)} | {"--help"}
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+(?![\w\[-])", page.read_text()))
    assert options - known - OF_OTHER_PROGRAMS == set()


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_links_on_a_page_have_targets(page: Path) -> None:
    assert broken_links(page) == []


def test_links_to_missing_file_or_heading_are_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A b\n[1](page.md) [2](#a-b) [3](page.md#c) [4](no.md) [5](https://x.y/z)\n")
    assert broken_links(page) == ["page.md#c", "no.md"]


TERMS = {
    "closure": "closures?",
    "coverage": "coverage",
    "family": "famil(?:y|ies)",
    "hollow": "hollow",
    "I14": "I14",
    "limited features": "limited features",
    "metapackage": "metapackages?",
    "module": "modules?",
    "release line": "release lines?",
    "variant": "variants?",
}
"""Terms that pages link to their meaning, with a pattern of their forms."""
TERMS_LINK = r"\]\((?:docs/)?index\.md#terms\)"
PYTHON_MODULES = {"audit-environments.md", "cluster.md"}
JETSON_MODULES = {"advisories.md"}


def test_terms_have_a_meaning() -> None:
    table = (DOCS_FOLDER / "index.md").read_text().partition("## Terms")[2]
    rows = re.findall(r"^\| (.+) \| .+ \|$", table, re.MULTILINE)
    names = {name for row in rows for name in row.split(", ")}
    assert set(TERMS) - names == {"I14"}
    assert "with a number such as I14" in table


@pytest.mark.parametrize("page", WRITTEN_PAGES, ids=name_of)
def test_page_links_the_first_use_of_a_term(page: Path) -> None:
    text = prose(page)
    if page.name == "index.md" or "Generated by `make docs`." in text:
        return
    text = re.sub(rf"^#.*|`[^`]*`|(?!{TERMS_LINK})\]\([^)]*\)", "", text, flags=re.MULTILINE)
    unlinked = set()
    for term, forms in TERMS.items():
        use = re.search(rf"(?<![\w-])(?:{forms})(?![\w-])", text, re.IGNORECASE)
        if use and not re.match(TERMS_LINK, text[use.end() :]):
            unlinked.add(term)
    if page.name in PYTHON_MODULES | JETSON_MODULES:
        unlinked.discard("module")
    assert unlinked == set()


def test_start_page_and_indexes_link_to_every_page() -> None:
    for page in DOCS:
        folder = page.parent
        index = DOCS_FOLDER / ("index.md" if folder == DOCS_FOLDER else f"{folder.name}.md")
        assert page == index or f"]({name_of(page)})" in index.read_text(), name_of(page)


def test_readme_lists_every_command() -> None:
    for command in COMMANDS:
        assert f"| `cudaredist {command}` |" in README.read_text()


def test_documented_exit_codes_match_program() -> None:
    codes = errors.EXIT_CODES
    for page in (REPOSITORY / "docs/scripts.md", REPOSITORY / "docs/commands.md"):
        table = re.findall(r"^\| (\d+) \| (.+?) \|$", page.read_text(), re.MULTILINE)
        assert [int(code) for code, _ in table] == sorted(codes), page.name
        for code in (errors.EXIT_FINDINGS, errors.EXIT_INTEGRITY):
            assert errors.worst_exit_code([code, errors.EXIT_OK]) == code


# -- output on pages


def run_demo(capfd: pytest.CaptureFixture[str], **variables: str) -> str:
    """Run the demo and return its output, without warnings and in at most 60 lines."""
    # The report shows the output even if a time limit ends the test.
    process = subprocess.run(
        ["sh", "examples/demo.sh"],
        cwd=REPOSITORY,
        env={**os.environ, "BIN": str(Path(sys.executable).parent), **variables},
        check=False,
    )
    stdout, stderr = capfd.readouterr()
    report = f"exit status {process.returncode}\n-- stdout\n{stdout}\n-- stderr\n{stderr}"
    assert process.returncode == 0, report
    # Other lines of stderr are progress on a slow machine, and pip's warnings about its settings.
    assert not re.search(r"^ *(warning|error):", stdout + stderr, re.MULTILINE), report
    assert stdout.count("\n") <= 60, report
    return stdout


@pytest.mark.network
def test_readme_shows_output_of_demo(capfd: pytest.CaptureFixture[str]) -> None:
    stdout = run_demo(capfd)
    assert is_shown(shown_after(README, "make demo"), stdout)
    assert not is_shown(shown_after(README, "make demo").replace("archives", "parts"), stdout)


@pytest.mark.slow
def test_demo_without_index_runs_on_shipped_data(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    index = "http://127.0.0.1:9/simple"
    stdout = run_demo(capfd, PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=index)
    assert "does not answer" in stdout
    assert "42 available" in stdout
    assert "from the shipped data\nwritten: 8 files in build, nix\n" in stdout


def test_sources_page_shows_output_of_download(run: Run) -> None:
    Path("examples").symlink_to(REPOSITORY / "examples")
    page = REPOSITORY / "docs/sources.md"
    block = next(b for b in blocks(page) if b.startswith("$ cudaredist download-manifests --base"))
    line, _, expected = block.partition("\n")
    assert is_shown(expected, run(*shlex.split(line, comments=True)[2:]).stdout)


def test_ci_page_shows_output_of_check(run: Run) -> None:
    data = ["--base-url", SAMPLE]
    run("download-manifests", *data, "--redist", "cuda", "--max-version", "12.9.0")
    run("download-manifests", *data, "--redist", "cudnn", "--version", "8.9.5")
    expected = shown_after(REPOSITORY / "docs/ci.md", "cudaredist check ")
    assert is_shown(expected, run("check", *data).stdout)


def test_picture_shows_current_output_without_other_servers(run: Run) -> None:
    picture = pictures.PICTURE.read_text()
    outputs = [run(*words.split()).stdout for words in pictures.CALLS]
    current = list(filter(None, pictures.shown_lines(outputs[-1])))
    assert pictures.lines_of(picture) == current, "run `make picture`"
    assert "@font-face" not in picture
    assert pictures.lines_of(pictures.picture(["a  b", "<c>"])) == ["a  b", "<c>"]
