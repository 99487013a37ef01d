"""The report of build as text."""

from collections import Counter
from collections.abc import Iterator

from cudaredist.cli.text import counted
from cudaredist.commands.build.report import BuildReport, SetOutcome
from cudaredist.sets.assemble import OLDER_RELEASE
from cudaredist.words import plural


def build_text(
    report: BuildReport, *, is_quiet: bool = False, with_notes: bool = False
) -> Iterator[str]:
    """Yield each package set with its own diagnostics, then those that several sets share.

    With `is_quiet`, yield only the sets that failed. With `with_notes`, yield diagnostics of the
    level note, too.
    """
    if is_quiet:
        for outcome in report.sets:
            if outcome.error is not None:
                yield f"cuda {outcome.cuda} {outcome.platform}: {outcome.error.message}"
        return
    counts = Counter(
        line for outcome in report.sets for line in _diagnostics(outcome, with_notes=with_notes)
    )
    for release in report.skipped:
        yield f"cuda {release.cuda:<8} {'':<14} {'skipped':<11} {release.reason}"
    for outcome in report.sets:
        place = " ".join(filter(None, (outcome.platform, outcome.name)))
        name = f"cuda {outcome.cuda:<8} {place:<14} {outcome.status:<11}"
        if outcome.error is not None:
            yield f"{name} {outcome.error.message}"
            if outcome.error.hint:
                yield f"    hint: {outcome.error.hint}"
            continue
        yield f"{name} {counted(outcome.counts) if outcome.counts else outcome.path}"
        requested = (*outcome.capabilities, *outcome.requested)
        if requested:
            yield f"    requested: {', '.join(requested)}"
        lines = _diagnostics(outcome, with_notes=with_notes)
        yield from (f"    {line}" for line in lines if counts[line] == 1)
    yield from (f"{n} sets: {line}" for line, n in sorted(counts.items()) if n > 1)
    statuses = Counter(outcome.status for outcome in report.sets)
    total = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    if report.skipped:
        total += f"; {plural(len(report.skipped), 'release')} skipped"
    index = f"; {report.index} index.json" if report.index == "would-write" else ""
    is_anything_written = statuses.keys() - {"failed"}
    where = f"; in {report.output}" if is_anything_written else ""
    yield f"package sets: {total or 'none'}{index}{where}"


def _diagnostics(outcome: SetOutcome, *, with_notes: bool) -> list[str]:
    """Return the diagnostics of a set to show, without duplicates."""
    shown = (
        x for x in outcome.diagnostics if with_notes or x.level != "note" or x.code == OLDER_RELEASE
    )
    return list(dict.fromkeys(f"{x.level}: {x.subject}: {x.text}" for x in shown))
