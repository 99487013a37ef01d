"""Run paths of a wheel's files, and the folders of the libraries that they need."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cudaredist.audit.needs import LibraryNeed
from cudaredist.audit.program import KnownLibrary, ProgramFile
from cudaredist.packagesets.libraries import key_of

_ORIGIN = "$ORIGIN"
_without_major = re.compile(r"(?:nvidia-)?(.+?)(?:-cu[0-9]+)?").fullmatch
_MAJOR_WITH_COMMON_FOLDER = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPathGap:
    """A CUDA library to which no run path of a file leads."""

    file: ProgramFile
    need: LibraryNeed
    run_path: str | None
    """A run path that leads to it. None if its folder depends on the version of its wheel."""


def run_path_gaps(
    program: Sequence[ProgramFile], needs: Iterable[LibraryNeed]
) -> Iterator[RunPathGap]:
    """Yield the CUDA libraries that the loader does not find by run paths.

    Only files of wheels are checked, because they are installed next to NVIDIA's wheels. A library
    is checked if it is in the program or in one of NVIDIA's wheels. In the program, only a file
    with the name of the library is a match.
    """
    found = _RunPaths([file for file in program if _has_run_path(file)])
    for need in needs:
        if need.kind == "needed" and need.is_cuda and need.status in {"bundled", "provided"}:
            folders = _folders_of(need)
            if not folders and need.status == "provided":
                continue
            for file in found.not_leading_to(folders, need.by):
                yield RunPathGap(file=file, need=need, run_path=_run_path(file, need))


def _has_run_path(file: ProgramFile) -> bool:
    binary = file.binary
    return file.installed is not None and binary.kind == "elf" and "runpath" not in binary.unread


class _RunPaths:
    """The folders below site-packages that the loader searches for each file.

    Like DT_RPATH, the run paths of a file also apply to the libraries that it needs.
    """

    def __init__(self, files: Sequence[ProgramFile]) -> None:
        self._folders = {file.shown: frozenset(_own_folders(file)) for file in files}
        self._files = files
        self._by_name: dict[str, list[ProgramFile]] = defaultdict(list)
        for file in files:
            for name in file.names:
                self._by_name[key_of(name)].append(file)

    def not_leading_to(
        self, folders: Collection[str], files: Iterable[ProgramFile]
    ) -> list[ProgramFile]:
        """Return the files for which the loader searches none of some folders."""
        reached = self._reached_from(folders)
        return [f for f in files if f.shown in self._folders and f.shown not in reached]

    def _reached_from(self, folders: Collection[str]) -> set[str]:
        """Return the files for which the loader searches a folder.

        Each name is followed only once, because many files may share it.
        """
        queue = [file for file in self._files if not self._folders[file.shown].isdisjoint(folders)]
        reached, names = {file.shown for file in queue}, set[str]()
        while queue:
            new = {key_of(name) for name in queue.pop().binary.needed} - names
            names |= new
            libraries = [library for name in new for library in self._by_name.get(name, ())]
            queue += [library for library in libraries if library.shown not in reached]
            reached.update(library.shown for library in libraries)
        return reached


def _own_folders(file: ProgramFile) -> Iterator[str]:
    here = posixpath.dirname(file.installed or "")
    for entry in file.binary.runpath:
        start, _, rest = entry.replace("${ORIGIN}", _ORIGIN).partition("/")
        if start == _ORIGIN:
            yield posixpath.normpath(posixpath.join(here, rest))


def _folders_of(need: LibraryNeed) -> set[str]:
    """Return the folders below site-packages that may contain a library."""
    if need.status == "provided":
        return {folder for one in need.providers for folder in _wheel_folders(one)}
    paths = (file.installed or "" for file in need.bundled)
    named = (path for path in paths if posixpath.basename(path) == need.soname)
    return {posixpath.normpath(posixpath.dirname(path)) for path in named}


def _wheel_folders(library: KnownLibrary) -> Iterator[str]:
    """Yield the folders that NVIDIA's wheels have used for a library.

    Only libraries of CUDA itself have exactly one folder for each CUDA major.
    """
    match = _without_major(library.project or "")
    if match is None:
        return
    name, major = match[1].replace("-", "_"), library.major or 0
    if library.redist == "cuda":
        yield f"nvidia/{name if major < _MAJOR_WITH_COMMON_FOLDER else f'cu{major}'}/lib"
    else:
        yield from (f"nvidia/{name}/lib", f"nvidia/cu{major}/lib", f"{name}/lib")


def _run_path(file: ProgramFile, need: LibraryNeed) -> str | None:
    """Return a run path of a file that leads to a library of CUDA itself."""
    known = [one for one in need.providers if one.redist == "cuda" and one.project is not None]
    if not known:
        return None
    here = posixpath.dirname(file.installed or "") or "."
    return f"{_ORIGIN}/{posixpath.relpath(next(_wheel_folders(known[-1])), here)}"
