"""Dask schedulers and workers in separate processes."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self, TypeAlias

Process: TypeAlias = "subprocess.Popen[bytes]"


class Cluster:
    """A scheduler and its workers, which stop after the test."""

    def __init__(self, folder: Path, *options: object, **environment: str) -> None:
        self._folder = folder
        self._environment = environment
        self._file = folder / "scheduler.json"
        folder.mkdir(exist_ok=True)
        self.workers: list[Process] = []
        self.scheduler = self._start(environment, "dask_scheduler", "--port", 0, *options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    @property
    def address(self) -> str:
        """Wait for the scheduler and return its address."""
        while True:
            # The file may be incomplete.
            with contextlib.suppress(OSError, ValueError):
                return str(json.loads(self._file.read_text())["address"])
            assert self.scheduler.poll() is None, "the scheduler ended"
            time.sleep(0.1)

    def add_worker(self, *options: object, **environment: str) -> None:
        """Start a worker with one thread."""
        assert self.address
        folder = self._folder / f"worker{len(self.workers)}"
        options = ("--nthreads", 1, "--no-nanny", "--local-directory", folder, *options)
        variables = self._environment | environment
        self.workers.append(self._start(variables, "dask_worker", *options))

    def _start(self, environment: dict[str, str], program: str, *options: object) -> Process:
        common = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", self._file)
        command = [sys.executable, "-m", f"distributed.cli.{program}", *common, *options]
        return subprocess.Popen(
            [*map(str, command)],
            env=os.environ | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
