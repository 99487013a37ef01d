"""Fuzz the reading of zips: `python fuzz/fuzz_zip.py -max_total_time=120` (needs atheris).

Only `InvalidArchiveError` may come out, and pieces of another size must give the same.
"""

from fuzz_tar import run, same_in_any_pieces
from support import archives
from support.archives import ZipEntry


def fuzz_one(data: bytes) -> None:
    """Read one input in two ways."""
    same_in_any_pieces("a.zip", data)


def seeds() -> list[bytes]:
    """Return honest zips of every form to begin with."""
    packed = len(ZipEntry().packed())
    return [
        archives.plain_zip(bulk=1),
        archives.raw_zip(zip64=True),
        archives.raw_zip(ZipEntry(), ZipEntry(name=b"top/", content=b"", method=0)),
        archives.raw_zip(ZipEntry(extra=archives.zip64_extra(7, packed)), zip64=True),
        *(
            archives.raw_zip(
                ZipEntry(
                    descriptor=archives.descriptor(b"content", packed, signature=sign, wide=wide)
                )
            )
            for sign in (True, False)
            for wide in (True, False)
        ),
    ]


if __name__ == "__main__":
    run(fuzz_one, seeds())
