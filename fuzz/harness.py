"""Check that every reader is robust.

A reader must not raise an exception. Its result must not depend on the size of the chunks, and its
time and memory are limited. Each program in this folder fuzzes one kind of file:
`python fuzz/fuzz_elf.py -max_total_time=20`. Requires `pip install atheris`. The options are those
of libFuzzer. If the last argument is a folder, it is used as a corpus.
"""

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

REPOSITORY = Path(__file__).parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

import atheris

with atheris.instrument_imports(include=["cudaredist.binaries"]):
    from cudaredist.binaries import elf, range_buffer
    from cudaredist.binaries.examine_file import examine

LIMITS = ("-rss_limit_mb=512", "-timeout=5", "-max_len=16384", "-print_final_stats=1")
_FACTS_LIMIT = 1 << 20
"""Largest size of the facts of a small file, in characters."""
_SMALL = {
    range_buffer: {"HEAD": 512, "_FRONT": (0, 512), "LOOK_BACK": 256, "BLOCK_MOST": 200},
    elf: {"_FRONT": 2048, "_BACK": 512, "_BEFORE": 512, "_READ_ONLY": 512},
}
"""Buffer sizes that are too small even for the tables of small files."""


def check(data: bytes) -> None:
    """Compare the results with normal and with small buffers."""
    compare(data)
    normal = {
        module: {name: getattr(module, name) for name in names} for module, names in _SMALL.items()
    }
    set_buffer_sizes(_SMALL)
    try:
        compare(data)
    finally:
        set_buffer_sizes(normal)


def set_buffer_sizes(values: dict[ModuleType, dict[str, Any]]) -> None:
    """Set the buffer sizes."""
    for module, names in values.items():
        for name, value in names.items():
            setattr(module, name, value)


def compare(data: bytes) -> None:
    """Compare whole files, small chunks and small blocks."""
    whole = examine([data])
    step = 1 + len(data) % 61
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    assert examine(chunks) == whole, "chunks change the result"
    least = range_buffer.BLOCK_LEAST
    range_buffer.BLOCK_LEAST = 1
    try:
        assert examine(chunks) == whole, "blocks change the result"
    finally:
        range_buffer.BLOCK_LEAST = least
    assert len(repr(whole)) < _FACTS_LIMIT, "too many facts"
    if whole is not None:
        assert not any(getattr(whole, field) for field in whole.unread), "unread field has a value"


def fuzz(seeds: Iterable[bytes]) -> None:
    """Fuzz from valid files, and exit with libFuzzer's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            (Path(folder) / f"seed-{number}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *LIMITS, *sys.argv[1:], folder], check)
        atheris.Fuzz()
