"""All reports of `--json`, by the name of their JSON Schema."""

from cudaredist.reports.answer_reports import (
    DiffReport,
    ExplainReport,
    PackageReport,
    WhichReport,
)
from cudaredist.reports.archive_reports import (
    PeekReport,
    ProcessReport,
    TableReport,
    ToolkitReport,
)
from cudaredist.reports.audit_reports import AuditReport
from cudaredist.reports.manifest_reports import (
    CheckReport,
    DownloadReport,
    RunfileReport,
    SchemaReport,
    SiteReport,
    ValidateReport,
    VersionsReport,
)
from cudaredist.reports.mirror_reports import (
    MirrorPruneReport,
    MirrorSyncReport,
    MirrorVerifyReport,
)
from cudaredist.reports.report import Answer, ErrorAnswer
from cudaredist.reports.set_reports import (
    BuildReport,
    BumpReport,
    ExportReport,
    SetSummary,
    TableDiffReport,
)
from cudaredist.reports.symbol_reports import SymbolReport

REPORTS: dict[str, tuple[type[Answer], ...]] = {
    "report-audit": (AuditReport,),
    "report-build": (BuildReport,),
    "report-bump": (BumpReport,),
    "report-check": (CheckReport,),
    "report-diff": (DiffReport,),
    "report-download-manifests": (DownloadReport,),
    "report-error": (ErrorAnswer,),
    "report-explain": (ExplainReport, PackageReport, SetSummary),
    "report-export": (ExportReport, TableDiffReport),
    "report-materialize": (ToolkitReport,),
    "report-mirror": (MirrorSyncReport, MirrorVerifyReport, MirrorPruneReport),
    "report-process-manifests": (ProcessReport, PeekReport),
    "report-runfile": (RunfileReport,),
    "report-schema": (SchemaReport,),
    "report-site": (SiteReport,),
    "report-update-gpus": (TableReport,),
    "report-update-nvcc-compat": (TableReport,),
    "report-update-symbols": (SymbolReport,),
    "report-validate": (ValidateReport,),
    "report-versions": (VersionsReport,),
    "report-which": (WhichReport,),
}
"""The models of the reports: `report-` and the command, or `report-error`."""


def report_summaries() -> dict[str, str]:
    """Map the schema names of reports to summaries."""
    return {name: (models[0].__doc__ or "").splitlines()[0] for name, models in REPORTS.items()}
