"""Tests of `explain WORD`: the subject of a word, candidates, and unknown words."""

import json
import re
import shlex
from pathlib import Path

import pytest
from conftest import Run
from support.running import expect_error, expect_output, succeed

BUILD = "build --cuda 12.8 --platform linux-x86_64 --quiet --output"

SUBJECTS = {
    "T4": "explain gpu T4",
    "GTX 1080": "explain gpu 'GTX 1080'",
    "h100": "explain gpu h100",
    "sm90": "explain gpu sm90",
    "sm_90": "explain gpu sm_90",
    "9.0a": "explain gpu 9.0a",
    "7.5": "explain gpu 7.5",
    "13.0": "explain cuda 13.0",
    "v12.8": "explain cuda 12.8",
    "12,8": "explain cuda 12.8",
    "cu128": "explain cuda 12.8",
    "cuda-12.8": "explain cuda 12.8",
    "cuda-toolkit-12-8": "explain cuda 12.8",
    "cuda@12.9": "explain cuda 12.9",
    "12.8.0": "explain cuda 12.8.0",
    "535.104": "explain driver 535.104",
    "R580": "explain driver 580",
    "gcc 13": "explain nvcc 'gcc 13'",
    "g++-13": "explain nvcc g++-13",
    "cudnn": "explain package cudnn",
    "cudnn@9.10": "explain package cudnn@9.10",
    "cudnn 9.10": "explain package cudnn@9.10",
    "9.28.1": "explain package cudnn@9.28.1",
    "cutensor": "explain package cutensor",
    "cublas": "explain package libcublas",
    "nvtx": "explain package cuda_nvtx",
    "nvidia-cublas-cu12": "explain package nvidia-cublas-cu12",
    "libcublas.so.12": "which libcublas.so.12",
    "lib/libcublas.so.12": "which lib/libcublas.so.12",
    "nvcc": "which nvcc",
    "cublasLtMatmul": "which --symbol cublasLtMatmul",
}
"""Words, and the command that the note names."""


@pytest.mark.parametrize(
    ("word", "call"),
    [
        ("JetPack 6.2", "explain jetpack 6.2"),
        ("jp-6.2", "explain jetpack 6.2"),
        ("L4T R36.4.3", "explain l4t 36.4.3"),
    ],
)
def test_release_of_jetpack_is_answered_with_its_builds(run: Run, word: str, call: str) -> None:
    result = expect_output(run("explain", word), 0)
    assert result.stdout == run(*call.split()).stdout
    lines = result.stdout.splitlines()
    assert lines[0].startswith("JetPack 6.2 (L4T 36.4.3): CUDA 12.6, cuDNN 9.3.0.75, TensorRT 10.3")
    assert lines[2].startswith("newest releases with builds for linux-aarch64 and CUDA 12: CUDA")
    document = json.loads(run(*call.split(), "--json").stdout)
    facts = {fact["name"]: fact for topic in document["topics"] for fact in topic["facts"]}
    assert (document["kind"], facts["cuda"]["value"]) == ("jetpack", "12.6")


@pytest.mark.parametrize("word", SUBJECTS)
def test_word_is_answered_as_its_subject(run: Run, word: str) -> None:
    result = expect_output(run("explain", word), 0)
    note, *_ = result.stderr.splitlines()
    assert note.endswith(f"`cudaredist {SUBJECTS[word]}`")
    assert result.stdout == run(*shlex.split(SUBJECTS[word])).stdout


@pytest.mark.parametrize("words", [("cuda", "12.8"), ("CUDA", "12.8"), ("cuda 12.8",)])
def test_subject_before_the_name_is_not_a_word(run: Run, words: tuple[str, ...]) -> None:
    result = run("explain", *words)
    assert result.stdout == run("explain", "12.8").stdout
    assert "is a CUDA release" not in result.stderr


def test_ambiguous_word_lists_the_candidates(run: Run) -> None:
    result = expect_output(run("explain", "12.0"), 0)
    assert result.stdout.startswith("CUDA 12.0.1")
    assert "it is also a GPU: `cudaredist explain gpu 12.0`" in result.stderr


@pytest.mark.parametrize("word", ["cuda", "cuda-toolkit"])
def test_cuda_alone_is_the_newest_release(run: Run, word: str) -> None:
    result = expect_output(run("explain", word), 0)
    assert re.fullmatch(r"CUDA [\d.]+, nvcc .*", result.stdout.splitlines()[0])


@pytest.mark.parametrize(
    ("word", "error", "call"),
    [
        ("cudn", "no subject is called 'cudn'", "cudaredist explain cudnn"),
        ("gpu", "the subject gpu requires a name", "cudaredist explain gpu T4"),
        ("driver", "requires a name", "cudaredist explain driver 580.95"),
        ("package ", "the subject package requires a name", "cudaredist explain package "),
        ("", "explain requires a word", "cudaredist explain T4"),
        ("foo bar", "'foo bar' is not a known name", "cudaredist explain libcublas.so.12"),
        ("packge nccl", "'packge' is not one of 'nvcc'", "cudaredist explain package nccl"),
        ("14.0", "CUDA 14.0 is not in the data", "cudaredist explain 13.5"),
        ("sm_95", "compute capability 9.5 is not in the data", "cudaredist explain 9.0"),
        ("rtx5099", "GPU 'rtx5099' is not in the data", "cudaredist explain 'GeForce RTX 5090'"),
        ("cudnn@9.99", "cudnn 9.99 is not in the data", "cudaredist explain cudnn@9.28.1"),
        ("gcc", "'gcc' is not a version of a compiler", "cudaredist explain 'gcc 15'"),
        ("vs 2001", "is not a known version of Visual Studio", "cudaredist explain 'visual studio"),
    ],
)
def test_unknown_word_has_hint(run: Run, word: str, error: str, call: str) -> None:
    expect_error(run("explain", word), 2, error, f"`{call}")


@pytest.mark.parametrize(
    ("words", "error", "call"),
    [
        ("cuda 9.0", "CUDA 9.0 is not in the data", "cudaredist explain cuda 11.0"),
        ("nvcc 10.2", "CUDA 10.2 is not in the data", "cudaredist explain nvcc 11.0"),
        ("driver 12.9", "no driver is called '12.9'", "cudaredist explain cuda 12.9"),
        ("gpu 99", "compute capability 9.9 is not in the data", "cudaredist explain gpu 9.0"),
        ("package cublas", "package 'cublas' is not in", "cudaredist explain package libcublas"),
        ("package libcublass", "'libcublass' is not", "cudaredist explain package libcublas"),
        ("driver 999", None, "Driver branch 999 is not in the data, which ends with "),
    ],
)
def test_name_that_may_exist_is_not_in_data(
    run: Run, words: str, error: str | None, call: str
) -> None:
    result = run("explain", *words.split())
    if error is None:
        expect_output(result, 0, call)
    else:
        expect_error(result, 2, error, f"`{call}")


@pytest.mark.parametrize(
    ("word", "kind"), [("nosuchtool", "file"), ("cublasNoSuchName", "symbol"), ("@", "file")]
)
def test_word_of_no_form_is_searched(run: Run, word: str, kind: str) -> None:
    result = expect_output(run("explain", word), 3)
    assert f"{word} is not a known name, so it is searched as a {kind}" in result.stderr


def test_options_of_another_subject_are_refused(run: Run) -> None:
    expect_error(run("explain", "T4", "--all"), 2, "--all requires the subject package")


@pytest.mark.parametrize(
    ("compiler", "answer"),
    [
        ("gcc 15", "GCC 15 is accepted by CUDA 13.0 to "),
        ("clang 17", "Clang 17 is accepted by CUDA 12.4 to "),
        ("visual studio 2022", "Visual Studio 2022 is accepted by CUDA 12.4 to "),
        ("msvc 19.44", "Visual C++ 19.44 is accepted by CUDA 12.4 to "),
        ("icx 2024", "Intel ICX 2024 is not checked by CUDA 11.8 to 12.1; refused by CUDA 12.2"),
        ("gcc 99", "GCC 99 is refused by CUDA 11.0 to "),
    ],
)
def test_compiler_lists_the_releases_that_accept_it(run: Run, compiler: str, answer: str) -> None:
    result = expect_output(run("explain", "nvcc", compiler), 0)
    assert result.stdout.startswith(answer)
    assert result.stdout == run("explain", compiler).stdout
    report = json.loads(run("explain", compiler, "--json").stdout)
    assert report["kind"] == "nvcc"
    assert report["answer"].startswith(answer)


def test_package_of_set_has_its_reason(run: Run) -> None:
    succeed(*BUILD.split(), "set.json")
    for call in (("set", "set.json", "cuda_gdb"), ("set.json", "cuda_gdb")):
        first, second = run("explain", *call).stdout.splitlines()[:2]
        assert first.startswith("cuda_gdb is unsupported in cudaPackages_12_8 for linux-x86_64")
        assert second.startswith("reason: ")
    result = run("explain", "set", "set.json", "nvidia-cublas-cu12")
    assert re.match(r"libcublas [\d.]+ \(cuda 12\.8\.2\) is available in", result.stdout)
    report = json.loads(run("explain", "set.json", "libcusolver", "--json").stdout)
    assert (report["kind"], report["status"]) == ("package-of-set", "available")
    assert "libcublas" in report["depends"]
    expect_error(run("explain", "set.json", "libcublass"), 2, "explain set.json libcublas`")


def test_package_set_with_blanks_in_its_path_is_explained(run: Run) -> None:
    succeed(*BUILD.split(), "set.json")
    Path("set.json").rename("my set.json")
    text = run("explain", "set", "my set.json").stdout
    assert run("explain", "set", "my", "set.json").stdout == text
    assert run("explain", "my set.json", "cuda_gdb").stdout.startswith("cuda_gdb is unsupported")


def test_cuda_release_names_architectures_and_explains_letters(run: Run) -> None:
    text = run("explain", "12.9").stdout
    assert re.search(
        r"^architectures: .*Turing 7\.5 \(\w+.*\), .*Hopper 9\.0 \(", text, re.MULTILINE
    )
    assert "with a: code for this capability only; with f: for its family\n" in text
    assert "with a:" not in run("explain", "11.4").stdout


def test_output_of_an_export_is_named_if_it_is_read(run: Run) -> None:
    succeed(*BUILD.split(), "set.json")
    for name, title in {"cyclonedx": "a CycloneDX document", "spdx": "an SPDX document"}.items():
        succeed("export", name, "set.json", "--output", "other.json")
        result = run("export", "requirements", "other.json")
        expect_error(result, 5, f"is {title}, which cudaredist writes but cannot read")
