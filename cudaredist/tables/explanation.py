"""Explanations of compilers, GPUs and CUDA releases: facts with sources.

If documentation or policy differs from NVIDIA's files, both are included.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.schema.base import OwnModel

FactValue: TypeAlias = str | int | bool | tuple[str, ...] | None
FactBasis: TypeAlias = Literal["derived", "documented", "policy", "computed"]


class Claim(OwnModel):
    """A different value from another source."""

    value: FactValue
    source: str
    reason: str | None = None


class Fact(OwnModel):
    """One fact with its source."""

    name: str = Field(description="Name of the fact, such as gcc.max or last_cuda")
    statement: str = Field(description="The fact in words")
    value: FactValue
    basis: FactBasis
    source: str
    file_sha256: str | None = Field(default=None, description="Hash of the source file")
    release: str | None = Field(default=None, description="CUDA release whose entry has the fact")
    layer: Literal["local", "shipped"] | None = Field(
        default=None, description="Layer of that entry: the data folder, or the shipped data"
    )
    reason: str | None = None
    otherwise: tuple[Claim, ...] = ()


class Topic(OwnModel):
    """All facts on one subject."""

    title: str
    facts: tuple[Fact, ...]


def list_fact(
    name: str,
    words: str,
    value: tuple[str, ...],
    basis: FactBasis,
    source: str,
    otherwise: Iterable[Claim] = (),
) -> Fact:
    """Return a fact with a list of names as its value."""
    return Fact(
        name=name,
        statement=f"{words}: {', '.join(value) or 'none'}",
        value=value,
        basis=basis,
        source=source,
        otherwise=tuple(otherwise),
    )
