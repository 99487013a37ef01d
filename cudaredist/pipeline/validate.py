"""validate: judge whether a file is a good manifest, or a good file of ours."""

from collections.abc import Sequence
from pathlib import Path

from cudaredist.errors import (
    EXIT_CONTENT,
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    CudaRedistError,
    InvalidFileError,
    Problem,
    ReadError,
    worst_exit_code,
)
from cudaredist.jsontext import canonical_json
from cudaredist.pipeline.upstream import judge_manifest
from cudaredist.primitives import label_of_manifest_name
from cudaredist.redists import REDISTS
from cudaredist.reports import FileVerdict, ValidateReport
from cudaredist.schema import (
    FILE_KINDS,
    kind_of_document,
    parse_own_json,
    read_own_document,
    schema_version_of,
)
from cudaredist.store import first_of, problems_of, read_file


def validate_files(paths: Sequence[Path], *, strict: bool = False) -> ValidateReport:
    """Judge files one by one, telling manifests and our own files apart by their content.

    With `strict`, warnings about a manifest refuse it. A file of ours that is valid and not in
    canonical form is a finding.
    """
    verdicts = tuple(_verdict(path, strict=strict) for path in paths)
    return ValidateReport(
        files=verdicts, exit_code=worst_exit_code(verdict.exit_code for verdict in verdicts)
    )


def _verdict(path: Path, *, strict: bool) -> FileVerdict:
    try:
        data = read_file(path)
    except ReadError as error:
        return _unread(path, error.message)
    if data is None:
        return _unread(path, "no such file")
    kind: str | None = None
    try:
        document = parse_own_json(data)
        if schema_version_of(document) is not None:
            own = kind_of_document(document)
            if own is None:
                known = ", ".join(FILE_KINDS)
                problem = Problem("", f"has a schema_version, but is of no kind known ({known})")
                raise InvalidFileError("data file", [problem])
            kind = own.name
            read_own_document(document, data, own)
            return _own_verdict(path, kind, is_canonical=canonical_json(document) == data)
        kind = "manifest"
        return _manifest_verdict(path, data, strict=strict)
    except CudaRedistError as error:
        return FileVerdict(
            file=str(path),
            kind=kind,
            valid=False,
            summary=f"not a valid {kind or 'JSON'} file",
            problems=problems_of(error),
            exit_code=EXIT_CONTENT,
        )


def _own_verdict(path: Path, kind: str, *, is_canonical: bool) -> FileVerdict:
    return FileVerdict(
        file=str(path),
        kind=kind,
        valid=True,
        summary=f"valid {kind} file" + ("" if is_canonical else ", not in canonical form"),
        exit_code=EXIT_OK if is_canonical else EXIT_FINDINGS,
    )


def _manifest_verdict(path: Path, data: bytes, *, strict: bool) -> FileVerdict:
    redist = REDISTS.get(path.absolute().parent.name)
    label = label_of_manifest_name(path.name)
    manifest, warnings = judge_manifest(data, label, redist, strict=strict)
    archives = list(manifest.archives)
    return FileVerdict(
        file=str(path),
        kind="manifest",
        valid=True,
        summary=(
            f"valid manifest, {manifest.shape}, label {manifest.label or 'unknown'}: "
            f"{len(manifest.packages)} packages, {len(archives)} archives, "
            f"{len(manifest.platforms)} platforms"
        ),
        warnings=first_of([str(warning) for warning in warnings]),
        exit_code=EXIT_OK,
    )


def _unread(path: Path, reason: str) -> FileVerdict:
    return FileVerdict(
        file=str(path), kind=None, valid=False, summary=reason, exit_code=EXIT_INCOMPLETE
    )
