"""Properties of the preprocessor: agreement with gcc, and arbitrary headers."""

import contextlib
import re
import subprocess

from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from support.headers import host_config, read_once
from support.optional_programs import needs

from cudaredist.errors import InvalidFileError
from cudaredist.tables.nvcc.compilers import read_header
from cudaredist.tables.nvcc.preprocessor import Header

leaves = st.one_of(
    st.integers(0, 40).map(str),
    st.sampled_from(
        ["0x7fffffffffffffff", "18446744073709551615u", "3u", "2L", "010", "A", "B", "UNKNOWN"]
    ),
    st.sampled_from(["defined(A)", "defined UNKNOWN"]),
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = re.findall(r"\S+", "+ - * / % << >> < <= > >= == != & | ^ && ||")
    return st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(operators), inner),
        st.builds("({})".format, inner),
        # A space, because two adjacent signs are another operator.
        st.builds("{} {}".format, st.sampled_from("!~-+"), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    )


expressions = st.recursive(leaves, larger, max_leaves=8)
MACROS = {"A": 7, "B": 0}


def by_us(expression: str) -> bool | None:
    try:
        return bool(Header(f"#if {expression}\n#error\n#endif\n".encode()).run(MACROS).errors)
    except InvalidFileError as error:
        assert error.problems[0].path == "line 1"
        return None


def by_gcc(several: list[str]) -> list[bool | None]:
    text = "".join(f"#if {expression}\n#error\n#endif\n" for expression in several)
    result = subprocess.run(
        ["gcc", "-E", "-undef", "-xc++", "-std=c++17", "-DA=7", "-DB=0", "-", "-o", "/dev/null"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    answers: list[bool | None] = [False] * len(several)
    for line, message in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", result.stderr):
        index = (int(line) - 1) // 3
        if not message.startswith("#error"):
            answers[index] = None
        elif answers[index] is False:
            answers[index] = True
    return answers


@needs("gcc")
@examples(1 / 4)
@given(st.lists(expressions, min_size=20, max_size=60))
def test_expressions_agree_with_gcc(several: list[str]) -> None:
    assert list(zip(several, map(by_us, several), strict=True)) == list(
        zip(several, by_gcc(several), strict=True)
    )


words = st.sampled_from(
    ["#if ", "#elif ", "#else", "#endif", "#define ", "#error ", "A", " B ", "(", ")", "&&", "\\",
     "\n", "\n#", "/*", "*/", "//", '"', "'", "1", "0x", ".", "?", ":", "defined", "\r\n", "\t"]
)  # fmt: skip


@given(st.one_of(st.lists(words, max_size=40).map("".join), st.text(max_size=60)))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidFileError):
        Header(text.encode("utf-8", "surrogatepass")).run(MACROS)


@examples(1 / 2)
@given(st.data())
def test_truncated_header_is_refused_or_has_same_ranges(data: st.DataObject) -> None:
    whole = host_config()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    with contextlib.suppress(InvalidFileError):
        assert read_header(cut) == read_once(whole)
