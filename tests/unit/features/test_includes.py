"""Tests of header includes: conditions, comments, limits and missing headers."""

import io

import pytest
from support.archives import tar_member, tar_of
from support.facts import gathered
from support.set_inputs import with_headers

from cudaredist.archives.open_archive import open_archive
from cudaredist.features.derive import derive
from cudaredist.features.facts import IncludeLines
from cudaredist.features.includes import INCLUDES_SIZE_LIMIT, Includes, is_header, read_includes
from cudaredist.formats.features import WholeFeatures

MIB = 1 << 20


def includes_of(text: str) -> dict[str, str]:
    lines = read_includes(text.encode())
    return {include.name: include.condition for include in lines.includes} if lines else {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#include <a.h>", {"a.h": ""}),
        ('  #  include\t"b/a.h" // why', {"b/a.h": ""}),
        ("#include <a.h>\r\n#include <b.h>\r\n", {"a.h": "", "b.h": ""}),
        ("#inc\\\nlude <a.h>", {"a.h": ""}),
        ("#include MACRO", {}),
        ("// #include <a.h>", {}),
        ("/*\n#include <a.h>\n*/ #include <b.h>", {"b.h": ""}),
        ("//***\n#include <a.h>\n/**/", {"a.h": ""}),
        ('const char *x = "/*";\n#include <a.h>', {"a.h": ""}),
        ("#error don't /*\n#include <a.h>", {"a.h": ""}),
        ("/* no end\n#include <a.h>", {}),
        ("#ifndef A_H\n#define A_H\n#include <a.h>\n#endif", {"a.h": ""}),
        ("#if !defined(A_H)\n#define A_H 1\n#include <a.h>\n#endif", {"a.h": ""}),
        ("#if !defined(A_H)\n#include <a.h>\n#endif", {"a.h": "!defined(A_H)"}),
        ("#ifdef A\n#include <a.h>\n#endif\n#include <b.h>", {"a.h": "defined(A)", "b.h": ""}),
        (
            "#if A || B\n#include <a.h>\n#elif C\n#include <b.h>\n#else\n#include <c.h>\n#endif",
            {"a.h": "A || B", "b.h": "(!(A || B)) && C", "c.h": "(!(A || B)) && !C"},
        ),
        ("#ifndef A\n#else\n#include <a.h>\n#endif", {"a.h": "defined(A)"}),
        ("#if A\n#if B || C\n#include <a.h>\n#endif\n#endif", {"a.h": "A && (B || C)"}),
        ("#if __has_include(<a.h>)\n#include <a.h>\n#endif", {"a.h": "__has_include(<a.h>)"}),
        ("#else\n#endif\n#endif\n#include <a.h>", {"a.h": ""}),
        (f"#if {'A' * 300}\n#include <a.h>\n#endif", {"a.h": f"{'A' * 160}…"}),
        ("no directive but the word include", {}),
        ("#include <a.h>\0", {}),
    ],
)
def test_includes_are_read_with_conditions(text: str, expected: dict[str, str]) -> None:
    assert includes_of(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x" * (INCLUDES_SIZE_LIMIT + 1), "larger than 4,194,304 bytes"),
        ("".join(f"#include <{n}.h>\n" for n in range(1001)), "more than 1,000"),
        ("#if A\n" * 201 + "#include <a.h>", "more than 200 nested conditions"),
    ],
)
def test_hostile_header_is_unread(text: str, words: str) -> None:
    assert read_includes(text.encode()) == IncludeLines(unread=words)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ['"\\"' * MIB, "/*" * MIB, "'" * MIB, "#if A\\\n" * MIB, "/" * MIB]
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    assert read_includes((text + "include")[:INCLUDES_SIZE_LIMIT].encode()) in {
        None,
        IncludeLines(unread="more than 200 nested conditions"),
    }


def test_number_of_includes_in_archive_is_limited() -> None:
    includes = Includes()
    text = "".join(f"#include <{n}.h>\n" for n in range(1000)).encode()
    read = [includes.read(text) for _ in range(52)]
    assert [lines.unread is None for lines in read if lines] == [True] * 50 + [False] * 2


def test_files_outside_include_are_not_headers() -> None:
    assert is_header("top/include/a.h")
    assert not is_header("top/src/include.h")


def features(**headers: dict[str, str]) -> WholeFeatures:
    return with_headers(
        {name.replace("__", "/").replace("_", "."): headers[name] for name in headers}
    )


def test_missing_headers_belong_to_other_packages() -> None:
    derived = features(
        include__a_h={"b.h": "", "sub/c.h": "", "c.h": "", "cuda.h": "", "stdio.h": ""},
        include__b_h={"vector": "", "../cuda.h": "", "cuda_fp16.h": "defined(__cplusplus)"},
        include__sub__c_h={"../x.h": "", "../../y.h": "", "/etc/z.h": "", "./d.h": ""},
    )
    assert derived.missing_headers == {
        "cuda.h": {"include/a.h": ""},
        "cuda_fp16.h": {"include/b.h": "defined(__cplusplus)"},
        "sub/d.h": {"include/sub/c.h": ""},
        "x.h": {"include/sub/c.h": ""},
    }


def test_private_header_counts_if_included_by_others() -> None:
    derived = features(
        include__cub__a_cuh={"cub/detail/b.cuh": "B", "c.h": "", "detail/c.h": ""},
        include__cub__detail__b_cuh={"b.h": "", "d.cuh": "C"},
        include__cub__detail__c_h={"c2.h": ""},
        include__cub__detail__d_cuh={"d.h": "", "cub/a.cuh": "", "b.h": "D"},
        include__cub__detail__nobody_cuh={"e.h": ""},
    )
    assert derived.missing_headers == {
        "b.h": {"include/cub/detail/b.cuh": "B", "include/cub/detail/d.cuh": "B && C && D"},
        "c2.h": {"include/cub/detail/c.h": ""},
        "d.h": {"include/cub/detail/d.cuh": "B && C"},
        "e.h": {"include/cub/detail/nobody.cuh": ""},
    }


def test_missing_header_has_shortest_conditions() -> None:
    derived = features(
        include__a_h={"x.h": "AAA", "y.h": "B"},
        include__b_h={"x.h": "A", "y.h": ""},
        include__c_h={"x.h": "A"},
        include__d_h={"x.h": "AA"},
        include__e_h={"x.h": "AAAA"},
        include__f_h={"x.h": "AAAAA"},
    )
    assert derived.missing_headers == {
        "x.h": {
            "include/b.h": "A",
            "include/d.h": "AA",
            "include/a.h": "AAA",
            "include/e.h": "AAAA",
        },
        "y.h": {"include/b.h": ""},
    }


def test_archive_features_list_files_licenses_and_headers() -> None:
    data = tar_of(
        tar_member("top/LICENSE", b"free"),
        tar_member("top/include/curand.h", b"#include <cuda_runtime.h>\n"),
        tar_member("top/include/sub/x.h", b"#include <../curand.h>\n"),
        tar_member("top/include/big.h", b" " * (INCLUDES_SIZE_LIMIT + 1)),
        tar_member("top/include/license.h", b"no licence"),
    )
    derived = derive(gathered(open_archive("x.tar", io.BytesIO(data))))
    assert derived.files == {
        "include": {"include": "big.h/curand.h/license.h", "include/sub": "x.h"},
        "out": {"": "LICENSE"},
    }
    assert derived.license_files == {
        "LICENSE": "ad95d5fa651ba86d8923fe1238d24a4f1988a752acfe426ac72ac7c04471bc17"
    }
    assert derived.missing_headers == {"cuda_runtime.h": {"include/curand.h": ""}}
    assert derived.unread_headers == 1
    assert derived.notes == ("include/big.h: includes not read: larger than 4,194,304 bytes",)
