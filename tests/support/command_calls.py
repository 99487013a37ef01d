"""Validate command calls in texts."""

from typing import Any

import typer

from cudaredist.cli import app

GROUP: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = GROUP.commands


def problem_with(words: list[str], *, may_lack_words: bool) -> str | None:
    """Return the reason for refusing a call, or None if it parses."""
    name, *rest = words
    if name.startswith("-"):
        known = {option for parameter in GROUP.params for option in parameter.opts}
        return None if name in {*known, "--help"} else f"no option {name}"
    if name not in COMMANDS:
        return f"no command {name}"
    if set(rest) & {"-h", "--help"}:
        return None
    try:
        COMMANDS[name].make_context(name, rest)
    except Exception as error:  # noqa: BLE001 - typer's errors have no public name
        if type(error).__name__ == "MissingParameter" and may_lack_words:
            return None
        return f"{type(error).__name__}: {error}"
    return None
