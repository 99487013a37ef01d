"""The answers to the message of an error in an environment."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from packaging.specifiers import SpecifierSet

from cudaredist.environments.compiler_answers import compiler_answers
from cudaredist.environments.environment import JudgedEnvironment, minor_of
from cudaredist.environments.error_message import ErrorMessage, LibraryClaim
from cudaredist.environments.loaded_libraries import Use
from cudaredist.environments.other_libraries import other_library_answer
from cudaredist.environments.requirements_in_use import extra_with
from cudaredist.environments.status_answers import status_answers
from cudaredist.features.library_symbols import export_groups, import_groups
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.primitives import KNOWN_PLATFORMS, Version
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.program import AuditData, KnownLibrary, ProgramFile, majors_of
from cudaredist.programs.repair import Install, Repair
from cudaredist.programs.report import ErrorAnswer
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.sets.library_names import DRIVER_OWNERS, stem_of
from cudaredist.tables.driver_support import lowest_driver, lowest_ptx_driver, release_of_ptx
from cudaredist.wheel_projects import other_project

_KINDS = frozenset({"missing-library", "run-path", "damaged-file", "requirement"})
"""Findings about libraries that the loader does not find or read, or that a file refuses."""
_RUNTIME = "nvidia-cuda-runtime"
_CUDNN = "libcudnn"
_find_names = re.compile(r"(?<![\w.+-])[\w.+-]+\.so[.0-9]*").findall


class Answers:
    """Answers the message of an error from an environment and its findings."""

    def __init__(
        self,
        message: ErrorMessage,
        environment: JudgedEnvironment,
        data: AuditData,
        findings: Sequence[Finding],
    ) -> None:
        self._message, self._environment, self._data = message, environment, data
        self._findings, self._libraries = findings, environment.libraries
        self._files, self._owners = environment.files, environment.owners

    def all(self, gpus: Sequence[str]) -> Iterator[ErrorAnswer]:
        """Yield the answers. `gpus` are the required capabilities."""
        message = self._message
        about_libraries = list(self._about_libraries())
        for name, sonames in message.symbols.items():
            # A library that does not load is the cause.
            if not about_libraries or self._is_needed(sonames):
                yield self._symbol(name, sonames)
        for name in message.driver_symbols:
            yield self._driver_symbol(name)
        yield from about_libraries
        for name in message.torch_symbols:
            yield self._torch_symbol(name)
        yield from self._about_gpus(message.capabilities or tuple(gpus))
        if message.is_driver:
            yield self._driver()
        if message.is_mixed_driver:
            yield self._mixed_driver()
        if message.is_ptx:
            yield self._ptx()

    def _about_libraries(self) -> Iterator[ErrorAnswer]:
        """Yield the answers about named libraries, and those with a status code."""
        claimed = {name for claim in self._message.claims for name in claim.names}
        for names in self._message.libraries:
            if claimed.isdisjoint(names):
                yield from self._library(names)
        others = (other_library_answer(name, self._environment) for name in self._message.others)
        yield from filter(None, others)
        for claim in self._message.claims:
            yield from self._library(claim.names[::-1], claim)
        if self._message.is_mixed_cudnn:
            yield self._mixed_cudnn()
        catalog = self._data.catalog
        for sonames in self._message.statuses:
            yield from status_answers(sonames, self._environment, catalog, self._findings)

    def _about_gpus(self, gpus: Sequence[str]) -> Iterator[ErrorAnswer]:
        """Yield the answers about device code and compilers."""
        if self._message.is_gpu:
            yield from self._gpu(gpus)
        if self._message.is_compiler:
            yield from compiler_answers(gpus, self._environment, self._data)

    # -- symbols

    def _symbol(self, name: str, sonames: Sequence[str]) -> ErrorAnswer:
        uses = [use for use in self._libraries.uses if use.soname in sonames]
        chosen = self._users_of(name, uses)
        if not chosen:
            known = [
                name for name in sonames if self._data.catalog.providers(name, self._platforms)
            ]
            sonames = known or sonames
            firsts = [self._first_with(name, soname) for soname in sonames]
            titles = [_release_title(library) for library in firsts if library is not None]
            message = f"no file of the environment needs a library with {name}"
            message += f", which is in {some_of(sonames)} since {some_of(titles)}" if titles else ""
            return ErrorAnswer(kind="symbol", name=name, message=message)
        use = chosen[0]
        first = self._first_with(name, use.soname)
        file = use.loaded.file
        package = self._owners.title_of(file) or None
        title = use.loaded.display_path + (f" ({package})" if package else "")
        first_title = None if first is None else _release_title(first)
        since = f"; {use.soname} has it since {first_title}" if first_title else ""
        is_exported = file is not None and _exports(file, name)
        if file is None:
            message = f"{use.user.display_path} needs {use.soname}, which is not found{since}"
        elif is_exported:
            message = f"{title} exports {name}{since}. The process loaded another copy first"
            others = self._libraries.other_copies(use)
            message += f": {some_of(others)}" if others else ""
        else:
            message = f"{use.user.display_path} loads {title}, which does not export {name}{since}"
        repair = None if is_exported else self._symbol_fix(chosen, first)
        return ErrorAnswer(
            kind="symbol",
            name=name,
            message=message,
            path=use.loaded.display_path or None,
            package=package,
            first=first_title,
            hint=None if repair is None else repair.command,
        )

    def _is_needed(self, sonames: Sequence[str]) -> bool:
        """Check if a file needs one of some libraries."""
        return any(use.soname in sonames for use in self._libraries.uses)

    def _users_of(self, name: str, uses: Sequence[Use]) -> list[Use]:
        """Return the uses of libraries by the files that lack a symbol, or may use it."""
        lacking = [use for use in uses if name in use.lacking]
        if lacking:
            return lacking
        in_message = [use for use in uses if self._is_in_message(use.user)]
        if in_message:
            return in_message
        importing = [use for use in uses if _imports(use.user, name)]
        return importing or list(uses)

    def _is_in_message(self, user: ProgramFile) -> bool:
        """Check if the message names a file as one with undefined symbols."""
        return not {user.name, *user.names}.isdisjoint(self._message.users)

    def _first_with(self, name: str, soname: str) -> KnownLibrary | None:
        """Return a library of the first release with a symbol.

        Libraries of installed projects are preferred.
        """
        table = self._data.tables([soname]).get(soname)
        if table is None:
            return None
        mask = 0
        for export, bits in table.exports.items():
            if export.name == name:
                mask |= bits
        archives = {
            column.archive
            for column, bit in table.columns.items()
            if bit & mask and not column.provider.stub
        }
        known = self._data.catalog.providers(soname, self._platforms)
        fitting = [lib for lib in known if lib.archive in archives]
        projects = self._environment.environment.distributions
        installed = [lib for lib in fitting if lib.project in projects]
        return min(installed or fitting, key=lambda lib: lib.label, default=None)

    def _symbol_fix(self, uses: Sequence[Use], first: KnownLibrary | None) -> Repair | None:
        # Other symbols may need a later version.
        if any(use.lacking for use in uses) or uses[0].loaded.file is None:
            return self._environment.fix(uses[0].soname, uses).repair
        if uses[0].loaded.found_by == "library-path":
            return self._environment.fix(uses[0].soname, uses).repair
        if first is None or first.project is None:
            return None
        version = wheel_version(first)
        if version is None:
            return None
        return self._environment.repairs.install(first.project, SpecifierSet(f">={version}"))

    def _driver_symbol(self, name: str) -> ErrorAnswer:
        """Return the copies of the driver's library, of which one lacks a symbol."""
        copies = self._files.paths_named(["libcuda.so.1"])
        message = f"{name} is named like a function of libcuda.so.1, a part of NVIDIA's driver. "
        if copies:
            message += f"The environment has {some_of(copies)}, which must not come first"
        else:
            message += "The installed driver is too old to have it, or a stub or an older copy of "
            message += "its library comes first"
        path = next(iter(copies), None)
        return ErrorAnswer(kind="driver", name=name, message=message, path=path)

    # -- libraries

    def _library(
        self, names: Sequence[str], claim: LibraryClaim | None = None
    ) -> Iterator[ErrorAnswer]:
        """Yield the findings about a library, or else the file that is loaded."""
        reported = [finding for finding in self._findings if self._is_about(finding, names)]
        for finding in reported:
            # A library that is optional for its package is not for a user with its error.
            is_optional = finding.is_warning and finding.hint is None and finding.opened
            yield ErrorAnswer(
                kind="library",
                name=names[0],
                message=finding.message,
                path=finding.path,
                hint=self._absent(names).hint if is_optional else finding.hint,
            )
        if reported:
            return
        owner = next(filter(None, map(self._data.owner_of, names)), None)
        uses = [use for use in self._libraries.uses if use.soname in names]
        if owner in DRIVER_OWNERS:
            message = f"{names[0]} is a part of NVIDIA's driver, which is not installed, or not "
            message += "available in the container"
            yield ErrorAnswer(kind="library", name=names[0], message=message)
        elif uses and uses[0].loaded.path:
            loaded = uses[0].loaded
            package = self._owners.title_of(loaded.file) or None
            title = loaded.display_path + (f" ({package})" if package else "")
            message = f"the loader finds {title} for {uses[0].user.display_path}"
            repair = None
            if claim is not None and claim.is_old:
                message += f", which is too old: {claim.least or 'a newer version'}"
                message += " or later is needed" if claim.least else " is needed"
                repair = self._newer(uses[0], claim.least)
            yield ErrorAnswer(
                kind="library",
                name=uses[0].soname,
                message=message,
                path=loaded.display_path,
                package=package,
                hint=None if repair is None else repair.command,
            )
        else:
            yield self._absent(names)

    def _newer(self, use: Use, least: str | None) -> Repair | None:
        """Return the installation of a newer version of a loaded library."""
        if use.loaded.found_by == "library-path":
            return self._environment.fix(use.soname, [use]).repair
        owner = self._owners.of(use.loaded.file)
        if owner is None and least is not None:
            return self._newer_of_conda(use, least)
        if owner is None or owner.project not in self._data.catalog.projects():
            return None
        versions = f">={least}" if least else f">{owner.version}"
        return self._environment.repairs.install(owner.project, SpecifierSet(versions))

    def _newer_of_conda(self, use: Use, least: str) -> Repair | None:
        """Return the installation of a newer library in no Python package, such as cuDNN."""
        if self._environment.environment.kind != "conda environment":
            return None
        known = self._data.catalog.providers(use.soname, use.user.platforms)
        project = next((library.project for library in known if library.project), None)
        if project is None:
            return None
        install = Install(project, SpecifierSet(f">={least}"))
        path = self._environment.environment.path
        repair = Repair(installer="conda", environment=path, installs=(install,))
        return repair if repair.is_possible else None

    def _mixed_cudnn(self) -> ErrorAnswer:
        """Return the packages of the loaded libraries of cuDNN."""
        uses = [use for use in self._libraries.uses if use.soname.startswith(_CUDNN)]
        loaded = {use.loaded.display_path: use.loaded for use in uses if use.loaded.path}
        titles = {
            f"{path} ({self._owners.title_of(each.file) or 'no package'})"
            for path, each in loaded.items()
        }
        files = (file for file in self._files.environment.files if file.name.startswith(_CUDNN))
        packages = {self._owners.title_of(file) or file.display_path for file in files}
        message = f"the loader finds {some_of(sorted(titles))}. " if titles else ""
        if len(packages) > 1:
            message += f"The environment has cuDNN in {some_of(sorted(packages))}"
        else:
            title = next(iter(packages), "no cuDNN")
            message += (
                f"The environment has {title}, so another cuDNN is loaded from the system or "
            )
            message += "from LD_LIBRARY_PATH"
        is_first = any(each.found_by == "library-path" for each in loaded.values())
        hint = "unset LD_LIBRARY_PATH" if is_first else None
        return ErrorAnswer(kind="library", name="cudnn", message=message, hint=hint)

    def _torch_symbol(self, name: str) -> ErrorAnswer:
        """Return the package that was built for another release of torch."""
        torch = self._environment.environment.distributions.get("torch")
        files = self._files.environment.files
        user = next((file for file in files if self._is_in_message(file)), None)
        title = self._owners.title_of(user) if user else ""
        title = title or (user.display_path if user else "the file that needs it")
        release = f"another release than {torch.title}" if torch else "a release of torch"
        message = f"{name} is a symbol of torch, and {title} was built for {release}"
        path = user.display_path if user else None
        return ErrorAnswer(kind="symbol", name=name, message=message, path=path)

    def _is_about(self, finding: Finding, names: Sequence[str]) -> bool:
        """Check if a finding reports that a library is not found, read or accepted."""
        if finding.kind not in _KINDS:
            return False
        if not {*names}.isdisjoint(_find_names(finding.message)):
            return True
        # Files may open a library by a name without its version.
        return any(stem_of(name) in finding.opened for name in names)

    def _absent(self, names: Sequence[str]) -> ErrorAnswer:
        """Return the answer for a library that no file needs by name."""
        files = self._files.paths_named(names)
        if files:
            message = f"the environment has {some_of(files)}, but no file needs it by its name"
            return ErrorAnswer(kind="library", name=names[0], message=message, path=files[0])
        others = [other for name in names for other in self._data.catalog.others(name)]
        sonames = [name for name in names if name in others] or others[-1:]
        known = [
            library
            for soname in sonames
            for library in self._data.catalog.providers(soname, self._platforms)
            if library.project is not None
        ]
        projects = sorted({library.project or "" for library in known})
        if len(projects) > 1:
            majors = self._majors()
            fitting = sorted({lib.project or "" for lib in known if lib.major in majors})
            projects = fitting if len(fitting) == 1 else projects
        message = f"no file of the environment is {names[0]}"
        message += f"; {' or '.join(projects)} contains it" if projects else ""
        if not projects and (other := other_project(names[0])) is not None:
            message += f"; wheels of {other} contain it"
        repair = None
        extras = list(self._extras_with(projects))
        if extras:
            titles = [f"{install.project}[{install.extras[0]}]" for install in extras]
            message += f"; {' or '.join(titles)} installs it"
        if len(extras) == 1:
            repair = self._environment.repairs.repair(installs=extras)
        elif len(projects) == 1:
            repair = self._environment.repairs.install(projects[0], SpecifierSet())
        hint = None if repair is None else repair.command
        return ErrorAnswer(kind="library", name=names[0], message=message, hint=hint)

    def _extras_with(self, projects: Iterable[str]) -> Iterator[Install]:
        """Yield the extras of installed packages that require some projects."""
        if not self._environment.repairs.has_wheels:
            return
        known = self._data.catalog.projects()
        for package in self._environment.environment.distributions.values():
            own = () if package.project in known else projects
            extras = dict.fromkeys(extra_with(package, project) for project in own)
            for extra in filter(None, extras):
                yield Install(package.project, SpecifierSet(f"=={package.version}"), (extra,))

    @property
    def _platforms(self) -> Collection[str]:
        """The platforms of the environment's files, all if it has no binaries."""
        return self._files.platforms or KNOWN_PLATFORMS

    def _majors(self) -> set[int]:
        """Return the CUDA majors of the libraries that files need or open."""
        names = {use.soname for use in self._libraries.uses}
        names.update(name for file in self._files.elf_files for name in file.binary.opens)
        catalog, platforms = self._data.catalog, self._files.platforms
        stated = [majors_of(catalog.providers(name, platforms)) for name in names]
        return {next(iter(majors)) for majors in stated if len(majors) == 1}

    # -- the GPU and the driver

    def _gpu(self, gpus: Sequence[str]) -> Iterator[ErrorAnswer]:
        if not gpus:
            packages = sorted(self._environment.packages_with_code())
            message = f"device code is in {some_of(packages)}" if packages else "no device code"
            message += ". Name your GPU with --require-gpu (host: that of this machine)"
            yield ErrorAnswer(kind="gpu", name=None, message=message)
            return
        for gpu in gpus:
            verdicts = self._environment.gpu_verdicts([gpu])
            findings = [verdict.finding for verdict in verdicts if verdict.finding is not None]
            of_nvidia = [finding for finding in findings if self._is_of_nvidia(finding)]
            others = [finding for finding in findings if finding not in of_nvidia]
            for finding in others or of_nvidia[:1]:
                message = finding.message + self._builds_for(gpu)
                yield ErrorAnswer(kind="gpu", name=gpu, message=message, path=finding.path)
            rest = of_nvidia if others else of_nvidia[1:]
            if rest:
                titles = [finding.package or "" for finding in rest]
                message = f"GPUs of capability {gpu} do not run {some_of(titles)} either"
                yield ErrorAnswer(kind="gpu", name=gpu, message=message)
            if not findings:
                message = f"GPUs of capability {gpu} run the device code of all packages"
                yield ErrorAnswer(kind="gpu", name=gpu, message=message)

    def _builds_for(self, gpu: str) -> str:
        """Return a sentence on the CUDA releases whose builds may run on a GPU."""
        rules = self._data.rules
        first = None if rules is None else rules.first_cuda(gpu)
        if rules is None or first is None:
            return ""
        last = rules.last_cuda(gpu)
        return f". Builds for CUDA {first} {f'to {last}' if last else 'or later'} may run on it"

    def _is_of_nvidia(self, finding: Finding) -> bool:
        """Check if a finding is about a wheel of NVIDIA."""
        project, _, _ = (finding.package or "").partition(" ")
        return project in self._data.catalog.projects()

    def _driver(self) -> ErrorAnswer:
        installed = self._environment.environment.distributions.values()
        runtimes = [package for package in installed if package.project.startswith(_RUNTIME)]
        titles_by_minor = grouped(
            (minor_of(runtime.version), runtime.title) for runtime in runtimes
        )
        minors = [minor for minor in titles_by_minor if minor is not None]
        minor = max(minors, key=Version.parse, default=None)
        supported = self._message.supported
        own = f"; the driver supports CUDA {supported}" if supported else ""
        if minor is None:
            message = f"the CUDA runtime of the environment is not in a wheel of NVIDIA's{own}"
            return ErrorAnswer(kind="driver", name=None, message=message)
        labels = self._data.catalog.labels("cuda")
        fitting = (label for label in labels if label.line == minor)
        label = max(fitting, default=Version.parse(minor))
        lowest = lowest_driver(label, "linux", self._data.drivers)
        runtime = titles_by_minor[minor][0]
        message = f"{runtime} is of CUDA {minor}"
        message += f", which needs driver {lowest} or later on Linux" if lowest else ""
        hint = command_line(f"explain cuda {minor}")
        return ErrorAnswer(
            kind="driver",
            name=minor,
            message=f"{message}{own}",
            package=runtime,
            hint=hint,
        )

    def _mixed_driver(self) -> ErrorAnswer:
        """Return the copies of the driver's library that may come before that of the driver."""
        message = "the driver's library and its kernel module are of different versions"
        copies = self._files.paths_named(["libcuda.so.1"])
        if copies:
            message += f". The environment has {some_of(copies)}, which must not come first"
        else:
            message += (
                ". After an update of the driver, restart the machine. In a container, remove "
            )
            message += "the compat folder of CUDA from LD_LIBRARY_PATH"
        return ErrorAnswer(kind="driver", name=None, message=message, path=next(iter(copies), None))

    def _ptx(self) -> ErrorAnswer:
        """Return the driver that compiles the PTX of the installed compiler."""
        policy, compilers = self._data.drivers, self._environment.compilers()
        text, newest = self._message.ptx or (None, None)
        package, minor = compilers[0] if compilers else (None, None)
        if text is None:
            entry = policy.ptx.get(minor or "")
            text = None if entry is None else entry.version
        elif package is None:
            minor = release_of_ptx(Version.parse(text), policy)
        if text is None:
            message = "no compiler of PTX is installed as a wheel of NVIDIA's"
            return ErrorAnswer(kind="driver", name=None, message=message)
        lowest = lowest_ptx_driver(Version.parse(text), "linux", policy)
        title = "a compiler" if package is None else package.title
        message = f"{title} writes PTX {text}" + (f" of CUDA {minor}" if minor else "")
        message += f", which driver {lowest} or later compiles on Linux" if lowest else ""
        message += f"; this driver compiles PTX {newest}" if newest else ""
        message += ". Update the driver, or install an older compiler"
        hint = command_line(f"explain cuda {minor}") if minor else None
        newer = [
            Version.parse(name)
            for name, entry in policy.ptx.items()
            if newest is not None and Version.parse(entry.version) > Version.parse(newest)
        ]
        if package is not None and newer:
            versions = SpecifierSet(f"<{min(newer)}")
            repair = self._environment.repairs.install(package.project, versions)
            hint = hint if repair is None else repair.command
        return ErrorAnswer(
            kind="driver",
            name=minor,
            message=message,
            package=None if package is None else package.title,
            hint=hint,
        )


def _release_title(library: KnownLibrary) -> str:
    """Return the release of a library, and the version of its wheel."""
    title = f"{library.redist} {library.label}"
    version = wheel_version(library)
    return title if version is None else f"{title} ({library.project} {version})"


def _imports(file: ProgramFile, symbol: str) -> bool:
    """Check if a file needs a symbol in any version."""
    return any(symbol in names for names, _, _ in import_groups(file.binary))


def _exports(file: ProgramFile, symbol: str) -> bool:
    """Check if a file exports a symbol in any version."""
    return any(symbol in names for names, _ in export_groups(file.binary))


def answers_of(
    message: ErrorMessage,
    environments: Iterable[JudgedEnvironment],
    data: AuditData,
    findings: Sequence[Finding],
    gpus: Sequence[str],
) -> Iterator[ErrorAnswer]:
    """Yield the answers to the message of an error from each environment."""
    for environment in environments:
        yield from Answers(message, environment, data, findings).all(gpus)
