"""Find the GPU capabilities that a package gained or lost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from cudaredist.commands.diff.report import Delta
from cudaredist.grouping import grouped
from cudaredist.primitives import natural_order

COVERAGE = "coverage"
COVERAGE_PREFIX = f"{COVERAGE} "
"""The beginning of the fields with the coverage of a capability."""
_BEST_FIRST = ("native", "ptx", "lto", "partial", "none")
_UNKNOWN = len(_BEST_FIRST)


def is_coverage(field: str) -> bool:
    """Check if a field is the coverage of a capability."""
    return field.startswith(COVERAGE_PREFIX)


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
            places[field.removeprefix(COVERAGE_PREFIX), old, new].append(place)
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
