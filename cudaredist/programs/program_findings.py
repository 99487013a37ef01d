"""Findings about a program: problems, and required properties that it lacks."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.primitives import Version
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.judge import JudgedProgram
from cudaredist.programs.library_names import original_name
from cudaredist.programs.lowest_release import RequiredRelease
from cudaredist.programs.program import ProgramFile
from cudaredist.programs.repair import Repair
from cudaredist.programs.run_paths import RunPathGap, run_path_fixes
from cudaredist.tables.driver_support import (
    Support,
    parse_driver,
    ptx_support,
    refusals,
    release_of_ptx,
)
from cudaredist.tables.gpus.capability import Capability
from cudaredist.words import listed


class Environment(Protocol):
    """The loaded libraries of an environment, as far as findings about programs need them."""

    def title_of(self, file: ProgramFile) -> str:
        """Return the name and version of the package with a file, empty if there is none."""

    def loads(self, file: ProgramFile, soname: str) -> bool:
        """Check if a library is loaded with a file or before it."""


def program_findings(
    judged: JudgedProgram, skipped: Sequence[str], environments: Sequence[Environment] = ()
) -> Iterator[Finding]:
    """Yield the problems of a program, and the required properties that it lacks.

    `gpu_verdicts` has those about required GPUs.
    """
    mixed = list(_major_findings(judged))
    yield from mixed
    for need in judged.needs:
        if need.status == "missing":
            others = ", ".join(judged.data.catalog.others(need.soname))
            users = f"{need.soname}, which {some_of(need.by)} needs"
            message = f"nothing provides {users}; known: {others}"
            yield Finding("missing-library", message, need.by[0])
    for release in judged.releases:
        yield from _release_findings(release, is_mixed=bool(mixed))
    yield from _copy_findings(judged, environments)
    yield from _unlinked_findings(judged.files, environments)
    yield from _run_path_findings(judged.gaps)
    yield from _required_findings(judged)
    yield from _driver_findings(judged)
    yield from _ptx_findings(judged)
    yield from _unread_findings(judged, skipped)


def _major_findings(judged: JudgedProgram) -> Iterator[Finding]:
    """Yield a finding for each file that is loaded with libraries of several CUDA majors."""
    for file in judged.majors:
        if not file.common:
            parts = [f"{major} ({some_of(names)})" for major, names in file.single.items()]
            message = f"{file.path} uses libraries of several CUDA majors: {', '.join(parts)}"
            yield Finding("mixed-cuda", message, file.path)


def _release_findings(release: RequiredRelease, *, is_mixed: bool) -> Iterator[Finding]:
    """Yield a finding if no release has all libraries and symbols."""
    redist, last = release.redist, release.last
    if release.unresolved:
        is_single = last is not None and release.first == last
        subject = (
            f"{redist} {last} does not export" if is_single else f"no release of {redist} exports"
        )
        yield Finding("missing-symbols", f"{subject} {', '.join(release.unresolved)}")
    elif last is None and not is_mixed and not release.lacks_library:
        names = ", ".join(release.sonames)
        yield Finding("mixed-cuda", f"no release of {redist} has all of {names}")
    elif last is not None and release.fits_none:
        lacking = ", ".join(release.lacking[last])
        message = f"no release of {redist} exports all symbols: {last} lacks {lacking}"
        yield Finding("missing-symbols", message)


def _copy_findings(judged: JudgedProgram, environments: Sequence[Environment]) -> Iterator[Finding]:
    """Yield a warning for each of NVIDIA's libraries with copies in several folders.

    Wheels have copies in one folder in place of links. In an environment, a package chooses among
    its own copies, and copies that auditwheel renamed are private.
    """
    for soname, copies in judged.copies_by_soname().items():
        packages = {each.title_of(file) for each in environments for file in copies} - {""}
        if len(packages) == 1:
            continue
        files = [file for file in copies if not environments or not _is_private(file)]
        paths = (file.display_path for file in files)
        by_folder = grouped((path.rpartition("/")[0], path) for path in paths)
        if len(by_folder) > 1:
            firsts = [in_folder[0] for in_folder in by_folder.values()]
            message = f"the program has {len(firsts)} copies of {soname}: {some_of(firsts)}"
            yield Finding("duplicate-library", message, firsts[0])


def _is_private(file: ProgramFile) -> bool:
    """Check if a repair tool renamed a copy, so that only its own wheel loads it."""
    name = posixpath.basename(file.path)
    return original_name(name) != name


def _unlinked_findings(
    program: Sequence[ProgramFile], environments: Sequence[Environment]
) -> Iterator[Finding]:
    """Yield a warning for each library that files use without listing it as needed."""
    users = grouped(
        (soname, file)
        for file in program
        for soname in file.unlinked
        if not any(each.loads(file, soname) for each in environments)
    )
    for soname, files in sorted(users.items()):
        paths = [file.display_path for file in files]
        names = sorted({name for file in files for name in file.unlinked[soname]})
        used = f"symbols of {soname} are used in {some_of(paths)}"
        message = f"{used}, but the library is not listed as needed: {some_of(names)}"
        yield Finding("unlinked-library", message, paths[0])


def _run_path_findings(gaps: Sequence[RunPathGap]) -> Iterator[Finding]:
    """Yield a warning if no run path leads to CUDA libraries."""
    if gaps:
        paths = list(dict.fromkeys(gap.file.display_path for gap in gaps))
        sonames = listed(list(dict.fromkeys(gap.need.soname for gap in gaps)), 2)
        message = f"no run path leads to {sonames}, so other code must load them before "
        commands = tuple(run_path_fixes(gaps))
        repair = Repair(commands=commands) if commands else None
        yield Finding("run-path", message + listed(paths, 1), paths[0], repair)


def _required_findings(judged: JudgedProgram) -> Iterator[Finding]:
    """Yield a finding for a newer glibc, another CUDA release, and each bundled library."""
    limit, glibc, cuda = judged.required.max_glibc, judged.glibc, judged.cuda
    if limit and glibc.version and Version.parse(glibc.version) > Version.parse(limit):
        message = f"needs glibc {glibc.version}, not {limit}: {some_of(glibc.by)}"
        yield Finding("glibc", message, glibc.by[0])
    if cuda is not None:
        releases, major = judged.releases, cuda.components[0]
        fitting = [each for each in releases if not each.cuda_majors or major in each.cuda_majors]
        if releases and not fitting:
            majors = sorted({number for release in releases for number in release.cuda_majors})
            message = f"it is for CUDA {' and '.join(map(str, majors))}, not {major}"
            yield Finding("cuda", message)
        for release in fitting:
            if release.redist == "cuda":
                yield from _cuda_findings(release, cuda, judged.data.channel)
    if judged.required.no_bundled:
        for file in judged.copies:
            path = file.display_path
            yield Finding("bundled", f"{path} is a copy of an NVIDIA library", path)


def _cuda_findings(release: RequiredRelease, label: Version, channel: str) -> Iterator[Finding]:
    if label in release.unknown:
        version = str(label)
        command = command_line("update-symbols", channel=channel, redist="cuda", version=version)
        repair = Repair(commands=(command,))
        yield Finding("unknown", f"the symbols of CUDA {label} are unknown", repair=repair)
    elif absent := release.absent(label):
        yield Finding("cuda", f"CUDA {label} does not have {', '.join(absent)}")
    elif label in release.lacking:
        symbols = ", ".join(release.lacking[label])
        yield Finding("cuda", f"CUDA {label} does not export {symbols}")


def _driver_findings(judged: JudgedProgram) -> Iterator[Finding]:
    """Yield a finding for each CUDA release that does not run on the required driver.

    The releases are the required one, or the lowest ones with all libraries and symbols, or else
    the one whose compiler wrote the PTX.
    """
    name = judged.required.driver
    if name is None:
        return
    # Other files do not need a driver, such as the launchers for Windows in every copy of pip.
    users = {path for need in judged.needs if need.cuda for path in need.by}
    files = [file for file in judged.own if file.binary.device_code or file.display_path in users]
    if not files:
        return
    labels = [release.lowest for release in judged.releases if release.redist == "cuda"]
    labels = [judged.cuda] if judged.cuda else labels
    labels = labels or list(_compiler_labels(files, judged.data.drivers))
    platforms = [file.platforms[0] for file in files if file.platforms] or ["linux"]
    known = sorted({label for label in labels if label is not None})
    if not known and (labels or any(file.binary.device_code for file in judged.own)):
        message = "--require-driver is unknown: no CUDA release is known for the program"
        yield Finding("unknown", message)
    repair = Repair(commands=(command_line("explain", "driver", name),))
    for support, words in refusals(name, known, platforms, judged.data.drivers):
        if support == "unknown":
            yield Finding("unknown", words)
        else:
            yield Finding("driver", words, repair=repair)


def _compiler_labels(files: Iterable[ProgramFile], policy: DriverPolicy) -> Iterator[Version]:
    """Yield the CUDA minor of the newest PTX, if it is known."""
    images = filter(None, (file.binary.images for file in files))
    versions = [Version.parse(text) for each in images for text in each.ptx.values()]
    release = release_of_ptx(max(versions), policy) if versions else None
    if release is not None:
        yield Version.parse(release)


def _ptx_findings(judged: JudgedProgram) -> Iterator[Finding]:
    """Yield a finding for PTX that the required driver does not compile.

    It is a warning if the same module has machine code, and no GPU that does not run it is
    required.
    """
    name = judged.required.driver
    if name is None:
        return
    driver, policy = parse_driver(name, judged.data.drivers), judged.data.drivers
    paths_by_support: dict[tuple[Version, Support, bool], dict[str, None]] = defaultdict(dict)
    for file in judged.own:
        if file.binary.images is None:
            continue
        is_windows = bool(file.platforms) and file.platforms[0].startswith("windows")
        for module, text in file.binary.images.ptx.items():
            ptx = Version.parse(text)
            support = ptx_support(driver, ptx, "windows" if is_windows else "linux", policy)
            has_machine_code = any(part.startswith("sm_") for part in module.split())
            if support != "native" and _needs_ptx(judged, module):
                is_warning = has_machine_code and not judged.required.gpus
                paths_by_support[ptx, support, is_warning][file.display_path] = None
    for (ptx, support, is_warning), paths in sorted(paths_by_support.items()):
        release = release_of_ptx(ptx, policy)
        files = f"{some_of(list(paths))} has PTX {ptx}" + (f" of CUDA {release}" if release else "")
        path = next(iter(paths))
        if is_warning:
            words = f"{files}, which driver {name} may not compile; other GPUs run its machine code"
            yield Finding("driver", words, path, is_warning=True)
        elif support == "unknown":
            yield Finding("unknown", f"{files}, and it is unknown if driver {name} compiles it")
        else:
            yield Finding("driver", f"{files}, which driver {name} does not compile", path)


def _needs_ptx(judged: JudgedProgram, module: str) -> bool:
    """Check if a required GPU runs a module from PTX, or if no GPU is required."""
    rules, gpus = judged.data.rules, list(map(Capability.parse, judged.required.gpus))
    if rules is None or not gpus:
        return True
    ways = ({rules.way(part.partition("*")[0], gpu) for part in module.split()} for gpu in gpus)
    return any("ptx" in found and "native" not in found for found in ways)


def _unread_findings(judged: JudgedProgram, skipped: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each required property if a part of the program is unread."""
    unread = [*skipped, *(file.display_path for file in judged.files if file.is_unread)]
    required = judged.required
    options = {
        "--require-gpu": required.gpus,
        "--require-glibc": required.max_glibc,
        "--require-cuda": required.cuda,
        "--require-driver": required.driver,
        "--no-bundled": required.no_bundled,
    }
    for option, value in options.items():
        if value and unread:
            message = f"{option} is unknown: {some_of(unread)} cannot be read"
            yield Finding("unknown", message)
