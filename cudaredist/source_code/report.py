"""The report of audit --source."""

from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.report import BaseFinding, Report
from cudaredist.formats.settings import AuditFindingKind
from cudaredist.source_code.judge_use import Certainty, ChangeKind

Names: TypeAlias = tuple[str, ...]


class SourceFinding(BaseFinding[AuditFindingKind], OwnModel):
    """A use of a name that a requested release lacks, has in another form, or deprecates."""

    path: str = Field(description="The file, relative to the PATH")
    line: int
    change: ChangeKind
    certainty: Certainty = Field(description="Only `sure` findings count")
    name: str = Field(description="Of a field: `struct.field`. Of a header: its path")
    name_kind: str = Field(description="`function`, `field`, `enumerator`, `macro`, `header`, ...")
    header: str = Field(description="The header that declares it, as in `#include`")
    package: str = Field(description="The package with the header")
    releases: str = Field(
        description="The requested releases in which the use does not compile, or is deprecated"
    )
    since: str | None = Field(
        description="The release that changed it. Null: the first one in the data"
    )
    old: str = Field(description="Declaration in the releases before the change")
    new: str | None = Field(description="Declaration in the requested release. Null: none")
    message: str
    reason: str | None = Field(description="Why it is not sure. Null: it is")
    hint: str | None = Field(description="Text to write instead. Null: unknown")
    exit_code: int
    ignored: str | None = Field(None, description="Reason of the configuration file to ignore it")


class SourceReport(Report):
    """The result of audit --source."""

    command: Literal["audit"] = "audit"
    sources: Names = Field(description="The PATHs")
    required_cuda: str = Field(description="The release or range of --require-cuda")
    releases: Names = Field(description="The requested releases, whose headers are known")
    compiles: str = Field(
        description="Those in which the source compiles by the names that it uses. Empty: none"
    )
    files: int = Field(description="Files that were read")
    size: int = Field(description="Their bytes")
    findings: tuple[SourceFinding, ...]
    notes: Names
    skipped: Names = Field((), description="Files that were not read")
    errors: tuple[ErrorReport, ...] = ()
    exit_code: int = 0

    @property
    def programs(self) -> "tuple[SourceReport, ...]":
        """The report itself, as the only one."""
        return (self,)
