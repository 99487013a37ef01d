"""Coverage of packages, used for selection and in diagnostics."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from cudaredist.formats.coverage import Coverage, CoverageValue
from cudaredist.formats.features import ExaminedArchive
from cudaredist.formats.packageset import Diagnostic, SetPackage
from cudaredist.grouping import grouped
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version
from cudaredist.sets.inputs import SetData
from cudaredist.sets.outputs import OutputSplit, split_outputs
from cudaredist.sets.requirements import SetTarget
from cudaredist.tables.gpus.coverage import CoverageRules, describe_share

RequiredCoverage: TypeAlias = Literal["native", "ptx"]

_LEVELS: dict[CoverageValue, Literal["note", "warning"]] = {
    "none": "warning",
    "partial": "warning",
    "unknown": "note",
}
JETSON_UNKNOWN = "jetson-unknown"
"""The code of the diagnostic for a Jetson that may run code for other GPUs."""
COVERAGE_WARNINGS = frozenset({"coverage-none", "coverage-partial"})
"""Codes of diagnostics that can refuse a set if its capabilities were requested."""

_TEXTS: dict[CoverageValue, str] = {
    "none": "no code for {names}",
    "partial": "partial code for {names}{share}",
    "lto": "only LTO code for {names}",
    "ptx": "only PTX for {names}",
    "unknown": "coverage of {names} is unknown",
}
_ACCEPTED: dict[RequiredCoverage, frozenset[CoverageValue]] = {
    "native": frozenset({"native", "host-only"}),
    "ptx": frozenset({"native", "ptx", "host-only"}),
}


def package_coverage(
    split: OutputSplit | None, capabilities: Sequence[str], cuda: Version, data: SetData
) -> dict[str, Coverage]:
    """Return the coverage of each capability by a package in a set of a CUDA release."""
    files = split.examined.code_by_file if split else None
    if split is None or files is None:
        return dict.fromkeys(capabilities, Coverage(value="unknown"))
    placed = [code for path, code in files.items() if split.place(path) is not None]
    return data.coverage_rules.cover(placed, capabilities, release=cuda)


def coverage_problem(
    examined: ExaminedArchive | None,
    archive: Archive,
    target: SetTarget,
    least: RequiredCoverage,
    data: SetData,
) -> str | None:
    """Return the gaps in an archive's required coverage, or None."""
    split = None
    if examined is not None:
        policy = data.policies.outputs
        split = split_outputs(archive.package, archive.version, examined, target.cuda, policy)
    coverage = package_coverage(split, target.capabilities, target.cuda, data)
    lacking = {name: part for name, part in coverage.items() if part.value not in _ACCEPTED[least]}
    return "; ".join(_reasons(lacking)) or None


def coverage_diagnostics(packages: Mapping[str, SetPackage]) -> Iterator[Diagnostic]:
    """Yield diagnostics for gaps in the coverage of packages.

    `jetson_diagnostics` are those for Jetsons that may run code for other GPUs.
    """
    for attr, package in packages.items():
        if package.status != "available" or package.alias_of is not None or not package.contents:
            continue
        for value, level in _LEVELS.items():
            lacking = {
                gpu: part
                for gpu, part in package.coverage.items()
                if part.value == value and not part.by_desktop_code
            }
            for text in _reasons(lacking):
                yield Diagnostic(level=level, code=f"coverage-{value}", subject=attr, text=text)


def jetson_diagnostics(
    packages: Mapping[str, SetPackage], rules: CoverageRules
) -> Iterator[Diagnostic]:
    """Yield a warning for each Jetson that may run code for other GPUs, with its packages."""
    unknown = grouped(
        (gpu, attr)
        for attr, package in packages.items()
        if package.status == "available" and package.alias_of is None
        for gpu, part in package.coverage.items()
        if part.by_desktop_code and part.value == "unknown"
    )
    for gpu, attrs in unknown.items():
        fact = rules.desktop_code(gpu)
        if fact is not None:
            text = (
                f"whether {gpu} runs {', '.join(attrs)}, which have code for other GPUs only, is "
                f"unknown before CUDA {fact.value}: {fact.reason} ({fact.reference})"
            )
            yield Diagnostic(level="warning", code=JETSON_UNKNOWN, subject=gpu, text=text)


def _reasons(lacking: Mapping[str, Coverage]) -> Iterator[str]:
    """Yield the gaps in coverage, each with its capabilities."""
    groups: dict[tuple[CoverageValue, str], list[str]] = {}
    for name, coverage in lacking.items():
        share = f" ({describe_share(coverage)})" if coverage.value == "partial" else ""
        groups.setdefault((coverage.value, share), []).append(name)
    for (value, share), names in groups.items():
        yield _TEXTS[value].format(names=", ".join(names), share=share)
