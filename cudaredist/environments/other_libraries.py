"""Answers about libraries of other packages, such as those of torch and bitsandbytes."""

import posixpath
from collections.abc import Sequence

from packaging.specifiers import SpecifierSet

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.environments.loaded_libraries import Use
from cudaredist.programs.alternatives import split_release
from cudaredist.programs.finding import some_of
from cudaredist.programs.program import paths_of
from cudaredist.programs.report import ErrorAnswer
from cudaredist.words import listed

_UNFOUND = frozenset({"none", "other-code"})
_RELEASES = 20
"""CUDA releases in a message."""


def other_library_answer(name: str, environment: JudgedEnvironment) -> ErrorAnswer | None:
    """Return the reason why a library is not found, None if no file explains it."""
    uses = [
        use
        for use in environment.libraries.uses
        if use.soname == name and use.loaded.found_by in _UNFOUND
    ]
    if uses:
        return _needed(name, uses, environment)
    if environment.files.by_name.get(name):
        return None
    return _variant(name, environment)


def _needed(name: str, uses: Sequence[Use], environment: JudgedEnvironment) -> ErrorAnswer:
    """Return the answer for a library that files need, but that the loader does not find."""
    owners, loaded = environment.owners, uses[0].loaded
    users = some_of(paths_of(use.user for use in uses))
    packages = sorted({owners.title_of(use.user) for use in uses} - {""})
    title = f"{users} ({', '.join(packages)})" if packages else users
    if loaded.found_by == "none":
        message = f"no file of the environment is {name}, which {title} needs"
        return ErrorAnswer(
            kind="library", name=name, message=message, path=uses[0].user.display_path
        )
    owner = owners.of(loaded.file)
    message = f"{title} needs {loaded.display_path}, and no run path leads to its folder"
    if owner is not None:
        module = posixpath.relpath(loaded.path, owner.site).partition("/")[0]
        message += f". Import {module} of {owner.title} first"
    return ErrorAnswer(
        kind="library",
        name=name,
        message=message,
        path=loaded.display_path,
        package=None if owner is None else owner.title,
    )


def _variant(name: str, environment: JudgedEnvironment) -> ErrorAnswer | None:
    """Return the answer for a file of a CUDA release that a package has for other releases."""
    pattern, release = split_release(name)
    files = environment.environment.files
    others = [
        (owner, split_release(each)[1])
        for file in files
        for each in file.names
        if release and split_release(each)[0] == pattern
        if (owner := environment.owners.of(file)) is not None
    ]
    if not others:
        return None
    owner = others[0][0]
    known = sorted({other for package, other in others if package is owner}, key=_number)
    message = f"{owner.title} has no {name}, but files for CUDA {listed(known, _RELEASES)}"
    versions = None
    if _number(release) > _number(known[-1]):
        message += "; a later version may have it"
        versions = SpecifierSet(f">{owner.version}")
    elif _number(release) < _number(known[0]):
        message += "; an earlier version may have it"
        versions = SpecifierSet(f"<{owner.version}")
    repair = versions and environment.repairs.install(owner.project, versions)
    return ErrorAnswer(
        kind="library",
        name=name,
        message=message,
        package=owner.title,
        hint=repair.command if repair else None,
    )


def _number(release: str) -> int:
    """Return a CUDA release as a number: `118` and `11.8` are the same."""
    return int(release.replace(".", ""))
