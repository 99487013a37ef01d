"""pip, the client of package indexes, with the user's own configuration.

Everything that is asked of an index is asked through it, as a process of its own: no address, proxy
or credential is known here.
"""

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from cudaredist.errors import (
    ArchiveMismatchError,
    NotAtSourceError,
    SourceError,
    StoppedError,
    TransientError,
)
from cudaredist.primitives import sha256_of
from cudaredist.source.pip_staging import Staging
from cudaredist.source.protocol import Settings, redacted
from cudaredist.wheels import Wheel

INDEX = "the package index"

AT_ONCE = 8
"""Processes at the same time; each takes some 60 MB."""
_PATIENCE = 0.2
_SHOWN = 300
_LAZILY = "--use-feature=fast-deps"
"""Where an index has no metadata beside its wheels, pip reads their ends instead of gigabytes."""
_NOT_THERE = ("No matching distribution found", "Could not find a version that satisfies")
_UNREACHED = (
    re.compile(r"Could not fetch URL \S+: (?P<why>.+?)(?: - skipping)?$", re.MULTILINE),
    re.compile(r"(?P<why>The repository located at \S+ is not a trusted .+?) and is being ignored"),
    re.compile(r"Skipping page .+? because the (?P<why>\S+ request got Content-Type: \S+?)\.? "),
)
"""How pip says that it could not ask an index, or did not."""
_NO_PAGE = ("404 ",)
_NO_PAGE_HERE = ("404 ", "403 ", "401 ")
"""How indexes say that they lack a project, some of them, where another index has it."""
_YANKED = "yanked for reason"
_PLAIN = {"PIP_QUIET": "0", "PIP_VERBOSE": "0", "PIP_JSON": "0"}
"""What in a user's configuration would change the words that are looked for."""
_HINT = "does `pip download` work here?"
_TRACEBACK = "ERROR: Exception:"
"""What a traceback of pip's begins with; its last line says what happened."""
_WRONG_HASH = "DO NOT MATCH THE HASHES"
_is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch


class Listed(NamedTuple):
    """What an index lists of a project for some tags."""

    versions: tuple[str, ...]
    """The released ones, newest first."""
    has_yanked: bool
    """Whether there are files that no list names, and that can be had by their version alone."""


class Pip:
    """Asks the index that pip is configured for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._staging = Staging(settings.staging)
        self._turn = threading.BoundedSemaphore(AT_ONCE)
        # The pip that was installed with us, since another one may state other facts of a wheel.
        if importlib.util.find_spec("pip") is None:
            raise SourceError("pip", "not found", hint="the wheel channel needs pip: install it")
        self._command = (sys.executable, "-m", "pip")
        self._is_lazy = True

    @contextlib.contextmanager
    def temporary(self) -> Iterator[Path]:
        """Give a folder for what is needed for a moment."""
        with tempfile.TemporaryDirectory(dir=self._staging.folder()) as folder:
            yield Path(folder)

    def close(self) -> None:
        """Remove temporary files, also those of pip processes that were ended."""
        self._staging.close()

    def versions(self, project: str, tags: Iterable[str] = ()) -> Listed:
        """Return the versions of a project that have wheels with any of the tags, maybe none."""
        output, failure = self._ask(
            project, "index versions", "--only-binary=:all:", *_platform_options(tags), project
        )
        has_yanked = _YANKED in output
        if isinstance(failure, NotAtSourceError):
            return Listed((), has_yanked)
        if failure is not None:
            raise failure
        match = re.search(r"^Available versions: (.+)$", output, re.MULTILINE)
        if match is None:
            raise SourceError(INDEX, f"pip's versions of {project} are not understood")
        return Listed(tuple(match[1].split(", ")), has_yanked)

    def resolve(self, requirements: Sequence[str], tags: Iterable[str] = ()) -> list[Wheel]:
        """Return the wheels that requirements resolve to, all of them or none.

        Raises `NotAtSourceError` where one has no wheel with any of the tags.
        """
        with self.temporary() as folder:
            report = folder / "report.json"
            self._run(
                ", ".join(requirements),
                *("install", "--dry-run", "--ignore-installed", "--no-deps", _LAZILY),
                *("--only-binary=:all:", "--target", str(folder), "--report", str(report)),
                *_platform_options(tags),
                *requirements,
            )
            try:
                items = json.loads(report.read_bytes())["install"]
                return [self._wheel(item, tags) for item in items]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise SourceError(INDEX, f"pip's report is not understood: {error}") from error

    def _wheel(self, item: dict[str, dict[str, object]], tags: Iterable[str]) -> Wheel:
        metadata, download = item["metadata"], item["download_info"]
        name, version = str(metadata["name"]), str(metadata["version"])
        project = re.sub(r"[-_.]+", "-", name).lower()
        path = unquote(urlsplit(str(download["url"])).path)
        info = download.get("archive_info")
        hashes = info.get("hashes") if isinstance(info, dict) else None
        sha256 = str((hashes or {}).get("sha256", ""))
        if not _is_sha256(sha256):
            # An index that states no hash: the file itself is all there is.
            with self.temporary() as folder:
                sha256 = sha256_of(self.download(project, version, tags, folder).read_bytes())
        license_text = metadata.get("license_expression") or metadata.get("license") or "unknown"
        requires = metadata.get("requires_dist")
        return Wheel(
            project=project,
            version=version,
            file_name=path.rpartition("/")[2],
            sha256=sha256,
            summary=str(metadata.get("summary") or project).strip(),
            license=str(license_text).strip().splitlines()[0][:100],
            requires=tuple(map(str, requires)) if isinstance(requires, list) else (),
            is_yanked=bool(item.get("is_yanked")),
        )

    def download(self, project: str, version: str, tags: Iterable[str], folder: Path) -> Path:
        """Put a wheel into a folder and return its path."""
        self._run(
            f"{project}=={version}",
            *("download", "--no-deps", "--only-binary=:all:", "--dest", str(folder)),
            "--progress-bar=off",
            *_platform_options(tags),
            f"{project}=={version}",
        )
        found = next(iter(folder.glob("*.whl")), None)
        if found is None:
            raise SourceError(INDEX, f"pip brought no wheel of {project} {version}")
        return found

    def _run(self, what: str, command: str, *arguments: str) -> None:
        """Run pip; raise the failure that `_ask` returns, if any."""
        _, failure = self._ask(what, command, *arguments)
        if failure is not None:
            raise failure

    def _ask(
        self, what: str, command: str, *arguments: str
    ) -> tuple[str, SourceError | ArchiveMismatchError | None]:
        """Run pip; return what it printed and why it failed, if it did. `what` is for messages.

        An answer that leaves out an index which did not answer is a failure, too: what that one has
        would be taken for absent.
        """
        settings = self._settings
        # Only where it says everything, it tells an index that is down from one that lacks a thing.
        options = ["-vv", "--no-input", "--disable-pip-version-check", "--no-color"]
        options += ["--timeout", f"{settings.timeout:g}", "--retries", str(settings.retries)]
        if settings.offline:
            options.append("--no-index")
        call = [*self._command, *command.split(), *options, *arguments]
        plain = [word for word in call if word != _LAZILY]
        # Other threads may find out meanwhile that it does not work here.
        is_lazy = self._is_lazy and call != plain
        code, output, errors = self._called(call if is_lazy else plain)
        if code and is_lazy and not _is_absence(errors):
            # An index that cannot give parts of files, or a pip that has ended the experiment.
            code, output, errors = self._called(plain)
            if not code:
                self._is_lazy = False
        failure = _failure(what, errors) if code else None
        if failure is None or isinstance(failure, NotAtSourceError):
            why = _unreached(output + errors, _NO_PAGE if code else _NO_PAGE_HERE)
            if why is not None:
                failure = TransientError(INDEX, f"not reached for {what}: {why}", hint=_HINT)
        return output, failure

    def _called(self, call: Sequence[str]) -> tuple[int, str, str]:
        """Run a command when its turn comes; return its exit code and what it said."""
        environment = {k: v for k, v in os.environ.items() if k not in {"PIP_TARGET", "PIP_USER"}}
        environment |= _PLAIN | {"TMPDIR": str(self._staging.folder())}
        with self._turn:
            process = subprocess.Popen(  # noqa: S603 - the user's own pip
                call,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=environment,
            )
            output, errors = self._wait(process)
        return process.returncode, output, errors

    def _wait(self, process: "subprocess.Popen[str]") -> tuple[str, str]:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=_PATIENCE)
            if self._settings.stop.is_set():
                process.kill()
                process.communicate()
                raise StoppedError


def _platform_options(tags: Iterable[str]) -> list[str]:
    return [word for tag in tags for word in ("--platform", tag)]


def _shown(said: str) -> str:
    """Return pip's words without credentials, cut."""
    return re.sub(r"[A-Za-z][A-Za-z0-9+.-]*://\S+", lambda match: redacted(match[0]), said)[:_SHOWN]


def _unreached(said: str, no_page: tuple[str, ...]) -> str | None:
    """Return why an index was not asked, as pip says it; None where all were."""
    for pattern in _UNREACHED:
        for match in pattern.finditer(said):
            if not match["why"].startswith(no_page):
                return _shown(match["why"])
    return None


def _is_absence(errors: str) -> bool:
    return any(text in errors for text in _NOT_THERE)


def _failure(what: str, errors: str) -> SourceError | ArchiveMismatchError:
    """Return the error that pip's words stand for: wrong bytes, not there, or another failure."""
    if _WRONG_HASH in errors:
        return ArchiveMismatchError(what, "SHA-256", "what the index states", "another")
    if _is_absence(errors):
        return NotAtSourceError(INDEX, f"no wheel of {what}")
    said = [line for line in errors.splitlines() if line.strip()]
    named = [line for line in said if line.startswith("ERROR: ") and line != _TRACEBACK]
    why = _shown((named or said or ["pip failed without a word"])[-1].removeprefix("ERROR: "))
    return SourceError(INDEX, f"pip failed for {what}: {why}", hint=_HINT)
