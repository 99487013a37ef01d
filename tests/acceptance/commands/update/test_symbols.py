"""Tests of update-symbols, which --symbol, diff and validate on small releases."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.binaries import Symbol, dll_with_symbols, elf
from support.optional_programs import needs
from support.releases import Files, put, release
from support.running import expect_error, expect_output, snapshot, succeed

from cudaredist.formats.symbol_tables import stored_names

LABELS = ("12.4.1", "12.9.1")
VERSION = "libcublasLt.so.12"


def lt(*names: str) -> bytes:
    symbols = [Symbol(name, version=VERSION) for name in names]
    return elf(symbols=symbols, defines=[VERSION], soname=VERSION)


def blas(*needed: str) -> bytes:
    symbols = [Symbol(name, is_defined=False, version=VERSION) for name in needed]
    symbols += [Symbol("cublasCreate"), Symbol("_ZN6cublas6handleEv")]
    return elf(symbols=symbols, needs={VERSION: [VERSION]}, soname="libcublas.so.12")


def packages(label: str) -> Mapping[str, Mapping[str, Files]]:
    """Return packages in which the newer cuBLAS needs more symbols of a smaller cuBLASLt."""
    new = ["ltMode"] if label == "12.9.1" else ["ltGone"]
    linux = {"lib/libcublas.so.12": blas("ltMatmul", *new[: label == "12.9.1"])}
    return {
        "libcublas": {
            "linux-x86_64": linux,
            "windows-x86_64": {
                "bin/cublas64_12.dll": dll_with_symbols(
                    [(1, "cublasCreate", "")], {"CUBLASLT64_12.dll": ["ltMatmul"]}
                )
            },
        },
        "libcublaslt": {
            "linux-x86_64": {"lib/libcublasLt.so.12": lt("ltMatmul", *new)},
            "windows-x86_64": {"bin/cublasLt64_12.dll": dll_with_symbols([(1, "ltMatmul", "")])},
        },
        "cuda_cudart": {"linux-x86_64": {"include/cuda.h": b"#pragma once\n"}},
        "cuda_nvcc": {"linux-x86_64": {"bin/nvcc": b"#!/bin/sh\n"}},
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with two releases and symbol tables."""
    root = tmp_path_factory.mktemp("symbols")
    for label in LABELS:
        files = release(label, packages(label))
        put(root / "source/compute/cuda/redist", files)
        put(root / "data/manifests/cuda", {n: d for n, d in files.items() if "/" not in n})
    succeed("process-manifests", "-q", *sources(root))
    succeed("update-symbols", "-q", *sources(root))
    return root


def places(root: Path) -> tuple[object, ...]:
    return ("--data-dir", root / "data", "--cache-dir", root / "cache")


def sources(root: Path) -> tuple[object, ...]:
    return ("--base-url", root / "source", *places(root))


def table(root: Path, soname: str) -> Any:
    return json.loads((root / f"data/symbols/{soname}.json").read_bytes())


def test_tables_state_releases_of_each_symbol(root: Path) -> None:
    found = table(root, "libcublasLt.so.12")
    assert list(found["providers"][0]["releases"]) == ["12.4.1", "12.9.1"]
    assert found["exports"] == [
        {"version": f"@@{VERSION}", "names": "ltMatmul"},
        {"version": f"@@{VERSION}", "releases": ["12.4.1"], "names": "ltGone"},
        {"version": f"@@{VERSION}", "releases": ["12.9.1"], "names": "ltMode"},
    ]
    assert [entry["names"] for entry in table(root, "libcublas.so.12")["imports"]] == [
        "ltMatmul",
        "ltMode",
    ]
    (from_dll,) = table(root, "cublas64_12.dll")["imports"]
    assert (from_dll["library"], from_dll["names"]) == ("cublasLt64_12.dll", "ltMatmul")
    assert {path.name for path in (root / "data/symbols").iterdir()} == {
        f"{name}.json"
        for name in ("libcublas.so.12", VERSION, "cublas64_12.dll", "cublasLt64_12.dll")
    }


def test_update_twice_changes_nothing(root: Path, run: Run) -> None:
    before = snapshot(root / "data/symbols")
    for option in ("--check", "--offline"):
        result = run("update-symbols", option, *sources(root))
        assert (result.exit_code, "unchanged" in result.stdout) == (0, False)
        assert "4 libraries, 0 changed; 0 archives read" in result.stdout
    assert snapshot(root / "data/symbols") == before


def test_check_reports_planned_tables(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for part in ("manifests", "features"):
        (tmp_path / "data" / part).symlink_to(root / "data" / part)
    folders = ("--data-dir", tmp_path / "data", "--cache-dir", root / "cache")
    options = (*folders, "--base-url", root / "source")
    assert run("update-symbols", "--check", *options).exit_code == 1
    assert not (tmp_path / "data/symbols").exists()
    assert run("update-symbols", "--version", "12.4.1", *options).exit_code == 0
    lacking = run("check", "--offline", "--data-dir", tmp_path / "data")
    assert "the symbols of cublas64_12.dll and 3 more are not in any table" in lacking.stdout
    other = run("check", "--offline", "--redist", "cudnn", "--data-dir", tmp_path / "data")
    assert "are not in any table" not in other.stdout
    assert run("update-symbols", *options).exit_code == 0
    assert snapshot(tmp_path / "data/symbols") == snapshot(root / "data/symbols")


def test_unknown_archive_fails_alone(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/manifests").symlink_to(root / "data/manifests")
    options = ("--data-dir", tmp_path / "data", "--cache-dir", tmp_path / "cache")
    result = run("update-symbols", *options, "--base-url", tmp_path / "nothing", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == report["exit_code"] != 0
    assert {one["status"] for one in report["archives"]} == {"failed"}
    assert report["status"] == "unchanged"


def test_which_symbol_names_libraries_and_releases(root: Path, run: Run) -> None:
    data = ("--data-dir", root / "data", "--no-shipped-data")
    result = expect_output(run("which", "--symbol", "ltMo*", *data), 0)
    header, line = result.stdout.splitlines()
    assert header.split() == [
        *("symbol", "library", "package", "kind", "first", "last", "platforms")
    ]
    name = f"ltMode@@{VERSION}"
    library = [name, VERSION, "libcublaslt", "archives"]
    first = ["12.9.1", "or", "an", "earlier", "patch"]
    assert line.split() == [*library, *first, "12.9.1", "linux-x86_64"]
    assert "12.4.1 (removed)" in run("which", "--symbol", "ltGone", *data).stdout
    missing = run("which", "--symbol", "nothing", *data)
    assert (missing.exit_code, missing.stdout) == (1, "no local release exports nothing\n")
    readable = run("which", "--symbol", "cublas::handle", "--demangle", *data)
    assert "cublas::handle()  libcublas.so.12" in readable.stdout
    of_release = run("which", "--symbol", "lt*", "--cuda", "12.4", *data, "--json")
    hits = json.loads(of_release.stdout)["symbols"]
    assert {hit["symbol"] for hit in hits} == {"ltMatmul", "ltGone"}


@pytest.mark.parametrize(
    ("channel", "command"),
    [
        ("redist", "cudaredist update-symbols --data-dir empty --channel redist"),
        ("wheels", "cudaredist update-symbols --data-dir empty --channel wheels"),
    ],
)
def test_which_symbol_without_tables_suggests_command(run: Run, channel: str, command: str) -> None:
    Path("empty").mkdir()
    places = ("--data-dir", "empty", "--no-shipped-data", "--channel", channel)
    expect_error(run("which", "--symbol", "a", *places), 3, f"run `{command}`")


def test_diff_reports_removed_exports_first(root: Path, run: Run) -> None:
    options = ("diff", "cuda@12.4.1", "cuda@12.9.1", *places(root))
    counted = run(*options).stdout.splitlines()
    at = next(n for n, line in enumerate(counted) if line.startswith("  libcublaslt"))
    assert counted[at + 1] == "      exports [linux-x86_64]: 1 removed, 1 added"
    assert counted.index("may break:") < at
    named = run(*options, "--symbols").stdout
    assert "exports [linux-x86_64]: -libcublasLt.so.12:ltGone +libcublasLt.so.12:ltMode" in named


@pytest.mark.parametrize("labels", [LABELS, LABELS[::-1]])
def test_diff_with_unknown_symbols_in_one_release_reports_no_exports(
    root: Path, run: Run, tmp_path: Path, labels: tuple[str, str]
) -> None:
    (tmp_path / "data").mkdir()
    for part in ("manifests", "features"):
        (tmp_path / "data" / part).symlink_to(root / "data" / part)
    folders = ("--data-dir", tmp_path / "data", "--cache-dir", root / "cache")
    source = ("--base-url", root / "source")
    expect_output(run("update-symbols", "--version", "12.4.1", *folders, *source), 0)
    sides = (f"cuda@{label}" for label in labels)
    changed = expect_output(run("diff", *sides, *folders, "--no-shipped-data"), 0)
    assert "libcublaslt" in changed.stdout
    assert "exports" not in changed.stdout


def built_sets(root: Path, run: Run, tmp_path: Path) -> list[dict[str, Any]]:
    """Return the set of each release, and write it."""
    sets = []
    for label in LABELS:
        path = tmp_path / f"{label}.json"
        options = ("--cuda", label, "--platform", "linux-x86_64", "--output", path)
        expect_output(run("build", *options, "--data-dir", root / "data"), 0)
        assert "missing-symbols" not in path.read_text()
        sets.append(json.loads(path.read_bytes()))
    return sets


def mixed(root: Path, run: Run, tmp_path: Path) -> Path:
    """Write a set with the newer cuBLAS and the older cuBLASLt."""
    old, new = built_sets(root, run, tmp_path)
    new["packages"]["libcublaslt"]["archive"] = old["packages"]["libcublaslt"]["archive"]
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps(new))
    return path


def test_validate_reports_library_next_to_older_one(
    root: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = mixed(root, run, tmp_path)
    monkeypatch.chdir(root)
    for label in LABELS:
        matching = run("validate", tmp_path / f"{label}.json", "--cache-dir", root / "cache")
        assert "I28" not in matching.stdout
    result = run("validate", path, "--cache-dir", root / "cache")
    assert result.exit_code == 1
    assert (
        f"I28 libcublas: libcublas.so.12 needs 1 symbol that {VERSION} of libcublaslt does not "
        f"export: ltMode@{VERSION}"
    ) in result.stdout


def test_validate_checks_additional_version_in_place_of_chosen_one(
    root: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The symbols of the chosen version do not count: both are never installed together."""
    old, new = built_sets(root, run, tmp_path)
    older = old["packages"]["libcublaslt"] | {"attr": "libcublaslt_12_4"}
    new["packages"]["libcublaslt_12_4"] = older
    path = tmp_path / "also.json"
    path.write_text(json.dumps(new))
    monkeypatch.chdir(root)
    result = run("validate", path, "--cache-dir", root / "cache")
    assert (
        f"I28 libcublas: libcublas.so.12 needs 1 symbol that {VERSION} of libcublaslt_12_4 does "
        f"not export: ltMode@{VERSION}"
    ) in result.stdout


# -- diff --lines, as a text converter for Git


def test_lines_of_a_table_state_archives_and_symbols(root: Path, run: Run) -> None:
    lines = run("diff", "--lines", root / "data/symbols/libcublas.so.12.json").stdout.splitlines()
    archives = [line.split()[:6] for line in lines if line.startswith("archive ")]
    place = ["archive", "redist", "cuda", "libcublas", "linux-x86_64"]
    assert archives == [[*place, label] for label in LABELS]
    assert "export cublasCreate: *" in lines
    assert f"import {VERSION} ltMode@{VERSION}: 12.9.1" in lines


def test_lines_include_packed_names(run: Run) -> None:
    names = [f"_ZN{number}{'x' * 90}" for number in range(300)]
    document = {
        "schema_version": 1,
        "soname": "libx.so.1",
        "providers": [],
        "exports": [stored_names(names)],
        "imports": [],
    }
    assert "packed" in document["exports"][0]  # type: ignore[index]
    Path("x.json").write_text(json.dumps(document))
    assert len(run("diff", "--lines", "x.json").stdout.splitlines()) == len(names)


def test_lines_of_another_file_are_refused(run: Run) -> None:
    Path("x.json").write_text('{"schema_version": 1}')
    expect_error(run("diff", "--lines", "x.json"), 5, "not a valid symbols file")
    expect_error(run("diff", "--lines", "missing.json"), 3, "cannot read missing.json")
    expect_error(run("diff", "--lines", "x.json", "y.json"), 2, "cannot be combined with NEW")
    expect_error(run("diff", "x.json"), 2, "diff requires NEW")


@pytest.mark.slow
@needs("git")
def test_git_shows_symbols_line_by_line(root: Path, run: Run, tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@x", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    table = Path("data/symbols/libcublas.so.12.json")
    table.parent.mkdir(parents=True)
    text = (root / table).read_text()
    table.write_text(text)
    git("init", "--quiet")
    git(
        "config", "diff.cudaredist-symbols.textconv", f"{sys.executable} -m cudaredist diff --lines"
    )
    shutil.copy(REPOSITORY / ".gitattributes", ".gitattributes")
    git("add", ".")
    git("commit", "--quiet", "--message", "x")
    table.write_text(text.replace("cublasCreate", "cublasBuild"))
    changed = [line for line in git("diff").splitlines() if line.startswith(("-e", "+e"))]
    assert changed == ["-export cublasCreate: *", "+export cublasBuild: *"]


def test_update_symbols_refuses_an_unknown_redistributable(run: Run) -> None:
    result = run("update-symbols", "--redist", "cudn")
    assert result.exit_code == 2
    assert "no redistributable is called 'cudn'" in result.stderr
    assert "did you mean cudnn" in result.stderr
