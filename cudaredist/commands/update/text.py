"""The reports of the commands that update tables as text."""

from collections import Counter
from collections.abc import Iterator, Sequence

from cudaredist.cli.text import columns
from cudaredist.commands.update.report import AdvisoryReport, ApiReport, SymbolReport, TableReport
from cudaredist.formats.tables import TableFinding
from cudaredist.words import listed, plural, shortened, shown

_SHOWN = 20
_DIFF_LINES = 60
"""Lines of a table's changes as text. JSON has all."""


def symbols_text(report: SymbolReport) -> Iterator[str]:
    """Yield the tables that changed, and the number of archives."""
    yield from _names(f"table {report.status.replace('-', ' ')}", report.changed)
    yield from _names("table removed", report.removed)
    yield from _names("no table, by its name", report.unnamed)
    yield _archives_line(report)
    tables = f"{plural(report.tables, 'library', 'libraries')}, {len(report.changed):,} changed"
    yield f"symbols: {tables}; {_read(report)}"


def api_text(report: ApiReport) -> Iterator[str]:
    """Yield the tables that changed, and the number of archives."""
    yield from _names(f"table {report.status.replace('-', ' ')}", report.changed)
    yield from _names("table removed", report.removed)
    yield _archives_line(report)
    tables = f"{plural(report.tables, 'package')}, {len(report.changed):,} changed"
    yield f"api: {tables}; {_read(report)}"


def _archives_line(report: SymbolReport | ApiReport) -> str:
    statuses = Counter(one.status for one in report.archives)
    counts = [f"{report.known:,} known", *(f"{n:,} {s}" for s, n in sorted(statuses.items()))]
    count = len(report.releases)
    releases = report.releases[0] if count == 1 else plural(count, "release")
    return f"archives of {releases}: {', '.join(counts)}"


def _read(report: SymbolReport | ApiReport | TableReport) -> str:
    return f"{plural(report.archives_read, 'archive')} read, {report.fetched_bytes:,} bytes"


def _names(title: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"{title}: {name}" for name in names[:_SHOWN])
    if len(names) > _SHOWN:
        yield f"{title}: and {len(names) - _SHOWN:,} more"


def table_text(report: TableReport, *, quiet: bool) -> Iterator[str]:
    """Yield a table's changes, the outcome of each release, and the totals.

    A new table has the bounds of each release instead of its changes. With `quiet`, yield findings
    only.
    """
    if quiet:
        yield from map(finding_text, report.findings)
        if report.status == "would-write":
            yield f"{report.table}: would write"
        return
    if not any(outcome.bounds for outcome in report.releases):
        yield from shortened(report.diff, _DIFF_LINES)
    rows = []
    for outcome in report.releases:
        status, sha256 = outcome.status.replace("-", " "), (outcome.archive_sha256 or "")[:12]
        rows.append((outcome.release, status, outcome.package or "", sha256, outcome.bounds or ""))
    yield from columns(rows)
    yield f"{report.table}: {report.status.replace('-', ' ')}; {_read(report)}"


def finding_text(finding: TableFinding) -> str:
    """Return a finding as a line."""
    return f"{finding.kind}: {finding.message}"


def advisories_text(report: AdvisoryReport, *, quiet: bool) -> Iterator[str]:
    """Yield the new and changed bulletins, and the totals."""
    statuses = Counter(one.status for one in report.bulletins)
    for one in report.bulletins:
        if one.status in {"new", "changed", "replaced"} and one.vulnerabilities:
            before = f" instead of {one.known_version}" if one.known_version else ""
            count = plural(one.vulnerabilities, "vulnerability", "vulnerabilities")
            yield f"bulletin {one.bulletin}, version {one.version}{before}: {one.status}, {count}"
        if one.undecided:
            names = listed([shown(name) for name in one.undecided])
            words = "not mapped, but with the name of a supported product"
            yield f"bulletin {one.bulletin}, {words}: {names}"
    if not quiet:
        counts = ", ".join(f"{n:,} {status}" for status, n in sorted(statuses.items()))
        yield f"bulletins: {counts}"
        total = plural(report.total_vulnerabilities, "vulnerability", "vulnerabilities")
        of = plural(report.total_bulletins, "bulletin")
        yield f"{report.table}: {report.status.replace('-', ' ')}; {total} of {of}"
