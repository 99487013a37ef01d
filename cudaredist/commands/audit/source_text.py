"""The report of audit --source as text, as Markdown, and as annotations of GitHub."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from cudaredist.cli.text import annotations, escape_markdown, markdown_table
from cudaredist.grouping import grouped
from cudaredist.progress import size_words
from cudaredist.source_code.report import SourceFinding, SourceReport
from cudaredist.words import plural

_PLACES = 5
"""Places of uncertain uses that are shown for a name."""
_LEVELS: Mapping[str, str] = {"sure": "finding", "perhaps": "perhaps", "deprecated": "deprecated"}


def source_text(report: SourceReport) -> Iterator[str]:
    """Yield the verdict, then the uses by name, sure ones first."""
    files = plural(report.files, "file of source code", "files of source code")
    yield f"{', '.join(report.sources)}: {files}, {size_words(report.size)}"
    yield _verdict(report)
    for findings in _by_change(report):
        first = findings[0]
        yield ""
        yield f"{_level(first)}: {_title(first)}"
        if first.change == "changed":
            yield f"    old: {first.old}"
            yield f"    new: {first.new}"
        if first.hint:
            yield f"    hint: {first.hint}"
        if first.reason:
            yield f"    not sure: {first.reason}"
        if first.ignored:
            yield f"    reason: {first.ignored}"
        places = [f"{finding.path}:{finding.line}" for finding in findings]
        yield from (f"  {place}" for place in _shown(places, is_long=bool(first.exit_code)))
    yield from (f"note: {note}" for note in report.notes)


def source_markdown(report: SourceReport) -> Iterator[str]:
    """Yield the verdict and a table of the uses, for a pull request or a step summary."""
    yield f"## cudaredist audit --source: {escape_markdown(', '.join(report.sources))}"
    yield ""
    yield escape_markdown(_verdict(report))
    rows = [("level", "change", "file", "instead")]
    for findings in _by_change(report):
        first = findings[0]
        places = [f"{finding.path}:{finding.line}" for finding in findings]
        shown = _shown(places, is_long=False)
        instead = first.hint or (first.new if first.change == "changed" else None) or ""
        rows.append((_level(first), _title(first), ", ".join(shown), instead))
    if len(rows) > 1:
        yield ""
        yield from markdown_table(rows)


def source_annotations(report: SourceReport) -> Iterator[str]:
    """Return GitHub's workflow commands, one for each use, on its line."""
    return annotations(
        (
            "notice" if finding.ignored else "error" if finding.exit_code else "warning",
            {"file": finding.path, "line": str(finding.line), "title": finding.kind},
            _title(finding),
        )
        for finding in report.findings
    )


def _verdict(report: SourceReport) -> str:
    """Return the number of uses of each level, and the releases that compile them."""
    counts = Counter(map(_level, report.findings))
    parts = [
        plural(counts["finding"], "finding") if counts["finding"] else "No findings",
        *(
            f"{counts[level]:,} {level}"
            for level in ("perhaps", "deprecated", "ignored")
            if counts[level]
        ),
    ]
    if report.skipped:
        parts.append(f"{plural(len(report.skipped), 'file')} not read")
    text = f"{', '.join(parts)}. Compared with CUDA {report.required_cuda}."
    if len(report.releases) > 1:
        releases = report.compiles.replace(" ", ", ") or "none of them"
        text += f" By these names, it compiles with {releases}."
    return text


def _level(finding: SourceFinding) -> str:
    return "ignored" if finding.ignored else _LEVELS[finding.certainty]


def _title(finding: SourceFinding) -> str:
    """Return the message without the place."""
    return finding.message.removeprefix(f"{finding.path}:{finding.line}: ")


def _by_change(report: SourceReport) -> Iterator[Sequence[SourceFinding]]:
    """Yield the uses with equal levels, changes and reasons together."""
    groups = grouped(
        ((_level(one), _title(one), one.reason, one.hint, one.old, one.new), one)
        for one in report.findings
    )
    yield from groups.values()


def _shown(places: Sequence[str], *, is_long: bool) -> list[str]:
    more = len(places) - _PLACES
    if is_long or more <= 0:
        return list(places)
    return [*places[:_PLACES], f"and {more:,} more"]
