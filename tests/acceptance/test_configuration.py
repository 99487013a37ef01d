"""Tests of the configuration file: its path, precedence and errors."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, SAMPLE, Run
from support.pages import FENCED
from support.patching import Patch
from support.running import expect_error, expect_output

import cudaredist.private
from cudaredist.formats.registry import schema_problems

PROJECT = Path("pyproject.toml")
OWN = Path("cudaredist.toml")


def settings(run: Run, *options: object) -> dict[str, tuple[Any, str]]:
    """Return the values and origins that `config` reports."""
    document = json.loads(run("config", "--json", *options).stdout)
    return {one["name"]: (one["value"], one["origin"]) for one in document["settings"]}


def test_option_beats_variable_beats_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    OWN.write_text('jobs = 3\nretries = 4\ntimeout = 5\nchannel = "wheels"\n')
    monkeypatch.setenv("CUDAREDIST_RETRIES", "6")
    monkeypatch.setenv("CUDAREDIST_TIMEOUT", "7")
    result = settings(run, "--timeout", "8")
    assert result["jobs"] == (3, "file")
    assert result["retries"] == (6, "environment")
    assert result["timeout"] == (8, "command line")
    assert result["channel"] == ("wheels", "file")
    assert result["base-url"] == (None, "default")


def test_text_names_file_and_variable(run: Run) -> None:
    OWN.write_text("jobs = 3\naudit.no-bundled = true\n")
    lines = {" ".join(line.split()) for line in run("config").stdout.splitlines()}
    assert {
        "setting value origin",
        "jobs 3 cudaredist.toml",
        "retries 3 default",
        "audit.no-bundled true cudaredist.toml",
    } <= lines
    assert any(line.endswith(" CUDAREDIST_CACHE_DIR") for line in lines)


def test_closest_file_with_settings_wins(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    PROJECT.write_text('[tool.cudaredist]\njobs = 3\ndata-dir = "data"\n')
    Path("one/two").mkdir(parents=True)
    Path("one/pyproject.toml").write_text('[project]\nname = "cudaredist-data"\n')
    root = Path.cwd()
    monkeypatch.chdir("one/two")
    assert settings(run)["data-dir"] == (str(root / "data"), "file")
    PROJECT.write_text("[tool.cudaredist]\njobs = 4\n")
    assert settings(run)["jobs"] == (4, "file")
    assert settings(run)["data-dir"] == (None, "default")
    OWN.write_text("jobs = 5\n")
    assert settings(run)["jobs"] == (5, "file")


def test_commands_use_folder_and_addresses_of_file(run: Run) -> None:
    Path("mirror").symlink_to(SAMPLE)
    OWN.write_text('data-dir = "cuda"\nbase-url = ["mirror"]\n')
    assert run("download-manifests", "--redist", "cuda").exit_code == 0
    assert Path("cuda/manifests/cuda/redistrib_13.0.2.json").exists()
    assert not Path("data").exists()


@pytest.mark.parametrize("name", ["require-glibc", "max-glibc"])
def test_audit_uses_requirements_of_file(run: Run, name: str) -> None:
    """`max-glibc` is the former name."""
    OWN.write_text(f'[audit]\n{name} = "2.0"\n')
    assert run("audit", "/bin/sh").exit_code == 1
    assert run("audit", "/bin/sh", "--require-glibc", "2.99").exit_code == 0


IGNORED = """
[[audit.ignore]]
kind = "glibc"
contains = "/bin/sh"
reason = "old systems are not supported"

[[audit.ignore]]
kind = "bundled"
reason = "unused"
"""


def test_ignored_finding_has_a_reason_and_does_not_count(run: Run) -> None:
    OWN.write_text(IGNORED.replace("/bin/sh", "glibc"))
    call = ("audit", "/bin/sh", "--require-glibc", "2.0")
    document = json.loads(run(*call, "--json").stdout)
    (finding,) = document["findings"]
    assert (finding["exit_code"], finding["ignored"]) == (0, "old systems are not supported")
    result = run(*call)
    assert result.exit_code == 0
    assert "ignored: glibc: needs glibc" in result.stdout
    assert "    reason: old systems are not supported" in result.stdout
    note = "note: no finding matches the audit.ignore entry `bundled: unused`"
    assert note in result.stdout
    assert result.stdout.count("no finding matches") == 1
    OWN.write_text(IGNORED.replace("/bin/sh", "other"))
    assert run(*call).exit_code == 1
    assert settings(run)["audit.ignore"] == ("bundled: unused", "file")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "[[audit.ignore]]\nkind = 'glibcs'",
            "no kind of cudaredist.toml is",
            "did you mean glibc?",
        ),
        ("[[audit.ignore]]\nkind = 'glibc'", "audit.ignore.0.reason: is missing", "schema"),
        ("jobs = 'x'", "jobs: expected an integer, got 'x'", "schema"),
        ("retries = -1", "retries: expected at least 0, got -1", "schema"),
        ("sets = 3", "sets: expected a list, got 3", "schema"),
        ("sets = [1]", "cudaredist.toml: sets.0: expected a table, got 1", "schema"),
        (
            "[[sets]]\nname = 'A b'\ncuda = []\nplatforms = []",
            "name: expected a text that matches ^[a-z][a-z0-9_]*$, got 'A b'",
            "schema",
        ),
        ("[[audit.ignore]]\nkind = 'glibc'\nreason = ' '", "reason: expected a text", "schema"),
        ("[[audit.ignore]]\nreson = ''\nkind = 'gpu'", "called 'reson'", "did you mean reason?"),
        ("jbos = 3", "no setting of cudaredist.toml is called 'jbos'", "did you mean jobs?"),
        ("[audit]\nrequire_glibc = '2'", "is called 'require_glibc'", "mean require-glibc"),
        ("jobs = 0", "cudaredist.toml: jobs: ", "cudaredist schema configuration"),
        ("jobs = '3'", "cudaredist.toml: jobs: ", "cudaredist schema configuration"),
        ("channel = 'wheel'", "no channel of cudaredist.toml is", "did you mean wheels?"),
        ("base-url = ['https://u:p@host']", "cannot contain credentials", "schema configuration"),
        ("base-url = ['https://host/?token=x']", "cannot contain credentials", "schema"),
        ("base-url = ['u:p@host']", "cannot contain credentials", "schema"),
        ("jobs =", "cudaredist.toml: Invalid value", "correct the syntax"),
        (f"jobs = {'[' * 2000}", "cudaredist.toml: ", "correct the syntax"),
        (f"jobs = 2 #{' ' * (1 << 20)}", "cudaredist.toml has more than 1,048,576 bytes", "remove"),
    ],
)
def test_invalid_file_is_a_usage_error(run: Run, text: str, message: str, hint: str) -> None:
    OWN.write_text(text)
    for call in (["config"], ["check", "--offline"]):
        result = expect_error(run(*call), 2, message)
        assert hint in result.stderr
        assert "u:p" not in result.stderr
    document = json.loads(run("config", "--json").stdout)
    assert document["error"]["kind"] == "usage"


def test_invalid_file_does_not_hide_help_and_schemas(run: Run) -> None:
    OWN.write_text("jobs = 0")
    hint = expect_error(run("config"), 2, "cudaredist.toml: jobs: ").stderr
    _, *words = re.findall("`([^`]*)`", hint)[0].split()
    assert '"jobs"' in expect_output(run(*words), 0).stdout
    for call in (["--help"], ["check", "--help"], ["check", "-h"], ["--version"]):
        assert run(*call).exit_code == 0


def test_removed_current_folder_is_a_usage_error(run: Run) -> None:
    Path.cwd().rmdir()
    expect_error(run("check"), 2, "the current folder was removed", "change to another folder")
    assert run("schema").exit_code == 0


def test_other_exception_is_a_bug(run: Run, patch: Patch) -> None:
    def broken() -> None:
        raise AssertionError("surprise")

    patch("cudaredist.app.read_configuration", broken)
    expect_error(run("config"), 70, "surprise", "internal error in cudaredist")


def test_config_shows_no_password(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAREDIST_BASE_URL", "https://user:SECRET@host/")
    for call in (["config"], ["config", "--json"]):
        output = run(*call).output
        assert "https://host/" in output
        assert "SECRET" not in output


def test_missing_data_folder_of_file_has_hint(run: Run) -> None:
    OWN.write_text("data-dir = 'missing'")
    result = expect_error(run("which", "libcudart.so.13"), 2, "missing: no such folder")
    assert "`cudaredist config`" in result.stderr


def test_file_of_another_user_in_shared_folder_is_ignored(run: Run, patch: Patch) -> None:
    OWN.write_text("jobs = 3")
    patch(cudaredist.private, "_ROOT", -1)
    patch(os, "geteuid", lambda: 12345)
    assert settings(run)["jobs"] == (3, "file")
    Path().chmod(0o1777)
    assert settings(run)["jobs"] == (None, "default")


def test_example_of_page_fits_schema(run: Run) -> None:
    text = (REPOSITORY / "docs/scripts.md").read_text()
    PROJECT.write_text(next(block for block in FENCED.findall(text) if "[tool." in block))
    names = {name for name, (_, origin) in settings(run).items() if origin == "file"}
    assert names >= {"data-dir", "channel", "jobs", "audit.require-gpu", "audit.ignore"}
    assert schema_problems({"jobs": 4, "audit": {"no-bundled": True}}, "configuration") == []
    assert schema_problems({"jbos": 4}, "configuration")


def test_config_lists_alias_fallback(run: Run) -> None:
    Path("cudaredist.toml").write_text("alias-fallback = true\n")
    settings = json.loads(run("config", "--json").stdout)["settings"]
    assert {"name": "alias-fallback", "value": True, "origin": "file"} in settings


def test_config_names_its_file_its_sets_and_ignored_files(run: Run) -> None:
    text = "jobs = 2\n[[sets]]\ncuda = ['13.0']\nplatforms = ['linux-x86_64']\n"
    Path("cudaredist.toml").write_text(f"{text}redist = {{cudnn = '9.10'}}\n")
    Path("pyproject.toml").write_text("[tool.cudaredist]\njobs = 3\n")
    first, second, *lines = run("config").stdout.splitlines()
    assert first == "configuration file: cudaredist.toml"
    assert second == "ignored, because it is not the first: pyproject.toml"
    assert "  cuda = 13.0, platforms = linux-x86_64, redist = cudnn=9.10" in lines
    document = json.loads(run("config", "--json").stdout)
    assert (document["path"], document["ignored"]) == ("cudaredist.toml", ["pyproject.toml"])
    assert len(document["sets"]) == 1
    Path("cudaredist.toml").unlink()
    assert run("config").stdout.startswith("configuration file: pyproject.toml\n\n")
    Path("pyproject.toml").unlink()
    assert run("config").stdout.startswith("no configuration file")
