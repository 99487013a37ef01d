"""What license texts permit for the copies of NVIDIA's libraries in a program."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from cudaredist.formats.names import DISTRIBUTION_WORDS, Distribution
from cudaredist.grouping import grouped
from cudaredist.programs.report import AuditedLibrary
from cudaredist.store.facts_index import Index, Question
from cudaredist.words import listed

_SHOWN = 3


class _Distribution(NamedTuple):
    soname: str
    package: str
    distribution: Distribution


_DISTRIBUTIONS = Question(
    _Distribution,
    """
    SELECT DISTINCT soname, package, distribution
    FROM binaries JOIN distributions USING (contents, path)
    JOIN archives USING (contents) JOIN current_releases ON release = current_releases.id
    WHERE soname IN (SELECT value FROM json_each(?)) AND kind = 'library'
        AND platform IN (SELECT value FROM json_each(?))
    ORDER BY soname, package, distribution""",
)


def bundled_license_notes(
    libraries: Iterable[AuditedLibrary], platforms: Collection[str], index: Index
) -> Iterator[str]:
    """Yield whether license texts list the bundled copies of NVIDIA's libraries as distributable.

    The text is that of NVIDIA's archives with the library. If texts differ, all answers count.
    """
    sonames = {library.soname for library in libraries if library.bundled}
    if not sonames:
        return
    rows = index.ask(_DISTRIBUTIONS, sonames, platforms)
    by_library = grouped(((row.soname, row.package), row.distribution) for row in rows)
    kinds = grouped(
        (tuple(kinds), f"{soname} ({package})") for (soname, package), kinds in by_library.items()
    )
    for own, names in kinds.items():
        answer = ", or by release ".join(DISTRIBUTION_WORDS[kind] for kind in own)
        yield f"by NVIDIA's license texts, {listed(names, _SHOWN)}: {answer}"
