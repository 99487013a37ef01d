"""Help texts: short with -h, whole with --help.

The prose of a docstring is for the pages and man pages. It names the options a second time.
"""

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from typer.core import TyperCommand

from cudaredist.cli.console import Console
from cudaredist.grouping import grouped

_MOST_COLUMNS = 100
_LABEL_WIDTH = 34
"""The widest label that has its text in the same line."""
_TYPICAL = "Options"
"""The panel of the options that most people need."""


class HelpfulCommand(TyperCommand):
    """A command with a short and a whole help text."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - as typer has it
        """Write the whole help if --help was typed, else the short one."""
        is_whole = "--help" in ctx.find_root().command.words
        path = f"cudaredist {self.name}"
        lines = [usage_of(path, self.params), "", *_summary_and_examples(self.help or "")]
        arguments = [p for p in self.params if p.param_type_name == "argument"]
        options: list[Any] = [p for p in self.params if p.param_type_name == "option"]
        shown = (option for option in options if not option.hidden)
        panels = grouped((option.rich_help_panel, option) for option in shown)
        if not is_whole:
            panels = {_TYPICAL: panels[_TYPICAL]}
        sections: dict[str, Sequence[Any]] = {"Arguments": arguments, **panels}
        for title, parameters in sections.items():
            if parameters:
                rows = [(_label(parameter), parameter.help or "") for parameter in parameters]
                lines += ["", f"{title}:", *table(rows)]
        lines.append("")
        if is_whole:
            paragraphs = (self.epilog or "").split("\n\n")
            lines += [f"`{path} -h` prints the first lines only.", *map(_wrapped, paragraphs)]
        else:
            lines.append(f"`{path} --help` lists all options.")
        del formatter
        print_help(lines)


def print_help(lines: Iterable[str]) -> None:
    """Print a help text. typer adds the last line break.

    typer itself would ignore that standard output cannot be written.
    """
    Console().result("\n".join(lines))


def usage_of(path: str, parameters: Iterable[Any]) -> str:
    """Return the line with the form of a call."""
    words = [_label(p) for p in parameters if p.param_type_name == "argument"]
    return " ".join(["Usage:", path, "[OPTIONS]", *words])


def program_help(
    summary: str,
    examples: Mapping[str, str],
    groups: Mapping[str, Mapping[str, str]],
    *,
    rare: str,
    is_whole: bool,
) -> Iterator[str]:
    """Yield the help of the program: examples, then the commands in groups.

    `groups` has the commands with their tasks. The group `rare` has one line.
    """
    yield "Usage: cudaredist COMMAND [OPTIONS]"
    yield from ("", summary, "", "Examples:")
    yield from table([*examples.items()])
    for title, commands in groups.items():
        if is_whole and title != rare:
            yield from ("", f"{title}:")
            yield from table([*commands.items()])
    if not is_whole:
        yield ""
    names = {title: ", ".join(groups[title]) for title in ([rare] if is_whole else groups)}
    if is_whole:
        yield ""
        yield _wrapped(f"{rare}: {names[rare]}")
    else:
        yield from table([(f"{title}:", text) for title, text in names.items()])
    yield ""
    yield "`cudaredist COMMAND -h` has the examples and main options of a command, and"
    yield "`cudaredist COMMAND --help` all of them."


def table(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield labels with their texts in a second column, within the width of the terminal."""
    narrow = (len(label) for label, _ in rows if len(label) <= _LABEL_WIDTH)
    indent = max(narrow, default=0) + 4
    for label, text in rows:
        lines = _lines(text, _columns() - indent) or [""]
        if len(label) + 4 > indent:
            yield f"  {label}"
        else:
            first, *lines = lines
            yield f"  {label}".ljust(indent) + first if first else f"  {label}"
        yield from (" " * indent + line for line in lines if line)


def _summary_and_examples(text: str) -> Iterator[str]:
    """Yield the first line of a docstring, and its examples.

    The mark of an example is left out if it does not fit in the line.
    """
    yield text.partition("\n\n")[0]
    yield from ("", "Examples:")
    for example in re.findall(r"^ {4}(cudaredist .+)", text, re.MULTILINE):
        line = re.sub(r", exit code \d.*|  # exit code \d.*", "", example)
        is_long = len(line) + 2 > _columns()
        yield f"  {line.partition('  #')[0] if is_long else line}"


def _label(parameter: Any) -> str:  # noqa: ANN401 - typer's parameter
    """Return the names of an option with its placeholder, or the name of an argument."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = sorted((*parameter.opts, *parameter.secondary_opts), key=len)
    if parameter.secondary_opts:
        names = [*parameter.opts, *parameter.secondary_opts]
    return " ".join(filter(None, (", ".join(names), parameter.metavar)))


def _wrapped(text: str) -> str:
    return "\n".join(_lines(text, _columns()))


def _lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _columns() -> int:
    return min(shutil.get_terminal_size().columns, _MOST_COLUMNS)
