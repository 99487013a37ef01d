"""What holds for every file: no exception, no dependence on how it is cut, bounded time and memory.

Each program beside this one fuzzes one kind of file: `python fuzz/fuzz_elf.py -max_total_time=20`.
It needs `pip install atheris`. Options are libFuzzer's; a corpus folder may be given too.
"""

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

import atheris

with atheris.instrument_imports(include=["cudaredist.binaries"]):
    from cudaredist.binaries import examine, window

LIMITS = ("-rss_limit_mb=512", "-timeout=5", "-max_len=16384", "-print_final_stats=1")
_FACTS_LIMIT = 1 << 20
"""Characters of all facts of one small file."""


def check(data: bytes) -> None:
    """Read a file whole, in small chunks, and in small blocks."""
    whole = examine([data])
    step = 1 + len(data) % 61
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    assert examine(chunks) == whole, "chunks make a difference"
    least = window.BLOCK_LEAST
    window.BLOCK_LEAST = 1
    try:
        assert examine(chunks) == whole, "blocks make a difference"
    finally:
        window.BLOCK_LEAST = least
    assert len(repr(whole)) < _FACTS_LIMIT, "more facts than bytes"


def fuzz(seeds: Iterable[bytes]) -> None:
    """Fuzz from valid files; ends as libFuzzer does."""
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            (Path(folder) / f"seed-{number}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *LIMITS, *sys.argv[1:], folder], check)
        atheris.Fuzz()
