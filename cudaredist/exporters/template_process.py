"""The process that renders a template, started by `template.py`.

It reads one message, renders, and writes the text or an error. Between them it may ask queries,
which the other process answers. It opens no files and no database, so a template that escapes from
Jinja's sandbox finds nothing here but the values that it was given.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import SandboxedEnvironment

from cudaredist.similar_names import similar_names

_CMAKE_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "$": "\\$"})


class _QueryError(Exception):
    """The other process refused a query."""


class _Undefined(StrictUndefined):
    """An undefined name, whose error suggests similar names in a second line."""

    names: frozenset[str] = frozenset()
    """The values of the template."""

    @property
    def _undefined_message(self) -> str:
        message = super()._undefined_message
        owner = self._undefined_obj
        known = map(str, owner) if isinstance(owner, Mapping) else self.names
        similar = similar_names(str(self._undefined_name), sorted(known))
        return f"{message}\ndid you mean {' or '.join(similar)}?" if similar else message


def main() -> None:
    """Render the template of the first message."""
    task = _receive()
    try:
        _limit_memory(task["memory"])
        text = _render(task)
    except MemoryError:
        _send({"error": f"it uses more than {task['memory'] >> 20:,} MiB of memory"})
    except Exception as error:  # noqa: BLE001 - every error is the template's, and is reported
        message, _, hint = str(error).partition("\n")
        if not isinstance(error, (TemplateError, _QueryError)):
            message = f"{type(error).__name__}: {message}"
        _send({"error": message or type(error).__name__, "hint": hint, "line": _line_of(error)})
    else:
        _send({"size": len(text)})
        sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def _render(task: Mapping[str, Any]) -> bytes:
    """Return the text of a template. Raises `MemoryError` and any error of the template."""
    context = task["context"]
    undefined = type("Undefined", (_Undefined,), {"names": frozenset((*context, "query"))})
    environment = SandboxedEnvironment(
        undefined=undefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {
        "shell": shlex.quote,
        "cmake": lambda text: text.translate(_CMAKE_ESCAPES),
        "json": lambda value: json.dumps(value, ensure_ascii=False),
    }
    parts, size = [], 0
    template = environment.from_string(task["template"])
    for part in template.generate(context, query=_query):
        parts.append(part.encode())
        size += len(parts[-1])
        if size > task["output"]:
            raise _QueryError(f"it writes more than {task['output'] >> 20} MiB")
    return b"".join(parts)


def _query(sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query, which the other process runs."""
    _send({"query": str(sql)})
    answer = _receive()
    if "error" in answer:
        raise _QueryError(answer["error"])
    rows: list[dict[str, Any]] = answer["rows"]
    return rows


def _line_of(error: BaseException) -> int | None:
    """Return the line of the template that an error is from."""
    if isinstance(error, TemplateSyntaxError):
        return error.lineno
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _limit_memory(size: int) -> None:
    """Limit the memory of this process. The other process measures it on other systems."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415 - not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _receive() -> Any:  # noqa: ANN401 - JSON
    return json.loads(sys.stdin.buffer.readline())


def _send(message: Mapping[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
