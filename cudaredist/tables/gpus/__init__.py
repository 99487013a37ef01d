"""Compute capabilities: which CUDA releases know them, from `ptxas`, and what policy adds."""

from cudaredist.errors import UnknownNameError
from cudaredist.primitives import Version, parse_label
from cudaredist.schema import CapabilityEntry, Gpus
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import (
    GpuFinding,
    KnownGpus,
    fact_of,
    is_between,
    known_of_table,
    make_table,
)
from cudaredist.tables.gpus.ptxas import PtxasScan, read_ptxas

__all__ = [
    "PTXAS_PATHS",
    "Capability",
    "GpuFinding",
    "KnownGpus",
    "PtxasScan",
    "default_capabilities",
    "find_capability",
    "is_supported",
    "known_of_table",
    "make_table",
    "read_ptxas",
    "runs_on",
    "supported_capabilities",
]

PTXAS_PATHS = ("bin/ptxas", "bin/ptxas.exe")
"""How the path of the program ends, on Linux and on Windows."""


def find_capability(name: str, gpus: Gpus) -> CapabilityEntry:
    """Return a capability's entry; `UnknownNameError`, which suggests the nearest, if none."""
    try:
        return gpus.capabilities[name]
    except KeyError:
        raise UnknownNameError("compute capability", name, gpus.capabilities) from None


def runs_on(name: str, cuda_minor: str, gpus: Gpus) -> tuple[str, ...]:
    """Return the plain capabilities of one CUDA release that take a target's PTX.

    Families grow: `10.0f` reaches 10.7 only in releases that know 10.7.
    """
    _check_is_known(cuda_minor, gpus)
    entry = find_capability(name, gpus)
    takers = {taker: gpus.capabilities.get(taker) for taker in entry.runs_on}
    return tuple(
        taker
        for taker, known in takers.items()
        if known is not None and is_between(cuda_minor, known.first_cuda, known.last_cuda)
    )


def is_supported(entry: CapabilityEntry, cuda_minor: str) -> bool:
    """Say whether a CUDA release supports a capability, by its `ptxas` and by policy as well."""
    end_by_policy = fact_of(entry.policy, "last_cuda")
    return is_between(cuda_minor, entry.first_cuda, entry.last_cuda) and (
        end_by_policy is None or Version.parse(cuda_minor) <= Version.parse(end_by_policy)
    )


def supported_capabilities(cuda_minor: str, gpus: Gpus) -> tuple[str, ...]:
    """Return what a CUDA release supports, sorted; `UnknownNameError` for one beyond the table."""
    _check_is_known(cuda_minor, gpus)
    supported = (
        name for name, entry in gpus.capabilities.items() if is_supported(entry, cuda_minor)
    )
    return tuple(sorted(supported, key=Capability.parse))


def default_capabilities(cuda_minor: str, gpus: Gpus) -> tuple[str, ...]:
    """Return what a CUDA release is built for when nothing else is asked for.

    That is every supported capability without a letter that is no Jetson's and that policy has not
    taken from the defaults.
    """
    names = supported_capabilities(cuda_minor, gpus)
    entries = {name: gpus.capabilities[name] for name in names}
    return tuple(
        name
        for name, entry in entries.items()
        if entry.variant is None
        and not entry.jetson
        and is_between(cuda_minor, entry.first_cuda, entry.dont_default_after)
    )


def _check_is_known(cuda_minor: str, gpus: Gpus) -> None:
    minors = sorted({parse_label(label).line for label in gpus.sources}, key=Version.parse)
    try:
        is_known = bool(minors) and Version.parse(cuda_minor) <= Version.parse(minors[-1])
    except ValueError:
        is_known = False
    if not is_known:
        raise UnknownNameError("CUDA release of the table", cuda_minor, minors)
