"""Tests of the whole tool: help, streams, colors and exit codes."""

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SAMPLE, Run, Start
from support import server as faults
from support.factory import manifest
from support.optional_programs import needs
from support.pages import COMMANDS
from support.patching import Patch
from support.running import (
    PROGRAM,
    WITHOUT_OVERRIDE,
    completed,
    expect_error,
    expect_output,
    invoke,
)
from support.server import FaultServer

from cudaredist import errors
from cudaredist.store.files import read_standard_input
from tools.reference import examples_of


def test_command_without_arguments_prints_help(run: Run) -> None:
    result = run()
    assert all(command in result.output for command in COMMANDS)
    assert "error:" not in result.output


def test_help_lists_all_commands_and_exit_codes(run: Run) -> None:
    output = run("--help").stdout
    name = "[a-z]+(?:-[a-z]+)*"
    listed = re.findall(rf"^  ({name}) {{2,}}[A-Z]", output, re.MULTILINE)
    rare = re.findall(name, output.partition("Rarely needed: ")[2].partition("\n\n")[0])
    assert [*listed, *rare] == list(COMMANDS)
    assert "130 interrupted" in " ".join(output.split())


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_short_help_fits_a_small_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*name.split(), "-h").stdout.splitlines()
    assert len(lines) <= 30
    whole = run(*name.split(), "--help").stdout.splitlines()
    assert [line for line in (*lines, *whole) if len(line) > 80 and "/" not in line] == []
    assert f"`cudaredist {name or 'COMMAND'} --help` " in " ".join(lines)
    assert set(re.findall(r"--[a-z-]+(?= )", "\n".join(lines[8:]))) <= set(" ".join(whole).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_whole_help_lists_every_option_and_example(run: Run, name: str) -> None:
    text = run(name, "--help").stdout
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            assert all(option in text for option in (*parameter.opts, *parameter.secondary_opts))
    for example in examples_of(COMMANDS[name].help):
        command = example.partition("  #")[0]
        assert f"  {command}" in text
        assert len(command) <= 78
    assert "exit code" not in text


@pytest.mark.parametrize(
    ("name", "command"),
    [("chekc", "check"), ("process", "process-manifests"), ("manifests", "manifest")],
)
def test_misspelled_command_gets_suggestion(run: Run, name: str, command: str) -> None:
    expect_error(run(name, "x"), 2, f"hint: run `cudaredist {command} x`")


@pytest.mark.parametrize(
    "words",
    [
        "--json explain nvcc 12.4",
        "-q --json explain nvcc 12.4",
        "--color never --json explain nvcc 12.4",
    ],
)
def test_options_before_the_command_are_its_options(run: Run, words: str) -> None:
    assert run(*words.split()).stdout == run("explain", "nvcc", "12.4", "--json").stdout
    result = run(*words.replace("--json", "--jsn").split())
    expect_error(result, 2, "No such option: --jsn", "explain")


@needs("sh")
def test_dash_is_standard_input(run: Run) -> None:
    build = "build --cuda 12.8 --platform linux-x86_64 --output set.json --quiet"
    assert run(*build.split()).exit_code == 0
    command = f"{sys.executable} -m cudaredist export requirements - < set.json"
    result = completed("sh", "-c", command)
    assert result.returncode == 0, result.stderr
    assert result.stdout == run("export", "requirements", "set.json").stdout
    for words in ("explain set", "diff set.json"):
        read_standard_input.cache_clear()
        printed = invoke(*words.split(), "-", stdin=Path("set.json").read_bytes()).stdout
        expected = run(*words.split(), "set.json").stdout
        assert printed == expected.replace("set.json -> set.json", "set.json -> -")
    read_standard_input.cache_clear()


def test_help_command_prints_help(run: Run) -> None:
    assert run("help").stdout == run("--help").stdout
    assert run("help", "build").stdout == run("build", "--help").stdout
    expect_error(run("help", "biuld"), 2, "No such command 'biuld'", "cudaredist build --help")


@pytest.mark.parametrize(
    ("call", "choices", "hint"),
    [
        ("which x --channel wheel", "'redist', 'wheels'", "which x --channel wheels"),
        ("which x --channel=wheel", "'redist', 'wheels'", "which --help"),
        ("which x --channel tar", "'redist', 'wheels'", "which --help"),
        ("explain packge nccl", "'package', 'set', 'api'", "explain package nccl"),
    ],
)
def test_wrong_value_names_the_choices(run: Run, call: str, choices: str, hint: str) -> None:
    result = run(*call.split())
    expect_error(result, 2, f"{choices}.", f"hint: run `cudaredist {hint}`")
    assert "Value error" not in result.stderr


def test_version_option_prints_version(run: Run, start: Start) -> None:
    process = start("--version")
    stdout, _ = process.communicate()
    assert stdout == run("--version").stdout == run("-V").stdout
    assert re.fullmatch(r"cudaredist \d+\.\d+\.\d+\n", stdout)


def test_json_option_prints_only_json_on_stdout(start: Start) -> None:
    process = start("download-manifests", "--base-url", SAMPLE, "--json", "-vv")
    stdout, stderr = process.communicate()
    assert json.loads(stdout)["exit_code"] == process.returncode == 0
    assert "\x1b" not in stdout + stderr


@pytest.mark.slow
@needs("bash")
@pytest.mark.parametrize("arguments", ["schema features", "build --help"])
def test_closed_pipe_is_not_an_error(tmp_path: Path, arguments: str) -> None:
    command = f"{sys.executable} -m cudaredist {arguments} | true"
    result = completed("bash", "-c", f"set -o pipefail; {command}", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.slow
def test_unencodable_character_is_escaped(tmp_path: Path) -> None:
    broken = tmp_path / "redistrib_1.2.json"
    broken.write_text('{"' + "x" * 100 + '": {"version": "1"}}')
    result = completed(
        *PROGRAM, "validate", broken, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert (result.returncode, result.stderr) == (5, "")
    assert "\\u2026" in result.stdout


def test_internal_error_exits_70_with_traceback(run: Run, patch: Patch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    patch("cudaredist.commands.validate.validate_files.validate_files", fail)
    expect_error(run("validate", "x.json"), 70, "internal error")


def test_every_error_has_documented_exit_code() -> None:
    kinds = [errors.CudaRedistError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    for kind in kinds[1:]:
        assert kind.exit_code in {2, 3, 4, 5}
        assert kind.__name__ in str(errors.__doc__)
    assert errors.error_kinds() == {(kind.kind, kind.exit_code) for kind in kinds[1:]}


@pytest.mark.parametrize(
    ("codes", "worst"),
    [([], 0), ([0, 1], 1), ([1, 3], 3), ([3, 5], 5), ([5, 4], 4), ([1, 3, 4, 5, 0], 4)],
)
def test_worst_exit_code_is_selected_by_severity(codes: list[int], worst: int) -> None:
    assert errors.worst_exit_code(codes) == worst


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["download-manifests", "--base-url", SAMPLE, "--redist", "cuda"],
        ["mirror", "sync", "mirror", "--base-url", SAMPLE, "--redist", "cuda"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_read_only_folder_exits_3(tmp_path: Path, arguments: list[object]) -> None:
    (tmp_path / "folder").mkdir(mode=0o555)
    command = [*WITHOUT_OVERRIDE, "-m", "cudaredist", *map(str, arguments)]
    result = completed(*command, cwd=tmp_path / "folder")
    assert result.returncode == 3, result.stderr
    assert "cannot write" in result.stderr
    assert "Permission denied" in result.stderr
    assert "hint: select another folder, or change its permissions: `ls -ld " in result.stderr
    assert "Traceback" not in result.stderr


def test_uncreatable_data_folder_exits_3(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run(
        "download-manifests", "--base-url", SAMPLE, "--data-dir", tmp_path / "file" / "data"
    )
    assert result.exit_code == 3
    assert "cannot write" in result.stderr


def test_folder_at_manifest_path_exits_3(run: Run) -> None:
    Path("data/manifests/cuda/redistrib_13.0.2.json").mkdir(parents=True)
    result = expect_output(run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda"), 3)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("color", "environment", "is_colored"),
    [
        pytest.param("auto", {}, False, id="no terminal"),
        pytest.param("always", {}, True, id="always"),
        pytest.param("always", {"NO_COLOR": "1"}, True, id="option overrides NO_COLOR"),
        pytest.param("never", {}, False, id="never"),
    ],
)
def test_color_option_controls_colors(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    color: str,
    environment: dict[str, str],
    is_colored: bool,  # noqa: FBT001 - a column of the table
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = run("download-manifests", "--base-url", "nowhere", "--color", color)
    assert ("\x1b[31merror:" in result.stderr) == is_colored


def test_control_characters_in_manifest_are_escaped(run: Run, server: FaultServer) -> None:
    odd = manifest(packages=("cuda_cudart",)).replace(b'"license_path"', b'"\\u009b31m": 1, "x"')
    server.add_manifests("cuda", {"12.9.1": odd})
    result = expect_output(run("download-manifests", "--base-url", server.url), 5)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.stdout + result.stderr)


def on_a_terminal(arguments: list[str], folder: Path, **environment: str) -> str:
    """Run the tool with a terminal as stderr and return the terminal's output."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        stderr=slave,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(slave)
    written = b""
    while True:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                written += os.read(master, 65536)
            except OSError:  # the other end is closed
                break
        elif process.poll() is not None:
            break
    process.wait()
    os.close(master)
    return written.decode("utf-8", "replace")


def test_build_on_a_terminal_ends_with_the_next_commands(tmp_path: Path) -> None:
    build = ["build", "--cuda", "12.8", "--platform", "linux-x86_64", "--output"]
    paths = {"sets": "sets/linux-x86_64/cuda-12.8.2.json", "my set.json": "'my set.json'"}
    for output, path in paths.items():
        written = on_a_terminal([*build, output], tmp_path)
        assert f"next: cudaredist explain set {path}\r\n" in written
        assert f"next: cudaredist materialize {path} --output cuda\r\n" in written
    assert "next:" not in on_a_terminal([*build, "again.json", "--quiet"], tmp_path)
    assert "next:" not in on_a_terminal([*build, "no.json", "--check"], tmp_path)


SLOW_RUN = ["download-manifests", "--redist", "cuda", "--version", "all", "-j1"]


@pytest.fixture
def slow_server(server: FaultServer) -> FaultServer:
    """Serve manifests so slowly that a run takes more than a second."""
    server.add_manifests("cuda", {f"12.9.{n}": manifest(f"12.9.{n}") for n in range(4)})
    server.delay = 0.4
    return server


@pytest.mark.slow
def test_progress_on_terminal_is_erased(slow_server: FaultServer, tmp_path: Path) -> None:
    arguments = [*SLOW_RUN, "--base-url", slow_server.url]
    written = on_a_terminal(arguments, tmp_path)
    assert "manifests" in written
    assert "manifests 5 of 5, 3.6 kB (total unknown)" in written
    assert written.rstrip().endswith(("\x1b[2K", "\x1b[?25h")) or "\x1b[2K" in written


@pytest.mark.slow
def test_quiet_shows_no_progress(slow_server: FaultServer, tmp_path: Path) -> None:
    assert on_a_terminal([*SLOW_RUN, "--base-url", slow_server.url, "-q"], tmp_path) == ""


def test_terminal_output_is_colored_unless_no_color(tmp_path: Path) -> None:
    arguments = ["download-manifests", "--base-url", "nowhere"]
    assert "\x1b[31merror:" in on_a_terminal(arguments, tmp_path)
    assert "\x1b[31merror:" not in on_a_terminal(arguments, tmp_path, NO_COLOR="1")


def test_json_report_includes_failures(run: Run, server: FaultServer) -> None:
    server.add_manifests("cuda", {"12.9.1": manifest()})
    server.misbehave("/compute/cuda/redist/redistrib_12.9.1.json", faults.status(403))
    document = json.loads(run("download-manifests", "--base-url", server.url, "--json").stdout)
    (outcome,) = document["manifests"]
    assert outcome["status"] == "failed"
    assert outcome["error"]["kind"] == "source"
    assert outcome["error"]["exit_code"] == document["exit_code"] == 3
