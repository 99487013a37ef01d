"""Tests of query: any question to the index in SQL, which only reads."""

import csv
import json
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import REPOSITORY, Run
from support.pages import is_shown
from support.patching import Patch
from support.releases import put
from support.running import completed, expect_error

from cudaredist.commands.query.run_query import list_tables, run_query
from cudaredist.primitives import nix_base32_of, sri_of
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT {} FROM r"
HOSTILE = "SELECT char(27) || '[31m|' AS a, 9e999, x'00ff', CAST(x'ff41' AS TEXT), NULL, 1.5, 'é'"
PAGE = (REPOSITORY / "docs/query-questions.md").read_text()
QUESTIONS = re.findall(
    r"^## (Which|How)(.*)\n\n(?:[^#]+?\n\n)?```sql\n([^`]*)```\n\n```text\n([^`]*)```\n",
    PAGE,
    re.MULTILINE,
)


def rows_of(run: Run, *call: object) -> list[list[object]]:
    result = run("query", *call, "--json")
    assert result.exit_code == 0, result.output
    rows: list[list[object]] = json.loads(result.stdout)["rows"]
    return rows


@pytest.fixture
def small(tmp_path: Path) -> tuple[object, ...]:
    """Return the options for a data folder with the table of GPUs and one release."""
    names = ("gpus.json", "manifests/wheels/nccl/redistrib_2.28.9.json")
    put(tmp_path / "data", {name: (shipped_data() / name).read_bytes() for name in names})
    return ("--data-dir", tmp_path / "data", "--no-shipped-data")


@pytest.mark.parametrize(("word", "rest", "sql", "answer"), QUESTIONS)
def test_question_of_the_page_has_the_shown_answer(
    run: Run, word: str, rest: str, sql: str, answer: str
) -> None:
    # A busy machine may take longer than the usual limit.
    result = run("query", sql, "--max-seconds", "600")
    assert result.exit_code == 0, result.output
    assert is_shown(answer, result.stdout), f"{word}{rest}\n{result.stdout}"
    assert len(answer.splitlines()) > 3


def test_page_has_ten_questions() -> None:
    assert len(QUESTIONS) == PAGE.count("?\n\n") >= 10


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM archives",
        "INSERT INTO links VALUES (1, 'x')",
        "CREATE TEMP TABLE x (a)",
        "DROP TABLE archives",
        "BEGIN",
        "ATTACH 'new.db' AS x",
        "VACUUM INTO 'new.db'",
        "PRAGMA query_only = 0",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('x.so')",
        "SELECT 1; DELETE FROM archives",
        "SELECT fts3_tokenizer('simple')",
    ],
)
def test_statement_that_does_not_only_read_is_refused(run: Run, sql: str) -> None:
    counts = "SELECT (SELECT count(*) FROM archives), (SELECT count(*) FROM links)"
    before = rows_of(run, counts)
    expect_error(run("query", sql), 2, "run `cudaredist query --tables`")
    assert not Path("new.db").exists()
    assert rows_of(run, counts) == before


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELEC 1", 'near "SELEC": syntax error'),
        ("SELECT * FROM missing", "no such table: missing"),
        ("SELECT missing FROM archives", "no such column: missing"),
        ("/* nothing */", "the statement is empty"),
        ("SELECT '\udcff'", "not in UTF-8"),
        ("SELECT hex(zeroblob(99999))", "a value has more than 65,536 bytes"),
        ("SELECT " + "+".join(["abs(1)"] * 101), "it uses more than 100 functions"),
        ("SELECT sum(9223372036854775807) FROM archives", "integer overflow"),
        ("SELECT 1 AS \x1b[31m", "unrecognized token"),
    ],
)
def test_wrong_statement_is_a_usage_error(run: Run, sql: str, reason: str) -> None:
    result = run("query", sql, "--data-dir", REPOSITORY / "data")
    expect_error(result, 2, reason)
    assert f"`cudaredist query --data-dir {REPOSITORY / 'data'} --tables`" in result.stderr
    assert "\x1b" not in result.stderr


def test_wrong_statement_keeps_the_index(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged index is made again, but not because of an error in SQL."""
    run("query", "SELECT 1")
    monkeypatch.setattr("cudaredist.store.index_database.IndexDatabase._create", None)
    for sql in ("SELEC", "SELECT * FROM missing", "DELETE FROM archives"):
        assert run("query", sql).exit_code == 2


def test_limit_of_rows_is_reported(run: Run) -> None:
    sql = ENDLESS.format("n")
    result = run("query", sql, "--max-rows", 3)
    assert (result.exit_code, result.stdout) == (3, "n\n1\n2\n3\n")
    assert "--max-rows ended the query" in result.stderr
    report = json.loads(run("query", sql, "--max-rows", 2, "--json").stdout)
    assert (report["limit"], report["rows"], report["exit_code"]) == ("rows", [[1], [2]], 3)
    assert run("query", f"{sql} LIMIT 3", "--max-rows", 3).exit_code == 0


def test_limit_of_time_is_reported(run: Run) -> None:
    result = run("query", ENDLESS.format("max(n)"), "--max-seconds", 0.1)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "--max-seconds ended the query" in result.stderr
    # Python drops the row before the interruption.
    sql = ENDLESS.format("n") + " WHERE n < 4"
    report = json.loads(run("query", sql, "--max-seconds", 0.1, "--json").stdout)
    assert (report["limit"], report["rows"][:2]) == ("time", [[1], [2]])


def test_limit_of_time_ends_slow_functions(run: Run) -> None:
    """The text is long, so that a few rows take a second."""
    text = "replace(printf('%.60000c', 'x'), 'x', 'a')"
    slow = ENDLESS.format(f"sum(instr({text} || n, substr({text}, 30000) || 'b'))")
    assert run("query", slow, "--max-seconds", 0.1).exit_code == 3


def test_limit_of_size_is_reported(run: Run, patch: Patch) -> None:
    patch("cudaredist.commands.query.run_query._LARGEST_RESULT", 1000)
    result = run("query", "SELECT printf('%0400d', value) FROM json_each('[1, 2, 3]')", "--json")
    report = json.loads(result.stdout)
    assert (report["limit"], len(report["rows"]), report["exit_code"]) == ("size", 2, 3)
    assert "the limit of 64 MiB of text ended the query" in result.stderr


def test_interruption_is_not_a_limit_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, None, 0.0])

    def clock() -> float:
        time = next(times)
        if time is None:
            raise KeyboardInterrupt
        return time

    index = Index(Store(shipped_data(), "wheels"), Cache(tmp_path / "cache"))
    monkeypatch.setattr(f"{run_query.__module__}.time", SimpleNamespace(monotonic=clock))
    with pytest.raises(KeyboardInterrupt):
        run_query(index, ENDLESS.format("max(n)"), max_rows=1, max_seconds=10)


def test_formats_show_hostile_values_safely(run: Run) -> None:
    head, row = run("query", HOSTILE).stdout.splitlines()
    assert row.split() == ["\\x1b[31m|", "inf", "00ff", "\\xffA", "1.5", "é"]
    assert head.split()[0] == "a"
    lines = run("query", HOSTILE, "--format", "csv").stdout.splitlines()
    assert next(csv.reader(lines[1:])) == ["\\x1b[31m|", "inf", "00ff", "\\xffA", "", "1.5", "é"]
    markdown = run("query", HOSTILE, "--format", "markdown").stdout.splitlines()
    assert markdown[1:] == [
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| \\\\x1b\\[31m\\| | inf | 00ff | \\\\xffA |  | 1.5 | é |",
    ]
    values = ["\x1b[31m|", "inf", "00ff", "\\xffA", None, 1.5, "é"]
    assert rows_of(run, HOSTILE) == [values]
    assert (
        run("query", HOSTILE, "--format", "json").stdout == run("query", HOSTILE, "--json").stdout
    )
    newline = "SELECT 'a' || char(10) || 'b,\"' AS x"
    assert run("query", newline).stdout == 'x\na\\nb,"\n'
    assert run("query", newline, "--format", "csv").stdout == 'x\n"a\nb,"""\n'
    plain = "SELECT 'a' || char(10) || 'b' || char(13) || char(8238) AS x"
    assert run("query", plain, "--format", "csv").stdout == 'x\n"a\nb\\r\\u202e"\n'


def test_releases_have_the_address_and_hash_of_their_manifest(run: Run) -> None:
    columns = "SELECT manifest_url, manifest_sha256 FROM current_releases"
    ((url, sha256),) = rows_of(
        run, f"{columns} WHERE (redist, label, channel) = ('cuda', '12.9.1', 'redist')"
    )
    folder = "https://developer.download.nvidia.com/compute/cuda/redist"
    assert url == f"{folder}/redistrib_12.9.1.json"
    assert sha256 == "8335301010b0023ee1ff61eb11e2600ca62002d76780de4089011ad77e0c7630"
    assert rows_of(run, f"{columns} WHERE channel = 'wheels' LIMIT 1") == [[None, None]]
    ((url, sha256),) = rows_of(run, f"{columns} WHERE redist = 'tensorrt' LIMIT 1")
    assert (url, len(str(sha256))) == (None, 64)


def test_tables_of_functions_can_be_read(run: Run) -> None:
    sql = "SELECT value FROM gpus, json_each(products) WHERE capability = '9.0' ORDER BY 1 LIMIT 1"
    assert rows_of(run, sql) == [["NVIDIA GH200"]]
    assert rows_of(run, "SELECT count(*) FROM json_tree('[1, [2]]')") == [[4]]


def test_downloads_have_addresses_and_hashes_in_all_forms(run: Run) -> None:
    condition = "WHERE redist = 'nccl' AND label = '2.25.1' AND platform = 'linux-x86_64'"
    columns = "sha256, sri, nix_base32, project, wheel_version, file_name, url"
    sql = f"SELECT {columns} FROM downloads {condition} AND channel = 'wheels' LIMIT 1"
    (row,) = rows_of(run, sql)
    sha256, sri, nix, project, version, file_name, url = map(str, row)
    assert sri == sri_of(sha256)
    assert nix == nix_base32_of(sha256)
    assert file_name.split("-")[:2] == [project.replace("-", "_"), version]
    assert url == str(None)


def test_drivers_of_a_release_are_those_of_the_policy(run: Run) -> None:
    sql = "SELECT driver, lowest FROM drivers WHERE label = '12.9.1' AND system = 'linux'"
    assert rows_of(run, sql) == [["575.57.08", "525.60.13"]]
    assert rows_of(run, "SELECT ptx FROM ptx_versions WHERE cuda = '12.9'") == [["8.8"]]


@pytest.mark.parametrize(
    ("l4t", "row"),
    [
        ("36.4.3", ["6.2", "12.6", "9.3.0.75", "10.3.0.30", "linux-aarch64"]),
        ("38.4.0", ["7.1", "13.0", "9.12.0.46", "10.13.3.9", "linux-sbsa"]),
        ("39.2.0", ["7.2", "13.2", "9.20.0.46", "10.16.2.10", "linux-sbsa"]),
    ],
)
def test_jetpacks_are_those_of_the_policy(run: Run, l4t: str, row: list[str]) -> None:
    columns = "jetpack, cuda, cudnn, tensorrt, platform"
    assert rows_of(run, f"SELECT {columns} FROM jetpacks WHERE l4t = '{l4t}'") == [row]


def test_compat_packages_of_a_jetpack_are_those_of_its_generation(run: Run) -> None:
    sql = """SELECT package, version, jetson_compat.cuda
        FROM jetpacks JOIN jetson_compat USING (l4t_major) WHERE l4t = '{}' ORDER BY package"""
    assert rows_of(run, sql.format("36.4.3")) == [
        ["cuda_compat", "12.9.40580548", "12.9"],
        ["cuda_compat_orin", None, "13.2"],
    ]
    assert rows_of(run, sql.format("35.4.1")) == [["cuda_compat", "12.2.34086590", "12.2"]]
    assert rows_of(run, sql.format("38.4.0")) == []


@pytest.mark.slow
def test_every_table_and_column_is_documented(run: Run) -> None:
    listed = rows_of(run, "--tables")
    assert [row for row in listed if not row[3]] == []
    tables = rows_of(run, "SELECT name FROM sqlite_master WHERE type <> 'index' ORDER BY 1")
    assert tables == sorted([row[0]] for row in listed if row[1] is None)
    for table, column, _, _ in list_tables().rows:
        rows = rows_of(run, f"SELECT {column or '*'} FROM {table} LIMIT 1")
        # The shipped data has no records of runfiles, and `explain gpu` adds its answers.
        assert rows or table in {"runfiles", "gpu_answers"}


def test_symbols_have_the_releases_of_their_table(run: Run) -> None:
    hits = json.loads(run("which", "--symbol", "cublasGemmGroupedBatchedEx", "--json").stdout)
    wheels = [hit for hit in hits["symbols"] if hit["channel"] == "wheels"]
    expected = [[hit["library"], hit["platform"], hit["first"]] for hit in wheels]
    sql = """SELECT library, platform, min(label) FROM exports
        WHERE name = 'cublasGemmGroupedBatchedEx' GROUP BY library, platform"""
    assert rows_of(run, sql) == sorted(expected)
    assert len(expected) > 2


def test_output_is_a_database_for_other_programs(run: Run, small: tuple[object, ...]) -> None:
    result = run("query", "--output", "facts.db", *small)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("facts.db: ")
    with closing(sqlite3.connect("facts.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counts = database.execute("SELECT count(*), count(DISTINCT redist) FROM releases")
        assert [list(row) for row in counts] == rows_of(
            run, "SELECT count(*), count(DISTINCT redist) FROM releases", *small
        )
    assert [path.name for path in Path().iterdir()] == ["facts.db"]
    assert run("query", "--output", "facts.db", *small).exit_code == 0


def test_output_opens_with_sqlite_utils(run: Run, small: tuple[object, ...]) -> None:
    run("query", "--output", "facts.db", *small)
    program = str(Path(sys.executable).with_name("sqlite-utils"))
    call = [program, "rows", "facts.db", "gpus", "--where", "capability = '9.0a'"]
    printed = subprocess.run(call, capture_output=True, check=True).stdout
    assert [row["architecture"] for row in json.loads(printed)] == ["sm_90a"]


def test_output_keeps_other_files_and_folders(run: Run, small: tuple[object, ...]) -> None:
    path = Path("other.db")
    for content in (b"notes", b"", b"SQLite format 3\0" + bytes(84)):
        path.write_bytes(content)
        expect_error(run("query", "--output", path, *small), 2, "it was kept")
        assert path.read_bytes() == content
    Path("link").symlink_to("other.db")
    Path("folder").mkdir()
    expect_error(run("query", "--output", "link", *small), 2, "it was kept")
    assert run("query", "--output", "folder", *small).exit_code == 3
    assert Path("link").is_symlink()
    assert path.read_bytes() == content


def test_output_that_is_a_link_writes_its_target(run: Run) -> None:
    options = ("--data-dir", Path("empty").absolute(), "--no-shipped-data")
    Path("empty").mkdir()
    Path("link").symlink_to("facts.db")
    for _ in range(2):
        assert run("query", "--output", "link", *options).exit_code == 0
        assert Path("link").readlink() == Path("facts.db")
        assert Path("facts.db").read_bytes().startswith(b"SQLite format 3")


STOPPED = """
import os, signal, sys
from cudaredist.__main__ import main
number = int(sys.argv.pop(1))
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL) # also if the tests run with nohup
def stop(event, about):
    if event == "sqlite3.connect" and str(about[0]).endswith("facts.db"):
        os.kill(os.getpid(), number)
sys.addaudithook(stop)
main()
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, -signal.SIGHUP),
        (signal.SIGINT, 130),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_stopped_output_leaves_no_temporary_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    temporary = tmp_path / "temporary"
    for folder in (temporary, Path("data")):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    call = ("query", "--output", "facts.db", "--data-dir", Path("data"), "--no-shipped-data")
    done = completed(sys.executable, "-c", STOPPED, int(number), *call)
    assert done.returncode == code, done.stderr
    assert not Path("facts.db").exists()
    assert bool(list(temporary.iterdir())) == (number == signal.SIGKILL)
    assert run(*call).exit_code == 0
    assert not list(temporary.iterdir())


def test_broken_file_is_reported(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "broken"
    data.mkdir()
    (data / "gpus.json").write_text("{")
    call = ("query", "SELECT DISTINCT layer FROM compilers", "--data-dir", data)
    result = run(*call)
    assert (result.exit_code, result.stdout) == (5, "layer\nshipped\n")
    assert f"facts are missing: not a valid table ({data / 'gpus.json'})" in result.stderr
    (error,) = json.loads(run(*call, "--json").stdout)["unreadable"]
    assert "gpus.json" in error


def test_changed_table_changes_the_answer(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "own" / "gpus.json"
    path.parent.mkdir()
    shipped = (REPOSITORY / "data/gpus.json").read_text()
    sql = "SELECT layer, family FROM gpus WHERE capability = '9.0' ORDER BY layer"
    call = (sql, "--data-dir", path.parent)
    path.write_text(shipped)
    assert rows_of(run, *call) == [["local", "Hopper"], ["shipped", "Hopper"]]
    path.write_text(shipped.replace('"Hopper"', '"Grace"'))
    assert rows_of(run, *call) == [["local", "Grace"], ["shipped", "Hopper"]]
    path.unlink()
    assert rows_of(run, *call, "--channel", "wheels") == [["shipped", "Hopper"]]


def test_damaged_index_is_made_again(run: Run, tmp_path: Path) -> None:
    names = ("gpus.json", "symbols/libcublasLt.so.13.json")
    put(tmp_path / "data", {name: (shipped_data() / name).read_bytes() for name in names})
    options = ("--data-dir", tmp_path / "data", "--no-shipped-data")
    sql = "SELECT count(*), sum(length(name)) FROM symbols"
    expected = rows_of(run, sql, *options)
    (path,) = (path for path in (tmp_path / "cache/index").rglob("*") if path.is_file())
    data = bytearray(path.read_bytes())
    # Only a page of symbols, which the start of a command does not read.
    start = data.index(b"cublasLtMatmulAlgoInit") // 4096 * 4096
    data[start : start + 100] = b"\xff" * 100
    path.write_bytes(data)
    assert rows_of(run, sql, *options) == expected
    path.write_bytes(data)
    assert run("query", "--output", "facts.db", *options).exit_code == 0
    with closing(sqlite3.connect("facts.db")) as database:
        assert database.execute("PRAGMA quick_check").fetchall() == [("ok",)]
