"""The exceptions of this package and their exit codes.

```text
CudaRedistError
├── UsageError                 2    wrong options or arguments
│   ├── UnknownNameError            an unknown name, with similar known ones
│   │   └── NotInDataError          something that may exist, but that the data does not have
│   └── InsecureAddressError        plain HTTP to another machine
├── IncompleteError            3    input or output is missing
│   ├── SourceError                 a source did not deliver
│   │   ├── NotAtSourceError        the file or folder does not exist there
│   │   ├── RefusedError            the source denied access
│   │   └── TransientError          a transient failure, after all retries
│   │       ├── CannotResumeError       a download can only restart
│   │       └── UnreachedError          no connection to the source
│   ├── StoppedError                the run stopped before this item
│   ├── ReadError                   a local file cannot be read
│   └── WriteError                  a local file cannot be written
├── IntegrityError             4    bytes differ from the record
│   ├── ArchiveMismatchError        an archive's size or hash differs from its manifest
│   ├── ManifestMismatchError       a manifest's size or hash differs from the list of releases
│   ├── ManifestChangedError        a published manifest changed in place
│   └── EditedLocallyError          a local manifest differs from the download
└── ContentError               5    a file's content is invalid
    ├── TooLargeError               a file exceeds its size limit
    ├── InvalidArchiveError         an archive violates its format or a limit
    ├── InvalidFileError            a file is invalid, with all of its problems
    ├── ConflictError               two packages have different files at one path
    ├── UnsafePathError             a path outside the toolkit root
    └── EmptyIndexError             an index without manifests
```

Codes 0 and 1 are results, not errors; 70 is a bug and 130 an interruption (`cli/session.py`).
Hints repeat the call of the process, which `hints.py` stores.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import ClassVar, NamedTuple, Self, TypeVar

from cudaredist.hints import again, did_you_mean, help_line, quoted, retry_line, server_line
from cudaredist.words import shortened, shown

T = TypeVar("T")

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3
EXIT_INTEGRITY = 4
EXIT_CONTENT = 5
EXIT_BUG = 70
EXIT_INTERRUPTED = 130

EXIT_CODES = {
    EXIT_OK: "done; nothing to report",
    EXIT_FINDINGS: "findings: stale data, pending changes or a violated invariant",
    EXIT_USAGE: "usage: wrong options, or an impossible request",
    EXIT_INCOMPLETE: "incomplete: upstream unreachable, or parts missing",
    EXIT_INTEGRITY: "integrity: bytes differ from the record",
    EXIT_CONTENT: "content: a file is invalid",
    EXIT_BUG: "a bug in cudaredist",
    EXIT_INTERRUPTED: "interrupted; completed results are kept",
}
"""The meaning of each exit code."""

_WORST_FIRST = (EXIT_INTEGRITY, EXIT_CONTENT, EXIT_INCOMPLETE, EXIT_FINDINGS, EXIT_OK)


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the most severe exit code, in the order 4, 5, 3, 1, 0."""
    present = set(codes)
    return next((code for code in _WORST_FIRST if code in present), EXIT_OK)


class Problem(NamedTuple):
    """A problem in a file, with the path to its field."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class CudaRedistError(Exception):
    """Base class of all errors: a message, and a hint for the next step."""

    exit_code: ClassVar[int] = EXIT_BUG
    kind: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, hint: str | None = None, changes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = self.reason = message
        self.hint, self.changes = hint, changes


class UsageError(CudaRedistError):
    """The options or arguments are wrong."""

    exit_code = EXIT_USAGE
    kind = "usage"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=help_line(hint))


class UnknownNameError(UsageError):
    """An unknown name.

    The hint lists similar names, or all known ones, and has the call with the most similar one.
    """

    def __init__(
        self, what: str, name: str, known: Iterable[str], similar: Sequence[str] = ()
    ) -> None:
        hint = did_you_mean(name, sorted(known), similar)
        super().__init__(f"no {what} is called {shown(name)}", hint=hint)


class NotInDataError(UnknownNameError):
    """A release, GPU or package that the data does not have, although it may exist."""

    def __init__(
        self, subject: str, name: str, known: Iterable[str], similar: Sequence[str] = ()
    ) -> None:
        """`subject` has the name in words, such as `CUDA 9.0`."""
        super().__init__(subject, name, known, similar)
        self.message = self.reason = f"{subject} is not in the data"
        self.args = (self.message,)


def find_name(what: str, name: str, known: Mapping[str, T]) -> T:
    """Return the entry with a name. Raises `UnknownNameError`."""
    if name not in known:
        raise UnknownNameError(what, name, known)
    return known[name]


class InsecureAddressError(UsageError):
    """Plain HTTP to another machine, without permission."""

    def __init__(self, url: str) -> None:
        hint = f"use https, or if you trust the network, run `{again('--allow-http')}`"
        super().__init__(f"{url} is not encrypted", hint=hint)


class IncompleteError(CudaRedistError):
    """Part of the result is missing or could not be written.

    The hint depends on the missing part, so only subclasses name a command.
    """

    exit_code = EXIT_INCOMPLETE
    kind = "incomplete"


class SourceError(IncompleteError):
    """A source did not deliver the requested file.

    The hint has no command, because only the owner of the source can change its answer.
    """

    kind = "source"

    def __init__(self, where: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{where}: {reason}", hint=hint)
        self.where = where
        self.reason = reason


class NotAtSourceError(SourceError):
    """The source has no such file or folder.

    The hint has no command, because the error does not know which other files the source has.
    """

    kind = "not-found"


class RefusedError(SourceError):
    """The source denied access (status 401 or 403).

    The hint has no command, because only the owner of the source can permit access.
    """


class TransientError(SourceError):
    """A transient failure of the source.

    `retry_after` is the delay that the source requests, in seconds.
    """

    def __init__(
        self, where: str, reason: str, *, retry_after: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(where, reason, hint=retry_line(hint or "wait"))
        self.retry_after = retry_after


class CannotResumeError(TransientError):
    """An interrupted download that can only restart from the beginning."""


class UnreachedError(TransientError):
    """No connection to the source."""


class StoppedError(IncompleteError):
    """The run stopped before this item, by the user or by --fail-fast."""

    kind = "stopped"

    def __init__(self) -> None:
        super().__init__("skipped: the run stopped earlier", hint=f"run `{again()}`")


STANDARD_INPUT, STANDARD_OUTPUT = "standard input", "standard output"
"""The names of streams in messages."""


class ReadError(IncompleteError):
    """An existing local file or folder cannot be read."""

    kind = "read"

    def __init__(self, path: object, error: OSError) -> None:
        hint = f"check its type and permissions: `ls -ld {quoted(str(path))}`"
        if path == STANDARD_INPUT:
            hint = f"redirect it from a file: `{again()} < FILE`"
        elif isinstance(error, FileNotFoundError):
            hint = f"check the path: `ls {_folder_of(path)}`"
        self.strerror = error.strerror or str(error)
        super().__init__(f"cannot read {path}: {self.strerror}", hint=hint)


class WriteError(IncompleteError):
    """A local file or folder cannot be written."""

    kind = "write"

    def __init__(self, path: object, error: OSError) -> None:
        parent = _folder_of(path)
        hint = f"select another folder, or change its permissions: `ls -ld {parent}`"
        if path == STANDARD_OUTPUT:
            hint = f"redirect it to another file: `{again()} > FILE`"
        elif error.errno in {errno.ENOSPC, errno.EDQUOT}:
            hint = f"free disk space: `df -h {parent}`"
        elif error.errno == errno.EISDIR:
            hint = f"move the folder of this name: `ls {quoted(str(path))}`"
        super().__init__(f"cannot write {path}: {error.strerror or error}", hint=hint)


def _folder_of(path: object) -> str:
    """Return the lowest folder of a path that exists, as a word of a shell."""
    folders = PurePath(str(path)).parents
    return quoted(str(next(filter(os.path.lexists, folders), ".")))


class ReadingFrom:
    """Context manager that converts an `OSError` to a `ReadError` for a path."""

    converted: ClassVar[type[ReadError | WriteError]] = ReadError

    def __init__(self, path: object) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise self.converted(self._path, error) from error


class WritingTo(ReadingFrom):
    """Context manager that converts an `OSError` to a `WriteError` for a path."""

    converted = WriteError


class IntegrityError(CudaRedistError):
    """Bytes differ from their recorded hash or size.

    A damaged file of the user has an unknown source, so only subclasses name a command.
    """

    exit_code = EXIT_INTEGRITY
    kind = "integrity"


class ManifestChangedError(IntegrityError):
    """A local manifest changed in place upstream. The local file was kept.

    `redownload` is the command that replaces the local file.
    """

    kind = "changed-upstream"

    def __init__(self, redownload: str, changes: tuple[str, ...]) -> None:
        message = "changed in place upstream; the local file was kept"
        hint = f"review the changes, then run `{redownload}`; "
        hint += "the local file may have been damaged in transit"
        super().__init__(message, hint=hint, changes=changes)


class ManifestMismatchError(IntegrityError):
    """A manifest's size or hash differs from its entry in `releases.json`."""

    kind = "manifest-mismatch"

    def __init__(self, where: str, quantity: str, expected: object, actual: object) -> None:
        message = f"{where}: {quantity} is {actual}, but releases.json states {expected}"
        super().__init__(message, hint=f"to download it again, run `{again()}`")


class ArchiveMismatchError(IntegrityError):
    """An archive's size or hash differs from its manifest.

    The archive's contents are ignored. Sizes are in bytes, hashes are hexadecimal SHA-256. The size
    of a wheel may also be the one in the package index.
    """

    kind = "archive-mismatch"

    def __init__(self, where: str, quantity: str, expected: object, actual: object) -> None:
        is_wheel = where.endswith(".whl")
        source = "manifest or the package index" if is_wheel and quantity == "size" else "manifest"
        message = f"{where}: {quantity} is {actual}, but the {source} states {expected}"
        hint = f"to download it again, run `{again()}`; try another source with --base-url URL, "
        hint += "and report a lasting mismatch to NVIDIA"
        if is_wheel:
            hint = "check the package indexes with `pip config list`"
        super().__init__(message, hint=hint)


class EditedLocallyError(IntegrityError):
    """A local manifest differs from its recorded hash, and upstream does not.

    `redownload` is the command that replaces the local file.
    """

    kind = "edited-locally"

    def __init__(self, redownload: str, changes: tuple[str, ...]) -> None:
        message = "was edited locally: it differs from the download"
        super().__init__(message, hint=f"to restore it, run `{redownload}`", changes=changes)


class ContentError(CudaRedistError):
    """A file's content is invalid.

    The hint has no command, because only the author of the file can correct it.
    """

    exit_code = EXIT_CONTENT
    kind = "content"


class TooLargeError(ContentError):
    """A file exceeds the size limit of its kind. The rest was not read."""

    kind = "too-large"

    def __init__(self, where: str, limit: int) -> None:
        super().__init__(f"{where}: larger than the limit of {limit:,} bytes")


class InvalidArchiveError(ContentError):
    """An archive violates its format, or a limit against malicious archives."""

    kind = "invalid-archive"

    def __init__(self, where: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{where}: {reason}", hint=hint)
        self.reason = reason


class ConflictError(ContentError):
    """Two packages have different files or links at one path."""

    kind = "conflict"


class UnsafePathError(ContentError):
    """A path outside the toolkit root, or with unprintable characters."""

    kind = "unsafe-path"

    def __init__(self, path: str, package: str) -> None:
        super().__init__(f"{package}: {shown(path)} is not a path in a toolkit root")


class EmptyIndexError(ContentError):
    """A listing without manifests, so that the published releases are unknown."""

    kind = "empty-index"

    def __init__(self, where: str) -> None:
        hint = server_line("set --base-url to the folder that contains compute/")
        super().__init__(f"{where}: the listing has no redistrib_<label>.json", hint=hint)


class InvalidFileError(ContentError):
    """A file violates the rules of its format, with all of its problems."""

    kind = "invalid"

    def __init__(self, what: str, problems: Iterable[Problem]) -> None:
        self.what = what
        self.problems = tuple(problems)
        super().__init__(f"not a valid {what}: " + "; ".join(self.lines))

    @classmethod
    def of(cls, what: str, message: str, path: str = "") -> Self:
        """Return the error for a file with one problem."""
        return cls(what, [Problem(path, message)])

    @property
    def lines(self) -> tuple[str, ...]:
        """The problems as text, at most one hundred."""
        return shortened(self.problems)


def error_kinds() -> frozenset[tuple[str, int]]:
    """Return the kind and exit code of every error."""
    classes = CudaRedistError.__subclasses__()
    for error in classes:
        classes += error.__subclasses__()
    return frozenset((error.kind, error.exit_code) for error in classes)


def problems_of(error: CudaRedistError) -> tuple[str, ...]:
    """Return the problems of an invalid file, or any other error's message."""
    return error.lines if isinstance(error, InvalidFileError) else (error.message,)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add a file's name to the problems of an `InvalidFileError`."""
    try:
        yield
    except InvalidFileError as error:
        problems = [Problem(f"{where}: {path}".rstrip(": "), text) for path, text in error.problems]
        raise InvalidFileError(error.what, problems) from None
