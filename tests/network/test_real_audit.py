"""audit of real wheels with GPU code, compared with readelf."""

import json
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.running import ask_index, cudaredist

pytestmark = pytest.mark.network

WHEELS = {
    "torchaudio": "2.11.0",
    "torchvision": "0.29.2",
    "jax-cuda12-plugin": "0.10.2",
}
PLATFORM = ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64")
PLATFORMS = (*PLATFORM, "--platform", "manylinux_2_27_x86_64")


@pytest.mark.parametrize(("project", "version"), WHEELS.items())
def test_real_wheel_needs_what_readelf_shows(tmp_path: Path, project: str, version: str) -> None:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    ask_index(*pip, *PLATFORMS, "-d", tmp_path, f"{project}=={version}")
    (wheel,) = tmp_path.glob("*.whl")
    answer = json.loads(cudaredist(tmp_path, "audit", wheel, "--json"))
    needed, glibc = readelf(wheel, tmp_path / "files")
    libraries = {
        one["soname"]: set(one["by"]) for one in answer["libraries"] if one["kind"] == "needed"
    }
    assert libraries == needed
    assert answer["glibc"]["version"] == ".".join(map(str, max(glibc)))
    assert answer["device_code"]
    text = cudaredist(tmp_path, "audit", wheel, "--format", "requirements")
    names = {
        Requirement(line.partition("  #")[0]).name
        for line in text.splitlines()
        if not line.startswith("#")
    }
    provided = (one for one in answer["libraries"] if one["status"] == "provided")
    projects = [
        {provider["project"] for provider in one["providers"]}
        for one in provided
        if one["kind"] == "needed"
    ]
    assert all(names & each for each in projects)


def readelf(wheel: Path, folder: Path) -> tuple[dict[str, set[str]], set[tuple[int, ...]]]:
    """Return the files by the library that they need, and the needed versions of glibc."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    needed: dict[str, set[str]] = defaultdict(set)
    glibc: set[tuple[int, ...]] = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            done = subprocess.run(
                ["readelf", "-dVW", path], check=True, capture_output=True, text=True
            )
            for soname in re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout):
                needed[soname].add(path.relative_to(folder).as_posix())
            versions = re.findall(r"Name: GLIBC_([0-9.]+)", done.stdout)
            glibc |= {tuple(map(int, version.split("."))) for version in versions}
    return dict(needed), glibc
