"""Facts of archives that are read in a test."""

from contextlib import closing

from cudaredist.archives.members import ArchiveReader
from cudaredist.binaries.file_content import Scratch
from cudaredist.features.facts import Facts
from cudaredist.features.gather import gather


def gathered(reader: ArchiveReader, *, is_wheel: bool = False) -> Facts:
    """Return the facts of an archive."""
    with closing(Scratch()) as scratch:
        return gather(reader, scratch, is_wheel=is_wheel)
