"""Create the findings of `check`.

Each finding has the exit code that it would cause alone. With exit code 0, it is a note for the
maintainer and does not fail a build.
"""

from collections.abc import Generator, Sequence
from pathlib import Path

from cudaredist.commands.check.report import Finding, FindingKind
from cudaredist.errors import (
    EXIT_CONTENT,
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_INTEGRITY,
    EXIT_OK,
    CudaRedistError,
    ReadError,
    problems_of,
)
from cudaredist.formats.base import OwnModel
from cudaredist.formats.registry import FileKind, parse_own_json, read_own_file
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import Version
from cudaredist.store.data_folder import Store
from cudaredist.store.files import read_file

_EXIT_CODES: dict[FindingKind, int] = {
    "gone": EXIT_OK,
    "legacy-features": EXIT_OK,
    "platform-lost": EXIT_OK,
    "changed-upstream": EXIT_INTEGRITY,
    "edited-locally": EXIT_INTEGRITY,
    "invalid": EXIT_CONTENT,
    "unreachable": EXIT_INCOMPLETE,
    "unreadable": EXIT_INCOMPLETE,
}


def finding(
    kind: FindingKind,
    message: str,
    *,
    redist: str | None = None,
    label: Version | None = None,
    path: str | None = None,
    hint: str | None = None,
    details: Sequence[str] = (),
    exit_code: int | None = None,
) -> Finding:
    """Create a finding, by default with the exit code of its kind."""
    return Finding(
        kind=kind,
        exit_code=_EXIT_CODES.get(kind, EXIT_FINDINGS) if exit_code is None else exit_code,
        redist=redist,
        release=None if label is None else str(label),
        path=path,
        message=message,
        hint=hint,
        details=tuple(details),
    )


def own_file_findings(
    store: Store, path: Path, kind: FileKind
) -> Generator[Finding, None, OwnModel | None]:
    """Yield a file's defects, and return its model unless it is broken."""
    try:
        data = read_file(path) or b""
        document = parse_own_json(data)
        model = read_own_file(data, kind.model)
    except ReadError as error:
        yield finding("unreadable", error.message, path=store.relative(path))
        return None
    except CudaRedistError as error:
        yield finding(
            "invalid",
            f"not a valid {kind.name} file",
            path=store.relative(path),
            details=problems_of(error),
        )
        return None
    if canonical_json(document) != data:
        yield finding(
            "not-canonical",
            "not in canonical form (sorted keys, two spaces, final newline)",
            path=store.relative(path),
            hint="run the command that writes this file again",
        )
    return model
