"""Findings of audit: what is wrong with a program, and required properties that it lacks."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from cudaredist.audit.cuda_majors import FileMajors
from cudaredist.audit.lowest_release import RequiredRelease
from cudaredist.audit.needs import LibraryNeed, is_bundled_copy
from cudaredist.audit.program import Catalog, ProgramFile, label_fits
from cudaredist.audit.run_paths import RunPathGap
from cudaredist.errors import EXIT_FINDINGS, EXIT_INCOMPLETE, EXIT_OK, command_line, shortened
from cudaredist.primitives import Version
from cudaredist.reports.audit_reports import AuditFinding, AuditFindingKind, Floor
from cudaredist.schema.packageset import Coverage

_FILES_SHOWN = 3
_RUNS = frozenset({"native", "ptx"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Properties that the program must have."""

    gpus: tuple[str, ...] = ()
    """Capabilities that run its device code."""
    max_glibc: str | None = None
    cuda: str | None = None
    """A CUDA release, or a release line such as `12.9`."""
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
            yield _finding(
                "missing-library",
                f"nothing provides {need.soname}, which {_files(need.by)} needs; known: {others}",
                path=need.by[0].shown,
            )
    for release in releases:
        if release.unresolved:
            names = ", ".join(release.unresolved)
            labels = release.labels
            subject = (
                f"{release.redist} {labels[0]} does not export"
                if len(labels) == 1
                else f"no release of {release.redist} exports"
            )
            yield _finding("missing-symbols", f"{subject} {names}")
        elif not release.labels and not mixed:
            names = ", ".join(release.sonames)
            yield _finding("mixed-cuda", f"no release of {release.redist} has all of {names}")
        elif release.labels and release.fits_none:
            newest = release.labels[-1]
            yield _finding(
                "missing-symbols",
                f"no release of {release.redist} exports all symbols: "
                f"{newest} lacks {', '.join(release.lacking[newest])}",
            )
    yield from _copy_findings(program, catalog)
    yield from _unlinked_findings(program)
    yield from _run_path_findings(gaps)


def _copy_findings(program: Sequence[ProgramFile], catalog: Catalog) -> Iterator[AuditFinding]:
    """Yield a warning for each of NVIDIA's libraries with copies in several folders.

    Wheels have copies in one folder in place of links.
    """
    copies: dict[str, dict[str, ProgramFile]] = defaultdict(dict)
    for file in program:
        if is_bundled_copy(file, catalog):
            folder = file.shown.rpartition("/")[0]
            copies[catalog.soname_of(file.name) or file.name].setdefault(folder, file)
    for soname, folders in sorted(copies.items()):
        if len(folders) > 1:
            files = list(folders.values())
            yield _finding(
                "duplicate-library",
                f"the program has {len(files)} copies of {soname}: {_files(files)}",
                path=files[0].shown,
                exit_code=EXIT_OK,
            )


def _unlinked_findings(program: Sequence[ProgramFile]) -> Iterator[AuditFinding]:
    """Yield a warning for each library that files use without listing it as needed."""
    users: dict[str, list[ProgramFile]] = defaultdict(list)
    for file in program:
        for soname in file.unlinked:
            users[soname].append(file)
    for soname, files in sorted(users.items()):
        names = sorted({name for file in files for name in file.unlinked[soname]})
        yield _finding(
            "unlinked-library",
            f"symbols of {soname} are used in {_files(files)}, but the library is not listed as "
            f"needed: {', '.join(shortened(names, _FILES_SHOWN))}",
            path=files[0].shown,
            exit_code=EXIT_OK,
        )


def _run_path_findings(gaps: Sequence[RunPathGap]) -> Iterator[AuditFinding]:
    """Yield a warning if no run path leads to CUDA libraries."""
    if not gaps:
        return
    files = ", ".join(shortened(list(dict.fromkeys(gap.file.shown for gap in gaps)), 1))
    sonames = ", ".join(shortened(list(dict.fromkeys(gap.need.soname for gap in gaps)), 2))
    hints = (
        f"patchelf --add-rpath '{gap.run_path}' {quote(gap.file.shown)}"
        for gap in gaps
        if gap.run_path is not None
    )
    yield _finding(
        "run-path",
        f"no run path leads to {sonames}, so other code must load them before {files}",
        path=gaps[0].file.shown,
        hint=next(hints, None),
        exit_code=EXIT_OK,
    )


def _major_findings(majors: Sequence[FileMajors]) -> Iterator[AuditFinding]:
    """Yield a finding for each file that is loaded with libraries of several CUDA majors."""
    for one in majors:
        if not one.common:
            parts = [f"{n} ({', '.join(shortened(names, 3))})" for n, names in one.single.items()]
            yield _finding(
                "mixed-cuda",
                f"{one.file.shown} uses libraries of several CUDA majors: {', '.join(parts)}",
                path=one.file.shown,
            )


def gate_findings(
    gates: Gates,
    coverage: Mapping[str, Coverage] | None,
    glibc: Floor,
    releases: Sequence[RequiredRelease],
    copies: Sequence[ProgramFile],
    labels: Sequence[Version],
    channel: str,
) -> Iterator[AuditFinding]:
    """Yield a finding for each required property that the program lacks.

    `labels` are the known releases of CUDA in the channel of the data.
    """
    yield from _gpu_findings(gates.gpus, coverage)
    if gates.max_glibc is not None:
        yield from _glibc_findings(gates.max_glibc, glibc)
    if gates.cuda is not None:
        chosen = [label for label in labels if label_fits(label, gates.cuda)]
        major = chosen[0].components[0]
        fitting = [one for one in releases if not one.majors or major in one.majors]
        if releases and not fitting:
            majors = sorted({major for one in releases for major in one.majors})
            yield _finding("cuda", f"it is for CUDA {' and '.join(map(str, majors))}, not {major}")
        for release in fitting:
            if release.redist == "cuda":
                yield from _cuda_findings(release, chosen, channel)
    if gates.no_bundled and copies:
        yield from (
            _finding("bundled", f"{file.shown} is a copy of a library of NVIDIA's", path=file.shown)
            for file in copies
        )


def _gpu_findings(
    gpus: Sequence[str], coverage: Mapping[str, Coverage] | None
) -> Iterator[AuditFinding]:
    for name in gpus:
        part = None if coverage is None else coverage.get(name)
        if part is None:
            yield _finding(
                "unknown", f"GPUs of capability {name} are unknown", exit_code=EXIT_INCOMPLETE
            )
        elif part.value == "unknown":
            yield _finding(
                "unknown",
                f"it is unknown if GPUs of capability {name} run it: a file cannot be read",
                exit_code=EXIT_INCOMPLETE,
            )
        elif part.value not in _RUNS:
            words = {
                "host-only": "it has no device code",
                "lto": "its device code must be linked first",
                "none": "none of its device code does",
                "partial": f"{part.files} of {part.all_files} files do",
            }.get(part.value, part.value)
            yield _finding("gpu", f"GPUs of capability {name} do not run it: {words}")


def _glibc_findings(limit: str, glibc: Floor) -> Iterator[AuditFinding]:
    if glibc.version is not None and Version.parse(glibc.version) > Version.parse(limit):
        files = ", ".join(shortened(glibc.by, _FILES_SHOWN))
        yield _finding(
            "glibc", f"needs glibc {glibc.version}, not {limit}: {files}", path=glibc.by[0]
        )
    elif glibc.unread:
        files = ", ".join(shortened(glibc.unread, _FILES_SHOWN))
        yield _finding(
            "unknown", f"the glibc that {files} needs is unknown", exit_code=EXIT_INCOMPLETE
        )


def _cuda_findings(
    release: RequiredRelease, chosen: Sequence[Version], channel: str
) -> Iterator[AuditFinding]:
    for label in chosen:
        if label in release.unknown:
            yield _finding(
                "unknown",
                f"the symbols of CUDA {label} are unknown",
                hint=command_line("update-symbols", channel=channel, redist="cuda", version=label),
                exit_code=EXIT_INCOMPLETE,
            )
        elif label not in release.labels:
            names = ", ".join(release.absent(label))
            yield _finding("cuda", f"CUDA {label} does not have {names}")
        elif label not in release.fitting:
            names = ", ".join(release.lacking[label])
            yield _finding("cuda", f"CUDA {label} does not export {names}")


def _files(files: Sequence[ProgramFile]) -> str:
    return ", ".join(shortened([file.shown for file in files], _FILES_SHOWN))


def _finding(
    kind: AuditFindingKind,
    message: str,
    *,
    path: str | None = None,
    hint: str | None = None,
    exit_code: int = EXIT_FINDINGS,
) -> AuditFinding:
    return AuditFinding(
        kind=kind,
        message=message,
        path=path,
        hint=hint,
        exit_code=exit_code,
    )
