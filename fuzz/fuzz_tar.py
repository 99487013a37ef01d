"""Fuzz the tar reader: `python fuzz/fuzz_tar.py -max_total_time=120`.

Requires atheris. The first byte selects the format: a plain tar, a tar with repaired checksums (so
that the reader accepts damaged headers), or a compressed tar. The reader may only raise
`InvalidArchiveError`. The result must not depend on the size of the chunks that are unpacked.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import atheris

REPOSITORY = Path(__file__).parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

with atheris.instrument_imports(include=["cudaredist.archives", "zipfile"]):
    from cudaredist.archives import decompress, open_archive  # noqa: F401 - instruments its imports
    from cudaredist.archives.members import Limits
from support import archives

from cudaredist.errors import InvalidArchiveError

LIMITS = Limits(floor=1 << 20, dictionary=16 << 20, members=1000, directory=1 << 16)
BOUNDS = ("-rss_limit_mb=512", "-timeout=5", "-max_len=20000")


def outcome(name: str, data: bytes) -> object:
    """Return an archive's members, or None if it is invalid."""
    try:
        return archives.read_all(name, data, limits=LIMITS)
    except InvalidArchiveError:
        return None


def check_chunks(name: str, data: bytes) -> None:
    """Compare large and small chunks."""
    whole = outcome(name, data)
    chunk = 1 + sum(data[:20]) % 97
    with patch.multiple(decompress, _INPUT=chunk, _OUTPUT=chunk):
        if whole != outcome(name, data):
            raise AssertionError(f"chunks of {chunk} change the members of {name}")


def run(fuzz_one: Callable[[bytes], None], seeds: list[bytes]) -> None:
    """Fuzz from these seeds, with the options of the command line."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        atheris.Setup([*sys.argv, *BOUNDS, corpus], fuzz_one)
        atheris.Fuzz()


SUFFIXES = (".tar", ".tar", ".tar.xz", ".tar.gz", ".tar.zst")
FIXED_CHECKSUMS = 1


def with_fixed_checksums(tar: bytes) -> bytes:
    """Correct the checksum of each block that looks like a header."""
    return b"".join(
        archives.with_checksum(block) if block[257:262] == b"ustar" else block
        for block in archives.in_chunks(tar, archives.BLOCK)
    )


def fuzz_one(data: bytes) -> None:
    """Read an input in two ways."""
    if not data:
        return
    form, tar = data[0] % len(SUFFIXES), data[1:]
    check_chunks(
        f"a{SUFFIXES[form]}", with_fixed_checksums(tar) if form == FIXED_CHECKSUMS else tar
    )


def seeds() -> list[bytes]:
    """Return valid tars in every format."""
    plain = [archives.plain_tar(form, bulk=2) for form in range(3)]
    tars = [bytes([form]) + tar for form in (0, FIXED_CHECKSUMS) for tar in plain]
    packers = {2: archives.xz, 3: archives.gz, 4: archives.zst}
    packed = [bytes([form]) + pack(tar) for form, pack in packers.items() for tar in plain]
    return [*tars, *packed]


if __name__ == "__main__":
    run(fuzz_one, seeds())
