"""Tests of options: parameters from dataclasses."""

from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cudaredist.app import app
from cudaredist.cli.options import (
    ArchiveJobs,
    LocalReleases,
    Releases,
    parameters_of,
    parse_size,
)
from cudaredist.commands.diff.command import DiffOptions
from cudaredist.commands.export.command import ExportOptions
from tools.reference import examples_of

COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
LONG_HELP = {"forward_compat", "format"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_general_options_with_help(name: str) -> None:
    assert all((parameter.help or "").endswith(".") for parameter in COMMANDS[name].params)
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert {"--json", "--quiet", "--verbose", "--color", "--pager"} <= options


@pytest.mark.parametrize("name", COMMANDS)
def test_help_starts_with_examples_and_few_options(name: str) -> None:
    summary, examples, *_ = COMMANDS[name].help.split("\n\n")
    assert len(summary) <= 72
    assert examples.startswith("Examples")
    assert len(examples_of(COMMANDS[name].help)) in {2, 3}
    panels = [getattr(parameter, "rich_help_panel", None) for parameter in COMMANDS[name].params]
    assert 1 <= panels.count("Options") <= 5


@pytest.mark.parametrize("name", COMMANDS)
def test_option_help_fits_one_line(name: str) -> None:
    options = [p for p in COMMANDS[name].params if p.param_type_name == "option"]
    texts = [p.help for p in options if not p.hidden and p.name not in LONG_HELP]
    assert [text for text in texts if len(text) > 62] == []


def test_parameters_start_with_typical_and_end_with_general_options() -> None:
    declared = {parameter.name: parameter.default for parameter in parameters_of(ExportOptions)}
    own = ["output", "list", "root", "wheel_base", "resolve", "form", "package_set"]
    own += [
        "template_set",
        "between",
        "cache_dir",
        "target_set",
        "base_url",
        "nvidia_channel",
        "data_dir",
        "shipped_data",
        "advisories",
        "strict",
        "check",
    ]
    assert list(declared) == [*own, "json", "quiet", "verbose", "color", "pager"]
    assert declared["form"].default == ""
    required = next(each for each in parameters_of(DiffOptions) if each.name == "old")
    assert required.default.default is ...
    assert declared["check"].default is False
    assert declared["output"].param_decls == ("--output", "-o")
    assert declared["output"].rich_help_panel == "Options"
    assert declared["json"].rich_help_panel == "Output"
    assert declared["wheel_base"].param_decls == ("--wheel-base",)


def test_collect_fills_option_groups() -> None:
    values = {parameter.name: parameter.default.default for parameter in parameters_of(DiffOptions)}
    arguments = {"old": "x", "new": "y", "data_dir": Path("c"), "typed": frozenset({"old", "new"})}
    options = DiffOptions(**(values | arguments))
    assert (options.old, options.new, options.format) == ("x", "y", "text")
    assert options.data.data_dir == Path("c")
    assert options.typed == {"old", "new"}


def test_default_releases_are_latest_upstream_and_all_local() -> None:
    assert Releases().selection.versions == ()
    assert LocalReleases().selection.versions == ("all",)
    assert LocalReleases(min_version="12.9").selection.versions == ()
    assert LocalReleases(version=["latest"]).selection.versions == ("latest",)


def test_archives_have_a_job_for_each_core() -> None:
    assert ArchiveJobs(jobs=7).count == 7
    assert ArchiveJobs().count >= 1


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("500MB", 500_000_000), (" 1.5 GiB", 1_610_612_736)]
)
def test_parse_size_reads_units(text: str, size: int) -> None:
    assert parse_size(text) == size
