"""Symbols that the libraries of a package export on one side of a comparison only."""

from collections.abc import Iterator

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.formats.features import ExaminedArchive, Features
from cudaredist.primitives import Place, place_name
from cudaredist.store.symbol_folder import LayeredSymbols, table_name
from cudaredist.tables.symbols.library_release import library_release

EXPORTS = "exports"
_SEPARATOR = ":"


def exports_by_place(
    features: Features, symbols: LayeredSymbols
) -> Iterator[tuple[str, Place, frozenset[str]]]:
    """Yield package, place and exports of each archive whose libraries all have a table."""
    for name, package in features.packages.items():
        for archive in package.archives:
            if not isinstance(archive, ExaminedArchive) or archive.sha256 is None:
                continue
            releases = {
                soname: library_release(symbols.documents(soname), archive.sha256)
                for soname in sorted({table_name(one) for one in archive.libraries if not one.stub})
            }
            found = frozenset(
                f"{soname}{_SEPARATOR}{export}"
                for soname, release in releases.items()
                if release is not None
                for export in release.exports
            )
            if releases and None not in releases.values():
                yield name, place_name(archive.platform, archive.variant), found


def keep_common_libraries(old: Comparable, new: Comparable) -> None:
    """Leave out the exports of libraries that one side alone has: their soname is a change."""
    for package in old.packages.keys() & new.packages.keys():
        sides = old.packages[package], new.packages[package]
        for key in [key for key in (*sides[0], *sides[1]) if key[0] == EXPORTS]:
            values = [side.get(key) for side in sides]
            common = frozenset.intersection(*map(_libraries, values))
            for side, value in zip(sides, values, strict=True):
                kept = frozenset(name for name in value or () if _library(name) in common)
                side[key] = kept


def _library(name: str) -> str:
    return name.partition(_SEPARATOR)[0]


def _libraries(value: object) -> frozenset[str]:
    return frozenset(map(_library, value)) if isinstance(value, frozenset) else frozenset()
