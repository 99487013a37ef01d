"""Find the GPU capabilities that a package gained or lost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from cudaredist.commands.diff.report import Delta
from cudaredist.formats.coverage import Coverage
from cudaredist.formats.features import ExaminedArchive
from cudaredist.grouping import grouped
from cudaredist.primitives import Platform, natural_order
from cudaredist.tables.gpus.coverage import CoverageRules, describe_coverage

COVERAGE = "coverage"
_PREFIX = f"{COVERAGE} "
_BEST_FIRST = ("native", "ptx", "lto", "partial", "none")
_UNKNOWN = len(_BEST_FIRST)


def coverage_fields(coverage: Mapping[str, Coverage]) -> dict[str, str]:
    """Return a field with the coverage of each capability."""
    return {f"{_PREFIX}{name}": describe_coverage(part) for name, part in coverage.items()}


def archive_coverage(
    archive: ExaminedArchive, cuda: int | None, rules: CoverageRules
) -> dict[str, str]:
    """Return an archive's fields for the GPUs of its platform.

    `cuda` is the CUDA major of the archive, if it is known. Returns none if the device code is
    unknown.
    """
    if archive.code_by_file is None:
        return {}
    platform = Platform(archive.platform)
    names = [str(capability) for capability in rules.capabilities_on(platform)]
    return coverage_fields(rules.cover(tuple(archive.code_by_file.values()), names, cuda))


def is_coverage(field: str) -> bool:
    """Check if a field is the coverage of a capability."""
    return field.startswith(_PREFIX)


def coverage_deltas(
    before: Mapping[tuple[str, str], object], after: Mapping[tuple[str, str], object]
) -> Iterator[Delta]:
    """Yield the changes of coverage. Equal changes are one.

    Only a change between native, ptx, lto, partial and none counts. A change of the share of
    modules does not.
    """
    places: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for field, place in before.keys() & after.keys():
        if not is_coverage(field):
            continue
        old, new = str(before[field, place]), str(after[field, place])
        ranks = {_rank(old), _rank(new)}
        if len(ranks) > 1 and _UNKNOWN not in ranks:
            places[field.removeprefix(_PREFIX), old, new].append(place)
    gpus_by_change = grouped(
        ((old, new, tuple(sorted(filter(None, same)))), gpu)
        for (gpu, old, new), same in places.items()
    )
    for gpus in gpus_by_change.values():
        gpus.sort(key=natural_order)
    in_order = sorted(
        gpus_by_change.items(), key=lambda item: (list(map(natural_order, item[1])), item[0])
    )
    for (old, new, common_places), gpus in in_order:
        side = "gone" if _rank(old) < _rank(new) else "added"
        change = Delta(field=COVERAGE, places=common_places, old=old, new=new)
        yield change.changed(**{side: tuple(gpus)})


def _rank(text: str) -> int:
    """Return a coverage's rank. A package without device code has the rank of unknown coverage."""
    value = text.partition(" ")[0].rstrip(":")
    return _BEST_FIRST.index(value) if value in _BEST_FIRST else _UNKNOWN
