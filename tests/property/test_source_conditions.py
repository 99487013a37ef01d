"""Properties of conditions in source code: agreement with gcc, and arbitrary text."""

import re
import subprocess

from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from support.optional_programs import needs
from support.preprocessor import expressions_over, truth_by_gcc

from cudaredist.source_code.branches import Branches, Evaluator, ReleaseMacros
from cudaredist.source_code.conditions import Macro, Macros, evaluate, tokens_of
from cudaredist.source_code.read_code import Interest, read_code
from cudaredist.source_code.work_limit import WorkLimit

VERSIONS = (12040, 12090, 13000)
UNKNOWN = (None, 0, 1, 12)
"""Values of a macro that only the build knows. None: it is not defined."""

leaves = st.one_of(
    st.integers(0, 40).map(str),
    st.sampled_from(
        [
            *("CUDART_VERSION", "CUDART_VERSION / 1000", "13000", "12090", "010", "0x10", "3L"),
            *("UNKNOWN", "defined(UNKNOWN)", "defined UNKNOWN", "defined(CUDART_VERSION)"),
        ]
    ),
)


expressions = expressions_over(leaves)


def by_us(expression: str, version: int) -> bool | None:
    macros = Macros({"CUDART_VERSION": Macro([str(version)])}, lambda _: None, WorkLimit(1 << 20))
    value = evaluate(tokens_of(expression), macros)
    return None if value is None else bool(value)


def by_gcc(several: list[str], version: int, unknown: int | None) -> list[bool | None]:
    options = [f"-DCUDART_VERSION={version}"]
    options += [] if unknown is None else [f"-DUNKNOWN={unknown}"]
    return truth_by_gcc(several, *options)


@needs("gcc")
@examples(0.4)
@given(st.lists(expressions, min_size=30, max_size=60), st.sampled_from(VERSIONS))
def test_known_value_is_that_of_gcc_for_each_unknown_macro(
    several: list[str], version: int
) -> None:
    ours = [by_us(expression, version) for expression in several]
    for unknown in UNKNOWN:
        theirs = by_gcc(several, version, unknown)
        for expression, value, other in zip(several, ours, theirs, strict=True):
            assert value is None or other is None or value == other, expression


@needs("gcc")
@examples(0.4)
@given(st.lists(expressions, min_size=30, max_size=60), st.sampled_from(VERSIONS))
def test_value_without_unknown_macros_is_known(several: list[str], version: int) -> None:
    known = [text for text in several if "UNKNOWN" not in text]
    theirs = by_gcc(known, version, None)
    for expression, other in zip(known, theirs, strict=True):
        is_large = re.search(r"<<|>>|\*|/|%", expression)  # beyond our limits, or a division by 0
        assert by_us(expression, version) == other or is_large, expression


conditions = st.sampled_from(
    ["CUDART_VERSION < 13000", "CUDART_VERSION >= 12090", "UNKNOWN", "0", "1"]
)


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("#if {}\n{}#endif\n".format, conditions, inner),
        st.builds("#if {}\n{}#else\n{}#endif\n".format, conditions, inner, inner),
        st.builds(
            "#if {}\n{}#elif {}\n{}#else\n{}#endif\n".format,
            *(conditions, inner, conditions, inner, inner),
        ),
    )


code = st.recursive(st.just("USE\n"), blocks, max_leaves=8)


def releases_of_uses(text: str) -> list[int]:
    """Return the sets of releases that may compile each use of a name."""
    macros = [
        ReleaseMacros(1 << bit, {"CUDART_VERSION": Macro([str(version)])}, lambda _: None)
        for bit, version in enumerate(VERSIONS)
    ]
    interest = Interest({"USE"}, set(), set(), set())
    file = read_code(text.encode(), interest, Evaluator(macros))
    sets = dict.fromkeys((n for n, line in enumerate(text.split("\n"), 1) if line == "USE"), 0)
    return [*(sets | {use.line: use.context.releases for use in file.uses}).values()]


@needs("gcc")
@examples(0.4)
@given(st.lists(code, min_size=5, max_size=10))
def test_releases_of_code_are_those_that_compile_it(several: list[str]) -> None:
    text = "".join(several)
    possible = [0] * text.count("USE\n")
    numbered = text
    for number in range(len(possible)):
        numbered = numbered.replace("USE\n", f"use_{number}\n", 1)
    for bit, version in enumerate(VERSIONS):
        for unknown in (None, 1):
            options = [f"-DCUDART_VERSION={version}"] + ([] if unknown is None else ["-DUNKNOWN=1"])
            command = ["gcc", "-E", "-P", "-undef", "-xc++", *options, "-"]
            result = subprocess.run(
                command, input=numbered, capture_output=True, text=True, check=True
            )
            for number in map(int, re.findall(r"use_(\d+)", result.stdout)):
                possible[number] |= 1 << bit
    ours = releases_of_uses(text)
    # Two conditions on one unknown macro are evaluated apart.
    assert all(own | real == own for own, real in zip(ours, possible, strict=True))
    if "UNKNOWN" not in text:
        assert ours == possible


@given(st.binary(max_size=2000))
def test_any_bytes_are_read(data: bytes) -> None:
    macros = [ReleaseMacros(1, {"CUDART_VERSION": Macro(["13000"])}, lambda _: None)]
    interest = Interest({"USE", "a"}, {"a", "b"}, {"a.h"}, {"T"})
    read_code(data, interest, Evaluator(macros))


words = st.sampled_from(
    ["#if", "#else", "#endif", "#define", "#", "\n", "a", "b", "T", "USE", "0", "1", "defined",
     "&&", "(", ")", "{", "}", "[", "]", ",", ";", "=", "<", ">", "::", ".", "->", "?", ":",
     '"', "'", "//", "/*", "*/", "\\", 'R"(']
)  # fmt: skip


@given(st.lists(words, max_size=200).map(" ".join))
def test_any_order_of_tokens_is_read(text: str) -> None:
    macros = [ReleaseMacros(1, {"CUDART_VERSION": Macro(["13000"])}, lambda _: None)]
    interest = Interest({"USE", "a"}, {"a", "b"}, {"a.h"}, {"T"})
    file = read_code(text.encode(), interest, Evaluator(macros))
    lines = text.count("\n") + 1
    assert all(1 <= use.line <= lines for use in file.uses)
    branches = Branches(Evaluator(macros))
    branches.read("if", text)
    branches.read("endif", "")
    assert branches.context.releases == 1
