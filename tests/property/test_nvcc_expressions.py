"""Properties of the preprocessor: agreement with gcc, and arbitrary headers."""

import contextlib

from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from support.headers import host_config, read_once
from support.optional_programs import needs
from support.preprocessor import expressions_over, truth_by_gcc

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


expressions = expressions_over(leaves)
MACROS = {"A": 7, "B": 0}


def by_us(expression: str) -> bool | None:
    try:
        return bool(Header(f"#if {expression}\n#error\n#endif\n".encode()).run(MACROS).errors)
    except InvalidFileError as error:
        assert error.problems[0].path == "line 1"
        return None


@needs("gcc")
@examples(1 / 4)
@given(st.lists(expressions, min_size=20, max_size=60))
def test_expressions_agree_with_gcc(several: list[str]) -> None:
    assert list(zip(several, map(by_us, several), strict=True)) == list(
        zip(several, truth_by_gcc(several, "-DA=7", "-DB=0"), strict=True)
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
