"""Base classes of reports."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Generic, Literal, Protocol, Self, TypeVar

from cudaredist.errors import EXIT_FINDINGS, CudaRedistError, worst_exit_code
from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import ManifestStatus
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import ArchiveId, Version

Kind = TypeVar("Kind", bound=str)
"""The kinds of a command's findings."""


class Answer(OwnModel):
    """The result of a command."""

    schema_version: Literal[1] = 1
    command: str


class ReleaseName(OwnModel):
    """Base class of report entries about one release."""

    redist: str
    release: str

    @property
    def subject(self) -> str:
        """The name in messages."""
        return f"{self.redist} {self.release}"


class ArchiveName(ReleaseName):
    """Base class of report entries about one archive."""

    package: str
    version: str
    platform: str
    variant: str | None

    @property
    def id(self) -> ArchiveId:
        """The archive's key in the release."""
        return ArchiveId(self.package, self.platform, self.variant)

    @property
    def subject(self) -> str:
        """The name in messages."""
        return " ".join(filter(None, (super().subject, *self.id)))

    @classmethod
    def of(cls, redist: str, label: Version, archive: Archive, **more: object) -> Self:
        """Return a report on an archive, with additional fields."""
        fields = {"redist": redist, "release": str(label), "version": str(archive.version)}
        return cls.model_validate(fields | archive.id._asdict() | more)


class Report(Answer):
    """The result of a command, with its exit code."""

    exit_code: int


class ExportedFile(OwnModel):
    """A file of an export."""

    path: str
    status: ManifestStatus
    size: int
    sha256: str


class BaseFinding(OwnModel, Generic[Kind]):
    """Base class of findings: something wrong, with the exit code for it alone.

    Subclasses add `message` and `exit_code`. These are not here, because each report has its own
    order of fields.
    """

    exit_codes: ClassVar[Mapping[str, int]] = {}
    """Exit codes of kinds other than 1."""

    kind: Kind

    @classmethod
    def exit_code_of(cls, kind: Kind) -> int:
        """Return the exit code of a kind."""
        return cls.exit_codes.get(kind, EXIT_FINDINGS)

    @classmethod
    def of(cls, kind: Kind, message: str, **more: object) -> Self:
        """Return a finding, by default with the exit code of its kind."""
        fields = {"kind": kind, "message": message, "exit_code": cls.exit_code_of(kind)}
        return cls.model_validate(fields | more)


class ItemOutcome(Protocol):
    """The result of one item of a run, with its error if it failed."""

    @property
    def error(self) -> ErrorReport | None:
        """The error of the item."""


def exit_code_of(outcomes: Iterable[ItemOutcome], *others: int) -> int:
    """Return the most severe of the outcomes' and other exit codes."""
    errors = (outcome.error for outcome in outcomes)
    return worst_exit_code([*others, *(error.exit_code for error in errors if error is not None)])


class ErrorAnswer(Report):
    """The report of a command that failed."""

    error: ErrorReport

    @classmethod
    def to(cls, command: str, error: CudaRedistError) -> Self:
        """Return the report of a command that failed with an error."""
        return cls(command=command, error=ErrorReport.of(error), exit_code=error.exit_code)
