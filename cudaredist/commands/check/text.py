"""The report of check as text."""

import json
from collections.abc import Iterable, Iterator, Sequence

from cudaredist.cli.text import (
    annotations,
    columns,
    escape_markdown,
    flag,
    markdown_table,
    text_blocks,
)
from cudaredist.commands.check.report import CheckReport, Finding
from cudaredist.commands.versions.report import LineReport
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK
from cudaredist.grouping import grouped
from cudaredist.words import plural

_EXIT_MEANINGS = {
    0: "nothing to report",
    1: "findings",
    3: "upstream unreachable, or parts missing",
    4: "integrity: bytes differ from the record",
    5: "invalid content",
}


def check_text(report: CheckReport, *, has_all: bool = False) -> Iterator[str]:
    """Yield the verdict, the release lines that are not current, and the findings.

    With `has_all`, all release lines are listed.
    """
    yield _verdict(report)
    rows = list(_line_rows(report.lines, has_all=has_all))
    if len(rows) > 1:
        yield ""
        yield from columns(rows)
    shown = len(rows) - 1  # the first row has the titles
    hidden = len(report.lines) - shown
    if hidden:
        yield ""
        noun = plural(hidden, "release line")
        yield f"{noun} not shown, because they are current or unchecked: see them with --all"
    for group in _grouped(report.findings):
        yield ""
        yield f"{_level(group[0])}: {_subject(group)}: {group[0].message}"
        yield from (f"    {detail}" for detail in group[0].details)
        if group[0].hint:
            yield f"    hint: {group[0].hint}"


def check_markdown(report: CheckReport) -> Iterator[str]:
    """Return Markdown for a pull request or a step's summary."""
    rows = list(_line_rows(report.lines))
    return text_blocks(
        [f"## cudaredist check: {_EXIT_MEANINGS[report.exit_code]}"],
        markdown_table(rows) if len(rows) > 1 else (),
        _bullets(report),
        [_verdict(report)],
    )


def _bullets(report: CheckReport) -> Iterator[str]:
    for group in _grouped(report.findings):
        about, message = escape_markdown(_subject(group)), escape_markdown(group[0].message)
        yield f"- **{_level(group[0])}** {about}: {message}"
        yield from (f"  - {escape_markdown(detail)}" for detail in group[0].details)
        if group[0].hint:
            yield f"  - hint: {escape_markdown(group[0].hint)}"


def check_annotations(report: CheckReport, data_dir: str) -> Iterator[str]:
    """Return GitHub's workflow commands, at most ten per level."""

    def messages() -> Iterator[tuple[str, dict[str, str], str]]:
        for group in _grouped(report.findings):
            first = group[0]
            level = {EXIT_OK: "notice", EXIT_FINDINGS: "warning"}.get(first.exit_code, "error")
            properties = {"title": _subject(group)}
            if first.path:
                properties["file"] = f"{data_dir}/{first.path}"
            yield level, properties, "\n".join([first.message, *first.details])

    return annotations(messages())


def check_outputs(report: CheckReport) -> Iterator[str]:
    """Yield `name=value` lines for `$GITHUB_OUTPUT`, as conditions of later steps."""
    kinds = {finding.kind for finding in report.findings}
    newer = [f"{line.redist} {line.missing[-1]}" for line in report.lines if line.is_behind]
    yield f"exit_code={report.exit_code}"
    yield f"stale={flag('stale' in kinds)}"
    yield f"unreachable={flag('unreachable' in kinds)}"
    is_finding = any(one.exit_code and one.kind != "unreachable" for one in report.findings)
    yield f"findings={flag(is_finding)}"
    yield f"integrity={flag(bool(kinds & {'changed-upstream', 'edited-locally'}))}"
    yield f"newer={json.dumps(newer)}"


def _line_rows(lines: Iterable[LineReport], *, has_all: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield a row for each line that is not current, or for all."""
    yield ("redist", "line", "local", "upstream", "state", "missing")
    for line in lines:
        if has_all or line.is_behind:
            missing = ", ".join(line.missing)
            upstream = "not checked" if line.status == "unknown" else line.upstream or "-"
            yield (line.redist, line.line, line.held or "-", upstream, line.status, missing)


def _grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group equal findings of several labels, in their order."""
    groups = grouped(((one.kind, one.message, one.hint, one.details), one) for one in findings)
    return list(groups.values())


def _subject(group: Sequence[Finding]) -> str:
    """Return the subject of a group, such as `cuda 12.9.1, 13.0.2`."""
    releases = grouped((_subject_name(one), one.release) for one in group)
    parts = []
    for name, labels in releases.items():
        known = ", ".join(label for label in labels if label)
        parts.append(f"{name} {known}" if known else name)
    return "; ".join(parts)


def _subject_name(finding: Finding) -> str:
    """Return the subject of a finding without its release."""
    if finding.release and finding.redist:
        return finding.redist
    return finding.path or finding.redist or "data"


def _level(finding: Finding) -> str:
    if finding.exit_code == EXIT_OK:
        return "note"
    if finding.exit_code == EXIT_FINDINGS:
        return finding.kind
    return f"error ({finding.kind})"


def _verdict(report: CheckReport) -> str:
    notes = sum(finding.exit_code == EXIT_OK for finding in report.findings)
    count = len(report.findings) - notes
    mode = " (offline: without upstream)" if report.offline else ""
    counts = f"{plural(count, 'finding')}, {plural(notes, 'note')}"
    return f"{counts}: exit {report.exit_code}, {_EXIT_MEANINGS[report.exit_code]}{mode}"
