"""Tests that pages with examples that need a package index run in order with the real one."""

import os
import sys
from pathlib import Path

import pytest
from conftest import Run
from support.examples import run_example, sources
from support.optional_programs import needs

pytestmark = [pytest.mark.network, needs("g++")]

SOURCES = sources()
WITH_INDEX = [name for name, examples in SOURCES.items() if any(e.needs_index for e in examples)]
SMALLER = {
    "/srv/cuda": "srv",
    "mirror sync srv --channel wheels": "mirror sync srv --channel wheels --package nccl",
    "--redist cuda --version 13.0.2": "--redist nccl --version 2.32.3",
    "--set set.json": "--set set.json --component compiler",
}
"""Replacements on the page about mirrors, because its examples copy gigabytes."""


@pytest.mark.parametrize("source", WITH_INDEX)
def test_examples_run_in_order_with_package_index(
    run: Run, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", programs)
    monkeypatch.setenv("PWD", str(Path.cwd()))
    for example in SOURCES[source]:
        if example.needs_index:
            is_mirror = source == "mirror.md"
            run_example(example, monkeypatch, SMALLER if is_mirror else None)
        elif not example.need:
            run_example(example, monkeypatch)
