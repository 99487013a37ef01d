"""The number and size of an output's files in reports."""

from collections.abc import Mapping
from typing import Annotated, Protocol, Self

from pydantic import Field

from cudaredist.formats.names import OutputName
from cudaredist.formats.plain_report import PlainEntry


class _Size(Protocol):
    """The size of an output: that of a feature file, or the same from the index."""

    @property
    def files(self) -> int:
        """Number of files."""

    @property
    def bytes(self) -> int:
        """Unpacked bytes."""


class OutputFiles(PlainEntry):
    """The files of one output."""

    files: int
    size: Annotated[int, Field(description="Unpacked bytes")]

    @classmethod
    def by_output(cls, contents: Mapping[OutputName, _Size]) -> dict[OutputName, Self]:
        """Return the files of each output that has any."""
        return {
            name: cls(files=output.files, size=output.bytes)
            for name, output in contents.items()
            if output.files
        }
