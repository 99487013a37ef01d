"""One entry of a set while it is being made: what is decided about a package so far."""

from dataclasses import dataclass, field

from cudaredist.manifests import Archive, Package
from cudaredist.packagesets.inputs import HeldManifest, Policies
from cudaredist.packagesets.outputs import Layout
from cudaredist.schema import (
    Depends,
    ExaminedArchive,
    Needed,
    OutputName,
    OwnModel,
    Provided,
    Reason,
    ReasonCode,
    Status,
)

_PRECEDENCE: tuple[Status, ...] = ("foreign", "withheld", "unsupported", "broken", "available")


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
    refusals: list[tuple[Status, Reason]] = field(default_factory=list)
    layout: Layout | None = None
    outputs: tuple[OutputName, ...] = ("out",)
    provides: list[Provided] = field(default_factory=list)
    needs: list[Needed] = field(default_factory=list)
    depends: list[Depends] = field(default_factory=list)
    compat_runpath: bool = False
    overlay: list[str] = field(default_factory=list)

    @property
    def status(self) -> Status:
        """What the gravest refusal says; available where there is none."""
        return min((status for status, _ in self.refusals), key=_rank, default="available")

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the package is not available, what decided the status first."""
        ordered = sorted(self.refusals, key=lambda refusal: _rank(refusal[0]))
        return tuple(reason for _, reason in ordered)

    @property
    def is_available(self) -> bool:
        """Whether nothing speaks against the package so far."""
        return not self.refusals

    @property
    def has_files(self) -> bool:
        """Whether the set says what the package's archive holds: it can be had, if not used."""
        return self.archive is not None and self.status in {"available", "broken"}

    def refuse(
        self, status: Status, code: ReasonCode, text: str, subject: str, source: str
    ) -> None:
        """Give the package a reason not to be available; what cannot be had has no archive."""
        refusal = (status, Reason(code=code, text=text, subject=subject, source=source))
        if refusal not in self.refusals:
            self.refusals.append(refusal)
        if self.status in {"foreign", "unsupported"}:
            self.archive = None

    def note(self, policies: Policies, subject: str, entry: OwnModel | None) -> None:
        """Remember that an entry of a policy has to do with the package, if an overlay's."""
        if entry is not None and policies.is_overlaid(entry):
            self.overlay.append(f"policy/{subject}.json")


def _rank(status: Status) -> int:
    return _PRECEDENCE.index(status)
