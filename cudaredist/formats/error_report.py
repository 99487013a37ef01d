"""An error as data, in the reports of all commands."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field

from cudaredist.errors import CudaRedistError
from cudaredist.formats.plain_report import PlainEntry
from cudaredist.words import without_secrets

PublicText = Annotated[str, AfterValidator(without_secrets)]
"""A message without the credentials of its addresses."""


class ErrorReport(PlainEntry):
    """An error as data."""

    kind: str
    message: PublicText
    reason: Annotated[
        PublicText,
        Field(description="The message without the affected file, equal for equal failures"),
    ]
    hint: PublicText | None = None
    changes: tuple[PublicText, ...] = ()
    exit_code: int

    @classmethod
    def of(cls, error: CudaRedistError | Self) -> Self:
        """Return an error as data, without the credentials of addresses."""
        if not isinstance(error, CudaRedistError):
            return error
        return cls(
            kind=error.kind,
            message=without_secrets(error.message),
            reason=without_secrets(error.reason),
            hint=None if error.hint is None else without_secrets(error.hint),
            changes=tuple(map(without_secrets, error.changes)),
            exit_code=error.exit_code,
        )

    def about(self, subject: str) -> Self:
        """Prefix the message with its subject, unless it already begins with it."""
        if self.message.startswith(subject):
            return self
        return self.changed(message=f"{subject}: {self.message}")
