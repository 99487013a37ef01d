"""The report of audit as text, as Markdown, and as annotations of GitHub."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cudaredist.errors import EXIT_INCOMPLETE, EXIT_OK, command_line
from cudaredist.render.common import (
    annotations,
    columns,
    escape_markdown,
    grouped,
    markdown_table,
)
from cudaredist.reports.audit_reports import (
    AuditedLibrary,
    AuditedRelease,
    AuditReport,
    PipRequirement,
)
from cudaredist.tables.gpus.coverage import describe_share

_SHOWN = 2
_GPU_WIDTH = 64
_COVERAGE = {
    "native": "natively",
    "ptx": "from PTX",
    "lto": "if linked first",
    "partial": "partly",
    "none": "not",
}
_LEVELS = {EXIT_OK: "warning", EXIT_INCOMPLETE: "unknown"}
_HEADS = {
    "needed": "CUDA libraries that it needs",
    "unlinked": "CUDA libraries that it uses without listing them as needed",
    "opened": "CUDA libraries that it may open (a guess, by names in its data)",
    "bundled": "Copies of NVIDIA's libraries that no file names",
}


class _Section(NamedTuple):
    title: str
    columns: tuple[str, ...]
    """The names of its columns."""
    rows: Sequence[tuple[str, ...]]


def audit_text(report: AuditReport) -> Iterator[str]:
    """Yield the wheels, the GPUs and the findings, then the details."""
    for one in report.inputs:
        binaries = _count(one.binaries, "binary", "binaries")
        yield f"{one.path}: {binaries} in {_count(one.files, 'file', 'files')}"
    yield from _section_lines(_answers(report))
    remarks = list(_remarks(report))
    if remarks:
        yield ""
    yield from remarks
    yield from _section_lines(_details(report))


def _section_lines(sections: Iterable[_Section]) -> Iterator[str]:
    for section in sections:
        yield ""
        yield f"{section.title}{':' if section.rows else '.'}"
        yield from (f"  {line}" for line in columns(section.rows))


def audit_markdown(report: AuditReport) -> Iterator[str]:
    """Yield the same for a pull request or a step summary."""
    names = ", ".join(escape_markdown(one.path) for one in report.inputs)
    yield f"## cudaredist audit: {names}"
    yield from _section_markdown(_answers(report))
    yield ""
    yield from (f"- {escape_markdown(line.strip())}" for line in _remarks(report) if line)
    yield from _section_markdown(_details(report))


def _section_markdown(sections: Iterable[_Section]) -> Iterator[str]:
    for section in sections:
        yield ""
        yield f"{escape_markdown(section.title)}{':' if section.rows else '.'}"
        if section.rows:
            yield ""
            yield from markdown_table([section.columns, *section.rows])


def _answers(report: AuditReport) -> Iterator[_Section]:
    """Yield the wheels or packages that the program needs, and the GPUs that run it."""
    if not any(one.binaries for one in report.inputs):
        if report.inputs:
            yield _Section("It contains no program or library", (), [])
        return
    yield from _wheels(report)
    if report.coverage is None:
        yield _Section("GPUs: unknown; run `cudaredist update-gpus`", (), [])
    elif {part.value for part in report.coverage.values()} == {"unknown"}:
        files = _short(report.unread)
        yield _Section(f"Its device code is unknown: {files} cannot be read", (), [])
    elif {part.value for part in report.coverage.values()} <= {"host-only"}:
        yield _Section("It has no device code of its own", (), [])
    else:
        title = "Its device code runs on GPUs of compute capability"
        yield _Section(title, ("code", "GPUs"), list(_gpu_rows(report)))


def _wheels(report: AuditReport) -> Iterator[_Section]:
    needed = [one for one in report.requirements if not one.is_guess]
    several = len({one.cuda_major for one in needed}) > 1
    for major, group in grouped((one.cuda_major, one) for one in needed).items():
        part = f" with CUDA {major}" if several and major is not None else ""
        rows = [(_requirement(one), _short(one.sonames) + _lower_bound(one)) for one in group]
        yield _Section(f"Wheels of NVIDIA that it needs{part}", ("wheel", "provides"), rows)
    if needed:
        return
    names = _packages(report)
    if report.unread:
        files = _short(report.unread)
        yield _Section(f"Its needed libraries are unknown: {files} cannot be read", (), [])
    elif names:
        yield _Section("Packages of NVIDIA that it needs", ("package",), [(n,) for n in names])
    elif any(one.cuda and one.kind == "needed" for one in report.libraries):
        yield _Section("It needs no wheel of NVIDIA", (), [])
    elif report.device_code:
        title = "No file needs a CUDA library, but the program may load some when it runs"
        yield _Section(title, (), [])
    else:
        yield _Section("It needs no CUDA library", (), [])


def _details(report: AuditReport) -> Iterator[_Section]:
    for kind, title in _HEADS.items():
        rows = list(_library_rows(report.libraries, kind))
        if rows:
            yield _Section(title, ("library", "status", "files"), rows)
    releases = [_release_row(one, report.channel) for one in report.releases]
    rows = [*releases, *_system_rows(report)]
    if rows:
        yield _Section("Versions that it needs", ("name", "versions", "reason"), rows)
    unknown = [
        (one.soname, _short(one.by, 1)) for one in report.libraries if one.status == "unknown"
    ]
    if unknown:
        yield _Section("Other libraries that it needs", ("library", "files"), unknown)


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


def requirement_lines(report: AuditReport) -> Iterator[str]:
    """Yield lines for pip, with uncertain ones as comments."""
    if report.unread:
        yield f"# Unknown: {_short(report.unread)} cannot be read"
    elif not report.requirements:
        yield "# No file needs a wheel of NVIDIA"
    several = len({one.cuda_major for one in report.requirements} - {None}) > 1
    major = None
    for one in report.requirements:
        if several and one.cuda_major != major:
            major = one.cuda_major
            yield f"# CUDA {major}:"
        sonames = ", ".join(one.sonames)
        if one.project is None:
            yield f"# {_requirement(one)}, by the CUDA major: {sonames}"
        elif one.is_guess:
            yield f"# {_requirement(one)}  # may open {sonames}"
        else:
            yield f"{_requirement(one)}  # {sonames}{_lower_bound(one)}"


def _requirement(one: PipRequirement) -> str:
    if one.project is None:
        return " or ".join(one.alternatives)
    return f"{one.project}{one.specifier}"


def _lower_bound(one: PipRequirement) -> str:
    words = {"symbols": "", "unknown": "; lowest version unknown"}
    return words.get(one.lower_bound, "; no known version has all symbols")


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
            if one.kind in {"needed", "unlinked"} and one.status == "provided"
            for provider in one.providers
        }
    )


def _input_of(path: str | None, report: AuditReport) -> str:
    name = (path or "").partition("/")[0]
    paths = (one.path for one in report.inputs)
    return next((each for each in paths if each.rpartition("/")[2] == name), "")


def _library_rows(libraries: Iterable[AuditedLibrary], kind: str) -> Iterator[tuple[str, str, str]]:
    for one in libraries:
        if one.cuda and one.kind == kind:
            files = f"in {_short(one.bundled, 1)}" if kind == "bundled" else _short(one.by, 1)
            yield one.soname, _status(one), files


def _status(library: AuditedLibrary) -> str:
    if library.owner is not None:
        return f"by the {library.owner}"
    names = sorted({one.project or one.package for one in library.providers})
    return f"by {' or '.join(names)}" if names else library.status


def _release_row(release: AuditedRelease, channel: str) -> tuple[str, str, str]:
    name = release.redist
    if name != "cuda" and len(release.cuda_majors) == 1:
        name = f"{name} for CUDA {release.cuda_majors[0]}"
    if release.first is None:
        return name, "none", "no release has all of its libraries"
    if release.lowest is not None:
        unknown = f"; symbols of {_short(release.unknown)} unknown" if release.unknown else ""
        reason = _short(release.decisive) if release.decisive else "all of its libraries"
        reason = f"{release.lowest} is the first with {reason}{unknown}"
        return name, _span(release.lowest, release.last), reason
    if release.unknown:
        command = command_line("update-symbols", channel=channel, redist=release.redist)
        return name, _span(release.first, release.last), f"symbols unknown; run `{command}`"
    return name, "none", f"no release exports {_short(release.unresolved) or 'all symbols'}"


def _span(first: str, last: str | None) -> str:
    return first if first == last else f"{first} to {last}"


def _system_rows(report: AuditReport) -> Iterator[tuple[str, str, str]]:
    for title, floor in (("glibc", report.glibc), ("libstdc++", report.libstdcxx)):
        if floor.version is not None:
            name = f"GLIBCXX_{floor.version}" if title == "libstdc++" else floor.version
            yield title, f"{name} or later", f"needed by {_short(floor.by, 1)}"
    runtime = report.runtime
    words = {"static": runtime.static, "shared": runtime.shared, "unknown": runtime.unknown}
    for word, files in words.items():
        if files:
            yield "CUDA runtime", word, f"in {_short(files, 1)}"


def _gpu_rows(report: AuditReport) -> Iterator[tuple[str, str]]:
    """Yield the GPUs by coverage, in lines that fit a terminal."""
    coverage = report.coverage or {}
    for value, words in _COVERAGE.items():
        parts = [(name, part) for name, part in coverage.items() if part.value == value]
        shares = (
            (describe_share(part) if value == "partial" else "", name) for name, part in parts
        )
        for share, names in grouped(shares).items():
            text = f"{' '.join(names)} ({share})" if share else " ".join(names)
            for number, line in enumerate(textwrap.wrap(text, _GPU_WIDTH)):
                yield "" if number else words, line


def _remarks(report: AuditReport) -> Iterator[str]:
    """Yield the findings and the next step."""
    for one in report.findings:
        names = dict.fromkeys((_LEVELS.get(one.exit_code, "finding"), one.kind))
        yield f"{': '.join(names)}: {one.message}"
        if one.hint:
            yield f"    hint: run `{one.hint}`"
    yield from (f"note: {note}" for note in report.notes)
    if not report.errors and not any(one.exit_code for one in report.findings):
        other = "other " if report.findings else ""
        yield f"No {other}findings. Compared with {report.judged_by}."
    if any(not one.is_guess for one in report.requirements):
        yield ""
        yield "Use --format requirements to print the wheels as requirements of pip."


def _count(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


def _short(names: Sequence[str], count: int = _SHOWN) -> str:
    more = len(names) - count
    shown = ", ".join(names[:count])
    return shown if more <= 0 else f"{shown} and {more:,} more"
