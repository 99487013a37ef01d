"""Tests of `diff --api`: names in the headers of two releases."""

import json
import re

import pytest
from conftest import Run
from support.running import expect_error, expect_output

pytestmark = pytest.mark.usefixtures("shared_api")


def test_changes_have_both_declarations(run: Run) -> None:
    report = json.loads(run("diff", "--api", "cuda@12.9.1", "13.0.0", "--json").stdout)
    assert (report["old"], report["new"]) == ("cuda@12.9.1", "cuda@13.0.0")
    changes = {(one["status"], one["name"]): one for one in report["changes"]}
    assert changes["removed", "cudaDeviceProp.clockRate"]["kind"] == "field"
    assert ("removed", "cudaThreadExit") in changes
    assert ("added", "cudaDeviceProp.deviceNumaId") in changes
    prefetch = changes["changed", "cudaMemPrefetchAsync"]
    assert "int dstDevice" in prefetch["old"]
    assert "cudaMemLocation location" in prefetch["new"]
    assert prefetch["advice"].startswith("argument 3 is cudaMemLocation location")
    # In 13.0, the name is a macro for the function of 12.9.
    assert ("removed", "cuMemPrefetchAsync_v2") not in changes
    counts = {(one["status"], one["kind"]): one["count"] for one in report["counts"]}
    fields = [key for key, one in changes.items() if key[0] == "removed" and one["kind"] == "field"]
    assert counts["removed", "field"] == len(fields)


def test_functions_come_first(run: Run) -> None:
    text = expect_output(run("diff", "--api", "12.9.1", "13.0.0"), 0).stdout
    titles = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[:3] == ["removed functions:", "changed functions:", "removed fields:"]
    assert "in calls: argument 3 is cudaMemLocation location" in text
    assert re.search(r"\n  cuda_cccl\n    cub: \d+ headers to the folder cccl/", text)
    markdown = run("diff", "--api", "12.9.1", "13.0.0", "--format", "markdown").stdout
    assert "**Removed functions**" in markdown


def test_comparison_of_releases_counts_names(run: Run) -> None:
    text = run("diff", "12.9.1", "13.0.0").stdout
    (line,) = (line for line in text.splitlines() if line.endswith(" added") and "fields" in line)
    assert " removed; " in line


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("--api cuda@12.9 cudnn@9", "requires two releases of one product"),
        ("--api 12.9 99", "99"),
        ("--api a.json b.json", "--api compares releases"),
        ("--api --symbols 12.9 13.0", "--api cannot be combined with --symbols"),
    ],
)
def test_wrong_call_is_refused(run: Run, call: str, words: str) -> None:
    expect_error(run("diff", *call.split()), 2, words)
