"""The built wheel in a clean environment, away from the checkout."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from conftest import REPOSITORY, SAMPLE

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed script, in an environment that holds the wheel and nothing of ours else."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir"]
    subprocess.run([*build, str(folder), str(REPOSITORY)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=True)
    bin_folder = folder / "env" / "bin"
    subprocess.run([bin_folder / "python", "-m", "pip", "install", "-q", wheel], check=True)
    return bin_folder / "cudaredist"


def tool(installed: Path, folder: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    environment = {"HOME": str(folder), "PATH": os.defpath, "LANG": "C.UTF-8"}
    return subprocess.run(
        [installed, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_runs_from_another_folder(installed: Path, tmp_path: Path) -> None:
    assert tool(installed, tmp_path, "--version").stdout.startswith("cudaredist ")
    result = tool(installed, tmp_path, "download-manifests", "--base-url", SAMPLE)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "data/manifests/cuda/redistrib_13.0.2.json").exists()


def test_finds_the_data_shipped_with_it(installed: Path, tmp_path: Path) -> None:
    find = "from cudaredist.store import shipped_data; print(shipped_data())"
    python = installed.with_name("python")
    output = subprocess.run(
        [python, "-c", find], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Path(output).is_relative_to(installed.parents[1])
    for name in ("manifests/lock.json", "features"):
        assert (Path(output) / name).exists()
    lock = (Path(output) / "manifests/lock.json").read_bytes()
    assert lock == (REPOSITORY / "data/manifests/lock.json").read_bytes()
    assert tool(installed, tmp_path, "check", "--offline").returncode in {0, 1}


def test_ships_the_schemas(installed: Path, tmp_path: Path) -> None:
    assert '"$schema"' in tool(installed, tmp_path, "schema", "features").stdout
    assert tool(installed, tmp_path, "validate", SAMPLE.parent / "README.md").returncode == 5


def test_needs_nothing_but_what_it_declares(installed: Path, tmp_path: Path) -> None:
    python = installed.with_name("python")
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert "click==" not in listed, "typer carries its own"
    for command in ("download-manifests", "check", "schema", "validate"):
        assert tool(installed, tmp_path, command, "--help").returncode == 0
