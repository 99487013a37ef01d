"""The data shipped: which releases run on old and new GPUs, by their device code."""

import json
from collections.abc import Iterator
from functools import cache

import pytest
from conftest import REPOSITORY

from cudaredist.pipeline.tables.coverage_history import coverage_of_releases
from cudaredist.reports.answer_reports import PackageCoverage
from cudaredist.schema.registry import read_own_file
from cudaredist.schema.tables import Gpus
from cudaredist.store.data_folder import Store

DATA = REPOSITORY / "data"
STORE = Store(DATA, "wheels")
NAMES = ("7.0", "7.5", "8.0", "12.0")


def is_known(redist: str) -> bool:
    """Check if every examined archive of a redistributable states its device code by file."""
    documents = (
        json.loads(path.read_bytes())
        for path in (DATA / "features/wheels" / redist).glob("feature_*.json")
    )
    return all(
        "code_by_file" in archive
        for document in documents
        for entry in document["packages"].values()
        for archive in entry["archives"]
        if archive["status"] == "examined"
    )


pytestmark = pytest.mark.skipif(
    not is_known("cutensor"), reason="the feature files are of rules without code by file"
)


@cache
def history() -> dict[tuple[str, str], PackageCoverage]:
    gpus = read_own_file((DATA / "gpus.json").read_bytes(), Gpus)
    found = coverage_of_releases(NAMES, STORE, gpus)
    return {(entry.package, entry.capability): entry for entry in found}


def newest(redist: str) -> str:
    return str(max(STORE.features(redist).labels()))


def newest_native(package: str) -> Iterator[str | None]:
    for name in NAMES:
        span = history()[package, name].native
        yield span.newest if span else None


def test_cudnn_newest_release_with_native_code_is_the_known_one() -> None:
    assert list(newest_native("cudnn")) == ["9.10.2", *[newest("cudnn")] * 3]


def test_cutensor_newest_release_with_native_code_is_the_known_one() -> None:
    assert list(newest_native("libcutensor")) == ["2.2.0", *[newest("cutensor")] * 3]


def test_nccl_newest_release_with_native_code_is_the_known_one() -> None:
    assert list(newest_native("nccl")) == [newest("nccl")] * 4


def test_cusparselt_newest_release_with_native_code_is_the_known_one() -> None:
    expected = [None, None, newest("cusparselt"), newest("cusparselt")]
    assert list(newest_native("libcusparse_lt")) == expected


def test_cublas_newest_release_with_native_code_is_the_known_one() -> None:
    labels = STORE.features("cuda").labels()
    last_of_12 = str(max(label for label in labels if label.components[0] == 12))
    assert list(newest_native("libcublas")) == [last_of_12, *[newest("cuda")] * 3]


def test_cublas_first_release_for_a_new_gpu_is_the_known_one() -> None:
    span = history()["libcublas", "12.0"].native
    assert span is not None
    assert span.first == "12.8.2"
