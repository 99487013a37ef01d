"""Fuzz the zip reader: `python fuzz/fuzz_zip.py -max_total_time=120`.

Requires atheris. The reader may only raise `InvalidArchiveError`.
"""

from fuzz_tar import outcome, run
from support import archives
from support.archives import ZipEntry


def fuzz_one(data: bytes) -> None:
    """Read an input."""
    outcome("a.zip", data)


def seeds() -> list[bytes]:
    """Return valid zips in every format."""
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
