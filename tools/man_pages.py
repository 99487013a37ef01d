"""Generate the man pages from commands in build/man: `python -m tools.man_pages`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cudaredist import __version__
from cudaredist.app import app
from cudaredist.errors import EXIT_CODES
from tools.reference import examples_of

FOLDER = Path(__file__).parents[1] / "build" / "man"


def man_pages() -> dict[str, str]:
    """Return the text of each man page, by file name."""
    group: Any = typer.main.get_command(app)
    pages = {"cudaredist.1": "\n".join(_overview(group))}
    for name, command in group.commands.items():
        pages[f"cudaredist-{name}.1"] = "\n".join(_page(name, command))
    return pages


def _overview(group: Any) -> Iterator[str]:
    yield from _head("cudaredist", group.help)
    yield from (".SH SYNOPSIS", r".B cudaredist", r"COMMAND [OPTIONS] [ARGUMENTS]", ".SH COMMANDS")
    for name, command in group.commands.items():
        yield from (".TP", rf".BR cudaredist\-{_text(name)} (1)")
        yield _text(command.help.split("\n\n")[0])
    yield from _end()


def _page(name: str, command: Any) -> Iterator[str]:
    summary, *parts = command.help.split("\n\n")
    prose = [part for part in parts if not part.startswith(("Examples", "    "))]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    yield from _head(f"cudaredist-{name}", summary)
    words = " ".join(one.metavar or one.name.upper() for one in arguments)
    yield from (".SH SYNOPSIS", f".B cudaredist {_text(name)}", _text(f"[OPTIONS] {words}"))
    yield ".SH DESCRIPTION"
    for part in prose:
        yield from (".PP", *map(_text, part.splitlines()))
    yield ".SH OPTIONS"
    for one in (*arguments, *options):
        names = ", ".join((*one.opts, *one.secondary_opts)) if one in options else one.metavar
        yield from (".TP", f".B {_text(names or one.name.upper())}", _text(one.help or ""))
        if one in options and one.envvar:
            yield _text(f"Variable: {one.envvar}.")
    yield from (".SH EXAMPLES", ".nf", *map(_text, examples_of(command.help)), ".fi")
    yield from _end()


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH {_text(name.upper())} 1 "" "cudaredist {__version__}" "cudaredist"'
    yield from (".SH NAME", rf"{_text(name)} \- {_text(summary.rstrip('.'))}")


def _end() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES.items():
        yield from (".TP", f".B {code}", _text(meaning))
    yield ""


def _text(text: str) -> str:
    """Return text of one line with escapes for roff."""
    escaped = " ".join(text.replace("\\", r"\e").replace("-", r"\-").split())
    return re.sub(r"^(?=[.'])", r"\\&", escaped)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in man_pages().items():
        (FOLDER / name).write_text(text)
