"""A mirror of NVIDIA's own wheels, as an index for pip."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run
from support.mirrors import published
from support.running import expect_error, expect_output, report

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


def test_toolkit_is_installed_offline_from_a_mirror_of_a_set(run: Run) -> None:
    """An administrator without network and root: mirror, install, compile and link."""
    selection = ("--channel", "wheels", "--cuda", "12.9", "--platform", "linux-x86_64")
    expect_output(run("build", *selection, "--output", "set.json"), 0)
    components = ("--component", "runtime", "--component", "libcufile")
    expect_output(run("mirror", "sync", "mirror", "--set", "set.json", *components), 0)
    assert run("mirror", "verify", "mirror").exit_code == 0
    offline = ("materialize", "set.json", "--offline", "--base-url", "mirror")
    expect_output(run(*offline, "--output", "cuda", *components), 0)
    expect_error(run(*offline, "--output", "other", "--component", "compiler"), 2, "include nvcc")
    lacking = expect_error(run(*offline, "--output", "other", "--component", "math"), 3)
    assert "libcublas" not in lacking.stderr
    assert "nvidia_cublas" in lacking.stderr
    assert "nvidia_cufft" in lacking.stderr
    source = (
        "#include <cufile.h>\nint main(void) { return cuFileDriverGetProperties(0).err == 0; }\n"
    )
    Path("main.c").write_text(source)
    folders = ("-Icuda/include", "-Lcuda/lib", f"-Wl,-rpath,{Path('cuda/lib').absolute()}")
    compiler = ("gcc", "main.c", *folders, "-lcufile", "-lcudart", "-o", "main")
    subprocess.run(compiler, check=True)
    linked = subprocess.run(["ldd", "main"], check=True, capture_output=True, text=True).stdout
    assert str(Path("cuda/lib/libcufile.so.0").absolute()) in linked
