"""Facts of archives that are read in a test."""

from collections.abc import Iterable, Iterator
from contextlib import closing

from cudaredist.archives.members import Member
from cudaredist.binaries.file_content import Scratch
from cudaredist.features.facts import Facts
from cudaredist.features.gather import gather


def gathered(members: Iterable[tuple[Member, Iterator[bytes]]], *, is_wheel: bool = False) -> Facts:
    """Return the facts of an archive."""
    with closing(Scratch()) as scratch:
        return gather(members, scratch, is_wheel=is_wheel)
