"""Explanations of compilers, GPUs and CUDA releases: facts with sources.

If documentation or policy differs from NVIDIA's files, both are included.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from cudaredist.formats.plain_report import PlainEntry

FactValue: TypeAlias = str | int | bool | tuple[str, ...] | None
FactBasis: TypeAlias = Literal["derived", "documented", "policy", "computed"]


class Claim(PlainEntry):
    """A different value from another source."""

    value: FactValue
    source: str
    reason: str | None = None


class Fact(PlainEntry):
    """One fact with its source."""

    name: Annotated[str, Field(description="Name of the fact, such as gcc.max or last_cuda")]
    statement: Annotated[str, Field(description="The fact in words")]
    value: FactValue
    basis: FactBasis
    source: str
    file_sha256: Annotated[str | None, Field(description="Hash of the source file")] = None
    release: Annotated[str | None, Field(description="CUDA release whose entry has the fact")] = (
        None
    )
    layer: Annotated[
        Literal["local", "shipped"] | None,
        Field(description="Layer of that entry: the data folder, or the shipped data"),
    ] = None
    reason: str | None = None
    otherwise: tuple[Claim, ...] = ()


class Topic(PlainEntry):
    """All facts on one subject."""

    title: str
    facts: tuple[Fact, ...]


class Origin(NamedTuple):
    """The source of facts."""

    basis: FactBasis
    source: str
    file_sha256: str | None = None
    release: str | None = None


def make_fact(
    name: str,
    statement: str,
    value: FactValue,
    origin: Origin,
    reason: str | None = None,
    otherwise: Iterable[Claim] = (),
) -> Fact:
    """Return a fact. If the value is a list of names, the statement ends with them."""
    if isinstance(value, tuple):
        statement = f"{statement}: {', '.join(value) or 'none'}"
    about = origin._asdict() | {"reason": reason, "otherwise": tuple(otherwise)}
    return Fact(name=name, statement=statement, value=value, **about)


def with_layers(topic: Topic, layers: Mapping[str, Literal["local", "shipped"]]) -> Topic:
    """Add the layer of its release to each fact of a topic."""
    facts = (fact.changed(layer=layers.get(fact.release or "")) for fact in topic.facts)
    return topic.changed(facts=tuple(facts))
