"""Tests that examples in help, README and docs run in an empty folder.

Examples that require more are marked."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import SAMPLE, Run
from support.pages import COMMANDS, NETWORK, PAGES, blocks, is_shown, problem_with
from support.server import FaultServer

from cudaredist.redists import NVIDIA_BASE
from tools.reference import examples_of

MADE_FROM_HELP = "commands.md"
LISTING = {"check", "download-manifests", "versions"}
"""Commands that require only manifests from a server."""


@dataclass(frozen=True)
class Example:
    """A command of a page or help text, with its documented output."""

    line: str
    output: str = ""

    @property
    def needs_network(self) -> bool:
        return NETWORK in self.line

    @property
    def is_marked(self) -> bool:
        """Whether the example requires the network or a file of the user."""
        return "# needs " in self.line

    @property
    def words(self) -> list[str]:
        """Arguments with expanded patterns, without redirections and comments."""
        call = re.split(r" +(?:[|>]|# )", self.line)[0]
        _, *words = shlex.split(call)
        return [path for word in words for path in _matches(word) or [word]]


def _matches(pattern: str) -> list[str]:
    return sorted(map(str, Path().glob(pattern))) if "*" in pattern else []


def examples_of_page(page: Path) -> Iterator[Example]:
    """Yield the commands of a page, except those of `make demo`."""
    for block in blocks(page):
        if block.startswith("$ make "):
            continue
        for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
            first, _, output = part.partition("\n")
            for line in [first] if part.startswith("$ ") else part.splitlines():
                call = re.sub(r'^cmd = "(.*)"', r"\1", line.strip())
                command = re.match(r"(?:\$ |[- ]*run: )?(cudaredist .*)", call)
                if command:
                    yield Example(command[1], output if part.startswith("$ ") else "")


SOURCES = {page.name: list(examples_of_page(page)) for page in PAGES if page.name != MADE_FROM_HELP}
SOURCES |= {
    f"{name} --help": [Example(line) for line in examples_of(command.help)]
    for name, command in COMMANDS.items()
}
SOURCES = {name: examples for name, examples in SOURCES.items() if examples}
HEAVY = ("build.md", "ci.md", "site.md", "site --help")
"""Sources with examples that write pages or package sets for all shipped data."""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else [], id=name)
        for name in SOURCES
    ],
)
def test_examples_run_in_empty_folder_in_order(run: Run, source: str) -> None:
    for example in SOURCES[source]:
        if example.is_marked:
            continue
        result = run(*example.words)
        # Exit code 1 means findings, which an example may have.
        assert result.exit_code in {0, 1}, f"{example.line}\n{result.output}"
        assert is_shown(example.output, result.stdout), f"{example.line}\n{result.output}"


@pytest.mark.parametrize("source", SOURCES)
def test_examples_with_network_mark_succeed_on_server(
    run: Run, server: FaultServer, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_folder(SAMPLE)
    monkeypatch.setenv("CUDAREDIST_BASE_URL", server.url)
    for example in SOURCES[source]:
        if not example.needs_network:
            continue
        words = [word.replace(NVIDIA_BASE, server.url) for word in example.words]
        assert problem_with(words, may_lack_words=False) is None, example.line
        if words[0] in LISTING and "wheels" not in words:
            result = run(*words)
            assert result.exit_code in {0, 1, 3}, f"{example.line}\n{result.output}"


def test_network_example_without_mark_fails(run: Run) -> None:
    assert run("update-gpus").exit_code == 2
    assert Example(f"cudaredist update-gpus  {NETWORK}").needs_network
    assert Example(f"cudaredist versions > x  {NETWORK}").words == ["versions"]
