"""The invariant of coverage in a package set: it is complete and agrees with its own counts."""

from collections.abc import Iterator

from cudaredist.schema.packageset import Coverage, PackageSet


def check_coverage(package_set: PackageSet) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the coverage of a package, by the package.

    Sets by earlier versions state no coverage at all.
    """
    effective = package_set.capabilities.effective
    entries = [entry for entry in package_set.packages.values() if entry.alias_of is None]
    if not any(entry.coverage for entry in entries):
        return
    for entry in entries:
        expected = effective if entry.status in {"available", "broken"} else ()
        if set(entry.coverage) != set(expected):
            stated = ", ".join(entry.coverage) or "none"
            yield entry.attr, f"states coverage of {stated}, not of {', '.join(expected) or 'none'}"
        for name, part in entry.coverage.items():
            if not _agrees(part):
                yield entry.attr, f"its coverage of {name} is {part.value}, and the counts disagree"


def _agrees(part: Coverage) -> bool:
    """Check if a value of coverage agrees with the counts of files and modules."""
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
