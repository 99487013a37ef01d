"""Findings about the tables of symbols in a data folder."""

from collections import defaultdict
from collections.abc import Iterator

from cudaredist.commands.check.findings import finding, own_file_findings
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError
from cudaredist.formats.registry import FILE_KINDS
from cudaredist.formats.symbol_tables import Symbols
from cudaredist.hints import command_line
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import examined_archives, load_features
from cudaredist.store.symbol_folder import SymbolFolder, can_be_stored, table_name
from cudaredist.tables.symbols.symbol_table import KEY_SIZE


def symbol_findings(store: Store) -> Iterator[Finding]:
    """Find tables of symbols that are broken, and releases that they lack.

    A folder without such tables has no findings: nothing needs them.
    """
    folder = SymbolFolder(store.symbol_path)
    sonames = folder.sonames()
    known: dict[str, set[str]] = defaultdict(set)
    for soname in sonames:
        path = folder.place(soname)
        model = yield from own_file_findings(store, path, FILE_KINDS["symbols"])
        if isinstance(model, Symbols):
            if model.soname != soname:
                text = f"is the table of {model.soname}"
                yield finding("invalid", text, path=store.relative(path))
            for provider in model.providers:
                known[soname] |= {*provider.releases.values(), *provider.unread.values()}
        else:
            known[soname].add("")
    for redist in store.redists() if sonames else ():
        for label in store.features(redist).labels():
            try:
                features = load_features(store, redist, label)
            except CudaRedistError:
                continue  # Another finding reports it.
            lacking = sorted(
                {
                    table_name(library)
                    for *_, archive in examined_archives(features)
                    for library in archive.libraries
                    if not known[table_name(library)] & {"", (archive.sha256 or "")[:KEY_SIZE]}
                }
            )
            lacking = [name for name in lacking if can_be_stored(name)]
            if lacking:
                more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
                yield finding(
                    "table-lacks",
                    f"no table has its symbols of {lacking[0]}{more}",
                    redist=redist,
                    label=label,
                    hint=f"{command_line('update-symbols', channel=store.channel)} adds them",
                )
