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

REPOSITORY = Path(__file__).parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

import atheris

with atheris.instrument_imports(include=["cudaredist.binaries"]):
    from support.binaries import examined

LIMITS = ("-rss_limit_mb=512", "-timeout=5", "-max_len=16384", "-print_final_stats=1")
_FACTS_LIMIT = 1 << 20
"""Largest size of the facts of a small file, in characters."""


def check(data: bytes) -> None:
    """Compare whole files and small chunks."""
    whole = examined([data])
    step = 1 + len(data) % 61
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    assert examined(chunks) == whole, "chunks change the result"
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
