"""The findings of audit as SARIF 2.1.0, for code scanning."""

from collections.abc import Iterator
from urllib.parse import quote

from cudaredist import __version__
from cudaredist.exporters.export_format import without_nulls
from cudaredist.formats.settings import AuditFindingKind
from cudaredist.jsontext import canonical_json
from cudaredist.programs.report import AuditFinding, AuditReport, AuditReports
from cudaredist.source_code.report import SourceFinding, SourceReport

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def audit_sarif(report: AuditReport | AuditReports | SourceReport) -> Iterator[str]:
    """Yield the document with all findings."""
    findings = [finding for program in report.programs for finding in program.findings]
    kinds = sorted({finding.kind for finding in findings})
    driver = {"name": "cudaredist", "version": __version__, "rules": [*map(_rule, kinds)]}
    is_complete = not any(program.errors for program in report.programs)
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": is_complete, "exitCode": report.exit_code}],
        "results": [_result(finding, kinds) for finding in findings],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    yield from canonical_json(document).decode().splitlines()


def _rule(kind: AuditFindingKind) -> dict[str, object]:
    return {"id": kind, "shortDescription": {"text": kind.replace("-", " ").capitalize()}}


def _result(
    finding: AuditFinding | SourceFinding, kinds: list[AuditFindingKind]
) -> dict[str, object]:
    """Return one result.

    A finding that does not count is a warning or suppressed.
    """
    hint = f"\n{finding.hint}" if finding.hint else ""
    suppression = {"kind": "external", "justification": finding.ignored}
    result = {
        "ruleId": finding.kind,
        "ruleIndex": kinds.index(finding.kind),
        "level": "error" if finding.exit_code else "warning",
        "message": {"text": f"{finding.message}{hint}"},
        "locations": [_location(finding)] if finding.path else None,
        "suppressions": [suppression] if finding.ignored else None,
    }
    return without_nulls(result)


def _location(finding: AuditFinding | SourceFinding) -> dict[str, object]:
    place: dict[str, object] = {"artifactLocation": {"uri": quote(finding.path or "")}}
    if isinstance(finding, SourceFinding):
        place["region"] = {"startLine": finding.line}
    return {"physicalLocation": place}
