"""Runfiles in the form of makeself: a small script, and files of the real makeself."""

import hashlib

NAME = "cuda_12.9.1_575.57.08_linux.run"


def runfile(
    *parts: bytes,
    start: bytes = b"#!/bin/sh\n# This script was generated using Makeself 2.4.5\n",
    sizes: str | None = None,
    md5: str | None = None,
    skip: str | None = None,
) -> bytes:
    """Return a script with its parts. The keywords override its stated values."""
    sizes = " ".join(str(len(part)) for part in parts) if sizes is None else sizes
    if md5 is None:
        md5 = " ".join(hashlib.md5(part, usedforsecurity=False).hexdigest() for part in parts)
    lines = [f'MD5="{md5}"', f'filesizes="{sizes}"']
    lines.append(skip if skip is not None else f'skip="{start.count(bytes([10])) + 4}"')
    return start + "\n".join([*lines, "exit 0", ""]).encode() + b"".join(parts)
