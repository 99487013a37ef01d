"""Inspect, verify and remove existing toolkit roots."""

import contextlib
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cudaredist.commands.materialize.report import ToolkitReport
from cudaredist.commands.materialize.staging import StagingDirectory
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INTEGRITY,
    EXIT_OK,
    ReadError,
    UsageError,
    WriteError,
)
from cudaredist.formats.toolkit_record import RECORD_NAME, ToolkitFile, ToolkitRecord
from cudaredist.store.files import hash_of
from cudaredist.store.read_data import read_record

_OWNER_EXECUTE = 0o100
_SET_ID = 0o6000


class RootContents(NamedTuple):
    """Contents of a folder, without following links."""

    files: dict[str, os.stat_result]
    """Everything except folders, by relative path."""
    empty_folders: frozenset[str]

    def foreign_to(self, record: ToolkitRecord) -> tuple[str, ...]:
        """Return the paths that the record does not have."""
        ours = {RECORD_NAME, *record.files, *record.links}
        folders = {folder.as_posix() for path in ours for folder in Path(path).parents}
        empty = (f"{folder}/" for folder in self.empty_folders - folders)
        return tuple(sorted([*(self.files.keys() - ours), *empty]))


def list_root(root: Path) -> RootContents:
    """Return a folder's contents.

    Raises `ReadError` if a subfolder cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise ReadError(error.filename or root, error)

    paths, empty = {}, set()
    for folder, folders, files in os.walk(root, onerror=refuse):
        if not folders and not files:
            empty.add(Path(folder).relative_to(root).as_posix())
        for name in (*files, *folders):
            path = Path(folder) / name
            with contextlib.suppress(FileNotFoundError):
                about = path.lstat()
                if not stat.S_ISDIR(about.st_mode):
                    paths[path.relative_to(root).as_posix()] = about
    return RootContents(paths, frozenset(empty))


def is_empty(root: Path) -> bool:
    """Check if a path is an empty folder."""
    try:
        return not any(root.iterdir())
    except OSError:
        return False


def is_intact(root: Path, record: ToolkitRecord, *, is_quick: bool) -> bool:
    """Check if all recorded files and links are unchanged.

    A quick check compares names, file sizes and link targets.
    """
    return not any(_problems(root, record, list_root(root), is_quick=is_quick))


def verify_root(root: Path) -> ToolkitReport:
    """Compare each file's hash and each link with the record.

    Other files are reported, but are not a failure. Raises `UsageError` if the root has no record.
    """
    record, folder = _record_of(root), Path(os.path.realpath(root))
    contents = list_root(folder)
    problems = tuple(f"{path}: {text}" for path, text in _problems(folder, record, contents))
    status, code = ("altered", EXIT_INTEGRITY) if problems else ("verified", EXIT_OK)
    foreign = contents.foreign_to(record)
    return toolkit_report(root, record, status, problems=problems, foreign=foreign, exit_code=code)


def altered_paths(root: Path, record: ToolkitRecord) -> frozenset[str]:
    """Return changed files and links. Reads every file."""
    return frozenset(path for path, _ in _problems(root, record, list_root(root)))


def _problems(
    root: Path, record: ToolkitRecord, contents: RootContents, *, is_quick: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield altered files and links. A quick check reads no file."""
    for path, file in sorted(record.files.items()):
        problem = _problem(root / path, file, contents.files.get(path), is_quick=is_quick)
        if problem is not None:
            yield path, problem
    for path, link in sorted(record.links.items()):
        about = contents.files.get(path)
        is_link = about is not None and stat.S_ISLNK(about.st_mode)
        if not is_link or (root / path).readlink().as_posix() != link.target:
            yield path, f"is not a link to {link.target}"


def _problem(
    path: Path, file: ToolkitFile, about: os.stat_result | None, *, is_quick: bool
) -> str | None:
    if about is None:
        return "is missing"
    if not stat.S_ISREG(about.st_mode):
        return "is not a regular file"
    is_changed = about.st_size != file.size
    if not is_changed and not is_quick:
        try:
            is_changed = hash_of(path) != file.sha256
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"
    if is_changed:
        return "was changed"
    is_executable = bool(about.st_mode & _OWNER_EXECUTE)
    has_other_mode = is_executable is not file.executable or about.st_mode & _SET_ID
    if has_other_mode and os.name != "nt" and not is_quick:
        return "its mode was changed"
    return None


def remove_root(root: Path) -> ToolkitReport:
    """Remove the installed files, then the folders that are empty.

    Other files and altered ones stay. Also removes the staging directory of an interrupted run.
    Raises `UsageError` if the root has no record.
    """
    staging = StagingDirectory(root)
    path = staging.root
    if os.path.lexists(path) or not staging.exists():
        _record_of(root)
    with staging.locked():
        # `locked` may have restored the root of an interrupted run.
        if not os.path.lexists(path):
            staging.clear()
            return toolkit_report(root, None, "removed")
        record = _record_of(root)
        contents = list_root(path)
        foreign = contents.foreign_to(record)
        altered = frozenset(_altered_contents(path, record, contents))
        if not foreign and not altered:
            # Fails if the root is a mount point.
            with contextlib.suppress(OSError):
                staging.discard(path)
        if os.path.lexists(path):
            try:
                _remove_files(path, record, contents, altered)
            except OSError as error:
                raise WriteError(error.filename or root, error) from error
        staging.clear()
    problems = tuple(f"{path}: was changed, so it is kept" for path in sorted(altered))
    code = EXIT_FINDINGS if foreign or problems else EXIT_OK
    return toolkit_report(
        root, record, "removed", problems=problems, foreign=foreign, exit_code=code
    )


def _altered_contents(root: Path, record: ToolkitRecord, contents: RootContents) -> Iterator[str]:
    """Yield the paths of installed files with other contents, and of links to other paths."""
    for path, file in record.files.items():
        about = contents.files.get(path)
        if about is None:
            continue
        try:
            is_same = stat.S_ISREG(about.st_mode) and about.st_size == file.size
            if not is_same or hash_of(root / path) != file.sha256:
                yield path
        except OSError:
            yield path
    for path, link in record.links.items():
        about = contents.files.get(path)
        if about is None:
            continue
        if not stat.S_ISLNK(about.st_mode) or (root / path).readlink().as_posix() != link.target:
            yield path


def _remove_files(
    root: Path, record: ToolkitRecord, contents: RootContents, kept: frozenset[str]
) -> None:
    """Remove each installed file, without following links, then the empty folders."""
    installed = contents.files.keys() - kept
    ours = [path for path in (*record.links, *record.files) if path in installed]
    folders = {folder for path in ours for folder in Path(path).parents}
    # Remove the record last: an interrupted run can then be repeated.
    for path in (*ours, RECORD_NAME):
        (root / path).unlink(missing_ok=True)
    for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
        # Fails if the folder is not empty.
        with contextlib.suppress(OSError):
            (root / folder).rmdir()


def toolkit_report(
    root: Path, record: ToolkitRecord | None, status: str, **about: object
) -> ToolkitReport:
    """Return the report on a root, with more fields.

    The record is None if only a staging directory was removed.
    """
    files = record.files if record else {}
    is_there = record is not None and status != "removed"
    changed = record.changed_files if record is not None and is_there else {}
    fields = {
        **{name: getattr(record, name, None) for name in ("cuda", "platform", "layout")},
        "target": next(iter(record.targets), None) if record else None,
        "root": str(root),
        "status": status,
        "packages": tuple(record.packages) if record else (),
        "files": len(files),
        "size": sum(file.size for file in files.values()),
        "missing_run_paths": record.unreached if record is not None and is_there else {},
        "changed_files": {path: file.original_sha256 for path, file in changed.items()},
        "fetched_bytes": 0,
        "problems": (),
        "foreign": (),
        "exit_code": EXIT_OK,
    }
    return ToolkitReport.model_validate(fields | about)


def _record_of(root: Path) -> ToolkitRecord:
    record = read_record(root)
    if record is None:
        staging = StagingDirectory(root)
        if not os.path.lexists(staging.root) and not staging.exists():
            create = f"cudaredist materialize set.json --output {shlex.quote(str(root))}"
            raise UsageError(f"no toolkit root at {root}", hint=f"run `{create}` to create it")
        message = f"{root} is not a cudaredist toolkit root: it has no {RECORD_NAME}"
        hint = f"an interrupted run left {staging.folder}: repeat that run"
        raise UsageError(message, hint=hint if staging.exists() else None)
    return record
