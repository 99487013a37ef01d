"""Read the tables and manifests for an export of several sets."""

from collections.abc import Mapping
from pathlib import Path

from cudaredist.errors import IncompleteError
from cudaredist.exporters.export_format import SharedTables
from cudaredist.formats.packageset import PackageSetIndex
from cudaredist.formats.registry import parse_own_json
from cudaredist.hints import command_line
from cudaredist.primitives import parse_label
from cudaredist.store.data_folder import Store
from cudaredist.store.files import read_file
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.read_data import read_file_given
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE


def indexed_sets(path: Path) -> list[Path]:
    """Return the paths in an index, or the path of any other file."""
    data = read_file(path)
    if data is None:
        return [path]
    document = parse_own_json(data)
    if not isinstance(document, dict) or "sets" not in document:
        return [path]
    index = read_file_given(path, data, PackageSetIndex)
    return [path.parent / entry.path for entry in index.sets] or [path]


def read_shared_tables(
    store: Store, versions: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> SharedTables:
    """Return both tables, and the manifests of the given releases.

    Raises `IncompleteError` if a table or a manifest is missing.
    """
    manifests = {}
    for redists in versions.values():
        for redist, labels in redists.items():
            for label in labels.values():
                folder = store.manifests(redist)
                data = folder.read(parse_label(label))
                if data is None:
                    download = command_line("download-manifests", redist=redist, version=label)
                    raise IncompleteError(
                        f"no manifest for {redist} {label} in {store.root}",
                        hint=f"run `{download}`",
                    )
                manifests[redist, label] = data
    compat, gpus = require_layered(store, NVCC_TABLE), require_layered(store, GPU_TABLE)
    return SharedTables(compat.table, gpus.table, manifests)
