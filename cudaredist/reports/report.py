"""Base classes of reports, and errors as data."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from cudaredist.errors import CudaRedistError
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version
from cudaredist.schema.base import OutputName, OwnModel
from cudaredist.schema.features import OutputSize

ManifestStatus = Literal["written", "would-write", "unchanged", "failed"]


class Answer(OwnModel):
    """The result of a command."""

    schema_version: Literal[1] = 1
    command: str


class ArchiveName(OwnModel):
    """The identification of an archive in a manifest."""

    redist: str
    release: str
    package: str
    version: str
    platform: str
    variant: str | None

    @property
    def place(self) -> str:
        """The platform and variant."""
        return self.platform if self.variant is None else f"{self.platform}/{self.variant}"

    @classmethod
    def of(cls, redist: str, label: Version, archive: Archive, **more: object) -> Self:
        """Return a report on an archive, with additional fields."""
        return cls.model_validate(
            {
                "redist": redist,
                "release": str(label),
                "package": archive.package,
                "version": str(archive.version),
                "platform": archive.platform,
                "variant": archive.variant,
                **more,
            }
        )


class OutputFiles(OwnModel):
    """The files of one output."""

    files: int
    size: int = Field(description="Unpacked bytes")

    @classmethod
    def by_output(cls, sizes: Mapping[OutputName, OutputSize]) -> dict[OutputName, Self]:
        """Return the files of each output of an archive."""
        return {name: cls(files=one.files, size=one.bytes) for name, one in sizes.items()}


class Report(Answer):
    """The result of a command, with its exit code."""

    exit_code: int

    @model_serializer(mode="wrap")
    def _with_exit_code_last(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = fields(self)
        return document | {"exit_code": document.pop("exit_code")}


class ErrorReport(OwnModel):
    """An error as data."""

    kind: str
    message: str
    reason: str = Field(
        description="The message without the affected file, equal for equal failures"
    )
    hint: str | None = None
    changes: tuple[str, ...] = ()
    exit_code: int

    @classmethod
    def of(cls, error: CudaRedistError | Self) -> Self:
        """Return an error as data."""
        if not isinstance(error, CudaRedistError):
            return error
        return cls(
            kind=error.kind,
            message=error.message,
            reason=getattr(error, "reason", error.message),
            hint=error.hint,
            changes=getattr(error, "changes", ()),
            exit_code=error.exit_code,
        )

    def about(self, subject: str) -> Self:
        """Prefix the message with its subject, unless it already begins with it."""
        if self.message.startswith(subject):
            return self
        return self.model_copy(update={"message": f"{subject}: {self.message}"})


class ErrorAnswer(Report):
    """The report of a command that failed."""

    error: ErrorReport

    @classmethod
    def to(cls, command: str, error: CudaRedistError) -> Self:
        """Return the report of a command that failed with an error."""
        return cls(command=command, error=ErrorReport.of(error), exit_code=error.exit_code)
