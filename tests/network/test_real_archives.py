"""Tests of real NVIDIA binaries in a mirror that is built from wheels.

The set is small. Use `tools/mirrors.py` to compare larger ones.
"""

import json
import os
import sys
import tempfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import REPOSITORY, SHARED
from support.cuobjdump import download_cuobjdump
from support.running import ask_index, cudaredist

from tools.mirrors import Comparison

pytestmark = [pytest.mark.network, pytest.mark.nightly, pytest.mark.real]

COMPONENTS = "cuda_cudart,libnvfatbin,cuda_nvtx,libnvjitlink,cuda_cuobjdump"
MAKE_MIRROR = SHARED / "tools" / "wheel_mirror.py"
LABEL = "13.0.2"
ORACLES = ("pyelftools", "readelf", "readelf symbols", "pefile", "pefile symbols")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a mirror of a few packages for three platforms."""
    if not MAKE_MIRROR.is_file():
        pytest.skip(f"no {MAKE_MIRROR}")
    folder = tmp_path_factory.mktemp("mirror")
    command = [sys.executable, str(MAKE_MIRROR), "--cuda", LABEL, "--components", COMPONENTS]
    ask_index(*command, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def cuobjdump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_cuobjdump(tmp_path_factory.mktemp("cuobjdump"))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass


def test_features_of_mirror_agree_with_other_programs(
    mirror: Path, cuobjdump: Path, tmp_path: Path
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(mirror)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    source = ("--base-url", f"http://127.0.0.1:{server.server_address[1]}", "--redist", "cuda")
    cudaredist(tmp_path, "download-manifests", *source)
    printed = cudaredist(tmp_path, "process-manifests", *source, "--json")
    server.shutdown()
    server.server_close()
    report = json.loads(printed)
    assert {archive["status"] for archive in report["archives"]} == {"examined"}
    assert {archive["platform"] for archive in report["archives"]} == {
        "linux-x86_64",
        "linux-sbsa",
        "windows-x86_64",
    }

    comparison = Comparison(cuobjdump)
    comparison.mirror(mirror, tmp_path / "cache")
    assert comparison.differences == []
    counts = comparison.counts
    assert counts["archives"] == len(report["archives"])
    for what in (*ORACLES, "cuobjdump", "cuobjdump -all", "outputs"):
        assert counts[f"{what}: equal"] > 0, counts
    assert counts["cuobjdump: images"] > 0, counts


SOME = "cuda_cudart cuda_cupti libcufft libcufile libcurand libnvjpeg"
PACKAGES = os.environ.get("COMPARED_PACKAGES", SOME).split()
"""By hand, `all` compares whole releases, in ten minutes."""
EMBEDDED = {
    "12.9.1": {
        "cuda_cupti": {"libcheckpoint.so", "libcupti.so.12"},
        "libcublas": {"libcublasLt.so.12"},
        "libcufft": {"libcufft.so.11"},
        "libcusparse": {"libcusparse.so.12"},
    },
    "13.5.0": {
        "cuda_cupti": {"libcheckpoint.so", "libcupti.so.13"},
        "libcublas": {"libcublasLt.so.13"},
        "libcufft": {"libcufft.so.12"},
        "libcurand": {"libcurand.so.10"},
        "libcusparse": {"libcusparse.so.12"},
    },
}
"""Files with device code in data sections, which cuobjdump does not list."""
REFUSED = {"12.9.1": {}, "13.5.0": {"libcufile": {"libcufile.so.0"}}}
"""Files that cuobjdump calls an invalid ELF file."""


def unpack_wheel(relative_path: str, folder: Path) -> None:
    """Download the wheel of a manifest's archive, and unpack it."""
    name = Path(relative_path).stem
    project, version, *_, platforms = name.split("-")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
    tags = [word for tag in platforms.split(".") for word in ("--platform", tag)]
    requirement = f"{project.replace('_', '-')}=={version}"
    ask_index(*command, "--only-binary=:all:", *tags, requirement)
    with zipfile.ZipFile(folder / f"{name}.whl") as wheel:
        wheel.extractall(folder)


@pytest.mark.parametrize("label", ["12.9.1", "13.5.0"])
def test_images_of_release_equal_output_of_cuobjdump(
    cuobjdump: Path, tmp_path: Path, label: str
) -> None:
    """Images by architecture differ only by known causes, with and without `-all`."""
    path = REPOSITORY / f"data/manifests/wheels/cuda/redistrib_{label}.json"
    archives = {
        name: entry["linux-x86_64"]["relative_path"]
        for name, entry in json.loads(path.read_bytes()).items()
        if isinstance(entry, dict) and "linux-x86_64" in entry
    }
    chosen = archives if PACKAGES == ["all"] else archives.keys() & set(PACKAGES)
    for name in chosen:
        comparison = Comparison(cuobjdump)
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            unpack_wheel(archives[name], Path(folder))
            comparison.device_code_below(Path(folder))
        refused = REFUSED[label].get(name, set())
        assert set(comparison.differences) == {
            f"{mode} cannot read {file}"
            for file in refused
            for mode in ("cuobjdump", "cuobjdump -all")
        }
        assert set(comparison.embedded) == EMBEDDED[label].get(name, set())
        counts = comparison.counts
        for mode in ("cuobjdump", "cuobjdump -all", "cuobjdump -lelf -lptx"):
            assert counts[f"{mode}: equal"] == counts["files"] - len(refused), (name, counts)
