"""Run paths of a wheel's files, and the folders of the libraries that they need."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import NamedTuple

from cudaredist.grouping import grouped
from cudaredist.primitives import Version
from cudaredist.programs.cuda_majors import FileMajors
from cudaredist.programs.needs import LibraryNeed
from cudaredist.programs.program import KnownLibrary, Majors, ProgramFile
from cudaredist.sets.library_names import key_of
from cudaredist.words import printable

ORIGIN = "$ORIGIN"
_FIXED = "fixed"
"""The folder of repaired wheels."""
_without_major = re.compile(r"(?:nvidia-)?(.+?)(?:-cu[0-9]+)?").fullmatch
_MAJOR_WITH_COMMON_FOLDER = 13
_FOLDERS = {
    "cublasmp": ("nvidia/cublasmp/cu{}/lib", {}),
    "cudnn": ("nvidia/cudnn/lib", {}),
    "cudss": ("nvidia/cu{}/lib", {}),
    "cufftmp": ("nvidia/cufftmp/cu{}/lib", {}),
    "cuquantum": ("cuquantum/lib", {}),
    "cusolvermp": ("nvidia/cu{}/lib", {}),
    "cusparselt": (
        "cusparselt/lib",
        {"0.7": "nvidia/cusparselt/lib", "0.9": "nvidia/cu{}/lib"},
    ),
    "cutensor": ("cutensor/lib", {}),
    "nccl": ("nvidia/nccl/lib", {}),
    "nvcomp": ("nvidia/libnvcomp/lib64", {}),
    "nvjpeg2000": ("nvidia/nvjpeg2k/lib", {}),
    "nvpl": ("nvpl/lib", {}),
    "nvshmem": ("nvidia/nvshmem/lib", {}),
    "nvtiff": ("nvidia/nvtiff/lib", {}),
}
"""Folders of the libraries of products in their wheels, and changes since later releases.

`{}` is the CUDA major. They are those in the RECORD of the oldest and newest wheel.
"""


class RunPathGap(NamedTuple):
    """A CUDA library to which no run path of a file leads."""

    file: ProgramFile
    need: LibraryNeed
    run_paths: tuple[str, ...]
    """The run paths that lead to it, one for each folder that its wheels have used."""


def run_path_gaps(
    program: Sequence[ProgramFile], needs: Iterable[LibraryNeed], majors: Iterable[FileMajors]
) -> Iterator[RunPathGap]:
    """Yield the CUDA libraries that the loader does not find by run paths.

    `majors` are the CUDA majors that files are for.

    Only files of wheels are checked, because they are installed next to NVIDIA's wheels. A library
    is checked if it is in the program or in one of NVIDIA's wheels. In the program, only a file
    with the name of the library is a match.
    """
    files = {file.display_path: file for file in program}
    checked = {path: file for path, file in files.items() if _has_run_path(file)}
    loaded_by = {path: frozenset(_own_folders(file)) for path, file in checked.items()}
    by_name = grouped((key_of(name), path) for path, file in checked.items() for name in file.names)

    common = {each.path: each.common for each in majors}

    def reached_from(folders: Collection[str]) -> set[str]:
        """Return the files for which the loader searches one of some folders.

        Like DT_RPATH, the run paths of a file also apply to the libraries that it needs. Each name
        is followed only once, because many files may share it.
        """
        queue = [path for path, own in loaded_by.items() if not own.isdisjoint(folders)]
        reached, names = {*queue}, set[str]()
        while queue:
            new = {key_of(name) for name in checked[queue.pop()].binary.needed} - names
            names |= new
            libraries = {path for name in new for path in by_name.get(name, ())} - reached
            queue += libraries
            reached |= libraries
        return reached

    for need in needs:
        if need.kind != "needed" or not need.cuda or need.status not in {"bundled", "provided"}:
            continue
        for group, paths in grouped((common.get(path), path) for path in need.by).items():
            folders = _folders_of(need, group or frozenset(), files)
            if not folders and need.status != "bundled":
                continue
            reached = reached_from(folders)
            for path in paths:
                if path in checked and path not in reached:
                    here = posixpath.dirname(checked[path].installed or "") or "."
                    relative = (posixpath.relpath(folder, here) for folder in folders)
                    leading = (f"{ORIGIN}/{path}" for path in relative)
                    yield RunPathGap(checked[path], need, tuple(leading))


def _has_run_path(file: ProgramFile) -> bool:
    binary = file.binary
    return file.installed is not None and binary.kind == "elf" and "runpath" not in binary.unread


def _own_folders(file: ProgramFile) -> Iterator[str]:
    here = posixpath.dirname(file.installed or "")
    for entry in file.binary.runpath:
        start, _, rest = entry.replace("${ORIGIN}", ORIGIN).partition("/")
        if start == ORIGIN:
            yield posixpath.normpath(posixpath.join(here, rest))


def run_path_fix(path: str, folder: str) -> str:
    """Return the command that adds a run path to an installed file."""
    run_path = f"{ORIGIN}/{posixpath.relpath(folder, posixpath.dirname(path))}"
    return f"patchelf --add-rpath {quote(run_path)} {quote(path)}"


def run_path_fixes(gaps: Iterable[RunPathGap]) -> Iterator[str]:
    """Yield commands that unpack each wheel, add run paths to all of its files, and pack it."""
    run_paths: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for gap in gaps:
        member = gap.file.member
        if member is not None and gap.run_paths:
            run_paths[member.wheel][member.name].update(dict.fromkeys(gap.run_paths))
    for wheel, files in run_paths.items():
        root = posixpath.join(_FIXED, "-".join(posixpath.basename(wheel).split("-")[:2]))
        yield f"wheel unpack --dest {_FIXED} {quote(printable(wheel))}"
        for added, names in grouped((":".join(new), name) for name, new in files.items()).items():
            paths = " ".join(quote(posixpath.join(root, name)) for name in names)
            yield f"patchelf --add-rpath {quote(added)} {paths}"
        yield f"wheel pack --dest-dir {_FIXED} {quote(root)}"


def _folders_of(need: LibraryNeed, majors: Majors, files: Mapping[str, ProgramFile]) -> list[str]:
    """Return the folders below site-packages that may contain a library for some CUDA majors."""
    if need.status == "provided":
        wheels = [library for library in need.libraries if library.project]
        fitting = [library for library in wheels if library.major in {None, *majors}]
        return list(dict.fromkeys(map(wheel_folder, fitting or wheels)))
    paths = (files[path].installed or "" for path in need.bundled)
    named = (path for path in paths if posixpath.basename(path) == need.soname)
    return list(dict.fromkeys(posixpath.normpath(posixpath.dirname(path)) for path in named))


def wheel_folder(library: KnownLibrary) -> str:
    """Return the folder of a library in its wheel, below site-packages."""
    match = _without_major(library.project or "")
    name = match[1].replace("-", "_") if match else ""
    major = library.major or 0
    if library.redist == "cuda":
        folder = name if major < _MAJOR_WITH_COMMON_FOLDER else f"cu{major}"
        return f"nvidia/{folder}/lib"
    folder, later = _FOLDERS.get(library.redist, (f"nvidia/{name}/lib", {}))
    for first, changed in later.items():
        if library.label >= Version.parse(first):
            folder = changed
    return folder.format(major)
