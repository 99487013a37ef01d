"""Tests of the parser of headers, with small headers."""

from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("clang", reason="needs libclang: pip install 'cudaredist[api]'")

from support.patching import Patch

from cudaredist.tables.api.api_packages import headers_of_cpp
from cudaredist.tables.api.header_forms import Declared, HeaderForms
from cudaredist.tables.api.header_process import ParseRequest, parse_headers
from cudaredist.tables.api.include_tree import IncludeTree
from cudaredist.tables.api.parse_header import HeaderParser


def parsed(folder: Path, files: Mapping[str, str]) -> dict[str, HeaderForms]:
    tree = IncludeTree({path: text.encode() for path, text in files.items()})
    parser = HeaderParser(tree.write(folder, files))
    return parser.parse({path: tree.includers(path, files) for path in files})


def forms(folder: Path, text: str) -> HeaderForms:
    return parsed(folder, {"a.h": text})["a.h"]


def rows(found: HeaderForms) -> set[tuple[str, str, str, str]]:
    assert not found.error
    return {(one.section, one.parent, one.name, one.text) for one in found.declared}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "extern int f(const char *name, unsigned long long count);",
            ("functions", "", "f", "int (const char *name, unsigned long long count)"),
        ),
        (
            '#define API __attribute__((visibility("default")))\nAPI void *f(void);',
            ("functions", "", "f", "void * (void)"),
        ),
        ("int f();", ("functions", "", "f", "int ()")),
        ("int f(const char *, ...);", ("functions", "", "f", "int (const char *, ...)")),
        (
            "struct s; int f(struct s *x, void (*done)(int), int values[4]);",
            ("functions", "", "f", "int (s *x, void (*done)(int), int values[4])"),
        ),
        ("static inline int f(int x) { return x; }", ("functions", "", "f", "int (int x)")),
        ("struct s { int clockRate; };", ("fields", "s", "clockRate", "int")),
        ("typedef struct { int x; } s;", ("fields", "s", "x", "int")),
        ("struct s { union { int fd; } handle; };", ("fields", "s", "handle.fd", "int")),
        ("struct s { union { int fd; }; };", ("fields", "s", "fd", "int")),
        ("struct s { struct { int x; } pairs[2]; };", ("fields", "s", "pairs", "struct[2]")),
        ("struct s { unsigned x : 3; };", ("fields", "s", "x", "unsigned int : 3")),
        ("struct s { char name[256]; };", ("fields", "s", "name", "char[256]")),
        ("union u { int x; };", ("types", "", "u", "union")),
        ("enum e { first = 1, second };", ("enumerators", "e", "second", "2")),
        ("enum { big = 0x7fffffff };", ("enumerators", "", "big", "2147483647")),
        ("typedef enum { first } e;", ("types", "", "e", "enum")),
        ("typedef struct s *handle;", ("typedefs", "", "handle", "s *")),
        ("typedef void (*done)(int x);", ("typedefs", "", "done", "void (*)(int)")),
        ("extern const struct s *all;", ("variables", "", "all", "const s *")),
        ("static const int sizes[2] = {1, 2};", ("variables", "", "sizes", "const int[2]")),
        ("#define SIZE 64", ("macros", "", "SIZE", "64")),
        ("#define SIZE \\\n(64)", ("macros", "", "SIZE", "(64)")),
        ("#define LEGACY ((void *)0x1)", ("macros", "", "LEGACY", "((void*)0x1)")),
        ("#define MAX(a, b) ((a) > (b) ? (a) : (b))", ("macros", "", "MAX", "(a, b)")),
        ("#define LIB_VERSION 13000", ("macros", "", "LIB_VERSION", "")),
    ],
)
def test_header_gives_normalized_form(text: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    assert expected in rows(forms(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "#ifndef A_H\n#define A_H\n#endif",
        "#define API extern",
        "#define CALL __attribute__((cdecl))",
        "#define _INTERNAL 1",
        "#define GONE 1\n#undef GONE",
        "struct announced;",
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>",
        "typedef struct s s;",
    ],
)
def test_header_without_public_names_is_empty(text: str, tmp_path: Path) -> None:
    assert forms(tmp_path, text) == HeaderForms()


def test_macro_for_function_gives_function_with_symbol(tmp_path: Path) -> None:
    text = """
        #define VARIANT(name) name
        #define open VARIANT(open_v2)
        #define close VARIANT(close)
        #define again open
        int open(int mode);
        int close(void);
    """
    functions = {one.name: one for one in forms(tmp_path, text).declared}
    assert functions["open"] == Declared("functions", "", "open", "int (int mode)", "open_v2")
    assert functions["open_v2"] == Declared("functions", "", "open_v2", "int (int mode)")
    assert functions["close"] == Declared("functions", "", "close", "int (void)")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("__attribute__((deprecated)) int f(void);", ""),
        ('__attribute__((deprecated("Use g"))) int f(void);', "Use g"),
        ("/** Opens.\n * \\deprecated Use g. It is faster.\n */ int f(void);", "Use g"),
        ("/** Opens. */ int f(void);", None),
        ("/** Deprecated functions are elsewhere. */ int f(void);", None),
        ("enum e {\n  f = 1, /**< Deprecated, use g */\n};", "use g"),
        ("struct s {\n  int f; /**< The rate. Deprecated. Use g */\n};", "Use g"),
    ],
)
def test_deprecation_gives_note(text: str, note: str | None, tmp_path: Path) -> None:
    (one,) = (one for one in forms(tmp_path, text).declared if one.name == "f")
    assert one.note == note


def test_names_of_included_headers_do_not_count(tmp_path: Path) -> None:
    found = parsed(tmp_path, {"a.h": "int f(void);", "b.h": '#include "a.h"\nint g(void);'})
    assert rows(found["b.h"]) == {("functions", "", "g", "int (void)")}


def test_header_that_requires_another_is_read_through_its_includer(tmp_path: Path) -> None:
    files = {"api.h": "handle open(void);", "main.h": 'typedef int handle;\n#include "api.h"\n'}
    assert rows(parsed(tmp_path, files)["api.h"]) == {("functions", "", "open", "handle (void)")}


def test_names_of_cpp_are_read_through_the_includer(tmp_path: Path) -> None:
    """Without the macro, the first line in C++ would declare a variable."""
    text = (
        "MACRO size_t f(void);\n#if defined(__cplusplus)\n"
        "MACRO int g(int a);\nMACRO int h(int a);\n#endif\n"
    )
    includer = '#include <stddef.h>\n#define MACRO\n#include "a.h"\n'
    found = parsed(tmp_path, {"a.h": text, "b.h": includer})["a.h"]
    assert {(section, name) for section, _, name, _ in rows(found)} == {
        ("functions", "f"),
        ("names", "g"),
        ("names", "h"),
    }


@pytest.mark.parametrize("name", ["cstdint", "cstdio", "nccl.h"])
def test_header_of_c_with_header_of_others_gives_types(name: str, tmp_path: Path) -> None:
    found = forms(tmp_path, f"#include <{name}>\nint f(void);")
    assert rows(found) == {("functions", "", "f", "int (void)")}


def test_header_of_cpp_gives_top_level_names(tmp_path: Path) -> None:
    text = """
        namespace lib { template <class T> T half(T x); class pair { void inner(); };
        namespace detail { int hidden(); } }
        enum class color { red };
    """
    found = forms(tmp_path, text)
    assert not found.error
    assert [one.name for one in found.declared] == ["color", "lib::half", "lib::pair"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("namespace lib { inline namespace v1 { int f(); } }", ["lib::f"]),
        ("namespace lib { inline namespace __4 { int f(); int __g(); } }", ["lib::f"]),
        ("namespace lib { namespace scan_detail { int f(); } }", []),
        ("namespace lib { constexpr int size = 3; }", ["lib::size"]),
        ("namespace a { class x {}; } namespace b { using a::x; }", ["a::x", "b::x"]),
        ("#include <cstddef>\nusing std::size_t; namespace a { size_t f(); }", ["a::f"]),
        ("#include <type_traits>\nnamespace a { using std::enable_if_t; }", ["a::enable_if_t"]),
        ("class __half {};", ["__half"]),
    ],
)
def test_names_of_cpp_are_those_of_callers(text: str, names: list[str], tmp_path: Path) -> None:
    found = forms(tmp_path, text)
    assert not found.error
    assert [one.name for one in found.declared] == names


def test_library_of_cpp_gives_names_of_public_headers(tmp_path: Path) -> None:
    files = {
        "lib/main.h": '#include "lib/__parts/part.h"\nnamespace lib { int f(); }\n#define SIZE 64',
        "lib/parts.h": '#include "lib/__parts/part.h"\nnamespace lib { int g(part); }',
        "lib/broken.h": "namespace lib { unknown f(int); int h(); }",
        "lib/__parts/part.h": "#pragma once\nnamespace lib { struct part {}; }",
    }
    tree = IncludeTree({path: text.encode() for path, text in files.items()})
    folders = tree.write(tmp_path, files)
    found = parse_headers(folders, ParseRequest(headers_of_cpp(files), is_library=True))
    assert found.keys() == {"lib/main.h", "lib/parts.h", "lib/broken.h"}
    named = {path: {one.name for one in names.declared} for path, names in found.items()}
    assert named["lib/main.h"] == {"SIZE", "lib::f"}
    assert named["lib/parts.h"] == {"lib::g", "lib::part"}
    assert "lib::h" in named["lib/broken.h"]
    errors = {path: names.error for path, names in found.items() if names.error}
    assert errors == {"lib/broken.h": "lib/broken.h:1: unknown type name 'unknown'"}


@pytest.mark.parametrize(
    ("private", "public"),
    [
        ("cuda/std/__optional/optional.h", "cuda/std/optional"),
        ("cuda/std/__tuple_dir/get.h", "cuda/std/tuple"),
        ("cuda/std/detail/libcxx/include/__functional/hash.h", "cuda/std/functional"),
        ("cccl/thrust/detail/pair.inl", "cccl/thrust/pair.h"),
        ("cccl/thrust/detail/config.h", None),
        ("cub/agent/agent_scan.cuh", None),
    ],
)
def test_private_header_belongs_to_public_one(private: str, public: str | None) -> None:
    headers = (
        *("cuda/std/optional", "cuda/std/tuple", "cuda/std/functional"),
        *("cccl/thrust/pair.h", "cub/cub.cuh"),
    )
    parts = headers_of_cpp([private, *headers])
    assert parts == {header: [private] if header == public else [] for header in headers}


def test_names_of_headers_in_extern_c_do_not_count(tmp_path: Path) -> None:
    files = {
        "a.h": "int f(void);",
        "b.h": """
            #ifdef __cplusplus
            extern "C" {
            #endif
            #include "a.h"
            #if defined(__cplusplus)
            }
            int g(void);
            #endif
        """,
    }
    (one,) = parsed(tmp_path, files)["b.h"].declared
    assert (one.section, one.name) == ("names", "g")


def test_header_for_both_languages_gives_more_names(tmp_path: Path) -> None:
    text = """
        #if defined(__cplusplus)
        extern "C" {
        #endif
        int f(int x);
        #if defined(__cplusplus)
        }
        template <class T> T f(T x);
        template <class T> T g(T x);
        #endif
    """
    assert {(one.section, one.name) for one in forms(tmp_path, text).declared} == {
        ("functions", "f"),
        ("names", "g"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "int f(unknown x);",
        '#include "missing.h"\nint f(void);',
        '#include "/etc/passwd"\n',
        '#include "../../../../../../../../etc/passwd"\n',
        '#include "a.h"\n',
        '#include_next "a.h"\n',
        "#error broken\n",
        "\0\x01\x02",
        "struct {" * 5000,
        "int f(" * 3000,
    ],
)
def test_hostile_header_gives_error_without_paths(text: str, tmp_path: Path) -> None:
    found = forms(tmp_path, text)
    assert found.error
    assert not [one for one in found.declared if one.section != "names"]
    assert str(tmp_path) not in found.error


def test_process_loses_only_the_header_that_stops_it(tmp_path: Path, patch: Patch) -> None:
    # Filling 4 GB twice takes most of a minute. The parser itself needs 230 MB.
    patch("cudaredist.tables.api.header_process._MEMORY_MB", 512)
    doubling = "".join(f"#define M{n} M{n - 1} M{n - 1}\n" for n in range(1, 40))
    files = {
        "a.h": "int f(void);",
        "b.h": f"#define M0 +1\n{doubling}int x = 0 M39;\n",
        "c.h": "int g(void);",
    }
    tree = IncludeTree({path: text.encode() for path, text in files.items()})
    found = parse_headers(tree.write(tmp_path, files), ParseRequest(dict.fromkeys(files, ())))
    assert [bool(found[path].error) for path in files] == [False, True, False]
    assert found["b.h"].is_transient
