"""Tests that every --json report matches its JSON Schema, errors included."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, SAMPLE, Run
from support import small_sets
from support.runfiles import NAME as RUNFILE
from support.runfiles import runfile
from support.running import assert_report_fits

from cudaredist.reports.report_kinds import REPORTS

SET = "sets/linux-x86_64/cuda-12.9.1.json"
TABLES = ("--data-dir", REPOSITORY / "data")
DATA = ("--data-dir", "data", "--cache-dir", "cache")
CALLS: dict[str, Sequence[Sequence[object]]] = {
    "report-audit": [("audit", "source", "--data-dir", "data")],
    "report-build": [("build", "--cuda", "12.9", "--data-dir", "data", "-o", "built")],
    "report-bump": [("bump", "--base-url", "source", "--check", *DATA)],
    "report-check": [("check", "--offline", *DATA)],
    "report-diff": [("diff", "cudnn@8.9.7", "cudnn@9.10.2", *DATA), ("diff", SET, SET)],
    "report-download-manifests": [("download-manifests", "--base-url", SAMPLE, *DATA)],
    "report-error": [
        ("build", "--cuda", "1.0", "--data-dir", "data"),
        ("build", "--no-such-option"),
        ("no-such-command",),
        ("validate",),
        ("validate", "no-such-file", "--no-such-option"),
        ("explain", "set", "no-such-file"),
        ("check", "--data-dir", "no-such-folder"),
    ],
    "report-explain": [
        ("explain", "nvcc", "12.9", *TABLES),
        ("explain", "gpu", "9.0", *TABLES),
        ("explain", "cuda", "12.9", *TABLES),
        ("explain", "package", "libcublas", *TABLES),
        ("explain", "set", SET),
    ],
    "report-export": [("export", "urls", SET, "-o", "urls.txt")],
    "report-materialize": [("materialize", SET, "--root", "root", "--base-url", "source")],
    "report-mirror": [
        ("mirror", "sync", "mirror", "--redist", "cuda", "--base-url", "source"),
        ("mirror", "verify", "mirror"),
        ("mirror", "prune", "mirror"),
    ],
    "report-process-manifests": [
        ("process-manifests", "--base-url", "source", *DATA),
        ("process-manifests", "--base-url", "source", "--peek", *DATA),
    ],
    "report-runfile": [("runfile", "add", f"source/{RUNFILE}", "--data-dir", "data")],
    "report-site": [("site", "--output", "site", "--data-dir", "data")],
    "report-schema": [("schema",)],
    "report-update-gpus": [("update-gpus", "--base-url", "source", *DATA)],
    "report-update-nvcc-compat": [("update-nvcc-compat", "--base-url", "source", *DATA)],
    "report-update-symbols": [("update-symbols", "--base-url", "source", *DATA)],
    "report-validate": [("validate", SET, "data/manifests/cuda/redistrib_12.9.1.json")],
    "report-versions": [("versions", "--offline", "--data-dir", "data")],
    "report-which": [
        ("which", "libcublas.so.12", "--data-dir", "data"),
        ("which", "libcuda.so.1", "--data-dir", "data"),
    ],
}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("example")
    small_sets.make_data(root)
    small_sets.make_sets(root)
    (root / "source" / RUNFILE).write_bytes(runfile(b"content"))
    return root


def property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from property_names(part)


@pytest.mark.parametrize("name", REPORTS)
def test_reports_use_common_keys(name: str) -> None:
    other_names = {"bytes", "file", "filename", "label", "pname"}  # of size, path, release, package
    for model in REPORTS[name]:
        assert not other_names & set(property_names(model.model_json_schema(mode="serialization")))


@pytest.mark.parametrize("name", REPORTS)
def test_reports_of_every_command_match_schema(
    example: Path, run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(example)
    for call in CALLS[name]:
        result = run(*call, "--json")
        document = json.loads(result.stdout)
        assert ("error" in document) is (name == "report-error"), result.output
        assert document.get("exit_code", 0) == result.exit_code
        assert_report_fits(result.stdout)
        if name == "report-error":
            assert document["error"]["exit_code"] == result.exit_code
            assert result.stderr
