"""Compare two sides: packages added, removed and changed."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cudaredist.commands.diff.comparable import Comparable, Fields, Value
from cudaredist.commands.diff.coverage_changes import coverage_deltas, is_coverage
from cudaredist.commands.diff.file_changes import file_changes, run_path_changes
from cudaredist.commands.diff.moves import moved_files, origins_by_files
from cudaredist.commands.diff.report import Delta, DiffReport, PackageDelta
from cudaredist.commands.diff.variants import align_variants, places_of, without_platforms_of
from cudaredist.primitives import Version, natural_order

if TYPE_CHECKING:
    from cudaredist.formats.policy import NamePolicy

_BREAKING_FIRST = (
    "status",
    "sha256",
    "exports",
    "platforms",
    "variants",
    "outputs",
    "sonames",
    "needed",
    "glibc",
    "coverage",
    "architectures",
    "depends",
    "license",
    "version",
    "size",
    "archive size",
    "closure size",
)
"""Fields, most important first."""

SIZES = frozenset({"size", "archive size", "closure size"})
_SIGNIFICANT_RATIO = 1.1
"""All sizes change between versions. Report those that changed by a tenth."""


def compare(old: Comparable, new: Comparable, names: "NamePolicy | None" = None) -> DiffReport:
    """Return the differences between two sides.

    If the sides are swapped, the result is the same with its sides swapped. `names` has the renamed
    and split packages. Others are found by their files, if these are known.
    """
    moves = moved_files(old, new)
    origins = dict(origins_by_files(old, new, moves)) | _origins(old, new, names)
    names_of_sides = sorted(old.packages.keys() | new.packages.keys())
    deltas = (
        _package_delta(name, old.packages.get(name), new.packages.get(name), origins)
        for name in names_of_sides
    )
    packages = tuple(delta for delta in deltas if delta is not None)
    # If a table lacks one of the releases, compilers and GPUs are not compared.
    tables = [
        delta
        for table in old.tables.keys() & new.tables.keys()
        for delta in _field_deltas(old.tables[table], new.tables[table])
    ]
    return DiffReport(
        old=old.name,
        new=new.name,
        packages=packages,
        platforms=_platforms(_all_places(old), _all_places(new)),
        moves=moves,
        files=file_changes(old, new),
        run_paths=run_path_changes(old, new),
        tables=tuple(sorted(tables, key=lambda delta: delta.field)),
        equal=len(names_of_sides) - len(packages),
    )


def may_break(delta: Delta) -> bool:
    """Check if a change may break users of the package.

    Such a change removes something, or adds a requirement.
    """
    match delta.field:
        case "status":
            return delta.old == "available"
        case "license":
            words = {_license_words(side) for side in (delta.old, delta.new) if side is not None}
            return len(words) > 1
        case "glibc":
            return Version.parse(delta.new or "0") > Version.parse(delta.old or "0")
        case "variants":
            return False  # the same archives, listed in another form
        case "needed" | "depends":
            return bool(delta.added)
        case _:
            return bool(delta.gone)


def _license_words(text: str) -> frozenset[str]:
    """Return a license's words, without variations of spelling."""
    words = re.split(r"[^a-z0-9.]+", text.lower())
    return frozenset(words) - {"", "eula", "library", "license", "licenseref", "software"}


def _origins(old: Comparable, new: Comparable, names: "NamePolicy | None") -> dict[str, str]:
    """Return the origin of each one-sided package."""
    added = new.packages.keys() - old.packages.keys()
    gone = old.packages.keys() - new.packages.keys()
    origins: dict[str, str] = {}
    if names is not None:
        for name, rename in names.renames.items():
            for before, after in ((name, rename.to), (rename.to, name)):
                if before in gone and after in added:
                    origins[before], origins[after] = after, before
        for name, split in names.splits.items():
            for part in split.into:
                # The split package may exist on both sides.
                is_part = (part in added and name in old.packages) or (
                    part in gone and name in new.packages
                )
                if is_part:
                    origins.setdefault(part, name)
    return origins


def _package_delta(
    name: str, before: Fields | None, after: Fields | None, origins: Mapping[str, str]
) -> PackageDelta | None:
    """Return the changes of a package, or None if it is equal on both sides."""
    parts = tuple(sorted(part for part, origin in origins.items() if origin == name))
    if before is not None and after is not None:
        deltas = tuple(_deltas(*align_variants(before, after)))
        delta = PackageDelta(package=name, status="changed", parts=parts, deltas=deltas)
        return delta if deltas or parts else None
    old, new = before or {}, after or {}
    return PackageDelta(
        package=name,
        status="added" if before is None else "gone",
        origin=origins.get(name),
        parts=tuple(part for part in parts if part != origins.get(name)),
        deltas=tuple(
            _delta(field, old.get((field, "")), new.get((field, "")))
            for field in ("version", "platforms")
            if (old | new).get((field, ""))
        ),
    )


def _all_places(side: Comparable) -> frozenset[str]:
    return frozenset().union(*map(places_of, side.packages.values()))


def _platforms(old: frozenset[str], new: frozenset[str]) -> Delta | None:
    added, gone = without_platforms_of(new, old), without_platforms_of(old, new)
    return _delta("platforms", gone, added) if added or gone else None


def _deltas(before: Fields, after: Fields) -> Iterator[Delta]:
    is_same_version = before.get(("version", "")) == after.get(("version", ""))
    deltas = [
        delta for delta in _field_deltas(before, after) if is_same_version or _is_significant(delta)
    ]
    yield from sorted(deltas, key=lambda d: (_rank(d.field), d.field, d.places))


def _is_significant(delta: Delta) -> bool:
    """Check if a change is unusual for a new version."""
    if delta.field in SIZES:
        small, large = sorted((int(delta.old or 0), int(delta.new or 0)))
        return large > _SIGNIFICANT_RATIO * small
    return delta.field != "sha256"


def _field_deltas(before: Fields, after: Fields) -> Iterator[Delta]:
    """Yield the changes. Equal changes of several places are one."""
    # If one side lacks a place, the field `platforms` reports it.
    one_sided = {key for key in before.keys() ^ after.keys() if key[1]}
    changes: dict[Delta, list[str]] = defaultdict(list)
    for field, place in (before.keys() | after.keys()) - one_sided:
        old, new = before.get((field, place)), after.get((field, place))
        if old != new and (old or new) and not is_coverage(field):
            changes[_delta(field, old, new)].append(place)
    for delta, places in changes.items():
        yield delta.changed(places=tuple(sorted(filter(None, places))))
    yield from coverage_deltas(before, after)


def _delta(field: str, old: Value | None, new: Value | None) -> Delta:
    if isinstance(old, frozenset) or isinstance(new, frozenset):
        before = old if isinstance(old, frozenset) else frozenset()
        after = new if isinstance(new, frozenset) else frozenset()
        added, gone = _sorted(after - before), _sorted(before - after)
        return Delta(field=field, places=(), added=added, gone=gone)
    return Delta(field=field, places=(), old=old or None, new=new or None)


def _sorted(names: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_order))


def _rank(field: str) -> int:
    return _BREAKING_FIRST.index(field) if field in _BREAKING_FIRST else len(_BREAKING_FIRST)
