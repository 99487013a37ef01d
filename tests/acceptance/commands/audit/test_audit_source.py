"""Tests of `audit --source`: names of CUDA's API in source code, by release."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from conftest import Run
from support.patching import Patch
from support.running import expect_error, expect_output

from cudaredist.progress import NO_PROGRESS
from cudaredist.source_code import reader_processes
from cudaredist.source_code.branches import Evaluator
from cudaredist.source_code.read_code import Interest
from cudaredist.source_code.read_file import FileReader, SourceFile

Finding = tuple[int, str, str, str]
"""The line, certainty, change and name."""

_PROPERTIES = "cudaDeviceProp prop; cudaGetDeviceProperties(&prop, 0);\n"


pytestmark = pytest.mark.usefixtures("shared_api")


def _findings(run: Run, *arguments: str) -> list[Finding]:
    report = json.loads(run("audit", "--source", *arguments, "--json").stdout)
    return [
        (one["line"], one["certainty"], one["change"], one["name"]) for one in report["findings"]
    ]


def _write(data: bytes, name: str = "a.cu") -> None:
    Path("src").mkdir(exist_ok=True)
    Path("src", name).write_bytes(data)


def _audit(run: Run, code: str, name: str = "a.cu") -> list[Finding]:
    """Return the findings about a file for CUDA 13.0, without deprecated names."""
    _write(code.encode(), name)
    findings = _findings(run, "src", "--require-cuda", "13.0")
    return [finding for finding in findings if finding[1] != "deprecated"]


_CLOCK = (2, "sure", "removed", "cudaDeviceProp.clockRate")
_PREFETCH = "cudaMemPrefetchAsync"
_CHANGED = (1, "sure", "changed", _PREFETCH)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # Functions without a form in 13.0.
        ("cudaThreadSynchronize();", [(1, "sure", "removed", "cudaThreadSynchronize")]),
        ("::cudaThreadSynchronize();", [(1, "sure", "removed", "cudaThreadSynchronize")]),
        ("f = &cudaThreadExit;", [(1, "perhaps", "removed", "cudaThreadExit")]),
        ("mine::cudaThreadSynchronize();", []),
        ("x.cudaThreadSynchronize(); y->cudaThreadExit();", []),
        ("// cudaThreadExit();\n/* cudaThreadExit(); */", []),
        ('const char *a = "cudaThreadExit()", b = R"x(cudaThreadExit())x";', []),
        ("cudaThread\\\nExit();", [(1, "sure", "removed", "cudaThreadExit")]),
        ("#define STOP() \\\n  cudaThreadExit()", [(2, "sure", "removed", "cudaThreadExit")]),
        # Alternatives for other releases, selected by a macro of the build.
        (
            "#if WITH_CTX\nnppiMirror_8u_C1R_Ctx(a);\n#else\nnppiMirror_8u_C1R(a);\n#endif",
            [(4, "perhaps", "removed", "nppiMirror_8u_C1R")],
        ),
        (
            "#ifdef V3\n#include <nvtx3/nvToolsExt.h>\n#else\n#include <nvToolsExt.h>\n#endif",
            [(4, "perhaps", "removed", "nvToolsExt.h")],
        ),
        ("#if A\nnppiMirror_8u_C1R(a);\n#endif", [(2, "sure", "removed", "nppiMirror_8u_C1R")]),
        # Functions that the source has itself.
        (
            "int cudaThreadExit(int x) { return x; }\nvoid f() { cudaThreadExit(1); }",
            [(2, "perhaps", "removed", "cudaThreadExit")],
        ),
        (
            "#define cudaThreadExit cudaDeviceReset\ncudaThreadExit();",
            [(2, "perhaps", "removed", "cudaThreadExit")],
        ),
        (
            "#define cudaThreadExit hipDeviceReset\ncudaThreadExit();",
            [(2, "sure", "removed", "cudaThreadExit")],
        ),
        # Names that macros form from others.
        ("#define P(f) p_##f\nP(cudaThreadExit());", []),
        (
            "#define P(a, f) { a; p_ ## f; e(#f); }\nP(g(1, 2), cudaThreadExit());\n"
            "P(cudaThreadExit(), 1);",
            [(3, "sure", "removed", "cudaThreadExit")],
        ),
        (
            "#define P(f) e(f, #f)\nP(cudaThreadExit());",
            [(2, "sure", "removed", "cudaThreadExit")],
        ),
        (
            "#if CUDART_VERSION < 13000\n#define P(f) p_##f\n#else\n#define P(f) f\n#endif\n"
            "P(cudaThreadExit());",
            [(6, "sure", "removed", "cudaThreadExit")],
        ),
        ("CHECK(cuCtxCreate, (&c, 0, d));", [(1, "perhaps", "changed", "cuCtxCreate")]),
        ("CHECK(cuCtxCreate, (&c, NULL, 0, d));", []),
        # Enumerators, types and headers.
        (
            "int a = cudaDevAttrCooperativeMultiDeviceLaunch;",
            [(1, "sure", "removed", "cudaDevAttrCooperativeMultiDeviceLaunch")],
        ),
        ("struct cudaLaunchParams p;", [(1, "sure", "removed", "cudaLaunchParams")]),
        # Fields.
        (f"{_PROPERTIES}prop.clockRate;", [_CLOCK]),
        ("void f(const cudaDeviceProp *p) {\np->clockRate; }", [_CLOCK]),
        ("std::vector<cudaDeviceProp> all;\nall[i].clockRate;", [_CLOCK]),
        (
            "f()->clockRate; g.computeMode;",
            [
                (1, "perhaps", "removed", "cudaDeviceProp.clockRate"),
                (1, "perhaps", "removed", "cudaDeviceProp.computeMode"),
            ],
        ),
        ("int clockRate = 1;\nprint(clockRate);", []),
        (
            f"struct Mine {{ int clockRate; }};\n{_PROPERTIES}mine.clockRate;",
            [(3, "perhaps", "removed", "cudaDeviceProp.clockRate")],
        ),
        ("cudaDeviceProp p;\nhipDeviceProp_t h; h.clockRate;", []),
        # Functions with other parameters.
        (f"{_PREFETCH}(p, n, 0, s);", [_CHANGED]),
        (f"{_PREFETCH}(p, n, 0);", [_CHANGED]),
        (f"{_PREFETCH}(p, n, {{cudaMemLocationTypeHost, 0}}, 0, s);", []),
        (f"cudaMemLocation l{{}}; {_PREFETCH}(p, n, l, 0);", []),
        (f"{_PREFETCH}(p, f<a, b>(c), g(d, e), s);", [_CHANGED]),
        (f"cudaMemLocation l;\nint d; {_PREFETCH}(p, n, d, s);", [(2, *_CHANGED[1:])]),
        (f"cudaMemLocation l;\n{_PREFETCH}(p, n, f(), s);", [(2, "perhaps", *_CHANGED[2:])]),
        (f"#define P(...) {_PREFETCH}(__VA_ARGS__)", []),
        ("#include <thrust/sort.h>\n#include <cub/cub.cuh>", []),
        ("cudaStreamGetCaptureInfo(s, &status, &id);", []),
        (
            "cudaGraphAddDependencies(g, f, t, n);",
            [(1, *_CHANGED[1:3], "cudaGraphAddDependencies")],
        ),
        (
            "cudaGraphInstantiate(&e, g, nullptr, log, 9);",
            [(1, "perhaps", "changed", "cudaGraphInstantiate")],
        ),
        # Conditions.
        ("#if CUDART_VERSION < 13000\ncudaThreadExit();\n#endif", []),
        (
            "#if CUDART_VERSION >= 12000\ncudaThreadExit();\n#endif",
            [(2, "sure", "removed", "cudaThreadExit")],
        ),
        ("#if CUDA_VERSION / 1000 >= 13\n#else\ncudaThreadExit();\n#endif", []),
        ("#if !(__CUDACC_VER_MAJOR__ > 12)\ncudaThreadExit();\n#endif", []),
        (
            "#define HAS_CTX (NPP_VERSION >= 12000)\n#if !HAS_CTX\ncudaThreadExit();\n#endif",
            [(3, "perhaps", "removed", "cudaThreadExit")],
        ),
        (
            "#define CTK() (CUDART_VERSION / 1000, 0)\n"
            "#define LEAST(...) COMPARE(CTK, __VA_ARGS__)\n"
            "#define IS_OLD !LEAST(13, 0)\n#if IS_OLD\ncudaThreadExit();\n#endif",
            [(5, "perhaps", "removed", "cudaThreadExit")],
        ),
        ("#if 0\ncudaThreadExit();\n#elif 1\n#endif", []),
        ("#ifdef USE_HIP\ncudaThreadExit();\n#endif", []),
        ("#if defined(USE_CUDA)\ncudaThreadExit();\n#endif", [(2, *_CLOCK[1:3], "cudaThreadExit")]),
        (
            "#ifdef HAVE_CUDA13\n#else\ncudaThreadExit();\n#endif",
            [(3, "perhaps", "removed", "cudaThreadExit")],
        ),
        (
            f"#ifdef NEW\n{_PREFETCH}(p, n, {{}}, 0, s);\n#else\n{_PREFETCH}(p, n, 0, s);\n#endif",
            [(4, "perhaps", "changed", _PREFETCH)],
        ),
        (
            "#if CUDART_VERSION >= 13000\n#define NEW\n#endif\n"
            "#ifndef NEW\ncudaThreadExit();\n#endif",
            [],
        ),
        ("#define OLD (CUDA_VERSION < 13000)\n#if OLD\ncudaThreadExit();\n#endif", []),
        (
            "#define HAS(a, b) (CUDA_VERSION >= (a) * 1000 + (b) * 10)\n"
            "#if !HAS(13, 0)\ncudaThreadExit();\n#endif",
            [],
        ),
    ],
)
def test_use_of_name_is_found_by_its_form(run: Run, code: str, expected: list[Finding]) -> None:
    assert _audit(run, code) == expected


def test_code_in_folder_of_dead_code_is_not_sure(run: Run) -> None:
    Path("src/deadcode").mkdir(parents=True)
    assert _audit(run, "cudaThreadExit();", "deadcode/a.cu") == [
        (1, "perhaps", "removed", "cudaThreadExit")
    ]


def test_call_in_c_has_no_default_values(run: Run) -> None:
    code = f"cudaMemLocation l; int d; {_PREFETCH}(p, n, d, s);"
    assert _audit(run, code, "a.c") == [_CHANGED]


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("a.pyx", f"# {_PREFETCH}\nruntime.{_PREFETCH}(p, n, d, s)", [_PREFETCH]),
        ("a.py", "cudart.cudaThreadExit()", ["cudaThreadExit"]),
        ("a.py", "names = ['cudaThreadExit']", []),
        ("a.rs", "unsafe { cudaThreadExit() };", ["cudaThreadExit"]),
        ("a.jl", "@ccall libcudart.cudaThreadExit()::cudaError_t", ["cudaThreadExit"]),
        ("a.t", 'f = terralib.externfunction("cudaThreadExit", {} -> int)', ["cudaThreadExit"]),
    ],
)
def test_other_language_is_read_as_text(
    run: Run, name: str, code: str, expected: list[str]
) -> None:
    findings = _audit(run, code, name)
    assert [(certainty, found) for _, certainty, _, found in findings] == [
        ("perhaps", name) for name in expected
    ]


def test_range_reports_the_releases_that_compile(run: Run) -> None:
    _write(f"{_PREFETCH}(p, n, 0, s);\n".encode())
    result = run("audit", "--source", "src", "--require-cuda", "12.9..13.0", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["compiles"]) == (1, "12.9.0..12.9.2")
    assert report["findings"][0]["releases"].startswith("13.0")
    text = expect_output(run("audit", "--source", "src", "--require-cuda", "12.9..13.0"), 1)
    assert "By these names, it compiles with 12.9.0..12.9.2." in text.stdout
    assert run("audit", "--source", "src", "--require-cuda", "12.9").exit_code == 0


def test_header_with_own_releases_is_not_sure(run: Run) -> None:
    _write(b"#include <nvtx3/nvtx3.hpp>\n")
    assert _findings(run, "src", "--require-cuda", "12.4") == [
        (1, "perhaps", "added later", "nvtx3/nvtx3.hpp")
    ]


def test_report_has_both_forms_and_the_line(run: Run) -> None:
    _write(f"\n{_PREFETCH}(p, n, 0, s);\n".encode())
    call = ("audit", "--source", "src", "--require-cuda", "13.0")
    text = run(*call).stdout
    assert "finding: CUDA 13.0.0 changed the parameters of cudaMemPrefetchAsync" in text
    assert "int dstDevice, cudaStream_t stream)" in text
    assert "argument 3 is cudaMemLocation location" in text
    assert "  a.cu:2" in text.splitlines()
    (result,) = json.loads(run(*call, "--format", "sarif").stdout)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}
    assert "::error file=a.cu,line=2,title=api::" in run(*call, "--format", "github").stdout
    assert "| finding |" in run(*call, "--format", "markdown").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cuda", "99"], "99"),
        (["--require-cuda", "13.0..12.9"], "12.9 is before 13.0"),
        (["--require-gpu", "T4"], "--require-gpu cannot be combined with --source"),
        (["--format", "nix"], "--format nix cannot be combined with --source"),
    ],
)
def test_wrong_call_is_refused(run: Run, options: list[str], words: str) -> None:
    _write(b"")
    expect_error(run("audit", "--source", "src", *options), 2, words)


def test_odd_files_are_read_or_reported(run: Run) -> None:
    folder = Path("src")
    folder.mkdir()
    (folder / "a.cu").write_bytes("cudaThreadExit();".encode("utf-16"))
    (folder / "b.cu").write_bytes(b"\xff\0\xfe cudaThreadExit();\r\n" + b"(" * 5000)
    (folder / "c.cu").write_bytes(b"cudaMemPrefetchAsync(" * 2000 + b"#if " + b"(" * 9000)
    (folder / "d.cu").write_bytes(b"#if 1\n" * 20_000 + b"cudaThreadExit();")
    (folder / "loop").symlink_to(folder.resolve())
    (folder / "link.cu").symlink_to("/etc/passwd")
    (folder / "e.cu").write_bytes(b"x" * (17 << 20))
    result = run("audit", "--source", "src", "--require-cuda", "13.0", "--json")
    report = json.loads(result.stdout)
    paths = {finding["path"] for finding in report["findings"] if finding["exit_code"]}
    assert paths == {"a.cu", "b.cu", "d.cu"}
    assert report["skipped"] == ["c.cu (needs too much work)", "e.cu (larger than 16 MB)"]


def test_file_that_is_not_read_makes_the_answer_incomplete(run: Run) -> None:
    _write(b"x" * (17 << 20))
    result = expect_output(run("audit", "--source", "src", "--require-cuda", "13.0"), 3)
    assert "No findings, 1 file not read." in result.stdout
    assert "note: not read: a.cu (larger than 16 MB)" in result.stdout


@pytest.mark.parametrize("name", ["a.py", "a.cu"])
def test_call_with_many_comparisons_or_calls_ends(run: Run, name: str) -> None:
    _write(
        f"{_PREFETCH}({'a<b,' * 900}1);\n".encode() * 90 + f"{_PREFETCH}(".encode() * 9_000, name
    )
    result = run("audit", "--source", "src", "--require-cuda", "13.0", "--json")
    assert json.loads(result.stdout)["skipped"] == [f"{name} (needs too much work)"]


@pytest.mark.parametrize(
    ("path", "include", "expected"),
    [
        ("nvToolsExt.h", '"nvToolsExt.h"', []),
        ("lib/nvToolsExt.h", '"nvToolsExt.h"', ["perhaps"]),
        ("nvToolsExt.h", "<nvToolsExt.h>", ["perhaps"]),
        ("xnvToolsExt.h", '"nvToolsExt.h"', ["sure"]),
    ],
)
def test_header_of_the_source_itself_is_not_sure(
    run: Run, path: str, include: str, expected: list[str]
) -> None:
    Path("src/lib").mkdir(parents=True)
    _write(b"", path)
    assert [found[1] for found in _audit(run, f"#include {include}")] == expected


def test_processes_find_the_same_uses(run: Run, patch: Patch) -> None:
    for number in range(5):
        _write(b"#if NEW\ncudaThreadExit();\n#endif\n" * 3, f"{number}.cu")
    _write(b"#if CUDART_VERSION >= 13000\n#define NEW 1\n#else\n#define NEW 0\n#endif\n", "new.h")
    _write(b"x" * (17 << 20), "large.h")
    call = ("audit", "--source", "src", "--require-cuda", "12.9..13.0", "--json")
    expected = run(*call).stdout
    assert expected.count('"cudaThreadExit"') == 15
    patch(reader_processes, "_SIZE_FOR_PROCESS", 1)
    patch(reader_processes, "_BATCH_FILES", 1)
    patch(os, "cpu_count", lambda: 2)
    assert run(*call).stdout == expected


def test_file_of_a_process_that_ends_is_reported(patch: Patch) -> None:
    patch(reader_processes, "_SIZE_FOR_PROCESS", 1)
    patch(reader_processes, "_BATCH_FILES", 2)
    patch(os, "cpu_count", lambda: 2)
    files = [SourceFile(Path(f"{number}.c"), f"{number}.c", 1) for number in range(9)]
    with reader_processes.readers(9, NO_PROGRESS) as readers:
        for process in multiprocessing.active_children():
            process.kill()
        facts = readers.read(FileReader(Interest(set(), set(), set(), set()), Evaluator([])), files)
    assert [(one.name, one.reason) for one in facts] == [
        (file.name, "the process that read it ended") for file in files
    ]


@pytest.mark.parametrize(("include", "certainty"), [('#include "shim.h"', "perhaps"), ("", "sure")])
def test_declaration_counts_where_its_file_is_included(
    run: Run, include: str, certainty: str
) -> None:
    _write(b"int cudaThreadExit(int);", "shim.h")
    found = _audit(run, f"{include}\nvoid f() {{ cudaThreadExit(1); }}")
    assert found == [(2, certainty, "removed", "cudaThreadExit")]


def test_value_of_a_pointer_to_an_integer_is_no_struct(run: Run) -> None:
    code = "void f(int *id, cudaStream_t s) { cudaMemPrefetchAsync(p, n, *id, s); }"
    assert _audit(run, code) == [_CHANGED]
