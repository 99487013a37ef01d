"""What holds for every file: no exception, no dependence on how it is cut, bounded time and memory.

Each program beside this one fuzzes one kind of file: `python fuzz/fuzz_elf.py -max_total_time=20`.
It needs `pip install atheris`. Options are libFuzzer's; a corpus folder may be given too.
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
"""Characters of all facts of one small file."""
_SMALL = {
    range_buffer: {"HEAD": 512, "_FRONT": (0, 512), "LOOK_BACK": 256, "BLOCK_MOST": 200},
    elf: {"_FRONT": 2048, "_BACK": 512, "_BEFORE": 512, "_READ_ONLY": 512},
}
"""Bounds of what is kept, so small that tables of small files are lost, too."""


def check(data: bytes) -> None:
    """Read a file whole, in small chunks, and in small blocks, with real and with small bounds."""
    compare(data)
    real = {
        module: {name: getattr(module, name) for name in names} for module, names in _SMALL.items()
    }
    set_bounds(_SMALL)
    try:
        compare(data)
    finally:
        set_bounds(real)


def set_bounds(values: dict[ModuleType, dict[str, Any]]) -> None:
    """Set the bounds of what is kept."""
    for module, names in values.items():
        for name, value in names.items():
            setattr(module, name, value)


def compare(data: bytes) -> None:
    """Read a file whole, in small chunks, and in small blocks."""
    whole = examine([data])
    step = 1 + len(data) % 61
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    assert examine(chunks) == whole, "chunks make a difference"
    least = range_buffer.BLOCK_LEAST
    range_buffer.BLOCK_LEAST = 1
    try:
        assert examine(chunks) == whole, "blocks make a difference"
    finally:
        range_buffer.BLOCK_LEAST = least
    assert len(repr(whole)) < _FACTS_LIMIT, "more facts than bytes"
    if whole is not None:
        assert not any(getattr(whole, field) for field in whole.unread), "a part for the whole"


def fuzz(seeds: Iterable[bytes]) -> None:
    """Fuzz from valid files; ends as libFuzzer does."""
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            (Path(folder) / f"seed-{number}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *LIMITS, *sys.argv[1:], folder], check)
        atheris.Fuzz()
