"""Tests that examples in help, README and docs run in an empty folder.

Examples that require more are marked."""

import hashlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import SAMPLE, Run
from support.archives import gz, tar_member, tar_of
from support.bumps import cuda, product
from support.pages import COMMANDS, NETWORK, PAGES, blocks, is_shown, problem_with
from support.releases import release
from support.runfiles import NAME, runfile
from support.server import FaultServer

from cudaredist.redists import NVIDIA_BASE, REDISTS
from tools.reference import examples_of

pytestmark = pytest.mark.slow

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


def test_maintenance_commands_run_in_order_in_new_folder(
    run: Run, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_releases("cuda", *(release(x, cuda(x)) for x in ("12.9.1", "13.0.2")))
    server.add_releases("cutensor", product("cutensor", "2.3.0"))
    folder = "/compute/cuda/12.9.1"
    server.files[f"{folder}/local_installers/{NAME}"] = file = runfile(b"archive")
    sums = f"{hashlib.md5(file, usedforsecurity=False).hexdigest()}  {NAME}\n"
    server.files[f"{folder}/docs/sidebar/md5sum.txt"] = sums.encode()
    base = str(REDISTS["tensorrt"].archive_base)
    addresses = [w for e in SOURCES["maintenance.md"] for w in e.words if base in w]
    for address in addresses:
        archive = gz(tar_of(tar_member("TensorRT-10.16.1.11/lib/libnvinfer.so.10")))
        server.files[address.partition(base)[2]] = archive
    monkeypatch.setenv("CUDAREDIST_BASE_URL", server.url)
    for example in SOURCES["maintenance.md"]:
        if "needs a checkout" in example.line:  # test_nixpkgs_page.py runs such commands
            continue
        words = (word.replace(NVIDIA_BASE, server.url) for word in example.words)
        result = run(*(word.replace(base, server.url) for word in words))
        is_check = example.line.startswith("cudaredist check")
        assert result.exit_code in ({0, 1} if is_check else {0}), f"{example.line}\n{result.output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_with_files_of_the_user_are_marked(page: Path) -> None:
    lines = (line for block in blocks(page) for line in block.splitlines())
    needing = [line for line in lines if re.match(r"\$ .*(~/|/srv/|\btests/)", line)]
    assert [line for line in needing if "# needs" not in line] == []


def test_network_example_without_mark_fails(run: Run) -> None:
    assert run("update-gpus").exit_code == 2
    assert Example(f"cudaredist update-gpus  {NETWORK}").needs_network
    assert Example(f"cudaredist versions > x  {NETWORK}").words == ["versions"]
