"""Base class of the policies of package sets, and ranges of versions."""

from collections.abc import Iterator
from functools import cached_property

from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.field_types import VersionText


class SetPolicy(OwnFile):
    """Base class of the policies of package sets."""

    @cached_property
    def entries(self) -> tuple[tuple[str, OwnModel], ...]:
        """The policy and the models in it, with their paths from the policy.

        Each content of a policy is read once, and its models are listed once.
        """
        return tuple(_models(self, ""))

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        yield from ()

    @cached_property
    def platform_names(self) -> tuple[tuple[str, str], ...]:
        """The platforms of the policy's entries, with their paths from the policy."""
        platforms = ((path, getattr(entry, "platform", None)) for path, entry in self.entries)
        return tuple(
            (f"{path}.platform", platform)
            for path, platform in platforms
            if isinstance(platform, str)
        )


def _models(value: object, path: str) -> Iterator[tuple[str, OwnModel]]:
    """Yield a model and its nested models, with their paths."""
    if isinstance(value, OwnModel):
        yield path, value
        for name in type(value).model_fields:
            yield from _models(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from _models(entry, f"{path}.{name}")
    elif isinstance(value, tuple):
        for number, entry in enumerate(value):
            yield from _models(entry, f"{path}[{number}]")


class Bounds(OwnModel):
    """An inclusive range of versions. As a bound, `12.9` includes all 12.9.x."""

    min: VersionText | None = optional("Absent: no lower bound")
    max: VersionText | None = optional("Absent: no upper bound")
