"""Invariant of coverage: complete, and consistent with its counts."""

from collections.abc import Iterator

from cudaredist.formats.coverage import Coverage
from cudaredist.formats.packageset import PackageSet


def check_coverage(package_set: PackageSet) -> Iterator[tuple[str, str]]:
    """Yield each package with wrong coverage, and the problem.

    Sets by earlier versions contain no coverage at all.
    """
    effective = package_set.capabilities.effective
    entries = package_set.own.values()
    if not any(entry.coverage for entry in entries):
        return
    for entry in entries:
        expected = effective if entry.status in {"available", "broken"} else ()
        if set(entry.coverage) != set(expected):
            stated = ", ".join(entry.coverage) or "none"
            yield entry.attr, f"has coverage of {stated}, not of {', '.join(expected) or 'none'}"
        for name, part in entry.coverage.items():
            if not _agrees(part):
                yield entry.attr, f"has {part.value} coverage of {name}, but its counts disagree"


def _agrees(part: Coverage) -> bool:
    """Check if a coverage value agrees with its counts."""
    used = part.native + part.ptx + part.lto
    if part.value in {"host-only", "unknown"}:
        return not (used or part.all_files or part.modules)
    is_whole = part.files == part.all_files
    agrees = part.all_files > 0 and part.files <= part.all_files and used <= part.modules
    match part.value:
        case "none":
            return agrees and used == 0 == part.files
        case "partial":
            return agrees and used > 0 and not is_whole
        case _:
            return agrees and is_whole and getattr(part, part.value) > 0
