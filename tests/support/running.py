"""Runs of the command line, their reports and their data folder."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from cudaredist.cli.other_names import without_other_names
from cudaredist.errors import EXIT_USAGE
from cudaredist.formats.registry import schema_problems

FOLDER = "/compute/cuda/redist/"
LATEST = f"{FOLDER}redistrib_12.9.1.json"


def invoke(*arguments: object, stdin: bytes | None = None) -> Result:
    """Run the command line in this process."""
    from cudaredist.app import app  # noqa: PLC0415 - after the environment is clean

    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def succeed(*arguments: object) -> None:
    """Run the command line in this process and assert that it succeeds."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output


def expect_error(result: Result, code: int, *words: str) -> Result:
    """Assert a command's exit code and words on stderr, and return its result.

    The commands of the hint of a wrong call must not end with the same error. Other errors can
    depend on a server, which may answer later.
    """
    assert result.exit_code == code, result.output
    assert [word for word in words if word not in result.stderr] == [], result.stderr
    if code == EXIT_USAGE:
        _require_useful_hint(result)
    return result


def _require_useful_hint(result: Result) -> None:
    errors = _error_lines(result)
    for command in re.findall("`cudaredist ([^`]*)`", "".join(_lines(result, "hint: "))):
        call = shlex.split(command)
        assert without_other_names(call) == call, f"{command} has another name of an option"
        if call[0] not in _OF_SERVERS or {"--base-url", "--offline"} & {*call}:
            repeated = _error_lines(_invoke_in_copy(call))
            assert not errors or repeated != errors, f"the hint {command} fails in the same way"


_OF_SERVERS = frozenset(
    {
        *("download-manifests", "process-manifests", "update-nvcc-compat", "update-gpus"),
        *(
            "update-symbols",
            "update-api",
            "bump",
            "check",
            "versions",
            "mirror",
            "materialize",
            "runfile",
        ),
    }
)
"""Commands that connect to NVIDIA's servers without further options."""


def _lines(result: Result, prefix: str) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith(prefix)]


def _error_lines(result: Result) -> list[str]:
    return _lines(result, "error: ")


def _invoke_in_copy(call: list[str]) -> Result:
    """Run a call in a copy of the current folder."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        with contextlib.suppress(shutil.Error):  # pipes cannot be copied
            shutil.copytree(Path(), copy, symlinks=True, ignore_dangling_symlinks=True)
        with contextlib.chdir(copy):
            return invoke(*call)


def expect_output(result: Result, code: int, *words: str) -> Result:
    """Assert a command's exit code and words on stdout, and return its result."""
    assert result.exit_code == code, result.output
    assert [word for word in words if word not in result.stdout] == [], result.stdout
    return result


def report(result: Result) -> Any:
    return json.loads(result.stdout)


def assert_report_fits(result: Result) -> None:
    """Check the report on stdout, if any, against its schema and the exit code."""
    try:
        document = json.loads(result.stdout)
    except ValueError:
        return
    if isinstance(document, dict) and "command" in document:
        name = document["command"].partition(" ")[0]
        is_error = "error" in document
        assert schema_problems(document, "report-error" if is_error else f"report-{name}") == []
        assert document.get("exit_code", result.exit_code) == result.exit_code


PROGRAM = (sys.executable, "-m", "cudaredist")
"""The command line in a separate process."""


def completed(*command: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, and return its exit code and output."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=False, capture_output=True, text=True, **options)


def cudaredist(folder: Path, *arguments: object, code: int | None = 0) -> str:
    """Run a process in a folder with its own cache and return its output.

    If `code` is None, the process may have findings.
    """
    process = completed(
        *PROGRAM,
        *arguments,
        cwd=folder,
        env=os.environ | {"CUDAREDIST_CACHE_DIR": str(folder / "cache")},
    )
    codes = {0, 1} if code is None else {code}
    assert process.returncode in codes, process.stderr
    return process.stdout


WITHOUT_OVERRIDE = (
    sys.executable,
    "-c",
    "import ctypes, os, sys\n"
    "CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24\n"
    "ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n",
    sys.executable,
)
"""Python without root's capability to write to every folder."""


def ask_index(*command: object) -> None:
    """Run a program that downloads from a package index, and retry it once."""
    words = [str(word) for word in command]
    if subprocess.run(words, check=False).returncode:
        subprocess.run(words, check=True)


def snapshot(root: Path) -> dict[str, bytes]:
    """Return every file below a folder, including temporary and hidden ones."""
    paths = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def held(label: str = "12.9.1", redist: str = "cuda") -> Path:
    return Path(f"data/manifests/{redist}/redistrib_{label}.json")


def lock() -> Any:
    return json.loads(Path("data/lock.json").read_bytes())["redists"]


def files() -> set[str]:
    return set(snapshot(Path()))
