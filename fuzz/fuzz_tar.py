"""Fuzz the reading of tars: `python fuzz/fuzz_tar.py -max_total_time=120` (needs atheris).

The first byte chooses the form: a plain tar, one whose checksums are repaired so that damage gets
past them, or a compressed one. Only `InvalidArchiveError` may come out, and pieces of another size,
or several threads, must give the same.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

REPOSITORY = Path(__file__).parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

with atheris.instrument_imports(include=["cudaredist.archives"]):
    from cudaredist.archives.members import Limits
from support import archives

from cudaredist.errors import InvalidArchiveError

LIMITS = Limits(floor=1 << 20, dictionary=16 << 20, members=1000)
BOUNDS = ("-rss_limit_mb=512", "-timeout=5", "-max_len=20000")


def outcome(name: str, data: bytes, chunk: int, jobs: int = 1) -> object:
    """Return what an archive holds, or None where it is refused."""
    try:
        return archives.read_all(name, data, chunk=chunk, size=len(data), limits=LIMITS, jobs=jobs)
    except InvalidArchiveError:
        return None


def same_in_any_pieces(name: str, data: bytes) -> None:
    """Read in large and in small pieces, and xz on two threads as well."""
    whole = outcome(name, data, 1 << 20)
    chunk = 1 + sum(data[:20]) % 97
    if whole != outcome(name, data, chunk):
        raise AssertionError(f"other pieces, other members: {name} in chunks of {chunk}")
    if name.endswith(".xz") and whole != outcome(name, data, chunk, jobs=2):
        raise AssertionError("other members on two threads")


def run(fuzz_one: Callable[[bytes], None], seeds: list[bytes]) -> None:
    """Fuzz as the command line says, from these seeds on."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        atheris.Setup([*sys.argv, *BOUNDS, corpus], fuzz_one)
        atheris.Fuzz()


SUFFIXES = (".tar", ".tar", ".tar.xz", ".tar.gz", ".tar.zst")
REPAIRED = 1


def repaired(tar: bytes) -> bytes:
    """Give every block that looks like a header the checksum that fits it."""
    return b"".join(
        archives.with_checksum(block) if block[257:262] == b"ustar" else block
        for block in archives.in_chunks(tar, archives.BLOCK)
    )


def fuzz_one(data: bytes) -> None:
    """Read one input in two ways."""
    if not data:
        return
    form, tar = data[0] % len(SUFFIXES), data[1:]
    same_in_any_pieces(f"a{SUFFIXES[form]}", repaired(tar) if form == REPAIRED else tar)


def seeds() -> list[bytes]:
    """Return honest tars of every form to begin with."""
    plain = [archives.plain_tar(form, bulk=2) for form in range(3)]
    tars = [bytes([form]) + tar for form in (0, REPAIRED) for tar in plain]
    packers = {2: archives.xz, 3: archives.gz, 4: archives.zst}
    packed = [bytes([form]) + pack(tar) for form, pack in packers.items() for tar in plain]
    return [*tars, *packed, b"\2" + archives.xz_blocks(plain[0], 3000)]


if __name__ == "__main__":
    run(fuzz_one, seeds())
