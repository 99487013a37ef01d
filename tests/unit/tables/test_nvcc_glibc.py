"""The newest glibc that a math header compiles with."""

import pytest
from support.headers import math_functions

from cudaredist.errors import InvalidFileError
from cudaredist.formats.tables import GlibcPolicy
from cudaredist.tables.nvcc.glibc import NewestGlibc, newest_glibc

POLICY = GlibcPolicy(
    newest="2.44",
    functions={"2.41": ("cospi", "sinpi"), "2.42": ("rsqrt",)},
    reason="a test",
    reference="a test",
)
IEC_GUARD = """
#if {test}(2,41) && (__GLIBC_USE_ISOC23 || defined(__STDC_WANT_IEC_60559_FUNCS_EXT__))
# define SINPI __THROW
#else
# define SINPI
#endif
"""
RSQRT_GUARD = """
#if __GLIBC_PREREQ( 2 , 42 )
# define GE_2_42 1
#endif
#if defined(GE_2_42)
# define RSQRT noexcept(true)
#else
# define RSQRT
#endif
"""


@pytest.mark.parametrize(
    ("header", "newest"),
    [
        (math_functions(), NewestGlibc("2.40", ("sinpi", "sinpif"))),
        (math_functions("__THROW"), NewestGlibc("2.41", ("rsqrt", "rsqrtf"))),
        (
            math_functions("SINPI", guards=IEC_GUARD.format(test="__GNUC_PREREQ")),
            NewestGlibc("2.41", ("rsqrt", "rsqrtf")),
        ),
        (
            math_functions("SINPI", guards=IEC_GUARD.format(test="__GLIBC_PREREQ")),
            NewestGlibc("2.41", ("rsqrt", "rsqrtf")),
        ),
        (
            math_functions(
                "SINPI",
                "RSQRT",
                IEC_GUARD.format(test="__GLIBC_PREREQ") + RSQRT_GUARD,
            ),
            NewestGlibc("2.44", ()),
        ),
        (math_functions("throw()", "noexcept"), NewestGlibc("2.44", ())),
    ],
    ids=["none", "sinpi", "gnuc-test", "glibc-test", "both-tests", "without-tests"],
)
def test_newest_glibc_precedes_first_clash(header: bytes, newest: NewestGlibc) -> None:
    assert newest_glibc(header, POLICY) == newest


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"#pragma once\nextern double sin(double x) __THROW;\n",
        b"// extern double sinpi(double x);\n/* extern double\nsinpi(double x); */\n",
        b"#if defined(_WIN32)\nextern double sinpi(double x);\n#endif\n",
        b"__MATH_FUNCTIONS_DECL__ float sinpi(const float a);\n",
    ],
    ids=["empty", "other-functions", "comments", "windows", "overload"],
)
def test_newest_glibc_is_unknown_without_declarations(header: bytes) -> None:
    assert newest_glibc(header, POLICY) is None


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (math_functions("noexcept(false)"), "unknown exception specification"),
        (math_functions("__asm__(x)"), "unknown exception specification"),
        (b"#if 1\nextern double sinpi(double x);\n", "truncated"),
        (b" " * ((4 << 20) + 1), "more than 4,194,304"),
        (b"extern double sinpi(double x) @;\n", "unknown character"),
    ],
    ids=["may-throw", "assembler", "truncated", "large", "character"],
)
def test_newest_glibc_rejects_unknown_forms(header: bytes, problem: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        newest_glibc(header, POLICY)
    assert problem in str(caught.value.problems)
