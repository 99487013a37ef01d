"""Run and kill the program in children of a process that has already loaded it."""

import json
import subprocess
import sys
from collections.abc import Sequence

_DRIVER = """
import importlib, json, os, signal, sys, time
sys.path[:0] = sys.argv[2:]
from cudaredist.__main__ import main
import cudaredist.pipeline, cudaredist.source, cudaredist.render, jsonschema
import cudaredist.cli.mirror, cudaredist.pipeline.mirror.sync_mirror, cudaredist.source.http
root = sys.argv[1]

def run(arguments, last, events, seconds, failing):
    child = os.fork()
    if not child:
        if failing is not None:
            module, _, name = failing.rpartition(".")
            setattr(importlib.import_module(module), name, lambda *_: False)
        count = 0
        def hook(event, about):
            nonlocal count
            # Folders are emptied by names alone, below an open folder.
            is_ours = event in {"os.remove", "os.rmdir"} or root in str(about)
            if event == "open" and is_ours:
                is_ours = bool(about[2] & os.O_CREAT)
            if event in events and is_ours:
                if count == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1
        if last is not None:
            sys.addaudithook(hook)
        sys.argv = ["cudaredist", *arguments]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            main()
        except SystemExit as leaving:
            os._exit(leaving.code or 0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

for line in sys.stdin:
    print(run(*json.loads(line)), flush=True)
"""


STEPS = ("os.rename", "os.link", "os.symlink", "os.mkdir", "os.remove", "os.rmdir", "open")
"""Audit events of steps that change the disk."""


class Killer:
    """Runner of program calls that end normally or are killed."""

    def __init__(self, root: str) -> None:
        """Start the process. Only disk steps with `root` in their path count."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _DRIVER, root, *sys.path],
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
        seconds: float | None = None,
        failing: str | None = None,
    ) -> int:
        """Run a call and return its exit code, or -9 if it was killed.

        The call is killed before a step or after some seconds. The function `failing` of the
        program returns False, as on a system without its feature.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        question = json.dumps([list(map(str, arguments)), step, steps, seconds, failing])
        self._process.stdin.write(f"{question}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())
