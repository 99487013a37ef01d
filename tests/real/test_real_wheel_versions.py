"""Tests of the shipped manifests of wheels, compared with NVIDIA's manifests."""

from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.wheels import OTHER_BUILDS, compare_versions

pytestmark = pytest.mark.real


def test_versions_of_shipped_wheels_equal_those_of_nvidia(real_manifests: Path) -> None:
    wheels = REPOSITORY / "data/manifests/wheels"
    compared = compare_versions(wheels, real_manifests / "compute")
    assert compared.releases >= 50
    assert compared.versions >= 250
    assert compared.different == OTHER_BUILDS
