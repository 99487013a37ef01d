"""Tests of shell completion: scripts, commands, options, values and speed."""

import os
import sys
from pathlib import Path

import pytest
from conftest import Run
from support.running import completed, expect_error

from cudaredist.app import app

SHELLS = ("bash", "zsh", "fish")
NAMED = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""Variable that makes typer use the given shell instead of its parent process."""
HEAVY = ("cudaredist.store", "cudaredist.formats", "cudaredist.sources", "httpx", "jsonschema")


def request(shell: str, line: str) -> dict[str, str]:
    """Return the variables that a shell sets to complete the end of a line."""
    words = line.split(" ")
    of_shell = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    return of_shell | {"_CUDAREDIST_COMPLETE": f"complete_{shell}"}


@pytest.mark.parametrize(
    ("shell", "line", "expected"),
    [
        ("zsh", "cudaredist dow", ("download-manifests",)),
        ("fish", "cudaredist dow", ("download-manifests",)),
        ("zsh", "cudaredist build --platform linux-s", ("linux-sbsa",)),
        ("fish", "cudaredist build --platform linux-s", ("linux-sbsa",)),
        ("bash", "cudaredist dow", ("download-manifests",)),
        ("bash", "cudaredist export n", ("nix",)),
        ("bash", "cudaredist n", ("nixpkgs",)),
        ("bash", "cudaredist export nixpkgs --di", ("--diff",)),
        ("bash", "cudaredist export s", ("sha256sums", "spdx")),
        ("bash", "cudaredist check --redist cud", ("cuda", "cudnn", "cudss")),
        ("bash", "cudaredist build --platform linux-s", ("linux-sbsa",)),
        ("bash", "cudaredist build --channel ", ("redist", "wheels")),
        ("bash", "cudaredist build --allow-", ("--allow-hollow", "--allow-missing-features")),
        ("bash", "cudaredist process-manifests --channel w", ("wheels",)),
        ("bash", "cudaredist materialize --layout ", ("merged", "oci", "split")),
        ("bash", "cudaredist schema pack", ("package-set", "package-set-index")),
        ("bash", "cudaredist build --cuda 12.9", ("12.9.0", "12.9.1", "12.9.2")),
        ("zsh", "cudaredist audit a.whl --require-cuda 12.9", ("12.9.1",)),
        ("fish", "cudaredist which a.so --cuda 12.9", ("12.9.1",)),
        ("bash", "cudaredist build --gpu 10.3", ("10.3", "10.3a", "10.3f")),
        ("bash", "cudaredist audit a.whl --require-gpu rtx509", ("rtx5090",)),
        ("zsh", "cudaredist explain gpu RTX509", ("RTX5090",)),
        ("bash", "cudaredist explain libcublas", ("libcublas", "libcublasmp")),
        ("bash", "cudaredist explain package cuda_g", ("cuda_gdb",)),
        ("bash", "cudaredist explain nvcc 12.9", ("12.9.0", "12.9.1", "12.9.2")),
        ("bash", "cudaredist explain jetpack 6.2", ("6.2", "6.2.1", "6.2.2", "6.2.3")),
        ("bash", "cudaredist explain l4t 36.4.3", ("36.4.3",)),
        ("bash", "cudaredist explain set ", ()),
        ("fish", "cudaredist explain ja", ()),
        ("fish", "cudaredist explain je", ("jetpack",)),
        ("fish", "cudaredist build --redist cudnn=9.10", ("cudnn=9.10.0", "cudnn=9.10.2")),
        ("zsh", "cudaredist diff cudnn@9.27", ("cudnn@9.27.0",)),
        ("bash", "cudaredist diff 12.9", ("12.9.0", "12.9.1", "12.9.2")),
        ("bash", "cudaredist materialize set.json --component comp", ("compiler",)),
        (
            "bash",
            "cudaredist process-manifests --redist cudnn --version 9.10",
            ("9.10.0", "9.10.1", "9.10.2"),
        ),
    ],
)
def test_completion_offers_matching_words(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    shell: str,
    line: str,
    expected: tuple[str, ...],
) -> None:
    for name, value in request(shell, line).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        app(prog_name="cudaredist")
    printed, errors = capfd.readouterr()
    assert errors == ""
    for word in expected:
        assert word in printed
    if shell == "bash":
        assert set(printed.split()) == set(expected)


@pytest.mark.parametrize("shell", SHELLS)
def test_install_completion_writes_script_of_selected_shell(tmp_path: Path, shell: str) -> None:
    process = completed(
        Path(sys.executable).with_name("cudaredist"),
        "--install-completion",
        shell,
        env={**os.environ, "HOME": str(tmp_path), NAMED: "1"},
    )
    assert process.returncode == 0, process.stderr
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(f"_CUDAREDIST_COMPLETE=complete_{shell}" in text for text in written)


def test_completion_reads_the_data_folder_of_the_call(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "manifests/cuda"
    folder.mkdir(parents=True)
    (folder / "redistrib_12.9.77.json").write_text('{"libown": {"version": "1.0"}}')
    (tmp_path / "gpus.json").write_text("not JSON")
    for line, expected in {
        f"cudaredist build --data-dir {tmp_path} --cuda 12.9.7": ["12.9.77"],
        f"cudaredist explain --data-dir {tmp_path} libo": ["libown"],
        f"cudaredist explain --data-dir {tmp_path} gpu H10": ["H100"],
    }.items():
        for name, value in request("bash", line).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit):
            app(prog_name="cudaredist")
        printed, errors = capfd.readouterr()
        assert (printed.split(), errors) == (expected, "")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("cudaredist build --platform linux-s", "linux-sbsa"),
        ("cudaredist explain libcublasm", "libcublasmp"),
    ],
)
def test_completion_imports_no_heavy_module(tmp_path: Path, line: str, word: str) -> None:
    """Completion must be fast, because a shell waits for it at every key."""
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules))); "
        "from cudaredist.app import app; app(prog_name='cudaredist')"
    )
    process = completed(
        sys.executable,
        "-c",
        program,
        cwd=tmp_path,
        env=os.environ | request("bash", line),
    )
    assert process.stderr == ""
    modules = process.stdout.split()
    assert word in modules
    assert [name for name in HEAVY if name in modules] == []


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_completion_of_unknown_shell_is_refused(
    monkeypatch: pytest.MonkeyPatch, run: Run, option: str
) -> None:
    def detect(*_: object) -> None:
        raise OSError("ps not found")

    monkeypatch.setattr("shellingham.detect_shell", detect)
    result = expect_error(run(option), 2, "the shell is unknown", "source_bash")
    assert "Traceback" not in result.output
