"""Run and kill the program in children of a process that has already loaded it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "slow" / "killed_calls.py"
STEPS = ("os.rename", "os.link", "os.symlink", "os.mkdir", "os.remove", "os.rmdir", "open")
"""Audit events of steps that change the disk."""


class Killer:
    """Runner of program calls that end normally or are killed."""

    def __init__(self, root: str) -> None:
        """Start the process. Only disk steps with `root` in their path count."""
        self._process = subprocess.Popen(
            [sys.executable, PROGRAM, root],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """Stop the parent process of the calls."""
        self._process.kill()
        self._process.communicate()

    def run(
        self,
        *arguments: object,
        step: int | None = None,
        steps: Sequence[str] = STEPS,
        failing: str | None = None,
    ) -> int:
        """Run a call and return its exit code, or -9 if it was killed.

        The call is killed before a step. `failing` is a function that only its own module calls. It
        returns False, as on a system without its feature.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        question = json.dumps([list(map(str, arguments)), step, steps, failing])
        self._process.stdin.write(f"{question}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())
