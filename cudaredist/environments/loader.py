"""The files that the loader of glibc finds for needed libraries.

A library that is already loaded is used again. Otherwise, the loader searches DT_RPATH of the file,
of the files that loaded it and of the Python interpreter, then LD_LIBRARY_PATH of this process, or
LD_LIBRARY_PATH and then DT_RUNPATH of the file, then `ld.so.cache`, then the default folders.
`ldconfig` makes this cache from the folders of `ld.so.conf`; they count if a root has no cache. In
a root file system, LD_LIBRARY_PATH of this process does not count.
"""

import contextlib
import fnmatch
import os
import posixpath
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from cudaredist.binaries.elf import ELF_MAGIC
from cudaredist.binaries.examine_file import examine_file
from cudaredist.binaries.reader import section_name, whole_entries
from cudaredist.environments.installed import Environment
from cudaredist.errors import ReadError
from cudaredist.grouping import grouped
from cudaredist.programs.program import ProgramFile
from cudaredist.programs.report import FoundBy
from cudaredist.sets.library_names import stem_of
from cudaredist.store.files import read_file

UNREADABLE = "it cannot be read"
"""A damage that another user may not have."""
_LINKS_LIMIT = 40
_CONF_LIMIT = 100
_CONF_FOLDERS = 4096
_NOWHERE = "/dev/null/nowhere"
"""A path that no file can have."""
# Real ones have at most a few hundred kilobytes.
_SYSTEM_FILE_LIMIT = 4 << 20
_MULTIARCH = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_HEADER = 48
_CACHE_ENTRY = Struct("<iIIIQ")
"""Flags, the positions of the name and path, the system's version, and features of processors."""
_FIRST_BYTES = 256
_LFS_POINTER = b"version https://git-lfs"
_ORIGIN = ("$ORIGIN", "${ORIGIN}")
_is_version = re.compile(r"(?:\.[0-9]+)*").fullmatch


class FoundFile(NamedTuple):
    """The file for a needed library."""

    found_by: FoundBy
    path: str = ""
    file: ProgramFile | None = None
    """None for a file that is not examined."""
    rule: str = ""
    """The module and function that load it first."""

    @property
    def display_path(self) -> str:
        """Its path in messages."""
        return self.path if self.file is None else self.file.display_path


class Loaded(NamedTuple):
    """A loaded file, and the one that loaded it."""

    file: ProgramFile
    path: str
    """The path that it was found by, which is the origin of its run paths."""
    parent: "Loaded | None"


class Loading(NamedTuple):
    """A file with the libraries that are loaded for it."""

    files: list[Loaded]
    """The file itself first, without libraries that a package loads before it."""
    needs: list[tuple[ProgramFile, str, FoundFile]]
    """Each of these files, with each library that it needs and the file found for it."""
    by_name: dict[str, FoundFile]
    """The loaded libraries, also those that a package loads first."""
    is_alone: bool = True
    """Whether no package loads libraries first."""


class Loader:
    """Finds the libraries of an environment's files."""

    def __init__(self, environment: Environment, examined: frozenset[str]) -> None:
        """Take an environment, and the names of other libraries to examine."""
        self._root = environment.root.rstrip("/")
        self._files = {file.path: file for file in environment.files}
        self._examined = examined
        self._walked = f"{os.path.realpath(environment.path)}/"
        machines = {file.binary.machine for file in self._files.values()}
        triples = [triple for name, triple in _MULTIARCH.items() if name in machines]
        default = [f"{top}/{triple}" for triple in triples for top in ("/lib", "/usr/lib")]
        default += ["/lib64", "/usr/lib64", "/lib", "/usr/lib"]
        self._cached = self._read_cache()
        configured = self._configured() if self._cached is None else ()
        self._system = [self._below(path) for path in (*configured, *default)]
        self._library_path = [] if self._root else list(_library_path())
        self._real_folder = lru_cache(maxsize=None)(self._listed)
        self._outside = lru_cache(maxsize=None)(_examined)
        self._python = self._interpreter()

    def load(self, main: ProgramFile, preloaded: Mapping[str, FoundFile]) -> Loading:
        """Return the libraries that are loaded for a file."""
        loaded = dict(preloaded)
        queue = deque([Loaded(main, main.path, None)])
        loading = Loading([], [], loaded, is_alone=not preloaded)
        while queue:
            user = queue.popleft()
            loading.files.append(user)
            for name in user.file.binary.needed:
                library = loaded.get(name) or self._search(name, user)
                if library is None:
                    continue
                if name not in loaded and library.file is not None and library.file.is_whole:
                    loaded.setdefault(library.file.binary.soname or name, library)
                    queue.append(Loaded(library.file, library.path, user))
                loaded[name] = library
                loading.needs.append((user.file, name, library))
        return loading

    def open(self, name: str, user: Loaded, loaded: Mapping[str, FoundFile]) -> FoundFile | None:
        """Return the file for a name that a loaded file opens, None if there is none.

        A name without a version, such as `libcudnn_ops.so`, is opened with several versions.
        """
        names: Iterable[str] = (name,)
        if name.endswith(".so"):
            listed = (self._real_folder(folder)[1] for folder, _ in self._searched(user))
            of_system = self._system_names.get(stem_of(name), ())
            names = fitting_names(name, chain(loaded, *listed, of_system))
        libraries = (loaded.get(each) or self._search(each, user) for each in names)
        return next(filter(None, libraries), None)

    @cached_property
    def _system_names(self) -> dict[str, list[str]]:
        """The thousands of names in the folders and the cache of the system, by their stems."""
        listed = (self._real_folder(folder)[1] for folder in self._system)
        return grouped((stem_of(name), name) for name in chain(*listed, self._cached or ()))

    def open_in_own_folder(self, name: str, user: Loaded) -> FoundFile | None:
        """Return the file for a name in the folder of the file that opens it."""
        folder = posixpath.dirname(user.path)
        names = fitting_names(name, self._real_folder(folder)[1])
        libraries = (self._fitting(f"{folder}/{each}", "run-path", user) for each in names)
        return next(filter(None, libraries), None)

    def _search(self, name: str, user: Loaded) -> FoundFile | None:
        """Return the first file for a name that fits the machine of its user."""
        if "/" in name:
            return self._fitting(name, "run-path", user)
        paths = [*(self._cached or {}).get(name, ())]
        paths += (f"{folder}/{name}" for folder in self._system)
        libraries = chain(
            (self._fitting(f"{folder}/{name}", by, user) for folder, by in self._searched(user)),
            (self._fitting(path, "system", user) for path in paths),
        )
        return next(filter(None, libraries), None)

    def _searched(self, user: Loaded) -> Iterator[tuple[str, FoundBy]]:
        """Yield the folders that are searched before those of the system."""
        run_paths: Iterator[tuple[str, FoundBy]] = (
            (folder, "run-path") for folder in self._run_paths(user)
        )
        library_path: Iterator[tuple[str, FoundBy]] = (
            (folder, "library-path") for folder in self._library_path
        )
        has_runpath = bool(user.file.binary.runpath) and not user.file.binary.is_rpath
        yield from chain(library_path, run_paths) if has_runpath else chain(run_paths, library_path)

    def _run_paths(self, user: Loaded) -> Iterator[str]:
        """Yield the folders of the run paths that apply to the needed libraries of a file."""
        has_runpath = bool(user.file.binary.runpath) and not user.file.binary.is_rpath
        yield from self._entries(user)
        if has_runpath:
            return
        main = user
        while main.parent is not None:
            main = main.parent
            if main.file.binary.is_rpath:
                yield from self._entries(main)
        # Python loads libraries, but starts other programs.
        if self._python is not None and main.file.binary.is_shared:
            yield from self._entries(self._python)

    def _entries(self, user: Loaded) -> Iterator[str]:
        """Yield the folders of the run path of a file."""
        for entry in user.file.binary.runpath:
            start, _, rest = entry.partition("/")
            is_origin = start in _ORIGIN
            here = posixpath.dirname(user.path) if is_origin else self._root
            yield f"{here}/{rest if is_origin else entry}"

    def _interpreter(self) -> Loaded | None:
        """Return the Python interpreter if it has RPATH, which applies to all that it loads.

        Python of conda has RPATH. In a virtual environment, `bin/python3` is a link to another one.
        """
        path = self.real(f"{self._walked}bin/python3")
        file = self._files.get(path)
        if file is None and os.path.isfile(path):  # noqa: PTH113 - false for every error
            with contextlib.suppress(ReadError):
                file = self._outside(path)
        return Loaded(file, path, None) if file is not None and file.binary.is_rpath else None

    def _fitting(self, path: str, found_by: FoundBy, user: Loaded) -> FoundFile | None:
        folder, name = posixpath.split(path)
        real_folder, names = self._real_folder(folder)
        real = self.real(f"{real_folder}/{name}") if name in names else None
        if real is None or not os.path.isfile(real):  # noqa: PTH113 - false for every error
            return None
        file = self._files.get(real)
        is_walked = real.startswith(self._walked)
        if file is None and not is_walked:
            if name not in self._examined:
                return FoundFile(found_by=found_by, path=path)
            try:
                file = self._outside(real)
            except ReadError:
                return FoundFile(found_by=found_by, path=path)
        # The loader ends with an error, instead of a search in the next folder.
        if file is None or not file.is_whole:
            return FoundFile(found_by="damaged", path=path, file=file)
        if file.binary.machine != user.file.binary.machine:
            return None
        return FoundFile(found_by=found_by, path=path, file=file)

    def _listed(self, folder: str) -> tuple[str, frozenset[str]]:
        """Return a folder without links in its path, and the names in it."""
        real = self.real(folder)
        try:
            return real, frozenset(each.name for each in Path(real).iterdir())
        except (OSError, ValueError):  # such as a name that is too long, or has a NUL
            return real, frozenset()

    def real(self, path: str) -> str:
        """Return a path without links, as a program in the root would see it."""
        left = path.removeprefix(f"{self._root}/").split("/")[::-1]
        here, links = self._root, 0
        while left:
            part = left.pop()
            if part == "..":
                if not os.path.isdir(here or "/"):  # noqa: PTH112 - as for `_target`
                    return _NOWHERE
                here = here if here == self._root else here.rpartition("/")[0]
            elif part not in {"", "."}:
                each = f"{here}/{part}"
                target = _target(each)
                links += target is not None
                if links > _LINKS_LIMIT:
                    return _NOWHERE
                if target is None:
                    here = each
                    continue
                here = self._root if target.startswith("/") else here
                left += target.split("/")[::-1]
        return here or "/"

    def _below(self, path: str) -> str:
        return f"{self._root}{path}"

    def _read(self, path: str) -> bytes:
        """Return the content of a file, nothing if it cannot be read or is too large."""
        try:
            return read_file(Path(self.real(self._below(path))), _SYSTEM_FILE_LIMIT) or b""
        except ReadError:
            return b""

    def _read_cache(self) -> dict[str, list[str]] | None:
        """Return the files in `ld.so.cache` by name, None if it cannot be read.

        Skips libraries for specific processors.
        """
        data = self._read("/etc/ld.so.cache")
        # A table in the older format may precede this one.
        table = data[data.find(_CACHE_MAGIC) :]
        if not table.startswith(_CACHE_MAGIC):
            return None
        end = _CACHE_HEADER + int.from_bytes(table[20:24], "little") * _CACHE_ENTRY.size
        found: dict[str, list[str]] = defaultdict(list)
        for _, name, path, _, processors in whole_entries(_CACHE_ENTRY, table[_CACHE_HEADER:end]):
            if not processors:
                found[section_name(table, name)].append(self._below(section_name(table, path)))
        return found

    def _configured(self) -> Iterable[str]:
        """Return the folders in `ld.so.conf` and in the files that it includes."""
        queue, read, folders = ["/etc/ld.so.conf"], 0, dict[str, None]()
        while queue and read < _CONF_LIMIT:
            read += 1
            text = self._read(queue.pop(0)).decode(errors="replace")
            included: list[str] = []
            for line in text.splitlines():
                words = line.partition("#")[0].split()
                if words[:1] == ["include"]:
                    # glibc takes wildcards in folders, too, but no distribution uses them.
                    for word in words[1:]:
                        pattern = posixpath.normpath(posixpath.join("/etc", word))
                        folder, name = posixpath.split(pattern)
                        names = self._listed(self._below(folder))[1]
                        fitting = sorted(fnmatch.filter(names, name))
                        included += (posixpath.join(folder, each) for each in fitting)
                elif words and words[0].startswith("/") and len(folders) < _CONF_FOLDERS:
                    folders[words[0].rstrip("/")] = None
            queue = included + queue
        return folders


def _target(path: str) -> str | None:
    """Return the target of a link, None for anything else."""
    try:
        return os.readlink(path)  # noqa: PTH115 - a path of each folder takes longer
    except (OSError, ValueError):
        return None


def _library_path() -> Iterator[str]:
    """Yield the folders of LD_LIBRARY_PATH. An empty entry is the current folder."""
    value = os.environ.get("LD_LIBRARY_PATH", "")
    for entry in re.split("[:;]", value) if value else ():
        if "$" not in entry:
            yield os.path.abspath(entry)  # noqa: PTH100 - links are followed later


def fitting_names(opened: str, names: Iterable[str]) -> list[str]:
    """Return the names that a file may mean by an opened name, sorted.

    An opened name without a version fits the same name with any version.
    """
    parts = {name for name in names if name.startswith(opened)}
    if not opened.endswith(".so"):
        return [opened] if opened in parts else []
    return sorted(name for name in parts if _is_version(name[len(opened) :]))


def damage_of(path: str) -> str:
    """Return the reason why the loader cannot read a file that is not a whole ELF file."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_FIRST_BYTES)
    except OSError:
        return UNREADABLE
    if not data:
        return "it is empty"
    if data.startswith(_LFS_POINTER):
        return "it is a pointer of Git LFS"
    if data.lstrip()[:1] == b"<":
        return "it is a web page"
    return "it is cut off" if data.startswith(ELF_MAGIC) else "it is another kind of file"


def _examined(path: str) -> ProgramFile | None:
    """Return a library outside the environment. Raises `ReadError`."""
    binary, names = examine_file(Path(path)), {posixpath.basename(path)}
    if binary is None:
        return None
    return ProgramFile(display_path=path, binary=binary, names=names, path=path)
