"""Read the configuration file of a project."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cudaredist.errors import ReadingFrom, UnknownNameError, UsageError
from cudaredist.private import is_safe_to_trust

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    from cudaredist.formats.settings import DeclaredSet

_TABLES = {"cudaredist.toml": (), "pyproject.toml": ("tool", "cudaredist")}
"""The tables with the configuration, by file name."""
_LIMIT = 1 << 20
"""Bytes of a configuration file."""
_begins_set = re.compile(r"\s*\[\[\s*(tool\s*\.\s*cudaredist\s*\.\s*)?sets\s*\]\]").match


class DeclaredSets(NamedTuple):
    """The package sets of a configuration file."""

    path: Path
    folder: Path
    """The folder of the sets."""
    sets: Sequence["DeclaredSet"]
    alias_fallback: bool
    """Whether an alias follows to the newest local minor."""


class ConfigurationFile(NamedTuple):
    """A configuration file with the values of options, by parameter name."""

    path: Path | None
    values: Mapping[str, Any]
    audit: Mapping[str, Any]
    declared: DeclaredSets | None = None

    def defaults(self, command: str) -> Mapping[str, Any]:
        """Return the values of a command's options."""
        if command == "export":  # exported addresses are never implicit
            return {name: value for name, value in self.values.items() if name != "base_url"}
        return {**self.values, **self.audit} if command == "audit" else self.values


def declared_sets() -> DeclaredSets | None:
    """Return the sets of the configuration file, or None if it has none."""
    declared = read_configuration().declared
    return declared if declared is not None and declared.sets else None


def sets_given(paths: Sequence[Path] | None) -> Sequence[Path]:
    """Return the given package sets, else the index of the declared sets, else none.

    Raises `UsageError` if sets are declared, but were never built.
    """
    declared = declared_sets()
    if paths or declared is None:
        return paths or ()
    index = declared.folder / "index.json"
    if not index.is_file():
        message = f"{declared.path} declares package sets, but {index} does not exist"
        raise UsageError(message, hint="run `cudaredist build`")
    return [index]


def read_configuration() -> ConfigurationFile:
    """Read the closest configuration file in the current folder and its parents.

    Raises `UsageError` if it is invalid, and `ReadError`.
    """
    for path, table in _configurations():
        return _configuration(path, table)
    return ConfigurationFile(None, {}, {})


def ignored_configurations() -> list[Path]:
    """Return further configuration files, which are ignored because of the closest one."""
    return [path for path, _ in _configurations()][1:]


def _configurations() -> Iterator[tuple[Path, object]]:
    """Yield the configuration files with their tables, the closest one first."""
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
                    yield path, table


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

    from cudaredist.formats.settings import Configuration

    try:
        configuration = Configuration.model_validate(table)
    except ValidationError as error:
        raise _wrong_settings(path, error) from None
    values = configuration.model_dump(exclude_unset=True)
    for name in ("data_dir", "cache_dir"):
        if name in values:
            values[name] = str(path.parent / values[name])
    if "base_url" in values:
        values["base_url"] = [
            address if "://" in address else str(path.parent / address)
            for address in values["base_url"]
        ]
    for name in ("sets", "sets_folder", "alias_fallback"):
        values.pop(name, None)
    sets = DeclaredSets(
        path,
        path.parent / configuration.sets_folder,
        tuple(configuration.sets),
        alias_fallback=configuration.alias_fallback,
    )
    return ConfigurationFile(path, values, values.pop("audit", {}), sets)


def _wrong_settings(path: Path, error: "ValidationError") -> UsageError:
    """Return the error of a configuration with wrong settings, with the line of sets."""
    from cudaredist.formats.registry import plain_message, validation_problems
    from cudaredist.formats.settings import (
        AuditSettings,
        Configuration,
        DeclaredSet,
        IgnoredFinding,
    )

    for problem in error.errors(include_url=False):
        *parents, name = map(str, problem["loc"] or ("",))
        place = str(path)
        # A set that is not a table has no keys.
        is_in_set = len(parents) > 1 and parents[0] == "sets"
        if is_in_set:
            place = place_in_sets(path, int(parents[1]), name)
        if problem["type"] == "extra_forbidden":
            model: type[BaseModel] = Configuration
            if is_in_set:
                model = DeclaredSet
            elif parents == ["audit"]:
                model = AuditSettings
            elif parents:
                model = IgnoredFinding
            known = [field.alias or "" for field in model.model_fields.values()]
            return UnknownNameError(f"setting of {place}", name, known)
        if problem["type"] == "literal_error":
            known = re.findall(r"'(.*?)'", problem["ctx"]["expected"])
            return UnknownNameError(f"{name} of {place}", str(problem["input"]), known)
        if is_in_set:
            hint = "run `cudaredist schema configuration` for all settings"
            return UsageError(f"{place}: {name}: {plain_message(problem)}", hint=hint)
    problems = "; ".join(map(str, validation_problems(error)))
    hint = "run `cudaredist schema configuration` for all settings"
    return UsageError(f"{path}: {problems}", hint=hint)


def place_in_sets(path: Path, number: int, key: str = "") -> str:
    """Return a configuration file and the line of a key in its `[[sets]]`, counted from 0.

    Without such a key, the line is that of the table. If the sets are in another form, such as an
    array of inline tables, it is only the file.
    """
    is_key = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=").match
    place = str(path)
    current = -1
    for line, text in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        if _begins_set(text):
            current += 1
            if current == number:
                place = f"{path}:{line}"
        elif current == number and key and is_key(text):
            return f"{path}:{line}"
    return place
