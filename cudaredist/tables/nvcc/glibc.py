"""Newest glibc that nvcc compiles with, from `crt/math_functions.h`.

glibc declares functions of C23 that CUDA had before, all with `__THROW`. If CUDA's declaration of
such a function has no exception specification, every file that nvcc compiles is an error. The
header is evaluated once for each glibc, because newer headers test its version.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from cudaredist.formats.tables import GlibcPolicy
from cudaredist.tables.nvcc.preprocessor import Header, reject

MATH_HEADER_PATH = "include/crt/math_functions.h"
"""End of the header's path. `include/math_functions.h` of another package only includes it."""

# Ten times the size of the largest real header.
_SIZE_LIMIT = 4 << 20
_FIRST_WITH_ISOC23 = 38
# Macros with parameters, which the preprocessor does not interpret.
_version_test = re.compile(rb"__(GNUC|GLIBC)_PREREQ\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_WITHOUT_EXCEPTIONS = ("__THROW", "noexcept", "noexcept ( true )", "throw ( )")


class NewestGlibc(NamedTuple):
    """The newest glibc that a header compiles with."""

    version: str
    functions: tuple[str, ...]
    """Functions that clash in the next glibc. Empty: no known glibc clashes."""


def newest_glibc(data: bytes, policy: GlibcPolicy) -> NewestGlibc | None:
    """Return the newest glibc that a `crt/math_functions.h` compiles with.

    The result is None if the header declares none of the functions. Raises `InvalidFileError`,
    with the line if known, if the header cannot be understood.
    """
    tests = rb"(__\1__ > \2 || __\1__ == \2 && __\1_MINOR__ >= \3)"
    header = Header(_version_test.sub(tests, data), size_limit=_SIZE_LIMIT)
    is_declared = False
    functions: set[str] = set()
    first = min(map(_minor, policy.functions))
    for minor in range(first, _minor(policy.newest) + 1):
        new = policy.functions.get(f"2.{minor}", ())
        functions |= {name + suffix for name in new for suffix in ("", "f")}
        declared = _without_exceptions(header, minor, functions)
        is_declared |= bool(declared)
        clashes = sorted(name for name, is_same in declared.items() if not is_same)
        if clashes:
            return NewestGlibc(f"2.{minor - 1}", tuple(clashes))
    return NewestGlibc(policy.newest, ()) if is_declared else None


def _minor(version: str) -> int:
    return int(version.removeprefix("2."))


def _without_exceptions(
    header: Header, minor: int, functions: AbstractSet[str]
) -> Mapping[str, bool]:
    """Return which of the functions that a header declares never throw."""
    macros = {
        "__CUDACC__": 1,
        "__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__": 1,
        "__cplusplus": 201703,
        "__linux__": 1,
        "__LP64__": 1,
        "__x86_64__": 1,
        "__GNUC__": 14,
        "__GNUC_MINOR__": 0,
        "__GLIBC__": 2,
        "__GLIBC_MINOR__": minor,
    }
    # g++ and Clang define _GNU_SOURCE for C++, and with it glibc defines this macro.
    if minor >= _FIRST_WITH_ISOC23:
        macros["__GLIBC_USE_ISOC23"] = 1
    declared: dict[str, bool] = {}
    for line, name, suffix in header.run(macros).declarations:
        if name not in functions:
            continue
        if suffix and suffix not in _WITHOUT_EXCEPTIONS:
            reject(line, f"unknown exception specification {suffix[:60]!a}")
        declared[name] = bool(suffix)
    return declared
