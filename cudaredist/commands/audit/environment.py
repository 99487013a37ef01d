"""Judge an environment: the file for each needed library, and its exported symbols."""

import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudaredist.commands.audit.alternatives import codes_of
from cudaredist.commands.audit.cuda_majors import FileMajors
from cudaredist.commands.audit.gpu_gaps import find_gaps
from cudaredist.commands.audit.installed import Distribution, Environment
from cudaredist.commands.audit.loader import UNREADABLE, FoundFile, Loader, damage_of, fitting_names
from cudaredist.commands.audit.lowest_release import symbols_by_library
from cudaredist.commands.audit.opened import OpenedLibraries, Unopened
from cudaredist.commands.audit.packages import InstalledPackages
from cudaredist.commands.audit.program import AuditData, ProgramFile, majors_of, paths_of
from cudaredist.commands.audit.program_findings import (
    as_warning,
    gpu_findings,
    jetson_findings,
    make_finding,
    some_of,
)
from cudaredist.commands.audit.repairs import Repair, Repairs
from cudaredist.commands.audit.report import AuditedEnvironment, AuditFinding, LoadedFile
from cudaredist.commands.audit.run_paths import run_path_fix
from cudaredist.commands.audit.wheel_fixes import (
    WheelFix,
    fix_for,
    newer_command,
)
from cudaredist.features.library_symbols import export_groups
from cudaredist.formats.policy import Preload
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.sets.library_names import DRIVER_OWNERS, stem_of
from cudaredist.store.files import foreign_text
from cudaredist.tables.symbols.symbol_table import Import
from cudaredist.wheels import other_project
from cudaredist.words import listed

_WITHOUT_VARIABLE = "unset LD_LIBRARY_PATH"
_LIBRARY = ".so"
_NAMES = 5
_MODULE_LIMIT = 4 << 20
_is_common_folder = re.compile(r".*/cu[0-9]+/lib/[^/]+").fullmatch


class Use(NamedTuple):
    """A library that a file needs, and the file that is loaded for it."""

    user: ProgramFile
    soname: str
    loaded: FoundFile
    lacking: Collection[str]
    """Symbols that no loaded file exports."""


class JudgedEnvironment:
    """The libraries of one environment."""

    def __init__(self, environment: Environment, data: AuditData) -> None:
        self.environment, self._data = environment, data
        self._files = environment.files
        self._mixed: dict[str, FileMajors] = {}
        """Files that are loaded with libraries of several CUDA majors."""
        self.repairs = Repairs(environment, data.catalog)
        self._packages = InstalledPackages(environment, data, self.repairs)
        self._owners = self._packages.owners
        projects = data.catalog.projects()
        owned = {path for path, owner in self._owners.items() if owner.project in projects}
        self.nvidias = owned & {file.path for file in self._files}
        """The paths of the files in NVIDIA's wheels."""
        self._by_name = grouped((name, file) for file in self._files for name in file.names)
        self._platforms = tuple({each for file in self._files for each in file.platforms})
        names = {name for file in self._files for name in file.binary.needed}
        self._cuda = frozenset(filter(self._is_cuda, names))
        self._tables = data.tables(sorted(self._cuda))
        self._exports = lru_cache(maxsize=None)(_exports)
        self._required_by = lru_cache(maxsize=None)(environment.required_by)
        rules = list(self._preload_rules())
        self._calls = [(package, rule) for package, rule in rules if rule.is_called]
        """Packages with a function that loads libraries if a program calls it."""
        self._preloads = [
            (package, dict(self._loaded_by(rule))) for package, rule in rules if not rule.is_called
        ]
        """Packages that load libraries, with these by soname."""
        self._loader = Loader(environment, self._cuda)
        elf = [file for file in self._files if file.binary.kind == "elf"]
        self._loadings = {
            file.path: self._loader.load(file, self._preloaded_for(file)) for file in elf
        }
        self.opened_names: dict[str, frozenset[str]] = {}
        """The libraries of findings about opened libraries, without versions, by message."""
        self.uses = list(self._all_uses(elf))
        preloaded = {name for _, by_name in self._preloads for name in by_name}
        opened = OpenedLibraries(
            environment, data, self._loader, self._loadings, preloaded, self._owners
        )
        opened_cuda = {file.path: list(filter(self._is_cuda, file.binary.opens)) for file in elf}
        self._unopened = list(opened.unopened(opened_cuda))
        self._damaged = [
            *((use.user, use.loaded) for use in self.uses if use.loaded.found_by == "damaged"),
            *opened.damaged,
        ]

    def report(self, findings: Iterable[AuditFinding] = ()) -> AuditedEnvironment:
        """Return each needed library with its file, and one command for all findings."""
        found = grouped(
            ((use.soname, use.loaded.found_by, use.loaded.display_path, use.loaded.rule), use)
            for use in self.uses
        )
        return AuditedEnvironment(
            path=self.environment.path,
            kind=self.environment.kind,
            packages=len(self.environment.distributions),
            fix=self.repairs.combined(each.hint for each in findings if each.exit_code),
            libraries=tuple(
                LoadedFile(
                    soname=soname,
                    cuda=soname in self._cuda or found_by == "driver",
                    found_by=found_by,
                    path=path or None,
                    package=self.package_of(uses[0].loaded.file) or None,
                    rule=rule or None,
                    by=paths_of(use.user for use in uses),
                    undefined=tuple(_lacking_names(uses)),
                )
                for (soname, found_by, path, rule), uses in sorted(found.items())
            ),
        )

    def _is_cuda(self, name: str) -> bool:
        owner = self._data.owner_of(name)
        if owner is None:
            return self._data.catalog.has_family(name)
        # A distribution may have libraries such as NCCL, too.
        is_known = bool(self._data.catalog.providers(name, self._platforms))
        return owner not in DRIVER_OWNERS and is_known

    def _owner(self, file: ProgramFile | None) -> Distribution | None:
        return None if file is None else self._owners.get(file.path)

    def _projects_of(self, files: Iterable[ProgramFile]) -> set[str]:
        owners = map(self._owner, files)
        return {owner.project for owner in owners if owner is not None}

    def package_of(self, file: ProgramFile | None) -> str:
        """Return the package of a file and its version, or an empty string."""
        owner = self._owner(file)
        return "" if owner is None else owner.title

    # -- the files

    def _all_uses(self, files: Sequence[ProgramFile]) -> Iterator[Use]:
        """Yield each needed library of each file with the file that is loaded for it.

        A library that other files load is loaded with their run paths.
        """
        direct: dict[tuple[str, str], FoundFile] = {}
        indirect: dict[tuple[str, str], FoundFile] = {}
        scopes: dict[str, dict[str, ProgramFile]] = defaultdict(dict)
        for main in files:
            for user, name, loaded in self._loadings[main.path].needs:
                found = direct if user is main else indirect
                found.setdefault((user.path, name), loaded)
                if loaded.file is not None:
                    scopes[main.path][loaded.path] = loaded.file
        for user in files:
            scope = [user, *scopes[user.path].values()]
            cuda = [name for name in user.binary.needed if name in self._cuda]
            symbols = symbols_by_library([user], cuda, self._tables) if cuda else {}
            for name in dict.fromkeys(user.binary.needed):
                key = (user.path, name)
                loaded = direct.get(key) or indirect.get(key) or self._without_loader(name, user)
                lacking = self._not_exported(symbols.get(name, ()), loaded.file, scope)
                yield Use(user, name, loaded, lacking)

    def _not_exported(
        self, symbols: Iterable[Import], file: ProgramFile | None, scope: Sequence[ProgramFile]
    ) -> set[str]:
        """Return the symbols that neither a library nor another loaded file exports."""
        if file is not None and "symbols" in file.binary.unread:
            return set()
        files = [*scope] if file is None else [file, *scope]
        return {
            symbol.name
            for symbol in symbols
            if not any(_is_exported(symbol, self._exports(each)) for each in files)
        }

    def _without_loader(self, name: str, user: ProgramFile) -> FoundFile:
        """Return the file for a library that the loader does not find, if there is one."""
        if self._data.owner_of(name) in DRIVER_OWNERS:
            return FoundFile(found_by="driver")
        if name in self._cuda:
            # If several packages load it, the last one counts, as in `_preloaded_for`.
            for _, preloaded in reversed(self._preloads):
                if name in preloaded:
                    return preloaded[name]
        for file in self._by_name.get(name, ()):
            if file.binary.machine == user.binary.machine:
                return FoundFile(found_by="other-code", path=file.path, file=file)
        return FoundFile(found_by="none")

    # -- libraries that packages load first

    def _preload_rules(self) -> Iterator[tuple[Distribution, Preload]]:
        """Yield the installed packages with a function that loads libraries, and its rule."""
        for rule in self._data.policy.preloads:
            for project in rule.projects:
                package = self.environment.distributions.get(project)
                if package is None:
                    continue
                text = _module_text(package, rule)
                if rule.function in text:
                    yield package, _named_in(text, rule)

    def _loaded_by(self, rule: Preload) -> Iterator[tuple[str, FoundFile]]:
        """Yield the files that a rule loads. Folders such as `nvidia/cu13` are searched last."""
        text = f"{rule.module}: {rule.function}"
        nvidias = (file for file in self._files if file.path in self.nvidias)
        files = sorted(nvidias, key=lambda file: (bool(_is_common_folder(file.path)), file.path))
        for pattern in rule.names:
            for file in files:
                name = posixpath.basename(file.path)
                if fnmatchcase(name, pattern):
                    found = FoundFile(found_by="preloaded", path=file.path, file=file, rule=text)
                    yield file.binary.soname or name, found
                    break

    def _preloaded_for(self, file: ProgramFile) -> Mapping[str, FoundFile]:
        """Return the libraries that are surely loaded before a file."""
        package = self._owner(file)
        if package is None or not self._preloads:
            return {}
        # An extension of torch without requirements needs torch's libraries.
        needed = [each for name in file.binary.needed for each in self._by_name.get(name, ())]
        required = self._required_by(package.project) | self._projects_of(needed)
        preloaded: dict[str, FoundFile] = {}
        for loader, by_name in self._preloads:
            if loader.project in required:
                preloaded.update(by_name)
        return preloaded

    # -- findings

    def findings(self, majors: Iterable[FileMajors] = ()) -> Iterator[AuditFinding]:
        """Yield missing libraries, missing symbols, and several copies of a library.

        `majors` are the CUDA majors of files.
        """
        self._mixed = {each.path: each for each in majors if not each.common}
        groups = grouped(
            ((use.soname, use.loaded.found_by, use.loaded.path), use) for use in self.uses
        )
        for (soname, _, _), uses in sorted(groups.items()):
            if soname in self._cuda:
                yield from self._location_findings(soname, uses)
            yield from self._symbol_findings(soname, uses)
        damaged = {self._loader.real(found.path) for _, found in self._damaged}
        yield from self._unread_findings(damaged)
        yield from self._damage_findings()
        yield from self._packages.findings(damaged)
        yield from self._opened_findings()
        yield from self._preloaded_findings()
        yield from self._library_path_findings()
        yield from self._copy_findings()
        yield from self._lost_findings()

    def loads(self, file: ProgramFile, soname: str) -> bool:
        """Check if a library is loaded with a file or before it."""
        loading = self._loadings.get(file.path)
        return loading is not None and soname in loading.by_name

    def exports_symbol(self, file: ProgramFile, name: str) -> bool:
        """Check if a file exports a symbol in any version."""
        return name in self._exports(file)

    def files_named(self, names: Iterable[str]) -> list[str]:
        """Return the paths of the files with one of some names."""
        files = (file for name in names for file in self._by_name.get(name, ()))
        return list(dict.fromkeys(file.display_path for file in files))

    def other_copies(self, use: Use) -> list[str]:
        """Return the paths of other files with the name of a needed library."""
        return [path for path in self.files_named([use.soname]) if path != use.loaded.display_path]

    def packages_with_code(self) -> set[str]:
        """Return the packages with device code, other than NVIDIA's own."""
        with_code = (file for file in self._files if file.binary.images or file.binary.cubins)
        own = (file for file in with_code if file.path not in self.nvidias)
        return {self.package_of(file) or file.display_path for file in own}

    def fix(self, soname: str, uses: Iterable[Use]) -> WheelFix:
        """Return the command for a library, or the build of the packages that need it.

        A wheel for one CUDA major is of no use to files that also load libraries of another one.
        """
        builds = self._builds_for_one_major(soname, uses)
        if builds:
            return WheelFix(conflict=f"the environment needs {' and '.join(builds)}")
        files = [use.user for use in self.uses if use.soname == soname]
        return fix_for(soname, files, self.environment, self._data, self.repairs)

    def _builds_for_one_major(self, soname: str, uses: Iterable[Use]) -> list[str]:
        """Return the builds that resolve a mixture of CUDA majors.

        There are none if any file is not mixed, or is in no package that could have another build.
        """
        builds: dict[str, None] = {}
        for use in uses:
            mixed = self._mixed.get(use.user.display_path)
            owner = self._owner(use.user)
            if mixed is None or owner is None or owner.project in self._data.catalog.projects():
                return []
            own = majors_of(self._data.catalog.providers(soname, use.user.platforms))
            for major in sorted(mixed.single.keys() - own):
                builds[f"the build of {owner.title} for CUDA {major}"] = None
        return list(builds)

    def _run_path_fix(self, files: Iterable[ProgramFile], folder: str) -> str | None:
        """Return the command that adds a run path to files. A toolkit records changed files."""
        if self.environment.kind == "toolkit":
            root = self.environment.path
            return command_line("materialize set.json", "--run-paths", output=root)
        commands = dict.fromkeys(run_path_fix(file.path, folder) for file in files)
        return self.repairs.hint(Repair(commands=tuple(commands)))

    def _location_findings(self, soname: str, uses: Sequence[Use]) -> Iterator[AuditFinding]:
        """Yield a finding if the loader does not find a CUDA library."""
        loaded, users = uses[0].loaded, [use.user for use in uses]
        hint, is_optional = None, False
        if loaded.found_by == "other-code":
            rest = f"although {loaded.display_path} exists; no run path leads to its folder"
            call = self._call_for(soname, users)
            if call is None:
                hint = self._run_path_fix(users, posixpath.dirname(loaded.path))
            else:
                rest += f". Call {call} first"
        elif loaded.found_by == "none":
            others = sorted(set(self._data.catalog.others(soname)) & self._by_name.keys())
            rest = f"and the environment has {', '.join(others) or 'no other version of it'}"
            hint, conflict = self.fix(soname, uses)
            rest += f", but {conflict}" if conflict else ""
            if hint and (call := self._call_for(soname, users)):
                rest += f". After the installation, call {call} first"
            if all(self._is_optional(soname, user) for user in users):
                packages = sorted(set(map(self.package_of, users)))
                is_optional, rest = True, f"which is optional for {', '.join(packages)}"
        else:
            return
        paths = paths_of(users)
        message = f"the loader does not find {soname} for {some_of(paths)}, {rest}"
        finding = make_finding("missing-library", message, paths[0], hint)
        yield as_warning(finding) if is_optional else finding

    def _preloaded_findings(self) -> Iterator[AuditFinding]:
        """Yield a warning for libraries that a package loads that is not certainly imported."""
        groups = grouped(
            (use.loaded.rule, use)
            for use in self.uses
            if use.loaded.found_by == "preloaded"
            and use.soname in self._cuda
            and not self._is_preloaded_for(use.soname, use.user)
        )
        for rule, uses in groups.items():
            names, paths = sorted({use.soname for use in uses}), paths_of({u.user for u in uses})
            message = f"the loader does not find {listed(names, _NAMES)} for {some_of(paths)}"
            message += f", unless {rule} loads {'it' if len(names) == 1 else 'them'} first"
            yield make_finding("run-path", message, paths[0])

    def _lost_findings(self) -> Iterator[AuditFinding]:
        """Yield a warning for libraries of NVIDIA's that are not in the data, such as TensorRT's.

        It is a finding if the package of the file requires their wheel.
        """
        others = [
            use
            for use in self.uses
            if use.loaded.found_by == "none"
            and other_project(use.soname) is not None
            and use.soname not in self._cuda
            and use.user.path not in self.nvidias
        ]
        groups = grouped((self._other_requirement(use), use) for use in others)
        for requirement, uses in groups.items():
            names, paths = sorted({use.soname for use in uses}), paths_of({u.user for u in uses})
            message = f"the loader does not find {some_of(names)} for {some_of(paths)}"
            hint = None
            if requirement is not None:
                message += f", of {requirement.name}"
                project = canonicalize_name(requirement.name)
                hint = self.repairs.install(project, requirement.specifier)
            finding = make_finding("missing-library", message, paths[0], hint)
            yield as_warning(finding) if requirement is None else finding

    def _other_requirement(self, use: Use) -> Requirement | None:
        """Return the requirement of a file's package for a library that is not in the data."""
        owner, project = self._owner(use.user), other_project(use.soname)
        if owner is None or project is None:
            return None
        required = owner.requirements()
        return next((n for n in required if canonicalize_name(n.name).startswith(project)), None)

    def _call_for(self, soname: str, users: Iterable[ProgramFile]) -> str | None:
        """Return the call that loads a library for the package of some files."""
        projects = self._projects_of(users)
        for package, rule in self._calls:
            # An opened name may have no version.
            is_loaded = any(
                fnmatchcase(soname, n) or n.startswith(f"{soname}.") for n in rule.names
            )
            if projects == {package.project} and is_loaded:
                module = rule.module.removesuffix(".py").removesuffix("/__init__")
                return f"{module.replace('/', '.')}.{rule.function}()"
        return None

    def _unread_findings(self, damaged: Collection[str]) -> Iterator[AuditFinding]:
        """Yield a finding for files whose CUDA libraries are unknown.

        Damaged files have findings of their own. Run paths and symbols only count in files that
        need or open CUDA libraries.
        """
        unread = [
            file for file in self._files if file.path not in damaged and self._is_cuda_unknown(file)
        ]
        paths = [*paths_of(unread), *self.environment.unreadable]
        if paths:
            message = f"the CUDA libraries of {some_of(paths)} are unknown: not read"
            yield make_finding("unknown", message, paths[0])

    def _is_cuda_unknown(self, file: ProgramFile) -> bool:
        """Check if the CUDA libraries of a file, or the used parts of them, are unknown."""
        unread = file.binary.unread
        if "needed" in unread:
            return True
        needs_cuda = not self._cuda.isdisjoint(file.binary.needed)
        if "symbols" in unread and needs_cuda:
            return True
        opens_cuda = any(map(self._is_cuda, file.binary.opens))
        return "runpath" in unread and (needs_cuda or opens_cuda)

    def _damage_findings(self) -> Iterator[AuditFinding]:
        """Yield a finding for each library that is not a whole ELF file."""
        damaged = grouped((found.path, (user, found)) for user, found in self._damaged)
        for path, uses in sorted(damaged.items()):
            real = self._loader.real(path)
            owner = self._owners.get(real)
            title = self._display_path(real) + ("" if owner is None else f" ({owner.title})")
            users = paths_of({user for user, _ in uses})
            message = f"the loader cannot read {title} for {some_of(users)}: {damage_of(path)}"
            if damage_of(path) == UNREADABLE:
                yield make_finding("unknown", message, self._display_path(real))
                continue
            hint = None if owner is None else self.repairs.reinstall(owner)
            yield make_finding("damaged-file", message, self._display_path(real), hint)

    def _display_path(self, path: str) -> str:
        """Return the path of a file in messages."""
        return path.removeprefix(f"{os.path.realpath(self.environment.path)}/")

    def _opened_findings(self) -> Iterator[AuditFinding]:
        """Yield a finding for libraries that files open, but that the loader does not find."""
        groups = grouped(
            ((self._opener(each), each.is_required, each.caller is not None), each)
            for each in self._unopened
        )
        for (_, is_required, has_caller), group in sorted(groups.items(), key=_by_severity):
            names = list(dict.fromkeys(each.name for each in group))
            paths = paths_of({each.user for each in group})
            message = f"the loader does not find {some_of(names)}, which {some_of(paths)} opens"
            files = [file for each in group for file in each.elsewhere]
            hint = None
            if has_caller:
                callers = paths_of({each.caller for each in group if each.caller is not None})
                message += f", except by the run path of {some_of(callers)}"
            elif files and (call := self._call_for_all(group)):
                message += f". Call {call} first"
            elif files:
                message += f", although the environment has {some_of(paths_of({*files}))}"
                hint = self._opened_fix(group[0], files)
            elif is_required:
                hint = self._missing_fix(group)
            else:
                packages = sorted({self.package_of(each.user) for each in group} - {""})
                message += f"; optional for {', '.join(packages)}"
            self.opened_names[message] = frozenset(map(stem_of, names))
            finding = make_finding("missing-library", message, paths[0], hint)
            yield finding if is_required and not has_caller else as_warning(finding)

    def _opener(self, opened: Unopened) -> str:
        """Return the package that opens a library. Optional libraries have one warning together."""
        is_alone = opened.is_required or opened.caller or self._call_for(opened.name, [opened.user])
        return self.package_of(opened.user) if is_alone else ""

    def _call_for_all(self, group: Iterable[Unopened]) -> str | None:
        """Return the call that loads all libraries that files open, if there is one."""
        calls = {self._call_for(each.name, [each.user]) for each in group}
        return calls.pop() if len(calls) == 1 else None

    def _opened_fix(self, first: Unopened, files: Iterable[ProgramFile]) -> str | None:
        """Return a command with which installed files are found.

        It installs the next version of a library of NVIDIA's that finds the parts of its package,
        or names their folders for the loader.
        """
        owner, user = self._owner(first.user), first.user
        known = self._data.catalog.providers(user.name, user.platforms)
        fitting = [each for each in known if owner and each.project == owner.project]
        command = None if owner is None else newer_command(owner, fitting, self.repairs)
        folders = sorted({posixpath.dirname(file.path) for file in files})
        export = f"export LD_LIBRARY_PATH={quote(':'.join(folders))}"
        return command or self.repairs.hint(Repair(commands=(export,)))

    def _missing_fix(self, group: Iterable[Unopened]) -> str | None:
        """Return the command that installs the wheels of missing libraries, if it is known."""
        for each in group:
            names = fitting_names(each.name, self._data.catalog.others(each.name))
            for soname in names[::-1]:
                fix = fix_for(
                    soname, [each.user], self.environment, self._data, self.repairs
                ).command
                if fix is not None:
                    return fix
        return None

    def _symbol_findings(self, soname: str, uses: Sequence[Use]) -> Iterator[AuditFinding]:
        """Yield a finding if a found library does not export all symbols."""
        file, lacking = uses[0].loaded.file, _lacking_names(uses)
        if lacking and file is not None:
            paths = paths_of(use.user for use in uses if use.lacking)
            package = self.package_of(file)
            title = file.display_path + (f" ({package})" if package else "")
            if file.binary.soname not in {None, soname}:
                title += f", which is {file.binary.soname} by its own name,"
            hint, conflict = self.fix(soname, uses)
            if uses[0].loaded.found_by == "library-path":
                hint, conflict = self.repairs.hint(Repair(commands=(_WITHOUT_VARIABLE,))), ""
            message = f"{title} does not export {some_of(lacking)}, which {some_of(paths)} uses"
            message += f", but {conflict}" if conflict else ""
            yield make_finding("missing-symbols", message, paths[0], hint)

    def _library_path_findings(self) -> Iterator[AuditFinding]:
        """Yield a warning for each library that LD_LIBRARY_PATH puts before others."""
        groups = grouped(
            (use.loaded.display_path, use)
            for use in self.uses
            if use.loaded.found_by == "library-path" and use.soname in self._cuda
        )
        for path, uses in sorted(groups.items()):
            users, others = paths_of(use.user for use in uses), self.other_copies(uses[0])
            if not others and path in self.files_named([uses[0].soname]):
                continue  # The only copy of the environment.
            message = f"LD_LIBRARY_PATH puts {path} first for {some_of(users)}"
            message += f", before {some_of(others)}" if others else ""
            yield make_finding("library-path", message, path)

    def _copy_findings(self) -> Iterator[AuditFinding]:
        """Yield a warning if files load different copies of a CUDA library."""
        copies: dict[str, dict[str, str]] = defaultdict(dict)
        for use in self.uses:
            if use.soname in self._cuda and use.loaded.file is not None:
                copies[use.soname].setdefault(use.loaded.display_path, use.user.display_path)
        for soname, users in sorted(copies.items()):
            if len(users) > 1:
                parts = some_of([f"{path} for {user}" for path, user in users.items()])
                message = f"files load different copies of {soname}: {parts}"
                yield make_finding("duplicate-library", message, next(iter(users)))

    def gpu_findings(self, gpus: Sequence[str]) -> Iterator[AuditFinding]:
        """Yield a finding for each package whose device code GPUs do not run.

        A library of NVIDIA's has extra code for some GPUs. It is a finding only if no code of its
        package runs on a GPU.
        """
        rules = self._data.rules
        if rules is None:
            return
        jetsons = jetson_findings(gpus, self._platforms, rules)
        yield from jetsons.values()
        gpus = [name for name in gpus if name not in jetsons]
        with_code = (file for file in self._files if file.binary.images or file.binary.cubins)
        packages = grouped((self.package_of(file) or "no package", file) for file in with_code)
        for title, files in sorted(packages.items()):
            # Images without kernels are no device code.
            coverage = rules.cover(codes_of(files), gpus)
            coverage = {name: part for name, part in coverage.items() if part.value != "host-only"}
            if all(file.path in self.nvidias for file in files):
                coverage = {name: part for name, part in coverage.items() if part.value == "none"}
            gaps_of = partial(find_gaps, files, rules=rules, is_package=True)
            for each in gpu_findings(
                [name for name in gpus if name in coverage], coverage, gaps_of
            ):
                yield each.model_copy(update={"message": f"{title}: {each.message}"})

    def _is_optional(self, soname: str, user: ProgramFile) -> bool:
        """Check if the package of a file can be imported without a library."""
        owner, preloads = self._owner(user), self._data.policy.preloads
        project = "" if owner is None else owner.project
        optional = (rule for rule in preloads if rule.is_optional and project in rule.projects)
        return any(fnmatchcase(soname, name) for rule in optional for name in rule.names)

    def _is_preloaded_for(self, soname: str, user: ProgramFile) -> bool:
        """Check if a package that loads a library first is certainly imported before a file."""
        return user.path in self.nvidias or soname in self._preloaded_for(user)


def _by_severity(item: tuple[tuple[str, bool, bool], object]) -> tuple[bool, str]:
    """Return the order of a group of opened libraries: findings first, then by package."""
    (package, is_required, has_caller), _ = item
    return not is_required or has_caller, package


def _lacking_names(uses: Iterable[Use]) -> list[str]:
    """Return the symbols that no loaded file exports, sorted."""
    return sorted({name for use in uses for name in use.lacking})


def _exports(file: ProgramFile) -> dict[str, set[str]]:
    """Return the versions of the symbols that a file exports."""
    versions: dict[str, set[str]] = defaultdict(set)
    for names, version in export_groups(file.binary):
        for name in names:
            versions[name].add(version.lstrip("@"))
    return versions


def _is_exported(symbol: Import, exports: Mapping[str, Collection[str]]) -> bool:
    """Check if a file exports a symbol."""
    return any(map(symbol.is_met_by, exports.get(symbol.name, ())))


def _module_text(package: Distribution, rule: Preload) -> str:
    """Return the text of a rule's module, empty if there is none. It is only read."""
    return foreign_text(Path(package.site, rule.module), _MODULE_LIMIT)


def _named_in(text: str, rule: Preload) -> Preload:
    """Return a rule with the libraries that this version of the module names, if it names any."""
    names = tuple(n for n in rule.names if f"{n.partition(_LIBRARY)[0]}{_LIBRARY}" in text)
    return rule.model_copy(update={"names": names or rule.names})
