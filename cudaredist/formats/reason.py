"""The reason why a package set omits a package, as sets and reports have it."""

from typing import Annotated, Literal

from pydantic import Field

from cudaredist.formats.plain_report import PlainEntry

ReasonCode = Literal[
    "not-in-manifest",
    "platform-not-published",
    "variant-not-published",
    "capability-unsupported",
    "cuda-version-unsupported",
    "dependency-unavailable",
    "unresolved-library",
    "outputs-empty",
    "withheld-by-policy",
    "other-operating-system",
    "marked-broken",
]


class Reason(PlainEntry):
    """The reason for an unavailable package."""

    code: ReasonCode
    text: str
    subject: str
    source: Annotated[str, Field(description="The data or policy file")]
