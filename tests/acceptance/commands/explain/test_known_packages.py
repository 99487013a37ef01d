"""Tests that no package of NVIDIA's manifests is denied, on shipped data."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run

from cudaredist.commands.explain.explain_package import explain_package
from cudaredist.commands.explain.package_text import package_text
from cudaredist.store.cache import Cache
from cudaredist.store.facts_index import Index
from cudaredist.store.locate import channels_to_read, store_to_read

MANIFESTS = REPOSITORY / "data/manifests"


@cache
def packages() -> Mapping[str, set[str]]:
    """Return the packages of the shipped manifests of archives, with their SHA-256 hashes."""
    hashes: dict[str, set[str]] = {}
    for path in MANIFESTS.glob("*/redistrib_*.json"):
        for name, entry in json.loads(path.read_bytes()).items():
            if isinstance(entry, dict):
                builds = [build for build in entry.values() if isinstance(build, dict)]
                builds += [variant for build in builds for variant in build.values()
                           if isinstance(variant, dict)]  # fmt: skip
                hashes.setdefault(name, set()).update(
                    build["sha256"] for build in builds if "sha256" in build
                )
    return hashes


def test_no_package_of_manifests_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = store_to_read(None, None, with_unexamined=True)
    channels = channels_to_read(store, None)
    index = Index(store.of_channel(channels[0]), Cache(tmp_path / "cache"), channels=channels)
    assert len(packages()) == 87
    for name, hashes in packages().items():
        report = explain_package(name, index)
        archives = [archive for archive in report.archives if archive.channel == "redist"]
        text = [*package_text(report)]
        assert text[0].startswith(f"{name}: NVIDIA's archives of "), text[0]
        assert "no local manifest" not in "\n".join(text), name
        # A package can have several names, but never the hash of another kind.
        assert hashes <= {archive.sha256 for archive in archives}, name
        assert any(line.startswith("license: ") for line in text), name


@pytest.mark.parametrize("name", ["cuda_gdb", "tensorrt", "nsight_systems"])
def test_history_of_archives_is_known_without_their_contents(run: Run, name: str) -> None:
    result = run("explain", "package", name, "--history")
    assert result.exit_code == 0
    assert f"{name} (" in result.stdout
