"""The report of audit as text, as Markdown, and as annotations of GitHub."""

from collections.abc import Iterable, Iterator, Sequence

from cudaredist.errors import EXIT_INCOMPLETE, EXIT_OK
from cudaredist.render.common import annotations, columns, escape_markdown, markdown_table
from cudaredist.reports.audit_reports import (
    AuditedLibrary,
    AuditedRelease,
    AuditReport,
    PipRequirement,
)
from cudaredist.tables.gpus.coverage import describe_share

_SHOWN = 2
_COVERAGE_ORDER = ("native", "ptx", "lto", "partial", "none")
_LEVELS = {EXIT_OK: "warning", EXIT_INCOMPLETE: "unknown"}
_HEADS = {
    "needed": "CUDA libraries that it needs:",
    "opened": "CUDA libraries that it may open (a guess, by names in its data):",
    "bundled": "Copies of NVIDIA's libraries that no file names:",
}


def audit_text(report: AuditReport) -> Iterator[str]:
    """Yield the answers, then the findings."""
    for one in report.inputs:
        yield f"{one.path}: {one.binaries:,} binaries in {one.files:,} files"
    for kind, head in _HEADS.items():
        rows = list(_library_rows(report.libraries, kind))
        if rows:
            yield ""
            yield head
            yield from (f"  {line}" for line in columns(rows))
    unknown = [one.soname for one in report.libraries if one.status == "unknown"]
    yield ""
    if not any(one.cuda for one in report.libraries):
        yield "It needs no CUDA library."
    yield from _facts(report)
    if unknown:
        yield f"Other libraries, not in it and unknown: {', '.join(unknown)}"
    lines = list(requirement_lines(report.requirements))
    if lines:
        yield ""
        yield "Wheels that provide them (requirements of pip):"
        yield from (f"  {line}" for line in lines)
    yield from _remarks(report)


def audit_markdown(report: AuditReport) -> Iterator[str]:
    """Yield the same for a pull request or a step summary."""
    names = ", ".join(escape_markdown(one.path) for one in report.inputs)
    yield f"## cudaredist audit: {names}"
    for kind, head in _HEADS.items():
        rows = list(_library_rows(report.libraries, kind))
        if rows:
            yield ""
            yield escape_markdown(head)
            yield ""
            yield from markdown_table([("library", "status", "provider", "needed by"), *rows])
    yield ""
    yield from (f"- {escape_markdown(line)}" for line in _facts(report))
    lines = list(requirement_lines(report.requirements))
    if lines:
        yield ""
        yield "```text"
        yield from lines
        yield "```"
    for line in _remarks(report):
        yield f"- {escape_markdown(line)}" if line else ""


def audit_annotations(report: AuditReport) -> Iterator[str]:
    """Return GitHub's workflow commands, one for each finding, on the audited file."""
    file = report.inputs[0].path if len(report.inputs) == 1 else ""

    def findings() -> Iterator[tuple[str, dict[str, str], str]]:
        for one in report.findings:
            level = "error" if one.exit_code else "warning"
            properties = {"file": file or _input_of(one.path, report), "title": one.kind}
            yield level, {key: text for key, text in properties.items() if text}, one.message
        for error in report.errors:
            yield "error", {"title": error.kind}, error.message

    return annotations(findings())


def requirement_lines(requirements: Iterable[PipRequirement]) -> Iterator[str]:
    """Yield lines for pip, with uncertain ones as comments."""
    several = len({one.cuda_major for one in requirements} - {None}) > 1
    major = None
    for one in requirements:
        if several and one.cuda_major != major:
            major = one.cuda_major
            yield f"# CUDA {major}:"
        sonames = ", ".join(one.sonames)
        if one.project is None:
            yield f"# {' or '.join(one.alternatives)}, by the CUDA major: {sonames}"
        elif one.is_guess:
            yield f"# {one.project}{one.specifier}  # may open {sonames}"
        else:
            more = "" if one.is_lowest_known else "; lowest version unknown"
            yield f"{one.project}{one.specifier}  # {sonames}{more}"


def package_lines(report: AuditReport) -> Iterator[str]:
    """Yield the arguments of materialize that select the needed packages."""
    yield from (f"--component {name}" for name in _packages(report))


def nix_lines(report: AuditReport) -> Iterator[str]:
    """Yield the attributes of nixpkgs with the needed packages."""
    majors = report.cuda_majors
    attribute = f"cudaPackages_{majors[0]}" if len(majors) == 1 else "cudaPackages"
    yield from (f"{attribute}.{name}" for name in _packages(report))


def _packages(report: AuditReport) -> list[str]:
    return sorted(
        {
            provider.package
            for one in report.libraries
            if one.kind == "needed" and one.status == "provided"
            for provider in one.providers
        }
    )


def _input_of(path: str | None, report: AuditReport) -> str:
    name = (path or "").partition("/")[0]
    paths = (one.path for one in report.inputs)
    return next((each for each in paths if each.rpartition("/")[2] == name), "")


def _library_rows(libraries: Iterable[AuditedLibrary], kind: str) -> Iterator[tuple[str, ...]]:
    for one in libraries:
        if one.cuda and one.kind == kind:
            by = one.by if one.status != "bundled" else one.bundled
            prefix = "is " if one.status == "bundled" else "by "
            yield one.soname, one.status, _provider(one), prefix + _short(by)


def _provider(library: AuditedLibrary) -> str:
    if library.owner is not None:
        return library.owner
    names = sorted({one.project or one.package for one in library.providers})
    return " or ".join(names) or "-"


def _facts(report: AuditReport) -> Iterator[str]:
    yield from map(_release_line, report.releases)
    if report.coverage is None:
        yield "GPUs: unknown; run `cudaredist update-gpus`"
    else:
        yield from _gpu_lines(report)
    runtime = report.runtime
    words = {"static": runtime.static, "shared": runtime.shared, "unknown": runtime.unknown}
    for word, files in words.items():
        if files:
            yield f"CUDA runtime, {word}: {_short(files)}"
    for title, floor in (("glibc", report.glibc), ("libstdc++ GLIBCXX", report.libstdcxx)):
        if floor.version is not None:
            yield f"{title}: {floor.version} or later, by {_short(floor.by)}"


def _release_line(release: AuditedRelease) -> str:
    name = release.redist
    if name != "cuda" and len(release.cuda_majors) == 1:
        name = f"{name} for CUDA {release.cuda_majors[0]}"
    span = f"{release.first} to {release.last}"
    if release.first is None:
        return f"{name}: no release has all of its libraries"
    if release.lowest is not None:
        reason = f", for {', '.join(release.decisive)}" if release.decisive else ""
        unknown = f"; symbols of {_short(release.unknown)} unknown" if release.unknown else ""
        return f"{name}: {release.lowest} or later{reason} (libraries: {span}{unknown})"
    if release.unknown:
        command = f"cudaredist update-symbols --redist {release.redist}"
        return f"{name}: {span} by its libraries; symbols unknown, run `{command}`"
    return f"{name}: no release exports {', '.join(release.unresolved)}"


def _gpu_lines(report: AuditReport) -> Iterator[str]:
    coverage = report.coverage or {}
    values = {part.value for part in coverage.values()}
    if values <= {"host-only"}:
        yield "GPUs: it has no device code of its own"
        return
    for value in _COVERAGE_ORDER:
        names = [name for name, part in coverage.items() if part.value == value]
        if not names:
            continue
        if value == "partial":
            for name in names:
                yield f"GPUs, partial: {name} ({describe_share(coverage[name])})"
        else:
            yield f"GPUs, {value}: {' '.join(names)}"


def _remarks(report: AuditReport) -> Iterator[str]:
    if report.findings or report.notes:
        yield ""
    for one in report.findings:
        level = _LEVELS.get(one.exit_code, "finding")
        yield f"{level}: {one.kind}: {one.message}"
        if one.hint:
            yield f"    hint: run `{one.hint}`"
    yield from (f"note: {note}" for note in report.notes)
    if not report.findings and not report.errors:
        yield ""
        yield f"no findings, judged by {report.judged_by}"


def _short(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return shown if more <= 0 else f"{shown} and {more:,} more"
