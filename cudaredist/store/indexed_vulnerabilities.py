"""Known vulnerabilities of packages by the index, for lookups.

They need neither the bulletins nor the decisions: the index has the state of each archive.
"""

import json
from collections.abc import Collection
from typing import NamedTuple

from cudaredist.formats.package_vulnerability import PackageVulnerability, VulnerabilityStateName
from cudaredist.grouping import grouped
from cudaredist.primitives import Version, natural_order
from cudaredist.store.documents import ADVISORY_TABLES
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.advisories.texts import SERIOUS


class _Row(NamedTuple):
    label: str
    platform: str
    cve: str
    state: VulnerabilityStateName
    reason: str
    fixed: str | None
    components: str
    score: float | None
    vector: str | None
    bulletin: str
    url: str


_ROWS = Question(
    _Row,
    """
    SELECT DISTINCT label, platform, cve, state, reason, fixed, components, score, vector, bulletin,
        vulnerabilities.url
    FROM archives
        CROSS JOIN vulnerabilities ON archive = archives.id -- few archives have any
        JOIN current_releases ON current_releases.id = release
    WHERE package = ? AND redist = ?""",
)


def indexed_vulnerabilities(
    index: Index, redist: str, package: str, archives: Collection[tuple[str, str]]
) -> tuple[PackageVulnerability, ...]:
    """Return the vulnerabilities that affect archives of a package, or may affect them.

    `archives` are labels with platforms. A release has the most severe state of its archives. The
    highest scores are first. Raises the error of a file with bulletins that cannot be read.
    """
    if any(document.name in ADVISORY_TABLES for document in index.unreadable()):
        from cudaredist.store.known_vulnerabilities import (  # noqa: PLC0415 - lookups need no bulletins
            known_vulnerabilities,
        )

        known_vulnerabilities(index.store)
    rows = [row for row in index.ask(_ROWS, package, redist) if row[:2] in archives]
    by_release: dict[tuple[str, str], _Row] = {}
    for row in sorted(rows, key=lambda row: -SERIOUS.index(row.state)):
        by_release[row.cve, row.label] = row
    by_state = grouped(((row.cve, row.state), row) for row in by_release.values())
    entries = [_entry(redist, package, own) for own in by_state.values()]
    return tuple(sorted(entries, key=_order))


def _order(one: PackageVulnerability) -> tuple[object, ...]:
    """Order vulnerabilities by score, name and state."""
    return (-(one.score or 0), natural_order(one.cve), SERIOUS.index(one.state))


def _entry(redist: str, package: str, rows: Collection[_Row]) -> PackageVulnerability:
    """Return the entry for the releases with one state, in their order."""
    in_order = sorted(rows, key=lambda row: Version.parse(row.label))
    first = in_order[0]
    return PackageVulnerability(
        cve=first.cve,
        bulletin=first.bulletin,
        url=first.url,
        score=first.score,
        vector=first.vector,
        components=tuple(json.loads(first.components)),
        redist=redist,
        package=package,
        state=first.state,
        reason=first.reason,
        fixed=first.fixed,
        releases=tuple(row.label for row in in_order),
    )
