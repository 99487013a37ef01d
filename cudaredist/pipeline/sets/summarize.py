"""explain set: what a package set holds, how large it is by output, and what it lacks and why."""

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
    """Return what a person wants to see of a set.

    What splitting saves is told by what a program needs while it runs: of packages with an output
    `lib` that one alone.
    """
    files: Counter[OutputName] = Counter()
    sizes: Counter[OutputName] = Counter()
    rows, missing = [], []
    of_libraries = of_lib = 0
    for attr, package in package_set.packages.items():
        if package.alias_of is not None:
            continue
        if package.status != "available":
            reasons = "; ".join(reason.text for reason in package.reasons)
            missing.append(MissingPackage(package=attr, status=package.status, reason=reasons))
            continue
        outputs = {name: part.bytes for name, part in package.contents.items()}
        for name, part in package.contents.items():
            files[name] += part.files
            sizes[name] += part.bytes
        if "lib" in outputs:
            of_libraries += sum(outputs.values())
            of_lib += outputs["lib"]
        rows.append(
            SummarizedPackage(
                package=attr,
                version=package.version or "",
                redist=package.redist or "",
                outputs=package.outputs,
                size=outputs,
                coverage=package.coverage,
            )
        )
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
        packages=tuple(rows),
        totals=tuple(
            OutputTotal(output=name, files=files[name], size=sizes[name])
            for name in _ORDER
            if name in sizes
        ),
        library_bytes=of_libraries,
        library_lib_bytes=of_lib,
        missing=tuple(missing),
        diagnostics=package_set.diagnostics,
    )
