"""Tests of the shipped manifests of wheels, compared with NVIDIA's manifests."""

import json
from collections import defaultdict
from datetime import date
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


def test_sources_page_states_differences_of_dates(real_manifests: Path) -> None:
    days: dict[str, list[int]] = defaultdict(list)
    for path in sorted((REPOSITORY / "data/manifests/wheels").glob("*/redistrib_*.json")):
        redist, label = path.parent.name, path.stem.removeprefix("redistrib_")
        other = real_manifests / "compute" / redist / "redist" / path.name
        if other.exists():
            product = {"cuda": "CUDA", "cudnn": f"cuDNN {label[0]}"}.get(redist, "others")
            days[product].append((date_of(path) - date_of(other)).days)
    page = (REPOSITORY / "docs/sources.md").read_text()
    for product, found in days.items():
        assert f"| {product} | {len(found)} | {min(found)} | {max(found)} |" in page
    assert f"{sum(map(len, days.values()))} releases of the shipped data" in page


def date_of(manifest: Path) -> date:
    return date.fromisoformat(json.loads(manifest.read_bytes())["release_date"])
