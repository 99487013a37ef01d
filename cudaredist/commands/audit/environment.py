"""Judge an environment: the file for each needed library, and its exported symbols."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import Path

from cudaredist.cli.text import grouped
from cudaredist.commands.audit.installed import Distribution, Environment
from cudaredist.commands.audit.judge import AuditData
from cudaredist.commands.audit.loader import FoundFile, Loader
from cudaredist.commands.audit.lowest_release import symbols_by_library
from cudaredist.commands.audit.needs import IS_OF_GPU
from cudaredist.commands.audit.program import ProgramFile, paths_of
from cudaredist.commands.audit.program_findings import (
    AuditRequirements,
    gpu_findings,
    make_finding,
    some_of,
)
from cudaredist.commands.audit.report import (
    AuditedEnvironment,
    AuditFinding,
    AuditReport,
    LoadedFile,
)
from cudaredist.commands.audit.run_paths import run_path_fix
from cudaredist.commands.audit.wheel_fixes import fix_command
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK
from cudaredist.features.library_symbols import export_groups
from cudaredist.formats.features import FileCode
from cudaredist.formats.policy import Preload
from cudaredist.formats.settings import AuditFindingKind
from cudaredist.sets.libraries import find_external
from cudaredist.tables.symbols.symbol_table import Import

_is_common_folder = re.compile(r".*/cu[0-9]+/lib/[^/]+").fullmatch


@dataclass(frozen=True, slots=True)
class _Use:
    """A library that a file needs, and the file that is loaded for it."""

    user: ProgramFile
    soname: str
    loaded: FoundFile
    lacking: tuple[str, ...] = ()
    """Symbols that no loaded file exports."""


class JudgedEnvironment:
    """The libraries of one environment."""

    def __init__(self, environment: Environment, data: AuditData) -> None:
        self.environment, self._data = environment, data
        self._owners = environment.owners()
        self._projects = data.catalog.projects()
        names = {name for file in environment.files for name in file.binary.needed}
        self._platforms = tuple({each for file in environment.files for each in file.platforms})
        self._cuda = frozenset(filter(self._is_cuda, names))
        self._tables = data.tables(sorted(self._cuda))
        self._exported: dict[str, Mapping[str, frozenset[str]]] = {}
        self._required_by = lru_cache(maxsize=None)(environment.required_by)
        self._uses = list(self._found_files())

    def nvidias_files(self) -> set[str]:
        """Return the paths of the files in NVIDIA's wheels."""
        return {file.path or "" for file in self.environment.files if self._is_of_nvidia(file)}

    def report(self) -> AuditedEnvironment:
        """Return each needed library with its file."""
        found: dict[tuple[str, str, str, str], list[_Use]] = defaultdict(list)
        for use in self._uses:
            loaded = use.loaded
            found[use.soname, loaded.found_by, self._shown(loaded), loaded.rule or ""].append(use)
        return AuditedEnvironment(
            path=self.environment.path,
            kind=self.environment.kind,
            packages=len(self.environment.distributions),
            libraries=tuple(
                LoadedFile(
                    soname=soname,
                    cuda=soname in self._cuda or found_by == "driver",
                    found_by=uses[0].loaded.found_by,
                    file=path or None,
                    package=self._package_of(uses[0].loaded.file),
                    rule=rule or None,
                    by=paths_of(use.user for use in uses),
                    undefined=tuple(sorted({name for use in uses for name in use.lacking})),
                )
                for (soname, found_by, path, rule), uses in sorted(found.items())
            ),
        )

    def _is_cuda(self, name: str) -> bool:
        external = find_external(name, self._data.policy)
        if external is None:
            return self._data.catalog.has_family(name)
        # A distribution may have libraries such as NCCL, too.
        is_known = bool(self._data.catalog.providers(name, self._platforms))
        return external.owner not in IS_OF_GPU and is_known

    def _owner(self, file: ProgramFile) -> Distribution | None:
        return self._owners.get(file.path or "")

    def _is_of_nvidia(self, file: ProgramFile) -> bool:
        owner = self._owner(file)
        return owner is not None and owner.project in self._projects

    def _package_of(self, file: ProgramFile | None) -> str | None:
        owner = None if file is None else self._owner(file)
        return None if owner is None else owner.title

    def _shown(self, loaded: FoundFile) -> str:
        """Return the path of a file in messages."""
        return loaded.path if loaded.file is None else loaded.file.display_path

    # -- the files

    def _found_files(self) -> Iterator[_Use]:
        """Yield each needed library of each file with the file that is loaded for it.

        A library that other files load is loaded with their run paths.
        """
        environment = self.environment
        loader = Loader(environment.root, environment.files, self._cuda, environment.folders)
        files = [file for file in environment.files if file.binary.kind == "elf"]
        direct: dict[tuple[str, str], FoundFile] = {}
        indirect: dict[tuple[str, str], FoundFile] = {}
        scopes: dict[str, dict[str, ProgramFile]] = defaultdict(dict)
        for main in files:
            for user, name, loaded in loader.closure(main, self._preloaded_for(main)):
                if loaded is not None:
                    found = direct if user is main else indirect
                    found.setdefault((user.path or "", name), loaded)
                    if loaded.file is not None:
                        scopes[main.path or ""][loaded.path] = loaded.file
        for user in files:
            symbols = self._symbols(user)
            for name in dict.fromkeys(user.binary.needed):
                key = (user.path or "", name)
                file = direct.get(key) or indirect.get(key) or self._elsewhere(name, user)
                scope = [user, *scopes[key[0]].values()]
                yield _Use(user, name, file, self._lacking(symbols.get(name, ()), file, scope))

    def _symbols(self, user: ProgramFile) -> Mapping[str, Collection[Import]]:
        """Return the symbols that a file takes from each CUDA library."""
        needed = [name for name in user.binary.needed if name in self._cuda]
        return symbols_by_library([user], needed, self._tables) if needed else {}

    def _lacking(
        self, symbols: Iterable[Import], loaded: FoundFile, scope: Sequence[ProgramFile]
    ) -> tuple[str, ...]:
        """Return the symbols that neither a library nor another loaded file exports."""
        files = [loaded.file] if loaded.file is not None else []
        if any("symbols" in file.binary.unread for file in files):
            return ()
        missing = [symbol for symbol in symbols if not self._is_exported(symbol, files)]
        return tuple(sorted({s.name for s in missing if not self._is_exported(s, scope)}))

    def _is_exported(self, symbol: Import, files: Iterable[ProgramFile]) -> bool:
        """Check if a file exports a symbol. A file without versions has it in any version."""
        for file in files:
            path = file.path or ""
            if path not in self._exported:
                versions: dict[str, set[str]] = defaultdict(set)
                for names, version in export_groups(file.binary):
                    for name in names:
                        versions[name].add(version.lstrip("@"))
                self._exported[path] = {name: frozenset(found) for name, found in versions.items()}
            found = self._exported[path].get(symbol.name)
            if found and (not symbol.version or found & {"", symbol.version}):
                return True
        return False

    def _elsewhere(self, name: str, user: ProgramFile) -> FoundFile:
        """Return a file with a name in a folder that the loader does not search."""
        external = find_external(name, self._data.policy)
        if external is not None and external.owner in IS_OF_GPU:
            return FoundFile(found_by="driver", path="")
        loaded = self._all_preloaded.get(name)
        if loaded is not None and name in self._cuda:
            return loaded
        for file in self._by_name.get(name, ()):
            if file.binary.machine == user.binary.machine:
                return FoundFile(found_by="other-code", path=file.path or "", file=file)
        return FoundFile(found_by="none", path="")

    @cached_property
    def _by_name(self) -> dict[str, list[ProgramFile]]:
        return grouped((name, file) for file in self.environment.files for name in file.names)

    # -- libraries that packages load first

    @cached_property
    def _preloads(self) -> list[tuple[Distribution, dict[str, FoundFile]]]:
        """Return the packages that load libraries, with these by soname."""
        return [
            (package, dict(self._loaded_by(rule)))
            for rule in self._data.policy.preloads
            for package in map(self.environment.distributions.get, rule.projects)
            if package is not None and _has_function(Path(package.site, rule.module), rule.function)
        ]

    def _loaded_by(self, rule: Preload) -> Iterator[tuple[str, FoundFile]]:
        """Yield the files that a rule loads. Folders such as `nvidia/cu13` are searched last."""
        by_path = {
            file.path or "": file for file in self.environment.files if self._is_of_nvidia(file)
        }
        ordered = sorted(by_path, key=lambda path: (bool(_is_common_folder(path)), path))
        for pattern in rule.names:
            for path in ordered:
                name = posixpath.basename(path)
                if fnmatchcase(name, pattern):
                    text = f"{rule.module}: {rule.function}"
                    file = by_path[path]
                    yield (
                        file.binary.soname or name,
                        FoundFile(found_by="preloaded", path=path, file=file, rule=text),
                    )
                    break

    @cached_property
    def _all_preloaded(self) -> dict[str, FoundFile]:
        return {name: loaded for _, by_name in self._preloads for name, loaded in by_name.items()}

    def _preloaded_for(self, file: ProgramFile) -> Mapping[str, FoundFile]:
        """Return the libraries that are surely loaded before a file."""
        package = self._owner(file)
        if package is None or not self._preloads:
            return {}
        required = self._required_by(package.project)
        return {
            name: loaded
            for loader, by_name in self._preloads
            if loader.project in required
            for name, loaded in by_name.items()
        }

    # -- findings

    def findings(self) -> Iterator[AuditFinding]:
        """Yield missing libraries, missing symbols, and several copies of a library."""
        groups = grouped(
            ((use.soname, use.loaded.found_by, use.loaded.path), use) for use in self._uses
        )
        for (soname, found_by, _), uses in sorted(groups.items()):
            if soname in self._cuda and found_by in {"none", "other-code", "preloaded"}:
                yield from self._location_findings(soname, uses)
            yield from self._symbol_findings(soname, uses)
        yield from self._copy_findings()
        others = [
            u for u in self._uses if u.loaded.found_by == "none" and u.soname not in self._cuda
        ]
        others = [use for use in others if not self._is_of_nvidia(use.user)]
        if others:
            names, paths = ({u.soname for u in others}, paths_of(u.user for u in others))
            message = f"the loader does not find {some_of(sorted(names))} for {some_of(paths)}"
            yield make_finding("missing-library", message, path=paths[0], exit_code=EXIT_OK)

    def _fix(self, soname: str) -> str | None:
        files = [use.user for use in self._uses if use.soname == soname]
        return fix_command(soname, files, self.environment, self._data.catalog, self._tables)

    def _location_findings(self, soname: str, uses: Sequence[_Use]) -> Iterator[AuditFinding]:
        """Yield a finding if the loader does not find a CUDA library."""
        loaded = uses[0].loaded
        users = [use.user for use in uses]
        code, hint = EXIT_FINDINGS, None
        if loaded.found_by == "preloaded":
            users = [user for user in users if not self._is_preloaded_for(soname, user)]
            code, rest = EXIT_OK, f"unless {loaded.rule} loads it first"
        elif loaded.found_by == "other-code":
            rest = f"although {self._shown(loaded)} exists; no run path leads to its folder"
            folder = posixpath.dirname(loaded.path)
            hint = " && ".join(run_path_fix(user.path or "", folder) for user in users)
        else:
            others = sorted(set(self._data.catalog.others(soname)) & self._by_name.keys())
            rest = f"and the environment has {', '.join(others) or 'no other version of it'}"
            hint = self._fix(soname)
            if all(self._is_optional(soname, user) for user in users):
                packages = {self._package_of(user) or "" for user in users}
                code, rest = EXIT_OK, f"which is optional for {', '.join(sorted(packages))}"
        if users:
            paths = paths_of(users)
            message = f"the loader does not find {soname} for {some_of(paths)}, {rest}"
            is_preloaded = loaded.found_by == "preloaded"
            kind: AuditFindingKind = "run-path" if is_preloaded else "missing-library"
            yield make_finding(kind, message, path=paths[0], hint=hint, exit_code=code)

    def _symbol_findings(self, soname: str, uses: Sequence[_Use]) -> Iterator[AuditFinding]:
        """Yield a finding if a found library does not export all symbols."""
        file = uses[0].loaded.file
        lacking = sorted({name for use in uses for name in use.lacking})
        if lacking and file is not None:
            paths = paths_of(use.user for use in uses if use.lacking)
            package = self._package_of(file)
            title = file.display_path + (f" ({package})" if package else "")
            if file.binary.soname not in {None, soname}:
                title += f", which is {file.binary.soname} by its own name,"
            yield make_finding(
                "missing-symbols",
                f"{title} does not export {some_of(lacking)}, which {some_of(paths)} uses",
                path=paths[0],
                hint=self._fix(soname),
            )

    def _copy_findings(self) -> Iterator[AuditFinding]:
        """Yield a warning if files load different copies of a CUDA library."""
        copies: dict[str, dict[str, str]] = defaultdict(dict)
        for use in self._uses:
            if use.soname in self._cuda and use.loaded.file is not None:
                copies[use.soname].setdefault(self._shown(use.loaded), use.user.display_path)
        for soname, users in sorted(copies.items()):
            if len(users) > 1:
                parts = some_of([f"{path} for {user}" for path, user in users.items()])
                message = f"files load different copies of {soname}: {parts}"
                yield make_finding(
                    "duplicate-library", message, path=next(iter(users)), exit_code=EXIT_OK
                )

    def gpu_findings(self, gpus: Sequence[str]) -> Iterator[AuditFinding]:
        """Yield a finding for each package whose device code GPUs do not run.

        Libraries of NVIDIA have code for some GPUs only in addition, so only none is a finding.
        """
        codes = grouped(
            (self._package_of(file) or "no package", (file, FileCode.of("lib", images)))
            for file in self.environment.files
            if (images := file.binary.images) is not None
        )
        rules = self._data.rules
        if rules is None:
            return
        for title, parts in sorted(codes.items()):
            coverage = rules.cover([code for _, code in parts], gpus)
            files = [file for file, _ in parts]
            if all(map(self._is_of_nvidia, files)):
                coverage = {name: part for name, part in coverage.items() if part.value == "none"}
            for each in gpu_findings([name for name in gpus if name in coverage], coverage):
                message = f"{title}: {each.message}"
                yield each.model_copy(update={"message": message, "path": paths_of(files)[0]})

    def _is_optional(self, soname: str, user: ProgramFile) -> bool:
        """Check if the package of a file can be imported without a library."""
        owner = self._owner(user)
        return owner is not None and any(
            fnmatchcase(soname, pattern)
            for rule in self._data.policy.preloads
            if rule.is_optional and owner.project in rule.projects
            for pattern in rule.names
        )

    def _is_preloaded_for(self, soname: str, user: ProgramFile) -> bool:
        """Check if a package that loads a library first is certainly imported before a file."""
        return self._is_of_nvidia(user) or soname in self._preloaded_for(user)


def with_environments(
    report: AuditReport, environments: Sequence[JudgedEnvironment], required: AuditRequirements
) -> AuditReport:
    """Add the libraries of environments, and their findings, to the report on their programs."""
    findings = [each for judged in environments for each in judged.findings()]
    findings += [each for judged in environments for each in judged.gpu_findings(required.gpus)]
    # The findings about loaded files and about each package replace those about all files.
    replaced = {"missing-library", *(["gpu"] if report.coverage is not None else [])}
    findings += [each for each in report.findings if each.kind not in replaced]
    reports = tuple(judged.report() for judged in environments)
    return report.with_findings(findings, environments=reports)


def _has_function(module: Path, name: str) -> bool:
    """Check if a module contains a name. It is only read."""
    try:
        return name in module.read_text(errors="replace")
    except OSError:
        return False
