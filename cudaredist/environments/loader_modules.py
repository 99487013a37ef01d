"""Libraries that the modules of packages load when they are imported, read as text.

No list of packages is needed: each package with a library of its own is examined. Modules in the
folder of such a file, in its top folder and in the packages there count as those of the package,
because the loader of a file may be in another distribution, and so do the modules that these
packages import. A module names its libraries in one of these ways, also in a JSON file of its
package:

- `load_nvidia_dynamic_lib("cublas")` of cuda-pathfinder, which also loads the libraries that its
  own table lists for this one. If the argument is a variable, all names in the module count.
- `name.load_library()` of a wheel of NVIDIA, such as nvidia-libnvcomp.
- `CDLL` with names of files, such as `libcublas.so.*[0-9]`, or with composed names, such as
  `f"lib{name}.so"`, below the folder of NVIDIA's wheels.
"""

import contextlib
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from cudaredist.environments.environment_files import EnvironmentFiles
from cudaredist.environments.installed import Distribution
from cudaredist.formats.library_policy import Preload
from cudaredist.grouping import grouped
from cudaredist.programs.program import ProgramFile
from cudaredist.store.files import foreign_text

_PATHFINDER = "load_nvidia_dynamic_lib"
"""The function of cuda-pathfinder that loads a library of NVIDIA's wheels."""
_PATHFINDERS = ("cuda-pathfinder", "cuda-bindings")
_TABLES = (
    "cuda/pathfinder/_dynamic_libs/descriptor_catalog.py",
    "cuda/pathfinder/_dynamic_libs/supported_nvidia_libs.py",
)
"""The modules of cuda-pathfinder with the libraries that others need, of which one exists."""
_OF_WHEEL = "load_library"
"""The function of wheels such as nvidia-libnvcomp that loads their own library."""
_MODULES = 64
"""Modules of a package that are read."""
_MODULE_LIMIT = 1 << 20
_LOADS = ("CDLL(", "LoadLibrary(")
_NVIDIA = "nvidia"
"""The folder of NVIDIA's wheels, in modules that compose paths."""
_has_nvidia = re.compile(rf"\b{_NVIDIA}\b").search
_find_names = re.compile(rf"\b{_PATHFINDER}\(\s*['\"](\w{{1,60}})['\"]").findall
_has_variable = re.compile(rf"\b{_PATHFINDER}\(\s*[A-Za-z_]").search
_find_wheels = re.compile(rf"\b(\w{{1,60}})\.{_OF_WHEEL}\(\s*\)").findall
_find_words = re.compile(r"['\"](\w{1,60})['\"]").findall
_find_files = re.compile(
    r"['\"](?:[^'\"\s]{0,200}/)?(lib[\w*-]{1,60}\.so[\w.*\[\]-]{0,40})['\"]"
).findall
_find_composed = re.compile(r"\blib\{\w{1,60}\}(\*?)").findall
_find_imported = re.compile(r"^from \.(\w{1,60}) import", re.MULTILINE).findall
_find_json = re.compile(r"['\"]([\w.-]{1,100}\.json)['\"]").findall
_find_functions = re.compile(r"^def (\w{1,100})\(", re.MULTILINE).finditer
_find_specs = re.compile(r"name=\"(\w{1,60})\"").split
_find_dependencies = re.compile(r"\bdependencies=\(([^)]{0,500})\)").findall
_find_entries = re.compile(r"\"(\w{1,60})\":\s*\(([^)]{0,500})\)").findall
_is_plain = re.compile(r"[\w/.+-]+", re.ASCII).fullmatch
_REASON = "the module loads the libraries of NVIDIA's wheels"


def module_rules(
    files: EnvironmentFiles, known: Iterable[Preload]
) -> Iterator[tuple[Distribution, Preload]]:
    """Yield the libraries that modules load, for each package without a rule in the policy."""
    described = {project for rule in known if not rule.is_optional for project in rule.projects}
    own = (file for file in files.elf_files if file not in files.nvidia_files)
    by_project = grouped((files.owners.project_of(file), file) for file in own)
    reader = _ModuleReader(files) if files.nvidia_files else None
    for project, libraries in by_project.items():
        package = files.environment.distributions.get(project)
        if package is None or project in described or reader is None:
            continue
        for path in islice(_modules_of(package, libraries), _MODULES):
            module = posixpath.relpath(path, package.site)
            for function, names in reader.loaded_by(path, package):
                yield package, _rule(project, module, function, names)


def calls_loader(package: Distribution, files: Iterable[ProgramFile]) -> bool:
    """Check if a module next to files of a package, or above them, may load libraries."""
    calls = (*_LOADS, _PATHFINDER, _OF_WHEEL)
    texts = (
        foreign_text(Path(path), _MODULE_LIMIT)
        for path in islice(_modules_of(package, files), _MODULES)
    )
    return any(call in text for text in texts for call in calls)


class _ModuleReader:
    """Reads the libraries that modules of an environment load."""

    def __init__(self, files: EnvironmentFiles) -> None:
        self._files = files
        self._names = sorted({posixpath.basename(file.path) for file in files.nvidia_files})
        self._by_stem = grouped((_stem_of(name), name) for name in self._names)
        packages = files.environment.distributions
        pathfinder = next(filter(None, map(packages.get, _PATHFINDERS)), None)
        self._dependencies = None if pathfinder is None else _dependencies_in(pathfinder.site)
        """The other libraries that cuda-pathfinder loads first. None: it is not installed."""

    def loaded_by(self, path: str, package: Distribution) -> Iterator[tuple[str, set[str]]]:
        """Yield the functions of a module that load libraries, with the names of their files."""
        text = foreign_text(Path(path), _MODULE_LIMIT)
        calls_pathfinder = self._dependencies is not None and _PATHFINDER in text
        loads = any(call in text for call in _LOADS)
        if calls_pathfinder and (names := self._by_pathfinder(text)):
            yield _PATHFINDER, names
        if _OF_WHEEL in text and (names := set(self._in_wheels(_find_wheels(text)))):
            yield _OF_WHEEL, names
        if loads:
            text += "".join(_json_files(text, package))
            if _has_nvidia(text) and (names := self._by_name(text)):
                yield _function_in(text), names

    def _by_pathfinder(self, text: str) -> set[str]:
        """Return the files that calls of cuda-pathfinder load."""
        queue = [*_find_names(text), *(_find_words(text) if _has_variable(text) else ())]
        names: set[str] = set()
        while queue:
            name = queue.pop()
            if name not in names:
                names.add(name)
                queue += (self._dependencies or {}).get(name, ())
        return {file for name in names for file in self._by_stem.get(f"lib{name}", ())}

    def _by_name(self, text: str) -> set[str]:
        """Return the files that a module names, or composes the names of."""
        patterns = {*_find_files(text)}
        loaded = {name for name in self._names for each in patterns if fnmatchcase(name, each)}
        composed = _find_composed(text)
        for word in {*_find_words(text)} if composed else ():
            if f"lib{word}" in self._by_stem:
                stems = [f"lib{word}"]
                if any(composed):
                    stems = [stem for stem in self._by_stem if stem.startswith(f"lib{word}")]
                loaded.update(name for stem in stems for name in self._by_stem[stem])
        return loaded

    def _in_wheels(self, modules: Iterable[str]) -> Iterator[str]:
        """Yield the libraries in NVIDIA's wheels with some modules."""
        folders = {f"/{module}/" for module in modules}
        for file in self._files.nvidia_files:
            if any(folder in file.path for folder in folders):
                yield posixpath.basename(file.path)


def _dependencies_in(site: str) -> Mapping[str, Collection[str]]:
    """Return the libraries that cuda-pathfinder loads before others, by its own table.

    Earlier versions have dictionaries, in which other entries are names of files and folders.
    """
    dependencies: dict[str, list[str]] = {}
    newer, older = (foreign_text(Path(site, path), _MODULE_LIMIT) for path in _TABLES)
    specs = iter(_find_specs(newer)[1:])
    for name, rest in zip(specs, specs, strict=False):
        for listed in _find_dependencies(rest):
            dependencies.setdefault(name, []).extend(_find_words(listed))
    for name, listed in _find_entries(older):
        dependencies.setdefault(name, []).extend(_find_words(listed))
    return dependencies


def _modules_of(package: Distribution, files: Iterable[ProgramFile]) -> Iterator[str]:
    """Yield the modules next to files of a package, those in their top folders, and packages there.

    Only the first modules are read, so each folder's packages follow its modules, and the modules
    that packages import are last.
    Unreadable folders have findings of their own.
    """
    folders: dict[str, bool] = {}
    for file in files:
        top = posixpath.relpath(file.path, package.site).partition("/")[0]
        folders.setdefault(posixpath.dirname(file.path), False)
        folders[f"{package.site}/{top}"] = True
    packages: list[str] = []
    for folder, is_top in folders.items():
        if not folder.startswith(f"{package.site}/"):
            continue
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            paths = sorted(entry.path for entry in entries)
            modules = [path for path in paths if path.endswith(".py")]
            inner = (f"{path}/__init__.py" for path in paths if "." not in posixpath.basename(path))
            own_packages = list(filter(os.path.isfile, inner if is_top else ()))
            yield from filter(_is_plain, [*modules, *own_packages])
            packages += filter(_is_plain, own_packages)
    for path in packages:
        imported = _find_imported(foreign_text(Path(path), _MODULE_LIMIT))
        modules = [f"{posixpath.dirname(path)}/{name}.py" for name in dict.fromkeys(imported)]
        yield from filter(os.path.isfile, modules)


def _json_files(text: str, package: Distribution) -> Iterator[str]:
    """Yield the JSON files of a package that a module names."""
    for name in dict.fromkeys(_find_json(text)):
        for path in package.files:
            if path.endswith(f"/{name}"):
                yield foreign_text(Path(path), _MODULE_LIMIT)
                break


def _function_in(text: str) -> str:
    """Return the function of a module that loads libraries of NVIDIA's wheels."""
    starts = list(_find_functions(text))
    ends = [*(start.start() for start in starts[1:]), len(text)]
    bodies = [
        (start[1], text[start.start() : end]) for start, end in zip(starts, ends, strict=False)
    ]
    loading = [(name, body) for name, body in bodies if any(call in body for call in _LOADS)]
    with_folder = [name for name, body in loading if _has_nvidia(body)]
    return next(iter([*with_folder, *(name for name, _ in loading)]), "CDLL")


def _stem_of(name: str) -> str:
    """Return a library's name without its version."""
    return name.partition(".so")[0]


def _rule(project: str, module: str, function: str, names: Iterable[str]) -> Preload:
    """Return the rule of a module."""
    return Preload(
        projects=(project,),
        module=module,
        function=function,
        names=tuple(sorted(names)),
        reason=_REASON,
        reference=module,
    )
