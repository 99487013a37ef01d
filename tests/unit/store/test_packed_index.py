"""The packed index gives the rows of an index that is created from the files."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from support.patching import Patch

from cudaredist.progress import NO_PROGRESS
from cudaredist.store import packed_index
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.index_database import IndexDatabase
from cudaredist.store.index_schema import PARTS, create_tables

RELEASE = "redistrib_2.28.9.json"
FILES = (
    f"manifests/wheels/nccl/{RELEASE}",
    "manifests/cusparselt/redistrib_0.10.0.json",
    "features/wheels/nccl/feature_2.28.9.json",
    "symbols/libnccl.so.2.json",
    "api/nccl.json",
    "advisories.json",
    "gpus.json",
    "policy/advisories.json",
    "policy/licenses.json",
    "policy/meta.json",
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy a few files of each kind as the shipped data, and pack their index."""
    root, shipped = tmp_path / "data", shipped_data()
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped / name, root / name)
    monkeypatch.setattr("cudaredist.store.documents._SETTLED_NS", -(10**12))
    monkeypatch.setattr("cudaredist.store.data_folder.shipped_data", lambda: root)
    monkeypatch.setattr("cudaredist.store.index_database.shipped_data", lambda: root)
    packed = tmp_path / "packed"
    monkeypatch.setattr("cudaredist.store.packed_index.packed_path", lambda: packed)
    database = open_database(Store(root), tmp_path / "first")
    packed.write_bytes(database.read(partial(packed_index.pack, paths=database.documents.paths)))
    return root


def open_database(store: Store, cache: Path) -> IndexDatabase:
    return IndexDatabase(store, ("redist", "wheels"), Cache(cache), NO_PROGRESS)


def rows_of(database: IndexDatabase) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows with their numbers, in their order."""
    database.add_parts(PARTS)
    query = "SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY name"
    tables = database.read(lambda connection: connection.execute(query).fetchall())
    return {
        name: database.read(
            lambda connection: connection.execute(f"SELECT * FROM main.{name}").fetchall()  # noqa: B023
        )
        for (name,) in tables
    }


def created(store: Store, tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of an index that is created from the files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cudaredist.store.packed_index.packed_path", lambda: tmp_path / "none")
        return rows_of(open_database(store, tmp_path / "created"))


def test_unpacked_rows_equal_those_of_the_files(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = created(Store(data), tmp_path)
    monkeypatch.setattr("cudaredist.store.index_update.load_features", None)
    rows = rows_of(open_database(Store(data), tmp_path / "cache"))
    assert rows == expected
    for name in ("archives", "contents", "binaries", "gpus", "symbols", "api_forms"):
        assert rows[name], name


def test_index_of_layers_begins_with_packed_rows(data: Path, tmp_path: Path, patch: Patch) -> None:
    own = tmp_path / "own"
    for part in ("manifests", "features"):
        (own / part / "wheels/nccl").mkdir(parents=True)
    (own / f"manifests/wheels/nccl/{RELEASE}").write_text("{}")
    store = Store(own, base=Store(data))
    expected = created(store, tmp_path)
    reads = patch.count("cudaredist.store.index_update.load_features")
    rows = rows_of(open_database(store, tmp_path / "cache"))
    assert reads.number == 1
    assert {name: len(values) for name, values in rows.items()} == {
        name: len(values) for name, values in expected.items()
    }


def break_features(data: Path) -> None:
    (data / "features/wheels/nccl/feature_2.28.9.json").write_text("{")


def edit_manifest(data: Path) -> None:
    path = data / "manifests/cusparselt/redistrib_0.10.0.json"
    path.write_bytes(path.read_bytes().replace(b'"size": "1', b'"size": "2'))


def edit_advisories(data: Path) -> None:
    path = data / "policy/advisories.json"
    path.write_bytes(path.read_bytes() + b"\n")


def remove_manifest(data: Path) -> None:
    (data / "manifests/wheels/nccl" / RELEASE).unlink()


def add_manifest(data: Path) -> None:
    path = data / "manifests/cusparselt/redistrib_0.10.0.json"
    path.with_name("redistrib_2.99.json").write_bytes(path.read_bytes())


def remove_symbols(data: Path) -> None:
    (data / "symbols/libnccl.so.2.json").unlink()


@pytest.mark.parametrize(
    "edit",
    [
        break_features,
        edit_manifest,
        edit_advisories,
        remove_manifest,
        add_manifest,
        remove_symbols,
    ],
)
def test_document_that_differs_from_the_packed_one_is_read_again(
    data: Path, tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    before = created(Store(data), tmp_path / "before")
    edit(data)
    expected = created(Store(data), tmp_path)
    rows = rows_of(open_database(Store(data), tmp_path / "cache"))
    assert without_numbers(rows) == without_numbers(expected)
    assert rows["documents"] != before["documents"]


def without_numbers(rows: dict[str, list[tuple[object, ...]]]) -> dict[str, list[str]]:
    """Return the rows without their numbers, which differ if a document is read again."""
    return {
        name: sorted(repr([cell for cell in row if type(cell) is not int]) for row in values)
        for name, values in rows.items()
    }


def test_rows_of_another_version_are_not_used(
    data: Path, tmp_path: Path, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = created(Store(data), tmp_path)
    monkeypatch.setattr("cudaredist.store.packed_index.__version__", "0.0.1")
    reads = patch.count("cudaredist.store.index_update.load_features")
    number = reads.number
    assert rows_of(open_database(Store(data), tmp_path / "cache")) == expected
    assert reads.number == number + 2


def test_damaged_packed_index_is_not_used(data: Path, tmp_path: Path) -> None:
    expected = created(Store(data), tmp_path)
    packed = tmp_path / "packed"
    packed.write_bytes(packed.read_bytes()[:-100])
    assert rows_of(open_database(Store(data), tmp_path / "cache")) == expected


def test_every_changed_byte_of_a_packed_index_is_detected(data: Path, tmp_path: Path) -> None:
    content = (tmp_path / "packed").read_bytes()
    paths = open_database(Store(data), tmp_path / "cache").documents.paths
    # The first bytes are the sizes of the frame.
    for place in range(20, len(content), len(content) // 50):
        changed = bytearray(content)
        changed[place] ^= 1
        with closing(sqlite3.connect(":memory:")) as connection:
            create_tables(connection)
            packed_index.unpack(bytes(changed), connection, paths, {})
            rows = connection.execute("SELECT count(*) FROM documents").fetchone()
        assert rows == (0,), place


def test_value_with_a_separator_cannot_be_packed(data: Path, tmp_path: Path) -> None:
    database = open_database(Store(data), tmp_path / "cache")
    with closing(sqlite3.connect(":memory:")) as connection:
        database.read(lambda stored: stored.backup(connection))
        connection.execute("UPDATE packages SET title = 'a \x1e'")
        with pytest.raises(ValueError, match="not possible in a packed index"):
            packed_index.pack(connection, database.documents.paths)


def test_rows_of_shipped_data_are_replaced_if_the_folder_becomes_local(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    open_database(Store(data), cache).read(lambda connection: connection.execute("SELECT 1"))
    monkeypatch.setattr("cudaredist.store.data_folder.shipped_data", lambda: tmp_path)
    monkeypatch.setattr("cudaredist.store.index_database.shipped_data", lambda: tmp_path)
    layers = "SELECT DISTINCT layer FROM documents"
    database = open_database(Store(data), cache)
    assert database.read(lambda connection: connection.execute(layers).fetchall()) == [("local",)]
