"""Tests of `explain api`: names of NVIDIA's headers by release."""

import json

import pytest
from conftest import Run
from support.running import expect_error, expect_output


def test_function_has_its_forms_by_release(run: Run) -> None:
    report = json.loads(run("explain", "api", "cudaMemPrefetchAsync", "--json").stdout)
    (entry,) = report["entries"]  # without the overload of C++ in cuda_runtime.h
    assert (entry["kind"], entry["header"]) == ("function", "cuda_runtime_api.h")
    assert "libcudart.so.13" in entry["libraries"]
    old, new = entry["forms"]
    assert "int dstDevice" in old["signature"]
    assert "cudaMemLocation location" in new["signature"]
    assert old["releases"].endswith("12.9.2")
    assert new["releases"].startswith("13.0.0")


def test_field_has_the_release_that_removed_it(run: Run) -> None:
    result = expect_output(run("explain", "api", "cudaDeviceProp.clockRate"), 0)
    first = result.stdout.splitlines()[0]
    assert first.startswith("cudaDeviceProp.clockRate: field of driver_types.h (cuda_cudart)")
    assert first.endswith("removed in 13.0.0")


@pytest.mark.parametrize("name", ["thrust/sort.h", "cccl/thrust/sort.h"])
def test_moved_header_is_one_entry(run: Run, name: str) -> None:
    lines = expect_output(run("explain", "api", name), 0).stdout.splitlines()
    assert lines[0] == "thrust/sort.h: header of cuda_cccl"
    assert lines[1].endswith("..12.9.2")
    assert lines[2].startswith("  13.0.0..")
    assert lines[2].endswith(" (in the folder cccl/, which nvcc searches)")


def test_struct_has_its_fields_by_release(run: Run) -> None:
    result = expect_output(run("explain", "api", "cudaDeviceProp"), 0)
    assert "12.9.2: clockRate, computeMode" in result.stdout
    assert "13.5.0: deviceNumaConfig" in result.stdout


def test_symbol_behind_macro_is_found(run: Run) -> None:
    report = json.loads(run("explain", "api", "cuMemAlloc_v2", "--json").stdout)
    (entry,) = report["entries"]
    assert entry["name"] == "cuMemAlloc_v2"
    assert entry["forms"][-1]["signature"].startswith("CUresult cuMemAlloc(")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("cudaMemPrefetchAsyn", "cudaMemPrefetchAsync"),
        ("cudaDeviceProp.clokRate", "cudaDeviceProp.clockRate"),
    ],
)
def test_misspelled_name_has_suggestions(run: Run, name: str, suggestion: str) -> None:
    expect_error(run("explain", "api", name), 2, f"did you mean {suggestion}")


@pytest.mark.parametrize("name", ["cudaDevAttrClockRate", "cudaDeviceProp.clockRate"])
def test_word_of_an_api_needs_no_subject(run: Run, name: str) -> None:
    result = expect_output(run("explain", name), 0)
    assert f"{name} is a name of an API: `cudaredist explain api {name}`" in result.stderr
    assert result.stdout == run("explain", "api", name).stdout


def test_exported_symbol_has_its_declaration(run: Run) -> None:
    result = expect_output(run("which", "--symbol", "cudaMemPrefetchAsync"), 0)
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("declaration: "))
    assert "cudaMemLocation location" in line
