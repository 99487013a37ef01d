"""Tests of the tool that adds NVIDIA's manifests to the shipped data."""

from pathlib import Path

import pytest
from support.factory import manifest
from support.patching import Patch
from support.releases import put

from cudaredist.primitives import sha256_of
from cudaredist.store.data_folder import Store
from tools.ship_manifests import main


def test_manifests_are_recorded_with_what_is_known(
    tmp_path: Path, patch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release with NVIDIA's hash is as published, every other one as read from a copy."""
    patch("tools.ship_manifests.shipped_data", lambda: tmp_path / "data")
    equal, copied = manifest("12.9.1"), manifest("13.0.2")
    names = {"12.9.1": equal, "13.0.2": copied}
    files = {f"redistrib_{label}.json": data for label, data in names.items()}
    put(tmp_path / "source/compute/cuda/redist", files)
    tensorrt = {"redistrib_10.9.0.json": manifest("10.9.0", "tensorrt", packages=("tensorrt",))}
    put(tmp_path / "source/handwritten/tensorrt", tensorrt)
    hashes = tmp_path / "hashes.tsv"
    hashes.write_text(
        "redist\tlabel\tsha256 on NVIDIA's server\n"
        f"cuda\t12.9.1\t{sha256_of(equal)}\n"
        f"cuda\t13.0.2\t{sha256_of(b'other bytes')}\n"
    )
    main(hashes, [tmp_path / "source"])
    store = Store(tmp_path / "data")
    entries = store.lock().redists
    assert {label: entry.as_read for label, entry in entries["cuda"].items()} == {
        "12.9.1": False,
        "13.0.2": True,
    }
    assert entries["tensorrt"]["10.9.0"].as_read
    assert store.redists() == ("cuda", "tensorrt")
    for label in store.manifests("cuda").labels():
        assert store.manifests("cuda").read(label) == names[str(label)]
        assert entries["cuda"][str(label)].sha256 == sha256_of(names[str(label)])
    assert not capsys.readouterr().out


def test_recorded_release_with_other_bytes_is_kept(
    tmp_path: Path, patch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    patch("tools.ship_manifests.shipped_data", lambda: tmp_path / "data")
    hashes = tmp_path / "hashes.tsv"
    hashes.write_text("redist\tlabel\tsha256 on NVIDIA's server\n")
    for folder, data in (("first", manifest()), ("second", manifest() + b"\n")):
        put(tmp_path / folder / "compute/cuda/redist", {"redistrib_12.9.1.json": data})
        main(hashes, [tmp_path / folder])
    stored = tmp_path / "data/manifests/cuda/redistrib_12.9.1.json"
    assert stored.read_bytes() == manifest()
    assert capsys.readouterr().out == "cuda 12.9.1: kept, the copy has other bytes\n"
