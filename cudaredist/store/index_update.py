"""Update the rows of an index from the documents that changed.

Only this module reads documents with their models. `index_database.py` imports it when a document
changed, because the models take longer to import than most answers.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

from cudaredist.errors import CudaRedistError, InvalidFileError
from cudaredist.formats.advisories import Advisories, AdvisoryPolicy
from cudaredist.formats.base import OwnModel
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.jetpack import JetPackPolicy
from cudaredist.formats.policy import ConstraintPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.runfile_records import Runfiles
from cudaredist.formats.tables import GpuPolicy, Gpus, NvccCompat
from cudaredist.primitives import Version, parse_label, sha256_of
from cudaredist.progress import Progress
from cudaredist.redists import NVIDIA_BASE, REDISTS
from cudaredist.store.api_folder import ApiFolder
from cudaredist.store.archive_address import archive_address
from cudaredist.store.data_folder import Store
from cudaredist.store.documents import ADVISORY_TABLES, Document, Documents
from cudaredist.store.files import read_file
from cudaredist.store.index_rows import add_api, add_release, add_row, add_symbols, add_table
from cudaredist.store.index_schema import PARTS, Part, create_tables, stored_parts
from cudaredist.store.local_manifests import load_manifest
from cudaredist.store.policy_rows import STORED_MODELS
from cudaredist.store.read_data import load_features
from cudaredist.store.symbol_folder import SymbolFolder
from cudaredist.store.vulnerability_rows import add_vulnerabilities
from cudaredist.words import printable

_MODELS: Mapping[str, type[OwnModel]] = {
    "advisories": Advisories,
    "policy/advisories": AdvisoryPolicy,
    "nvcc_compat": NvccCompat,
    "gpus": Gpus,
    "policy/constraints": ConstraintPolicy,
    "policy/drivers": DriverPolicy,
    "policy/gpus": GpuPolicy,
    "policy/jetpack": JetPackPolicy,
    "runfiles": Runfiles,
    **{f"policy/{name}": model for name, model in STORED_MODELS.items()},
}
"""The models of `INDEXED_TABLES`."""

_Result = TypeVar("_Result")


def update_rows(
    connection: Connection,
    documents: Documents,
    changed: Mapping[Document, str],
    outdated: Collection[Document],
    progress: Progress,
) -> None:
    """Replace the rows of outdated documents by those of changed ones, with their states.

    A document of a part that the database does not have yet gets no other rows than its own.
    """
    connection.execute("PRAGMA foreign_keys = ON")
    pending = PARTS - stored_parts(connection)
    with connection:
        query = """
            DELETE FROM documents
            WHERE (layer, channel, kind, name, label) = (?, ?, ?, ?, ?)"""
        connection.executemany(query, outdated)
        progress.expect(len(changed))
        releases = []
        for document in progress.each(sorted(changed)):
            row = add_row(connection, "documents", (*document, changed[document], True, None))
            if document.kind not in pending:
                _add(connection, documents, document, row)
            if document.kind == "release":
                releases.append(row)
        if any(document.name in ADVISORY_TABLES for document in (*changed, *outdated)):
            connection.execute("DELETE FROM vulnerabilities")
            add_vulnerabilities(connection, documents.store)
        elif releases:
            add_vulnerabilities(connection, documents.store, releases)
        connection.execute("DELETE FROM gpu_answers")
        if outdated:
            connection.execute(
                "DELETE FROM contents WHERE id NOT IN"
                " (SELECT contents FROM archives WHERE contents IS NOT NULL)"
            )
            connection.execute(
                "DELETE FROM folders WHERE id NOT IN (SELECT folder FROM contents_folders)"
            )


def add_part(connection: Connection, documents: Documents, part: Part, progress: Progress) -> None:
    """Add the tables of a part, with the rows of its documents."""
    create_tables(connection, part)
    query = "SELECT id, layer, channel, kind, name, label FROM documents WHERE kind = ?"
    rows = connection.execute(query, [part]).fetchall()
    progress.expect(len(rows))
    with connection:
        for row, *document in progress.each(rows):
            _add(connection, documents, Document(*document), row)


def _add(connection: Connection, documents: Documents, document: Document, row: int) -> None:
    """Add the rows of a document with its id. A broken file has no rows."""
    errors: list[CudaRedistError] = []

    def read(function: Callable[..., _Result], *values: object) -> _Result | None:
        try:
            return function(*values)
        except CudaRedistError as error:
            errors.append(error)
            return None

    layer, channel, kind, name, label = document
    if kind == "symbols":
        table = read(SymbolFolder(documents.symbols[layer].path).document, name)
        if table is not None:
            read(add_symbols, connection, row, layer, table)
    elif kind == "api":
        api = read(ApiFolder(documents.apis[layer].path).document, name)
        if api is not None:
            add_api(connection, row, layer, api)
    elif kind == "table":
        content = read(_read_table, name, documents.table_path(layer, name))
        if content is not None:
            add_table(connection, row, layer, content)
    else:
        store, version = documents.stores[layer, channel], parse_label(label)
        is_there = store.manifests(name).path_of(version).exists()
        manifest = read(load_manifest, store, name, version) if is_there else None
        features = read(load_features, store, name, version)
        about = (layer, channel, name, label, _sort_key(version))
        address = store.address_of(name, version)
        # A product of the user's own has no address here: the policy with it can change later.
        address_of = partial(archive_address, name, urls={}, address=address)
        manifest_file = _manifest_file(store, name, version, address) if manifest else (None, None)
        add_release(connection, row, about, manifest, features, address_of, manifest_file)
    if errors:
        query = "UPDATE documents SET is_readable = FALSE, error = ? WHERE id = ?"
        connection.execute(query, [printable(errors[0].message), row])


def _manifest_file(
    store: Store, redist: str, label: Version, early_address: str | None
) -> tuple[str | None, str | None]:
    """Return the address and SHA-256 of NVIDIA's manifest."""
    if store.channel == "wheels":
        return None, None
    manifests = store.manifests(redist)
    sha256 = sha256_of(manifests.read(label) or b"")
    product = REDISTS.get(redist)
    is_early = manifests.is_preview(label) or early_address is not None
    if product is None or product.handwritten or is_early:
        return None, sha256
    return f"{NVIDIA_BASE}/{product.manifest_folders[0]}/redistrib_{label}.json", sha256


def _read_table(name: str, path: Path) -> OwnModel | None:
    data = read_file(path)
    try:
        return None if data is None else read_own_file(data, _MODELS[name])
    except InvalidFileError as error:
        raise InvalidFileError(f"table ({path})", error.problems) from None


def _sort_key(label: Version) -> str:
    """Return a text that sorts labels by their numbers."""
    numbers = (*label.components, 0, 0, 0, 0)[:4] + label.suffix
    return ".".join(f"{number:018}" for number in numbers)
