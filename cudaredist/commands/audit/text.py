"""The report of audit as text, as Markdown, and as annotations of GitHub."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cudaredist.cli.text import (
    annotations,
    columns,
    escape_markdown,
    flag,
    markdown_table,
    megabytes,
)
from cudaredist.commands.audit.needed_lists import (
    mark,
    needed_packages,
    requirement_line,
    unnamed_wheels,
)
from cudaredist.commands.audit.supplied_text import (
    SUBSTITUTION_COLUMNS,
    substitution_rows,
    substitution_verdict,
)
from cudaredist.errors import EXIT_INCOMPLETE, EXIT_OK
from cudaredist.formats.coverage import Coverage
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.programs.report import (
    AuditedLibrary,
    AuditedRelease,
    AuditedSizes,
    AuditReport,
    AuditReports,
    DeclaredWheel,
    NeedKind,
)
from cudaredist.tables.gpus.coverage import describe_share
from cudaredist.words import plural, printable

if TYPE_CHECKING:
    from cudaredist.source_code.report import SourceReport

_SHOWN = 2
_LARGEST = 10
"""Files whose sizes are shown."""
_ARCHITECTURES = 3
"""Architectures whose sizes the verdict has."""
_GPU_WIDTH = 64
_COVERAGE = {
    "native": "natively",
    "ptx": "from PTX",
    "lto": "if linked first",
    "partial": "partly",
    "none": "not",
}
_COLUMNS = ("program", "CUDA", "GPUs", "glibc", "result")
_LIBRARY = ("library", "status", "files")
_LEVELS = {EXIT_OK: "warning", EXIT_INCOMPLETE: "unknown"}
_FOUND_BY = {
    "run-path": "run path",
    "library-path": "LD_LIBRARY_PATH",
    "system": "folders of the system",
    "damaged": "damaged",
    "other-code": "not by the loader",
    "driver": "driver",
    "none": "missing",
}
_HEADS: Mapping[NeedKind, str] = {
    "needed": "CUDA libraries that it needs",
    "unlinked": "CUDA libraries that it uses without listing them as needed",
    "opened": "CUDA libraries that it may open (a guess, by names in its data)",
    "bundled": "Copies of NVIDIA's libraries that no file names",
}


class _Section(NamedTuple):
    title: str
    columns: tuple[str, ...] = ()
    """The names of its columns."""
    rows: Sequence[tuple[str, ...]] = ()

    @property
    def heading(self) -> str:
        """The title as a line."""
        return f"{self.title}{':' if self.rows else '.'}"


def audit_text(report: AuditReport | AuditReports) -> Iterator[str]:
    """Yield the text of each program, and a table of all programs if there are several."""
    return _programs(report, _program_text, columns)


def audit_markdown(report: AuditReport | AuditReports) -> Iterator[str]:
    """Yield the report as Markdown, for a pull request or a step summary."""
    return _programs(report, _program_markdown, markdown_table)


def _programs(
    report: AuditReport | AuditReports,
    program_lines: Callable[[AuditReport], Iterator[str]],
    table: Callable[[Sequence[Sequence[str]]], Iterator[str]],
) -> Iterator[str]:
    if isinstance(report, AuditReport):
        yield from program_lines(report)
        return
    for program in report.programs:
        lines = list(program_lines(program))
        yield from [*lines, ""] if lines else ()
    yield from table([_COLUMNS, *map(_summary, report.programs)])


def _program_text(report: AuditReport) -> Iterator[str]:
    """Yield the GPUs, the verdict and the findings, the wheels, then the details."""
    yield from substitution_verdict(report)
    yield from _required_gpus(report)
    for part in report.inputs:
        binaries = plural(part.binaries, "binary", "binaries")
        yield f"{printable(part.path)}: {binaries} in {plural(part.files, 'file')}"
    answers = list(_error_answers(report))
    yield from ["", *answers, ""] if answers else ()
    yield from _verdict(report)
    yield from _findings(report)
    yield from _section_lines(_substitution(report))
    yield from _section_lines(_wheels_and_gpus(report))
    notes = list(_notes(report))
    yield from ["", *notes] if notes else ()
    yield from _section_lines(_details(report))


def _section_lines(sections: Iterable[_Section]) -> Iterator[str]:
    for section in sections:
        yield from ("", section.heading)
        yield from (f"  {line}" for line in columns(section.rows))


def _program_markdown(report: AuditReport) -> Iterator[str]:
    names = ", ".join(escape_markdown(part.path) for part in report.inputs)
    yield f"## cudaredist audit: {names}"
    answers = [f"- {escape_markdown(line.strip())}" for line in _error_answers(report)]
    yield from ["", *answers] if answers else ()
    yield ""
    verdicts = chain(substitution_verdict(report), _required_gpus(report))
    lines = chain(verdicts, _verdict(report), _findings(report))
    yield from (f"- {escape_markdown(line.strip())}" for line in lines)
    yield from _section_markdown(_substitution(report))
    yield from _section_markdown(_wheels_and_gpus(report))
    notes = [f"- {escape_markdown(line)}" for line in _notes(report)]
    yield from ["", *notes] if notes else ()
    yield from _section_markdown(_details(report))


def _section_markdown(sections: Iterable[_Section]) -> Iterator[str]:
    for section in sections:
        yield from ("", escape_markdown(section.heading))
        if section.rows:
            yield from ("", *markdown_table([section.columns, *section.rows]))


def _summary(report: AuditReport) -> tuple[str, ...]:
    """Return the row of a program in the table of all programs."""
    coverage = report.coverage or {}
    runs = [gpu for gpu, part in coverage.items() if part.value in {"native", "ptx"}]
    kinds = [f.kind for f in report.findings if f.exit_code] + [e.kind for e in report.errors]
    return (
        printable(_short(report.paths, 1)),
        " ".join(map(str, report.cuda_majors)) or "-",
        _gpu_range(runs, list(coverage)) or "-",
        report.glibc.version or "-",
        ", ".join(dict.fromkeys(kinds)) or "no findings",
    )


def _gpu_range(gpus: Sequence[str], known: Sequence[str]) -> str:
    """Shorten a complete range of GPUs to its ends."""
    if not gpus:
        return ""
    first, last = known.index(gpus[0]), known.index(gpus[-1])
    is_complete = len(gpus) == last - first + 1
    return f"{gpus[0]} to {gpus[-1]}" if is_complete else " ".join(gpus)


def _substitution(report: AuditReport) -> Iterator[_Section]:
    """Yield the table of the libraries that a package set supplies."""
    if report.substitution is not None and report.substitution.libraries:
        rows = list(substitution_rows(report.substitution))
        title = f"Libraries supplied by {report.substitution.supplied_by}"
        yield _Section(title, SUBSTITUTION_COLUMNS, rows)


def _wheels_and_gpus(report: AuditReport) -> Iterator[_Section]:
    """Yield the wheels or packages that the program needs, and the GPUs that run it."""
    if not any(part.binaries for part in report.inputs):
        if report.inputs:
            yield _Section("It contains no program or library")
        return
    yield from _wheels(report)
    values = {part.value for part in (report.coverage or {}).values()}
    if report.coverage is None:
        yield _Section(f"GPUs: unknown; run `{command_line('update-gpus')}`")
    elif values == {"unknown"}:
        yield _Section(f"Its device code is unknown: {_short(report.unread)} cannot be read")
    elif values <= {"host-only"}:
        yield _Section("It has no device code of its own")
    elif not report.alternatives:
        yield _gpu_section("Its device code", report.coverage)
    else:
        by_coverage = grouped(
            (tuple(each.coverage.items()), each.files) for each in report.alternatives
        )
        for coverage, parts in by_coverage.items():
            files = _short(list(chain.from_iterable(parts)))
            yield _gpu_section(f"Its device code with {files}", dict(coverage))


def _gpu_section(code: str, coverage: Mapping[str, Coverage]) -> _Section:
    title = f"{code} runs on GPUs of compute capability"
    return _Section(title, ("code", "GPUs"), list(_gpu_rows(coverage)))


def _wheels(report: AuditReport) -> Iterator[_Section]:
    """Yield the wheels that the program needs, or else the packages or the reason for none."""
    by_major = grouped((each.cuda_major, each) for each in report.requirements if not each.is_guess)
    unknown = [
        (" or ".join(library.projects), library.soname)
        for library in report.libraries
        if library.projects
    ]
    for major, wheels in by_major.items():
        part = f" with CUDA {major}" if len(by_major) > 1 and major is not None else ""
        rows = [(requirement_line(w), _short(w.sonames) + mark(w)) for w in wheels]
        yield _Section(f"Wheels of NVIDIA that it needs{part}", ("wheel", "provides"), rows)
    if unknown:
        title = "Wheels of NVIDIA that it needs, with unknown versions"
        yield _Section(title, ("wheel", "provides"), unknown)
    if unnamed := unnamed_wheels(report):
        rows = [(wheel.requirement, f"by {wheel.package}{_extra(wheel)}") for wheel in unnamed]
        title = "Wheels of NVIDIA that it declares, but that no file needs by name"
        yield _Section(title, ("wheel", "declared"), rows)
    opened = [
        (requirement_line(each), _short(each.sonames))
        for each in report.requirements
        if each.is_guess
    ]
    if opened and not by_major:
        title = "Wheels of NVIDIA with libraries that it may open"
        yield _Section(title, ("wheel", "provides"), opened)
    if by_major or unknown or unnamed or opened:
        return
    yield from _without_wheels(report)


def _without_wheels(report: AuditReport) -> Iterator[_Section]:
    """Yield the packages that a program without wheels needs, or the reason for none."""
    packages = [(name,) for name in needed_packages(report)]
    if report.unread:
        yield _Section(f"Its needed libraries are unknown: {_short(report.unread)} cannot be read")
    elif packages:
        yield _Section("Packages of NVIDIA that it needs", ("package",), packages)
    elif any(library.cuda and library.kind == "needed" for library in report.libraries):
        yield _Section("It needs no wheel of NVIDIA")
    elif any(library.cuda for part in report.environments for library in part.libraries):
        return
    elif report.device_code:
        yield _Section("No file needs a CUDA library, but the program may load some when it runs")
    else:
        yield _Section("It needs no CUDA library")


def _extra(wheel: DeclaredWheel) -> str:
    return ", in an extra" if wheel.is_optional else ""


def _environments(report: AuditReport) -> Iterator[_Section]:
    """Yield the file for each CUDA library that files of an environment need."""
    for part in report.environments:
        packages = plural(part.packages, "package")
        title = f"CUDA libraries of the {part.kind} {printable(part.path)} with {packages}"
        rows = [
            (
                library.soname,
                library.package or library.path or "-",
                library.rule or _FOUND_BY[library.found_by],
                _short(library.by, 1),
            )
            for library in part.libraries
            if library.cuda
        ]
        yield _Section(title, ("library", "file", "found by", "needed by"), rows)


def _details(report: AuditReport) -> Iterator[_Section]:
    """Yield the sections that have rows."""
    by_kind = grouped(
        (library.kind, _library_row(library)) for library in report.libraries if library.cuda
    )
    kinds = [kind for kind in _HEADS if kind != "needed" or not report.environments]
    versions = [
        *(_release_row(release, report.channel) for release in report.releases),
        *_system_rows(report),
    ]
    others = [
        (library.soname, _short(library.by, 1))
        for library in report.libraries
        if library.status == "unknown"
    ]
    sections = (
        *_environments(report),
        *(_Section(_HEADS[kind], _LIBRARY, by_kind.get(kind, [])) for kind in kinds),
        _Section("Versions that it needs", ("name", "versions", "reason"), versions),
        _Section("Other libraries that it needs", ("library", "files"), others),
        *_sizes(report),
    )
    yield from (section for section in sections if section.rows)


def _sizes(report: AuditReport) -> Iterator[_Section]:
    """Yield the largest files, and the bytes of device code by architecture."""
    sizes = report.sizes
    if sizes is None:
        return
    files = [(file.path, f"{file.size:,}", f"{file.code:,}") for file in sizes.files[:_LARGEST]]
    title = f"Bytes of its binaries: {sizes.size:,}, the largest"
    yield _Section(title, ("file", "bytes", "device code"), files)
    title = f"Bytes of device code by architecture: {sum(sizes.code.values()):,}"
    if sizes.unused is not None:
        title += f", of which GPUs of capability {' '.join(sizes.gpus)} do not use {sizes.unused:,}"
    if sizes.unknown:
        title += f"; unknown for {_short(sizes.unknown)}"
    rows = [(name, f"{size:,}") for name, size in sizes.code.items()]
    yield _Section(title, ("architecture", "bytes"), rows)


def audit_annotations(report: AuditReport | AuditReports) -> Iterator[str]:
    """Return GitHub's workflow commands, one for each finding, on the audited file."""
    return annotations(chain.from_iterable(map(_messages, report.programs)))


def audit_outputs(
    report: "AuditReport | AuditReports | SourceReport", path: Path | None
) -> Iterator[str]:
    """Yield `name=value` lines for `$GITHUB_OUTPUT`. `path` is that of the report."""
    codes = [finding.exit_code for program in report.programs for finding in program.findings]
    yield f"findings={flag(report.exit_code != EXIT_OK)}"
    yield f"count={sum(map(bool, codes))}"
    yield f"report={path or ''}"


def _messages(report: AuditReport) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield the level, properties and text of each finding and error."""
    file = report.inputs[0].path if len(report.inputs) == 1 else ""
    for finding in report.findings:
        level = "notice" if finding.ignored else "error" if finding.exit_code else "warning"
        properties = {"file": file or _input_of(finding.path, report), "title": finding.kind}
        yield level, {key: text for key, text in properties.items() if text}, finding.message
    for error in report.errors:
        yield "error", {"title": error.kind}, error.message


def _input_of(path: str | None, report: AuditReport) -> str:
    name = (path or "").partition("/")[0]
    paths = (part.path for part in report.inputs)
    return next((path for path in paths if path.rpartition("/")[2] == name), "")


def _library_row(library: AuditedLibrary) -> tuple[str, str, str]:
    status: str = library.status
    if library.owner is not None:
        status = f"by the {library.owner}"
    elif library.providers:
        names = sorted({provider.project or provider.package for provider in library.providers})
        status = f"by {' or '.join(names)}"
    if library.releases:
        names = list(dict.fromkeys(chain.from_iterable(library.releases.values())))
        own = f"{names[0]} to {names[-1]}" if len(names) > _SHOWN else " or ".join(names)
        status = f"{status}, {own or 'of an unknown release'}"
    is_copy = library.kind == "bundled"
    files = f"in {_short(library.bundled, 1)}" if is_copy else _short(library.by, 1)
    return library.soname, status, files


def _release_row(release: AuditedRelease, channel: str) -> tuple[str, str, str]:
    name = release.redist
    if name != "cuda" and len(release.cuda_majors) == 1:
        name = f"{name} for CUDA {release.cuda_majors[0]}"
    if release.first is None:
        return name, "none", "no release has all of its libraries"
    if release.lowest is not None:
        reason = "oldest in the data with all of its libraries"
        if release.decisive:
            reason = f"first with all symbols, including {_short(release.decisive)}"
        elif release.lowest != release.first:
            reason = "oldest in the data with known symbols"
        unknown = f"; symbols of {_short(release.unknown)} unknown" if release.unknown else ""
        patch = " or an earlier patch" if release.may_be_earlier else ""
        words = f"{release.lowest}{patch} is the {reason}{unknown}"
        return name, _span(release.lowest, release.last), words
    if release.unknown:
        command = command_line("update-symbols", channel=channel, redist=release.redist)
        return name, _span(release.first, release.last), f"symbols unknown; run `{command}`"
    return name, "none", f"no release exports {_short(release.unresolved) or 'all symbols'}"


def _span(first: str, last: str | None) -> str:
    return first if first == last else f"{first} to {last}"


def _system_rows(report: AuditReport) -> Iterator[tuple[str, str, str]]:
    floors = (("glibc", "", report.glibc), ("libstdc++", "GLIBCXX_", report.libstdcxx))
    for title, prefix, floor in floors:
        if floor.version is not None:
            yield title, f"{prefix}{floor.version} or later", f"needed by {_short(floor.by, 1)}"
    runtime = report.runtime
    shared = " ".join(["shared", *runtime.versions])
    linkings = {"static": runtime.static, shared: runtime.shared, "unknown": runtime.unknown}
    for linking, files in linkings.items():
        if files:
            yield "CUDA runtime", linking, f"in {_short(files, 1)}"


def _gpu_rows(coverage: Mapping[str, Coverage]) -> Iterator[tuple[str, str]]:
    """Yield the GPUs by coverage, in lines that fit a terminal."""
    for value, words in _COVERAGE.items():
        shares = grouped(
            (f" ({describe_share(part)})" if value == "partial" else "", name)
            for name, part in coverage.items()
            if part.value == value
        )
        for share, names in shares.items():
            first, *others = textwrap.wrap(f"{' '.join(names)}{share}", _GPU_WIDTH)
            yield words, first
            yield from (("", line) for line in others)


def _verdict(report: AuditReport) -> Iterator[str]:
    """Yield the number of findings, the command that mends them, and the sizes."""
    compared = f"Compared with {report.judged_by}"
    if report.required_cuda is not None:
        compared += f" and CUDA {report.required_cuda}"
    kinds = Counter(finding.kind for finding in report.findings if finding.exit_code)
    if kinds:
        names = ", ".join(f"{kind} {n}" if n > 1 else kind for kind, n in kinds.items())
        yield f"{plural(kinds.total(), 'finding')}: {names}. {compared}."
        if report.gpus:
            yield _exit_reason(report.exit_code, list(kinds))
    elif not report.errors:
        warnings = plural(len(report.findings), "warning")
        count = f"Only {warnings}" if report.findings else "No findings"
        *first, last = report.checked
        names = f"{', '.join(first)} and {last}"
        yield f"{count} about {names} of {printable(_short(report.paths, 1))}. {compared}."
    for part in report.environments:
        if part.fix is not None:
            where = f" of {printable(part.path)}" if len(report.environments) > 1 else ""
            yield f"all findings{where}: run `{part.fix}`"
    if report.sizes is not None and report.sizes.files:
        yield _size_summary(report.sizes)


def _required_gpus(report: AuditReport) -> Iterator[str]:
    """Yield the answer to each required GPU."""
    for gpu in report.gpus:
        mark = ":" if gpu.answer in {"no", "in part"} else ","
        yield f"{gpu.title}: {gpu.answer}{mark} {gpu.reason}"


def _exit_reason(code: int, kinds: Sequence[str]) -> str:
    """Return a sentence on the findings that the exit code comes from."""
    causes = [kind for kind in kinds if kind != "gpu"]
    if len(causes) == len(kinds):
        return f"The exit code {code} comes from {' and '.join(causes)}, not from the GPU."
    return f"The exit code {code} comes from {' and '.join(['the GPU', *causes])}."


def _size_summary(sizes: AuditedSizes) -> str:
    """Return the sizes of binaries and device code, the largest architectures and file."""
    text = f"{megabytes(sizes.size)} of binaries"
    if sizes.code:
        largest = sorted(sizes.code.items(), key=lambda item: -item[1])[:_ARCHITECTURES]
        names = ", ".join(f"{name} {megabytes(size)}" for name, size in largest)
        more = ", ..." if len(sizes.code) > _ARCHITECTURES else ""
        text += f", of which {megabytes(sum(sizes.code.values()))} device code ({names}{more})"
    if sizes.files:
        text += f"; the largest is {sizes.files[0].path}, {megabytes(sizes.files[0].size)}"
    return text


def _error_answers(report: AuditReport) -> Iterator[str]:
    """Yield the answers to the message of --error."""
    for answer in report.answers:
        yield f"answer: {answer.message}"
        if answer.hint:
            yield f"    hint: run `{answer.hint}`"


def _findings(report: AuditReport) -> Iterator[str]:
    """Yield the findings with their hints."""
    for finding in report.findings:
        level = "ignored" if finding.ignored else _LEVELS.get(finding.exit_code, "finding")
        title = level if level == finding.kind else f"{level}: {finding.kind}"
        yield f"{title}: {finding.message}"
        if finding.ignored:
            yield f"    reason: {printable(finding.ignored)}"
        elif finding.hint:
            yield f"    hint: run `{finding.hint}`"


def _notes(report: AuditReport) -> Iterator[str]:
    """Yield the notes and the next step."""
    yield from (f"note: {note}" for note in report.notes)
    if any(not wheel.is_guess for wheel in report.requirements):
        yield "Use --format requirements to print the wheels as requirements of pip."


def _short(names: Sequence[str], count: int = _SHOWN) -> str:
    more = len(names) - count
    shown = ", ".join(names[:count])
    return shown if more <= 0 else f"{shown} and {more:,} more"
