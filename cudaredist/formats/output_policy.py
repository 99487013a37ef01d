"""Model of the policy of outputs."""

from collections.abc import Iterator
from itertools import chain
from typing import Literal

from pydantic import Field

from cudaredist.formats.base import Reasoned, optional
from cudaredist.formats.field_types import InnerFolder, InnerPath
from cudaredist.formats.names import OutputName
from cudaredist.formats.set_policy import Bounds, SetPolicy


class Collapse(Reasoned):
    """A package with all files in one output."""


class Propagation(Reasoned):
    """Outputs that a package's `dev` propagates, in addition to bin, include and lib."""

    outputs: tuple[OutputName, ...]


class Normalisation(Reasoned):
    """A change of a package's tree before the split into outputs."""

    package: str
    versions: Bounds = Field(default=Bounds(), description="Versions of the package")
    op: Literal["lift", "rename", "drop", "symlink"]
    source: InnerPath = Field(alias="from")
    to: InnerFolder | None = None
    split_only: bool = optional(
        "Only for separate packages. In a merged tree, nvcc finds its parts itself", default=False
    )


class OutputPolicy(SetPolicy):
    """`policy/outputs.json`: unsplit packages, propagated outputs, tree changes."""

    collapse: dict[str, Collapse]
    propagates: dict[str, Propagation]
    normalise: tuple[Normalisation, ...]

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        yield from chain(self.collapse, self.propagates)
        yield from (entry.package for entry in self.normalise)
