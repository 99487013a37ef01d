"""explain set: packages, sizes by output, and missing packages."""

from collections import Counter

from cudaredist.pipeline.sets.build_sets import count_statuses
from cudaredist.reports.set_reports import (
    MissingPackage,
    OutputTotal,
    SetSummary,
    SummarizedPackage,
)
from cudaredist.schema.base import OutputName
from cudaredist.schema.packageset import PackageSet

_ORDER: tuple[OutputName, ...] = (
    *("out", "bin", "lib", "include", "dev", "static", "stubs", "samples", "python", "doc"),
)


def summarize(asked: str, package_set: PackageSet) -> SetSummary:
    """Return the summary of a package set.

    Includes the size of all packages with an output `lib`, and the size of these outputs alone. The
    difference is the saving of split outputs for a program's run time.
    """
    own = {name: one for name, one in package_set.packages.items() if one.alias_of is None}
    available = {name: one for name, one in own.items() if one.status == "available"}
    files: Counter[OutputName] = Counter()
    sizes: Counter[OutputName] = Counter()
    for package in available.values():
        for output, part in package.contents.items():
            files[output] += part.files
            sizes[output] += part.bytes
    with_libraries = [one.contents for one in available.values() if "lib" in one.contents]
    return SetSummary(
        asked=asked,
        attribute=package_set.cuda.attribute,
        cuda=package_set.cuda.release,
        platform=package_set.platform.redist_system,
        channel=package_set.channel,
        counts=count_statuses(package_set),
        capabilities=package_set.capabilities.effective,
        host_compiler=package_set.host_compiler,
        driver=package_set.driver,
        packages=tuple(
            SummarizedPackage(
                package=name,
                version=one.version or "",
                redist=one.redist or "",
                outputs=one.outputs,
                size={output: part.bytes for output, part in one.contents.items()},
                coverage=one.coverage,
            )
            for name, one in available.items()
        ),
        totals=tuple(
            OutputTotal(output=output, files=files[output], size=sizes[output])
            for output in _ORDER
            if output in sizes
        ),
        library_bytes=sum(part.bytes for outputs in with_libraries for part in outputs.values()),
        library_lib_bytes=sum(outputs["lib"].bytes for outputs in with_libraries),
        missing=tuple(
            MissingPackage(
                package=name,
                status=one.status,
                reason="; ".join(reason.text for reason in one.reasons),
            )
            for name, one in own.items()
            if name not in available
        ),
        diagnostics=package_set.diagnostics,
    )
