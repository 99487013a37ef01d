"""The formats of audit that are lists: requirements, packages, attributes and options."""

from collections.abc import Iterator

from cudaredist.programs.report import (
    AuditReport,
    AuditReports,
    DeclaredWheel,
    PipRequirement,
)
from cudaredist.words import listed, printable

_SHOWN = 2
_LOWER_BOUNDS = {
    "symbols": "",
    "oldest": "; oldest version in the data",
    "parts": "; first version that finds its own libraries",
    "missing": "; version unknown, because another library of its release is missing",
    "unknown": "; lowest version unknown",
    "none": "; no known version has all symbols",
}


def unnamed_wheels(report: AuditReport) -> list[DeclaredWheel]:
    """Return the declared wheels whose libraries the program may load when it runs."""
    return [wheel for wheel in report.declared if not wheel.sonames]


def lacks_wheels(report: AuditReport) -> bool:
    """Check if libraries are provided, but not by wheels."""
    providers = [provider for library in report.libraries for provider in library.providers]
    return bool(providers) and not any(provider.project for provider in providers)


def requirement_lines(report: AuditReport | AuditReports) -> Iterator[str]:
    """Yield lines for pip, with uncertain ones as comments."""
    for program in report.programs:
        if isinstance(report, AuditReports):
            yield f"# {printable(', '.join(program.paths))}:"
        yield from _program_requirements(program)


def _program_requirements(report: AuditReport) -> Iterator[str]:
    unnamed = dict.fromkeys(
        (wheel.requirement, wheel.is_optional) for wheel in unnamed_wheels(report)
    )
    if report.unread:
        files = listed(report.unread, _SHOWN)
        yield f"# Unknown: {files} cannot be read"
    elif not (
        report.requirements or unnamed or any(library.projects for library in report.libraries)
    ):
        release = "" if report.required_cuda is None else f" for CUDA {report.required_cuda}"
        yield f"# No file needs a wheel of NVIDIA{release}"
    several = len({wheel.cuda_major for wheel in report.requirements} - {None}) > 1
    major = None
    for wheel in report.requirements:
        if several and wheel.cuda_major not in {major, None}:
            major = wheel.cuda_major
            yield f"# CUDA {major}:"
        sonames = ", ".join(wheel.sonames)
        if wheel.project is None:
            yield f"# {requirement_line(wheel)}, by the CUDA major: {sonames}{mark(wheel)}"
        elif wheel.is_guess:
            yield f"# {requirement_line(wheel)}  # may open {sonames}"
        else:
            yield f"{requirement_line(wheel)}  # {sonames}{mark(wheel)}"
    for requirement, is_optional in unnamed:
        yield f"{'# ' if is_optional else ''}{requirement}  # declared; no file needs it by name"
    for library in report.libraries:
        if library.projects:
            projects = " or ".join(library.projects)
            yield f"# {projects}  # {library.soname}; not in the data, so the version is unknown"


def mark(wheel: PipRequirement) -> str:
    """Return the reason for an unusual bound."""
    mixed = "; needed by a file of several CUDA majors" if wheel.is_mixed else ""
    return _LOWER_BOUNDS[wheel.lower_bound] + mixed


def requirement_line(wheel: PipRequirement) -> str:
    """Return a requirement, or the projects for different CUDA majors."""
    return " or ".join(wheel.alternatives) or f"{wheel.project}{wheel.specifier}"


def package_lines(report: AuditReport | AuditReports) -> Iterator[str]:
    """Yield the arguments of materialize that select the needed packages."""
    names = {name for program in report.programs for name in needed_packages(program)}
    yield from (f"--component {name}" for name in sorted(names))


def nix_lines(report: AuditReport | AuditReports) -> Iterator[str]:
    """Yield the attributes of nixpkgs with the needed packages."""
    yield from sorted(set().union(*map(_attributes, report.programs)))


def exclude_lines(report: AuditReport | AuditReports) -> Iterator[str]:
    """Yield the options of `auditwheel repair` that exclude libraries of NVIDIA and the driver."""
    needed = (
        library
        for program in report.programs
        for library in program.libraries
        if library.kind == "needed"
    )
    names = {
        library.soname
        for library in needed
        if not library.bundled and (library.cuda or library.projects)
    }
    yield from (f"--exclude {name}" for name in sorted(names))


def _attributes(report: AuditReport) -> set[str]:
    majors = report.cuda_majors
    attribute = f"cudaPackages_{majors[0]}" if len(majors) == 1 else "cudaPackages"
    return {f"{attribute}.{name}" for name in needed_packages(report)}


def needed_packages(report: AuditReport) -> list[str]:
    """Return the packages with needed libraries, sorted."""
    needed = (library for library in report.libraries if library.kind in {"needed", "unlinked"})
    provided = (library for library in needed if library.status == "provided")
    return sorted({provider.package for library in provided for provider in library.providers})


LISTS = {
    "requirements": requirement_lines,
    "packages": package_lines,
    "nix": nix_lines,
    "auditwheel-exclude": exclude_lines,
}
"""The functions that yield the lines of each list."""
