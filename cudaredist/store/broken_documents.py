"""Raise the errors of documents that the index cannot read.

Only calls with such a document import this module: the index knows all others without reading them.
"""

from cudaredist.primitives import Version
from cudaredist.store.data_folder import Store
from cudaredist.store.local_manifests import load_manifest
from cudaredist.store.read_data import load_features
from cudaredist.store.symbol_folder import SymbolFolder
from cudaredist.store.table_folder import TableFolder


def raise_release_error(store: Store, redist: str, label: Version) -> None:
    """Raise the error of the manifest or the feature file of a release, if one is broken."""
    if store.manifests(redist).path_of(label).exists():
        load_manifest(store, redist, label)
    load_features(store, redist, label)


def raise_feature_error(store: Store, redist: str, label: Version) -> None:
    """Raise the error of the feature file of a release, if it is broken."""
    load_features(store, redist, label)


def raise_symbol_error(folder: TableFolder, soname: str) -> None:
    """Raise the error of the table of a library's symbols, if it is broken."""
    table = SymbolFolder(folder.path).document(soname)
    groups = () if table is None else (*table.exports, *table.imports)
    for group in groups:
        group.symbols()
