"""The report of audit."""

from collections.abc import Iterable
from typing import Literal, Self, TypeAlias

from pydantic import Field

from cudaredist.errors import worst_exit_code
from cudaredist.formats.base import OwnModel
from cudaredist.formats.packageset import Coverage
from cudaredist.formats.policy import Owner
from cudaredist.formats.report import ErrorReport, Report
from cudaredist.formats.settings import AuditFindingKind

NeedKind: TypeAlias = Literal["needed", "unlinked", "opened", "bundled"]
NeedStatus: TypeAlias = Literal["bundled", "provided", "external", "missing", "unknown"]
EnvironmentKind: TypeAlias = Literal[
    "virtual environment", "conda environment", "toolkit", "root file system", "packages"
]
FoundBy: TypeAlias = Literal["run-path", "system", "preloaded", "other-code", "driver", "none"]


class AuditInput(OwnModel):
    """One PATH of the call."""

    path: str
    files: int = Field(description="Files in it")
    binaries: int = Field(description="Programs, libraries and device code among them")


class LibraryProvider(OwnModel):
    """A package with a library, and its releases."""

    redist: str
    package: str
    platform: str
    variant: str | None
    project: str | None = Field(description="Project of its wheel; null: not of the wheel channel")
    first: str
    last: str


class AuditedLibrary(OwnModel):
    """A library that the program needs, may open, or contains a copy of."""

    soname: str
    kind: NeedKind = Field(
        description="`unlinked`: files use its symbols, but do not list it as needed; `opened`: a "
        "guess, because its name is in the data of a file; `bundled`: a copy of NVIDIA's library "
        "that no file of the program states"
    )
    status: NeedStatus = Field(
        description="`missing`: other versions of it are known; `unknown`: nothing is known of it"
    )
    cuda: bool = Field(description="Whether it is one of NVIDIA's libraries or of the driver")
    by: tuple[str, ...] = Field(description="Files that need it")
    bundled: tuple[str, ...] = Field(
        default=(), description="Files of the program with the library"
    )
    providers: tuple[LibraryProvider, ...] = ()
    owner: Owner | None = Field(default=None, description="Of an external library")
    projects: tuple[str, ...] = Field(
        default=(),
        description="Wheels of NVIDIA's with an unknown library that are not in the data",
    )
    not_found_by: tuple[str, ...] = Field(
        default=(), description="Files of wheels that need it, but have no run path to it"
    )


class AuditedRelease(OwnModel):
    """The releases of a redistributable that the program can use."""

    redist: str
    cuda_majors: tuple[int, ...] = Field(
        description="Of the part of the program that needs them; empty: it states none"
    )
    sonames: tuple[str, ...]
    lowest: str | None = Field(
        description="Oldest in the data that exports all symbols; null: none does, or it is unknown"
    )
    first: str | None = Field(description="Oldest in the data with all of the libraries")
    last: str | None
    unknown: tuple[str, ...] = Field(description="Releases with unknown symbols")
    not_fitting: tuple[str, ...] = Field(description="Releases that lack symbols")
    decisive: tuple[str, ...] = Field(
        description="Symbols that the release before the lowest one lacks; at most five"
    )
    unresolved: tuple[str, ...] = Field(description="Symbols that no release exports")


class PipRequirement(OwnModel):
    """A requirement of pip for a wheel of NVIDIA's."""

    cuda_major: int | None = Field(description="Of the part of the program that requires it")
    project: str | None = Field(description="Null: it depends on the CUDA major")
    alternatives: tuple[str, ...] = Field(
        default=(), description="Projects for different CUDA majors"
    )
    specifier: str
    sonames: tuple[str, ...]
    is_guess: bool = Field(
        description="Whether the program does not need its libraries, but may open them"
    )
    is_mixed: bool = Field(
        default=False, description="Whether a file needs libraries of several CUDA majors"
    )
    lower_bound: Literal["symbols", "oldest", "unknown", "missing", "none"] = Field(
        description="`symbols`: it is the first version that exports all symbols; `oldest`: it is "
        "the oldest version in the data, and exports all symbols; `unknown`: the symbols are "
        "unknown; `missing`: no release has all libraries, so there is no bound; `none`: no known "
        "version exports all symbols"
    )


class Floor(OwnModel):
    """The newest version of the C or C++ library that a program needs."""

    version: str | None = Field(description="Null: it needs none")
    by: tuple[str, ...] = Field(description="Files that need it")
    unread: tuple[str, ...] = Field(default=(), description="Files whose needs are unknown")


class CudaRuntime(OwnModel):
    """How files are linked with the CUDA runtime, as far as it can be seen."""

    static: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    versions: tuple[str, ...] = Field(default=(), description="Of bundled copies, by their names")


class DeviceFile(OwnModel):
    """The device code of one file."""

    path: str
    architectures: tuple[str, ...]


class AuditedAlternative(OwnModel):
    """Files with a CUDA release in their names, of which the program loads those of one release."""

    cuda_major: int
    files: tuple[str, ...]
    coverage: dict[str, Coverage] = Field(
        description="By capability, together with the files that have no alternative"
    )


class AuditFinding(OwnModel):
    """Something wrong with the program, or a required property that it lacks."""

    kind: AuditFindingKind
    message: str
    path: str | None = None
    hint: str | None = None
    exit_code: int = Field(description="0: a warning, or ignored; 3: the answer is unknown")
    ignored: str | None = Field(
        default=None, description="Reason of the configuration file to ignore it"
    )


class DeclaredWheel(OwnModel):
    """A wheel of NVIDIA's that an audited wheel declares."""

    package: str = Field(description="The audited wheel, and its version")
    requirement: str
    is_optional: bool = Field(description="Whether an extra declares it")
    sonames: tuple[str, ...] = Field(
        description="Its libraries that files need by name. Empty: the program may load some"
    )


class LoadedFile(OwnModel):
    """The file that the loader finds for a needed library of an environment."""

    soname: str = Field(description="The name that files need it by")
    cuda: bool = Field(description="Whether it is one of NVIDIA's libraries or of the driver")
    found_by: FoundBy = Field(
        description="`run-path` or `system`: by the loader; `preloaded`: a package loads it first, "
        "see `rule`; `other-code`: in the environment, but the loader does not search its folder; "
        "`driver`: of the driver of a machine with a GPU; `none`: there is no file"
    )
    file: str | None
    package: str | None = Field(description="The installed package of the file, and its version")
    rule: str | None = Field(description="The module and function that load it")
    by: tuple[str, ...] = Field(description="Files that need it")
    undefined: tuple[str, ...] = Field(
        default=(), description="Symbols that these files use, but no loaded file exports"
    )


class AuditedEnvironment(OwnModel):
    """An installed environment."""

    path: str
    kind: EnvironmentKind
    packages: int = Field(description="Python packages in it")
    libraries: tuple[LoadedFile, ...]


class AuditReport(Report):
    """The result of audit."""

    command: Literal["audit"] = "audit"
    paths: tuple[str, ...] = Field(description="The PATHs of the program")
    inputs: tuple[AuditInput, ...] = Field(description="The PATHs that could be read")
    environments: tuple[AuditedEnvironment, ...] = ()
    platforms: tuple[str, ...]
    channel: str = Field(description="Channel of the data")
    judged_by: str = Field(description="The package set, or the data")
    required_cuda: str | None = Field(default=None, description="The release of --cuda")
    libraries: tuple[AuditedLibrary, ...]
    cuda_majors: tuple[int, ...] = Field(description="CUDA majors that it, or parts of it, are for")
    releases: tuple[AuditedRelease, ...]
    requirements: tuple[PipRequirement, ...]
    declared: tuple[DeclaredWheel, ...] = Field(
        default=(), description="Wheels of NVIDIA's in the metadata of the audited wheels"
    )
    runtime: CudaRuntime
    glibc: Floor
    libstdcxx: Floor
    coverage: dict[str, Coverage] | None = Field(
        description="By capability, of its own device code, or of the best alternative; null: the "
        "GPUs are unknown"
    )
    alternatives: tuple[AuditedAlternative, ...] = ()
    device_code: tuple[DeviceFile, ...]
    unread: tuple[str, ...] = Field(
        default=(), description="Files whose needed libraries are unknown"
    )
    findings: tuple[AuditFinding, ...]
    notes: tuple[str, ...]
    skipped: tuple[str, ...] = Field(
        default=(), description="Files that were not read, although they may be libraries"
    )
    errors: tuple[ErrorReport, ...] = Field(
        default=(), description="Paths that could not be read, or not to their end"
    )

    def with_findings(self, findings: Iterable[AuditFinding], **more: object) -> Self:
        """Return the report with other findings and their exit code, and with other fields."""
        found = tuple(findings)
        codes = [n.exit_code for n in found] + [n.exit_code for n in self.errors]
        update = {"findings": found, "exit_code": worst_exit_code(codes), **more}
        return self.model_copy(update=update)

    @property
    def programs(self) -> tuple[Self, ...]:
        """The report itself, as the only one."""
        return (self,)


class AuditReports(Report):
    """The results of audit for several programs, such as several wheels."""

    command: Literal["audit"] = "audit"
    programs: tuple[AuditReport, ...]
