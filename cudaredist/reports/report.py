"""What all reports have in common, and errors as data."""

from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from cudaredist.errors import CudaRedistError
from cudaredist.schema.base import OwnModel

ManifestStatus = Literal["written", "would-write", "unchanged", "failed"]


class Answer(OwnModel):
    """The result of a command."""

    schema_version: Literal[1] = 1
    command: str


class Report(Answer):
    """The result of a command that decides the exit code."""

    exit_code: int

    @model_serializer(mode="wrap")
    def _with_exit_code_last(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = fields(self)
        return document | {"exit_code": document.pop("exit_code")}


class ErrorReport(OwnModel):
    """An error as data."""

    kind: str
    message: str
    reason: str = Field(description="The message without the place, equal for equal failures")
    hint: str | None = None
    changes: tuple[str, ...] = ()
    exit_code: int

    @classmethod
    def of(cls, error: CudaRedistError) -> Self:
        """Return an error as data."""
        return cls(
            kind=error.kind,
            message=error.message,
            reason=getattr(error, "reason", error.message),
            hint=error.hint,
            changes=getattr(error, "changes", ()),
            exit_code=error.exit_code,
        )

    def about(self, what: str) -> Self:
        """Return the error with a message that names what it is about."""
        if self.message.startswith(what):
            return self
        return self.model_copy(update={"message": f"{what}: {self.message}"})
