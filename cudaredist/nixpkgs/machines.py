"""The machines for which nixpkgs selects releases."""

from collections.abc import Iterable

from cudaredist.tables.gpus.capability import Capability

X86, SERVER_ARM = "linux-x86_64", "linux-sbsa"
ORIN, THOR = "jetson-orin", "jetson-thor"
MACHINES = (X86, SERVER_ARM, ORIN, THOR)
JETSON_PLATFORM = "linux-aarch64"
JETSONS = {"7.2": ORIN, "8.7": ORIN, "10.1": THOR, "11.0": THOR}
"""Machines of the capabilities of Jetsons. nixpkgs has the same releases for Xavier and Orin."""
_SIMILAR = {
    X86: (SERVER_ARM, THOR, ORIN),
    SERVER_ARM: (X86, THOR, ORIN),
    ORIN: (THOR, SERVER_ARM, X86),
    THOR: (SERVER_ARM, ORIN, X86),
}
_SIMILAR_TO_THOR_BEFORE_CUDA_13 = (ORIN, SERVER_ARM, X86)
_FIRST_WITH_THOR = "cudaPackages_13"


def machines_of(platform: str, requested: Iterable[str]) -> tuple[str, ...]:
    """Return the machines of a platform with the requested capabilities."""
    if platform == X86:
        return (X86,)
    if platform == JETSON_PLATFORM:
        return (ORIN,)
    if platform != SERVER_ARM:
        return ()
    bases = [str(Capability.parse(name).base) for name in requested]
    machines = {JETSONS.get(base, SERVER_ARM) for base in bases} or {SERVER_ARM}
    return tuple(machine for machine in MACHINES if machine in machines)


def similar_machines(machine: str, attribute: str) -> tuple[str, ...]:
    """Return the other machines in a package set, the most similar one first."""
    if machine == THOR and attribute < _FIRST_WITH_THOR:
        return _SIMILAR_TO_THOR_BEFORE_CUDA_13
    return _SIMILAR[machine]
