"""Libraries that a file refuses because they are older than the CUDA release of its build."""

from pathlib import Path

import pytest
from support.binaries import container, elf, entry
from support.environments import install, library, user
from support.programs import DATA, audit_data, known

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.environments.load_all import load_all
from cudaredist.environments.read_program import ProgramReader
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.programs.finding import Finding
from cudaredist.programs.program import KnownLibrary
from cudaredist.store.cache import Cache

LINKER = "libnvJitLink.so.12"
PROJECT = "nvidia-nvjitlink-cu12"
CHECK = b"libnvJitLink.so.\0 is too old; it is version \0, need at least version \0"
"""The strings of libcudf 26.2.1, whose code compares with 12 and 9 (`mov $0x9,%esi`)."""
DRIVERS = read_own_file((DATA / "policy/drivers.json").read_bytes(), DriverPolicy)


def linker(label: str, version: str) -> KnownLibrary:
    return known(LINKER, label, "libnvjitlink", PROJECT, version=version)


RELEASES = [linker("12.8.1", "12.8.93"), linker("12.9.0", "12.9.41"), linker("12.9.1", "12.9.86")]


def put(
    site: Path,
    text: bytes = CHECK,
    ptx: tuple[int, int] = (8, 8),
    installed: str = "12.8.93",
) -> None:
    """Install a package like libcudf, and nvJitLink."""
    path = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
    install(site, PROJECT, installed, {path: library(LINKER)})
    install(site, "cuda-pathfinder", "1.0", {})
    code = container([entry("compute", 80, ptx=ptx)])
    files: dict[str, bytes | str] = {
        "example/load.py": 'load_nvidia_dynamic_lib("nvJitLink")',
        "example/lib64/libexample.so": elf(sections={".rodata": text, ".nv_fatbin": code}),
        "example/lib64/libother.so": user(LINKER, runpath="$ORIGIN/../../nvidia/nvjitlink/lib"),
    }
    install(site, "example", "1.0", files)


def findings(site: Path) -> list[Finding]:
    reader = ProgramReader(cache=Cache(site.with_suffix(".cache")), paths=[site])
    (environment,) = reader.read_all().environments
    data = audit_data(RELEASES)._replace(drivers=DRIVERS)
    return list(JudgedEnvironment(load_all(environment, data), data).findings())


@pytest.mark.parametrize("start", [0, (1 << 20) - 0x400])
def test_library_older_than_the_build_is_refused(tmp_path: Path, start: int) -> None:
    put(tmp_path, bytes(start) + CHECK)
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("requirement", 1)
    assert "was compiled for CUDA 12.9" in finding.message
    assert "libnvJitLink.so.12" in finding.message
    assert "nvidia-nvjitlink-cu12 12.8.93 is installed" in finding.message
    assert finding.hint == "pip install 'nvidia-nvjitlink-cu12>=12.9.41'"


@pytest.mark.parametrize(
    "difference",
    [
        {"text": b"libnvJitLink.so.\0"},
        {"text": CHECK.replace(b"libnvJitLink", b"libnvrtc")},
        {"ptx": (8, 7)},
        {"installed": "12.9.86"},
        {"installed": "12.7.1"},
    ],
    ids=["no check", "check of another library", "older build", "newer library", "unknown library"],
)
def test_library_is_accepted(tmp_path: Path, difference: dict[str, object]) -> None:
    put(tmp_path, **difference)  # type: ignore[arg-type] # the arguments by name
    assert findings(tmp_path) == []


def test_other_package_requires_the_old_library(tmp_path: Path) -> None:
    put(tmp_path)
    install(tmp_path, "torch", "2.9.1", {}, [f"{PROJECT}==12.8.93"])
    (finding,) = findings(tmp_path)
    assert finding.hint is None
    assert f"torch 2.9.1 requires {PROJECT}==12.8.93" in finding.message
