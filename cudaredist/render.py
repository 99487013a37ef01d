"""Reports as text, Markdown and GitHub's workflow commands: a report in, lines out, no terminal."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cudaredist.errors import EXIT_FINDINGS, EXIT_OK
from cudaredist.reports import (
    ArchiveOutcome,
    BuildReport,
    CheckReport,
    DownloadReport,
    ErrorReport,
    ExplainReport,
    ExportReport,
    FeatureOutcome,
    Finding,
    LineReport,
    PeekedArchive,
    PeekReport,
    ProcessReport,
    SetSummary,
    TableReport,
    ToolkitReport,
    ValidateReport,
)
from cudaredist.schema import FileKind, OwnModel

_ANNOTATIONS_SHOWN = 9
"""GitHub shows ten of one level in a step; the last one counts the others."""

_FAILURES_SHOWN = 3
"""Failures for one reason that are shown one by one."""

_FOREIGN_SHOWN = 20
_EXIT_MEANINGS = {
    0: "nothing to report",
    1: "findings",
    3: "upstream unreachable, or the result is incomplete",
    4: "integrity: bytes are not what was recorded",
    5: "content not understood",
}


def report_json(report: OwnModel) -> str:
    """Return a report as one JSON document, `schema_version` first."""
    return json.dumps(report.model_dump(mode="json"), indent=2) + "\n"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lay out rows of cells so that columns line up; nothing is ever cut."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def download_text(report: DownloadReport) -> Iterator[str]:
    """Say what became of each manifest, and of redistributables that have none."""
    rows = [
        (o.redist, o.label, o.status.replace("-", " "), f"{o.size:,} bytes" if o.size else "")
        for o in report.manifests
    ]
    if rows:
        yield from columns(rows)
    absent = [outcome.redist for outcome in report.redists if outcome.status == "absent"]
    if absent:
        yield f"not at this source: {', '.join(absent)}"
    for outcome in report.redists:
        for label in outcome.gone:
            yield f"{outcome.redist} {label}: upstream no longer lists it"
    if report.is_lock_changed and all(o.status == "unchanged" for o in report.manifests):
        yield "only the lock's records change"
    counts: dict[str, int] = {}
    for status in [o.status for o in report.manifests] + [
        o.status for o in report.redists if o.status == "failed"
    ]:
        counts[status] = counts.get(status, 0) + 1
    answered = [o.source for o in report.manifests] + [o.source for o in report.redists]
    sources = sorted({source for source in answered if source})
    total = ", ".join(f"{n} {status.replace('-', ' ')}" for status, n in counts.items())
    yield f"{total or 'nothing to do'}" + (f"; from {', '.join(sources)}" if sources else "")


def download_errors(report: DownloadReport) -> Iterator[tuple[str, ErrorReport]]:
    """Return what failed and why; items that failed for one reason are named together."""
    groups: dict[tuple[str, str | None, tuple[str, ...]], list[tuple[str, ErrorReport]]] = {}
    for what, error in [
        *((o.redist, o.error) for o in report.redists if o.status == "failed"),
        *((f"{o.redist} {o.label}", o.error) for o in report.manifests),
    ]:
        if error is not None:
            groups.setdefault((error.reason, error.hint, error.changes), []).append((what, error))
    for items in groups.values():
        error = items[0][1]
        where = error.message.removesuffix(f": {error.reason}")
        if len(items) > 1 and where != error.message:
            said = f"{error.reason}; the first at {where}"
            error = error.model_copy(update={"message": said})
        yield ", ".join(what for what, _ in items), error
    yield from (("lock", error) for error in report.errors)


def process_text(report: ProcessReport) -> Iterator[str]:
    """Lay out the result of process-manifests: a line per manifest, then what there was."""
    yield from columns(
        [
            (
                outcome.redist,
                outcome.label,
                outcome.status.replace("-", " "),
                f"{outcome.examined} of {outcome.archives} archives examined",
                ", ".join(
                    f"{count} {word}"
                    for count, word in ((outcome.failed, "failed"), (outcome.skipped, "left out"))
                    if count
                ),
            )
            for outcome in report.manifests
        ]
    )
    counts = Counter(archive.status for archive in report.archives)
    total = ", ".join(
        f"{counts[status]} {status.replace('-', ' ')}"
        for status in ("examined", "known", "would-examine", "failed", "skipped")
        if counts[status]
    )
    yield f"archives: {total or 'none'}; {report.fetched_bytes:,} bytes read"
    reasons = Counter(archive.reason for archive in report.archives if archive.reason is not None)
    if reasons:
        yield "left out: " + ", ".join(f"{reasons[text]} {text}" for text in sorted(reasons))


def peek_text(report: PeekReport) -> Iterator[str]:
    """Lay out the result of --peek: a line per zip archive."""
    yield from columns(
        [
            (
                archive.redist,
                archive.label,
                archive.package,
                " ".join(filter(None, (archive.platform, archive.variant))),
                "not known" if archive.outputs is None else " ".join(archive.outputs),
                f"{archive.fetched:,} of {archive.size or 0:,} bytes",
            )
            for archive in report.archives
        ]
    )
    yield f"unverified; {report.left_out} archives are no zip and were left out"


def process_errors(
    outcomes: Iterable[FeatureOutcome | ArchiveOutcome | PeekedArchive],
) -> Iterator[tuple[str, ErrorReport]]:
    """Yield what failed and what it is about; many failures for one reason as one."""
    groups: dict[str, list[tuple[str, ErrorReport]]] = {}
    for outcome in outcomes:
        error = outcome.error
        if error is None:
            continue
        what = [outcome.redist, outcome.label]
        if not isinstance(outcome, FeatureOutcome):
            what += [outcome.package, outcome.platform, outcome.variant or ""]
        groups.setdefault(error.reason, []).append((" ".join(filter(None, what)), error))
    for reason, group in groups.items():
        if len(group) <= _FAILURES_SHOWN:
            yield from group
            continue
        first, error = group[0]
        about = f"{first} and {len(group) - 1} more"
        yield about, error.model_copy(update={"message": reason})


def check_text(report: CheckReport) -> Iterator[str]:
    """Lay out the release lines as a table, then the findings, then the verdict."""
    rows = list(_line_rows(report.lines))
    if len(rows) > 1:
        yield from columns(rows)
    hidden = sum(line.status == "not-held" for line in report.lines)
    if hidden:
        yield f"({hidden} older release lines that are not held are in --json)"
    for group in _grouped(report.findings):
        yield ""
        yield f"{_level(group[0])}: {_subject(group)}: {group[0].message}"
        yield from (f"    {detail}" for detail in group[0].details)
        if group[0].hint:
            yield f"    hint: {group[0].hint}"
    yield ""
    yield _verdict(report)


def check_markdown(report: CheckReport) -> Iterator[str]:
    """Lay out the same for a pull request or a step summary."""
    yield f"## cudaredist check: {_EXIT_MEANINGS[report.exit_code]}"
    yield ""
    rows = list(_line_rows(report.lines))
    if len(rows) > 1:
        head, *rest = rows
        yield _markdown_row(head)
        yield _markdown_row(["---"] * len(head))
        yield from map(_markdown_row, rest)
        yield ""
    for group in _grouped(report.findings):
        about, message = escape_markdown(_subject(group)), escape_markdown(group[0].message)
        yield f"- **{_level(group[0])}** {about}: {message}"
        yield from (f"  - {escape_markdown(detail)}" for detail in group[0].details)
        if group[0].hint:
            yield f"  - hint: {escape_markdown(group[0].hint)}"
    if report.findings:
        yield ""
    yield _verdict(report)


def check_annotations(report: CheckReport, data_dir: str) -> Iterator[str]:
    """Return GitHub's workflow commands, at most ten of a level, the rest counted."""
    shown: dict[str, int] = {}
    for group in _grouped(report.findings):
        command = {EXIT_OK: "notice", EXIT_FINDINGS: "warning"}.get(group[0].exit_code, "error")
        shown[command] = shown.get(command, 0) + 1
        if shown[command] > _ANNOTATIONS_SHOWN:
            continue
        properties = {"title": _subject(group)}
        if group[0].path:
            properties["file"] = f"{data_dir}/{group[0].path}"
        text = "\n".join([group[0].message, *group[0].details])
        listed = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
        yield f"::{command} {listed}::{escape_data(text)}"
    for command, count in shown.items():
        if count > _ANNOTATIONS_SHOWN:
            yield f"::{command} title=cudaredist::and {count - _ANNOTATIONS_SHOWN} more"


def check_outputs(report: CheckReport) -> Iterator[str]:
    """Return `name=value` lines for `$GITHUB_OUTPUT`: what later steps branch on."""
    kinds = {finding.kind for finding in report.findings}
    newer = [f"{line.redist} {line.missing[-1]}" for line in report.lines if line.is_behind]
    yield f"exit_code={report.exit_code}"
    yield f"stale={_flag('stale' in kinds)}"
    yield f"unreachable={_flag('unreachable' in kinds)}"
    yield f"findings={_flag(any(f.exit_code and f.kind != 'unreachable' for f in report.findings))}"
    yield f"integrity={_flag(bool(kinds & {'changed-upstream', 'edited-locally'}))}"
    yield f"newer={json.dumps(newer)}"


def validate_text(report: ValidateReport) -> Iterator[str]:
    """Say of each file whether it is valid, with every problem and warning found."""
    for verdict in report.files:
        yield f"{verdict.file}: {verdict.summary}"
        yield from (f"    {problem}" for problem in verdict.problems)
        yield from (f"    warning: {warning}" for warning in verdict.warnings)
        yield from (f"    not checked: {names}" for names in verdict.unchecked)


def kinds_text(kinds: Iterable[FileKind]) -> Iterator[str]:
    """List the kinds of data files with what each holds."""
    yield from columns([(kind.name, _summary(kind)) for kind in kinds])


def kinds_json(kinds: Iterable[FileKind]) -> str:
    """Return the same as one JSON document."""
    listed = [{"name": kind.name, "summary": _summary(kind)} for kind in kinds]
    return json.dumps({"schema_version": 1, "schemas": listed}, indent=2) + "\n"


def table_text(report: TableReport) -> Iterator[str]:
    """Show what changes in a table, then what became of each release."""
    yield from report.diff
    yield from columns(
        [
            (
                outcome.label,
                outcome.status.replace("-", " "),
                outcome.package or "",
                (outcome.archive_sha256 or "")[:12],
            )
            for outcome in report.releases
        ]
    )
    count = report.archives_read
    yield (
        f"{report.table}: {report.status.replace('-', ' ')}; {count} "
        f"archive{'' if count == 1 else 's'} read, {report.fetched_bytes:,} bytes"
    )


def explain_text(report: ExplainReport) -> Iterator[str]:
    """Say what is known of each thing, a fact a line, and below it its source and the others'."""
    for number, topic in enumerate(report.topics):
        if number:
            yield ""
        yield topic.title
        for fact in topic.facts:
            yield f"  {fact.statement}"
            because = f"; {fact.reason}" if fact.reason else ""
            yield f"      {fact.basis}: {fact.source}{because}"
            for claim in fact.otherwise:
                reason = f" ({claim.reason})" if claim.reason else ""
                value = "none" if claim.value is None else claim.value
                shown = ", ".join(value) if isinstance(value, tuple) else value
                yield f"      otherwise: {shown}{reason}: {claim.source}"


def _summary(kind: FileKind) -> str:
    return (kind.model.__doc__ or "").splitlines()[0]


def _line_rows(lines: Iterable[LineReport]) -> Iterator[tuple[str, ...]]:
    yield ("redist", "line", "held", "upstream", "state", "missing")
    for line in lines:
        if line.status != "not-held":
            missing = ", ".join(line.missing)
            upstream = "not asked" if line.status == "unknown" else line.upstream or "-"
            yield (line.redist, line.line, line.held or "-", upstream, line.status, missing)


def _grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Put findings together that say the same of several labels, in their order."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.kind, finding.message, finding.hint, finding.details)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _subject(group: Sequence[Finding]) -> str:
    """Name what a group of findings is about: `cuda 12.9.1, 13.0.2; cudnn 9.14.0`."""
    labels: dict[str, list[str]] = {}
    for finding in group:
        about = finding.path or finding.redist or "data"
        if finding.label:
            labels.setdefault(finding.redist or about, []).append(finding.label)
        else:
            labels.setdefault(about, [])
    return "; ".join(f"{name} {', '.join(listed)}".rstrip() for name, listed in labels.items())


def _level(finding: Finding) -> str:
    if finding.exit_code == EXIT_OK:
        return "note"
    return f"{finding.kind}" if finding.exit_code == EXIT_FINDINGS else f"error ({finding.kind})"


def _verdict(report: CheckReport) -> str:
    notes = sum(finding.exit_code == EXIT_OK for finding in report.findings)
    count = len(report.findings) - notes
    asked = " (offline: upstream was not asked)" if report.offline else ""
    return (
        f"{count} finding{'' if count == 1 else 's'}, {notes} note{'' if notes == 1 else 's'}: "
        f"exit {report.exit_code}, {_EXIT_MEANINGS[report.exit_code]}{asked}"
    )


def _flag(value: bool) -> str:  # noqa: FBT001 - one value in, its word out
    return "true" if value else "false"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, cells))} |"


def escape_markdown(text: str) -> str:
    """Return text as Markdown that shows it as it is."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|" else c for c in text)


def escape_data(text: str) -> str:
    """Return text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Return text as the property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def build_text(report: BuildReport) -> Iterator[str]:
    """Yield a line for each package set, and what a maintainer should know of it below."""
    for outcome in report.sets:
        name = f"cuda {outcome.cuda:<8} {outcome.platform:<14} {outcome.status:<11}"
        if outcome.error is not None:
            yield f"{name} {outcome.error.message}"
            if outcome.error.hint:
                yield f"    hint: {outcome.error.hint}"
            continue
        counts = ", ".join(f"{count} {status}" for status, count in outcome.counts.items() if count)
        yield f"{name} {counts}"
        for entry in outcome.diagnostics:
            if entry.level != "note":
                yield f"    {entry.level}: {entry.subject}: {entry.text}"
    counted = Counter(outcome.status for outcome in report.sets)
    total = ", ".join(f"{count} {status}" for status, count in sorted(counted.items()))
    index = f"; {report.index} index.json" if report.index == "would-write" else ""
    yield f"package sets: {total or 'none'}{index}; in {report.output}"


def export_text(report: ExportReport) -> Iterator[str]:
    """Yield a line for each file of an export."""
    yield from columns([(file.path, file.status, f"{file.bytes:,} bytes") for file in report.files])


def toolkit_text(report: ToolkitReport) -> Iterator[str]:
    """Yield what became of a toolkit root, and what is wrong with it."""
    yield from report.problems
    if report.status != "written":
        for path in report.foreign[:_FOREIGN_SHOWN]:
            yield f"not ours: {path}"
        more = len(report.foreign) - _FOREIGN_SHOWN
        if more > 0:
            yield f"not ours: and {more} more"
    about = "what an interrupted run left"
    if report.cuda is not None:
        about = (
            f"CUDA {report.cuda} for {report.platform}, {len(report.packages)} packages, "
            f"{report.files:,} files, {report.bytes:,} bytes"
        )
    yield f"{report.root}: {report.status}; {about}"
    if report.fetched_bytes:
        yield f"{report.fetched_bytes:,} bytes fetched"


def set_text(summary: SetSummary) -> Iterator[str]:
    """Yield what a package set holds, with sizes by output, and what it lacks and why."""
    counts = ", ".join(f"{count} {status}" for status, count in summary.counts.items() if count)
    yield (
        f"{summary.attribute}: CUDA {summary.cuda} for {summary.platform} "
        f"({summary.channel} channel), {counts}"
    )
    yield f"capabilities: {' '.join(summary.capabilities)}"
    gcc, clang = summary.host_compiler.gcc, summary.host_compiler.clang
    ranges = [
        f"{name} {'any' if accepted.min is None else accepted.min} to "
        f"{'any' if accepted.max is None else accepted.max}"
        for name, accepted in (("GCC", gcc), ("Clang", clang))
        if accepted is not None
    ]
    chosen = f"; GCC {gcc.selected} is taken" if gcc is not None and gcc.selected else ""
    yield f"host compiler: {', '.join(ranges)}{chosen}"
    yield ""
    rows = [("package", "version", "outputs, MB unpacked")]
    for package in summary.packages:
        sizes = [f"{name} {_megabytes(size)}" for name, size in package.bytes.items()]
        rows.append((package.name, package.version, ", ".join(sizes or package.outputs)))
    yield from _columns(rows)
    if summary.totals:
        yield ""
        yield from _columns(
            [
                ("output", "files", "MB"),
                *((t.output, f"{t.files:,}", _megabytes(t.bytes)) for t in summary.totals),
            ]
        )
    if summary.library_bytes:
        share = 100 * summary.library_lib_bytes / summary.library_bytes
        yield (
            f"splitting: what runs needs {_megabytes(summary.library_lib_bytes)} MB (lib) of the "
            f"libraries' {_megabytes(summary.library_bytes)} MB, {share:.0f} %"
        )
    yield ""
    rows = [("lacks", "status", "why")]
    yield from _columns([*rows, *((m.name, m.status, m.reason) for m in summary.missing)])


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]])
