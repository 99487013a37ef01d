"""Select the shared libraries that programs need from a package set."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from cudaredist.cli.session import Session, open_cache
from cudaredist.commands.materialize.library_code import library_code
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.report import LibraryCode
from cudaredist.environments.audit_program import audit_programs
from cudaredist.errors import ContentError, UsageError
from cudaredist.formats.packageset import InSet, Needed, Opened, PackageSet, Provided, SetPackage
from cudaredist.hints import command_line
from cudaredist.primitives import Platform
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import AuditReport
from cudaredist.sets.library_names import stem_of
from cudaredist.sets.package_tree import PackageTree
from cudaredist.store.locate import store_to_read
from cudaredist.words import listed

_log = logging.getLogger(__name__)

_WITHOUT_PROVIDER = frozenset({"missing", "unknown"})


class RuntimeLibraries(NamedTuple):
    """The libraries of a runtime root."""

    paths: dict[str, set[str]]
    """By package."""
    names: frozenset[str]
    """The names that programs and libraries load them by."""
    optional: tuple[str, ...]
    """Optional libraries of other packages that these may open, which are left out."""
    code: LibraryCode | None = None
    """Their device code."""

    def tree(self, attr: str, tree: PackageTree) -> PackageTree:
        """Return the libraries of a package, and the links that a program needs."""
        kept = self.paths[attr]
        files = {path: entry for path, entry in tree.files.items() if path in kept}
        links = {
            link: end
            for link, end in tree.links.items()
            if end in files and link.rpartition("/")[2] in self.names
        }
        if missing := kept - files.keys():
            raise ContentError(f"{attr}: the archive does not contain {', '.join(sorted(missing))}")
        return replace(tree, files=files, links=links)


def runtime_libraries(
    package_set: PackageSet, options: MaterializeOptions, session: Session
) -> RuntimeLibraries:
    """Return the libraries that programs for Linux need, and those that the libraries need.

    Raises `ContentError` if a program cannot be read, or needs a library or symbol that neither the
    set nor the system provides, and `UsageError` if the programs need no library of the set.
    """
    platform = Platform(package_set.platform.redist_system)
    if platform.os != "linux":
        raise UsageError(f"--for requires a package set for Linux, not for {platform}")
    store = store_to_read(options.data_dir, package_set.channel)
    report = audit_programs(
        options.programs or (),
        store,
        AuditRequirements(),
        is_together=True,
        package_set=options.package_set,
        cache=open_cache(None),
        progress=session.progress("reading"),
    )
    (audited,) = report.programs
    for unread in (*audited.unread, *audited.skipped):
        _log.warning("the libraries that %s needs are not known completely", unread)
    others = [
        other for other in map(Platform, audited.platforms) if other.machine != platform.machine
    ]
    if others and len(others) == len(audited.platforms):
        cuda = package_set.cuda.release
        build = command_line("build", channel=store.channel, cuda=cuda, platform=others[0])
        message = f"the programs are for {' and '.join(others)}, and the set is for {platform}"
        raise ContentError(message, hint=f"run `{build}` to build a set for them")
    missing = list(_missing(audited))
    if problems := [*missing, *_problems(audited)]:
        hint = "name the files that provide other libraries with --for, too" if missing else None
        raise ContentError("; ".join(problems), hint=hint)
    needs = [need for need in audited.libraries if need.status == "provided"]
    if not needs:
        raise _no_needs(audited, platform)
    for name in others:
        if name.os == "linux":
            _log.warning("libraries for %s are not installed: the set is for %s", name, platform)
    for release in audited.releases:
        if release.unknown:
            _log.warning(
                "symbols not checked: the symbols of %s %s are unknown",
                release.redist,
                ", ".join(release.unknown),
            )
    libraries = close(package_set, [need.soname for need in needs])
    return libraries._replace(code=library_code(package_set, libraries.paths, store))


def close(package_set: PackageSet, sonames: Iterable[str]) -> RuntimeLibraries:
    """Return libraries of a set, and those that they need or open.

    Libraries that policy lists as optional are not included.
    """
    paths: dict[str, set[str]] = defaultdict(set)
    names: set[str] = set()
    optional: dict[str, None] = {}
    pending = [(_provider(package_set, soname), soname) for soname in sonames]
    while pending:
        attr, soname = pending.pop()
        package = package_set.packages.get(attr)
        if package is None or package.status != "available":
            raise ContentError(f"{attr}, which provides {soname}, is not available in the set")
        library = _library_of(package, soname)
        path = library.path
        # The version may be added to a name in data at run time.
        names |= {soname, library.soname}
        if path in paths[attr]:
            continue
        paths[attr].add(path)
        loads: tuple[Needed | Opened, ...] = (*package.needs, *package.opens)
        for need in (load for load in loads if load.by_path == path):
            by = need.satisfied_by
            if isinstance(by, InSet):
                if need.is_optional:
                    optional[need.soname] = None
                else:
                    pending.append((by.attr, need.soname))
            elif isinstance(need, Needed) and by is None:
                raise ContentError(f"{path} of {attr} needs {need.soname}: no package provides it")
    left = sorted(
        name for name in optional if not any(stem_of(known) == stem_of(name) for known in names)
    )
    return RuntimeLibraries(dict(paths), frozenset(names), tuple(left))


def _no_needs(report: AuditReport, platform: Platform) -> UsageError:
    """Return the error for programs that need no library of the set."""
    static, hint = report.runtime.static, None
    if static:
        hint = f"{static[0]} contains the CUDA runtime; nvcc -cudart shared links the shared one"
    message = f"the programs need no shared library of the set for {platform}"
    return UsageError(message, hint=hint)


def _missing(report: AuditReport) -> Iterator[str]:
    """Yield the libraries that neither the set nor the system provides."""
    for need in report.libraries:
        if need.status in _WITHOUT_PROVIDER and need.kind != "opened":
            yield f"neither the set nor the system provides {need.soname} for {need.by[0]}"


def _problems(report: AuditReport) -> Iterator[str]:
    """Yield the other reasons why the set is not enough for programs.

    Most findings about the files of an environment are ignored: libraries of the root replace them.
    """
    yield from (error.message for error in report.errors)
    for release in report.releases:
        if release.unresolved:
            names = listed(release.unresolved)
            yield f"{release.redist} of the set does not export {names}"
        elif release.last is not None and release.lowest is None and not release.unknown:
            yield f"no release of {release.redist} in the set exports all symbols"
    yield from (finding.message for finding in report.findings if finding.kind == "mixed-cuda")


def _provider(package_set: PackageSet, soname: str) -> str:
    """Return the package with a library, the main version before others."""
    providers = (
        package
        for package in package_set.available.values()
        if any(library.soname == soname and not library.stub for library in package.provides)
    )
    return min(providers, key=lambda package: (package.pname != package.attr, package.attr)).attr


def _library_of(package: SetPackage, name: str) -> Provided:
    """Return the library with a name, or the one that a link has the name of."""
    libraries = [library for library in package.provides if not library.stub]
    for library in libraries:
        if name in {library.soname, library.path.rpartition("/")[2]}:
            return library
    for library in libraries:
        if stem_of(library.soname) == stem_of(name):
            return library
    raise ContentError(f"{package.attr} has no library {name}")
