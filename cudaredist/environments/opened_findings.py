"""Findings about libraries that files open, but that the loader does not find."""

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote

from cudaredist.environments.loaded_libraries import LoadedLibraries
from cudaredist.environments.loader import fitting_names
from cudaredist.environments.opened import Unopened
from cudaredist.environments.repairs import Repairs
from cudaredist.environments.wheel_fixes import fix_for, newer_wheel
from cudaredist.grouping import grouped
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.program import AuditData, ProgramFile, paths_of
from cudaredist.programs.repair import Repair
from cudaredist.sets.library_names import stem_of


class OpenedFindings:
    """The findings about opened libraries of an environment."""

    def __init__(self, libraries: LoadedLibraries, data: AuditData, repairs: Repairs) -> None:
        self._libraries, self._data, self._repairs = libraries, data, repairs
        self._owners = libraries.files.owners

    def all(self) -> Iterator[Finding]:
        """Yield a finding for each package. It is a warning if the package works without."""
        groups = grouped(
            ((self._package_of(each), each.is_required, each.caller is not None), each)
            for each in self._libraries.unopened
        )
        for (_, is_required, has_caller), group in sorted(groups.items(), key=_by_severity):
            names = list(dict.fromkeys(each.name for each in group))
            paths = paths_of({each.user for each in group})
            message = f"the loader does not find {some_of(names)}, which {some_of(paths)} opens"
            files = [file for each in group for file in each.elsewhere]
            repair, call = None, None
            if has_caller:
                callers = paths_of({each.caller for each in group if each.caller is not None})
                message += f", except by the run path of {some_of(callers)}"
            elif files and (call := self._call_for_all(group)):
                message += f". Call {call} first"
            elif files:
                message += f", although the environment has {some_of(paths_of({*files}))}"
                repair = self._fix_for_installed(group[0], files)
            elif is_required:
                repair = self._fix_for_missing(group)
            else:
                packages = sorted({self._owners.title_of(each.user) for each in group} - {""})
                message += f"; optional for {', '.join(packages)}"
            yield Finding(
                "missing-library",
                message,
                paths[0],
                repair,
                is_warning=has_caller or call is not None or not is_required,
                opened=frozenset(map(stem_of, names)),
            )

    def _package_of(self, opened: Unopened) -> str:
        """Return the package that opens a library. Optional libraries have one warning together."""
        call = self._libraries.preloads.call_for(opened.name, [opened.user])
        is_alone = opened.is_required or opened.caller or call
        return self._owners.title_of(opened.user) if is_alone else ""

    def _call_for_all(self, group: Iterable[Unopened]) -> str | None:
        """Return the call that loads all libraries that files open, if there is one."""
        call_for = self._libraries.preloads.call_for
        calls = {call_for(each.name, [each.user]) for each in group}
        return calls.pop() if len(calls) == 1 else None

    def _fix_for_installed(self, first: Unopened, files: Iterable[ProgramFile]) -> Repair:
        """Return a repair with which installed files are found.

        If a later version of NVIDIA's library finds the parts of its package, it is installed.
        Otherwise, LD_LIBRARY_PATH gets the folders of the files.
        """
        user = first.user
        owner = self._owners.of(user)
        known = self._data.catalog.providers(user.name, user.platforms)
        fitting = [each for each in known if owner and each.project == owner.project]
        newer = None if owner is None else newer_wheel(owner, fitting, self._repairs)
        folders = sorted({posixpath.dirname(file.path) for file in files})
        export = f"export LD_LIBRARY_PATH={quote(':'.join(folders))}"
        return newer or Repair(commands=(export,))

    def _fix_for_missing(self, group: Sequence[Unopened]) -> Repair | None:
        """Return the repair that installs the wheels of missing libraries, if any is known."""
        parts: dict[Repair, None] = {}
        for each in group:
            names = fitting_names(each.name, self._data.catalog.others(each.name))
            for soname in names[::-1]:
                files = [each.user]
                fix = fix_for(
                    soname, files, self._libraries.files.environment, self._data, self._repairs
                )
                if fix.repair is not None:
                    parts[fix.repair] = None
                    break
        return self._repairs.combined(parts) or next(iter(parts), None)


def _by_severity(item: tuple[tuple[str, bool, bool], object]) -> tuple[bool, str]:
    """Return the order of a group of opened libraries: findings first, then by package."""
    (package, is_required, has_caller), _ = item
    return not is_required or has_caller, package
