"""Findings of audit: what is wrong with a program, and required properties that it lacks."""

import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from cudaredist.errors import EXIT_FINDINGS, EXIT_INCOMPLETE, EXIT_OK
from cudaredist.formats.packageset import Coverage
from cudaredist.formats.settings import AuditFindingKind, IgnoredFinding
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.primitives import Platform, Version
from cudaredist.programs.gpu_gaps import GpuGaps, find_gaps
from cudaredist.programs.judge import JudgedProgram
from cudaredist.programs.library_names import original_name
from cudaredist.programs.lowest_release import RequiredRelease
from cudaredist.programs.program import ProgramFile
from cudaredist.programs.report import AuditFinding
from cudaredist.programs.run_paths import RunPathGap, run_path_fixes
from cudaredist.tables.driver_support import (
    Support,
    parse_driver,
    ptx_support,
    refusals,
    release_of_ptx,
)
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.words import listed

some_of = partial(listed, limit=3)
"""Return the first names, and the number of others."""
_EXIT_CODES: Mapping[AuditFindingKind, int] = {
    "duplicate-library": EXIT_OK,
    "run-path": EXIT_OK,
    "library-path": EXIT_OK,
    "unknown": EXIT_INCOMPLETE,
    "unlinked-library": EXIT_OK,
}
"""Exit codes of findings other than 1."""


class Environment(Protocol):
    """The loaded libraries of an environment, as far as findings about programs need them."""

    def title_of(self, file: ProgramFile) -> str:
        """Return the name and version of the package with a file, empty if there is none."""

    def loads(self, file: ProgramFile, soname: str) -> bool:
        """Check if a library is loaded with a file or before it."""


def program_findings(
    judged: JudgedProgram, skipped: Sequence[str], environments: Sequence[Environment] = ()
) -> Iterator[AuditFinding]:
    """Yield what is wrong with a program, and the required properties that it lacks."""
    mixed = list(_major_findings(judged))
    yield from mixed
    for need in judged.needs:
        if need.status == "missing":
            others = ", ".join(judged.data.catalog.others(need.soname))
            users = f"{need.soname}, which {some_of(need.by)} needs"
            message = f"nothing provides {users}; known: {others}"
            yield make_finding("missing-library", message, need.by[0])
    for release in judged.releases:
        yield from _release_findings(release, is_mixed=bool(mixed))
    yield from _copy_findings(judged, environments)
    yield from _unlinked_findings(judged.files, environments)
    yield from _run_path_findings(judged.gaps)
    gpus = judged.required.gpus
    jetsons = jetson_findings(gpus, judged.platforms, judged.data.rules)
    yield from jetsons.values()
    rest = [name for name in gpus if name not in jetsons]
    yield from gpu_findings(rest, judged.coverage, _own_gaps(judged))
    yield from _required_findings(judged)
    yield from _driver_findings(judged)
    yield from _ptx_findings(judged)
    yield from _unread_findings(judged, skipped)


def _major_findings(judged: JudgedProgram) -> Iterator[AuditFinding]:
    """Yield a finding for each file that is loaded with libraries of several CUDA majors."""
    for file in judged.majors:
        if not file.common:
            parts = [f"{n} ({some_of(names)})" for n, names in file.single.items()]
            message = f"{file.path} uses libraries of several CUDA majors: {', '.join(parts)}"
            yield make_finding("mixed-cuda", message, file.path)


def _release_findings(release: RequiredRelease, *, is_mixed: bool) -> Iterator[AuditFinding]:
    """Yield a finding if no release has all libraries and symbols."""
    redist, last = release.redist, release.last
    if release.unresolved:
        is_single = last is not None and release.first == last
        subject = (
            f"{redist} {last} does not export" if is_single else f"no release of {redist} exports"
        )
        yield make_finding("missing-symbols", f"{subject} {', '.join(release.unresolved)}")
    elif last is None and not is_mixed and not release.lacks_library:
        names = ", ".join(release.sonames)
        yield make_finding("mixed-cuda", f"no release of {redist} has all of {names}")
    elif last is not None and release.fits_none:
        lacking = ", ".join(release.lacking[last])
        message = f"no release of {redist} exports all symbols: {last} lacks {lacking}"
        yield make_finding("missing-symbols", message)


def _copy_findings(
    judged: JudgedProgram, environments: Sequence[Environment]
) -> Iterator[AuditFinding]:
    """Yield a warning for each of NVIDIA's libraries with copies in several folders.

    Wheels have copies in one folder in place of links. In an environment, a package chooses among
    its own copies, and copies that auditwheel renamed are private.
    """
    for soname, copies in judged.copies_by_soname().items():
        packages = {each.title_of(file) for each in environments for file in copies} - {""}
        if len(packages) == 1:
            continue
        files = [file for file in copies if not environments or not _is_private(file)]
        by_folder = grouped((f.display_path.rpartition("/")[0], f.display_path) for f in files)
        if len(by_folder) > 1:
            paths = [in_folder[0] for in_folder in by_folder.values()]
            message = f"the program has {len(paths)} copies of {soname}: {some_of(paths)}"
            yield make_finding("duplicate-library", message, paths[0])


def _is_private(file: ProgramFile) -> bool:
    """Check if a repair tool renamed a copy, so that only its own wheel loads it."""
    name = posixpath.basename(file.path)
    return original_name(name) != name


def _unlinked_findings(
    program: Sequence[ProgramFile], environments: Sequence[Environment]
) -> Iterator[AuditFinding]:
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
        yield make_finding("unlinked-library", message, paths[0])


def _run_path_findings(gaps: Sequence[RunPathGap]) -> Iterator[AuditFinding]:
    """Yield a warning if no run path leads to CUDA libraries."""
    if gaps:
        paths = list(dict.fromkeys(gap.file.display_path for gap in gaps))
        sonames = listed(list(dict.fromkeys(gap.need.soname for gap in gaps)), 2)
        message = f"no run path leads to {sonames}, so other code must load them before "
        hint = " && ".join(run_path_fixes(gaps)) or None
        yield make_finding("run-path", message + listed(paths, 1), paths[0], hint)


def jetson_findings(
    gpus: Iterable[str], platforms: Collection[str], rules: CoverageRules | None
) -> dict[str, AuditFinding]:
    """Return a finding for each GPU of a Jetson if the program is for other machines."""
    if rules is None or not platforms:
        return {}
    runs = {gpu for name in platforms for gpu in rules.capabilities_on(Platform(name))}
    found = {}
    for name in gpus:
        gpu = Capability.parse(name)
        if gpu in rules.capabilities and gpu not in runs:
            systems = ", ".join(sorted(platforms))
            message = f"Jetsons of capability {name} do not run it: it is for {systems}"
            found[name] = make_finding("gpu", message)
    return found


def gpu_findings(
    gpus: Iterable[str],
    coverage: Mapping[str, Coverage] | None,
    gaps_of: Callable[[str], GpuGaps | None],
) -> Iterator[AuditFinding]:
    """Yield a finding for each GPU that does not run the program, or a warning for some files."""
    for name in gpus:
        part = None if coverage is None else coverage.get(name)
        if part is None:
            yield make_finding("unknown", f"GPUs of capability {name} are unknown")
            continue
        gaps = None if part.value == "unknown" else gaps_of(name)
        subject = f"GPUs of capability {name} do not run"
        if part.value == "host-only":
            yield make_finding("gpu", f"{subject} it: it has no device code")
        elif gaps is not None and gaps.files:
            chosen = [gap for gap in gaps.files if gap.is_critical] or gaps.files
            titles, path = some_of([gap.title for gap in chosen]), chosen[0].path
            if not gaps.runs:
                verb = "must be linked first" if part.value == "lto" else "does not run on them"
                yield make_finding("gpu", f"{subject} it: the code of {titles} {verb}", path)
            elif gaps.is_critical:
                yield make_finding("gpu", f"{subject} {titles}", path)
            else:
                words = f"code for other GPUs only, which those of capability {name} do not run"
                yield as_warning(make_finding("gpu", f"{words}: {titles}", path))


def _own_gaps(judged: JudgedProgram) -> Callable[[str], GpuGaps | None]:
    """Return a function that finds the code that a GPU does not run, of the best alternative."""

    def gaps_of(gpu: str) -> GpuGaps | None:
        rules = judged.data.rules
        if rules is None:
            return None
        found: list[GpuGaps] = []
        for files in judged.programs:
            is_package = all(file.is_packaged for file in files)
            gaps = find_gaps(files, gpu, rules, is_package=is_package)
            if gaps is not None:
                found.append(gaps)
        return min(found, key=lambda gaps: (gaps.is_critical, len(gaps.files)), default=None)

    return gaps_of


def _required_findings(judged: JudgedProgram) -> Iterator[AuditFinding]:
    """Yield a finding for a newer glibc, another CUDA release, and each bundled library."""
    limit, glibc, cuda = judged.required.max_glibc, judged.glibc, judged.cuda
    if limit and glibc.version and Version.parse(glibc.version) > Version.parse(limit):
        message = f"needs glibc {glibc.version}, not {limit}: {some_of(glibc.by)}"
        yield make_finding("glibc", message, glibc.by[0])
    if cuda is not None:
        releases, major = judged.releases, cuda.components[0]
        fitting = [r for r in releases if not r.cuda_majors or major in r.cuda_majors]
        if releases and not fitting:
            majors = sorted({number for release in releases for number in release.cuda_majors})
            message = f"it is for CUDA {' and '.join(map(str, majors))}, not {major}"
            yield make_finding("cuda", message)
        for release in fitting:
            if release.redist == "cuda":
                yield from _cuda_findings(release, cuda, judged.data.channel)
    if judged.required.no_bundled:
        for file in judged.copies:
            path = file.display_path
            yield make_finding("bundled", f"{path} is a copy of an NVIDIA library", path)


def _cuda_findings(
    release: RequiredRelease, label: Version, channel: str
) -> Iterator[AuditFinding]:
    if label in release.unknown:
        hint = command_line("update-symbols", channel=channel, redist="cuda", version=str(label))
        yield make_finding("unknown", f"the symbols of CUDA {label} are unknown", hint=hint)
    elif absent := release.absent(label):
        yield make_finding("cuda", f"CUDA {label} does not have {', '.join(absent)}")
    elif label in release.lacking:
        symbols = ", ".join(release.lacking[label])
        yield make_finding("cuda", f"CUDA {label} does not export {symbols}")


def _driver_findings(judged: JudgedProgram) -> Iterator[AuditFinding]:
    """Yield a finding for each CUDA release that does not run on the required driver.

    The releases are the required one, or the lowest ones with all libraries and symbols.
    """
    name = judged.required.driver
    if name is None:
        return
    # Other files do not need a driver, such as the launchers for Windows in every copy of pip.
    users = {path for need in judged.needs if need.cuda for path in need.by}
    files = [f for f in judged.own if f.binary.device_code or f.display_path in users]
    if not files:
        return
    labels = [release.lowest for release in judged.releases if release.redist == "cuda"]
    labels = [judged.cuda] if judged.cuda else labels
    platforms = [file.platforms[0] for file in files if file.platforms] or ["linux"]
    known = sorted({label for label in labels if label is not None})
    if not known and (labels or any(file.binary.device_code for file in judged.own)):
        message = "--require-driver is unknown: no CUDA release is known for the program"
        yield make_finding("unknown", message)
    hint = command_line("explain", "driver", name)
    for support, words in refusals(name, known, platforms, judged.data.drivers):
        if support == "unknown":
            yield make_finding("unknown", words)
        else:
            yield make_finding("driver", words, hint=hint)


def _ptx_findings(judged: JudgedProgram) -> Iterator[AuditFinding]:
    """Yield a finding for PTX that the required driver does not compile.

    It is a warning if the same module has machine code, and no GPU that does not run it is
    required.
    """
    name = judged.required.driver
    if name is None:
        return
    driver, policy = parse_driver(name, judged.data.drivers), judged.data.drivers
    found: dict[tuple[Version, Support, bool], dict[str, None]] = defaultdict(dict)
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
                found[ptx, support, is_warning][file.display_path] = None
    for (ptx, support, is_warning), paths in sorted(found.items()):
        release = release_of_ptx(ptx, policy)
        files = f"{some_of(list(paths))} has PTX {ptx}" + (f" of CUDA {release}" if release else "")
        path = next(iter(paths))
        if is_warning:
            words = f"{files}, which driver {name} may not compile; other GPUs run its machine code"
            yield as_warning(make_finding("driver", words, path))
        elif support == "unknown":
            yield make_finding(
                "unknown", f"{files}, and it is unknown if driver {name} compiles it"
            )
        else:
            yield make_finding("driver", f"{files}, which driver {name} does not compile", path)


def _needs_ptx(judged: JudgedProgram, module: str) -> bool:
    """Check if a required GPU runs a module from PTX, or if no GPU is required."""
    rules, gpus = judged.data.rules, list(map(Capability.parse, judged.required.gpus))
    if rules is None or not gpus:
        return True
    ways = ({rules.way(part.partition("*")[0], gpu) for part in module.split()} for gpu in gpus)
    return any("ptx" in found and "native" not in found for found in ways)


def _unread_findings(judged: JudgedProgram, skipped: Sequence[str]) -> Iterator[AuditFinding]:
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
            yield make_finding("unknown", message)


def with_reason(finding: AuditFinding, ignored: Iterable[IgnoredFinding]) -> AuditFinding:
    """Mark a finding if it is ignored. The reason is that of the last matching entry."""
    for entry in ignored:
        if is_ignored(finding, entry):
            finding = as_warning(finding, entry.reason)
    return finding


def is_ignored(finding: AuditFinding, entry: IgnoredFinding) -> bool:
    """Check if an entry of the configuration file matches a finding."""
    return finding.kind == entry.kind and entry.contains in finding.message


def make_finding(
    kind: AuditFindingKind, message: str, path: str | None = None, hint: str | None = None
) -> AuditFinding:
    """Return a finding with the exit code of its kind."""
    code = _EXIT_CODES.get(kind, EXIT_FINDINGS)
    return AuditFinding(kind=kind, message=message, path=path, hint=hint, exit_code=code)


def as_warning(finding: AuditFinding, ignored: str | None = None) -> AuditFinding:
    """Return a finding that does not count, for example because it is ignored."""
    return finding.model_copy(update={"exit_code": EXIT_OK, "ignored": ignored})
