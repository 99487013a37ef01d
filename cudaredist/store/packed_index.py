"""The packed index: the rows of the shipped data, made with the package.

To read the shipped data with its models takes seconds, and to unpack these rows a fraction of one.
They are stored by column, without the parts of the index, and without the values that follow from
the manifests. Of a column, each value is stored once, then the number of the value in each row. A
document whose files differ from those that were packed is read again.
"""

import json
import re
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from io import BytesIO
from itertools import chain
from pathlib import Path
from sqlite3 import Connection
from typing import BinaryIO, NamedTuple, TypeAlias

from cudaredist import __version__
from cudaredist.primitives import nix_base32_of, sha256_of, sri_of
from cudaredist.store.documents import Document
from cudaredist.store.files import read_file
from cudaredist.store.index_schema import PARTS, index_schema, part_of, without_indexes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_VALUE = "\x1e"
"""The end of a value. No value contains it."""
_NULL, _DERIVED = "\x00", "\x01"
"""The values that are null, or follow from the manifest."""
_ROWS_AT_ONCE = 10
"""Rows of a statement. It takes half of the time of ten statements."""
_SMALLEST: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 22,
    zstd.CompressionParameter.window_log: 25,
    zstd.CompressionParameter.checksum_flag: 1,
}
"""zstd decompresses in a fifth of the time of xz, and its output is 4 % larger."""

_Columns: TypeAlias = dict[str, list[str]]
"""The values of a table's columns, as text. SQLite converts them to the types of the columns."""
_Sizes: TypeAlias = Mapping[str, int]
"""The bytes of the values of a table's columns."""
_Paths: TypeAlias = Mapping[Document, Sequence[str]]
"""The paths of each document's files. For a release, its manifest comes first."""

_archives_in = re.compile(
    r'"relative_path": "([^"\\]+)",\s*'
    r'"sha256": "([0-9a-f]{64})"(?:,\s*"md5": "([0-9a-f]{32})")?(?:,\s*"size": "([0-9]+)")?'
).findall
"""Finds the archives of a manifest in the usual form. A parser of JSON takes longer."""


class _Head(NamedTuple):
    """The program that packed an index, and the sizes of its tables."""

    version: str
    schema: str
    """The hash of the schema."""
    tables: Mapping[str, tuple[int, _Sizes]]
    """The number of rows, and the columns."""

    @classmethod
    def of(cls, tables: Mapping[str, tuple[int, _Sizes]]) -> "_Head":
        """Return the head of tables that this program packs."""
        return cls(__version__, sha256_of(index_schema().encode()), tables)


def packed_path() -> Path:
    """Return the path of the packed index. A checkout has none."""
    return Path(str(resources.files("cudaredist.store"))) / "packed_index.zst"


def pack(connection: Connection, paths: _Paths) -> bytes:
    """Return the packed rows of an index of the shipped data. `paths` are those of its documents.

    Raises `ValueError` for a value that cannot be packed.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
    names = [name for (name,) in connection.execute(query) if part_of(name) is None]
    tables = {name: _columns_of(connection, name) for name in names}
    files = _read_files(tables["documents"], paths)
    tables["documents"]["state"] = [one.checksum for one in files.values()]
    archives = tables["archives"]
    for name, derived in _derived_columns(archives, files).items():
        pairs = zip(archives[name], derived, strict=True)
        archives[name] = [_DERIVED if own == value else own for own, value in pairs]
    parts: list[bytes] = []
    sizes: dict[str, tuple[int, _Sizes]] = {}
    for name, columns in tables.items():
        packed = {column: _packed_column(values) for column, values in columns.items()}
        rows = max(map(len, columns.values()), default=0)
        sizes[name] = rows, {column: len(values) for column, (values, _) in packed.items()}
        parts += chain.from_iterable(packed.values())
    head = json.dumps(_Head.of(sizes)).encode()
    return zstd.compress(b"\n".join([head, b"".join(parts)]), options=_SMALLEST)


def _packed_column(texts: Iterable[str]) -> tuple[bytes, bytes]:
    """Return the values of a column, and their numbers in all rows."""
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    values = "".join(f"{text}{_VALUE}" for text in numbers)
    return values.encode(), struct.pack(f"<{len(rows)}I", *rows)


def _read_column(file: BinaryIO, rows: int, size: int) -> list[str]:
    """Return the next column of some rows."""
    values = file.read(size).decode().split(_VALUE)
    numbers = struct.unpack(f"<{rows}I", file.read(4 * rows))
    return [*map(values.__getitem__, numbers)]


def unpack(
    data: bytes, connection: Connection, paths: _Paths, states: Mapping[Document, str]
) -> None:
    """Add the packed rows to empty tables.

    Rows that are damaged, or that another version of the program packed, are not used. A document
    gets its state of `states`, but none if its files differ from those that were packed.
    """
    try:
        file = BytesIO(zstd.decompress(data))
    except (zstd.ZstdError, EOFError):  # A package with a damaged file still has the data.
        return
    head = _Head(*json.loads(file.readline()))
    if head != _Head.of(head.tables):
        return
    files: dict[str, _Files] = {}
    with without_indexes(connection), connection:
        for table, (rows, sizes) in head.tables.items():
            values = {name: _read_column(file, rows, size) for name, size in sizes.items()}
            if table == "documents":
                files = _read_files(values, paths)
                values["state"] = [
                    states.get(one.document, "") if one.checksum == checksum else ""
                    for one, checksum in zip(files.values(), values["state"], strict=True)
                ]
            elif table == "archives":
                for name, derived in _derived_columns(values, files).items():
                    pairs = zip(values[name], derived, strict=True)
                    values[name] = [value if own == _DERIVED else own for own, value in pairs]
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
    if text in {_NULL, _DERIVED} or _VALUE in text:
        raise ValueError(f"not possible in a packed index: {text!r}")
    return text


def _add_rows(connection: Connection, table: str, columns: _Columns) -> None:
    """Add the rows of a table."""
    types = {row[1]: row[2] for row in connection.execute(f"PRAGMA main.table_info({table})")}
    values: list[Iterable[object]] = []
    for name, texts in columns.items():
        if types[name] == "BLOB":
            values.append(map(bytes.fromhex, texts))
        elif _NULL in texts:
            values.append(None if text == _NULL else text for text in texts)
        else:
            values.append(texts)
    rows = [*zip(*values, strict=True)]
    row = f"({', '.join('?' * len(columns))})"
    last = len(rows) - len(rows) % _ROWS_AT_ONCE
    for count, group in ((_ROWS_AT_ONCE, rows[:last]), (1, rows[last:])):
        places = range(0, len(group), count)
        query = f"INSERT INTO main.{table} ({', '.join(columns)}) VALUES {', '.join([row] * count)}"
        connection.executemany(
            query, (tuple(chain.from_iterable(group[at : at + count])) for at in places)
        )


class _Files(NamedTuple):
    """The contents of a document's files."""

    document: Document
    checksum: str
    """Empty: a document of a part, which has no packed rows."""
    archives: Mapping[str, tuple[str, str, str]]
    """The SHA-256, MD5 and size of the manifest's archives by path."""


def _read_files(rows: _Columns, paths: _Paths) -> dict[str, _Files]:
    """Return the contents of the documents of rows, by the row's id. Raises `ReadError`."""
    fields = zip(*(rows[name] for name in Document._fields), strict=True)
    documents = map(Document._make, fields)
    return {
        row: _files_of(document, paths.get(document, ()))
        for row, document in zip(rows["id"], documents, strict=True)
    }


def _files_of(document: Document, paths: Sequence[str]) -> _Files:
    if document.kind in PARTS:
        return _Files(document, "", {})
    contents = [read_file(Path(path)) or b"" for path in paths]
    checksum = 0
    for data in contents:
        checksum = zlib.crc32(data, checksum)
    archives = {}
    if document.kind == "release" and contents:
        # Manifests of wheels state only the SHA-256.
        archives = {
            path: (sha256, md5 or _NULL, size or _NULL)
            for path, sha256, md5, size in _archives_in(contents[0].decode(errors="replace"))
        }
    return _Files(document, f"{checksum:08x}", archives)


def _derived_columns(archives: _Columns, files: Mapping[str, _Files]) -> _Columns:
    """Return the columns of archives that follow from the manifests and the archives' paths.

    A value is null if the manifest does not state it in the usual form.
    """
    paths = archives["relative_path"]
    unknown = (_NULL, _NULL, _NULL)
    places = zip(archives["release"], paths, strict=True)
    values = [files[release].archives.get(path, unknown) for release, path in places]
    sha256, md5, size = map(list, zip(*values, strict=True))
    return {
        "sha256": sha256,
        "md5": md5,
        "size": size,
        "file_name": [path.rpartition("/")[2] for path in paths],
        "sri": [_NULL if one == _NULL else sri_of(one) for one in sha256],
        "nix_base32": [_NULL if one == _NULL else nix_base32_of(one) for one in sha256],
    }
