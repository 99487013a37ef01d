"""Tests of options: parameters from dataclasses and tables of refusals."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cudaredist.app import app
from cudaredist.cli.options import (
    ArchiveJobs,
    Folders,
    LocalReleases,
    Options,
    Releases,
    parameters_of,
    parse_size,
)
from cudaredist.cli.session import Refusal, refuse
from cudaredist.commands.build.command import REFUSED as BUILD
from cudaredist.commands.build.command import BuildOptions
from cudaredist.commands.bump.options import REFUSED as BUMP
from cudaredist.commands.bump.options import BumpOptions
from cudaredist.commands.diff.command import REFUSED as DIFF
from cudaredist.commands.diff.command import DiffOptions
from cudaredist.commands.download.command import REFUSED as DOWNLOAD
from cudaredist.commands.download.command import DownloadOptions
from cudaredist.commands.explain.command import REFUSED as EXPLAIN
from cudaredist.commands.explain.command import ExplainOptions
from cudaredist.commands.export.command import REFUSED as EXPORT
from cudaredist.commands.export.command import ExportOptions
from cudaredist.commands.materialize.options import REFUSED as MATERIALIZE
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.mirror.options import REFUSED as MIRROR
from cudaredist.commands.mirror.options import MirrorOptions
from cudaredist.commands.process.options import REFUSED as PROCESS
from cudaredist.commands.process.options import ProcessOptions
from cudaredist.commands.query.command import REFUSED as QUERY
from cudaredist.commands.query.command import QueryOptions
from cudaredist.commands.runfile.command import REFUSED as RUNFILE
from cudaredist.commands.runfile.command import RunfileOptions
from cudaredist.commands.versions.command import REFUSED as VERSIONS
from cudaredist.commands.versions.command import VersionsOptions
from cudaredist.commands.which.command import REFUSED as WHICH
from cudaredist.commands.which.command import WhichOptions
from cudaredist.errors import UsageError
from tools.reference import examples_of

COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
FOLDER: dict[str, Any] = {"url": "https://x", "manifest_dir": Path("m")}
REDIST: dict[str, Any] = {"redist": ["cuda"], "typed": frozenset({"url", "redist"})}
SET = Path("set.json")
FOR_PROGRAM: Any = {"root": Path("cuda"), "component": ["runtime"], "programs": [Path("x")]}
LONG_HELP = {"forward_compat", "format"}

ROWS: dict[str, tuple[Sequence[Refusal[Any]], Options, list[Options]]] = {
    "diff": (
        DIFF,
        DiffOptions(old="x.json", lines=True),
        [
            DiffOptions(old="x", new="y", lines=True),
            DiffOptions(old="x", lines=True, json=True),
            DiffOptions(old="x"),
        ],
    ),
    "build": (
        BUILD,
        BuildOptions(platform="linux-x86_64", check=True),
        [
            BuildOptions(wheel_base="https://user:token@host.example"),
            BuildOptions(platform="x", system="y"),
            BuildOptions(target="linux-sbsa"),
            BuildOptions(capability=["all"], forward_compat=True),
        ],
    ),
    "bump": (
        BUMP,
        BumpOptions(version=["13.0.2"], output=Path("sets"), print_commit_message=True),
        [
            BumpOptions(print_commit_message=True, json=True),
            BumpOptions(output=Path("sets"), process=False),
            BumpOptions(version=["latest"]),
        ],
    ),
    "download-manifests": (
        DOWNLOAD,
        DownloadOptions(**FOLDER, folders=Folders(data_dir=Path("of a variable"))),
        [
            DownloadOptions(url="https://x"),
            DownloadOptions(**FOLDER, **REDIST),
        ],
    ),
    "explain": (
        EXPLAIN,
        ExplainOptions(subject="package", name="libcublas", history=True),
        [ExplainOptions(subject="gpu", name="9.0", history=True)],
    ),
    "export": (
        EXPORT,
        ExportOptions(form="env", package_set=SET, output=Path("out"), root="/opt/cuda"),
        [
            ExportOptions(form="urls"),
            ExportOptions(form="rules-ml-toolchain", package_set=SET, output=Path("out")),
            ExportOptions(form="nix", package_set=SET, diff=Path("nixpkgs")),
            ExportOptions(
                form="nixpkgs", package_set=SET, diff=Path("nixpkgs"), output=Path("out")
            ),
            ExportOptions(form="nix", package_set=SET, output=Path("o"), allow_downgrade=True),
            ExportOptions(form="nix", package_set=SET),
            ExportOptions(form="urls", package_set=SET, check=True),
            ExportOptions(form="urls", package_set=SET, json=True),
            ExportOptions(form="urls", package_set=SET, wheel_base="https://a/?token=1"),
            ExportOptions(form="urls", package_set=SET, resolve=True, wheel_base="https://a"),
            ExportOptions(form="env", package_set=SET, wheel_base="https://a"),
            ExportOptions(form="urls", package_set=SET, base_url="https://u:token@a"),
            ExportOptions(form="urls", package_set=SET, resolve=True, base_url="https://a"),
            ExportOptions(form="env", package_set=SET, base_url="https://a"),
            ExportOptions(form="cmake", package_set=SET, resolve=True),
            ExportOptions(form="urls", package_set=SET, typed=frozenset({"data_dir"})),
            ExportOptions(form="urls", package_set=SET, root="/opt/cuda"),
            ExportOptions(form="urls", package_set=SET, target=SET),
            ExportOptions(form="env", package_set=SET, root="cuda"),
        ],
    ),
    "materialize": (
        MATERIALIZE,
        MaterializeOptions(root=Path("cuda"), package_set=SET),
        [
            MaterializeOptions(root=Path("cuda"), verify=True, remove=True),
            MaterializeOptions(root=Path("cuda"), package_set=SET, verify=True),
            MaterializeOptions(root=Path("cuda"), target=SET, verify=True),
            MaterializeOptions(root=Path("cuda"), package_set=SET, format="oci"),
            MaterializeOptions(root=Path("cuda"), package_set=SET, programs=[Path("x")]),
            MaterializeOptions(package_set=SET, layout="split", **FOR_PROGRAM),
            MaterializeOptions(package_set=SET, exclude=["nccl"], **FOR_PROGRAM),
            MaterializeOptions(verify=True, **FOR_PROGRAM),
            MaterializeOptions(root=Path("cuda"), package_set=SET, target=SET, layout="split"),
            MaterializeOptions(root=Path("cuda"), replace=True, verify=True),
            MaterializeOptions(root=Path("cuda")),
        ],
    ),
    "runfile": (
        RUNFILE,
        RunfileOptions(action="add", location="./x.run", url="https://x"),
        [RunfileOptions(action="add", location="https://x/x.run", url="https://x")],
    ),
    "mirror": (
        MIRROR,
        MirrorOptions(action="prune", folder=Path("m"), check=True, package_set=SET),
        [
            MirrorOptions(action="sync", package_set=SET, typed=frozenset({"platform"})),
            MirrorOptions(action="verify", folder=Path("m"), package_set=SET),
            MirrorOptions(action="sync", folder=Path("m"), check=True),
            MirrorOptions(action="prune", accept_changed=True),
            MirrorOptions(action="prune", folder=Path("m"), checksum=True),
        ],
    ),
    "process-manifests": (
        PROCESS,
        ProcessOptions(**FOLDER, legacy=True, keep_archives=True),
        [
            ProcessOptions(engine="dask"),
            ProcessOptions(engine="dask", scheduler="tcp://x", cleanup=False),
            ProcessOptions(legacy=True),
            ProcessOptions(url="https://x"),
            ProcessOptions(**FOLDER, **REDIST),
        ],
    ),
    "which": (
        WHICH,
        WhichOptions(symbol="cublasCreate*", demangle=True),
        [
            WhichOptions(name="libcublas.so.12", symbol="cublasCreate"),
            WhichOptions(),
            WhichOptions(name="libcublas.so.12", demangle=True),
        ],
    ),
    "query": (
        QUERY,
        QueryOptions(sql="SELECT 1", format="csv"),
        [
            QueryOptions(),
            QueryOptions(sql="SELECT 1", tables=True),
            QueryOptions(tables=True, output=Path("facts.db")),
            QueryOptions(sql="SELECT 1", output=Path("facts.db")),
            QueryOptions(output=Path("facts.db"), format="csv"),
        ],
    ),
    "versions": (
        VERSIONS,
        VersionsOptions(format="newest", redist=["cuda", "cuda"]),
        [VersionsOptions(format="renovate", redist=["cuda", "cudnn"])],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_refusal_matches_its_call(name: str) -> None:
    table, allowed, refused = ROWS[name]
    refuse(allowed, table)
    assert len(table) == len(refused)
    for row, options in zip(table, refused, strict=True):
        assert [one for one in table if one[0](options)] == [row]
        with pytest.raises(UsageError, match=r"^[^{}]+$") as raised:
            refuse(options, table)
        expected = (*row[2:], "run `cudaredist ...`")[0]
        assert raised.value.hint == expected.format_map({**vars(options), "call": "cudaredist ..."})


def test_refusals_of_every_command_are_tested() -> None:
    functions = (command.callback for command in app.registered_commands if command.callback)
    loaded = {f.__name__.replace("_", "-"): sys.modules[f.__module__] for f in functions}
    tables = {n: module.REFUSED for n, module in loaded.items() if hasattr(module, "REFUSED")}
    assert set(tables) == set(ROWS)


def test_refusal_message_contains_value() -> None:
    with pytest.raises(UsageError, match=r"^--format newest requires exactly one --redist$"):
        refuse(VersionsOptions(format="newest"), VERSIONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_general_options_with_help(name: str) -> None:
    assert all((parameter.help or "").endswith(".") for parameter in COMMANDS[name].params)
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert {"--json", "--quiet", "--verbose", "--log-level", "--color"} <= options


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
    own = ["output", "root", "wheel_base", "diff", "check", "form", "package_set"]
    own += ["target", "base_url", "resolve", "data_dir", "shipped_data", "allow_downgrade"]
    assert list(declared) == [*own, "json", "quiet", "verbose", "log_level", "color"]
    assert declared["form"].default is ...
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


def test_no_parallel_is_one_job() -> None:
    assert ArchiveJobs(jobs=7).count == 7
    assert ArchiveJobs(jobs=7, parallel=False).count == 1
    assert ArchiveJobs().count >= 1


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("500MB", 500_000_000), (" 1.5 GiB", 1_610_612_736)]
)
def test_parse_size_reads_units(text: str, size: int) -> None:
    assert parse_size(text) == size
