"""The reports of explain about compilers, GPUs, CUDA releases, drivers and JetPack."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import ErrorReport, Report
from cudaredist.tables.explanation import Topic


class ReleaseSpan(OwnModel):
    """The first and the newest local release with a coverage."""

    first: str
    newest: str
    since: str = Field(
        description="The first release as exactly as it is known, such as `12.3.2 or an earlier "
        "patch` if 12.3.1 was not examined"
    )
    until: str = Field(description="The newest release as exactly as it is known")
    gaps: tuple[str, ...] = Field(default=(), description="Local releases in between without it")


class ReleaseCoverage(OwnModel):
    """The coverage of one release."""

    release: str
    since: str = Field(description="The release as exactly as it is known, as in spans")
    coverage: str = Field(description="The coverage as text")


class PackageCoverage(OwnModel):
    """The local releases of a package that run on a capability's GPUs."""

    capability: str
    redist: str
    package: str
    cuda: int | None = Field(
        default=None,
        description="CUDA major of the builds. Null: the coverage does not depend on it",
    )
    any: ReleaseSpan | None = Field(
        default=None, description="Releases without device code, for every GPU. Null: none"
    )
    native: ReleaseSpan | None = Field(description="Releases with native code. Null: none")
    ptx: ReleaseSpan | None = Field(description="Releases with PTX only. Null: none")
    without: ReleaseCoverage | None = Field(
        description="The first release without coverage, newer than all with it. Null: none"
    )
    releases: int = Field(description="Local releases with device code")
    unknown: int = Field(description="Number of these releases with unknown coverage")


class NewestTogether(OwnModel):
    """The newest releases that run on a capability's GPUs together."""

    capability: str
    platform: str | None = Field(description="Null: no release of CUDA runs on them")
    releases: dict[str, str] = Field(description="Release by redistributable")
    statement: str = Field(description="The same in words")
    reasons: tuple[str, ...] = Field(
        default=(), description="Sentences about its code, and about archives not examined"
    )


class ExplainReport(Report):
    """The result of explain."""

    command: Literal["explain"] = "explain"
    kind: Literal["nvcc", "gpu", "cuda", "driver", "jetpack"]
    asked: str
    answer: str | None = Field(
        default=None,
        description="For driver, nvcc, cuda and jetpack: the answer, one line for each part",
    )
    newest: tuple[NewestTogether, ...] = Field(
        default=(), description="For gpu: CUDA, cuDNN, NCCL and cuTENSOR, from the feature files"
    )
    topics: tuple[Topic, ...]
    coverage: tuple[PackageCoverage, ...] = Field(
        default=(), description="For gpu: the packages that run on it, from the feature files"
    )
    hint: str | None = Field(
        default=None, description="For gpu: the command to read device code, if none is known"
    )
    errors: tuple[ErrorReport, ...] = Field(
        default=(), description="For cuda: the manifests that cannot be read"
    )
