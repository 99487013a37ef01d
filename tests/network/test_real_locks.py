"""Tests that pip and uv select exactly the wheels of a shipped set."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import ask_index, cudaredist

from cudaredist.wheel_projects import PLATFORMS

pytestmark = pytest.mark.network

PIP = (sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--no-deps", "--ignore-installed")


def build(folder: Path, cuda: str, platform: str) -> set[str]:
    """Build a set and return the file names of its wheels."""
    cudaredist(folder, "build", "--cuda", cuda, "--platform", platform, "-o", "set.json")
    packages = json.loads((folder / "set.json").read_bytes())["packages"].values()
    paths = [one["archive"]["relative_path"] for one in packages if one["archive"]]
    return {path.rpartition("/")[2] for path in paths}


def selected(report: Path) -> set[str]:
    """Return the file names of the wheels that pip selected."""
    items = json.loads(report.read_bytes())["install"]
    return {item["download_info"]["url"].rpartition("/")[2] for item in items}


@pytest.mark.parametrize(
    ("cuda", "platform"),
    [
        ("12.9.1", "linux-x86_64"),
        ("13.0.2", "linux-sbsa"),
        ("13.0.2", "windows-x86_64"),
        ("13.5.0", "windows-arm64"),
    ],
)
def test_pip_selects_wheels_of_requirements(tmp_path: Path, cuda: str, platform: str) -> None:
    wheels = build(tmp_path, cuda, platform)
    cudaredist(tmp_path, "export", "requirements", "set.json", "-o", "requirements.txt")
    tags = [part for tag in PLATFORMS[platform].tags for part in ("--platform", tag)]
    ask_index(
        *(*PIP, "--target", tmp_path / "target", "--only-binary", ":all:", *tags),
        *("--require-hashes", "-r", tmp_path / "requirements.txt"),
        *("--report", tmp_path / "report.json"),
    )
    assert selected(tmp_path / "report.json") == wheels
    assert len(wheels) > 20


def test_pip_and_uv_select_wheels_of_lock(tmp_path: Path) -> None:
    wheels = build(tmp_path, "13.0.2", "linux-x86_64")
    cudaredist(tmp_path, "export", "pylock", "set.json", "--resolve", "-o", "pylock.toml")
    lock = tmp_path / "pylock.toml"
    ask_index(*PIP, "-r", lock, "--report", tmp_path / "report.json")
    assert selected(tmp_path / "report.json") == wheels
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    uv = (sys.executable, "-m", "uv", "pip", "sync", "--python", str(venv), "--dry-run")
    printed = subprocess.run([*uv, str(lock)], check=True, capture_output=True, text=True).stderr
    added = [line.removeprefix(" + ") for line in printed.splitlines() if line.startswith(" + ")]
    assert sorted(added) == sorted(_requirement(name) for name in wheels)


def _requirement(wheel: str) -> str:
    project, version = wheel.split("-")[:2]
    return f"{project.replace('_', '-')}=={version}"
