"""Alternatives for CUDA majors: the coverage of GPUs by the files that are loaded together."""

import pytest
from support.programs import cuda, file, judged

from cudaredist.commands.audit.text import audit_text
from cudaredist.programs.alternatives import files_by_release
from cudaredist.programs.program import AuditRequirements as Required
from cudaredist.programs.report import AuditInput

CU11 = file("x/libx_cuda118.so", "libcudart.so.11.0", code={"sm_70": 1})
CU12 = file("x/libx_cuda124.so", "libcudart.so.12", code={"sm_90": 1})
COMMON = file("x/_ext.so", code={"sm_70": 1, "sm_90": 1})


@pytest.mark.parametrize(
    ("paths", "releases"),
    [
        (["x/libx_cuda118.so", "x/libx_cuda121.so"], ["118", "121"]),
        (["x/cu12/_ext.so", "x/cu13/_ext.so", "x/_ext.so"], ["12", "13"]),
        (["x/libx-cuda12.4.so", "x/libx-cuda12.9.so"], ["12.4", "12.9"]),
        (["x/libx_cuda118.so", "x/liby_cuda121.so"], []),
        (["x/libx_cuda118.so"], []),
        (["x/libx_sm80.so", "x/libx_sm90.so"], []),
        (["x/libx_cuda1201.so", "x/libx_cuda1202.so"], []),
    ],
)
def test_alternatives_differ_by_the_release_in_their_paths(
    paths: list[str], releases: list[str]
) -> None:
    assert list(files_by_release(map(file, paths))) == releases


def test_coverage_is_that_of_the_best_alternative() -> None:
    report = judged([CU11, CU12, COMMON], cuda("11.8.0", "12.4.1"))
    assert report.coverage is not None
    assert {gpu: report.coverage[gpu].value for gpu in ("7.0", "8.0", "9.0")} == {
        "7.0": "native",
        "8.0": "none",
        "9.0": "native",
    }
    assert [
        (part.cuda_major, part.files, part.coverage["7.0"].value) for part in report.alternatives
    ] == [(11, ("x/libx_cuda118.so",), "native"), (12, ("x/libx_cuda124.so",), "partial")]
    assert report.alternatives[0].coverage["7.0"].all_files == 2
    inputs = (AuditInput(path="x.whl", files=3, binaries=3),)
    text = list(audit_text(report.model_copy(update={"inputs": inputs})))
    for name in ("x/libx_cuda118.so", "x/libx_cuda124.so"):
        assert f"Its device code with {name} runs on GPUs of compute capability:" in text


@pytest.mark.parametrize(
    ("gpu", "release", "code"),
    [("7.0", None, 0), ("9.0", None, 0), ("7.0", "11.8", 0), ("7.0", "12.4", 1), ("9.0", "11", 1)],
)
def test_required_gpu_is_checked_for_the_required_release(
    gpu: str, release: str | None, code: int
) -> None:
    required = Required(gpus=(gpu,), cuda=release)
    report = judged([CU11, CU12, COMMON], cuda("11.8.0", "12.4.1"), required=required)
    assert [each.kind for each in report.findings if each.kind == "gpu"] == ["gpu"] * code
