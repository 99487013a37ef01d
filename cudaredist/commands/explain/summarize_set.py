"""explain set: packages, sizes by output, and missing packages."""

from cudaredist.commands.explain.set_report import (
    MissingPackage,
    OutputTotal,
    SetSummary,
    SummarizedPackage,
)
from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.grouping import grouped
from cudaredist.sets.assemble import count_statuses
from cudaredist.sets.closures import closure_of
from cudaredist.tables.advisories.answers import vulnerabilities_of_set
from cudaredist.tables.advisories.states import KnownVulnerabilities

_ORDER: tuple[OutputName, ...] = (
    "out",
    "bin",
    "lib",
    "include",
    "dev",
    "static",
    "stubs",
    "samples",
    "python",
    "doc",
)


def summarize(asked: str, package_set: PackageSet, known: KnownVulnerabilities) -> SetSummary:
    """Return the summary of a package set.

    Includes the size of all packages with an output `lib`, and the size of these outputs alone. The
    difference is the saving of split outputs for a program's run time.
    """
    available = package_set.available
    contents = [package.contents for package in available.values()]
    outputs = grouped(item for parts in contents for item in parts.items())
    with_libraries = [parts for parts in contents if "lib" in parts]
    return SetSummary(
        asked=asked,
        attribute=package_set.full_name,
        cuda=package_set.cuda.release,
        platform=package_set.platform.redist_system,
        channel=package_set.channel,
        counts=count_statuses(package_set),
        capabilities=package_set.capabilities.effective,
        host_compiler=package_set.host_compiler,
        driver=package_set.driver,
        packages=tuple(
            _summarized(name, package, package_set) for name, package in available.items()
        ),
        totals=tuple(
            OutputTotal(
                output=output,
                files=sum(part.files for part in outputs[output]),
                size=sum(part.bytes for part in outputs[output]),
            )
            for output in _ORDER
            if output in outputs
        ),
        library_bytes=sum(part.bytes for parts in with_libraries for part in parts.values()),
        library_lib_bytes=sum(parts["lib"].bytes for parts in with_libraries),
        missing=tuple(
            MissingPackage(
                package=name,
                status=package.status,
                reason="; ".join(reason.text for reason in package.reasons),
            )
            for name, package in package_set.own.items()
            if name not in available
        ),
        diagnostics=package_set.diagnostics,
        vulnerabilities=vulnerabilities_of_set(known, package_set),
    )


def _summarized(name: str, package: SetPackage, package_set: PackageSet) -> SummarizedPackage:
    """Return the summary of an available package."""
    closure = closure_of(package_set, name)
    return SummarizedPackage(
        package=name,
        version=package.version or "",
        redist=package.redist or "",
        outputs=package.outputs,
        size={output: part.bytes for output, part in package.contents.items()},
        closure=None if closure is None else closure.size,
        optional_closure=None if closure is None else closure.optional,
        coverage=package.coverage,
        distribution=package.license.distribution,
    )
