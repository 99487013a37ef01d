"""The report of validate as text."""

from collections.abc import Iterator

from cudaredist.commands.validate.report import ValidateReport


def validate_text(report: ValidateReport, *, with_warnings: bool = True) -> Iterator[str]:
    """Yield the verdict, problems and warnings of each file."""
    for verdict in report.files:
        yield f"{verdict.path}: {verdict.summary}"
        yield from (f"    {problem}" for problem in verdict.problems)
        if with_warnings:
            yield from (f"    warning: {warning}" for warning in verdict.warnings)
        yield from (f"    not checked: {names}" for names in verdict.unchecked)
