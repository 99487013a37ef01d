"""The findings about one environment, and the commands that fix them."""

import os
import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as WheelVersion

from cudaredist.environments.builds import OtherBuilds
from cudaredist.environments.consumers import Consumers
from cudaredist.environments.installed import Distribution
from cudaredist.environments.loaded_libraries import LoadedLibraries, Use
from cudaredist.environments.loader import UNREADABLE, damage_of
from cudaredist.environments.metadata_findings import MetadataFindings
from cudaredist.environments.opened_findings import OpenedFindings
from cudaredist.environments.plugins import Plugins
from cudaredist.environments.repairs import Repairs, without_major
from cudaredist.environments.requirements_in_use import project_of
from cudaredist.environments.version_checks import refused_libraries
from cudaredist.environments.wheel_fixes import WheelFix, fix_for
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.primitives import Version
from cudaredist.programs.cuda_majors import FileMajors
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.gpu_coverage import Code, cover
from cudaredist.programs.gpu_gaps import find_gaps
from cudaredist.programs.gpu_verdicts import (
    WITHOUT_CODE,
    GpuVerdict,
    gpu_verdict,
    jetson_verdicts,
    may_lack_code,
)
from cudaredist.programs.program import AuditData, NvidiaBuild, ProgramFile, majors_of, paths_of
from cudaredist.programs.repair import Install, Repair
from cudaredist.programs.report import AuditedEnvironment, LoadedFile
from cudaredist.programs.run_paths import ORIGIN, run_path_fix, wheel_folder
from cudaredist.sets.library_names import stem_of
from cudaredist.tables.driver_support import parse_driver, ptx_support
from cudaredist.wheel_projects import other_project
from cudaredist.words import listed

_WITHOUT_VARIABLE = "unset LD_LIBRARY_PATH"
_NAMES = 5
_COMPILERS = ("nvidia-cuda-nvcc", "nvidia-cuda-nvrtc", "nvidia-nvvm")
"""The beginnings of the projects with a compiler that writes PTX."""


class JudgedEnvironment:
    """The findings about one environment."""

    def __init__(
        self, libraries: LoadedLibraries, data: AuditData, majors: Iterable[FileMajors] = ()
    ) -> None:
        """Take the CUDA majors of files."""
        self.libraries, self._data = libraries, data
        self.files, self.owners = libraries.files, libraries.files.owners
        self.environment = self.files.environment
        self.repairs = Repairs(self.environment, data.catalog, libraries.requirements)
        self._consumers = Consumers(libraries, data, self.repairs)
        self._metadata = MetadataFindings(libraries, data, self.repairs)
        self._opened = OpenedFindings(libraries, data, self.repairs)
        self._plugins = Plugins(libraries, data)
        majors = tuple(majors)
        self._builds = OtherBuilds(self.files, data, self.repairs, majors)
        self._mixed = {each.path: each for each in majors if not each.common}
        """Files that are loaded with libraries of several CUDA majors."""

    def report(self, findings: Iterable[Finding] = ()) -> AuditedEnvironment:
        """Return each needed library with its file, and one command for all findings."""
        counted = (each.repair for each in findings if each.exit_code)
        fix = self.repairs.combined(repair for repair in counted if repair is not None)
        uses_by_library = grouped(
            ((use.soname, use.loaded.found_by, use.loaded.display_path, use.loaded.rule), use)
            for use in self.libraries.uses
        )
        return AuditedEnvironment(
            path=self.environment.path,
            kind=self.environment.kind,
            packages=len(self.environment.distributions),
            fix=None if fix is None else fix.command,
            libraries=tuple(
                LoadedFile(
                    soname=soname,
                    cuda=soname in self.files.cuda or found_by == "driver",
                    found_by=found_by,
                    path=path or None,
                    package=self.owners.title_of(uses[0].loaded.file) or None,
                    rule=rule or None,
                    by=paths_of(use.user for use in uses),
                    undefined=tuple(_lacking_names(uses)),
                )
                for (soname, found_by, path, rule), uses in sorted(uses_by_library.items())
            ),
        )

    def findings(self) -> Iterator[Finding]:
        """Yield missing libraries, missing symbols, and several copies of a library."""
        groups = grouped(
            ((use.soname, use.loaded.found_by, use.loaded.path, self._is_optional(use)), use)
            for use in self.libraries.uses
            if use.user not in self.libraries.replaced
        )
        for (soname, _, _, is_optional), uses in sorted(groups.items()):
            if soname in self.files.cuda:
                yield from self._location_findings(soname, uses, is_optional=is_optional)
            yield from self._symbol_findings(soname, uses)
        yield from self._replaced_findings()
        yield from self._mixed_findings()
        damaged = {each.real_path for each in self.libraries.damaged}
        yield from self._unread_findings(damaged)
        yield from self._damage_findings()
        yield from self._metadata.all(damaged)
        yield from self._refused_findings()
        yield from self._opened.all()
        yield from self._preloaded_findings()
        yield from self._library_path_findings()
        yield from self._copy_findings()
        yield from self._lost_findings()

    def gpu_verdicts(self, gpus: Sequence[str]) -> Iterator[GpuVerdict]:
        """Yield whether GPUs run the device code of each package.

        NVIDIA's libraries have extra code for some GPUs. For these, the answer is only whether any
        code of the package runs on a GPU.
        """
        rules = self._data.rules
        if rules is None:
            yield from (GpuVerdict.unknown(name) for name in gpus)
            return
        jetsons = jetson_verdicts(gpus, self.files.platforms, rules)
        yield from jetsons.values()
        gpus = [name for name in gpus if name not in jetsons]
        yield from (GpuVerdict(name, "yes", WITHOUT_CODE) for name in gpus)
        packages = grouped(
            (self.owners.title_of(file) or "no package", file) for file in self._files_with_code()
        )
        for title, files in sorted(packages.items()):
            build = NvidiaBuild(None) if self.files.nvidia_files.issuperset(files) else None
            coverage = cover(Code(files, build), gpus, rules)
            for name in gpus:
                part = None if coverage is None else coverage[name]
                # Images without kernels are no device code.
                is_host = part is not None and part.value == "host-only"
                if is_host or (build and part and not may_lack_code(part)):
                    continue
                fitting = rules if part is None else rules.rules_for(part)
                gaps_of = partial(find_gaps, files, rules=fitting, is_package=True)
                verdict = gpu_verdict(name, part, gaps_of, rules)
                yield verdict.of_package(title)

    def compilers(self) -> list[tuple[Distribution, str]]:
        """Return the installed compilers of PTX with their CUDA minors, the newest first."""
        installed = self.environment.distributions.values()
        found = [
            (package, minor)
            for package in installed
            if package.project.startswith(_COMPILERS)
            and (minor := minor_of(package.version)) is not None
        ]
        return sorted(found, key=lambda each: Version.parse(each[1]), reverse=True)

    def driver_findings(self, driver: str) -> Iterator[Finding]:
        """Yield a warning for each compiler whose PTX a driver does not compile.

        Programs may use it for machine code only.
        """
        policy = self._data.drivers
        for package, minor in self.compilers():
            entry = policy.ptx.get(minor)
            if entry is None:
                continue
            ptx = Version.parse(entry.version)
            if ptx_support(parse_driver(driver, policy), ptx, "linux", policy) == "none":
                message = (
                    f"driver {driver} does not compile PTX {ptx}, which {package.title} writes"
                )
                yield Finding("driver", message, is_warning=True, package=package.title)

    def packages_with_code(self) -> set[str]:
        """Return the packages with device code, other than NVIDIA's own."""
        own = (file for file in self._files_with_code() if file not in self.files.nvidia_files)
        return {self.owners.title_of(file) or file.display_path for file in own}

    def _files_with_code(self) -> Iterator[ProgramFile]:
        """Yield the files with device code."""
        for file in self.environment.files:
            if file.binary.images or file.binary.cubins:
                yield file

    # -- commands

    def fix(self, soname: str, uses: Sequence[Use]) -> WheelFix:
        """Return the repair of a library, or the build of the packages that need it.

        A wheel for one CUDA major is of no use to files that also load libraries of another one.
        Nor is another wheel if the loaded file is not in it.
        """
        loaded = uses[0].loaded
        if loaded.found_by == "library-path":
            return WheelFix(Repair(commands=(_WITHOUT_VARIABLE,)))
        builds = self._builds_for_one_major(soname, uses)
        if builds:
            return WheelFix(conflict=f"the environment needs {' and '.join(builds)}")
        other = self._other_build(uses)
        if other is not None:
            return other
        files = [use.user for use in self.libraries.uses if use.soname == soname]
        fix = fix_for(soname, files, self.environment, self._data, self.repairs)
        if fix.conflict:
            lacking = {use.user for use in uses if use.lacking}
            return fix._replace(repair=self._consumers.repair(lacking) if lacking else None)
        again = {} if fix.repair is None else dict(fix.repair.reinstalls)
        owner = self.owners.of(loaded.file)
        if not again or loaded.file is None or (owner is not None and owner.project in again):
            return fix
        title = "no Python package" if owner is None else owner.title
        conflict = f"{title} contains the loaded file, which comes before that of "
        conflict += some_of([f"{name} {version}" for name, version in again.items()])
        repair = None
        if owner is None and self.environment.kind == "conda environment":
            newer = tuple(
                Install(name, SpecifierSet(f">={version}")) for name, version in again.items()
            )
            of_conda = Repair(installer="conda", installs=newer)
            repair = Repair(commands=(of_conda.command,)) if of_conda.is_possible else None
        return WheelFix(repair, conflict)

    def _other_build(self, uses: Iterable[Use]) -> WheelFix | None:
        """Return the installation of the users' build for the CUDA major of the environment."""
        owners = [self.owners.of(use.user) for use in uses]
        packages = {owner.project: owner for owner in owners if owner is not None}
        if None in owners or not self.repairs.has_wheels:
            return None
        builds = [self._builds.for_environment(package) for package in packages.values()]
        known = [build for build in builds if build is not None]
        if not known or len(known) < len(builds):
            return None
        repairs = [repair for repair, _ in known]
        reasons = ", and ".join(reason for _, reason in known)
        return WheelFix(self.repairs.combined(repairs) or repairs[0], reasons)

    def _builds_for_one_major(self, soname: str, uses: Iterable[Use]) -> list[str]:
        """Return the builds that resolve a mixture of CUDA majors.

        There are none if any file is not mixed, or is in no package that could have another build.
        """
        builds: dict[str, None] = {}
        for use in uses:
            mixed = self._mixed.get(use.user.display_path)
            owner = self.owners.of(use.user)
            if mixed is None or owner is None or owner.project in self._data.catalog.projects():
                return []
            own = majors_of(self._data.catalog.providers(soname, use.user.platforms))
            for major in sorted(mixed.single.keys() - own):
                builds[f"the build of {owner.title} for CUDA {major}"] = None
        return list(builds)

    def _run_path_fix(self, files: Iterable[ProgramFile], folder: str) -> Repair:
        """Return the repair that adds a run path to files. A toolkit records changed files."""
        if self.environment.kind == "toolkit":
            root = self.environment.path
            command = command_line("materialize set.json", "--run-paths", output=root)
            return Repair(commands=(command,), has_placeholder=True)
        commands = dict.fromkeys(run_path_fix(file.path, folder) for file in files)
        return Repair(commands=tuple(commands))

    def _with_run_paths(self, repair: Repair, files: Iterable[ProgramFile], folder: str) -> Repair:
        """Add the run paths that lead files to a folder of a wheel that is not installed yet.

        Only files with run paths to other wheels get one. Modules or other files may load the
        libraries of the rest.
        """
        commands: dict[str, None] = {}
        loaded = {use.loaded.file for use in self.libraries.uses}
        for file in files:
            owner = self.owners.of(file)
            if owner is None or file in loaded or self.libraries.preloads.may_load(file):
                continue
            here = posixpath.dirname(file.path)
            entries = (entry.replace("${ORIGIN}", ORIGIN) for entry in file.binary.runpath)
            own = {posixpath.normpath(entry.replace(ORIGIN, here, 1)) for entry in entries}
            path = posixpath.join(owner.site, folder)
            if path not in own and not own.isdisjoint(self._wheel_folders(file, owner.site)):
                commands[run_path_fix(file.path, path)] = None
        return repair._replace(commands=(*repair.commands, *commands))

    def _wheel_folders(self, file: ProgramFile, site: str) -> Iterator[str]:
        """Yield the folders of the wheels with libraries that a file needs."""
        for name in file.binary.needed:
            for library in self._data.catalog.providers(name, file.platforms):
                yield posixpath.join(site, wheel_folder(library))

    # -- needed libraries

    def _is_optional(self, use: Use) -> bool:
        """Check if the package of a file works without a library that the loader does not find."""
        if not use.is_unmet(self.files.cuda):
            return False
        is_known = self.libraries.preloads.is_optional(use.soname, use.user)
        return is_known or self._plugins.is_optional(use.user)

    def _location_findings(
        self, soname: str, uses: Sequence[Use], *, is_optional: bool
    ) -> Iterator[Finding]:
        """Yield a finding if the loader does not find a CUDA library."""
        loaded, users = uses[0].loaded, [use.user for use in uses]
        repair, is_warning = None, is_optional
        if loaded.found_by == "other-code":
            rest = f"although {loaded.display_path} exists; no run path leads to its folder"
            call = self.libraries.preloads.call_for(soname, users)
            if call is None:
                repair = self._run_path_fix(users, posixpath.dirname(loaded.path))
            else:
                # The environment is complete, and the program has to call the function.
                rest += f". Call {call} first"
                is_warning = True
        elif loaded.found_by == "none":
            others = sorted(set(self._data.catalog.others(soname)) & self.files.by_name.keys())
            rest = f"and the environment has {', '.join(others) or 'no other version of it'}"
            repair, conflict, folder = self.fix(soname, uses)
            rest += f", but {conflict}" if conflict else ""
            if repair and (call := self.libraries.preloads.call_for(soname, users)):
                rest += f". After the installation, call {call} first"
            elif repair and folder:
                repair = self._with_run_paths(repair, users, folder)
        else:
            return
        if is_optional:
            packages = ", ".join(sorted(set(map(self.owners.title_of, users))))
            is_installed = loaded.found_by == "other-code"
            rest = (
                f"{rest}; optional for {packages}"
                if is_installed
                else f"which is optional for {packages}"
            )
        paths = paths_of(users)
        message = f"the loader does not find {soname} for {some_of(paths)}, {rest}"
        yield Finding("missing-library", message, paths[0], repair, is_warning=is_warning)

    def _symbol_findings(self, soname: str, uses: Sequence[Use]) -> Iterator[Finding]:
        """Yield a finding if a found library does not export all symbols."""
        file, lacking = uses[0].loaded.file, _lacking_names(uses)
        if lacking and file is not None:
            paths = paths_of(use.user for use in uses if use.lacking)
            package = self.owners.title_of(file)
            title = file.display_path + (f" ({package})" if package else "")
            if file.binary.soname not in {None, soname}:
                title += f", which is {file.binary.soname} by its own name,"
            repair, conflict, _ = self.fix(soname, uses)
            message = f"{title} does not export {some_of(lacking)}, which {some_of(paths)} uses"
            message += f", but {conflict}" if conflict else ""
            yield Finding("missing-symbols", message, paths[0], repair)

    def _replaced_findings(self) -> Iterator[Finding]:
        """Yield a warning for unusable files if their package has one for another CUDA release."""
        groups = grouped((other, file) for file, other in self.libraries.replaced.items())
        for other, files in groups.items():
            paths = paths_of(files)
            uses = (use for use in self.libraries.uses if use.user in files)
            names = sorted({use.soname for use in uses if use.is_unmet(self.files.cuda)})
            # The answer to an error needs all names.
            message = f"{', '.join(names)} for {some_of(paths)}: missing, or without some symbols; "
            message += f"{self.owners.title_of(other)} also has {other.display_path} for another "
            message += "CUDA release"
            yield Finding("missing-library", message, paths[0], is_warning=True)

    def _mixed_findings(self) -> Iterator[Finding]:
        """Yield a finding for each package with files that load several CUDA majors."""
        files = (file for file in self.files.elf_files if file.display_path in self._mixed)
        groups = grouped((self.owners.project_of(file), file) for file in files)
        for of_package in groups.values():
            paths = paths_of(of_package)
            single: dict[int, dict[str, None]] = defaultdict(dict)
            for path in paths:
                for major, names in self._mixed[path].single.items():
                    single[major].update(dict.fromkeys(names))
            parts = [f"{major} ({some_of([*names])})" for major, names in sorted(single.items())]
            verb = "uses" if len(paths) == 1 else "use"
            message = f"{some_of(paths)} {verb} libraries of several CUDA majors: "
            message += ", ".join(parts)
            owner = self.owners.of(of_package[0])
            needed = {name for file in of_package for name in file.binary.needed}
            others = [major for major, names in single.items() if needed.isdisjoint(names)]
            repair = None if owner is None else self._builds.repair(owner, others)
            yield Finding("mixed-cuda", message, paths[0], repair)

    # -- damaged and unknown files

    def _unread_findings(self, damaged: Collection[str]) -> Iterator[Finding]:
        """Yield a finding for files whose CUDA libraries are unknown.

        Damaged files have findings of their own.
        """
        unknown = (file for file in self.libraries.unknown if file.path not in damaged)
        paths = [*paths_of(unknown), *self.environment.unreadable]
        if paths:
            message = f"the CUDA libraries of {some_of(paths)} are unknown: not read"
            yield Finding("unknown", message, paths[0])

    def _damage_findings(self) -> Iterator[Finding]:
        """Yield a finding for each library that is not a whole ELF file."""
        damaged = grouped(((each.path, each.real_path), each) for each in self.libraries.damaged)
        for (path, real_path), libraries in sorted(damaged.items()):
            owner = self.owners.at(real_path)
            title = self._display_path(real_path) + ("" if owner is None else f" ({owner.title})")
            users = paths_of({library.user for library in libraries})
            message = f"the loader cannot read {title} for {some_of(users)}: {damage_of(path)}"
            if damage_of(path) == UNREADABLE:
                yield Finding("unknown", message, self._display_path(real_path))
                continue
            repair = None if owner is None else self.repairs.repair(reinstalls=[owner])
            yield Finding("damaged-file", message, self._display_path(real_path), repair)

    def _display_path(self, path: str) -> str:
        """Return the path of a file in messages."""
        return path.removeprefix(f"{os.path.realpath(self.environment.path)}/")

    def _refused_findings(self) -> Iterator[Finding]:
        """Yield a finding for each library that a file refuses because it is too old."""
        for user, soname, package, cuda, first in refused_libraries(self.libraries, self._data):
            title = self.owners.title_of(user)
            message = f"{user.display_path} ({title}) was compiled for CUDA {cuda}, and accepts "
            message += f"{soname} of this or a later release, but {package.title} is installed"
            versions = SpecifierSet(f">={first}") if first else SpecifierSet()
            repair = self.repairs.install(package.project, versions) if first else None
            if repair is None and first:
                opponent = next(self.repairs.opponents(package.project, versions), "")
                message += f", and {opponent}" if opponent else ""
            yield Finding("requirement", message, user.display_path, repair)

    # -- libraries that are found otherwise than by the files themselves

    def _preloaded_findings(self) -> Iterator[Finding]:
        """Yield a warning for libraries that only a package loads, which may not be imported."""
        groups = grouped(
            (use.loaded.rule, use)
            for use in self.libraries.uses
            if use.loaded.found_by == "preloaded"
            and use.soname in self.files.cuda
            and not self._is_preloaded_for(use.soname, use.user)
        )
        for rule, uses in groups.items():
            names = sorted({use.soname for use in uses})
            paths = paths_of({use.user for use in uses})
            message = f"the loader does not find {listed(names, _NAMES)} for {some_of(paths)}"
            message += f", unless {rule} loads {'it' if len(names) == 1 else 'them'} first"
            yield Finding("run-path", message, paths[0])

    def _is_preloaded_for(self, soname: str, user: ProgramFile) -> bool:
        """Check if a package that loads a library first is certainly imported before a file."""
        before = self.libraries.preloads.before(user)
        return user in self.files.nvidia_files or soname in before

    def _library_path_findings(self) -> Iterator[Finding]:
        """Yield a warning for each library that LD_LIBRARY_PATH puts before others."""
        groups = grouped(
            (use.loaded.display_path, use)
            for use in self.libraries.uses
            if use.loaded.found_by == "library-path" and use.soname in self.files.cuda
        )
        for path, uses in sorted(groups.items()):
            users, others = paths_of(use.user for use in uses), self.libraries.other_copies(uses[0])
            if not others and path in self.files.paths_named([uses[0].soname]):
                continue  # The only copy of the environment.
            message = f"LD_LIBRARY_PATH puts {path} first for {some_of(users)}"
            message += f", before {some_of(others)}" if others else ""
            yield Finding("library-path", message, path)

    def _copy_findings(self) -> Iterator[Finding]:
        """Yield a warning if files load different copies of a CUDA library."""
        copies: dict[str, dict[str, str]] = defaultdict(dict)
        for use in self.libraries.uses:
            if use.soname in self.files.cuda and use.loaded.file is not None:
                copies[use.soname].setdefault(use.loaded.display_path, use.user.display_path)
        for soname, users in sorted(copies.items()):
            if len(users) > 1:
                parts = some_of([f"{path} for {user}" for path, user in users.items()])
                message = f"files load different copies of {soname}: {parts}"
                yield Finding("duplicate-library", message, next(iter(users)))

    def _lost_findings(self) -> Iterator[Finding]:
        """Yield a warning for NVIDIA's libraries that are not in the data, such as TensorRT.

        It is a finding if the package of the file requires their wheel. So is any other library
        with the name of a required package that is not installed, such as `librapids_logger.so`.
        """
        others = [
            (use, self._other_requirement(use))
            for use in self.libraries.uses
            if use.loaded.found_by == "none"
            and use.soname not in self.files.cuda
            and use.user not in self.files.nvidia_files
        ]
        groups = grouped(
            (requirement, use)
            for use, requirement in others
            if requirement is not None or other_project(use.soname) is not None
        )
        for requirement, uses in groups.items():
            names = sorted({use.soname for use in uses})
            paths = paths_of({use.user for use in uses})
            message = f"the loader does not find {some_of(names)} for {some_of(paths)}"
            repair = None
            if requirement is not None:
                message += f", of {requirement.name}"
                repair = self.repairs.install(project_of(requirement), requirement.specifier)
            is_warning = requirement is None
            yield Finding("missing-library", message, paths[0], repair, is_warning=is_warning)

    def _other_requirement(self, use: Use) -> Requirement | None:
        """Return the requirement of a file's package for a library that is not in the data."""
        owner, project = self.owners.of(use.user), other_project(use.soname)
        if owner is None:
            return None
        name = canonicalize_name(stem_of(use.soname).removeprefix("lib"))
        for requirement in self.libraries.requirements[owner.project]:
            required = project_of(requirement)
            plain = without_major(required).removeprefix("lib")
            is_absent = required not in self.environment.distributions
            if (plain == name and is_absent) or (project and required.startswith(project)):
                return requirement
        return None


def minor_of(version: str) -> str | None:
    """Return the CUDA minor of a wheel with the version of its CUDA release."""
    try:
        parsed = WheelVersion(version)
    except InvalidVersion:
        return None
    return f"{parsed.major}.{parsed.minor}"


def _lacking_names(uses: Iterable[Use]) -> list[str]:
    """Return the symbols that no loaded file exports, sorted."""
    return sorted({name for use in uses for name in use.lacking})
