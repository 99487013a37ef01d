"""The report of build as text."""

from collections import Counter
from collections.abc import Iterator

from cudaredist.cli.text import counted
from cudaredist.commands.build.report import BuildReport
from cudaredist.sets.assemble import OLDER_RELEASE


def build_text(report: BuildReport) -> Iterator[str]:
    """Yield each package set, followed by its diagnostics."""
    for release in report.skipped:
        yield f"cuda {release.cuda:<8} {'':<14} {'skipped':<11} {release.reason}"
    for outcome in report.sets:
        name = f"cuda {outcome.cuda:<8} {outcome.platform:<14} {outcome.status:<11}"
        if outcome.error is not None:
            yield f"{name} {outcome.error.message}"
            if outcome.error.hint:
                yield f"    hint: {outcome.error.hint}"
            continue
        yield f"{name} {counted(outcome.counts)}"
        if outcome.requested:
            yield f"    requested: {', '.join(outcome.requested)}"
        for entry in outcome.diagnostics:
            if entry.level != "note" or entry.code == OLDER_RELEASE:
                yield f"    {entry.level}: {entry.subject}: {entry.text}"
    statuses = Counter(outcome.status for outcome in report.sets)
    total = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    if report.skipped:
        total += f"; {len(report.skipped)} releases skipped"
    index = f"; {report.index} index.json" if report.index == "would-write" else ""
    yield f"package sets: {total or 'none'}{index}; in {report.output}"
