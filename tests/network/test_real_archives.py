"""Real NVIDIA binaries: a mirror made of its wheels, served over HTTP, processed, and compared.

The set is small; `tools/mirrors.py` compares larger ones by hand.
"""

import json
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import SHARED
from support.running import ask_index, cudaredist

from tools.mirrors import Comparison

pytestmark = [pytest.mark.network, pytest.mark.real]

COMPONENTS = "cuda_cudart,libnvfatbin,cuda_nvtx,libnvjitlink,cuda_cuobjdump"
MAKE_MIRROR = SHARED / "tools" / "wheel_mirror.py"
LABEL = "13.0.2"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mirror of a few packages for three platforms."""
    if not MAKE_MIRROR.is_file():
        pytest.skip(f"no {MAKE_MIRROR}")
    folder = tmp_path_factory.mktemp("mirror")
    command = [sys.executable, str(MAKE_MIRROR), "--cuda", LABEL, "--components", COMPONENTS]
    ask_index(*command, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def cuobjdump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NVIDIA's own program for device code, from its wheel; only the tests execute it."""
    folder = tmp_path_factory.mktemp("cuobjdump")
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    ask_index(*download, "nvidia-cuda-cuobjdump")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    program = next(folder.rglob("bin/cuobjdump"))
    program.chmod(0o755)
    return program


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass


def test_a_mirror_is_read_as_other_programs_read_it(
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
    for what in ("pyelftools", "readelf", "pefile", "cuobjdump", "cuobjdump -all", "outputs"):
        assert counts[f"{what}: equal"] > 0, counts
    assert counts["cuobjdump: images"] > 0, counts
