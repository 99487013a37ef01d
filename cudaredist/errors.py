"""Every error this package raises on purpose, each with its exit code.

```text
CudaRedistError
├── UsageError                 2    the call is wrong
│   ├── UnknownNameError            a name nobody knows, with the nearest known one
│   └── InsecureAddressError        plain http to another machine
├── IncompleteError            3    something could not be had or written
│   ├── SourceError                 a source did not deliver
│   │   ├── NotAtSourceError        it answered that it has no such thing
│   │   ├── RefusedError            it answered that access is denied
│   │   └── TransientError          trying again may help (and was tried)
│   │       ├── CannotResumeError       only from the beginning
│   │       └── UnreachedError          no connection could be made
│   ├── StoppedError                the run was stopped before this item's turn
│   ├── ReadError                   a file of ours could not be read
│   └── WriteError                  a file could not be written
├── IntegrityError             4    bytes are not what was recorded
│   ├── ArchiveMismatchError        an archive's size or hash is not what its manifest states
│   ├── ManifestChangedError        a published manifest changed in place
│   └── EditedLocallyError          a held manifest is not what was fetched
└── ContentError               5    bytes are not understood
    ├── TooLargeError               more bytes than any such file may have
    ├── InvalidArchiveError         an archive that breaks its format or a limit
    ├── InvalidFileError            an upstream file, or one of ours, with every problem found
    ├── ConflictError               two packages have different files under one path
    ├── UnsafePathError             a path that would leave a toolkit root
    └── EmptyIndexError             an index that lists no manifest
```

Codes 0 and 1 are results, not errors; 70 is a bug and 130 an interruption (`cli/session.py`).
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

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
    EXIT_FINDINGS: "findings: stale, would change, an invariant does not hold",
    EXIT_USAGE: "the call is wrong, or cannot be met",
    EXIT_INCOMPLETE: "upstream unreachable, or the result is incomplete",
    EXIT_INTEGRITY: "integrity: bytes are not what was recorded",
    EXIT_CONTENT: "content not understood: a file is invalid",
    EXIT_BUG: "a bug",
    EXIT_INTERRUPTED: "interrupted; everything finished until then is kept",
}
"""The meaning of each exit code."""

_WORST_FIRST = (EXIT_INTEGRITY, EXIT_CONTENT, EXIT_INCOMPLETE, EXIT_FINDINGS, EXIT_OK)
_LINES_KEPT = 100


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the one code that stands for many results: 4 before 5 before 3 before 1 before 0."""
    present = set(codes)
    return next((code for code in _WORST_FIRST if code in present), EXIT_OK)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong or odd in a file, and the path to the field where it stands."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class CudaRedistError(Exception):
    """The root of all errors of this package: what happened, and a hint at what to do next."""

    exit_code: ClassVar[int] = EXIT_BUG
    kind: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CudaRedistError):
    """The call cannot be carried out as it was made."""

    exit_code = EXIT_USAGE
    kind = "usage"


class UnknownNameError(UsageError):
    """A name that stands in no list; the hint names the nearest known ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
        super().__init__(f"no {what} is called {shown(name)}", hint=hint)


def find_name(what: str, name: str, known: Mapping[str, T]) -> T:
    """Return the entry of a name, or raise `UnknownNameError` with the nearest ones."""
    if name not in known:
        raise UnknownNameError(what, name, known)
    return known[name]


class InsecureAddressError(UsageError):
    """Plain http to a machine that is not this one, without leave."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} would be fetched without encryption",
            hint="use https, or --allow-http if you trust every machine on the way",
        )


class IncompleteError(CudaRedistError):
    """Something could not be had or written, so the result lacks it."""

    exit_code = EXIT_INCOMPLETE
    kind = "incomplete"


class SourceError(IncompleteError):
    """A source did not deliver what was asked of it."""

    kind = "source"

    def __init__(self, where: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{where}: {reason}", hint=hint)
        self.where = where
        self.reason = reason


class NotAtSourceError(SourceError):
    """The source answered, and has no such file or folder."""

    kind = "not-found"


class RefusedError(SourceError):
    """The source denied access, by 401 or 403."""


class TransientError(SourceError):
    """The source failed in a way that may pass; `retry_after` is its own wish, in seconds."""

    def __init__(
        self, where: str, reason: str, *, retry_after: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(where, reason, hint=hint)
        self.retry_after = retry_after


class CannotResumeError(TransientError):
    """A download broke and cannot go on where it broke; it can begin again."""


class UnreachedError(TransientError):
    """No connection to the source could be made."""


class StoppedError(IncompleteError):
    """The run was stopped, by the user or by --fail-fast, before this item was done."""

    kind = "stopped"

    def __init__(self) -> None:
        super().__init__("not done: the run was stopped before", hint="run the same command again")


class ReadError(IncompleteError):
    """A file or folder of ours is there and could not be read."""

    kind = "read"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(
            f"cannot read {path}: {error.strerror or error}",
            hint="look at what is there, and at its permissions",
        )


class WriteError(IncompleteError):
    """A file or folder of ours could not be written."""

    kind = "write"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(
            f"cannot write {path}: {error.strerror or error}",
            hint="make room or permission there, or choose another folder "
            "with --data-dir or --cache-dir",
        )


class WritingTo:
    """Turns an `OSError` within a block into a `WriteError` about a path."""

    def __init__(self, path: object) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Begin to write."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise WriteError(self._path, error) from error


class IntegrityError(CudaRedistError):
    """Bytes differ from what was recorded of them."""

    exit_code = EXIT_INTEGRITY
    kind = "integrity"


class ManifestChangedError(IntegrityError):
    """A manifest that was fetched before has other bytes upstream now; the held one was kept."""

    kind = "changed-upstream"

    def __init__(self, name: str, changes: tuple[str, ...]) -> None:
        super().__init__(
            f"{name} changed in place upstream; the held file was kept",
            hint="look at the changes, then take them with --accept-changed; "
            "the held file may be one that was damaged in transit",
        )
        self.changes = changes


class ArchiveMismatchError(IntegrityError):
    """An archive's size or hash is not the one that its manifest states; nothing in it is believed.

    Sizes are in bytes, hashes lower-case hex of SHA-256.
    """

    kind = "archive-mismatch"

    def __init__(self, where: str, what: str, expected: object, found: object) -> None:
        super().__init__(
            f"{where}: {what} is {found}, and the manifest states {expected}",
            hint="try another source; if it stays, tell NVIDIA",
        )


class EditedLocallyError(IntegrityError):
    """A held manifest differs from the bytes that were recorded, which upstream still serves."""

    kind = "edited-locally"

    def __init__(self, name: str, changes: tuple[str, ...]) -> None:
        super().__init__(
            f"{name} was edited locally: the held file is not what was fetched",
            hint="delete the file and run again, or take upstream's with --accept-changed",
        )
        self.changes = changes


class ContentError(CudaRedistError):
    """Bytes that are not what such a file may hold."""

    exit_code = EXIT_CONTENT
    kind = "content"


class TooLargeError(ContentError):
    """More bytes than any file of this kind may have; reading stopped there."""

    kind = "too-large"

    def __init__(self, where: str, limit: int) -> None:
        super().__init__(f"{where}: larger than {limit:,} bytes, which no such file may be")


class InvalidArchiveError(ContentError):
    """An archive that breaks the rules of its format, or a limit that no honest archive reaches."""

    kind = "invalid-archive"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


class ConflictError(ContentError):
    """Two packages have different files, or links, under one path."""

    kind = "conflict"

    def __init__(self, path: str, first: str, second: str) -> None:
        super().__init__(
            f"{path} is in {first} and in {second}, and not the same",
            hint=f"leave one out (--exclude {second}), or lay them out apart (--layout split)",
        )


class UnsafePathError(ContentError):
    """A path that would not lie below the root, or not be printed as it is."""

    kind = "unsafe-path"

    def __init__(self, path: str, package: str) -> None:
        super().__init__(f"{package}: {shown(path)} is no path in a toolkit root")


class EmptyIndexError(ContentError):
    """A listing was found and names no manifest, so nothing can be said of what is published."""

    kind = "empty-index"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where}: the listing names no redistrib_<label>.json",
            hint="is this the folder that holds the manifests? "
            "--base-url wants the one that holds compute/",
        )


class InvalidFileError(ContentError):
    """A file that breaks the rules of its format, with every problem found in it."""

    kind = "invalid"

    def __init__(self, what: str, problems: Iterable[Problem]) -> None:
        self.what = what
        self.problems = tuple(problems)
        super().__init__(f"not a valid {what}: " + "; ".join(self.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """The problems as text, cut to a hundred."""
        return shortened([str(problem) for problem in self.problems])


def shown(text: str, limit: int = 60) -> str:
    """Quote foreign text for a message: one line, ASCII, cut at `limit` characters."""
    return ascii(text) if len(text) <= limit else f"{text[:limit]!a}… ({len(text)} characters)"


def error_kinds() -> frozenset[tuple[str, int]]:
    """Return the kind and the exit code of every error."""
    classes = CudaRedistError.__subclasses__()
    for error in classes:
        classes += error.__subclasses__()
    return frozenset((error.kind, error.exit_code) for error in classes)


def printable(text: str) -> str:
    """Escape unprintable characters in foreign text; unlike `shown`, add no quotes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def command_line(command: str, *flags: str, channel: str = "redist", **options: object) -> str:
    """Return a command to type; the default channel is left out."""
    named = options if channel == "redist" else {"channel": channel, **options}
    values = (f"--{name} {value}" for name, value in named.items())
    return " ".join(["cudaredist", command, *values, *flags])


def problems_of(error: CudaRedistError) -> tuple[str, ...]:
    """Return the single problems of an error, or its message as the only one."""
    if isinstance(error, InvalidFileError):
        return error.lines
    return (error.message,)


def shortened(items: Sequence[str], limit: int = _LINES_KEPT) -> tuple[str, ...]:
    """Return the first items, and the number of those left out if there are any."""
    more = len(items) - limit
    return tuple(items) if more <= 0 else (*items[:limit], f"and {more} more")
