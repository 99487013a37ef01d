"""A finding of audit, with its repair as data."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, Self

from cudaredist.errors import EXIT_OK
from cudaredist.formats.settings import AuditFindingKind, IgnoredFinding
from cudaredist.programs.repair import Repair
from cudaredist.programs.report import AuditFinding
from cudaredist.words import listed

some_of = partial(listed, limit=3)
"""Return the first names, and the number of others."""


class Finding(NamedTuple):
    """Something wrong with a program, or a required property that it lacks."""

    kind: AuditFindingKind
    message: str
    path: str | None = None
    repair: Repair | None = None
    is_warning: bool = False
    """Whether it does not count, for example because it is ignored."""
    ignored: str | None = None
    """Reason of the configuration file to ignore it."""
    package: str | None = None
    """The installed package that it is about, and its version."""
    opened: frozenset[str] = frozenset()
    """The libraries that files open, without their versions, if it is about such libraries."""

    @property
    def exit_code(self) -> int:
        """The exit code for this finding alone."""
        return EXIT_OK if self.is_warning else AuditFinding.exit_code_of(self.kind)

    @property
    def hint(self) -> str | None:
        """The command of its repair."""
        return None if self.repair is None else self.repair.command

    def as_warning(self) -> Self:
        """Return the finding as one that does not count."""
        return self._replace(is_warning=True)

    def counted(self, is_counted: bool) -> Self:  # noqa: FBT001 - reads as a phrase
        """Return the finding as one that counts, or does not."""
        return self._replace(is_warning=not is_counted)

    def with_reason(self, ignored: Iterable[IgnoredFinding]) -> Self:
        """Mark the finding if it is ignored. The reason is that of the last matching entry."""
        reasons = [entry.reason for entry in ignored if entry.matches(self.kind, self.message)]
        return self._replace(is_warning=True, ignored=reasons[-1]) if reasons else self

    def report(self) -> AuditFinding:
        """Return the entry of the report, with the repair as text."""
        return AuditFinding.of(
            self.kind,
            self.message,
            path=self.path,
            hint=self.hint,
            exit_code=self.exit_code,
            ignored=self.ignored,
        )
