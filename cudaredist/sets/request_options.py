"""The options of a command that select sets, packages and their contents, for hints."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """The options that change a request. The defaults are the names of its fields."""

    system: str = "system"
    gpu: str = "capabilities"
    forward_compat: str = "forward_compat"
    available_gcc: str = "available_gcc"
    redist: str = "pins"
    also: str = "also"
    allow: str = "allow"
    allow_missing_features: str = "allow_missing_features"
    allow_hollow: str = "allow_hollow"


class PairOptions(NamedTuple):
    """The arguments that select the host and the target of a pair."""

    host: str
    target: str


class ComponentOptions(NamedTuple):
    """The options that select and exclude packages of a set."""

    component: str
    exclude: str
