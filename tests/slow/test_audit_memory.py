"""audit of folders with hundreds of thousands of files: bounded memory."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.slow

FILES = 200_000
LIMIT = 150
"""Megabytes. The program alone takes about 95."""
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def peak(*words: object) -> int:
    """Return the peak memory of a call in megabytes."""
    program = [sys.executable, "-c", PEAK, sys.executable, "-m", "cudaredist", *map(str, words)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("folders", [1, 200], ids=["one folder", "many folders"])
def test_many_small_files_take_little_memory(tmp_path: Path, folders: int) -> None:
    for number in range(folders):
        folder = tmp_path / "files" / str(number)
        folder.mkdir(parents=True)
        for file in range(FILES // folders):
            (folder / f"{file}.txt").write_bytes(b"x")
    options = ("--data-dir", REPOSITORY / "data", "--cache-dir", tmp_path / "cache")
    subprocess.run(
        [sys.executable, "-m", "cudaredist", "which", "libcudart.so.13", *map(str, options)],
        check=True,
        capture_output=True,
    )
    for _ in range(2):
        assert peak("audit", tmp_path / "files", *options) < LIMIT
