"""The report of schema without NAME, and the models of all reports."""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Literal, get_args

from cudaredist import commands
from cudaredist.cli.text import columns
from cudaredist.formats.base import OwnModel
from cudaredist.formats.plain_report import PlainAnswer
from cudaredist.formats.report import Answer, ErrorAnswer
from cudaredist.programs import report as audit_report
from cudaredist.source_code import report as source_report

_PARTS = {"explain": ("report", "package_report", "set_report", "api_report")}
"""The modules with reports of commands that have several."""


class ListedSchema(OwnModel):
    """A JSON Schema in the list of `schema`."""

    name: str
    summary: str


class SchemaReport(Answer):
    """The result of schema without NAME."""

    command: Literal["schema"] = "schema"
    schemas: tuple[ListedSchema, ...]


@cache
def report_models() -> dict[str, tuple[type[Answer | PlainAnswer], ...]]:
    """Map `report-error`, and `report-NAME` of each command, to the report's models."""
    models: dict[str, tuple[type[Answer | PlainAnswer], ...]] = {"report-error": (ErrorAnswer,)}
    for name in _modules():
        module = importlib.import_module(name)
        for model in vars(module).values():
            if isinstance(model, type) and model.__module__ == module.__name__:
                for command in _commands_of(model):
                    schema = f"report-{command.split()[0]}"
                    models[schema] = (*models.get(schema, ()), model)
    return models


def _modules() -> Iterator[str]:
    """Yield the modules with the models of reports. Those of audit are in a lower layer."""
    for folder in pkgutil.iter_modules(commands.__path__):
        if folder.name != "audit":
            for part in _PARTS.get(folder.name, ("report",)):
                yield f"{commands.__name__}.{folder.name}.{part}"
    yield audit_report.__name__
    yield source_report.__name__


def _commands_of(model: type) -> tuple[str, ...]:
    """Return the commands that a model reports on."""
    if issubclass(model, Answer):
        return get_args(model.model_fields["command"].annotation)
    if issubclass(model, PlainAnswer):
        return get_args(next(one.type for one in fields(model) if one.name == "command"))
    return ()


def report_summaries() -> dict[str, str]:
    """Map the schema names of reports to summaries."""
    return {
        name: (models[0].__doc__ or "").splitlines()[0] for name, models in report_models().items()
    }


def schemas_text(report: SchemaReport) -> Iterator[str]:
    """Yield the schemas with their summaries."""
    yield from columns([(schema.name, schema.summary) for schema in report.schemas])
