"""Tests of prefixes of releases, such as `13` or `cudnn@9.26`, in every command."""

import shutil
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support.running import expect_output

WHEELS = ("--channel", "wheels")
LINUX = ("--platform", "linux-x86_64")
LIST_NCCL = ("--redist", "nccl", "--version", "2.28", "--check", *WHEELS, "--data-dir")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("explain", "cuda", "13"), "CUDA 13.5.0, the newest of 13, nvcc "),
        (("explain", "nvcc", "12"), "CUDA 12.9.2, the newest of 12, nvcc "),
        (("diff", "cudnn@9.26", "cudnn@9.27"), "cudnn@9.26.1 -> cudnn@9.27.0"),
        (("build", "--cuda", "13", *LINUX), "cuda 13.5.0   linux-x86_64   written"),
        (("build", "--cuda", "12.9", *LINUX, "--redist", "cudnn=9.10"), "requested: cudnn 9.10.2"),
        (("build", "--cuda", "12.9", *LINUX, "--also", "nccl=2.31"), "requested: nccl 2.31.2"),
        (
            ("audit", "/bin/sh", "--require-cuda", "12"),
            "Compared with all local releases and CUDA 12.9.2.",
        ),
        (("process-manifests", *LIST_NCCL, "small"), "nccl  2.28.9"),
        (("update-symbols", *LIST_NCCL, "small"), "archives of nccl 2.28.9"),
    ],
)
def test_prefix_selects_newest_local_release(
    run: Run, words: tuple[object, ...], answer: str
) -> None:
    for part in ("manifests/wheels/nccl", "features/wheels/nccl"):
        shutil.copytree(REPOSITORY / "data" / part, Path("small", part))
    Path("small/symbols").mkdir()
    shutil.copy(REPOSITORY / "data/symbols/libnccl.so.2.json", "small/symbols")
    assert answer in run(*words).stdout


def test_download_of_prefix_selects_newest_listed_release(run: Run, tmp_path: Path) -> None:
    source, manifests = tmp_path / "source/compute/cudnn/redist", "manifests/wheels/cudnn"
    shutil.copytree(REPOSITORY / "data" / manifests, source)
    options = ("--redist", "cudnn", "--base-url", tmp_path / "source")
    expect_output(run("download-manifests", *options, "--version", "9.2", "--version", "8"), 0)
    stored = sorted(path.name for path in Path("data/manifests/cudnn").iterdir())
    assert stored == ["redistrib_8.9.7.json", "redistrib_9.2.1.json"]
