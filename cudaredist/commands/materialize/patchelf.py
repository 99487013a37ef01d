"""Add run paths to libraries with patchelf."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cudaredist.binaries.examine_file import examine_file
from cudaredist.errors import ContentError, IncompleteError

_SHOWN = 200


def find_patchelf() -> str:
    """Return the path of patchelf. Raises `IncompleteError` if it is not installed."""
    program = shutil.which("patchelf")
    if program is None:
        message = "--run-paths requires patchelf, which is not installed"
        hint = "install it, for example on Debian: `apt-get install patchelf`"
        raise IncompleteError(message, hint=hint)
    return program


def add_run_paths(patchelf: str, file: Path, run_paths: Sequence[str], name: str) -> None:
    """Add run paths to a library, after its own ones.

    The kind of its run path, DT_RPATH or DT_RUNPATH, does not change. Raises `ContentError` if
    patchelf fails, or if another fact of the file changes.
    """
    before = examine_file(file)
    if before is None:
        raise ContentError(f"{name}: not a library")
    run_path = (*before.runpath, *run_paths)
    options = ["--force-rpath"] if before.is_rpath else []
    process = subprocess.run(  # noqa: S603 - the user's own patchelf
        [patchelf, *options, "--set-rpath", ":".join(run_path), str(file)],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if process.returncode:
        words = " ".join(process.stderr.split())[:_SHOWN]
        raise ContentError(f"patchelf cannot add a run path to {name}: {words}")
    if examine_file(file) != replace(before, runpath=run_path):
        raise ContentError(f"patchelf changed more than the run path of {name}")
