"""Names of members: decoded so that nothing is lost and nothing raises, and bounded."""

from cudaredist.archives.members import Limits
from cudaredist.archives.stream import Stream
from cudaredist.errors import shown


class NameBudget:
    """Bounds each name, and all of them together: whoever reads an archive keeps a list of them."""

    def __init__(self, stream: Stream, limits: Limits) -> None:
        self._stream = stream
        self._limits = limits
        self._members = 0
        self._spent = 0

    def member(self, name: bytes) -> None:
        """Count one more member and its name; refuses the archive beyond a limit."""
        self._members += 1
        if self._members > self._limits.members:
            self._stream.refuse(f"has more than {self._limits.members:,} members")
        self.spend(name)

    def spend(self, name: bytes) -> None:
        """Count a name or a link's target; refuses the archive beyond a limit."""
        if len(name) > self._limits.name:
            self._stream.refuse(f"has a name of {len(name):,} bytes: {shown(text_of(name))}")
        self._spent += len(name)
        if self._spent > self._limits.names:
            self._stream.refuse(f"its names take more than {self._limits.names:,} bytes")


def text_of(name: bytes) -> str:
    """Decode UTF-8 as the standard library's tarfile does; other bytes become lone surrogates."""
    return name.decode("utf-8", "surrogateescape")
