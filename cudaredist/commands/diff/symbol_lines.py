"""A table of symbols with one symbol on each line, for `git diff`."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from cudaredist.errors import ReadingFrom
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.symbol_tables import ImportGroup, Symbols


def symbol_lines(path: Path) -> Iterator[str]:
    """Yield the archives of a table, and each symbol with its releases.

    Raises `ReadError` and `InvalidFileError`.
    """
    with ReadingFrom(path):
        data = path.read_bytes()
    table = read_own_file(data, Symbols)
    for one in table.providers:
        parts = (one.channel, one.redist, one.package, one.platform, one.variant)
        names = " ".join(filter(None, parts))
        for label, key in chain(one.releases.items(), one.unread.items()):
            unread = " unread" if label in one.unread else ""
            yield f"archive {names} {label} {key}{unread}"
    for group in (*table.exports, *table.imports):
        use, version = "export", group.version
        if isinstance(group, ImportGroup):
            use, version = f"import {group.library}", f"@{version}" if version else ""
        releases = " | ".join(group.releases) or "*"
        yield from (f"{use} {name}{version}: {releases}" for name in group.symbols())
