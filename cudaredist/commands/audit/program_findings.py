"""Findings of audit: what is wrong with a program, and required properties that it lacks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cudaredist.cli.text import grouped
from cudaredist.commands.audit.cuda_majors import FileMajors
from cudaredist.commands.audit.lowest_release import RequiredRelease
from cudaredist.commands.audit.needs import LibraryNeed, is_bundled_copy
from cudaredist.commands.audit.program import Catalog, ProgramFile
from cudaredist.commands.audit.report import AuditFinding, AuditReport, Floor
from cudaredist.commands.audit.run_paths import RunPathGap, run_path_fixes
from cudaredist.errors import EXIT_FINDINGS, EXIT_INCOMPLETE, EXIT_OK, shortened
from cudaredist.formats.packageset import Coverage
from cudaredist.formats.policy import DriverPolicy
from cudaredist.formats.settings import AuditFindingKind, IgnoredFinding
from cudaredist.hints import command_line
from cudaredist.primitives import Version, parse_label
from cudaredist.tables.explain_driver import System, refusals

_FILES_SHOWN = 3
_RUNS = frozenset({"native", "ptx"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequirements:
    """Properties that the program must have."""

    gpus: tuple[str, ...] = ()
    """Capabilities that run its device code."""
    max_glibc: str | None = None
    cuda: str | None = None
    """A CUDA release, or a prefix such as `12.9`."""
    driver: str | None = None
    """A driver version, or a prefix such as `550.54`."""
    no_bundled: bool = False


def program_findings(
    program: Sequence[ProgramFile],
    needs: Sequence[LibraryNeed],
    releases: Sequence[RequiredRelease],
    majors: Sequence[FileMajors],
    gaps: Sequence[RunPathGap],
    catalog: Catalog,
) -> Iterator[AuditFinding]:
    """Yield what is wrong with a program, whatever is required of it."""
    mixed = list(_major_findings(majors))
    yield from mixed
    for need in needs:
        if need.status == "missing":
            others = ", ".join(catalog.others(need.soname))
            yield make_finding(
                "missing-library",
                f"nothing provides {need.soname}, which {some_of(need.by)} needs; known: {others}",
                path=need.by[0],
            )
    for release in releases:
        subject = f"no release of {release.redist} exports"
        if release.unresolved:
            if release.first is not None and release.first == release.last:
                subject = f"{release.redist} {release.first} does not export"
            yield make_finding("missing-symbols", f"{subject} {', '.join(release.unresolved)}")
        elif release.last is None and not mixed and not release.lacks_library:
            names = ", ".join(release.sonames)
            yield make_finding("mixed-cuda", f"no release of {release.redist} has all of {names}")
        elif release.last is not None and release.fits_none:
            lacking = ", ".join(release.lacking[release.last])
            yield make_finding(
                "missing-symbols", f"{subject} all symbols: {release.last} lacks {lacking}"
            )
    yield from _copy_findings(program, catalog)
    yield from _unlinked_findings(program)
    yield from _run_path_findings(gaps)


def _copy_findings(program: Sequence[ProgramFile], catalog: Catalog) -> Iterator[AuditFinding]:
    """Yield a warning for each of NVIDIA's libraries with copies in several folders.

    Wheels have copies in one folder in place of links.
    """
    copies: dict[str, dict[str, str]] = defaultdict(dict)
    for file in program:
        if is_bundled_copy(file, catalog):
            folder = file.display_path.rpartition("/")[0]
            soname = catalog.soname_of(file.name) or file.name
            copies[soname].setdefault(folder, file.display_path)
    for soname, folders in sorted(copies.items()):
        if len(folders) > 1:
            paths = list(folders.values())
            yield make_finding(
                "duplicate-library",
                f"the program has {len(paths)} copies of {soname}: {some_of(paths)}",
                path=paths[0],
                exit_code=EXIT_OK,
            )


def _unlinked_findings(program: Sequence[ProgramFile]) -> Iterator[AuditFinding]:
    """Yield a warning for each library that files use without listing it as needed."""
    users = grouped((soname, file) for file in program for soname in file.unlinked)
    for soname, files in sorted(users.items()):
        paths = [file.display_path for file in files]
        names = sorted({name for file in files for name in file.unlinked[soname]})
        yield make_finding(
            "unlinked-library",
            f"symbols of {soname} are used in {some_of(paths)}, but the library is not listed as "
            f"needed: {some_of(names)}",
            path=paths[0],
            exit_code=EXIT_OK,
        )


def _run_path_findings(gaps: Sequence[RunPathGap]) -> Iterator[AuditFinding]:
    """Yield a warning if no run path leads to CUDA libraries."""
    if not gaps:
        return
    files = ", ".join(shortened(list(dict.fromkeys(gap.path for gap in gaps)), 1))
    sonames = ", ".join(shortened(list(dict.fromkeys(gap.need.soname for gap in gaps)), 2))
    yield make_finding(
        "run-path",
        f"no run path leads to {sonames}, so other code must load them before {files}",
        path=gaps[0].path,
        hint=" && ".join(run_path_fixes(gaps)) or None,
        exit_code=EXIT_OK,
    )


def _major_findings(majors: Sequence[FileMajors]) -> Iterator[AuditFinding]:
    """Yield a finding for each file that is loaded with libraries of several CUDA majors."""
    for file in majors:
        if not file.common:
            parts = [f"{n} ({', '.join(shortened(names, 3))})" for n, names in file.single.items()]
            yield make_finding(
                "mixed-cuda",
                f"{file.path} uses libraries of several CUDA majors: {', '.join(parts)}",
                path=file.path,
            )


def requirement_findings(
    required: AuditRequirements,
    coverage: Mapping[str, Coverage] | None,
    glibc: Floor,
    releases: Sequence[RequiredRelease],
    copies: Sequence[ProgramFile],
    cuda: Version | None,
    channel: str,
) -> Iterator[AuditFinding]:
    """Yield a finding for each required property that the program lacks.

    `cuda` is the required release of CUDA in the channel of the data.
    """
    yield from gpu_findings(required.gpus, coverage)
    if required.max_glibc is not None:
        yield from _glibc_findings(required.max_glibc, glibc)
    if cuda is not None:
        major = cuda.components[0]
        fitting = [r for r in releases if not r.cuda_majors or major in r.cuda_majors]
        if releases and not fitting:
            majors = sorted({number for release in releases for number in release.cuda_majors})
            yield make_finding(
                "cuda", f"it is for CUDA {' and '.join(map(str, majors))}, not {major}"
            )
        for release in fitting:
            if release.redist == "cuda":
                yield from _cuda_findings(release, cuda, channel)
    for file in copies if required.no_bundled else ():
        path = file.display_path
        yield make_finding("bundled", f"{path} is a copy of an NVIDIA library", path=path)


def driver_findings(
    required: AuditRequirements,
    policy: DriverPolicy,
    cuda: Version | None,
    releases: Sequence[RequiredRelease],
    program: Sequence[ProgramFile],
) -> Iterator[AuditFinding]:
    """Yield a finding for each CUDA release that does not run on the required driver.

    The releases are the required one, or the lowest ones with all libraries and symbols.
    """
    name = required.driver
    if name is None:
        return
    labels = [release.lowest for release in releases if release.redist == "cuda"]
    labels = [str(cuda)] if cuda else labels
    systems: set[System] = {
        "windows" if file.platforms[0].startswith("windows") else "linux"
        for file in program
        if file.platforms
    }
    known = sorted({parse_label(label) for label in labels if label is not None})
    if not known and (labels or any(file.binary.device_code for file in program)):
        yield _unknown("--driver is unknown: no CUDA release is known for the program")
    hint = command_line("explain", "driver", name)
    for support, _, words in refusals(name, known, systems or {"linux"}, policy):
        unknown = support == "unknown"
        yield _unknown(words) if unknown else make_finding("driver", words, hint=hint)


def unread_findings(
    required: AuditRequirements, program: Sequence[ProgramFile], skipped: Sequence[str]
) -> Iterator[AuditFinding]:
    """Yield a finding for each required property if a part of the program is unread."""
    unread = [file.display_path for file in program if file.is_unread]
    options = {
        "--require-gpu": required.gpus,
        "--max-glibc": required.max_glibc,
        "--cuda": required.cuda,
        "--driver": required.driver,
        "--no-bundled": required.no_bundled,
    }
    for option, value in options.items():
        if value and (skipped or unread):
            yield _unknown(f"{option} is unknown: {some_of([*skipped, *unread])} cannot be read")


def with_ignored(
    reports: Iterable[AuditReport], ignored: Sequence[IgnoredFinding]
) -> list[AuditReport]:
    """Mark ignored findings. Notes of the last report name the entries without a match."""
    found: list[AuditReport] = []
    unused = list(map(str, ignored))
    for report in reports:
        findings = list(report.findings)
        for number, finding in enumerate(findings):
            for one in ignored:
                if finding.kind == one.kind and one.contains in finding.message:
                    update = {"ignored": one.reason, "exit_code": EXIT_OK}
                    findings[number] = finding.model_copy(update=update)
                    unused = [text for text in unused if text != str(one)]
        found.append(report.with_findings(findings) if ignored else report)
    notes = (f"no finding matches the audit.ignore entry `{text}`" for text in unused)
    found[-1] = found[-1].model_copy(update={"notes": (*found[-1].notes, *notes)})
    return found


def gpu_findings(
    gpus: Sequence[str], coverage: Mapping[str, Coverage] | None
) -> Iterator[AuditFinding]:
    """Yield a finding for each GPU that does not run the program."""
    for name in gpus:
        part = None if coverage is None else coverage.get(name)
        if part is None:
            yield _unknown(f"GPUs of capability {name} are unknown")
        elif part.value not in {*_RUNS, "unknown"}:
            words = {
                "host-only": "it has no device code",
                "lto": "its device code must be linked first",
                "none": "none of its device code does",
                "partial": f"{part.files} of {part.all_files} files do",
            }.get(part.value, part.value)
            yield make_finding("gpu", f"GPUs of capability {name} do not run it: {words}")


def _glibc_findings(limit: str, glibc: Floor) -> Iterator[AuditFinding]:
    if glibc.version is not None and Version.parse(glibc.version) > Version.parse(limit):
        words = f"needs glibc {glibc.version}, not {limit}: {some_of(glibc.by)}"
        yield make_finding("glibc", words, path=glibc.by[0])


def _cuda_findings(
    release: RequiredRelease, label: Version, channel: str
) -> Iterator[AuditFinding]:
    if str(label) in release.unknown:
        hint = command_line("update-symbols", channel=channel, redist="cuda", version=label)
        yield _unknown(f"the symbols of CUDA {label} are unknown", hint)
    elif absent := release.absent(label):
        yield make_finding("cuda", f"CUDA {label} does not have {', '.join(absent)}")
    elif str(label) in release.lacking:
        symbols = ", ".join(release.lacking[str(label)])
        yield make_finding("cuda", f"CUDA {label} does not export {symbols}")


def some_of(names: Sequence[str]) -> str:
    """Return the first names, and the number of others."""
    return ", ".join(shortened(names, _FILES_SHOWN))


def _unknown(message: str, hint: str | None = None) -> AuditFinding:
    return make_finding("unknown", message, hint=hint, exit_code=EXIT_INCOMPLETE)


def make_finding(
    kind: AuditFindingKind, message: str, exit_code: int = EXIT_FINDINGS, **more: str | None
) -> AuditFinding:
    """Return a finding with a path and hint, if there are any."""
    return AuditFinding(kind=kind, message=message, exit_code=exit_code, **more)
