"""The report of materialize."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.report import Report


class ToolkitReport(Report):
    """The result of materialize."""

    command: Literal["materialize"] = "materialize"
    root: str
    status: Literal["written", "unchanged", "verified", "altered", "removed"]
    cuda: str | None = Field(description="Null: nothing is installed")
    platform: str | None
    target: str | None = Field(description="Platform to compile for. Null: the same")
    layout: Literal["merged", "split"] | None
    packages: tuple[str, ...]
    files: int
    size: int = Field(description="Bytes of all files")
    fetched_bytes: int = Field(description="Bytes from the network, without local archives")
    problems: tuple[str, ...] = Field(description="Altered files and links")
    foreign: tuple[str, ...] = Field(
        description="Files in the root that cudaredist did not install"
    )
