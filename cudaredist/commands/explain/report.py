"""The reports of explain about compilers, GPUs, CUDA releases, drivers and JetPack."""

from typing import Annotated, Literal

from pydantic import Field

from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.plain_report import PlainEntry, PlainReport
from cudaredist.tables.explanation import Topic


class ReleaseSpan(PlainEntry):
    """The first and the newest local release with a coverage."""

    first: str
    newest: str
    since: Annotated[
        str,
        Field(
            description="The first release as exactly as it is known, such as `12.3.2 or an "
            "earlier patch` if 12.3.1 was not examined"
        ),
    ]
    until: Annotated[str, Field(description="The newest release as exactly as it is known")]
    gaps: Annotated[tuple[str, ...], Field(description="Local releases in between without it")] = ()


class ReleaseCoverage(PlainEntry):
    """The coverage of one release."""

    release: str
    since: Annotated[str, Field(description="The release as exactly as it is known, as in spans")]
    coverage: Annotated[str, Field(description="The coverage as text")]


class PackageCoverage(PlainEntry):
    """The local releases of a package that run on a capability's GPUs."""

    capability: str
    redist: str
    package: str
    cuda: Annotated[
        int | None,
        Field(description="CUDA major of the builds. Null: the coverage does not depend on it"),
    ] = None
    any: Annotated[
        ReleaseSpan | None,
        Field(description="Releases without device code, for every GPU. Null: none"),
    ] = None
    native: Annotated[
        ReleaseSpan | None, Field(description="Releases with native code. Null: none")
    ]
    ptx: Annotated[ReleaseSpan | None, Field(description="Releases with PTX only. Null: none")]
    without: Annotated[
        ReleaseCoverage | None,
        Field(description="The first release without coverage, newer than all with it. Null: none"),
    ]
    releases: Annotated[int, Field(description="Local releases with device code")]
    unknown: Annotated[int, Field(description="Number of these releases with unknown coverage")]


class NewestTogether(PlainEntry):
    """The newest releases that run on a capability's GPUs together."""

    capability: str
    platform: Annotated[str | None, Field(description="Null: no release of CUDA runs on them")]
    releases: Annotated[dict[str, str], Field(description="Release by redistributable")]
    statement: Annotated[str, Field(description="The same in words")]
    reasons: Annotated[
        tuple[str, ...],
        Field(description="Sentences about its code, and about archives not examined"),
    ] = ()


class ExplainReport(PlainReport):
    """The result of explain."""

    command: Literal["explain"] = "explain"
    kind: Literal["nvcc", "gpu", "cuda", "driver", "jetpack"]
    asked: str
    answer: Annotated[
        str | None,
        Field(description="For driver, nvcc, cuda and jetpack: the answer, one line for each part"),
    ] = None
    newest: Annotated[
        tuple[NewestTogether, ...],
        Field(description="For gpu: CUDA, cuDNN, NCCL and cuTENSOR, from the feature files"),
    ] = ()
    topics: tuple[Topic, ...]
    coverage: Annotated[
        tuple[PackageCoverage, ...],
        Field(description="For gpu: the packages that run on it, from the feature files"),
    ] = ()
    hint: Annotated[
        str | None, Field(description="For gpu: the command to read device code, if none is known")
    ] = None
    errors: Annotated[
        tuple[ErrorReport, ...], Field(description="For cuda: the manifests that cannot be read")
    ] = ()
