"""Types of the fields in models and in plain entries."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from cudaredist.primitives import (
    ARCHIVE_PATH_PATTERN,
    INNER_FOLDER_PATTERN,
    INNER_PATH_PATTERN,
    LABEL_PATTERN,
    SHA256_PATTERN,
)


def _no_boolean(value: object) -> object:
    """Reject booleans.

    True equals 1, so pydantic accepts it for `Literal[1]`, but JSON Schema does not.
    """
    if isinstance(value, bool):
        raise ValueError("expected a number, not a boolean")  # noqa: TRY004 - pydantic requires it
    return value


SchemaVersion = Annotated[Literal[1], BeforeValidator(_no_boolean)]
HexSha256 = Annotated[str, Field(pattern=SHA256_PATTERN, min_length=64, max_length=64)]
Label = Annotated[
    str, Field(pattern=LABEL_PATTERN, description="A manifest's label, as in its file name")
]
VersionText = Annotated[
    str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$", description="The version in its published form")
]
CudaMinor = Annotated[
    str,
    Field(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$", description="Two numbers. 12.9 includes all 12.9.x"),
]
PlainCapability = Annotated[
    str,
    Field(
        pattern=r"^[1-9][0-9]{0,2}\.[0-9]$", description="Without a variant's letter, such as 10.3"
    ),
]
CapabilityName = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,2}\.[0-9][af]?$")]
InnerPath = Annotated[
    str, Field(pattern=INNER_PATH_PATTERN, description="Relative path without `..`")
]
InnerFolder = Annotated[
    str,
    Field(
        pattern=INNER_FOLDER_PATTERN,
        description="Relative path without `..`. Empty or `.`: the folder itself",
    ),
]
ArchivePath = Annotated[
    str, Field(pattern=ARCHIVE_PATH_PATTERN, description="Path of an archive in a manifest")
]
Count = Annotated[int, Field(ge=0)]
