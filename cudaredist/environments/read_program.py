"""Read the binaries of programs, folders and archives, without executing anything."""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cudaredist.archives.open_archive import SUFFIXES, open_archive
from cudaredist.binaries.examine_file import examine_file
from cudaredist.binaries.file_content import Scratch
from cudaredist.binaries.file_facts import Binary
from cudaredist.environments.installed import Environment, find_environment, included_python
from cudaredist.errors import (
    ContentError,
    CudaRedistError,
    IncompleteError,
    ReadError,
    ReadingFrom,
    UsageError,
)
from cudaredist.features.archive_tree import build_tree
from cudaredist.features.gather import gather
from cudaredist.formats.error_report import ErrorReport
from cudaredist.grouping import grouped
from cudaredist.programs.declared import Declared, read_declared
from cudaredist.programs.program import ProgramFile, WheelMember
from cudaredist.programs.report import AuditInput
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import FolderFacts
from cudaredist.words import plural, printable, shortened

_FILES_LIMIT = 1_000_000
_JUNCTION = 0xA0000003
"""IO_REPARSE_TAG_MOUNT_POINT of Windows."""
_NOTES_SHOWN = 5
_is_library = re.compile(r".+(?:\.so(?:\.[0-9]+)*|\.dll|\.pyd)", re.IGNORECASE).fullmatch


@dataclass(kw_only=True)
class ProgramReader:
    """Reads the paths of one program."""

    cache: Cache
    progress: Progress = NO_PROGRESS
    paths: Sequence[Path] = ()
    files: list[ProgramFile] = field(default_factory=list)
    inputs: list[AuditInput] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Files that were not read, although they may be libraries."""
    errors: list[ErrorReport] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    declared: list[Declared] | None = None
    """The requirements of wheels, None if no metadata could be read."""

    def read_all(self) -> Self:
        """Read all paths, and return the reader.

        A path that fails is reported, and the others continue. Raises `UsageError` for a
        path that is neither a file nor a folder.
        """
        sizes = [size_of(path) for path in self.paths]
        self.progress.expect(len(sizes), sum(sizes))
        for path, size in zip(self.paths, sizes, strict=True):
            number = self.progress.begin(path.name, size)
            is_done = False
            try:
                prefix = "" if len(sizes) == 1 else f"{_name_of(path)}/"
                before = len(self.files)
                files = self._read(path, number, prefix)
                binaries = len(self.files) - before
                self.inputs.append(AuditInput(path=str(path), files=files, binaries=binaries))
                is_done = True
            except CudaRedistError as error:
                self.errors.append(ErrorReport.of(error).about(str(path)))
            finally:
                self.progress.end(number, is_done=is_done)
        return self

    def _read(self, path: Path, number: int, prefix: str) -> int:
        """Read a path, and return the number of its files."""
        if path.is_dir():
            return self._read_folder(path, prefix)
        if path.name.lower().endswith(SUFFIXES):
            return self._read_archive(path, number, prefix)
        binary = examine_file(path)
        if binary is None or binary.kind == "script":
            hint = f"archives end with {', '.join(SUFFIXES)}"
            raise ContentError(f"{path}: not a program, library or archive", hint=hint)
        self._add(_name_of(path), binary, {path.name}, size=size_of(path))
        return 1

    def _read_archive(self, path: Path, number: int, prefix: str) -> int:
        with (
            closing(Scratch(self.cache.temporary_folder())) as scratch,
            ReadingFrom(path),
            path.open("rb") as file,
        ):
            members = open_archive(path.name, file)
            tree = build_tree(gather(members, scratch, only_binaries=True).members)
        self.progress.advance(number, size_of(path))
        links = grouped((end, link.rpartition("/")[2]) for link, end in tree.links.items())
        is_wheel = path.suffix.lower() == ".whl"
        for name, entry in sorted(tree.files.items()):
            member = WheelMember(str(path), name) if is_wheel else None
            names = {name.rpartition("/")[2], *links.get(name, ())}
            self._add(prefix + name, entry.binary, names, member, size=entry.size)
        if is_wheel:
            declared = read_declared(path)
            if declared is None:
                self.notes.append(f"{path.name}: METADATA is not read")
            else:
                self.declared = [*(self.declared or ()), *declared]
        unsafe = shortened(tree.unsafe, _NOTES_SHOWN)
        self.notes += (printable(f"{path.name}: {note}") for note in unsafe)
        self.skipped += (printable(prefix + note) for note in tree.skipped)
        return len(tree.files)

    def _read_folder(self, path: Path, prefix: str) -> int:
        environment = find_environment(path)
        known = FolderFacts(self.cache, path)
        start = len(os.path.join(path, ""))  # noqa: PTH118 - a trailing separator
        real = os.path.realpath(path).rstrip("/")
        contents = _contents_of(path, known)
        known.remember()
        first = len(self.files)
        names_of = self._names_of(contents.links, path, prefix, environment)
        for each, status, binary in contents.binaries:
            names = {each.name, *names_of.get((status.st_dev, status.st_ino), ())}
            relative = each.path[start:].replace(os.sep, "/")
            on_disk = "" if environment is None else f"{real}/{relative}"
            self._add(prefix + relative, binary, names, on_disk=on_disk, size=status.st_size)
        archives = contents.archives
        self._report_unreadable(contents.unreadable, environment)
        self.files[first:] = sorted(self.files[first:], key=_order)
        self.skipped.sort()
        binaries = self.files[first:]
        if archives:
            count = plural(archives, "archive in it is", "archives in it are")
            note = printable(f"{path}: {count} not read; name them instead")
            self.notes.append(note)
            self.skipped += [] if binaries else [note]
        if environment is not None:
            for folder in sorted(contents.packages):
                environment.add_package(folder)
            environment.files.extend(binaries)
            python = included_python(environment)
            if python is not None:
                note = f"{path} includes the packages of {python}; they are not examined"
                self.notes.append(printable(note))
            self.environments.append(environment)
        return contents.files

    def _names_of(
        self,
        links: Iterable[os.DirEntry[str]],
        path: Path,
        prefix: str,
        environment: Environment | None,
    ) -> dict[tuple[int, int], set[str]]:
        """Return the names of links in a folder by the identity of their target."""
        # Links of a root file system are relative to this root.
        is_root = environment is not None and environment.kind == "root file system"
        root = Path("/") if is_root else path.resolve()
        start = len(os.path.join(path, ""))  # noqa: PTH118 - a trailing separator
        names: dict[tuple[int, int], set[str]] = defaultdict(set)
        for each in links:
            target = _target_status(each)
            if target is not None:
                names[target.st_dev, target.st_ino].add(each.name)
                if _hides_library(Path(each), target, root):
                    name = prefix + each.path[start:]
                    self.skipped.append(printable(f"{name} (a link to elsewhere)"))
        return names

    def _report_unreadable(self, reasons: dict[str, str], environment: Environment | None) -> None:
        """Report files and folders that cannot be read, such as those of another user.

        `reasons` are by path. Libraries, programs, folders and the metadata of packages may change
        the answer about an environment.
        """
        texts = {name: printable(f"{name} ({reasons[name]})") for name in sorted(reasons)}
        self.skipped += texts.values()
        self.notes += (
            f"not read: {text}" for text in shortened(list(texts.values()), _NOTES_SHOWN)
        )
        if environment is not None:
            environment.unreadable.extend(texts[name] for name in texts if _is_relevant(name))

    def _add(
        self,
        path: str,
        binary: Binary | None,
        names: set[str],
        member: WheelMember | None = None,
        *,
        on_disk: str = "",
        size: int = 0,
    ) -> None:
        """Add a file to the program if it is a binary."""
        if binary is None or binary.kind == "script":
            if binary is None and _is_library(path):
                self.skipped.append(printable(f"{path} (neither ELF nor PE)"))
            return
        # In an environment, the loader searches for names of files only.
        if binary.kind == "elf" and binary.soname and not on_disk:
            names = names | {binary.soname}
        self.files.append(ProgramFile(printable(path), binary, names, member, on_disk, size))


@dataclass(slots=True)
class _FolderContents:
    """The files and links in a folder, as far as they count."""

    files: int = 0
    archives: int = 0
    links: list[os.DirEntry[str]] = field(default_factory=list)
    binaries: list[tuple[os.DirEntry[str], os.stat_result, Binary | None]] = field(
        default_factory=list
    )
    """Binaries, and files with the name of a library, which have no facts."""
    packages: list[Path] = field(default_factory=list)
    """The folders with the metadata of packages."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """The reasons why files and folders cannot be read, by path."""


def _contents_of(path: Path, known: FolderFacts) -> _FolderContents:
    """Return the contents of a folder, with the facts of its files."""
    contents = _FolderContents()
    for each in _walk(path, contents.unreadable):
        if each.is_symlink():
            contents.links.append(each)
            continue
        contents.files += 1
        if each.name.lower().endswith(SUFFIXES):
            contents.archives += 1
        if each.name == "METADATA":
            contents.packages.append(Path(each).parent)
        try:
            with ReadingFrom(each.path):
                status = _status_of(each)
            binary = known.examine(each.path, status)
        except ReadError as error:
            contents.unreadable[each.path] = error.strerror
            continue
        if binary is not None or _is_library(each.name):
            contents.binaries.append((each, status, binary))
    return contents


def _order(file: ProgramFile) -> list[tuple[bool, str]]:
    """Return the position of a file: after those before it in its folder, before subfolders."""
    *folders, name = file.display_path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]


def size_of(path: Path) -> int:
    """Return the size of a file, 0 for a folder.

    Raises `ReadError`, and `UsageError` for anything else.
    """
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        error = ReadError(path, FileNotFoundError("no such file or folder"))
        raise UsageError(f"{path}: no such file or folder", hint=error.hint) from None
    except OSError as error:
        raise ReadError(path, error) from error
    if stat.S_ISDIR(about.st_mode):
        return 0
    if not stat.S_ISREG(about.st_mode):
        raise UsageError(f"{path}: not a file or folder")
    return about.st_size


def _name_of(path: Path) -> str:
    return path.name or path.resolve().name


def _walk(path: Path, unreadable: dict[str, str]) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files and links below a folder, in any order.

    A folder may have hundreds of thousands of files, so they are neither kept nor sorted. Folders
    behind links are not read. Pipes and devices are left out. Folders below that cannot be read are
    added to `unreadable` with the reason. Raises `ReadError` if the folder itself cannot be read,
    and `IncompleteError` for too many files.
    """
    count, folders = 0, [str(path)]
    while folders:
        folder, below = folders.pop(), []
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    if each.is_symlink() or each.is_file(follow_symlinks=False):
                        count += 1
                        if count > _FILES_LIMIT:
                            message = f"{path}: more than {_FILES_LIMIT:,} files"
                            raise IncompleteError(message, hint="name a subfolder")
                        yield each
                    elif each.is_dir(follow_symlinks=False) and not _is_junction(each):
                        below.append(each.path)
        except OSError as error:
            failed = ReadError(error.filename or folder, error)
            if folder == str(path):
                raise failed from error
            unreadable[folder] = failed.strerror
        folders += below


def _status_of(file: os.DirEntry[str]) -> os.stat_result:
    """Return the status of a file. On Windows, that of an entry has no identity."""
    return Path(file).lstat() if os.name == "nt" else file.stat(follow_symlinks=False)


def _is_junction(folder: os.DirEntry[str]) -> bool:
    """Check if a folder of Windows is a link to another one."""
    return getattr(folder.stat(follow_symlinks=False), "st_reparse_tag", 0) == _JUNCTION


def _hides_library(link: Path, target: os.stat_result, root: Path) -> bool:
    """Check if a link leads to a folder or library outside the root."""
    is_relevant = stat.S_ISDIR(target.st_mode) or _is_library(link.name)
    return bool(is_relevant) and not link.resolve().is_relative_to(root)


def _is_relevant(name: str) -> bool:
    """Check if a file or folder that cannot be read may be of importance."""
    path = Path(name)
    is_metadata = path.parent.suffix == ".dist-info" and path.name in {"METADATA", "RECORD"}
    if _is_library(name) or is_metadata:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) or bool(mode & 0o111)


def _target_status(link: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return link.stat()
    except OSError:
        return None
