"""Lookups import no models but those listed here, since a model takes as long as a query."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from support.running import completed

from cudaredist.store.data_folder import shipped_data
from cudaredist.store.documents import STORED_POLICIES

PROGRAM = """
import json, os, sys
from cudaredist.__main__ import main
from cudaredist.store import documents
documents._SETTLED_NS = -(10**12)  # all files count as older than two seconds
sys.argv[0] = "cudaredist"
try:
    main()
except SystemExit:
    pass
from pydantic import BaseModel
def has_models(module):
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    own = [one for one in classes if one.__module__ == module.__name__]
    return any(issubclass(one, BaseModel) for one in own)
own = [name for name in sys.modules if name.startswith("cudaredist.")]
slow = [name for name in ("rich", "jsonschema", "httpx") if name in sys.modules]
models = [name for name in own if has_models(sys.modules[name])]
open(os.environ["IMPORTED"], "w").write(json.dumps(sorted(models + slow)))
"""
TABLES = {"cudaredist.formats.base", "cudaredist.formats.tables"}
"""The models of the tables of host compilers and GPUs."""
DRIVERS = {
    f"cudaredist.formats.{name}" for name in ("advisories", "base", "driver_policy", "set_policy")
}
"""The models of the policy of drivers and of security bulletins."""
SETTINGS = {"cudaredist.formats.base", "cudaredist.formats.settings"}
"""The models of the configuration file."""
MODELS: dict[str, set[str]] = {
    "config": SETTINGS,
    "which libnccl.so.2": set(),
    "which nsys": set(),
    "query SELECT(1)": set(),
    "versions --offline": set(),
    "which --symbol ncclCommSplit": set(),
    "explain package nccl": set(),
    "explain gpu V100": set(),
    "explain gpu sm_90a": set(),
    "explain nvcc 13.0": TABLES,
    "explain cuda 13.0": TABLES | DRIVERS,
    "explain driver 580": DRIVERS,
    "explain api ncclCommSplit": set(),
    "diff nccl@2.28.9 nccl@2.28.9": set(),
    "diff --api nccl@2.28.9 nccl@2.28.9": set(),
}
"""The modules with models that a lookup may import. A new feature adds none."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Copy a release of NCCL with its symbols, and the policies in the index."""
    root, names = tmp_path / "data", [f"policy/{name}.json" for name in STORED_POLICIES]
    names += ["manifests/wheels/nccl/redistrib_2.28.9.json", "symbols/libnccl.so.2.json"]
    names += ["features/wheels/nccl/feature_2.28.9.json", "lock.json"]
    names += ["nvcc_compat.json", "gpus.json", "advisories.json", "api/nccl.json"]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped_data() / name, root / name)
    return root


@pytest.mark.parametrize("call", MODELS)
def test_lookup_imports_only_listed_models(data: Path, tmp_path: Path, call: str) -> None:
    imported = tmp_path / "imported"
    folders = ["--data-dir", data, "--no-shipped-data"]
    # Answers about GPUs are stored only with the shipped data.
    if call.startswith(("config", "explain gpu")):
        folders = []
    command = [sys.executable, "-c", PROGRAM, *call.split(), *folders]
    variables = {"IMPORTED": str(imported), "CUDAREDIST_CACHE_DIR": str(tmp_path / "cache")}
    # The first call makes the index, and the second one notes that it is current.
    for _ in range(3):
        process = completed(*command, env=os.environ | variables)
        assert process.returncode in {0, 1, 3}, process.stderr
    assert {*json.loads(imported.read_text())} <= MODELS[call]
