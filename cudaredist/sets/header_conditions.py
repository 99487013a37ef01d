"""Conditions of includes: whether a compiler of a platform reads the included header.

An include counts if its condition is true for a C++ compiler of the platform or for nvcc when the
user defines no macro. All other includes are optional. Lookups import no models.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from cudaredist.primitives import Platform
from cudaredist.tables.nvcc.expressions import ExpressionError, evaluate, tokenize

ROOTS = ("include/", "include/cccl/")
"""Folders that nvcc searches for headers, from nvcc.profile. CUDA 13 has the second one."""

_OF_SYSTEM = {
    "linux": {"__linux__": "1", "__GNUC__": "13", "__unix__": "1"},
    "windows": {"_WIN32": "1", "_WIN64": "1", "_MSC_VER": "1940"},
}
"""Macros that the C++ compilers of a system define."""
_OF_MACHINE = {
    ("linux", "x86_64"): {"__x86_64__": "1"},
    ("linux", "aarch64"): {"__aarch64__": "1"},
    ("linux", "ppc64le"): {"__powerpc64__": "1", "__PPC64__": "1"},
    ("windows", "x86_64"): {"_M_X64": "100", "_M_AMD64": "100"},
    ("windows", "aarch64"): {"_M_ARM64": "1"},
}
"""Further macros by system and machine."""
_OF_NVCC = {"__CUDACC__": "1", "__NVCC__": "1"}
_DEFINED = "defined"


@lru_cache(maxsize=4096)
def holds(condition: str, platform: Platform) -> bool:
    """Check if a condition is true for any compiler.

    The compilers are the platform's C++ compiler and nvcc, of each system if the platform has none.
    """
    return not condition or any(_is_true(condition, macros) for macros in _macros(platform))


def _macros(platform: Platform) -> Iterator[Mapping[str, str]]:
    """Yield the macros of the platform's host compilers, and those of nvcc."""
    for system, macros in _OF_SYSTEM.items():
        if platform.os in {system, "any"}:
            of_machine = _OF_MACHINE.get((system, platform.machine or ""), {})
            host = {"__cplusplus": "202002", **macros, **of_machine}
            yield host
            yield host | _OF_NVCC


def _is_true(condition: str, macros: Mapping[str, str]) -> bool:
    tokens: list[str] = []
    try:
        for token in tokenize(condition):
            is_operand = tokens[-1:] == [_DEFINED] or tokens[-2:] == [_DEFINED, "("]
            tokens.append(token if is_operand else macros.get(token, token))
        return evaluate(tuple(tokens), macros.__contains__) != 0
    except ExpressionError:
        # The condition calls `__has_include` or another function, or it was cut.
        return False
