"""Facts of CUDA releases, GPUs and compilers as text."""

from collections.abc import Iterator

from cudaredist.cli.text import columns
from cudaredist.commands.explain.report import ExplainReport, PackageCoverage, ReleaseSpan
from cudaredist.words import plural


def explain_text(report: ExplainReport, *, with_sources: bool = False) -> Iterator[str]:
    """Yield the answer, then the facts of each topic, with or without their sources.

    Without sources, an answer replaces the facts about host compilers and those of a CUDA release.
    """
    yield from (line for part in report.newest for line in (part.statement, *part.reasons))
    if report.answer is not None:
        yield from report.answer.split("\n")
    is_answered = report.kind in {"nvcc", "cuda"} and not with_sources
    for number, topic in enumerate(() if is_answered else report.topics):
        if number or report.newest or report.answer:
            yield ""
        yield topic.title
        for fact in topic.facts:
            yield f"  {fact.statement}"
            if not with_sources:
                continue
            because = f"; {fact.reason}" if fact.reason else ""
            layer = f", {fact.layer} data" if fact.layer else ""
            yield f"      {fact.basis}: {fact.source}{layer}{because}"
            for claim in fact.otherwise:
                reason = f" ({claim.reason})" if claim.reason else ""
                value = "none" if claim.value is None else claim.value
                text = ", ".join(value) if isinstance(value, tuple) else value
                yield f"      otherwise: {text}{reason}: {claim.source}"
    if not with_sources and report.topics:
        yield from _sources(report)
    for name in dict.fromkeys(entry.capability for entry in report.coverage):
        yield ""
        yield f"releases that run on {name}, according to the device code in feature files"
        rows = [("  package", "CUDA", "any GPU", "native", "PTX only", "first without")]
        rows += (_coverage_row(part) for part in report.coverage if part.capability == name)
        yield from columns(rows)
    if report.hint is not None:
        yield ""
        yield (
            "The releases that run on it are unknown, because there are no feature files. "
            f"Run `{report.hint}`."
        )


def _sources(report: ExplainReport) -> Iterator[str]:
    """Yield one line with the number of sources and of statements that differ."""
    facts = [fact for topic in report.topics for fact in topic.facts]
    layers = " and ".join(sorted({fact.layer for fact in facts if fact.layer}))
    differing = sum(bool(fact.otherwise) for fact in facts)
    text = f"{plural(len({fact.source for fact in facts}), 'source')}"
    text += f" ({layers} data)" if layers else ""
    text += f"; {plural(differing, 'fact')} with another statement" if differing else ""
    yield ""
    yield f"{text}: see them with --sources"


def _coverage_row(part: PackageCoverage) -> tuple[str, str, str, str, str, str]:
    package = part.package if part.redist in part.package else f"{part.package} ({part.redist})"
    without = "-" if part.without is None else part.without.since
    if part.without is not None and part.without.coverage != "none":
        without += f" ({part.without.coverage})"
    unknown = f"; {part.unknown} of {part.releases} releases unknown" if part.unknown else ""
    cuda = "all" if part.cuda is None else str(part.cuda)
    spans = _span(part.any), _span(part.native), _span(part.ptx)
    return f"  {package}", cuda, *spans, f"{without}{unknown}"


def _span(span: ReleaseSpan | None) -> str:
    if span is None:
        return "-"
    gaps = f" except {', '.join(span.gaps)}" if span.gaps else ""
    if span.first == span.newest == span.until:
        return span.since
    return f"{span.since} to {span.until}{gaps}"
