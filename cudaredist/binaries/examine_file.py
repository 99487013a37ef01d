"""Examine one file: find its kind by its first bytes, then read it at any position."""

import os
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

from cudaredist.binaries import ar, elf, pe, script
from cudaredist.binaries.fatbin import CONTAINER_MAGIC
from cudaredist.binaries.file_content import FileContent, Storage
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.reader import Reader
from cudaredist.errors import ReadingFrom

_COFF_STARTS = (b"\x64\x86", b"\x64\xaa", pe.ANONYMOUS)


def examine_file(path: Path | str) -> Binary | None:
    """Return the facts of a file on the disk, None for an irrelevant one.

    Raises `ReadError`.
    """
    with ReadingFrom(path):
        # Folders have 100,000 files, and objects of paths take a fifth of the time.
        file = open(path, "rb", 0)  # noqa: PTH123, SIM115
    with file:
        content = FileContent(file, os.fstat(file.fileno()).st_size, path)
        return examine_content(content)


def examine_content(content: FileContent) -> Binary | None:
    """Return the facts of a stored file, None for an irrelevant one. Raises `ReadError`."""
    return _facts(content.read(0, pe.FIRST_BYTES), lambda: content)


def examine(chunks: Iterable[bytes], storage: Storage) -> Binary | None:
    """Return the facts of one file, None for an irrelevant one.

    An irrelevant file is not read to its end. The bytes of others are stored until the facts are
    read. Only errors of `chunks` and `storage` are raised.
    """
    rest = iter(chunks)
    first: list[bytes] = []
    size = 0
    while size < pe.FIRST_BYTES and (chunk := next(rest, None)) is not None:
        first.append(chunk)
        size += len(chunk)
    return _facts(b"".join(first), lambda: storage.store(chain(first, rest)))


def _facts(first: bytes, content: Callable[[], FileContent]) -> Binary | None:
    """Return the facts of a file from its first bytes, and its content if that is relevant."""
    if script.may_be_script(first):
        return script.read_script(first)
    reader = _reader_of(first)
    return None if reader is None else reader(content()).facts()


def _reader_of(first: bytes) -> type[Reader] | None:
    if first.startswith(elf.ELF_MAGIC):
        return elf.ElfReader
    if first.startswith((ar.AR_MAGIC, ar.THIN_MAGIC)):
        return ar.ArReader
    if first.startswith(CONTAINER_MAGIC):
        return Reader
    if pe.is_image(first):
        return pe.PeReader
    return pe.CoffReader if first.startswith(_COFF_STARTS) and pe.is_object(first) else None
