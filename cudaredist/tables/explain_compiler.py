"""Explain a version of a host compiler: the CUDA releases that accept it."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.errors import UsageError
from cudaredist.formats.tables import CompilerAnswer, CompilerRange, NvccCompat, span
from cudaredist.hints import correction_line
from cudaredist.primitives import Version, parse_label
from cudaredist.tables.explain_nvcc import COMPILER_NAMES
from cudaredist.tables.explanation import Origin, Topic, make_fact
from cudaredist.tables.nvcc.compilers import VISUAL_STUDIO
from cudaredist.tables.release_spans import release_spans
from cudaredist.words import shown

_Verdict: TypeAlias = Literal["accept", "partly", "unchecked", "refuse", "unknown"]

_VERDICTS: Mapping[_Verdict, str] = {
    "accept": "accepted by",
    "partly": "accepted, but not in all of its versions, by",
    "unchecked": "not checked by",
    "refuse": "refused by",
    "unknown": "not known to",
}
_SPELLINGS = {
    **{name: name for name in COMPILER_NAMES},
    "g++": "gcc",
    "clang++": "clang",
    "cl": "msvc",
    "visual c++": "msvc",
    "visual studio": "msvc",
    "vs": "msvc",
    "nvc++": "nvhpc",
}
"""Compilers by their usual names."""
_names = "|".join(map(re.escape, sorted(_SPELLINGS, key=len, reverse=True)))
_compiler = re.compile(
    rf"({_names})(?:[ -]?v?([0-9]{{1,4}})(?:\.([0-9]{{1,4}}))?[0-9.]*)?"
).fullmatch

_FIRST_YEAR, _FIRST_MSC_VER, _MSC_MAJORS = 2000, 1000, (14, 19)
_FIRST_LARGE_ICC = 100


class CompilerVersion(NamedTuple):
    """A host compiler with the range of its versions, in the units of the table."""

    title: str
    compiler: str
    low: int
    high: int


def is_compiler(text: str) -> bool:
    """Check if a text is a host compiler, with or without a version."""
    return _compiler(" ".join(text.lower().split())) is not None


def parse_compiler(text: str) -> CompilerVersion:
    """Return a compiler with its version, such as `gcc 13`. Raises `UsageError` without one."""
    match = _compiler(" ".join(text.lower().split()))
    if match is None or match[2] is None:
        name = text if match else "gcc"
        version = "2022" if match and _SPELLINGS[match[1]] == "msvc" else "15"
        hint = correction_line(f"add its version, such as {version}", text, [f"{name} {version}"])
        raise UsageError(f"{shown(text)} is not a version of a compiler", hint=hint)
    compiler, major = _SPELLINGS[match[1]], int(match[2])
    minor = None if match[3] is None else int(match[3])
    version = f"{major}" if minor is None else f"{major}.{minor}"
    if compiler == "msvc":
        title = "Visual Studio" if major >= _FIRST_YEAR else COMPILER_NAMES[compiler]
        return CompilerVersion(f"{title} {version}", compiler, *_msc_versions(text, major, minor))
    number = major
    if compiler == "icc" and major < _FIRST_LARGE_ICC:
        number = 100 * major + 10 * (minor or 0)
    return CompilerVersion(f"{COMPILER_NAMES[compiler]} {version}", compiler, number, number)


def _msc_versions(text: str, major: int, minor: int | None) -> tuple[int, int]:
    """Return the first and the last `_MSC_VER` of a version of Visual C++ or Visual Studio."""
    if major >= _FIRST_YEAR:
        first = [number for number, year in VISUAL_STUDIO.items() if year == str(major)]
        later = [number for number, year in VISUAL_STUDIO.items() if int(year) > major]
        if first:
            return first[0], min(later, default=first[0] + 10) - 1
    elif major >= _FIRST_MSC_VER:
        return major, major
    elif major in _MSC_MAJORS and minor is not None:
        return 1900 + minor, 1900 + minor
    years = ", ".join(VISUAL_STUDIO.values())
    hint = correction_line(f"use the year ({years}) or 19.40", text, ["visual studio 2022"])
    raise UsageError(f"{shown(text)} is not a known version of Visual Studio", hint=hint)


def explain_compiler(name: str, compat: NvccCompat) -> tuple[str, Topic]:
    """Return the CUDA releases that accept a compiler: the answer, and facts with sources.

    Raises `UsageError` for a compiler without a version.
    """
    version = parse_compiler(name)
    verdicts: dict[_Verdict, list[Version]] = defaultdict(list)
    known = sorted(map(parse_label, compat.releases))
    for label in known:
        answer = compat.releases[str(label)].compilers.get(version.compiler)
        verdicts[_verdict(version, answer)].append(label)
    origin = Origin("computed", "the headers of nvcc, in nvcc_compat.json")
    facts = []
    for verdict, words in _VERDICTS.items():
        labels = verdicts.get(verdict)
        if labels:
            fact = make_fact(f"{version.compiler}.{verdict}", "", tuple(map(str, labels)), origin)
            spans = ", ".join(release_spans(labels, known))
            facts.append(fact.changed(statement=f"{words} CUDA {spans}"))
    answer_text = f"{version.title} is {'; '.join(fact.statement for fact in facts)}."
    lines = [answer_text, *_newest(version, verdicts["accept"], compat)]
    return "\n".join(lines), Topic(title=version.title, facts=tuple(facts))


def _newest(
    version: CompilerVersion, accepting: list[Version], compat: NvccCompat
) -> Iterator[str]:
    """Yield the range of the newest release that accepts a compiler, if there is one."""
    if not accepting:
        yield "No known CUDA release accepts all of its versions."
        return
    label = str(accepting[-1])
    answer = compat.releases[label].compilers[version.compiler]
    if isinstance(answer, CompilerRange) and answer.unit != "_MSC_VER":
        name = COMPILER_NAMES[version.compiler]
        yield f"CUDA {label} accepts {name} {span(answer.min, answer.max)}."


def _verdict(version: CompilerVersion, answer: CompilerAnswer | None) -> _Verdict:
    if answer is None:
        return "unknown"
    if not isinstance(answer, CompilerRange):
        return "refuse" if answer.status == "refused" else "unchecked"
    low = version.low if answer.min is None else answer.min
    high = version.high if answer.max is None else answer.max
    if low <= version.low and version.high <= high:
        return "accept"
    is_overlap = low <= version.high and version.low <= high
    return "partly" if is_overlap else "refuse"
