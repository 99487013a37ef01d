"""Capabilities that a package gained or lost, with the shares of its device code that run."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from cudaredist.primitives import Platform, natural_order
from cudaredist.reports.answer_reports import Delta
from cudaredist.schema.features import ExaminedArchive
from cudaredist.schema.packageset import Coverage
from cudaredist.tables.gpus.coverage import CoverageRules, describe_coverage

COVERAGE = "coverage"
_PREFIX = f"{COVERAGE} "
_BEST_FIRST = ("native", "ptx", "lto", "partial", "none")


def coverage_fields(coverage: Mapping[str, Coverage]) -> dict[str, str]:
    """Return a field for each capability, with the coverage in words."""
    return {f"{_PREFIX}{name}": describe_coverage(part) for name, part in coverage.items()}


def archive_coverage(archive: ExaminedArchive, rules: CoverageRules) -> dict[str, str]:
    """Return the fields of an archive, for the GPUs that its platform has; none if unknown."""
    if archive.code_by_file is None:
        return {}
    platform = Platform(archive.platform)
    names = [str(capability) for capability in rules.capabilities_on(platform)]
    return coverage_fields(rules.cover(tuple(archive.code_by_file.values()), names))


def is_coverage(field: str) -> bool:
    """Check if a field is the coverage of a capability."""
    return field.startswith(_PREFIX)


def coverage_deltas(
    before: Mapping[tuple[str, str], object], after: Mapping[tuple[str, str], object]
) -> Iterator[Delta]:
    """Yield what changed from one way of running to another, equal changes together.

    Other shares of modules with the same way of running are no change.
    """
    places: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for field, place in before.keys() & after.keys():
        was, now = str(before[field, place]), str(after[field, place])
        ranks = (_rank(was), _rank(now))
        if is_coverage(field) and None not in ranks and ranks[0] != ranks[1]:
            places[field.removeprefix(_PREFIX), was, now].append(place)
    names: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (name, was, now), found in places.items():
        names[was, now, tuple(sorted(filter(None, found)))].append(name)
    ordered = {key: tuple(sorted(found, key=natural_order)) for key, found in names.items()}
    by_capability = sorted(
        ordered.items(), key=lambda item: (*map(natural_order, item[1]), item[0])
    )
    for (was, now, found_places), capabilities in by_capability:
        is_lost = (_rank(was) or 0) < (_rank(now) or 0)
        yield Delta(
            field=COVERAGE,
            places=found_places,
            old=was,
            new=now,
            added=() if is_lost else capabilities,
            gone=capabilities if is_lost else (),
        )


def _rank(text: str) -> int | None:
    """Return the rank of a way of running; None if there is no device code, or it is unknown."""
    value = text.partition(" ")[0].rstrip(":")
    return _BEST_FIRST.index(value) if value in _BEST_FIRST else None
