"""Tests of the hooks for pre-commit in a small repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support.bumps import product
from support.optional_programs import needs
from support.server import FaultServer

pytestmark = [pytest.mark.network, pytest.mark.nightly, needs("git")]
UV = Path(sys.executable).with_name("uv")


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def commit(home: Path) -> "subprocess.CompletedProcess[str]":
    """Run the hooks of the working tree of cudaredist on all files."""
    git("add", "--all")
    return subprocess.run(
        [UV, "tool", "run", "pre-commit", "try-repo", REPOSITORY, "--all-files", "--verbose"],
        env={**os.environ, "PRE_COMMIT_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_hooks_pass_valid_data_and_stop_damaged_data(
    fetch: Run, server: FaultServer, process: Run, tmp_path: Path
) -> None:
    git("init", "--quiet")
    Path("notes.json").write_text("not data")
    server.add_releases("cutensor", product("cutensor", "2.3.0"))
    assert fetch("--redist", "cutensor").exit_code == process().exit_code == 0
    result = commit(tmp_path / "home")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("Passed") == 2

    manifest = Path("data/manifests/cutensor/redistrib_2.3.0.json")
    manifest.write_text(manifest.read_text().replace('"size": "', '"size": "1'))
    result = commit(tmp_path / "home")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "edited" in result.stdout

    manifest.write_text("{")
    result = commit(tmp_path / "home")
    assert result.stdout.count("Failed") == 2, result.stdout + result.stderr
