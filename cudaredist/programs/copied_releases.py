"""The releases of NVIDIA's libraries that a program contains copies of.

auditwheel and delvewheel rename a copy and change its run path. Its exported symbols, its device
code and the version in the name of the file stay the same: `libcudart-9335f6a2.so.12.4.127`.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_

from cudaredist.features.library_symbols import export_groups
from cudaredist.programs.library_names import original_name
from cudaredist.programs.program import AuditData, KnownLibrary, ProgramFile
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.tables.symbols.symbol_table import SymbolColumns

_PARTS_OF_VERSION = 3
"""Numbers of a version that is not only a part of the soname."""


def originals_of(file: ProgramFile, data: AuditData) -> tuple[KnownLibrary, ...]:
    """Return the libraries that a file may be a copy of, oldest first.

    There are none if this is unknown: the symbols are not read, or are those of no known release.
    """
    soname = data.catalog.soname_of(file)
    if soname is None or "symbols" in file.binary.unread:
        return ()
    known = data.catalog.providers(soname, file.platforms)
    archives = _with_symbols(file, known, data)
    fitting = [library for library in known if library.archive in archives]
    version = _version_of(file)
    named = [library for library in fitting if str(wheel_version(library)) == version]
    sizes = _sizes_of(file)
    codes = data.device_code(known[-1].soname) if fitting else {}
    # A library without device code, or with unknown code, is not among them.
    return tuple(
        library for library in named or fitting if sizes in codes.get(library.archive, (sizes,))
    )


def _with_symbols(
    file: ProgramFile, known: Sequence[KnownLibrary], data: AuditData
) -> frozenset[str]:
    """Return the archives whose library exports the same symbols as a file."""
    tables = data.tables(sorted({library.soname for library in known}))
    exported = {name for names, _ in export_groups(file.binary) for name in names}
    return frozenset(
        archive for table in tables.values() for archive in _equal_archives(table, exported)
    )


def _equal_archives(table: SymbolColumns, exported: set[str]) -> Iterable[str]:
    """Yield the archives of a table whose library exports exactly some names."""
    masks = dict.fromkeys(exported, 0)
    others = 0
    for export, mask in table.exports.items():
        if export.name in masks:
            masks[export.name] |= mask
        else:
            others |= mask
    equal = reduce(and_, masks.values(), ~others)
    for column, bit in table.columns.items():
        if bit & equal and not column.provider.stub:
            yield column.archive


def _version_of(file: ProgramFile) -> str:
    """Return the version in the names of a file, empty if it is only a part of the soname."""
    versions = (original_name(name).partition(".so.")[2] for name in file.names)
    return max((each for each in versions if each.count(".") + 1 >= _PARTS_OF_VERSION), default="")


def _sizes_of(file: ProgramFile) -> frozenset[tuple[str, int]]:
    """Return the bytes of a file's device code by architecture."""
    images = file.binary.images
    return frozenset((name, size) for name, (size, _) in (images.sizes if images else {}).items())
