"""The index of a data folder gives the answers of its files, whatever happened to either."""

import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import Run, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.patching import Patch
from support.running import PROGRAM, completed

from cudaredist.store import index_database
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import WITHOUT_LIBRARIES, Index, Question
from cudaredist.store.index_schema import PARTS

TABLES = ("releases", "packages", "archives", "outputs", "binaries", "links", "needs")
MORE_TABLES = ("device_code", "files", "contents_folders", "symbol_groups", "symbols")
TABLES_OF_SYMBOLS = ("symbol_providers", "symbol_releases", "symbol_archives", "exports")
TABLES_OF_APIS = ("api_providers", "api_archives", "api_sets", "api_releases", "api_forms")
OTHER_TABLES = (
    "archive_exports",
    "gpus",
    "gpu_answers",
    "compilers",
    "glibc_bounds",
    "drivers",
    "ptx_versions",
    "jetpacks",
    "jetson_compat",
    "runfiles",
    "vulnerabilities",
    "policies",
    "license_texts",
    "distributable_names",
    "downloads",
)
LABELS = ("2.24.3", "2.27.7", "2.28.9")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Copy three releases of NCCL and a table of symbols, changed long ago."""
    root, shipped = tmp_path / "data", shipped_data()
    for part in ("manifests", "features"):
        for path in (shipped / part / "wheels/nccl").iterdir():
            if any(label in path.name for label in LABELS):
                copy(path, root / part / "wheels/nccl" / path.name)
    for name in (
        "symbols/libnccl.so.2.json",
        "gpus.json",
        "nvcc_compat.json",
        "policy/drivers.json",
        "policy/jetpack.json",
        "policy/licenses.json",
    ):
        copy(shipped / name, root / name)
    return root


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def rows_of(index: Index) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows without their numbers."""
    listed = {}
    for table in (*TABLES, *MORE_TABLES, *TABLES_OF_SYMBOLS, *TABLES_OF_APIS, *OTHER_TABLES):
        index.database.add_parts(PARTS)
        columns = [row[1] for row in read(index, f"PRAGMA table_info({table})")]
        named = ", ".join(name for name in columns if name not in NUMBERS)
        listed[table] = sorted(read(index, f"SELECT {named} FROM {table}"), key=repr)
    return listed


def read(index: Index, query: str, *values: str) -> list[tuple[Any, ...]]:
    return index.database.read(lambda connection: connection.execute(query, values).fetchall())


NUMBERS = {
    "id",
    "document",
    "release",
    "contents",
    "binary",
    "folder",
    "api_set",
    "symbol_group",
    "provider",
}


def open_index(data: Path, cache: Path) -> Index:
    return Index(Store(data, "wheels"), Cache(cache))


def stored(cache: Path) -> Path:
    """Return the file of the only index."""
    files = (path for path in (cache / "index").rglob("*") if path.is_file())
    (path,) = (path for path in files if path.suffix != ".verified")
    return path


def settle(patch: Patch) -> None:
    """Let all files count as older than two seconds."""
    patch("cudaredist.store.documents._SETTLED_NS", -(10**12))


def test_unchanged_data_is_not_read_again(data: Path, tmp_path: Path, patch: Patch) -> None:
    settle(patch)
    reads = patch.count("cudaredist.store.index_update.load_features")
    first = rows_of(open_index(data, tmp_path / "cache"))
    before = stored(tmp_path / "cache").stat()
    number = reads.number
    assert rows_of(open_index(data, tmp_path / "cache")) == first
    assert reads.number == number
    assert stored(tmp_path / "cache").stat().st_ino == before.st_ino
    assert len(first["archives"]) > 6
    assert len(first["symbols"]) > 50


@pytest.mark.parametrize("part", ["manifests/wheels/nccl", "features/wheels/nccl", "symbols", "."])
def test_files_with_known_signature_are_not_compared(
    data: Path, tmp_path: Path, part: str, patch: Patch
) -> None:
    settle(patch)
    indexes = [open_index(data, tmp_path / "cache") for _ in range(3)]
    assert [index.database.is_unchanged for index in indexes] == [False, False, True]
    path = next(path for path in (data / part).iterdir() if path.suffix == ".json")
    path.write_bytes(path.read_bytes() + b" ")
    index = open_index(data, tmp_path / "cache")
    assert not index.database.is_unchanged
    path.unlink()
    assert not open_index(data, tmp_path / "cache").database.is_unchanged


def test_file_that_changed_just_now_is_read_again(data: Path, tmp_path: Path, patch: Patch) -> None:
    """A second change within the same tick of the clock can keep times and size."""
    about, stat = (data / "symbols").stat(), os.stat

    def same_times(path: Any, **options: Any) -> os.stat_result:
        return about if str(path).endswith(".json") else stat(path, **options)

    patch(os, "stat", same_times)
    patch("cudaredist.store.documents._SETTLED_NS", 10**15)
    open_index(data, tmp_path / "cache")
    path = next((data / "features/wheels/nccl").iterdir())
    path.write_bytes(path.read_bytes().replace(b'"libnccl.so.2"', b'"libnccl.so.9"'))
    index = open_index(data, tmp_path / "cache")
    assert read(index, "SELECT 1 FROM binaries WHERE soname = 'libnccl.so.9'")


def test_index_of_layers_begins_with_index_of_shipped_data(
    data: Path, tmp_path: Path, patch: Patch
) -> None:
    """Only the files of the data folder are read."""
    settle(patch)
    patch("cudaredist.store.data_folder.shipped_data", lambda: data)
    own = tmp_path / "own"
    for path in (data / "manifests/wheels/nccl").iterdir():
        copy(path, own / "manifests/wheels/nccl/redistrib_2.99.json")
    copy(data / "gpus.json", own / "gpus.json")
    store = Store(own, "wheels", Store(data, "wheels"))
    features = patch.count("cudaredist.store.index_update.load_features")
    symbols = patch.count("cudaredist.store.index_update.add_symbols")
    expected = rows_of(Index(store, Cache(tmp_path / "new")))
    shipped = rows_of(open_index(data, tmp_path / "cache"))
    numbers = features.number, symbols.number
    assert rows_of(Index(store, Cache(tmp_path / "cache"))) == expected != shipped
    # The release of the data folder has no features.
    assert (features.number, symbols.number) == (numbers[0] + 1, numbers[1])
    assert rows_of(open_index(data, tmp_path / "cache")) == shipped
    assert {row[0] for row in expected["gpus"]} == {"local", "shipped"}


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])


def other_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE documents (id)")


def broken_pages(path: Path) -> None:
    """Damage all pages but those of the schema and of the documents."""
    data = bytearray(path.read_bytes())
    for start in range(len(data) // 2, len(data), 4096):
        data[start : start + 100] = b"\xff" * 100
    path.write_bytes(data)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to("target")


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [garbage, empty, cut, other_tables, broken_pages, folder, link, Path.unlink]
)
def test_damaged_index_is_made_again(
    data: Path, tmp_path: Path, damage: Callable[[Path], None], patch: Patch
) -> None:
    settle(patch)
    expected = rows_of(open_index(data, tmp_path / "cache"))
    damage(stored(tmp_path / "cache"))
    assert rows_of(open_index(data, tmp_path / "cache")) == expected


@pytest.mark.slow
def test_index_with_flipped_bits_is_made_again(data: Path, tmp_path: Path, patch: Patch) -> None:
    settle(patch)
    open_index(data, tmp_path / "cache")
    path, random = stored(tmp_path / "cache"), Random(20261126)
    good = path.read_bytes()
    for _ in range(500):
        damaged = bytearray(good)
        for _ in range(random.choice([1, 1, 40])):
            damaged[random.randrange(len(good))] ^= 1 << random.randrange(8)
        path.unlink()
        path.write_bytes(damaged)
        index = open_index(data, tmp_path / "cache")
        assert len(read(index, "SELECT 1 FROM releases")) == 3
        assert path.read_bytes() == good


def test_verified_index_is_not_verified_again(data: Path, tmp_path: Path, patch: Patch) -> None:
    settle(patch)
    expected = rows_of(open_index(data, tmp_path / "cache"))
    assert rows_of(open_index(data, tmp_path / "cache")) == expected

    def fail(_: object) -> bytes:
        raise AssertionError

    index_database._verified.clear()  # as in another process
    patch("cudaredist.store.index_database._checksum", fail)
    assert rows_of(open_index(data, tmp_path / "cache")) == expected
    stored(tmp_path / "cache").touch()
    with pytest.raises(AssertionError):
        open_index(data, tmp_path / "cache")


def test_index_damaged_during_a_run_is_made_again(data: Path, tmp_path: Path, patch: Patch) -> None:
    settle(patch)
    expected = rows_of(open_index(data, tmp_path / "cache"))
    index = open_index(data, tmp_path / "cache")
    path = stored(tmp_path / "cache")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(size - 4096))
    assert rows_of(index) == expected


@pytest.mark.parametrize(
    "edit",
    [
        "ALTER TABLE packages RENAME COLUMN title TO name",
        "UPDATE releases SET label = '9.9.9' WHERE label = '2.28.9'",
        "DELETE FROM archives",
        "PRAGMA user_version = 1",
    ],
)
def test_index_edited_by_hand_is_made_again(
    data: Path, tmp_path: Path, edit: str, patch: Patch
) -> None:
    settle(patch)
    expected = rows_of(open_index(data, tmp_path / "cache"))
    with closing(sqlite3.connect(stored(tmp_path / "cache"))) as database, database:
        database.execute(edit)
    assert rows_of(open_index(data, tmp_path / "cache")) == expected


def test_cache_that_cannot_be_written_gives_the_same_answer(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    call = ("which", "libnccl.so.2", "--data-dir", data, "--no-shipped-data", "--json")
    expected = run(*call).stdout
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    result = run(*call, "--cache-dir", tmp_path / "file")
    assert (result.exit_code, result.stdout) == (0, expected)
    assert "continuing without a cache" in result.stderr


def test_index_is_in_temporary_folder_if_the_cache_cannot_be_written(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    settle(patch)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    reads = patch.count("cudaredist.store.index_update.load_features")
    call = ("which", "libnccl.so.2", "--data-dir", data, "--no-shipped-data", "--json")
    results = [run(*call, "--cache-dir", tmp_path / "file") for _ in range(3)]
    assert {result.exit_code for result in results} == {0}
    assert len({result.stdout for result in results}) == 1
    assert reads.number == len(LABELS)
    folder = tmp_path / "temporary" / f"cudaredist-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [str(folder) in result.stderr for result in results] == [True, False, False]
    # The cache is used again when it can be written.
    (tmp_path / "file").unlink()
    (data / f"features/wheels/nccl/feature_{LABELS[0]}.json").unlink()
    for _ in range(3):
        assert run(*call, "--cache-dir", tmp_path / "file").exit_code in {0, 3}
    assert stored(tmp_path / "file").exists()
    assert reads.number == len(LABELS) + 1


@pytest.mark.parametrize("planted", ["folder", "link", "shared"])
def test_index_is_not_in_a_temporary_folder_of_another_user(
    run: Run, data: Path, tmp_path: Path, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0 and planted != "shared":
        pytest.skip("needs root, to give files away")
    (tmp_path / "file").write_bytes(b"")
    folder = tmp_path / f"cudaredist-{os.geteuid()}"
    if planted == "link":
        (tmp_path / "own").mkdir()
        folder.symlink_to("own")
    else:
        folder.mkdir()
    if planted == "shared":
        folder.chmod(0o777)
    else:
        os.chown(folder, 65534, 65534, follow_symlinks=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    call = ("which", "libnccl.so.2", "--data-dir", data, "--no-shipped-data")
    result = run(*call, "--cache-dir", tmp_path / "file")
    assert result.exit_code == 0
    assert "continuing without a cache" in result.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("is_refreshed", [False, True])
def test_full_disk_gives_the_same_answer(
    run: Run, data: Path, tmp_path: Path, *, is_refreshed: bool
) -> None:
    """A process that can write only small files stands for a full disk."""
    call = ("which", "libnccl.so.2", "--data-dir", data, "--no-shipped-data", "--json")
    cached = (*call, "--cache-dir", tmp_path / "cache")
    if is_refreshed:
        run(*cached)
        for part, name in (("manifests", "redistrib"), ("features", "feature")):
            folder = data / part / "wheels/nccl"
            copy(folder / f"{name}_{LABELS[0]}.json", folder / f"{name}_2.99.0.json")
    process = completed(
        *PROGRAM,
        *cached,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
    )
    assert process.returncode == 0, process.stderr
    assert ("2.99.0" in process.stdout) == is_refreshed
    assert process.stdout == run(*call, "--cache-dir", tmp_path / "other").stdout
    assert process.stdout == run(*cached).stdout


def test_index_of_another_version_is_not_used(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    settle(patch)
    features = patch.count("cudaredist.store.index_update.load_features")
    with monkeypatch.context() as other:
        other.setattr("cudaredist.store.index_database.__version__", "0.0.1")
        open_index(data, tmp_path / "cache")
        open_index(data, tmp_path / "cache")
        assert features.number == len(LABELS)
    open_index(data, tmp_path / "cache")
    assert features.number == 2 * len(LABELS)


@pytest.mark.slow
def test_several_processes_refresh_at_once(data: Path, tmp_path: Path) -> None:
    options = f"--data-dir {data} --cache-dir {tmp_path / 'cache'} --no-shipped-data --json"
    call = [*PROGRAM, "which", "libnccl.so.2", *options.split()]
    processes = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = {process.communicate()[0] for process in processes}
    assert {process.returncode for process in processes} == {0}
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())["hits"]) >= len(LABELS)


@pytest.mark.parametrize("part", ["manifests", "features"])
def test_broken_file_fails_only_for_its_redistributable(run: Run, data: Path, part: str) -> None:
    (data / "manifests/wheels/cudnn").mkdir()
    name = "manifests/wheels/cudnn/redistrib_9.10.2.json"
    copy(shipped_data() / name, data / name)
    path = next((data / part / "wheels/nccl").iterdir())
    path.write_text('{"schema_version": 1}' if part == "features" else "{")
    call = ("which", "libnccl.so.2", "--data-dir", data, "--no-shipped-data")
    failed = run(*call)
    assert failed.exit_code == 5
    assert path.name in failed.stderr
    assert run(*call, "--redist", "cudnn").exit_code == 0


def test_packed_names_that_cannot_be_read_are_an_error(run: Run, data: Path) -> None:
    path = data / "symbols/libnccl.so.2.json"
    table = json.loads(path.read_bytes())
    table["exports"][0]["packed"] = "AAAA"
    path.write_text(json.dumps(table))
    call = ("which", "--symbol", "_ZN*", "--data-dir", data, "--no-shipped-data")
    failed = run(*call)
    assert failed.exit_code == 5
    assert "packed: is not the bzip2 of names" in failed.stderr
    index = open_index(data, data.parent / "cache")
    assert rows_of(index)["symbols"] == rows_of(index)["symbol_groups"] == []


@pytest.mark.parametrize("part", ["releases", "unread"])
def test_archives_of_the_data_folder_hide_the_shipped_ones(
    data: Path, tmp_path: Path, part: str
) -> None:
    path = data / "symbols/libnccl.so.2.json"
    table = json.loads(path.read_bytes()) | {"exports": [], "imports": []}
    for provider in table["providers"]:
        releases = {label: provider["releases"].get(label) for label in LABELS}
        provider["releases"] = {}
        provider[part] = {label: archive for label, archive in releases.items() if archive}
    path.write_text(json.dumps(table))
    index = Index(Store(data, "wheels", Store(shipped_data(), "wheels")), Cache(tmp_path / "cache"))
    query = "SELECT DISTINCT label FROM archive_exports WHERE library = 'libnccl.so.2'"
    labels = {label for (label,) in read(index, f"{query} AND symbol_group IS NOT NULL")}
    hidden = {label for (label,) in read(index, f"{query} AND symbol_group IS NULL")}
    assert labels
    assert not labels & set(LABELS)
    assert hidden == (set(LABELS) if part == "releases" else set())


EDITS = st.lists(
    st.tuples(st.sampled_from(["remove", "add", "swap", "break"]), st.integers(0, 8)), max_size=5
)


@pytest.mark.slow
@settings(examples(2 / 5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(EDITS, min_size=1, max_size=3))
def test_edited_data_gives_the_rows_of_a_new_index(
    data: Path, tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, int]]]
) -> None:
    root = tmp_path_factory.mktemp("edited")
    shutil.copytree(data, root / "data")
    files = sorted(path for path in (root / "data").rglob("*.json"))
    kept = {path: path.read_bytes() for path in files}
    for number, edits in enumerate(rounds):
        for edit, position in edits:
            path = files[position]
            if edit == "remove":
                path.unlink(missing_ok=True)
            else:
                contents = {"add": kept[path], "swap": kept[files[position - 2]], "break": b"{"}
                path.write_bytes(contents[edit])
        edited = rows_of(open_index(root / "data", root / "cache"))
        assert edited == rows_of(open_index(root / "data", root / f"new{number}"))


@pytest.fixture
def plans(tmp_path: Path, patch: Patch) -> tuple[Index, list[object]]:
    """Return an empty index, and the plans of the questions that it is asked."""
    index = Index(Store(tmp_path), Cache(tmp_path / "cache"))
    plans: list[object] = []

    def ask(question: Question[Any], *values: object) -> list[object]:
        plans.extend(read(index, f"EXPLAIN QUERY PLAN {question.sql}", *map(json.dumps, values)))
        return []

    patch(index, "ask", ask)
    return index, plans


# SQLite 3.40 adds the condition on the release, 3.53 does not.
BY_PACKAGE = r"SEARCH {} USING INDEX \w+ \((release=\? AND )?package=\?"


def test_archives_of_package_are_found_by_package(plans: tuple[Index, list[object]]) -> None:
    index, steps = plans
    assert not list(index.archives(["cuda"], "package IN (SELECT value FROM json_each(?))", ["x"]))
    assert re.search(BY_PACKAGE.format("archives") + r"\)", str(steps))


def test_wheels_of_unexamined_archives_are_found_by_package(
    plans: tuple[Index, list[object]],
) -> None:
    """To read all wheels takes ten times as long if the history is ten times as long."""
    index, steps = plans
    assert not index.unexamined(["cuda"], WITHOUT_LIBRARIES)
    assert re.search(BY_PACKAGE.format("wheel"), str(steps))
    assert "SCAN wheel" not in str(steps)


@pytest.fixture
def as_shipped(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the copied data be that of the package."""
    monkeypatch.setattr("cudaredist.store.documents._SETTLED_NS", -(10**12))
    for module in ("data_folder", "locate"):
        monkeypatch.setattr(f"cudaredist.store.{module}.shipped_data", lambda: data)
    return data


def test_part_is_added_when_a_question_requires_it(
    as_shipped: Path, tmp_path: Path, patch: Patch
) -> None:
    symbols = patch.count("cudaredist.store.index_update.add_symbols")
    index = open_index(as_shipped, tmp_path / "cache")
    releases = "SELECT count(*) FROM releases"
    assert read(index, releases) == [(3,)]
    assert symbols.number == 0
    query = "SELECT count(DISTINCT name) > 50 FROM exports"
    assert read(index, query) == [(1,)]
    assert symbols.number == 1
    again = open_index(as_shipped, tmp_path / "cache")
    assert read(again, query) == [(1,)]
    assert read(again, releases) == [(3,)]
    assert symbols.number == 1


def test_index_with_new_part_is_verified_once(
    as_shipped: Path, tmp_path: Path, patch: Patch
) -> None:
    verified = patch.count("cudaredist.store.index_database._checksum")
    indexes = [open_index(as_shipped, tmp_path / "cache") for _ in range(3)]
    indexes[-1].database.add_parts(PARTS)
    indexes += [open_index(as_shipped, tmp_path / "cache")]
    index_database._verified.clear()  # as in another process
    number = verified.number
    indexes += [open_index(as_shipped, tmp_path / "cache")]
    assert verified.number == number
    unchanged = [index.database.is_unchanged for index in indexes]
    assert unchanged == [False, False, True, False, True]


def test_part_that_cannot_be_stored_is_added_in_memory(as_shipped: Path, tmp_path: Path) -> None:
    index = open_index(as_shipped, tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_bytes(b"")
    assert read(index, "SELECT count(DISTINCT name) > 50 FROM exports") == [(1,)]
    assert read(index, "SELECT count(*) FROM api_forms") == [(0,)]


def test_part_of_damaged_index_is_added_to_a_new_one(as_shipped: Path, tmp_path: Path) -> None:
    index = open_index(as_shipped, tmp_path / "cache")
    path = stored(tmp_path / "cache")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 4096)
        file.write(bytes(4096))
    assert read(index, "SELECT count(DISTINCT name) > 50 FROM exports") == [(1,)]
    assert rows_of(index) == rows_of(open_index(as_shipped, tmp_path / "new"))


@pytest.mark.parametrize("sql", ["SELECT name FROM sqlite_master", "SELECT name FROM documents"])
def test_query_about_all_documents_adds_all_parts(run: Run, as_shipped: Path, sql: str) -> None:
    (as_shipped / "symbols/libnccl.so.2.json").write_text("{")
    (as_shipped / "symbols/libnccl.so.3.json").write_text("{")
    result = run("query", sql)
    assert result.exit_code == 5
    assert ("symbols" if "sqlite" in sql else "libnccl.so.3") in result.stdout
    assert "libnccl.so.3" in result.stderr


KILLED = """
import os, signal, sys
from pathlib import Path
from cudaredist.store import index_update
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index

update = index_update.update_rows
def update_and_die(*values):
    update(*values)
    os.kill(os.getpid(), signal.SIGKILL)
index_update.update_rows = update_and_die
Index(Store(Path(sys.argv[1]), "wheels"), Cache(Path(sys.argv[2])))
"""


def test_killed_first_call_leaves_no_index(data: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-c", KILLED, str(data), str(tmp_path / "cache"))
    assert completed(*command).returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "cache/index").glob("cudaredist.*.tmp")
    index = open_index(data, tmp_path / "cache")
    assert rows_of(index) == rows_of(open_index(data, tmp_path / "new"))
    assert stored(tmp_path / "cache").exists()
    assert not folder.exists()
