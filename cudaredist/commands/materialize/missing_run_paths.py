"""Find the libraries of a root that do not find other libraries of it."""

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Mapping

from cudaredist.binaries.file_facts import Binary
from cudaredist.commands.materialize.merge import Plan
from cudaredist.formats.toolkit_record import MissingRunPath

_ORIGIN = "$ORIGIN"
_STUBS = "stubs"


def missing_run_paths(plan: Plan) -> dict[str, MissingRunPath]:
    """Return the missing run paths of a plan, by library.

    Each library is examined alone, because programs may open it. Its run path must lead to the
    libraries that it needs or opens, if the root contains them. Stubs are only for linking.
    """
    names = _paths_by_name(plan)
    missing = {}
    for path, file in sorted(plan.files.items()):
        binary = file.binary
        if binary is None or binary.kind != "elf" or not binary.is_shared:
            continue
        here = posixpath.dirname(path)
        searched = {_real_folder(folder, plan) for folder in _folders(path, binary)}
        folders: dict[str, str] = {}
        for name in (*binary.needed, *binary.opens):
            candidates = _files_by_folder(name, names, plan, binary)
            is_own_name = path in candidates.values()
            if candidates and not is_own_name and searched.isdisjoint(candidates):
                folders[name] = here if here in candidates else min(candidates)
        if folders:
            missing[path] = MissingRunPath(
                needs=tuple(name for name in binary.needed if name in folders),
                opens=tuple(sorted(folders.keys() - set(binary.needed))),
                folders=tuple(sorted(set(folders.values()))),
            )
    return missing


def added_run_paths(path: str, missing: MissingRunPath) -> tuple[str, ...]:
    """Return the run paths that lead from a library to other folders of its root."""
    here = posixpath.dirname(path)
    relative = (posixpath.relpath(folder, here) for folder in missing.folders)
    return tuple(_ORIGIN if way == "." else f"{_ORIGIN}/{way}" for way in relative)


def _paths_by_name(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the shared libraries by name: the file for each folder with a file or link."""
    names: dict[str, dict[str, str]] = defaultdict(dict)
    ends = {path: path for path in plan.files}
    ends |= {path: _end(path, link.target) for path, link in plan.links.items()}
    for path, end in ends.items():
        folder, _, name = path.rpartition("/")
        file = plan.files.get(end)
        is_library = file is not None and file.binary is not None and file.binary.is_shared
        if is_library and _STUBS not in folder.split("/"):
            names[name][folder] = end
    return names


def _files_by_folder(
    name: str, names: Mapping[str, Mapping[str, str]], plan: Plan, user: Binary
) -> dict[str, str]:
    """Return the file for each folder that contains a library for the user's machine.

    A version may be added to a name at run time.
    """
    known = [name] if name in names else [each for each in names if each.startswith(f"{name}.")]
    files = {}
    for each in known:
        for folder, path in names[each].items():
            library = plan.files[path].binary
            if library is not None and library.machine == user.machine:
                files[folder] = path
    return files


def _folders(path: str, binary: Binary) -> Iterator[str]:
    """Yield the folders of a file's run path in the root."""
    for entry in binary.runpath:
        start, _, rest = entry.replace("${ORIGIN}", _ORIGIN).partition("/")
        if start == _ORIGIN:
            yield _end(path, rest)


def _real_folder(folder: str, plan: Plan) -> str:
    """Return the folder that a link such as `lib64` leads to."""
    link = plan.links.get(folder)
    return folder if link is None else _end(folder, link.target)


def _end(path: str, target: str) -> str:
    """Return the path that is relative to the folder of another one."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
