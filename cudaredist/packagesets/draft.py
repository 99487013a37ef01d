"""One entry of a set while it is being made: what is decided about a package so far."""

from dataclasses import dataclass, field

from cudaredist.manifests import Archive, Package
from cudaredist.packagesets.data import HeldManifest
from cudaredist.packagesets.outputs import Layout
from cudaredist.schema import (
    Depends,
    ExaminedArchive,
    Needed,
    OutputName,
    Provided,
    Reason,
    ReasonCode,
    Status,
)


@dataclass(slots=True)
class Draft:
    """A package of a set, unfinished."""

    attr: str
    pname: str
    redist: str | None
    held: HeldManifest | None = None
    package: Package | None = None
    archive: Archive | None = None
    examined: ExaminedArchive | None = None
    status: Status = "available"
    reasons: list[Reason] = field(default_factory=list)
    layout: Layout | None = None
    outputs: tuple[OutputName, ...] = ("out",)
    provides: list[Provided] = field(default_factory=list)
    needs: list[Needed] = field(default_factory=list)
    depends: list[Depends] = field(default_factory=list)
    compat_runpath: bool = False
    overlay: list[str] = field(default_factory=list)

    @property
    def is_available(self) -> bool:
        """Whether nothing speaks against the package so far."""
        return self.status == "available"

    def refuse(
        self, status: Status, code: ReasonCode, text: str, subject: str, source: str
    ) -> None:
        """Give the package another status with its reason; the first status given stays."""
        if self.status == "available":
            self.status = status
        self.reasons.append(Reason(code=code, text=text, subject=subject, source=source))
