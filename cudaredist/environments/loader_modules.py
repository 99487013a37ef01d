"""Libraries that the modules of packages load with literal names, read as text.

No list of packages is needed: each package whose files need NVIDIA's libraries is examined. Modules
in the folder of such a file, and in its top folder, count as those of the package, because the
loader of a file may be in another distribution.
"""

import contextlib
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from cudaredist.environments.environment_files import EnvironmentFiles
from cudaredist.environments.installed import Distribution
from cudaredist.formats.policy import Preload
from cudaredist.grouping import grouped
from cudaredist.programs.program import ProgramFile
from cudaredist.store.files import foreign_text

_PATHFINDER = "load_nvidia_dynamic_lib"
"""The function of cuda-pathfinder that loads a library of NVIDIA's wheels."""
_PATHFINDERS = frozenset({"cuda-pathfinder", "cuda-bindings"})
_OF_WHEEL = "load_library"
"""The function of wheels such as nvidia-libnvcomp that loads their own library."""
_MODULES = 64
"""Modules of a package that are read."""
_MODULE_LIMIT = 1 << 20
_find_names = re.compile(rf"\b{_PATHFINDER}\(\s*['\"](\w{{1,60}})['\"]").findall
_find_wheels = re.compile(rf"\b(\w{{1,60}})\.{_OF_WHEEL}\(\s*\)").findall
_is_plain = re.compile(r"[\w/.+-]+", re.ASCII).fullmatch
_REASON = "the module loads the libraries of NVIDIA's wheels"


def module_rules(
    files: EnvironmentFiles, known: Iterable[Preload]
) -> Iterator[tuple[Distribution, Preload]]:
    """Yield the libraries that modules load, for each package without a rule in the policy."""
    described = {project for rule in known for project in rule.projects}
    has_pathfinder = not _PATHFINDERS.isdisjoint(files.environment.distributions)
    users = (
        file
        for file in files.elf_files
        if file not in files.nvidia_files and not files.cuda.isdisjoint(file.binary.needed)
    )
    for project, own in grouped((files.owners.project_of(file), file) for file in users).items():
        package = files.environment.distributions.get(project)
        if package is None or project in described:
            continue
        for path in islice(_modules_of(package, own), _MODULES):
            text = foreign_text(Path(path), _MODULE_LIMIT)
            module = posixpath.relpath(path, package.site)
            names = [f"lib{name}.so.*" for name in _find_names(text)] if has_pathfinder else []
            if names:
                yield package, _rule(project, module, _PATHFINDER, names)
            if names := list(_names_in_wheels(_find_wheels(text), files)):
                yield package, _rule(project, module, _OF_WHEEL, names)


def _modules_of(package: Distribution, files: Iterable[ProgramFile]) -> Iterator[str]:
    """Yield the modules next to files of a package, and those in their top folders."""
    folders: dict[str, None] = {}
    for file in files:
        top = posixpath.relpath(file.path, package.site).partition("/")[0]
        folders[posixpath.dirname(file.path)] = None
        folders[f"{package.site}/{top}"] = None
    for folder in folders:
        if not folder.startswith(f"{package.site}/"):
            continue
        # Unreadable folders have findings of their own.
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            paths = sorted(entry.path for entry in entries if entry.name.endswith(".py"))
            yield from filter(_is_plain, paths)


def _names_in_wheels(modules: Iterable[str], files: EnvironmentFiles) -> Iterator[str]:
    """Yield the libraries in NVIDIA's wheels with some modules."""
    folders = {f"/{module}/" for module in modules}
    for file in files.nvidia_files:
        if any(folder in file.path for folder in folders):
            yield posixpath.basename(file.path)


def _rule(project: str, module: str, function: str, names: Iterable[str]) -> Preload:
    """Return the rule of a module."""
    return Preload(
        projects=(project,),
        module=module,
        function=function,
        names=tuple(sorted(set(names))),
        reason=_REASON,
        reference=module,
    )
