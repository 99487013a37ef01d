"""A small checkout of nixpkgs, with a data folder and a package set for it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from conftest import REPOSITORY

from cudaredist.jsontext import canonical_json
from support.package_sets import document, example_set, shared_tables, wheel_set

CHECKOUT = REPOSITORY / "tests" / "fixtures" / "checkout"
MANIFEST = "pkgs/development/cuda-modules/_cuda/manifests/cuda/redistrib_13.3.1.json"
PLATFORMS = ("linux-x86_64", "linux-sbsa", "linux-aarch64")
REDISTS = {
    "cuda": {"release": "13.3.1", "mode": "pinned", "newer_rejected": []},
    "cudnn": {
        "release": "9.2.0",
        "mode": "auto",
        "newer_rejected": [{"release": "9.3.0", "reason": "no archive for linux-sbsa"}],
    },
    "cutensor": {"release": None, "mode": "auto", "newer_rejected": []},
}


def manifest(label: str) -> str:
    """Return a manifest without a line feed at the end, as NVIDIA publishes it."""
    archive = {"relative_path": "a/a.tar.xz", "sha256": "0" * 64, "md5": "0" * 32, "size": "1"}
    package = {"name": "A", "license": "B", "version": label, "linux-x86_64": archive}
    return json.dumps({"release_label": label, "cuda_nvcc": package})


def create_checkout() -> Path:
    """Create a small checkout of nixpkgs, a set and its data folder in the current folder."""
    tables = shared_tables()
    folder = Path("data/manifests")
    for redist, label in (("cuda", "13.3.1"), ("cudnn", "9.2.0")):
        (folder / redist).mkdir(parents=True)
        (folder / redist / f"redistrib_{label}.json").write_text(manifest(label))
    for name, table in (("nvcc_compat", tables.compat), ("gpus", tables.gpus)):
        content = canonical_json(table.model_dump(mode="json", by_alias=True))
        Path(f"data/{name}.json").write_bytes(content)
    package_set = example_set(
        redists=REDISTS, cuda={**document()["cuda"], "attribute": "cudaPackages_13_3"}
    )
    Path("set.json").write_bytes(package_set.canonical())
    Path("wheels.json").write_bytes(wheel_set().canonical())
    shutil.copytree(CHECKOUT, "nixpkgs")
    Path("nixpkgs", MANIFEST).parent.mkdir(parents=True)
    Path("nixpkgs", MANIFEST).write_text(manifest("13.3.1") + "\n")
    return Path("nixpkgs")


def write_index(labels: Mapping[str, str]) -> str:
    """Write sets of platforms with their CUDA releases, and return the path of their index."""
    package_set = json.loads(Path("set.json").read_bytes())
    entries = []
    for platform, label in labels.items():
        package_set["platform"]["redist_system"] = platform
        package_set["redists"]["cuda"]["release"] = label
        path = Path("build", platform, "cuda-13.3.1.json")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(package_set))
        entries.append(
            {
                "path": f"{platform}/cuda-13.3.1.json",
                "sha256": "0" * 64,
                "cuda": "13.3.1",
                "platform": platform,
                "attribute": "cudaPackages_13_3",
                "capabilities": [],
                "counts": {},
            }
        )
    Path("build/index.json").write_text(
        json.dumps({"schema_version": 1, "sets": entries, "skipped": []})
    )
    return "build/index.json"
