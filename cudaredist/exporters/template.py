"""Text from a template of the user, rendered in a process with limits.

Jinja's sandbox refuses unsafe attributes, but it limits neither time nor memory, and an operation
of a template can take gigabytes before it returns. So another process renders: it is ended at the
limit of time, its memory is limited, and it has no access to files. It asks for rows of the index,
which this process answers.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from cudaredist.errors import ContentError, UnknownNameError, UsageError
from cudaredist.store.files import read_file

MAX_SECONDS = 8
MAX_ROWS = 100_000
"""Rows of a query, unless an option limits them."""
MAX_OUTPUT = 64 << 20
MAX_MEMORY = 1 << 30
_MEASURE_EVERY = 0.1
"""Seconds between two measurements of the memory, on systems that do not limit it."""

Ask: TypeAlias = Callable[[str, float], Sequence[Mapping[str, object]]]
"""Returns the rows of a query that may take some seconds. Raises `UsageError` and
`IncompleteError`."""


class Template(NamedTuple):
    """A template of the user, or a shipped one."""

    name: str
    """The path, or the name of a shipped one."""
    text: str

    @property
    def title(self) -> str:
        """The first line of the comment at the beginning."""
        return self._comment.partition("\n")[0].strip()

    @property
    def sql(self) -> str:
        """The query in this comment, in one line."""
        return " ".join(self._comment.partition("\n\n")[2].split())

    @property
    def command_line(self) -> str:
        """The command that renders a shipped template, with its query."""
        return f'cudaredist query "{self.sql}" --template {self.name}'

    @property
    def _comment(self) -> str:
        return self.text.partition("{#")[2].partition("#}")[0].strip("- \n")


def shipped_templates() -> dict[str, Template]:
    """Return the templates of this package by name."""
    folder = resources.files("cudaredist.exporters") / "shipped"
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".j2"))
    names = [name.removesuffix(".j2") for name in files]
    return {name: Template(name, (folder / f"{name}.j2").read_text("utf-8")) for name in names}


def read_template(name: str) -> Template:
    """Return a shipped template, or that of a file.

    Raises `UnknownNameError`, `ReadError` and `ContentError`.
    """
    shipped = shipped_templates()
    if name in shipped:
        return shipped[name]
    data = read_file(Path(name))
    if data is None:
        raise UnknownNameError("template or file", name, shipped)
    try:
        return Template(name, data.decode())
    except UnicodeDecodeError as error:
        raise ContentError(f"{name} is not in UTF-8") from error


def render(template: Template, context: Mapping[str, object], ask: Ask) -> bytes:
    """Return the text of a template.

    Raises `ContentError` with the line of an error in the template, and if it exceeds a limit, and
    `IncompleteError` if rows of a query are missing.
    """
    if _system() == "win32":
        hint = "run it in WSL, or use `cudaredist query SQL --json`"
        raise UsageError("the memory of a template cannot be limited on Windows", hint=hint)
    deadline = time.monotonic() + MAX_SECONDS
    task = {
        "template": template.text,
        "context": context,
        "memory": MAX_MEMORY,
        "output": MAX_OUTPUT,
    }
    with _started() as process, _watched(process, deadline) as exceeded:
        try:
            _send(process, task)
            while True:
                message = _receive(process)
                if "query" not in message:
                    break
                _send(process, _answer(message["query"], ask, deadline))
            text = _read(process, message.get("size", 0))
        except (OSError, ValueError, EOFError):
            limit = exceeded[0] if exceeded else f"{MAX_MEMORY >> 20:,} MiB of memory"
            message, text = {"error": f"it uses more than {limit}"}, b""
    if "error" in message:
        number: int | None = message.get("line")
        place = template.name if number is None else f"{template.name}, line {number}"
        suggestion: str | None = message.get("hint") or None
        raise ContentError(f"template {place}: {message['error']}", hint=suggestion)
    return text


def rendered_sets(template: Template, sets: Sequence[object], ask: Ask) -> Mapping[str, bytes]:
    """Text of your own template, with package sets as `sets`."""
    return {"text": render(template, {"sets": sets}, ask)}


def _answer(sql: str, ask: Ask, deadline: float) -> dict[str, object]:
    """Return the message with the rows of a query, or with the error and its hint."""
    try:
        return {"rows": ask(sql, max(deadline - time.monotonic(), 0.1))}
    except UsageError as error:
        return {"error": f"{error.message}\n{error.hint or ''}"}


@contextmanager
def _started() -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process that renders, and end it."""
    # The process finds the same packages, but nothing in the working directory.
    paths = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-P", "-m", "cudaredist.exporters.template_process"]
    with subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            if process.stdin is not None:
                with suppress(OSError):  # it closes a pipe with bytes that were not sent
                    process.stdin.close()


@contextmanager
def _watched(process: subprocess.Popen[bytes], deadline: float) -> Iterator[list[str]]:
    """Yield a list that gets the limit at which the process was ended."""
    exceeded: list[str] = []
    done = threading.Event()

    def watch() -> None:
        # Linux limits the memory itself.
        interval = MAX_SECONDS if _system() == "linux" else _MEASURE_EVERY
        while not done.wait(max(min(interval, deadline - time.monotonic()), 0)):
            if time.monotonic() >= deadline:
                exceeded.append(f"{MAX_SECONDS} seconds")
            elif _system() != "linux" and _memory_of(process.pid) > MAX_MEMORY:
                exceeded.append(f"{MAX_MEMORY >> 20:,} MiB of memory")
            if exceeded:
                process.kill()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield exceeded
    finally:
        done.set()
        thread.join()


def _system() -> str:
    return sys.platform


def _memory_of(pid: int) -> int:
    """Return the bytes of memory that a process uses, 0 if it ended."""
    command = ["ps", "-o", "rss=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed
    return int(answer.stdout.strip() or 0) << 10


def _send(process: subprocess.Popen[bytes], message: Mapping[str, object]) -> None:
    if process.stdin is not None:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()


def _receive(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the next message. Raises `EOFError` if the process ended."""
    line = b"" if process.stdout is None else process.stdout.readline(MAX_OUTPUT)
    if not line:
        raise EOFError
    message: dict[str, Any] = json.loads(line)
    return message


def _read(process: subprocess.Popen[bytes], size: int) -> bytes:
    """Return the text after the last message. Raises `EOFError` if it is not complete."""
    text = b"" if process.stdout is None else process.stdout.read(size)
    if len(text) < size:
        raise EOFError
    return text
