"""query renders rows with a template, to standard output or into a file."""

import json
from pathlib import Path

import pytest
from conftest import Run

SQL = """
    SELECT platform, sha256 FROM downloads
    WHERE package = 'libcublasmp' AND label = '0.6.0' AND channel = 'redist'
    ORDER BY variant, platform"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "x.j2"
    path.write_text("{% for row in rows %}\nsha256: {{ row.sha256 }}\n{% endfor %}\n")
    return path


def test_rows_are_rendered_and_checked(run: Run, template: Path, tmp_path: Path) -> None:
    text = run("query", SQL, "--template", template).stdout
    assert text.count("sha256: ") == 4
    recipe = tmp_path / "recipe"
    recipe.write_text("a\n# BEGIN\n# END\nb\n")
    options = ("--template", template, "-o", recipe, "--between", "# BEGIN", "# END")
    assert run("query", SQL, *options, "--check").exit_code == 1
    assert json.loads(run("query", SQL, *options, "--json").stdout)["status"] == "written"
    assert recipe.read_text() == f"a\n# BEGIN\n{text}# END\nb\n"
    assert run("query", SQL, *options, "--check").exit_code == 0


def test_query_of_template_has_limits_and_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.j2"
    path.write_text("\n{{ query('SELECT lable FROM releases') }}")
    result = run("query", "SELECT 1 AS one", "--template", path)
    assert result.exit_code == 5
    assert "line 2: invalid SQL: no such column: lable" in result.stderr
    assert "hint: for tables and columns, run `cudaredist query --tables`" in result.stderr
    path.write_text("{{ query('SELECT label FROM releases')[0].label }}")
    call = ("query", "SELECT 1 AS one", "--template", path)
    result = run(*call, "--max-rows", 3)
    assert result.exit_code == 3
    message = "the query 'SELECT label FROM releases' was ended: it has more than 3 rows"
    assert message in result.stderr
    assert "hint: use a higher --max-rows" in result.stderr
    assert run(*call).exit_code == 0


def test_missing_rows_and_equal_columns_are_refused(run: Run, template: Path) -> None:
    assert run("query", SQL, "--template", template, "--max-rows", 1).exit_code == 3
    result = run("query", "SELECT 1 AS a, 2 AS a", "--template", template)
    assert result.exit_code == 2
    assert "two columns have the name a" in result.stderr


def test_query_without_rows_is_a_warning(run: Run, template: Path) -> None:
    result = run("query", SQL.replace("0.6.0", "99"), "--template", template)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "the query has no rows" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--template", "x.j2"),
        ("SELECT 1", "--template", "x.j2", "--format", "csv"),
        ("SELECT 1", "--check"),
        ("SELECT 1", "--between", "A", "B"),
        ("SELECT 1", "--template", "x.j2", "--json"),
        ("SELECT 1", "--template", "missing.j2"),
    ],
)
def test_wrong_options_of_template_are_refused(run: Run, options: tuple[str, ...]) -> None:
    assert run("query", *options).exit_code == 2
