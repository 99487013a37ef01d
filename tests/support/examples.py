"""Examples of pages and help texts: their marks, their expected exit codes and their runs."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.pages import COMMANDS, WRITTEN_PAGES, is_shown, name_of
from support.running import invoke
from tools.reference import examples_of

SHELL = re.compile(r"(mkdir|cp|touch|export|echo|cmake|cuda/bin/nvcc|[a-z_]+=\S+$)\b")
"""Lines of other programs that later examples of a page rely on."""
SHELLS = ("```console", "```sh", "```shell")
_CALL = re.compile(r"(?:\$ |[- ]*run: )?((?:[A-Z_]+=\S+ )*cudaredist .*)")
_CELL = re.compile(r"`(cudaredist [^`]+)`(?: \((needs [^)]+)\))?")
"""Matches a command in a table, and its mark in parentheses."""
RESULTS = ("data/", "./mirror", "/srv/cuda")
"""Marks of examples that need a result of examples with the network."""


@dataclass(frozen=True)
class Example:
    """A command of a page or help text, with its documented output."""

    line: str
    output: str = ""

    @property
    def comment(self) -> str:
        """The comment at the end of the line."""
        return self.line.rpartition(" # ")[2] if " # " in self.line else ""

    @property
    def need(self) -> str:
        """What the example needs, such as `network` or `a checkout`. Empty: nothing."""
        match = re.search(r"\bneeds ([^,;:]+)", self.comment)
        return match[1] if match else ""

    @property
    def needs_server(self) -> bool:
        """Whether the example needs NVIDIA's server, or a result of one that does."""
        return self.need in {"network", *RESULTS}

    @property
    def needs_index(self) -> bool:
        """Whether the example needs a package index, or a result of one that does."""
        return self.need == "a package index"

    @property
    def codes(self) -> set[int]:
        """Exit codes that the page names. `exit code 1 if ...` also allows 0."""
        match = re.search(r"\bexit code (\d+)( if\b)?", self.comment)
        return {0} if match is None else {int(match[1]), *([0] if match[2] else [])}

    @property
    def is_cudaredist(self) -> bool:
        return "cudaredist " in self.line

    @property
    def settings(self) -> dict[str, str]:
        """Environment variables before the command."""
        before = self.line.partition("cudaredist ")[0].split()
        return dict(word.split("=", 1) for word in before if "=" in word)

    @property
    def words(self) -> list[str]:
        """Arguments with expanded variables and patterns, without redirections and comments."""
        line = self.line.partition("cudaredist ")[2]
        call = re.split(r" +(?:[|>&]|# )", line)[0]
        words = (os.path.expandvars(word) for word in shlex.split(call))
        return [path for word in words for path in _matches(word) or [word]]

    @property
    def target(self) -> str | None:
        """The file to which the output is redirected."""
        match = re.search(r" > ?([^\s|]+)", self.line.partition(" # ")[0])
        return match[1] if match else None


def _matches(pattern: str) -> list[str]:
    return sorted(map(str, Path().glob(pattern))) if "*" in pattern else []


def examples_of_page(page: Path) -> Iterator[Example]:
    """Yield the commands of a page and the lines on which they rely, in order.

    The commands of a table are those of its column `command`. The output of `make demo` contains
    no examples.
    """
    for part in re.split(r"(^```.*?^```)", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        if part.startswith("```"):
            yield from _examples_of_block(part)
        else:
            yield from _examples_of_tables(part)


def _examples_of_tables(text: str) -> Iterator[Example]:
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
        if "command" in rows[0][1:]:
            column = rows[0].index("command")
            for row in rows[2:]:
                for command, need in _CELL.findall(row[column]):
                    yield Example(f"{command}  # {need}" if need else command)


def _examples_of_block(block: str) -> Iterator[Example]:
    language, _, text = block.removesuffix("```").replace("\\\n", " ").partition("\n")
    if text.startswith("$ make "):
        return
    for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE):
        first, _, output = part.partition("\n")
        for line in [first] if part.startswith("$ ") else part.splitlines():
            call = re.sub(r'^cmd = "(.*)"', r"\1", line.strip())
            command = _CALL.match(call)
            shell = call.removeprefix("$ ")
            if command or (language in SHELLS and SHELL.match(shell)):
                shown = output if part.startswith("$ ") else ""
                yield Example(command[1] if command else shell, shown)


def sources() -> dict[str, list[Example]]:
    """Return the examples of each page and each help text that has some."""
    found = {name_of(page): list(examples_of_page(page)) for page in WRITTEN_PAGES}
    for name, command in COMMANDS.items():
        found[f"{name} --help"] = [Example(line) for line in examples_of(command.help)]
    return {name: examples for name, examples in found.items() if examples}


def run_example(
    example: Example, patch: pytest.MonkeyPatch, replacements: Mapping[str, str] | None = None
) -> None:
    """Run an example in this process. Check its exit code, and its output if the page shows it.

    Replacements in the line, for example of a server's address, change the output, too.
    """
    line = example.line.removesuffix(f" # {example.comment}")
    for old, new in (replacements or {}).items():
        line = line.replace(old, new)
    if not example.is_cudaredist:
        _run_in_shell(line, patch)
        return
    call = Example(line)
    with pytest.MonkeyPatch.context() as variables:
        for name, value in call.settings.items():
            variables.setenv(name, value)
        result = invoke(*call.words)
    assert result.exit_code in example.codes, f"{example.line}\n{result.output}"
    assert replacements or is_shown(example.output, result.stdout), f"{line}\n{result.output}"
    if call.target:
        Path(call.target).write_text(result.stdout)


def run_with_server(
    examples: Iterable[Example], address: str, patch: pytest.MonkeyPatch, replace: Mapping[str, str]
) -> None:
    """Run examples in order. Those that need NVIDIA's server use a server at an address.

    Examples with another need are left out. `replace` is for the examples with the server.
    """
    for example in examples:
        if example.needs_server:
            patch.setenv("CUDAREDIST_BASE_URL", address)
            run_example(example, patch, replace)
            patch.delenv("CUDAREDIST_BASE_URL")
        elif not example.need:
            run_example(example, patch)


def _run_in_shell(line: str, patch: pytest.MonkeyPatch) -> None:
    name, is_assignment, value = line.removeprefix("export ").partition("=")
    if is_assignment and name.isidentifier():
        patch.setenv(name, os.path.expandvars(value))
    else:
        subprocess.run(["sh", "-e", "-c", line], check=True)
