"""The packed index: the rows of the shipped data, made with the package.

To read the shipped data with its models takes seconds, and to unpack these rows a fraction of one.
They are stored by column, without the parts of the index, and without the values that follow from
the manifests. A document whose files differ from those that were packed is read again.
"""

import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple, TypeAlias

from cudaredist import __version__
from cudaredist.primitives import nix_base32_of, sha256_of, sri_of
from cudaredist.store.documents import Document, Documents
from cudaredist.store.files import read_file
from cudaredist.store.index_schema import PARTS, index_schema, part_of, without_indexes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_COLUMN, _VALUE = "\x1d", "\x1e"
"""The ends of columns and values. No value contains them."""
_NULL, _DERIVED = "\x00", "\x01"
"""The values that are null, or follow from the manifest."""
_SMALLEST: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 22,
    zstd.CompressionParameter.window_log: 25,
}
"""zstd decompresses in a fifth of the time of xz, and its output is 4 % larger."""

_Columns: TypeAlias = dict[str, list[str]]
"""The values of a table's columns, as text. SQLite converts them to the types of the columns."""
_Tables: TypeAlias = dict[str, _Columns]

_archives_in = re.compile(
    r'"relative_path": "([^"\\]+)",\s*'
    r'"sha256": "([0-9a-f]{64})"(?:,\s*"md5": "([0-9a-f]{32})")?(?:,\s*"size": "([0-9]+)")?'
).findall
"""Finds the archives of a manifest in the usual form. A parser of JSON takes longer."""


class _Head(NamedTuple):
    """The program that packed an index, and the columns of its tables."""

    version: str
    schema: str
    """The hash of the schema."""
    tables: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, tables: Mapping[str, Sequence[str]]) -> "_Head":
        """Return the head of tables that this program packs."""
        return cls(__version__, sha256_of(index_schema().encode()), tables)


def packed_path() -> Path:
    """Return the path of the packed index. A checkout has none."""
    return Path(str(resources.files("cudaredist.store"))) / "packed_index.zst"


def pack(connection: Connection, documents: Documents) -> bytes:
    """Return the packed rows of an index of the shipped data.

    Raises `ValueError` for a value that cannot be packed.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
    names = [name for (name,) in connection.execute(query) if part_of(name) is None]
    tables = {name: _columns_of(connection, name) for name in names}
    tables["documents"]["state"] = [
        "" if document.kind in PARTS else _checksum(documents, document)
        for document in _documents_of(tables["documents"])
    ]
    archives = tables["archives"]
    for name, derived in _derived_columns(tables, documents).items():
        pairs = zip(archives[name], derived, strict=True)
        archives[name] = [_DERIVED if own == value else own for own, value in pairs]
    head = _Head.of({name: tuple(columns) for name, columns in tables.items()})
    texts = [json.dumps(head)]
    for columns in tables.values():
        texts += ("".join(f"{value}{_VALUE}" for value in column) for column in columns.values())
    text = _COLUMN.join(texts)
    return zstd.compress(text.encode(), options=_SMALLEST)


def unpack(
    data: bytes, connection: Connection, documents: Documents, states: Mapping[Document, str]
) -> None:
    """Add the packed rows to empty tables.

    Rows that are damaged, or that another version of the program packed, are not used. A document
    gets its state of `states`, but none if its files differ from those that were packed.
    """
    try:
        first, *texts = zstd.decompress(data).decode().split(_COLUMN)
    except (zstd.ZstdError, EOFError):  # A package with a damaged file still has the data.
        return
    head = _Head(*json.loads(first))
    if head != _Head.of(head.tables):
        return
    columns = (text.split(_VALUE)[:-1] for text in texts)
    tables = {
        table: {name: next(columns) for name in names} for table, names in head.tables.items()
    }
    tables["documents"]["state"] = [
        states.get(document, "")
        if document.kind in PARTS or checksum == _checksum(documents, document)
        else ""
        for document, checksum in zip(
            _documents_of(tables["documents"]), tables["documents"]["state"], strict=True
        )
    ]
    archives = tables["archives"]
    for name, derived in _derived_columns(tables, documents).items():
        pairs = zip(archives[name], derived, strict=True)
        archives[name] = [value if own == _DERIVED else own for own, value in pairs]
    with without_indexes(connection), connection:
        for table, values in tables.items():
            if values:
                _add_rows(connection, table, values)


def _columns_of(connection: Connection, table: str) -> _Columns:
    """Return the columns of a table. Raises `ValueError` for a value that cannot be packed."""
    cursor = connection.execute(f"SELECT * FROM main.{table} ORDER BY rowid")
    names = [name for name, *_ in cursor.description]
    columns = zip(*cursor, strict=True)
    return {name: [*map(_text_of, values)] for name, values in zip(names, columns, strict=False)}


def _text_of(value: object) -> str:
    if value is None:
        return _NULL
    text = value.hex() if isinstance(value, bytes) else str(value)
    if text in {_NULL, _DERIVED} or _VALUE in text or _COLUMN in text:
        raise ValueError(f"not possible in a packed index: {text!r}")
    return text


def _add_rows(connection: Connection, table: str, columns: _Columns) -> None:
    """Add the rows of a table."""
    types = {row[1]: row[2] for row in connection.execute(f"PRAGMA main.table_info({table})")}
    values: list[Iterable[object]] = []
    for name, texts in columns.items():
        column: list[object] = [None if text == _NULL else text for text in texts]
        if types[name] == "BLOB":
            column = [*map(bytes.fromhex, texts)]
        values.append(column)
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    query = f"INSERT INTO main.{table} ({names}) VALUES ({marks})"
    connection.executemany(query, zip(*values, strict=True))


def _documents_of(rows: _Columns) -> Iterator[Document]:
    """Yield the documents of rows with their columns."""
    return map(Document._make, zip(*(rows[name] for name in Document._fields), strict=True))


def _checksum(documents: Documents, document: Document) -> str:
    """Return a checksum of the contents of a document's files. Raises `ReadError`."""
    checksum = 0
    for path in documents.paths(document):
        checksum = zlib.crc32(read_file(path) or b"", checksum)
    return f"{checksum:08x}"


def _derived_columns(tables: _Tables, documents: Documents) -> _Columns:
    """Return the columns of archives that follow from the manifests and the archives' paths.

    A value is null if the manifest does not state it in the usual form.
    """
    releases = tables["releases"]
    keys = zip(*(releases[name] for name in ("layer", "channel", "redist", "label")), strict=True)
    files = {
        row: _files_of_manifest(documents, Document(layer, channel, "release", redist, label))
        for row, (layer, channel, redist, label) in zip(releases["id"], keys, strict=True)
    }
    archives = tables["archives"]
    paths = archives["relative_path"]
    unknown = (_NULL, _NULL, _NULL)
    places = zip(archives["release"], paths, strict=True)
    values = [files[release].get(path, unknown) for release, path in places]
    sha256, md5, size = map(list, zip(*values, strict=True))
    return {
        "sha256": sha256,
        "md5": md5,
        "size": size,
        "file_name": [path.rpartition("/")[2] for path in paths],
        "sri": [_NULL if one == _NULL else sri_of(one) for one in sha256],
        "nix_base32": [_NULL if one == _NULL else nix_base32_of(one) for one in sha256],
    }


def _files_of_manifest(documents: Documents, document: Document) -> dict[str, tuple[str, str, str]]:
    """Return the SHA-256, MD5 and size of a manifest's archives by path."""
    manifest, _ = documents.paths(document)
    text = (read_file(manifest) or b"").decode(errors="replace")
    # Manifests of wheels state only the SHA-256.
    return {
        path: (sha256, md5 or _NULL, size or _NULL)
        for path, sha256, md5, size in _archives_in(text)
    }
