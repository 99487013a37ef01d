"""Accepted versions of each host compiler, found by evaluating a header.

A header recognizes a compiler by its macros. It is evaluated once for each version in a sensible
range, and the versions without an `#error` are accepted. The text of an `#error` does not count,
because NVIDIA forgets to update it. If the text disagrees, a note is added.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.formats.tables import CompilerAnswer, CompilerRange, CompilerVerdict
from cudaredist.tables.nvcc.preprocessor import Header, Outcome, reject

Compiler: TypeAlias = Literal[
    "gcc", "clang", "msvc", "grace-clang", "horizon-clang", "icc", "icx", "nvhpc"
]

_EVERY = {"__CUDACC__": 1, "__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__": 1, "__cplusplus": 201703}
_LINUX = _EVERY | {"__linux__": 1, "__LP64__": 1, "__x86_64__": 1}
_WINDOWS = _EVERY | {"_WIN32": 1, "_WIN64": 1}

# On Linux, Clang defines __GNUC__ as 4 in all versions.
_GCC_OF_CLANG = 4
_MAJORS = range(1, 100)
# Intel's versions are hundreds up to 19.0, then 19.1, then years.
_ICC_VERSIONS = (*range(1000, 1901, 100), 1910, *range(2021, 2031))
_ICX_YEARS = range(2021, 2036)

VISUAL_STUDIO = MappingProxyType(
    {1900: "2015", 1910: "2017", 1920: "2019", 1930: "2022", 1950: "2026"}
)
"""The first `_MSC_VER` of each Visual Studio. 2022 uses two ranges of ten."""


class Simulation(NamedTuple):
    """The macros that simulate one compiler."""

    own: str
    """The macro by which a header recognizes the compiler."""
    versions: Sequence[int]
    others: Callable[[int, int, int], dict[str, int]]
    """Returns the other macros for a version, given accepted versions of GCC and Clang."""
    value: Callable[[int], int] = int
    """Returns the value of the compiler's own macro for a version."""
    unit: Literal["major", "_MSC_VER", "version"] = "major"

    def macros(self, version: int, gcc: int, clang: int) -> dict[str, int]:
        """Return the macros of a version, given accepted versions of GCC and Clang."""
        return self.others(version, gcc, clang) | {self.own: self.value(version)}


def _with_gcc(_version: int, gcc: int, _clang: int) -> dict[str, int]:
    return _LINUX | {"__GNUC__": gcc}


def _with_clang(_version: int, _gcc: int, clang: int) -> dict[str, int]:
    return _macros_of_clang(clang)


def _as_clang(version: int, _gcc: int, _clang: int) -> dict[str, int]:
    return _macros_of_clang(version)


def _on_windows(_version: int, _gcc: int, _clang: int) -> dict[str, int]:
    return _WINDOWS


def _macros_of_clang(version: int) -> dict[str, int]:
    # Headers check minors only up to 3.3, so minor 9 passes for every major.
    named = {"__clang__": 1, "__clang_major__": version, "__clang_minor__": 9}
    return _LINUX | {"__GNUC__": _GCC_OF_CLANG} | named


COMPILERS: Mapping[Compiler, Simulation] = MappingProxyType(
    {
        "gcc": Simulation("__GNUC__", _MAJORS, _with_gcc),
        "clang": Simulation("__clang_major__", _MAJORS, _as_clang),
        "msvc": Simulation("_MSC_VER", range(1500, 2101), _on_windows, unit="_MSC_VER"),
        "grace-clang": Simulation(
            "__GRCO_CLANG_COMPILER__", _MAJORS, _as_clang, value=lambda _version: 1
        ),
        "horizon-clang": Simulation("__HORIZON__", _MAJORS, _as_clang, value=lambda _version: 1),
        "icc": Simulation("__ICC", _ICC_VERSIONS, _with_gcc, unit="version"),
        "icx": Simulation(
            "__INTEL_CLANG_COMPILER", _ICX_YEARS, _with_clang, value=lambda year: year * 10000
        ),
        "nvhpc": Simulation("__PGIC__", range(10, 60), _with_gcc),
    }
)
"""All simulated compilers. A compiler follows those that its macros depend on."""

_MUST_BE_RANGES = ("gcc", "clang", "msvc")


def read_header(data: bytes) -> dict[str, CompilerAnswer]:
    """Return the versions that a `crt/host_config.h` accepts, by compiler.

    The result for GCC, Clang and Visual C++ is always a range. Other compilers may be refused or
    unchecked. If the text of an `#error` is stale, the range has a note. Raises `InvalidFileError`,
    with the line if known, if the header cannot be understood or does not check those three.
    """
    header = Header(data)
    answers: dict[str, CompilerAnswer] = {}
    for compiler, simulation in COMPILERS.items():
        gcc, clang = _newest_of("gcc", answers), _newest_of("clang", answers)
        answer = _evaluate(header, compiler, simulation, gcc=gcc, clang=clang)
        answers[compiler] = answer
        if compiler in _MUST_BE_RANGES and not isinstance(answer, CompilerRange):
            reject(None, f"{compiler} is {answer.status}: the header does not check it")
    return answers


def _newest_of(compiler: str, answers: Mapping[str, CompilerAnswer]) -> int:
    """Return the newest accepted version of a compiler, 0 if none is known."""
    answer = answers.get(compiler)
    if isinstance(answer, CompilerRange) and answer.max is not None:
        return answer.max
    return 0


def _evaluate(
    header: Header, compiler: str, simulation: Simulation, *, gcc: int, clang: int
) -> CompilerAnswer:
    outcomes = {
        version: header.run(simulation.macros(version, gcc, clang))
        for version in simulation.versions
    }
    accepted = [version for version, outcome in outcomes.items() if not outcome.errors]
    if not any(simulation.own in outcome.tested for outcome in outcomes.values()):
        note = f"the header does not test {simulation.own}, so another compiler's check applies"
        return CompilerVerdict(status="unchecked", note=note)
    if not accepted:
        return CompilerVerdict(status="refused")
    if len(accepted) == len(outcomes):
        return CompilerVerdict(status="unchecked")
    bottom, top = accepted[0], accepted[-1]
    _check_is_one_span(compiler, bottom, top, outcomes)
    lowest = None if bottom == simulation.versions[0] else bottom
    names_minor = compiler == "clang" and lowest is not None
    return CompilerRange(
        status="range",
        min=lowest,
        max=top,
        min_basis=None if lowest is None else "derived",
        max_basis="derived",
        unit=simulation.unit,
        header_min=_with_minor(header, simulation, bottom) if names_minor else None,
        years=_years(bottom, top) if compiler == "msvc" else None,
        note=_stale_text(compiler, bottom, top, outcomes),
    )


def _check_is_one_span(
    compiler: str, bottom: int, top: int, outcomes: Mapping[int, Outcome]
) -> None:
    if top == max(outcomes):
        reject(None, f"{compiler} {top} is accepted, so there is no upper bound")
    for version, outcome in outcomes.items():
        if bottom < version < top and outcome.errors:
            line = outcome.errors[0].line
            reject(line, f"refuses {compiler} {version} between accepted versions")


def _with_minor(header: Header, simulation: Simulation, major: int) -> str:
    """Return the oldest accepted version of Clang with its minor number."""
    macros = simulation.macros(major, 0, 0)
    accepted = (
        minor for minor in range(9) if not header.run(macros | {"__clang_minor__": minor}).errors
    )
    return f"{major}.{next(accepted, 9)}"


def visual_studio(msc_ver: int) -> str | None:
    """Return the year of Visual Studio for a `_MSC_VER`, or None."""
    years = [year for first, year in VISUAL_STUDIO.items() if first <= msc_ver]
    return years[-1] if years else None


def _years(bottom: int, top: int) -> dict[str, str]:
    inner = (first for first in VISUAL_STUDIO if bottom <= first <= top)
    years = {version: visual_studio(version) for version in sorted({bottom, *inner, top})}
    return {str(version): year for version, year in years.items() if year is not None}


_LESS_THAN = re.compile(r"\bless than (\d{1,9})\b")
_ERROR_TEXTS: Mapping[str, re.Pattern[str]] = {
    "gcc": re.compile(r"\blater than (\d{1,9}) are not supported"),
    "clang": _LESS_THAN,
    "horizon-clang": _LESS_THAN,
    "grace-clang": re.compile(r"\bmust be (\d{1,9})\.x(?: to (\d{1,9})\.x)?"),
    "msvc": re.compile(r"\bbetween (\d{4}) and (\d{4}) \(inclusive\)"),
}
"""Patterns of error texts that state bounds. For other compilers, the texts vary too much."""


def _right_numbers(compiler: str, bottom: int, top: int) -> tuple[int, ...]:
    """Return the numbers of a correct error text for a range."""
    if compiler == "gcc":
        return (top,)
    if compiler in {"clang", "horizon-clang"}:
        return (top + 1,)
    if compiler == "msvc":
        return int(visual_studio(bottom) or 0), int(visual_studio(top) or 0)
    return bottom, top


def _stale_text(
    compiler: str, bottom: int, top: int, outcomes: Mapping[int, Outcome]
) -> str | None:
    """Return a note if the errors for the nearest versions outside the range state another one."""
    if compiler not in _ERROR_TEXTS:
        return None
    right = _right_numbers(compiler, bottom, top)
    below = [version for version in outcomes if version < bottom]
    above = [version for version in outcomes if version > top]
    for version in (*below[-1:], *above[:1]):
        for error in outcomes[version].errors:
            match = _ERROR_TEXTS[compiler].search(error.text)
            if match is None:
                continue
            # "must be 7.x" states one version as both bounds.
            stated = tuple(int(number or match[1]) for number in match.groups())
            if stated != right:
                claim = f'the text of #error is "{match[0]}"'
                span = f"{bottom} to {top}" if bottom > _MAJORS[0] else f"up to {top}"
                return f"line {error.line}: {claim}, but its #if accepts {span}"
    return None
