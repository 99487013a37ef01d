"""Base classes of the reports of lookups: dataclasses, which take little time to create.

A lookup needs few milliseconds for its query, and a model of pydantic takes as long to create. So
its report is a dataclass with the same fields. Values are not validated: mypy checks them, and the
tests compare each report with its JSON Schema. The schema is made with pydantic, as for models, so
that descriptions are in `Annotated`.
"""

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar, dataclass_transform

from pydantic import ConfigDict

from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import ArchiveId, Version

_Entry = TypeVar("_Entry", bound="PlainEntry")
Parts: TypeAlias = "Mapping[type[PlainEntry], Mapping[str, type[PlainEntry]]]"
"""The fields of reports that have parts, and the types of these."""


def _describe(schema: dict[str, Any], entry: type) -> None:
    """Add the docstring of a dataclass to its schema, as for models."""
    schema["description"] = inspect.cleandoc(entry.__doc__ or "")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class PlainEntry:
    """Base class of the parts of a report.

    Subclasses are dataclasses that share these methods: to generate them for each class takes as
    long as a query.
    """

    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", strict=True, json_schema_extra=_describe
    )
    """Only for the JSON Schema, and for models with such a part."""
    _defaults: ClassVar[dict[str, Any]]
    """The fields in order. Those without a default have `MISSING`."""
    optional: ClassVar[frozenset[str]]
    """The fields that JSON omits if they are empty: those with `exclude_if`."""

    def __init_subclass__(cls) -> None:
        dataclass(init=False, eq=False, repr=False)(cls)
        cls._defaults = {
            one.name: one.default if one.default_factory is MISSING else one.default_factory()
            for one in fields(cls)  # type: ignore[arg-type]  # mypy knows no fields of a transform
        }
        cls.optional = frozenset(
            one.name
            for one in fields(cls)  # type: ignore[arg-type]  # as above
            for about in getattr(one.type, "__metadata__", ())
            if getattr(about, "exclude_if", None) is not None
        )

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - the fields' types
        """Set the fields. Raises `TypeError` for a missing or an unknown field."""
        state = self._defaults | values
        if len(state) > len(self._defaults) or MISSING in state.values():
            raise TypeError(f"{sorted(values)} are not the fields of {type(self).__name__}")
        vars(self).update(state)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    def changed(self, **values: Any) -> Self:  # noqa: ANN401 - the fields' types
        """Return a copy with other values of some fields."""
        return type(self)(**(vars(self) | values))


class PlainAnswer(PlainEntry):
    """The result of a command."""

    schema_version: Literal[1] = 1
    command: str


class PlainReport(PlainAnswer):
    """The result of a command, with its exit code."""

    exit_code: int


class PlainArchive(PlainEntry):
    """Base class of report entries about one archive."""

    redist: str
    release: str
    package: str
    version: str
    platform: str
    variant: str | None

    @property
    def id(self) -> ArchiveId:
        """The archive's key in the release."""
        return ArchiveId(self.package, self.platform, self.variant)

    @classmethod
    def of(cls, redist: str, label: Version, archive: Archive, **more: Any) -> Self:  # noqa: ANN401 - the fields of the subclass
        """Return a report on an archive, with additional fields."""
        return cls(
            redist=redist,
            release=str(label),
            package=archive.package,
            version=str(archive.version),
            platform=archive.platform,
            variant=archive.variant,
            **more,
        )


def as_json(value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a report or a part of it as JSON values."""
    if isinstance(value, PlainEntry):
        parts = vars(value).items()
        return {name: as_json(part) for name, part in parts if part or name not in value.optional}
    if isinstance(value, dict):
        return {name: as_json(part) for name, part in value.items()}
    return [*map(as_json, value)] if isinstance(value, tuple) else value


def from_json(kind: type[_Entry], values: Mapping[str, Any], parts: Parts) -> _Entry:
    """Return a report or a part of it from the values that `as_json` returned."""
    of_kind = parts.get(kind, {})

    def parsed(value: Any, part: type[PlainEntry] | None) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, list):
            return tuple(parsed(one, part) for one in value)
        return value if value is None or part is None else from_json(part, value, parts)

    return kind(**{name: parsed(value, of_kind.get(name)) for name, value in values.items()})
