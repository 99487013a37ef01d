"""Draft of a package, completed stage by stage."""

from dataclasses import dataclass, replace
from typing import Self

from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import (
    Depends,
    Needed,
    Opened,
    Provided,
    Status,
)
from cudaredist.formats.reason import Reason, ReasonCode
from cudaredist.manifests.manifest_values import Archive, Package
from cudaredist.sets.inputs import ArchiveHeaders, InputManifest
from cudaredist.sets.outputs import OutputSplit

PRECEDENCE: tuple[Status, ...] = ("foreign", "withheld", "unsupported", "broken", "available")
"""The statuses, most severe first."""
_WITHOUT_ARCHIVE: frozenset[Status] = frozenset({"foreign", "unsupported"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The decisions about a package so far.

    `entries` sets the fields up to `missing`, and `libraries` adds the last four.
    """

    attr: str
    pname: str
    redist: str | None
    manifest: InputManifest | None = None
    archive: Archive | None = None
    refusals: tuple[tuple[Status, Reason], ...] = ()
    allowed: tuple[str, ...] = ()
    """Reasons of policy against the package that the user allows."""
    overlay: tuple[str, ...] = ()
    """Changes by an overlay."""
    outputs: tuple[OutputName, ...] = ("out",)
    split: OutputSplit | None = None
    """None if the archive was not examined."""
    headers: ArchiveHeaders | None = None
    """None if unknown."""
    missing: str | None = None
    """Why the features are missing."""
    provides: tuple[Provided, ...] = ()
    needs: tuple[Needed, ...] = ()
    opens: tuple[Opened, ...] = ()
    depends: tuple[Depends, ...] = ()

    @property
    def package(self) -> Package | None:
        """The package in its release's manifest."""
        return self.manifest.packages.get(self.pname) if self.manifest else None

    @property
    def status(self) -> Status:
        """The status of the most severe refusal, or available."""
        statuses = (status for status, _ in self.refusals)
        return min(statuses, key=PRECEDENCE.index, default="available")

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons of all refusals, most severe first."""
        ordered = sorted(self.refusals, key=lambda refusal: PRECEDENCE.index(refusal[0]))
        return tuple(reason for _, reason in ordered)

    @property
    def is_available(self) -> bool:
        """Whether there is no refusal so far."""
        return not self.refusals

    @property
    def is_additional_version(self) -> bool:
        """Whether this is an additional version, such as cudnn_8_9."""
        return self.attr != self.pname

    def can_use(self, other: Self) -> bool:
        """Check if the package may use another's version.

        Only additional versions may use other additional versions.
        """
        return self.is_additional_version or not other.is_additional_version

    @property
    def has_files(self) -> bool:
        """Whether the set describes the contents, even if broken."""
        return self.archive is not None and self.status in {"available", "broken"}

    def refused(
        self, status: Status, code: ReasonCode, text: str, source: str, subject: str | None = None
    ) -> Self:
        """Return the package with one more refusal, by default about itself."""
        about = self.pname if subject is None else subject
        reason = Reason(code=code, text=text, subject=about, source=source)
        return self.refused_for(status, reason)

    def refused_for(self, status: Status, reason: Reason) -> Self:
        """Return the package with one more refusal."""
        refusal = (status, reason)
        if refusal in self.refusals:
            return self
        draft = replace(self, refusals=(*self.refusals, refusal))
        return replace(draft, archive=None) if draft.status in _WITHOUT_ARCHIVE else draft

    def with_allowed(self, text: str) -> Self:
        """Return the package with a reason against it that the user allows."""
        return replace(self, allowed=tuple(dict.fromkeys((*self.allowed, text))))

    def noted(self, *notes: str) -> Self:
        """Return the package with notes on changes by an overlay."""
        return replace(self, overlay=tuple(dict.fromkeys((*self.overlay, *notes))))
