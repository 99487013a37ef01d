"""Toolkit roots that are there: their records, whether they are whole, and how they go away."""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INTEGRITY,
    EXIT_OK,
    ReadError,
    UsageError,
    WriteError,
)
from cudaredist.pipeline.read_data import read_file_given
from cudaredist.pipeline.toolkit.staging import Workshop
from cudaredist.pipeline.toolkit.unpack import hash_of
from cudaredist.reports.archive_reports import ToolkitReport
from cudaredist.schema.toolkit_record import ToolkitFile, ToolkitRecord
from cudaredist.store.files import read_file
from cudaredist.toolkit.merge import RECORD_NAME

_RUN = 0o100
_SET_ID = 0o6000


def real_place(root: Path) -> Path:
    """Return where a root lies, behind all links: what is renamed must be the folder itself."""
    return Path(os.path.realpath(root))


def read_record(root: Path) -> ToolkitRecord | None:
    """Return the record of a root; None where it has none. Raises `InvalidFileError`."""
    path = root / RECORD_NAME
    data = read_file(path)
    return None if data is None else read_file_given(path, data, ToolkitRecord)


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a folder, without following links."""

    places: dict[str, os.stat_result]
    """All but folders, by path below it."""
    empty: frozenset[str]
    """Folders in which nothing lies."""

    def foreign_to(self, record: ToolkitRecord) -> tuple[str, ...]:
        """Return what a root holds that was not laid out."""
        ours = {RECORD_NAME, *record.files, *record.links}
        folders = {folder.as_posix() for path in ours for folder in Path(path).parents}
        empty = (f"{folder}/" for folder in self.empty - folders)
        return tuple(sorted([*(self.places.keys() - ours), *empty]))


def look_at(root: Path) -> Found:
    """Return what lies in a folder. Raises `ReadError`, also where a part cannot be looked at."""

    def refuse(error: OSError) -> None:
        raise ReadError(error.filename or root, error)

    places, empty = {}, set()
    for folder, folders, files in os.walk(root, onerror=refuse):
        if not folders and not files:
            empty.add(Path(folder).relative_to(root).as_posix())
        for name in (*files, *folders):
            path = Path(folder) / name
            with contextlib.suppress(FileNotFoundError):
                about = path.lstat()
                if not stat.S_ISDIR(about.st_mode):
                    places[path.relative_to(root).as_posix()] = about
    return Found(places, frozenset(empty))


def is_empty(root: Path) -> bool:
    """Say whether a place is a folder in which nothing lies; False for all else."""
    try:
        return not any(root.iterdir())
    except OSError:
        return False


def is_intact(root: Path, record: ToolkitRecord) -> bool:
    """Say whether all that was laid out is there, by names and sizes; no content is read."""

    def has(path: str, file: ToolkitFile) -> bool:
        about = (root / path).lstat()
        return stat.S_ISREG(about.st_mode) and about.st_size == file.size

    try:
        return all(has(path, file) for path, file in record.files.items()) and all(
            (root / path).readlink().as_posix() == link.target
            for path, link in record.links.items()
        )
    except OSError:
        return False


def verify_root(root: Path) -> ToolkitReport:
    """Say whether a root still is what was laid out: every file by its hash, every link.

    What lies there besides is named, and is no failure. Raises `UsageError` for a root not ours.
    """
    record, place = _record_of(root), real_place(root)
    found = look_at(place)
    problems = [f"{path}: {problem}" for path, problem in _problems(place, record, found)]
    return toolkit_report(
        root,
        record,
        "altered" if problems else "verified",
        problems=problems,
        foreign=found.foreign_to(record),
    )


def altered_paths(root: Path, record: ToolkitRecord) -> frozenset[str]:
    """Return the files and links of a root that are not as recorded; reads every file."""
    return frozenset(path for path, _ in _problems(root, record, look_at(root)))


def _problems(root: Path, record: ToolkitRecord, found: Found) -> Iterator[tuple[str, str]]:
    for path, file in sorted(record.files.items()):
        problem = _problem(root / path, file, found.places.get(path))
        if problem is not None:
            yield path, problem
    for path, link in sorted(record.links.items()):
        about = found.places.get(path)
        is_link = about is not None and stat.S_ISLNK(about.st_mode)
        if not is_link or (root / path).readlink().as_posix() != link.target:
            yield path, "is not the link that was laid out"


def _problem(path: Path, file: ToolkitFile, about: os.stat_result | None) -> str | None:
    if about is None:
        return "is missing"
    if not stat.S_ISREG(about.st_mode):
        return "is no file any more"
    try:
        if about.st_size != file.size or hash_of(path) != file.sha256:
            return "was changed"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    has_run = bool(about.st_mode & _RUN)
    if os.name != "nt" and (has_run is not file.executable or about.st_mode & _SET_ID):
        return "its mode was changed"
    return None


def remove_root(root: Path) -> ToolkitReport:
    """Take away what was laid out, and folders that are empty then; what is not ours stays.

    What an interrupted run left beside it goes too. Raises `UsageError` for a root not ours.
    """
    place = real_place(root)
    workshop = Workshop(place)
    if os.path.lexists(place):
        _record_of(root)
    elif not workshop.is_there():
        raise UsageError(f"{root}: nothing is there")
    with workshop.locked():
        # A root that was put aside is back now.
        if not os.path.lexists(place):
            workshop.clear()
            return toolkit_report(root, None, "removed")
        record = _record_of(root)
        found = look_at(place)
        foreign = found.foreign_to(record)
        try:
            _remove(place, record, found, workshop, is_whole_folder=not foreign)
        except OSError as error:
            raise WriteError(error.filename or root, error) from error
        workshop.clear()
    return toolkit_report(root, record, "removed", foreign=foreign)


def _remove(
    root: Path, record: ToolkitRecord, found: Found, workshop: Workshop, *, is_whole_folder: bool
) -> None:
    """Take away a root: at once if it can be, else those files that are there, behind no link."""
    if is_whole_folder:
        # What is mounted cannot be moved.
        with contextlib.suppress(OSError):
            workshop.discard(root)
            return
    ours = [path for path in (*record.links, *record.files) if path in found.places]
    folders = {folder for path in ours for folder in Path(path).parents}
    # The record goes last, so that a run that was interrupted can be repeated.
    for path in (*ours, RECORD_NAME):
        (root / path).unlink(missing_ok=True)
    for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
        # Not where something lies in it.
        with contextlib.suppress(OSError):
            (root / folder).rmdir()


def toolkit_report(
    root: Path,
    record: ToolkitRecord | None,
    status: str,
    *,
    fetched_bytes: int = 0,
    problems: Sequence[str] = (),
    foreign: Sequence[str] = (),
) -> ToolkitReport:
    """Make the report on a root; without a record, nothing was laid out yet."""
    left_behind = status == "removed" and bool(foreign)
    files = record.files if record else {}
    return ToolkitReport.model_validate(
        {
            "root": str(root),
            "status": status,
            "cuda": record.cuda if record else None,
            "platform": record.platform if record else None,
            "layout": record.layout if record else None,
            "packages": tuple(record.packages) if record else (),
            "files": len(files),
            "size": sum(file.size for file in files.values()),
            "fetched_bytes": fetched_bytes,
            "problems": tuple(problems),
            "foreign": tuple(foreign),
            "exit_code": EXIT_INTEGRITY if problems else EXIT_FINDINGS if left_behind else EXIT_OK,
        }
    )


def _record_of(root: Path) -> ToolkitRecord:
    record = read_record(root)
    if record is None:
        workshop = Workshop(real_place(root))
        raise UsageError(
            f"{root} is no toolkit root of ours: it has no {RECORD_NAME}",
            hint=f"a run that was interrupted left {workshop.folder}: repeat it"
            if workshop.is_there()
            else None,
        )
    return record
