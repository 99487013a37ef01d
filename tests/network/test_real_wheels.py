"""Tests of real wheels: pinned versions and equality with archives."""

import ctypes
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED
from support.running import cudaredist

from cudaredist.store.data_folder import ManifestFolder
from cudaredist.wheel_projects import COMPONENTS

pytestmark = pytest.mark.network

LABEL = os.environ.get("WHEEL_TEST_LABEL", "13.0.2")
"""Release to test. Other releases to try by hand: 11.8.0, 12.9.1, 13.4.3."""
PACKAGES = (
    *("cuda_cudart", "cuda_cccl", "cuda_crt", "cuda_cuxxfilt", "cuda_nvml_dev", "cuda_nvtx"),
    *("cuda_opencl", "cuda_profiler_api", "libnvfatbin", "libcufile", "libnvjpeg", "cuda_nvcc"),
    *("cuda_cupti", "cuda_sanitizer_api"),
)
MAKE_MIRROR = SHARED / "tools" / "wheel_mirror.py"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with one release of the wheels channel."""
    folder = tmp_path_factory.mktemp("wheels")
    options = ("--channel", "wheels", "--redist", "cuda", "--data-dir", folder / "data")
    cudaredist(folder, "download-manifests", *options, "--version", LABEL)
    return folder


@pytest.fixture(scope="module")
def manifest(data: Path) -> Any:
    path = data / f"data/manifests/wheels/cuda/redistrib_{LABEL}.json"
    return json.loads(path.read_bytes())


def test_manifest_versions_equal_pins_of_metapackage(manifest: Any, tmp_path: Path) -> None:
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    subprocess.run([*download, f"cuda-toolkit=={LABEL}.*"], check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith("METADATA"))
        metadata = wheel.read(name).decode()
    pinned = {
        COMPONENTS[component]: version.removesuffix(".*")
        for component, version in re.findall(
            r"^Requires-Dist: nvidia-([a-z-]+?)(?:-cu\d+)?(?:==|<\d+,>=)([\d.*]+);",
            metadata,
            re.MULTILINE,
        )
    }
    versions = {name: entry["version"] for name, entry in manifest.items() if "version" in entry}
    assert len(versions) >= 15
    assert versions == pinned


SHIPPED = Path(__file__).parents[2] / "data"


def test_rebuilt_release_equals_shipped_one(tmp_path: Path) -> None:
    label = ManifestFolder(SHIPPED / "manifests/wheels/nvshmem").labels()[-1]
    options = ("--channel", "wheels", "--redist", "nvshmem", "--data-dir", tmp_path / "data")
    cudaredist(tmp_path, "download-manifests", *options, "--version", label)
    cudaredist(tmp_path, "process-manifests", *options)
    for name in (
        f"manifests/wheels/nvshmem/redistrib_{label}.json",
        f"features/wheels/nvshmem/feature_{label}.json",
    ):
        assert (tmp_path / "data" / name).read_bytes() == (SHIPPED / name).read_bytes(), name


def test_check_of_shipped_data_finds_only_stale_releases(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "cudaredist", "check", "--json", "--data-dir", SHIPPED],
        cwd=tmp_path,
        env=os.environ | {"CUDAREDIST_CACHE_DIR": str(tmp_path / "cache")},
        check=False,
        capture_output=True,
        text=True,
    )
    report = json.loads(process.stdout)
    assert report["offline"] is False
    wrong = [finding for finding in report["findings"] if finding["exit_code"]]
    assert {finding["kind"] for finding in wrong} <= {"stale"}, wrong
    assert process.returncode == bool(wrong)
    states = {line["status"] for line in report["lines"] if line["held"]}
    assert states <= ({"current", "stale"} if wrong else {"current"})


def test_rebuilt_manifest_equals_shipped_one(manifest: Any) -> None:
    shipped = SHIPPED / f"manifests/wheels/cuda/redistrib_{LABEL}.json"
    assert manifest == json.loads(shipped.read_bytes())


def features(folder: Path, below: str) -> Any:
    path = folder / f"data/features/{below}cuda/feature_{LABEL}.json"
    return json.loads(path.read_bytes())["packages"]


def facts(archive: Any) -> Any:
    """Return the facts that do not depend on packing, by soname or file name."""
    libraries = {
        library["soname"]: (library["needed"], library["glibc"], library["libstdcxx"])
        for library in archive["libraries"]
    }
    programs = {program["path"]: program["needed"] for program in archive["programs"]}
    return libraries, programs, archive["device_code"], archive["machine"]


def test_wheels_and_archives_have_the_same_features(
    data: Path, manifest: Any, tmp_path: Path
) -> None:
    if not MAKE_MIRROR.is_file():
        pytest.skip(f"no {MAKE_MIRROR}")
    packages = [name for name in PACKAGES if name in manifest]
    assert len(packages) >= 10
    chosen = [word for name in packages for word in ("--package", name)]
    where = ("--data-dir", data / "data")
    options = ("--channel", "wheels", "--redist", "cuda", *where)
    platforms = ("--platform", "linux-x86_64", "--platform", "windows-x86_64")
    cudaredist(data, "process-manifests", *options, *chosen, *platforms)
    command = [sys.executable, str(MAKE_MIRROR), "--cuda", LABEL, "--out", str(tmp_path)]
    command += ["--components", ",".join(packages), "--platforms", "linux-x86_64,windows-x86_64"]
    for attempt in (1, 2):
        # The tool stops at the first failed response of an index.
        process = subprocess.run(command, check=False, capture_output=True, text=True)
        if process.returncode == 0:
            break
        assert attempt == 1, process.stderr
    for path in tmp_path.rglob("redistrib_*.json"):
        # The mirror keeps the version of a wheel, but NVIDIA's manifests have no such suffix.
        path.write_text(re.sub(r'("version": "[0-9.]+)\.post\d+"', r'\1"', path.read_text()))
    source = ("--base-url", tmp_path, "--redist", "cuda", *where)
    cudaredist(data, "download-manifests", *source)
    cudaredist(data, "process-manifests", *source)
    mirror, wheels = features(data, ""), features(data, "wheels/")
    path = SHIPPED / f"features/wheels/cuda/feature_{LABEL}.json"
    shipped = json.loads(path.read_bytes())["packages"]
    compared = 0
    for name in packages:
        examined = {a["sha256"]: a for a in wheels[name]["archives"] if a["status"] == "examined"}
        entries = shipped[name]["archives"]
        assert examined.items() <= {entry["sha256"]: entry for entry in entries}.items(), name
        for archive in mirror[name]["archives"]:
            same = [a for a in wheels[name]["archives"] if a["platform"] == archive["platform"]]
            assert facts(archive) == facts(same[0]), (name, archive["platform"])
            compared += 1
    assert compared >= 2 * len(packages) - 2


def test_package_set_alone_is_enough_to_install_wheels(tmp_path: Path) -> None:
    options = ("--channel", "wheels", "--cuda", "13.0", "--platform", "linux-x86_64", "--files")
    cudaredist(tmp_path, "build", *options, "--output", tmp_path / "set.json")
    packages = json.loads((tmp_path / "set.json").read_text())["packages"]
    project, name = packages["libnvjitlink"]["archive"]["relative_path"].split("/")
    assert packages["libnvjitlink"]["depends"] == []
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    pin = f"{project}=={name.split('-')[1]}"
    subprocess.run([*download, "-d", str(tmp_path / "base" / project), pin], check=True)
    consumer = [sys.executable, str(SHIPPED.parent / "examples/unpack_set.py"), "set.json", "root"]
    base = ("--base", (tmp_path / "base").as_uri(), "--outputs", "lib,include")
    subprocess.run([*consumer, *base, "libnvjitlink"], check=True, cwd=tmp_path)
    assert (tmp_path / "root/lib/libnvJitLink.so").resolve().name == "libnvJitLink.so.13"
    assert (tmp_path / "root/include/nvJitLink.h").exists()
    ctypes.CDLL(str(tmp_path / "root/lib/libnvJitLink.so.13"))
