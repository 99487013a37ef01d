"""audit of the active environment, and its answers to the messages of errors."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import Run
from support.binaries import elf
from support.environments import install
from support.running import expect_error, expect_output
from typer.testing import CliRunner

from cudaredist.app import app
from cudaredist.store.files import read_standard_input

MESSAGE = "ImportError: a.so: undefined symbol: ncclAlltoAll"
MISSING = "libnccl.so.2: cannot open shared object file: No such file or directory"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment with an old NCCL, which is not active."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    # A process reads its standard input once, but each test has another one.
    read_standard_input.cache_clear()
    folder = tmp_path / "env"
    packages = folder / "lib/python3.11/site-packages"
    nccl = {"nvidia/nccl/lib/libnccl.so.2": elf(soname="libnccl.so.2")}
    install(packages, "nvidia-nccl-cu12", "2.27.7", nccl)
    program = elf(needed=["libnccl.so.2"], runpath="$ORIGIN/../nvidia/nccl/lib")
    install(packages, "example", "1.0", {"example/a.so": program})
    (folder / "pyvenv.cfg").write_text("")
    return folder


@pytest.mark.parametrize("name", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_audit_without_a_path_examines_the_active_environment(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, str(site))
    expect_output(run("audit"), 0, str(site), "nvidia-nccl-cu12 2.27.7")


def test_audit_without_a_path_and_environment_is_refused(run: Run, site: Path) -> None:
    result = expect_error(run("audit"), 2, "missing PATH: no environment is active")
    assert "run `cudaredist audit .venv`" in result.stderr
    assert site.exists()


@pytest.mark.parametrize("is_piped", [False, True])
def test_audit_answers_the_message_of_an_error_first(site: Path, *, is_piped: bool) -> None:
    words = ["audit", str(site), "--error", "-" if is_piped else MESSAGE]
    result = CliRunner().invoke(app, words, input=f"Traceback:\n{MESSAGE}\n".encode())
    lines = [line for line in result.stdout.splitlines() if line][1:3]
    assert "which does not export ncclAlltoAll; libnccl.so.2 has it since nccl 2.28.3" in lines[0]
    pip = f"{site}/bin/python -m pip"
    assert lines[1] == f"    hint: run `{pip} install 'nvidia-nccl-cu12>=2.28.3'`"


def test_audit_answers_as_json(run: Run, site: Path) -> None:
    result = run("audit", site, "--error", MESSAGE, "--json")
    (answer,) = json.loads(result.stdout)["answers"]
    assert (answer["kind"], answer["name"]) == ("symbol", "ncclAlltoAll")
    assert answer["package"] == "nvidia-nccl-cu12 2.27.7"
    assert answer["first"] == "nccl 2.28.3 (nvidia-nccl-cu12 2.28.3)"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["env", "--error", ""], "the message is empty"),
        (["a.so", "--error", "nothing"], "--error requires the folder of an environment"),
        (["--error", "no kernel image"], "--error requires the folder of an environment"),
    ],
)
def test_audit_refuses_a_message_without_an_answer(
    run: Run, site: Path, words: list[str], message: str
) -> None:
    (site.parent / "a.so").write_bytes(elf())
    result = expect_error(run("audit", *words), 2, message)
    assert "hint: run `cudaredist audit " in result.stderr


@pytest.mark.parametrize(
    ("message", "command"),
    [
        (MESSAGE, "cudaredist which --symbol ncclAlltoAll"),
        (f"ImportError: {MISSING}", "cudaredist which libnccl.so.2"),
    ],
)
@pytest.mark.parametrize("paths", [[], ["a.so"]])
def test_hint_for_a_message_without_an_environment_finds_its_library(
    run: Run, site: Path, message: str, command: str, paths: list[str]
) -> None:
    (site.parent / "a.so").write_bytes(elf())
    result = expect_error(run("audit", *paths, "--error", message), 2, "requires the folder of")
    assert f"hint: run `{command}`" in result.stderr
    found = run(*shlex.split(command)[1:])
    expect_output(found, 0, "nvidia-nccl-cu12")


def test_audit_reports_an_unknown_message_in_a_note(run: Run, site: Path) -> None:
    plain = run("audit", site, "--json")
    result = run("audit", site, "--error", "nothing", "--json")
    report = json.loads(result.stdout)
    note = "--error: the message names no symbol, library or error of CUDA"
    assert (report["answers"], report["notes"][0]) == ([], note)
    assert report["findings"] == json.loads(plain.stdout)["findings"]
    assert result.exit_code == plain.exit_code


def test_audit_refuses_a_large_message(site: Path) -> None:
    words = ["audit", str(site), "--error", "-"]
    result = CliRunner().invoke(app, words, input=b"x" * 1_000_001)
    expect_error(result, 2, "the message is larger than 1,000,000 bytes")


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("pip", "env/bin/python -m pip install 'nvidia-nccl-cu12>=2.28.3'"),
        ("uv", "uv pip install --python env 'nvidia-nccl-cu12>=2.28.3'"),
    ],
)
@pytest.mark.parametrize("active", ["", "other"])
def test_hint_changes_the_audited_environment(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, active: str, installer: str, command: str
) -> None:
    for folder in site.glob("lib/python3.11/site-packages/*.dist-info"):
        (folder / "INSTALLER").write_text(installer)
    monkeypatch.setenv("VIRTUAL_ENV", str(site))
    assert "`pip install" in run("audit", "env", "--error", MESSAGE).output or installer == "uv"
    monkeypatch.setenv("VIRTUAL_ENV", active)
    output = run("audit", "env", "--error", MESSAGE).output
    assert f"run `{command}`" in output
    for program in ("env/bin/python", "other/bin/uv", "other/bin/pip"):
        Path(program).parent.mkdir(parents=True, exist_ok=True)
        Path(program).write_text(f'#!/bin/sh\necho {program} "$@" > calls')
        Path(program).chmod(0o755)
    monkeypatch.setenv("PATH", f"other/bin:{os.environ['PATH']}")
    subprocess.run(command, shell=True, check=True)  # noqa: S602 - as a user enters the hint
    expected = command.replace("uv pip", "other/bin/uv pip").replace("'", "")
    assert Path("calls").read_text() == f"{expected}\n"


def test_answer_for_an_environment_without_cuda_names_the_package(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    (tmp_path / "env").mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("")
    output = run("audit", tmp_path / "env", "--error", "libcublas.so.12: cannot open").output
    assert "nvidia-cublas-cu12 contains it" in output
    assert f"run `{tmp_path}/env/bin/python -m pip install nvidia-cublas-cu12`" in output
    output = run("audit", tmp_path / "env", "--error", MESSAGE).output
    assert "(nvidia-nccl-cu12 2.28.3)" in output
