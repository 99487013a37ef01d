"""Tests of the preprocessor: lines, directives, macros, expressions and errors."""

import pytest

from cudaredist.errors import InvalidFileError
from cudaredist.tables.nvcc.preprocessor import Header


def errors(text: str, **macros: int) -> list[tuple[int, str]]:
    return [(error.line, error.text) for error in Header(text.encode()).run(macros).errors]


def is_true(expression: str, **macros: int) -> bool:
    return bool(errors(f"#if {expression}\n#error\n#endif\n", **macros))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1", True),
        ("0", False),
        ("UNDEFINED", False),
        ("true", True),
        ("false", False),
        ("VALUE", True),
        ("VALUE == 7", True),
        ("VALUE>6&&VALUE<8", True),
        ("!VALUE", False),
        ("!!VALUE", True),
        ("defined(VALUE)", True),
        ("defined VALUE && !defined UNDEFINED", True),
        ("defined ( VALUE )", True),
        ("0x10 == 16 && 0X1F == 31 && 010 == 8 && 0b11 == 3", True),
        ("201103L == 201103 && 5u == 5 && 5UL == 5 && 5llu == 5 && 5LL == 5", True),
        ("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9", True),
        ("10 - 4 - 3 == 3 && 100 / 10 / 5 == 2", True),
        ("-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1", True),
        ("1 << 4 == 16 && 256 >> 4 == 16 && -8 >> 1 == -4", True),
        ("1 << -1 == 0 && 2 >> -1 == 4", True),
        ("1 << 64 == 0 && -1 >> 200 == -1", True),
        ("(5 & 3) == 1 && (5 | 3) == 7 && (5 ^ 3) == 6 && ~0 == -1", True),
        ("1 | 0 == 1 && +3 == 3", True),
        ("1 < 2 == 1 && 2 >= 2 && 2 <= 2 && 3 != 2", True),
        ("1 ? 0 : 1", False),
        ("0 ? 0 : 0 ? 0 : 1", True),
        ("-1 > 0u", True),
        ("(1 ? -1 : 0u) > 0", True),
        ("0 - 1u == 18446744073709551615u", True),
        ("9223372036854775807 + 1 < 0", True),
        ("0xffffffffffffffff > 0", True),
        ("0 && 1 / 0", False),
        ("1 || 1 % 0", True),
        ("1 ? 1 : 1 / 0", True),
        ("VALUE /* a comment */ == /* another */ 7 // and one more", True),
    ],
)
def test_expression_is_evaluated(expression: str, *, expected: bool) -> None:
    assert is_true(expression, VALUE=7) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "expected a value"),
        ("1 +", "expected a value"),
        ("(1", "expected ')'"),
        ("1 2", "expected an operator, found '2'"),
        ("A B", "expected an operator, found 'B'"),
        ("1 ? 2", "expected ':'"),
        ("== 1", "expected a value, found '=='"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("defined", "expected a name after 'defined'"),
        ("defined(1)", "expected a name after 'defined'"),
        ("defined(A", "expected ')'"),
        ("__has_include(<x>)", "__has_include is used as a function, which is not supported"),
        ("0 && __has_feature(x)", "__has_feature is used as a function"),
        ("1.5", "'1.5' is not an integer"),
        (".5", "'.5' is not an integer"),
        ("089", "'089' is not an integer"),
        ("5x", "'5x' is not an integer"),
        ("18446744073709551616", "has more than 64 bits"),
        (f"0x{'f' * 5000}", "has more than 64 bits"),
        ("'a' == 97", "unknown character"),
        ('"a"', "unknown character"),
        ("1 @ 2", "unknown character '@'"),
        ("1 +" * 300 + "1", "more than 400 tokens"),
        ("(" * 100 + "1" + ")" * 100, "more than 40 nested levels"),
    ],
)
def test_invalid_expression_is_an_error_with_line(expression: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as raised:
        errors(f"\n\n#if {expression}\n#endif\n")
    assert raised.value.problems[0].path == "line 3"
    assert message in raised.value.problems[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("#error  one\ttwo \n", [(1, "one two")], id="reached"),
        pytest.param("# error x\n", [(1, "x")], id="blank after the hash"),
        pytest.param("  #  if 1\n#error x\n#endif", [(2, "x")], id="indented"),
        pytest.param("#if 0\n#error x\n#endif\n", [], id="not reached"),
        pytest.param("#if 0\n#error x\n#else\n#error y\n#endif\n", [(4, "y")], id="else"),
        pytest.param(
            "#if 0\n#error x\n#elif A == 5\n#error y\n#elif 1\n#error z\n#else\n#error w\n#endif\n",
            [(4, "y")],
            id="only the first true branch",
        ),
        pytest.param("#if 1\n#elif 1 / 0\n#endif\n", [], id="later branches"),
        pytest.param("#if 0\n#if what is this\n#endif\n#endif\n", [], id="nested conditions"),
        pytest.param(
            "#if 0\n#if 1\n#else\n#error x\n#elif\n#endif\n#endif\n".replace("#elif\n", ""),
            [],
            id="else of an inner group",
        ),
        pytest.param("#ifdef A\n#error x\n#endif", [(2, "x")], id="ifdef"),
        pytest.param("#ifndef A\n#error x\n#endif", [], id="ifndef"),
        pytest.param("#if 0\n#unknown directive\n#endif\n", [], id="skipped unknown"),
        pytest.param("#include <x>\n#pragma y\n#\n#line 9\n#error w", [(5, "w")], id="passed"),
        pytest.param("#if A == \\\n5\n#error x\n#endif\n", [(3, "x")], id="continued"),
        pytest.param("#if A == 5 \\  \n && 1\n#error x\n#endif", [(3, "x")], id="trailing blanks"),
        pytest.param("#if 1 /* a\nb\n*/ && 0\n#error x\n#endif", [], id="comment over lines"),
        pytest.param("/* #error x\n*/#error y", [(1, "y")], id="after a comment"),
        pytest.param("// a \\\n#error x\n#error y", [(3, "y")], id="continued comment"),
        pytest.param('"/*"\n#error x\n"*/"', [(2, "x")], id="comment in a text"),
        pytest.param("'\"' /* ' */\n#error x\n", [(2, "x")], id="quoted quote"),
        pytest.param("#error it's /* a\n#error x", [(1, "it's /* a"), (2, "x")], id="apostrophe"),
        pytest.param("// it's\n#error x // y\n", [(2, "x")], id="apostrophe in a comment"),
        pytest.param("#if 1\r\n#error x\r\n#endif\r\n", [(2, "x")], id="lines of Windows"),
        pytest.param("#if A \\\r\n == 5\r\n#error x\r\n#endif", [(3, "x")], id="Windows"),
        pytest.param("\ufeff#error x", [(1, "x")], id="byte order mark"),
        pytest.param("#error x \\", [(1, "x")], id="backslash at the end"),
        pytest.param('"/*\\\\\n\n#error x', [(3, "x")], id="backslash after an open quote"),
        pytest.param("/\\\n* #error x\n*\\\n/#error y", [(1, "y")], id="comment signs continued"),
    ],
)  # fmt: skip
def test_lines_and_directives_are_processed(text: str, expected: list[tuple[int, str]]) -> None:
    assert errors(text, A=5) == expected


@pytest.mark.parametrize(
    ("definitions", "expression", "expected"),
    [
        ("#define B 3\n", "B == 3", True),
        ("#define B (A + 1)\n", "B == 6", True),
        ("#define B A + 1\n", "B * 2 == 7", True),
        ("#define B C\n#define C 4\n", "B == 4", True),
        ("#define B B\n", "B", False),
        ("#define B C + 1\n#define C B\n", "B == 1", True),
        ("#define B 0x10u\n", "B == 16", True),
        ("#define B 010\n", "B == 8", True),
        ("#define B defined(A)\n", "B", True),
        ("#define A 6\n", "A == 6", True),
        ("#undef A\n", "defined(A)", False),
        ("#undef NEVER\n", "defined(NEVER)", False),
        ("#define B\n", "defined(B)", True),
        ("#define F(x) x\n", "defined(F)", True),
        ("#define F(x) x\n", "F", False),
        ("#define F (1)\n", "F", True),
        ("#if 0\n#define B 1\n#endif\n", "B", False),
        ("#define B(\n#define B 2 // two\n", "B == 2", True),
    ],
)
def test_macros_are_expanded(definitions: str, expression: str, *, expected: bool) -> None:
    assert bool(errors(f"{definitions}#if {expression}\n#error\n#endif\n", A=5)) == expected


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("#if 1\n#if 2\n#endif\n", 1, "#if without #endif: the file is truncated"),
        ("#ifndef X\n", 1, "#ifndef without #endif: the file is truncated"),
        ("x\n/* y\n", 2, "a comment without its end: the file is truncated"),
        ("#endif\n", 1, "#endif without #if"),
        ("\n#else\n", 2, "#else without #if"),
        ("#elif 1\n", 1, "#elif without #if"),
        ("#if 1\n#else\n#else\n#endif\n", 3, "#else after #else"),
        ("#if 1\n#else\n#elif 1\n#endif\n", 3, "#elif after #else"),
        ("#if 0\n#elifdef X\n#endif\n", 2, "unknown directive #elifdef"),
        ("#unknown x\n", 1, "unknown directive #'unknown'"),
        ("#define\n", 1, "#define without a name"),
        ("#undef 5\n", 1, "#undef without a name"),
        ("#ifdef\n#endif\n", 1, "#ifdef of '', which is not a name"),
        ("#ifdef 5\n#endif\n", 1, "#ifdef of '5', which is not a name"),
        ("#define F(x) x\n#if F(1)\n#endif\n", 2, "#if: F is used as a function"),
        ("#define B 1 @ 2\n\n#if B\n#endif\n", 3, "#if: unknown character '@'"),
        ("#define B\n#if B\n#endif\n", 2, "#if: expected a value"),
        ("#if 1\n" * 300, 201, "more than 200 nested conditions"),
        (
            "".join(f"#define M{n} M{n + 1} + M{n + 1}\n" for n in range(30)) + "#if M0\n#endif\n",
            31,
            "more than 400 tokens after macro replacement",
        ),
        (
            f"#define M {'+1' * 200}\n#define N {'M ' * 100}\n#if N\n#endif\n",
            3,
            "more than 400 tokens after macro replacement",
        ),
        (
            "".join(f"#define M{n} M{n + 1}\n" for n in range(2000)) + "#if M0\n#endif\n",
            2001,
            "more than 40 nested macros",
        ),
        (
            "".join(f"#define M{n} M{n + 1} M{n + 1}\n" for n in range(30))
            + "#define M30\n#if 1 M0\n#endif\n",
            32,
            "more than 5,000 tokens",
        ),
        ("#if 1 + 1\n#endif\n" * 2000, 3333, "more than 5,000 tokens"),
    ],
)
def test_invalid_directive_is_an_error_with_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InvalidFileError) as raised:
        errors(text)
    assert raised.value.exit_code == 5
    assert raised.value.what == "host compiler header"
    assert str(raised.value.problems[0]).startswith(f"line {line}: ")
    assert message in raised.value.problems[0].message


def test_header_size_is_limited() -> None:
    with pytest.raises(InvalidFileError, match="bytes, more than"):
        Header(b" " * (128 << 10) + b" ")


def test_tested_macros_are_recorded() -> None:
    header = Header(b"#define D A\n#if defined(A) && B > 1 || D\n#endif\n#ifdef C\n#endif\n")
    assert header.run({"B": 2}).tested == {"A", "B", "C", "D"}
