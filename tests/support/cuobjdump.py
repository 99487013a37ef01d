"""NVIDIA's cuobjdump from its wheel. Only tests execute it."""

import sys
import zipfile
from pathlib import Path

from support.running import ask_index


def download_cuobjdump(folder: Path) -> Path:
    """Download and unpack cuobjdump, and return its path."""
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    ask_index(*download, "nvidia-cuda-cuobjdump")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    program = next(folder.rglob("bin/cuobjdump"))
    program.chmod(0o755)
    return program
