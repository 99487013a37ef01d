"""Tests of the built wheel in a clean environment outside the checkout."""

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, SAMPLE

from cudaredist.store.data_folder import ManifestFolder

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir"]
    subprocess.run([*build, str(folder), str(REPOSITORY)], check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """Install the wheel into a new environment and return the script."""
    return with_pip(wheel, wheel.parent / "env")


def with_pip(source: Path, folder: Path) -> Path:
    """Install with pip into a new environment and return the script."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", source], check=True)
    return folder / "bin" / "cudaredist"


def with_pipx(source: Path, folder: Path) -> Path:
    """Install with pipx and return the script."""
    variables = {
        "PIPX_HOME": str(folder / "home"),
        "PIPX_BIN_DIR": str(folder / "scripts"),
        "PIPX_DEFAULT_BACKEND": "pip",  # otherwise pipx uses the uv of this environment
    }
    command = [sys.executable, "-m", "pipx", "install", "--python", sys.executable, str(source)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | variables)
    return folder / "scripts" / "cudaredist"


def with_uv(source: Path, folder: Path) -> Path:
    """Install as a uv tool and return the script."""
    variables = {"UV_TOOL_DIR": str(folder / "home"), "UV_TOOL_BIN_DIR": str(folder / "scripts")}
    uv = [sys.executable, "-m", "uv", "tool"]
    command = [*uv, "install", "--python", sys.executable, str(source)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | variables)
    return folder / "scripts" / "cudaredist"


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


def test_installed_tool_runs_from_another_folder(installed: Path, tmp_path: Path) -> None:
    assert tool(installed, tmp_path, "--version").stdout.startswith("cudaredist ")
    result = tool(installed, tmp_path, "download-manifests", "--base-url", SAMPLE)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "data/manifests/cuda/redistrib_13.0.2.json").exists()


def test_installed_tool_finds_shipped_data(installed: Path, tmp_path: Path) -> None:
    find = "from cudaredist.store.data_folder import shipped_data; print(shipped_data())"
    python = installed.with_name("python")
    output = subprocess.run(
        [python, "-c", find], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Path(output).is_relative_to(installed.parents[1])
    for name in ("lock.json", "features"):
        assert (Path(output) / name).exists()
    lock = (Path(output) / "lock.json").read_bytes()
    assert lock == (REPOSITORY / "data/lock.json").read_bytes()
    assert tool(installed, tmp_path, "check", "--offline").returncode in {0, 1}


def test_installed_tool_has_schemas(installed: Path, tmp_path: Path) -> None:
    assert '"$schema"' in tool(installed, tmp_path, "schema", "features").stdout
    assert tool(installed, tmp_path, "validate", SAMPLE.parent / "README.md").returncode == 5


def test_installed_tool_needs_only_declared_dependencies(installed: Path, tmp_path: Path) -> None:
    python = installed.with_name("python")
    freeze = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert "click==" not in freeze, "typer carries its own"
    for command in ("download-manifests", "check", "schema", "validate"):
        assert tool(installed, tmp_path, command, "--help").returncode == 0


@pytest.mark.parametrize(
    ("install", "source"),
    [(with_pip, "folder"), (with_pip, "wheel"), (with_pipx, "folder"), (with_uv, "folder")],
)
def test_every_installer_installs_whole_tool(
    install: Callable[[Path, Path], Path], source: str, wheel: Path, tmp_path: Path
) -> None:
    script = install(wheel if source == "wheel" else REPOSITORY, tmp_path / "installed")
    workdir = tmp_path / "empty"
    workdir.mkdir()

    def run(*arguments: str) -> str:
        process = tool(script, workdir, *arguments)
        assert process.returncode == 0, process.stderr
        return process.stdout

    assert run("--version").startswith("cudaredist ")
    assert "package sets: 3 written" in run("build", "--cuda", "13.0.2")
    set_path = "build/linux-x86_64/cuda-13.0.2.json"
    assert "valid package-set file" in run("validate", set_path)
    assert "cudaPackages_13_0" in run("explain", "set", set_path)
    base = ("--wheel-base", "https://wheels.example.org")
    assert "default.nix" in run("export", "nix", set_path, "--output", "nix", *base)
    assert (workdir / "nix/default.nix").read_bytes()
    assert "GCC" in run("explain", "nvcc", "13.0")
    assert "13.0.0" in run("which", "libcublas.so.13")
    assert "0 findings" in run("check", "--offline")
    assert '"$schema"' in run("schema", "package-set")
    if source == "wheel":
        # Manifests of wheels do not depend on the machine.
        folder = ManifestFolder(REPOSITORY / "data/manifests/wheels/nccl")
        label = folder.labels()[-1]
        shipped = folder.path_of(label)
        run(
            "download-manifests", "--channel", "wheels", "--redist", "nccl", "--version", str(label)
        )
        fetched = workdir / "data/manifests/wheels/nccl" / shipped.name
        assert fetched.read_bytes() == shipped.read_bytes()


def test_wheel_is_small_and_has_each_data_file_once(wheel: Path) -> None:
    assert wheel.stat().st_size <= 8_000_000
    with zipfile.ZipFile(wheel) as archive:
        data = [one for one in archive.infolist() if one.filename.startswith("cudaredist/data/")]
    assert len(data) > 100
    assert len({(one.CRC, one.file_size) for one in data}) == len(data)
