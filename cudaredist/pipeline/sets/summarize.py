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


def summarize(name: str, package_set: PackageSet) -> SetSummary:
    """Return the summary of a package set.

    Includes the size of all packages with an output `lib`, and the size of these outputs alone. The
    difference is the saving of split outputs for a program's run time.
    """
    files: Counter[OutputName] = Counter()
    sizes: Counter[OutputName] = Counter()
    rows, missing = [], []
    library_bytes = lib_output_bytes = 0
    for attr, package in package_set.packages.items():
        if package.alias_of is not None:
            continue
        if package.status != "available":
            reasons = "; ".join(reason.text for reason in package.reasons)
            missing.append(MissingPackage(package=attr, status=package.status, reason=reasons))
            continue
        outputs = {output: part.bytes for output, part in package.contents.items()}
        for output, part in package.contents.items():
            files[output] += part.files
            sizes[output] += part.bytes
        if "lib" in outputs:
            library_bytes += sum(outputs.values())
            lib_output_bytes += outputs["lib"]
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
        asked=name,
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
            OutputTotal(output=output, files=files[output], size=sizes[output])
            for output in _ORDER
            if output in sizes
        ),
        library_bytes=library_bytes,
        library_lib_bytes=lib_output_bytes,
        missing=tuple(missing),
        diagnostics=package_set.diagnostics,
    )
