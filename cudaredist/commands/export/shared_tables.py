"""Read the tables and manifests for an export of several sets."""

from collections.abc import Iterable

from cudaredist.errors import IncompleteError
from cudaredist.exporters.export_format import SharedTables
from cudaredist.hints import command_line
from cudaredist.primitives import parse_label
from cudaredist.store.data_folder import Store
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.read_data import RUNFILES, read_runfiles
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE


def read_shared_tables(store: Store, releases: Iterable[tuple[str, str]]) -> SharedTables:
    """Return both tables, and the manifests of the given releases.

    Raises `IncompleteError` if a table or a manifest is missing.
    """
    manifests = {}
    for redist, label in releases:
        data = store.manifests(redist).read(parse_label(label))
        if data is None:
            message = f"no manifest for {redist} {label} in {store.root}"
            download = command_line("download-manifests", redist=redist, version=label)
            raise IncompleteError(message, hint=f"run `{download}`")
        manifests[redist, label] = data
    compat, gpus = require_layered(store, NVCC_TABLE), require_layered(store, GPU_TABLE)
    runfiles = read_runfiles(store.read_table(RUNFILES)).runfiles
    return SharedTables(compat.table, gpus.table, manifests, runfiles)
