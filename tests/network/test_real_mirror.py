"""A mirror of NVIDIA's own wheels, as an index for pip."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run
from support.mirrors import published
from support.running import expect_output, report

pytestmark = pytest.mark.network

PACKAGES = ("cuda_cudart", "cuda_crt", "cuda_nvml_dev")


def test_pip_installs_real_wheels_from_a_mirror(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = [word for name in PACKAGES for word in ("--package", name)]
    selection = ("--redist", "cuda", "--version", "13.0.2", "--platform", "linux-x86_64", *packages)
    sync = ("mirror", "sync", "mirror", "--channel", "wheels", *selection)
    expect_output(run(*sync), 0)
    files = published(Path("mirror"))
    assert len([path for path in files if path.endswith(".whl")]) == len(PACKAGES) + 1
    assert run("mirror", "verify", "mirror").exit_code == 0
    assert report(run(*sync, "--json"))["fetched_bytes"] == 0
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    index = Path("mirror/simple").absolute().as_uri()
    linux = ("--platform", "manylinux2014_x86_64", "--only-binary", ":all:")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--no-cache-dir", "--index-url", index),
            *(*linux, "--target", "installed", "cuda-toolkit[cudart]==13.0.2"),
        ],
        check=True,
    )
    assert list(Path("installed").rglob("libcudart.so.13"))
