"""Tests of the device code of a runtime root: images that GPUs use, and their sizes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.factory import blank, feature_document
from support.programs import coverage_rules
from support.releases import put
from support.toolkits import MadeSet

from cudaredist.commands.materialize.library_code import library_code
from cudaredist.formats.features import ExaminedArchive, FileCode, PackageFeatures
from cudaredist.formats.packageset import Flags, PackageSet
from cudaredist.store.data_folder import Store, shipped_data


def file_code(*modules: str, size: int = 100, packed: int | None = None) -> FileCode:
    """Return device code whose architectures have some bytes each."""
    names = {name for module in modules for name in module.split()}
    sizes = dict.fromkeys(names, size)
    packed_sizes = sizes if packed is None else dict.fromkeys(names, packed)
    counts = dict.fromkeys(modules, 1)
    return FileCode(output="out", modules=counts, bytes=packed_sizes, unpacked=sizes)


@pytest.mark.parametrize(
    ("module", "gpu", "portable", "used"),
    [
        ("sm_80 sm_90 compute_90", "8.6", False, "sm_80"),
        ("sm_80 sm_86 sm_90", "8.9", False, "sm_86"),
        ("sm_80 compute_80 compute_90", "9.0", False, "compute_90"),
        ("sm_80 compute_90", "8.0", False, "sm_80"),
        ("sm_80 compute_80 compute_90", "8.0", True, "sm_80 compute_90"),
        ("sm_90 sm_90a", "9.0a", False, "sm_90 sm_90a"),
        ("sm_90 sm_100 sm_100f", "10.3", False, "sm_100 sm_100f"),
        ("lto_75 lto_100 sm_90", "9.0", False, "lto_75 sm_90"),
        ("sm_86 sm_87", "8.7", False, "sm_87"),
        ("sm_90", "8.0", False, ""),
    ],
)
def test_gpu_uses_newest_image_that_it_runs(
    module: str, gpu: str, *, portable: bool, used: str
) -> None:
    file = file_code(module)
    names = coverage_rules().used_images(file, [gpu], keeps_portable=portable)
    assert names == set(used.split())


def test_architecture_that_one_module_uses_is_used() -> None:
    file = file_code("sm_80 sm_90", "sm_80")
    rules = coverage_rules()
    assert rules.used_images(file, ["9.0"], keeps_portable=False) == {"sm_90"}
    assert rules.used_images(file, ["8.0"], keeps_portable=False) == {"sm_80"}
    assert rules.used_images(file, ["8.0", "9.0"], keeps_portable=False) == {"sm_80", "sm_90"}


CASES: dict[str, tuple[dict[str, FileCode] | None, Sequence[dict[str, str]], int, int, int]] = {
    "no code": ({}, (), 0, 0, 0),
    "other file": ({"lib/liby.so.1": file_code("sm_80")}, (), 0, 0, 0),
    "unused": ({"lib/libx.so.1": file_code("sm_80 sm_90")}, (), 200, 100, 0),
    "used": ({"lib/libx.so.1": file_code("sm_90")}, (), 100, 0, 0),
    "lifted": (
        {"lib/13/libx.so.1": file_code("sm_80 sm_90"), "lib/libx.so.1": file_code("sm_70")},
        ({"op": "lift", "from": "lib/13", "to": "lib"},),
        *(200, 100, 0),
    ),
    "compressed together": ({"lib/libx.so.1": file_code("sm_80 sm_90", packed=0)}, (), 0, 0, 1),
    "earlier features": (None, (), 0, 0, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_sizes_of_code_are_those_of_features(tmp_path: Path, case: str) -> None:
    codes, normalise, size, unused, unknown = CASES[case]
    made_set = MadeSet()
    made_set.add("libx", {"lib/libx.so.1": b"x"}, normalise=normalise)
    document = made_set.document()
    document["capabilities"] = blank(Flags, effective=["9.0"], forward_compat=False)
    sha256 = document["packages"]["libx"]["archive"]["sha256"]
    examined: dict[str, Any] = {"status": "examined", "platform": "linux-x86_64", "sha256": sha256}
    if codes is not None:
        examined["code_by_file"] = {path: code.model_dump() for path, code in codes.items()}
    archive = blank(ExaminedArchive, **examined)
    packages = {"libx": blank(PackageFeatures, archives=[archive])}
    features = json.dumps(feature_document("13.0.2", packages=packages)).encode()
    put(tmp_path, {"features/cuda/feature_13.0.2.json": features})
    put(tmp_path, {"manifests/cuda/redistrib_13.0.2.json": b"{}"})
    package_set = PackageSet.model_validate_json(json.dumps(document))
    store = Store(tmp_path, base=Store(shipped_data(), examined_only=True))
    code = library_code(package_set, {"libx": ["lib/libx.so.1"]}, store)
    assert code is not None
    assert (code.size, code.unused_size, len(code.unknown)) == (size, unused, unknown)
    assert code.capabilities == ("9.0",)
