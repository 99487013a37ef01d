"""audit: the CUDA libraries, releases and GPUs that a program needs."""

import os
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from cudaredist.cli.configuration import read_configuration
from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    cache_dir_option,
    cuda_option,
    format_option,
    gpu_option,
    output_flag,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command, open_cache
from cudaredist.errors import UsageError, WriteError
from cudaredist.hints import again

if TYPE_CHECKING:
    from cudaredist.programs.program import AuditRequirements
    from cudaredist.programs.report import AuditReport, AuditReports
    from cudaredist.source_code.report import SourceReport

AuditFormat: TypeAlias = Literal[
    "text",
    "markdown",
    "github",
    "sarif",
    "requirements",
    "packages",
    "nix",
    "auditwheel-exclude",
]


_SOURCE_FORMATS = ("text", "markdown", "github", "sarif")
"""Formats of a report on source code."""


class AuditOptions(Options):
    """Options of audit."""

    typical = ("error", "require_gpu", "require_cuda", "require_glibc", "format")

    paths: list[Path] | None = argument(
        "Environments, wheels, programs, folders and archives. Default: the active environment.",
        metavar="[PATH]...",
    )
    error: str | None = select_option(
        "Message of an error to answer, or - to read standard input.", metavar="TEXT"
    )
    source: bool = select_option("Read source code, and compare its names.", default=False)
    package_set: Path | None = select_option(
        "Package set to use. Default: all local releases.", names="--set", metavar="FILE"
    )
    supplied_by: Path | None = select_option(
        "Package set that replaces the required wheels of NVIDIA.", metavar="FILE"
    )
    require_gpu: list[str] | None = gpu_option(
        "Require code for a GPU, or host: this machine's. Repeatable.", metavar="GPU"
    )
    require_cuda: str | None = cuda_option(
        "CUDA release that must have all symbols, or names of --source."
    )
    require_driver: str | None = select_option(
        "Driver on which the CUDA release must run.", metavar="VERSION"
    )
    require_glibc: str | None = select_option(
        "Newest glibc that it may require.", metavar="VERSION"
    )
    together: bool = select_option("Examine several wheels as one program.", default=False)
    sizes: bool = output_flag("Print sizes of files and device code.")
    no_bundled: bool = safety_option("Report copies of NVIDIA's libraries.")
    advisories: bool = safety_option("Report known vulnerabilities as findings.")
    format: AuditFormat = format_option("Format: text, markdown, github, sarif, or a list.")
    data: Data = field(default_factory=Data)
    cache_dir: Path | None = cache_dir_option()

    def programs(self) -> list[Path]:
        """Return the paths, or the active environment.

        None are needed to name the libraries in a message. Raises `UsageError` for another call
        without a path.
        """
        if self.paths:
            return self.paths
        from cudaredist.environments.active import ACTIVE, active_environments

        for folder in active_environments():
            return [Path(folder)]
        if self.error is not None:
            return []
        message = f"missing PATH: no environment is active ({' or '.join(ACTIVE)})"
        raise UsageError(message, hint=f"run `{again('.venv')}`")

    def message(self) -> str | None:
        """Return the message of an error.

        Of standard input, at most one byte more than the limit is read.
        """
        if self.error != "-":
            return self.error
        from cudaredist.environments.error_message import SIZE_LIMIT
        from cudaredist.store.files import read_standard_input

        return read_standard_input(SIZE_LIMIT).decode(errors="replace")

    def requirements(self) -> "AuditRequirements":
        """Return the required properties. Raises `UsageError` if this machine has no GPU."""
        from cudaredist.commands.audit.machine_gpus import HOST, machine_gpus
        from cudaredist.formats.settings import IgnoredFinding
        from cudaredist.programs.program import AuditRequirements

        gpus = [name for name in self.require_gpu or () if name != HOST]
        if HOST in (self.require_gpu or ()):
            gpus += machine_gpus()
        ignored = read_configuration().audit.get("ignore", ())
        return AuditRequirements(
            gpus=tuple(gpus),
            max_glibc=self.require_glibc,
            cuda=self.require_cuda,
            driver=self.require_driver,
            no_bundled=self.no_bundled,
            advisories=self.advisories,
            has_sizes=self.sizes,
            ignored=tuple(IgnoredFinding(**entry) for entry in ignored),
        )


_PROGRAM_OPTIONS = (
    "error",
    "set",
    "supplied-by",
    "require-gpu",
    "require-driver",
    "require-glibc",
    "together",
    "sizes",
    "no-bundled",
    "advisories",
)
"""Options that are about programs, not about source code."""


def _has_option(options: AuditOptions, name: str) -> bool:
    """Check if an option is set."""
    field_name = {"set": "package_set"}.get(name, name.replace("-", "_"))
    return bool(getattr(options, field_name))


REFUSED: tuple[Refusal[AuditOptions], ...] = (
    *(
        (
            lambda o, name=name: o.source and _has_option(o, name),
            f"--{name} cannot be combined with --source",
            [f"--{name}"],
        )
        for name in _PROGRAM_OPTIONS
    ),
    (
        lambda o: o.source and not o.paths,
        "--source requires PATH",
        "run `cudaredist audit --source .`",
    ),
    (
        lambda o: o.source and o.format not in _SOURCE_FORMATS,
        "--format {format} cannot be combined with --source",
        ["--format"],
    ),
    (
        lambda o: o.supplied_by is not None and o.package_set is not None,
        "--supplied-by cannot be combined with --set",
        ["--set"],
    ),
)


@command(AuditOptions, REFUSED)
def audit(options: AuditOptions, session: Session) -> int:
    """Report what a program needs of CUDA, and explain errors.

    Examples:

        cudaredist audit .venv  # needs .venv
        cudaredist audit dist/example.whl --require-gpu T4  # needs the wheel
        cudaredist audit --source src --require-cuda 13.0  # needs src

    Without PATH, the active environment is examined. --error answers the message of an error in an
    environment first: the loaded file, its package, and the first release with a missing symbol.
    Libraries are bundled, provided by a package of NVIDIA, by the driver or the system, or missing.
    In an installed environment, they are the files that the loader finds, and symbols are compared.
    The report also has the lowest CUDA release with all symbols, the GPUs that run the device code,
    and the required glibc. --supplied-by compares the program with a package set that replaces the
    wheels of NVIDIA. Several wheels are examined separately, unless --together is set.
    With --source, the names that C, C++ and CUDA code uses are compared with the headers of a CUDA
    release: names that it removed, changed or deprecates, by file and line.
    Nothing is executed. The exit code is 1 for findings, and 3 if an answer that an option requires
    is unknown. The lists are requirements, packages, nix and auditwheel-exclude.
    """
    if options.source:
        return _audit_source(options, session)
    from cudaredist.commands.audit import needed_lists, text
    from cudaredist.environments.audit_program import audit_programs

    store = session.read_store(options.data, reads_features=True)
    cache = open_cache(options.cache_dir)
    cache.sweep()
    report = audit_programs(
        options.programs(),
        store,
        options.requirements(),
        is_together=options.together,
        package_set=options.package_set,
        supplied_by=options.supplied_by,
        error=options.message(),
        cache=cache,
        progress=session.progress("reading"),
    )
    errors = [("", error) for program in report.programs for error in program.errors]
    is_list = not options.json and options.format not in {"text", "markdown", "github", "sarif"}
    if options.format == "github" and not options.json:
        session.close()
        outputs = text.audit_outputs(report, _written_report(report, session))
        session.show_on_github(text.audit_annotations(report), text.audit_markdown(report), outputs)
        session.errors(errors)
        return report.exit_code
    if is_list and options.format == "requirements":
        _require_wheels(report)
    formats = {
        "text": text.audit_text,
        "markdown": text.audit_markdown,
        **needed_lists.LISTS,
    }
    if options.format == "sarif":
        from cudaredist.commands.audit.sarif import audit_sarif

        formats["sarif"] = audit_sarif
    findings = (finding for program in report.programs for finding in program.findings)
    warnings = (
        f"{finding.kind}: {finding.message}"
        for finding in findings
        if is_list and finding.ignored is None
    )
    lines = formats.get(options.format)
    return session.finish(report, lines, warnings=warnings, errors=errors)


def _audit_source(options: AuditOptions, session: Session) -> int:
    """Report the names of source code that differ in a CUDA release."""
    from cudaredist.commands.audit import source_text
    from cudaredist.commands.audit.sarif import audit_sarif
    from cudaredist.commands.audit.text import audit_outputs
    from cudaredist.source_code.audit_source import audit_source

    index = session.open_index(options.data, options.cache_dir)
    required = options.requirements()
    progress = session.progress("reading")
    report = audit_source(options.paths or (), index, required.cuda, required.ignored, progress)
    if options.format == "github" and not options.json:
        session.close()
        outputs = audit_outputs(report, _written_report(report, session))
        summary = source_text.source_markdown(report)
        session.show_on_github(source_text.source_annotations(report), summary, outputs)
        return report.exit_code
    formats = {
        "text": source_text.source_text,
        "markdown": source_text.source_markdown,
        "sarif": audit_sarif,
    }
    return session.finish(report, formats[options.format])


def _require_wheels(report: "AuditReport | AuditReports") -> None:
    """Raise `UsageError` if the packages of a program are not wheels."""
    from cudaredist.commands.audit.needed_lists import lacks_wheels

    if any(map(lacks_wheels, report.programs)):
        hint = f"run `{again(channel='wheels')}`"
        raise UsageError("--format requirements requires --channel wheels", hint=hint)


def _written_report(
    report: "AuditReport | AuditReports | SourceReport", session: Session
) -> Path | None:
    """Write the report for later steps of a GitHub workflow, or warn if that fails."""
    from cudaredist.cli.text import report_json
    from cudaredist.primitives import sha256_of
    from cudaredist.store.files import write_file

    folder = os.environ.get("RUNNER_TEMP")
    if not folder:
        return None
    data = report_json(report).encode()
    path = Path(folder, f"cudaredist-audit-{sha256_of(data)[:16]}.json")
    try:
        write_file(path, data, durable=False)
    except WriteError as error:
        session.console.warning(error.message)
        return None
    return path
