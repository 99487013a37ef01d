"""Tests that the examples of pages and help texts run in order in an empty folder.

Their exit codes are those that the page names, and 0 for all others. Examples that need NVIDIA's
server run with a server of the tests, and those that need a package index in `tests/network`.
`tests/golden/examples-not-run.txt` lists all others.
"""

import re
from pathlib import Path

import pytest
from conftest import Run
from support.examples import Example, examples_of_page, run_example, run_with_server, sources
from support.golden import Golden
from support.nvidia_server import imitate_nvidia
from support.pages import WRITTEN_PAGES, blocks, name_of, problem_with
from support.server import FaultServer

SOURCES = sources()
SERVED = [name for name, examples in SOURCES.items() if any(e.needs_server for e in examples)]
OFFLINE = [
    name
    for name, examples in SOURCES.items()
    if name not in SERVED and any(not e.need for e in examples)
]
HEAVY = {
    *("README.md", "build.md", "ci.md", "index.md", "maintenance.md", "mirror.md", "nixpkgs.md"),
    *("query.md", "set-coverage.md", "set-releases.md", "set-statuses.md", "site.md"),
    *("sources.md", "toolkit.md", "toolkit-cross.md", "toolkit-runtime.md", "tutorial.md"),
    *("build --help", "check --help", "site --help", "validate --help"),
}
"""Sources with examples that write package sets, or read or write pages for all shipped data."""


def _marked(names: list[str]) -> list[object]:
    slow = pytest.mark.slow
    return [pytest.param(name, marks=[slow] if name in HEAVY else [], id=name) for name in names]


@pytest.mark.parametrize("source", _marked(OFFLINE))
def test_examples_run_in_order_in_empty_folder(
    run: Run, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for example in SOURCES[source]:
        if not example.need:
            run_example(example, monkeypatch)


@pytest.mark.parametrize("source", _marked(SERVED))
def test_examples_run_in_order_with_server(
    run: Run, server: FaultServer, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = imitate_nvidia(server)
    addresses["/srv/cuda"] = "srv"
    monkeypatch.setenv("RUNNER_TEMP", ".")  # as a runner of GitHub sets it
    run_with_server(SOURCES[source], server.url, monkeypatch, addresses)


def test_list_of_examples_that_are_not_run(golden: Golden) -> None:
    lines = [
        f"{source}: {example.line}"
        for source, examples in sorted(SOURCES.items())
        for example in examples
        if example.need and not (example.needs_server or example.needs_index)
    ]
    golden.check("examples-not-run.txt", "examples", "\n".join(lines))


@pytest.mark.parametrize("source", SOURCES)
def test_examples_parse(run: Run, source: str) -> None:
    for example in SOURCES[source]:
        if example.is_cudaredist:
            assert problem_with(example.words, may_lack_words=False) is None, example.line


@pytest.mark.parametrize("page", WRITTEN_PAGES, ids=name_of)
def test_commands_with_files_of_the_user_are_marked(page: Path) -> None:
    lines = (line for block in blocks(page) for line in block.splitlines())
    needing = [line for line in lines if re.match(r"\$ .*(~/|/srv/|\btests/)", line)]
    assert [line for line in needing if "# needs" not in line] == []


def test_marks_of_examples() -> None:
    assert Example("cudaredist build").codes == {0}
    assert Example("cudaredist check  # exit code 1").codes == {1}
    example = Example("cudaredist check > x  # needs network, exit code 1 if something is new")
    assert (example.need, example.codes, example.words) == ("network", {0, 1}, ["check"])
    assert (example.needs_server, example.target) == (True, "x")
    assert not Example("cudaredist check  # needs a package index").needs_server
    assert Example("A=1 cudaredist which 'a b'").settings == {"A": "1"}


def test_examples_of_a_page_are_those_of_blocks_and_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "| command | task |\n| --- | --- |\n| `cudaredist a` | x |\n\n"
        "| task | command |\n| --- | --- |\n| x | `cudaredist b` |\n\n"
        "```console\n$ mkdir c\n$ cudaredist c \\\n  --d\nshown\n```\n"
    )
    examples = list(examples_of_page(page))
    assert [e.line for e in examples] == ["cudaredist b", "mkdir c", "cudaredist c    --d"]
    assert examples[-1].output == "shown\n"


def test_example_with_another_exit_code_or_output_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_example(Example("cudaredist update-gpus # exit code 2"), monkeypatch)
    with pytest.raises(AssertionError):
        run_example(Example("cudaredist update-gpus"), monkeypatch)
    with pytest.raises(AssertionError):
        run_example(Example("cudaredist schema", "another\n"), monkeypatch)
    with pytest.raises(FileNotFoundError):
        run_example(Example("cudaredist schema > missing/file"), monkeypatch)
