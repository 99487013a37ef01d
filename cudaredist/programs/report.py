"""The report of audit."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field

from cudaredist.errors import EXIT_INCOMPLETE, EXIT_OK
from cudaredist.formats.base import OwnModel
from cudaredist.formats.coverage import Coverage
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.library_policy import Owner
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.report import BaseFinding, Report
from cudaredist.formats.settings import AuditFindingKind

Names: TypeAlias = tuple[str, ...]
"""Names, paths or requirements of a program."""

NeedKind: TypeAlias = Literal["needed", "unlinked", "opened", "bundled"]
RequiredKind: TypeAlias = NeedKind | Literal["declared"]
NeedStatus: TypeAlias = Literal["bundled", "provided", "external", "missing", "unknown"]
EnvironmentKind: TypeAlias = Literal[
    "virtual environment", "conda environment", "toolkit", "root file system", "packages"
]
BoundKind: TypeAlias = Literal["symbols", "oldest", "parts", "unknown", "missing", "none"]
GpuAnswer: TypeAlias = Literal["yes", "in part", "unknown", "no"]
"""Best first."""
SuppliedStatus: TypeAlias = Literal["supplied", "missing", "unknown", "bundled"]
SubstitutionAnswer: TypeAlias = Literal["yes", "unknown", "no"]
VersionChange: TypeAlias = Literal["older", "same", "newer"]
FoundBy: TypeAlias = Literal[
    "run-path", "library-path", "system", "preloaded", "damaged", "other-code", "driver", "none"
]


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
    project: str | None = Field(description="Project of its wheel; null: not of the wheels channel")
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
    by: Names = Field(description="Files that need it")
    bundled: Names = Field((), description="Files of the program with the library")
    releases: dict[str, Names] = Field(
        {},
        description="Releases with the symbols, device code and version of the copies of NVIDIA's "
        "library, by file. Empty: unknown",
    )
    providers: tuple[LibraryProvider, ...] = ()
    owner: Owner | None = Field(None, description="Owner of an external library")
    projects: Names = Field(
        default=(),
        description="Wheels of NVIDIA's with an unknown library that are not in the data",
    )
    not_found_by: Names = Field(
        (), description="Files of wheels that need it, but have no run path to it"
    )


class AuditedRelease(OwnModel):
    """The releases of a redistributable that the program can use."""

    redist: str
    cuda_majors: tuple[int, ...] = Field(
        description="Of the part of the program that needs them; empty: it states none"
    )
    sonames: Names
    lowest: str | None = Field(
        description="Oldest in the data that exports all symbols; null: none does, or it is unknown"
    )
    may_be_earlier: bool = Field(
        default=False,
        description="Whether a patch release before the lowest one, which is not in the data, may "
        "export all symbols",
    )
    first: str | None = Field(description="Oldest in the data with all of the libraries")
    last: str | None
    unknown: Names = Field(description="Releases with unknown symbols")
    not_fitting: Names = Field(description="Releases that lack symbols")
    decisive: Names = Field(
        description="Symbols that the release before the lowest one lacks; at most five"
    )
    unresolved: Names = Field(description="Symbols that no release exports")


class PipRequirement(OwnModel):
    """A requirement of pip for a wheel of NVIDIA's."""

    cuda_major: int | None = Field(description="Of the part of the program that requires it")
    project: str | None = Field(description="Null: it depends on the CUDA major")
    alternatives: Names = Field((), description="Projects for different CUDA majors")
    specifier: str
    sonames: Names
    is_guess: bool = Field(
        description="Whether the program does not need its libraries, but may open them"
    )
    is_mixed: bool = Field(
        default=False, description="Whether a file needs libraries of several CUDA majors"
    )
    lower_bound: BoundKind = Field(
        description="`symbols`: it is the first version that exports all symbols; `oldest`: it is "
        "the oldest version in the data, and exports all symbols; `parts`: it is the first version "
        "that finds the libraries of its own package; `unknown`: the symbols are unknown; "
        "`missing`: no release has all libraries, so there is no bound; `none`: no known version "
        "exports all symbols"
    )


class Floor(OwnModel):
    """The newest version of the C or C++ library that a program needs."""

    version: str | None = Field(description="Null: it needs none")
    by: Names = Field(description="Files that need it")
    unread: Names = Field((), description="Files whose needs are unknown")


class CudaRuntime(OwnModel):
    """How files are linked with the CUDA runtime, as far as it can be seen."""

    static: Names = ()
    shared: Names = ()
    unknown: Names = ()
    versions: Names = Field((), description="Of bundled copies, by their names")


class DeviceFile(OwnModel):
    """The device code of one file."""

    path: str
    architectures: Names


class RequiredGpu(OwnModel):
    """Whether a required GPU runs the program."""

    gpu: str = Field(description="Its name in the command")
    capability: str
    answer: GpuAnswer
    reason: str = Field(
        description="How it runs the program, or the code that it does not run. In an environment, "
        "of the package that determines the answer"
    )

    @property
    def title(self) -> str:
        """The name and the capability."""
        if self.gpu == self.capability:
            return f"GPUs of capability {self.capability}"
        return f"{self.gpu} ({self.capability})"


class AuditedAlternative(OwnModel):
    """Files with a CUDA release in their names, of which the program loads those of one release."""

    cuda_major: int
    files: Names
    coverage: dict[str, Coverage] = Field(
        description="By capability, together with the files that have no alternative"
    )


class AuditFinding(BaseFinding[AuditFindingKind]):
    """Something wrong with the program, or a required property that it lacks."""

    exit_codes: ClassVar[Mapping[str, int]] = {
        "duplicate-library": EXIT_OK,
        "run-path": EXIT_OK,
        "library-path": EXIT_OK,
        "unknown": EXIT_INCOMPLETE,
        "unknown-vulnerability": EXIT_INCOMPLETE,
        "unlinked-library": EXIT_OK,
    }

    message: str
    path: str | None = None
    hint: str | None = None
    exit_code: int = Field(description="0: a warning, or ignored; 3: the answer is unknown")
    ignored: str | None = Field(None, description="Reason of the configuration file to ignore it")


class DeclaredWheel(OwnModel):
    """A wheel of NVIDIA's that an audited wheel declares."""

    package: str = Field(description="The audited wheel, and its version")
    requirement: str
    is_optional: bool = Field(description="Whether an extra declares it")
    sonames: Names = Field(
        description="Its libraries that files need by name. Empty: the program may load some"
    )


class LoadedFile(OwnModel):
    """The file that the loader finds for a needed library of an environment."""

    soname: str = Field(description="The name that files need it by")
    cuda: bool = Field(description="Whether it is one of NVIDIA's libraries or of the driver")
    found_by: FoundBy = Field(
        description="`run-path` or `system`: by the loader; `library-path`: by the loader, in a "
        "folder of LD_LIBRARY_PATH; `preloaded`: a package loads it first, "
        "see `rule`; `damaged`: the loader fails, because it is not a whole ELF file; "
        "`other-code`: in the environment, but the loader does not search its folder; "
        "`driver`: of the driver of a machine with a GPU; `none`: there is no file"
    )
    path: str | None
    package: str | None = Field(description="The installed package of the file, and its version")
    rule: str | None = Field(description="The module and function that load it")
    by: Names = Field(description="Files that need it")
    undefined: Names = Field(
        (), description="Symbols that these files use, but no loaded file exports"
    )


class AuditedEnvironment(OwnModel):
    """An installed environment."""

    path: str
    kind: EnvironmentKind
    packages: int = Field(description="Python packages in it")
    libraries: tuple[LoadedFile, ...]
    fix: str | None = Field(
        default=None,
        description="One command for all findings of the environment that have hints. Null: there "
        "is at most one such command",
    )


class FileSizes(OwnModel):
    """The size of one binary, and of its device code."""

    path: str
    size: int = Field(description="Bytes, unpacked")
    code: int = Field(description="Bytes of its device code. 0: none, or unknown")
    unused: int | None = Field(
        description="Bytes of its device code that the required GPUs do not use. Null: unknown, or "
        "no GPU is required"
    )


class AuditedSizes(OwnModel):
    """The sizes of the binaries of a program."""

    size: int = Field(description="Bytes of all binaries, unpacked")
    code: dict[str, int] = Field(description="Bytes of device code by architecture")
    gpus: Names = Field(description="The required GPUs, as capabilities")
    unused: int | None = Field(description="Bytes of device code that these GPUs do not use")
    unknown: Names = Field(description="Files with device code of unknown size")
    files: tuple[FileSizes, ...] = Field(description="Largest first")


class RequiredLibrary(OwnModel):
    """A library that the program requires, and the package of `--supplied-by` with it."""

    soname: str
    kind: RequiredKind = Field(
        description="`unlinked`: files use its symbols, but do not list it as needed; `opened`: a "
        "guess, because its name is in the data of a file; `declared`: of a wheel that the program "
        "requires, but no file has its name"
    )
    by: Names = Field(description="Files with its name, or the wheel that requires it")
    pinned: Names = Field(description="Requirements for its wheel")
    status: SuppliedStatus = Field(
        description="`unknown`: the library of the set was not examined; `bundled`: the program "
        "contains its own copy"
    )
    is_optional: bool = Field(
        default=False, description="Whether the program may run without it, so that it is a warning"
    )
    package: str | None = Field(None, description="The package of the set, as attribute")
    version: str | None = Field(None, description="Version of this package")
    change: VersionChange | None = Field(
        None, description="Compared with the pinned version. Null: no single version is pinned"
    )
    symbols: int = Field(0, description="Number of its symbols that files use")
    missing_symbols: Names = Field((), description="Those that the supplied library lacks")
    parts: Names = Field((), description="Libraries of the same package that its files open")
    missing_parts: Names = Field((), description="Those that the set lacks")
    gpus_lost: Names | None = Field(
        None,
        description="Capabilities that run the pinned wheel, or else the program, but not the "
        "package of the set. Null: unknown",
    )


class Substitution(OwnModel):
    """Whether the program runs with the libraries of a package set."""

    supplied_by: str = Field(description="The package set")
    answer: SubstitutionAnswer
    libraries: tuple[RequiredLibrary, ...]


class ErrorAnswer(OwnModel):
    """An answer to the message of --error."""

    kind: Literal["symbol", "library", "gpu", "driver"]
    name: str | None = Field(
        description="The symbol, library, capability or CUDA minor that it is about"
    )
    message: str
    path: str | None = Field(None, description="The file that is loaded, or that fails")
    package: str | None = Field(None, description="The package of the file, and its version")
    first: str | None = Field(
        None, description="Of a symbol: the first release with it in the data, and its wheel"
    )
    hint: str | None = None


class AuditReport(Report):
    """The result of audit."""

    command: Literal["audit"] = "audit"
    paths: Names = Field(description="The PATHs of the program")
    inputs: tuple[AuditInput, ...] = Field(description="The PATHs that could be read")
    answers: tuple[ErrorAnswer, ...] = Field((), description="To the message of --error")
    substitution: Substitution | None = Field(None, description="With --supplied-by")
    environments: tuple[AuditedEnvironment, ...] = ()
    platforms: Names
    channel: str = Field(description="Channel of the data")
    judged_by: str = Field(description="The package set, or the data")
    required_cuda: str | None = Field(None, description="The release of --require-cuda")
    libraries: tuple[AuditedLibrary, ...]
    cuda_majors: tuple[int, ...] = Field(description="CUDA majors that it, or parts of it, are for")
    releases: tuple[AuditedRelease, ...]
    requirements: tuple[PipRequirement, ...]
    declared: tuple[DeclaredWheel, ...] = Field(
        (), description="Wheels of NVIDIA's in the metadata of the audited wheels"
    )
    runtime: CudaRuntime
    glibc: Floor
    libstdcxx: Floor
    coverage: dict[str, Coverage] | None = Field(
        description="By capability, of its own device code, or of the best alternative; null: the "
        "GPUs are unknown"
    )
    gpus: tuple[RequiredGpu, ...] = Field((), description="The answers to --require-gpu")
    alternatives: tuple[AuditedAlternative, ...] = ()
    device_code: tuple[DeviceFile, ...]
    sizes: AuditedSizes | None = Field(None, description="With --sizes")
    vulnerabilities: tuple[PackageVulnerability, ...] = Field(
        (), description="Known vulnerabilities of installed packages and bundled libraries"
    )
    unread: Names = Field((), description="Files whose needed libraries are unknown")
    checked: Names = Field(description="The properties that the findings are about")
    findings: tuple[AuditFinding, ...]
    notes: Names
    skipped: Names = Field(
        (), description="Files that were not read, although they may be libraries"
    )
    errors: tuple[ErrorReport, ...] = Field(
        (), description="Paths that could not be read, or not to their end"
    )

    @property
    def programs(self) -> tuple[Self, ...]:
        """The report itself, as the only one."""
        return (self,)


class AuditReports(Report):
    """The results of audit for several programs, such as several wheels."""

    command: Literal["audit"] = "audit"
    programs: tuple[AuditReport, ...]
