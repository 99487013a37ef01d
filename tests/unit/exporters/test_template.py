"""Templates are rendered in a process with limits, and their errors name the line."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.patching import Patch

from cudaredist.errors import ContentError, UnknownNameError, UsageError
from cudaredist.exporters import template
from cudaredist.exporters.template import Template, read_template, render
from cudaredist.exporters.template_output import write_text

ROWS = {"rows": [{"version": "1.2", "sha256": "ab"}, {"version": "1.10", "sha256": "cd"}]}


def no_queries(sql: str, _: float) -> Sequence[Mapping[str, object]]:
    raise UsageError(f"invalid SQL: {sql}")


def rendered(text: str) -> str:
    return render(Template("x.j2", text), ROWS, no_queries).decode()


def problem(text: str) -> ContentError:
    with pytest.raises(ContentError) as caught:
        rendered(text)
    return caught.value


def test_template_renders_rows_by_name() -> None:
    lines = "{% for row in rows %}\n{{ row.version }} {{ row.sha256 | json }}\n{% endfor %}\n"
    assert rendered(lines) == '1.2 "ab"\n1.10 "cd"\n'
    assert rendered("{{ 'a b' | shell }} {{ '$x' | cmake }}é") == "'a b' \\$xé"


def test_template_gets_rows_of_its_queries() -> None:
    text = Template("x.j2", "{{ query('SELECT 1')[0].n }}{{ query('SELECT 2')[0].n }}")
    asked = []

    def ask(sql: str, seconds: float) -> Sequence[Mapping[str, object]]:
        asked.append(sql)
        assert 0 < seconds <= 8
        return [{"n": len(asked)}]

    assert render(text, {}, ask) == b"12"
    assert asked == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("\n{{ rows[0].verson }}", "line 2: 'dict object' has no attribute 'verson'", "version?"),
        ("{{ rwos }}", "line 1: 'rwos' is undefined", "did you mean rows?"),
        ("{{ unlike_anything }}", "line 1: 'unlike_anything' is undefined", None),
        ("\n\n{% for x in %}", "line 3: ", None),
        ("\n{{ query('SELECT x') }}", "line 2: invalid SQL: SELECT x", None),
        ("{{ 1 / 0 }}", "line 1: ZeroDivisionError: division by zero", None),
        ("{% include '/etc/hosts' %}", "line 1: ", None),
        ("{{ ''.__class__.__mro__ }}", "line 1: ", None),
        ("{{ query.__globals__ }}", "line 1: ", None),
        ("{{ '{0.__class__}'.format(1) }}", "line 1: ", None),
        ("{{ range(10 ** 9) | list }}", "line 1: ", None),
        ("{{ open('/etc/hosts') }}", "line 1: 'open' is undefined", None),
        ("{{ '\\ud800' }}", "", None),
    ],
)
def test_error_of_template_has_line_and_suggestion(
    text: str, message: str, hint: str | None
) -> None:
    error = problem(text)
    assert message in error.message
    assert hint is None or hint in str(error.hint)


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'x' * 10 ** 10 }}",
        "{{ '%10000000000d' % 1 }}",
        "{{ 'x'.ljust(10 ** 10) }}",
    ],
)
def test_template_with_gigabytes_of_memory_is_ended(text: str) -> None:
    assert problem(text).message == "template x.j2: it uses more than 1,024 MiB of memory"


def test_template_with_too_much_output_is_ended() -> None:
    text = "{% for _ in range(1000) %}{{ 'x' * 100000 }}{% endfor %}"
    assert "it writes more than 64 MiB" in problem(text).message


def test_template_without_end_is_ended() -> None:
    loop = "{% for _ in range(99999) %}" * 4 + "{% endfor %}" * 4
    assert problem(loop).message == "template x.j2: it uses more than 8 seconds"


def test_memory_is_measured_on_systems_that_do_not_limit_it(patch: Patch) -> None:
    patch(template, "_system", lambda: "darwin")
    patch(template, "MAX_MEMORY", 1 << 20)
    loop = "{% for _ in range(99999) %}" * 4 + "{% endfor %}" * 4
    assert "MiB of memory" in problem(loop).message


def test_template_is_refused_without_limits_of_memory(patch: Patch) -> None:
    patch(template, "_system", lambda: "win32")
    with pytest.raises(UsageError, match="cannot be limited on Windows"):
        rendered("")


def test_unknown_template_names_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no template or file"):
        read_template(str(tmp_path / "missing.j2"))
    (tmp_path / "binary.j2").write_bytes(b"\xff")
    with pytest.raises(ContentError, match="not in UTF-8"):
        read_template(str(tmp_path / "binary.j2"))


def test_text_replaces_lines_between_markers(tmp_path: Path) -> None:
    path = tmp_path / "recipe"
    path.write_bytes(b"a\n# BEGIN\nold\n# END\nb\n")
    markers = ("# BEGIN", "# END")
    assert write_text(path, b"new", markers, may_write=False)[0] == "would-write"
    assert write_text(path, b"new", markers, may_write=True)[0] == "written"
    assert path.read_bytes() == b"a\n# BEGIN\nnew\n# END\nb\n"
    assert write_text(path, b"new\n", markers, may_write=False)[0] == "unchanged"
    for wrong in (("# END", "# BEGIN"), ("# NONE", "# END"), ("", "# END")):
        with pytest.raises(UsageError):
            write_text(path, b"", wrong, may_write=True)
    assert path.read_bytes() == b"a\n# BEGIN\nnew\n# END\nb\n"
