"""Read the configuration file of a project."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cudaredist.errors import ReadingFrom, UnknownNameError, UsageError
from cudaredist.private import is_safe_to_trust

_TABLES = {"cudaredist.toml": (), "pyproject.toml": ("tool", "cudaredist")}
"""The tables with the configuration, by file name."""
_LIMIT = 1 << 20
"""Bytes of a configuration file."""


class ConfigurationFile(NamedTuple):
    """A configuration file with the values of options, by parameter name."""

    path: Path | None
    values: Mapping[str, Any]
    audit: Mapping[str, Any]

    def defaults(self, command: str) -> Mapping[str, Any]:
        """Return the values of a command's options."""
        if command == "export":  # exported addresses are never implicit
            return {name: value for name, value in self.values.items() if name != "base_url"}
        return {**self.values, **self.audit} if command == "audit" else self.values


def read_configuration() -> ConfigurationFile:
    """Read the closest configuration file in the current folder and its parents.

    Raises `UsageError` if it is invalid, and `ReadError`.
    """
    try:
        parents = Path.cwd().parents
    except FileNotFoundError as error:
        hint = "change to another folder, for example with `cd`"
        raise UsageError("the current folder was removed", hint=hint) from error
    for folder in (Path(), *parents):
        for name, keys in _TABLES.items():
            path = folder / name
            if path.is_file() and is_safe_to_trust(path):
                table = _table(path, keys)
                if table is not None:
                    return _configuration(path, table)
    return ConfigurationFile(None, {}, {})


def _table(path: Path, keys: tuple[str, ...]) -> object:
    """Return the table of a file, or None if it has none."""
    with ReadingFrom(path), path.open("rb") as file:
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        hint = "remove it, or run the command in another folder"
        raise UsageError(f"{path} has more than {_LIMIT:,} bytes", hint=hint)
    if keys and b"cudaredist" not in data:
        return None
    # Start-up time is a requirement, and most folders have no configuration file.
    import tomllib

    try:
        table: Any = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error}", hint="correct the syntax of this file") from error
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _configuration(path: Path, table: object) -> ConfigurationFile:
    from pydantic import ValidationError

    from cudaredist.formats.registry import validation_problems
    from cudaredist.formats.settings import AuditSettings, Configuration, IgnoredFinding

    try:
        values = Configuration.model_validate(table).model_dump(exclude_unset=True)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            *parents, name = map(str, problem["loc"] or ("",))
            if problem["type"] == "extra_forbidden":
                model = (Configuration, AuditSettings, IgnoredFinding)[min(len(parents), 2)]
                known = [field.alias or "" for field in model.model_fields.values()]
                raise UnknownNameError(f"setting of {path}", name, known) from None
            if problem["type"] == "literal_error":
                known = re.findall(r"'(.*?)'", problem["ctx"]["expected"])
                raise UnknownNameError(f"{name} of {path}", str(problem["input"]), known) from None
        problems = "; ".join(map(str, validation_problems(error)))
        hint = "run `cudaredist schema configuration` for all settings"
        raise UsageError(f"{path}: {problems}", hint=hint) from None
    for name in ("data_dir", "cache_dir"):
        if name in values:
            values[name] = str(path.parent / values[name])
    if "base_url" in values:
        values["base_url"] = [
            address if "://" in address else str(path.parent / address)
            for address in values["base_url"]
        ]
    return ConfigurationFile(path, values, values.pop("audit", {}))
