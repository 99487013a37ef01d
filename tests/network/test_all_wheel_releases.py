"""Tests of all releases of wheels in the package index."""

import json
from pathlib import Path

import pytest
from support.running import cudaredist
from support.wheels import OTHER_BUILDS, compare_versions

pytestmark = [pytest.mark.network, pytest.mark.nightly]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Download the manifests of all releases."""
    folder = tmp_path_factory.mktemp("releases")
    options = ("--channel", "wheels", "--version", "all", "--data-dir", folder / "data", "--json")
    (folder / "report.json").write_text(cudaredist(folder, "download-manifests", *options))
    return folder


def test_no_release_has_the_wheels_of_another(releases: Path) -> None:
    outcomes = json.loads((releases / "report.json").read_bytes())["manifests"]
    assert len(outcomes) >= 240
    warnings = [
        (one["redist"], one["release"], text) for one in outcomes for text in one["warnings"]
    ]
    assert not [words for words in warnings if "the wheels are those of" in words[2]]


def test_every_release_has_a_date(releases: Path) -> None:
    paths = list((releases / "data/manifests/wheels").glob("*/redistrib_*.json"))
    assert len(paths) >= 240
    assert not [path for path in paths if "release_date" not in json.loads(path.read_bytes())]


@pytest.mark.real
def test_versions_of_all_wheels_equal_those_of_nvidia(releases: Path, real_manifests: Path) -> None:
    wheels = releases / "data/manifests/wheels"
    compared = compare_versions(wheels, real_manifests / "compute")
    assert compared.releases >= 105
    assert compared.versions >= 550
    assert compared.different == OTHER_BUILDS
