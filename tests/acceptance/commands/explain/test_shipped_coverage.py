"""Tests of the coverage of shipped releases for old and new GPUs."""

import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run

from cudaredist.commands.explain.coverage_history import (
    ArchiveCoverage,
    coverage_of_releases,
    read_coverage,
)
from cudaredist.commands.explain.newest_together import newest_together
from cudaredist.commands.explain.report import PackageCoverage, ReleaseSpan
from cudaredist.formats.features import ExaminedArchive
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.grouping import grouped
from cudaredist.primitives import Platform, Version, parse_label
from cudaredist.sets.inputs import SetData
from cudaredist.sets.load import read_set_data
from cudaredist.sets.spec import Request, SetSpec, resolve_set
from cudaredist.sets.version_choice import choose_releases
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.read_data import load_features
from cudaredist.tables.gpus.coverage import CoverageRules, cuda_major_of, describe_coverage
from cudaredist.tables.gpus.gpu_table import is_between

DATA = REPOSITORY / "data"
STORE = Store(DATA, "wheels")
NAMES = ("7.0", "7.5", "8.0", "12.0")


GPUS = read_own_file((DATA / "gpus.json").read_bytes(), Gpus)
PLAIN = tuple(name for name, entry in GPUS.capabilities.items() if entry.variant is None)


@cache
def set_data() -> SetData:
    return read_set_data(STORE)


@cache
def archives() -> tuple[ArchiveCoverage, ...]:
    return read_coverage(PLAIN, index(), GPUS, CoverageRules(GPUS))


@cache
def index() -> Index:
    return Index(STORE, Cache(Path(tempfile.mkdtemp())))


@cache
def history() -> dict[tuple[str, str], list[PackageCoverage]]:
    found = coverage_of_releases(NAMES, archives(), GPUS, index())
    return grouped(((entry.package, entry.capability), entry) for entry in found)


@pytest.mark.slow
def test_releases_without_device_code_run_on_every_gpu() -> None:
    (cudart,) = history()["cuda_cudart", "7.0"]
    assert cudart.any == ReleaseSpan(
        first="11.8.0", newest="12.8.2", since="11.8.0 or an earlier release", until="12.8.2"
    )
    assert cudart.native == ReleaseSpan(
        first="12.9.0", newest="12.9.2", since="12.9.0", until="12.9.2"
    )
    assert [entry.any for entry in history()["libcublas", "7.0"]] == [None]


def newest(redist: str) -> str:
    return str(max(STORE.features(redist).labels()))


def newest_native(package: str) -> Iterator[str | None]:
    for name in NAMES:
        spans = [entry.native for entry in history()[package, name] if entry.native]
        yield str(max(parse_label(span.newest) for span in spans)) if spans else None


@pytest.mark.parametrize(
    ("redist", "package", "expected"),
    [
        ("cudnn", "cudnn", ["9.10.2", "newest", "newest", "newest"]),
        ("cutensor", "libcutensor", ["2.2.0", "newest", "newest", "newest"]),
        ("nccl", "nccl", ["newest", "newest", "newest", "newest"]),
        ("cusparselt", "libcusparse_lt", [None, None, "newest", "newest"]),
    ],
)
def test_newest_release_with_native_code_is_expected(
    redist: str, package: str, expected: list[str | None]
) -> None:
    labels = [newest(redist) if label == "newest" else label for label in expected]
    assert list(newest_native(package)) == labels


def test_newest_cublas_with_native_code_is_expected() -> None:
    labels = STORE.features("cuda").labels()
    last_of_12 = str(max(label for label in labels if label.components[0] == 12))
    assert list(newest_native("libcublas")) == [last_of_12, *[newest("cuda")] * 3]


SHIPPED = """
# cuDNN supports Maxwell to Volta until 9.10, by its support matrix and release notes.
cudnn 9.1.1 cudnn cuda12 5.0: native 778 of 974 modules
cudnn 9.3.0 cudnn cuda12 7.5: native 516 of 622 modules
cudnn 9.5.1 cudnn cuda12 7.0: native 487 of 632 modules
cudnn 9.8.0 cudnn cuda11 7.0: native 533 of 688 modules
cudnn 9.10.2 cudnn cuda12 7.0: native 525 of 1,180 modules
cudnn 9.11.1 cudnn cuda12 7.0: partial: 1 of 5 files, native 291 of 1,180 modules
cudnn 9.11.1 cudnn cuda12 7.5: native 528 of 1,180 modules
cudnn 9.12.0 cudnn cuda13 7.0: none
# CUDA 13 supports 7.5 and later.
cuda 12.9.1 libcusparse - 7.0: native 142, ptx 8 of 163 modules
cuda 13.0.2 libcusparse - 7.0: none
cuda 13.5.0 libcusparse - 7.0: none
cuda 13.5.0 libcusparse - 7.5: native 171 of 171 modules
cuda 12.9.1 libcublas - 5.0: native 280 of 2,080 modules
# cuTENSOR: the last of Pascal, of Volta, and what is left of them.
cutensor 2.0.2 libcutensor cuda12 6.0: native 132 of 544 modules
cutensor 2.2.0 libcutensor cuda11 6.0: partial: 0 of 1 files, native 7 of 113 modules
cutensor 2.2.0 libcutensor cuda12 7.0: native 65 of 185 modules
cutensor 2.3.1 libcutensor cuda12 7.0: partial: 0 of 1 files, native 4, ptx 1 of 189 modules
# The other library, cutensorMp, has no kernels yet.
cutensor 2.4.1 libcutensor cuda12 12.0: native 145, ptx 116 of 333 modules
# cuSPARSELt supports 8.0 and later.
cusparselt 0.7.1 libcusparse_lt cuda12 8.0: native 39 of 829 modules
cusparselt 0.8.1 libcusparse_lt cuda13 7.5: partial: 0 of 1 files, native 1, ptx 1 of 804 modules
# Of NCCL 2.17, there is no wheel for CUDA 11, the last CUDA for Kepler.
nccl 2.16.5 nccl cuda11 3.5: native 363 of 363 modules
nccl 2.17.1 nccl cuda12 3.5: none
nccl 2.18.3 nccl cuda11 3.7: native 363 of 363 modules
"""
"""Release, package, variant, capability and coverage, as NVIDIA documents it."""


@pytest.mark.parametrize("row", [x for x in SHIPPED.splitlines() if x and not x.startswith("#")])
def test_shipped_release_on_gpu_has_expected_coverage(row: str) -> None:
    place, _, expected = row.partition(": ")
    redist, text, package, variant_name, capability = place.split()
    label, variant = parse_label(text), None if variant_name == "-" else variant_name
    features = load_features(STORE, redist, label)
    assert features is not None
    (files,) = (
        archive.code_by_file
        for archive in features.packages[package].archives
        if isinstance(archive, ExaminedArchive)
        and (archive.platform, archive.variant) == ("linux-x86_64", variant)
    )
    assert files is not None
    rules = CoverageRules(GPUS)
    major = cuda_major_of(redist, label, variant)
    found = rules.cover(tuple(files.values()), [capability], major)[capability]
    assert describe_coverage(found) == expected


@pytest.mark.parametrize(
    ("package", "capability", "expected"),
    [
        # CUDA 13 removed Volta.
        ("nccl", "7.0", {11: "2.13.4 2.21.5 -", 12: "2.16.2 2.32.3 -", 13: "- - 2.27.7"}),
        ("cudnn", "7.0", {11: "8.5.0 9.10.2 -", 12: "8.8.0 9.10.2 9.11.0", 13: "- - 9.12.0"}),
        ("nccl", "8.0", {None: "2.13.4 2.32.3 -"}),
        ("libcublas", "7.0", {None: "11.8.0 12.9.2 13.0.0"}),
        ("libcublas", "12.0", {None: f"12.8.0 {newest('cuda')} -"}),
    ],
)
def test_releases_on_gpu_have_one_range_for_each_cuda_major_that_differs(
    package: str, capability: str, expected: dict[int | None, str]
) -> None:
    found = {}
    for entry in history()[package, capability]:
        ends = (entry.native.first, entry.native.newest) if entry.native else ("-", "-")
        found[entry.cuda] = " ".join((*ends, entry.without.release if entry.without else "-"))
    assert found == expected


def releases_of_set(name: str, platform: Platform, cuda: Version) -> dict[str, str]:
    """Return the releases with code for a GPU that a package set has."""
    spec = resolve_set(Request(platform=platform, capabilities=(name,)), cuda, set_data())
    assert isinstance(spec, SetSpec)
    choices = choose_releases(spec.target, {}, set_data(), coverage="ptx")
    chosen = {redist: choices[redist].manifest for redist in ("cuda", "cudnn", "nccl", "cutensor")}
    return {redist: str(one.label) for redist, one in chosen.items() if one is not None}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
def test_newest_releases_of_gpu_are_those_of_a_set(name: str) -> None:
    (answer,) = newest_together([name], archives(), STORE, GPUS)
    if answer.platform is None:
        assert name in {"5.3", "6.2", "7.2", "8.7", "8.8", "10.1"}  # Jetsons with their own builds
        return
    cuda = parse_label(answer.releases["cuda"])
    assert answer.releases == releases_of_set(name, Platform(answer.platform), cuda)
    newest_cuda = max(label for label in set_data().cuda_labels if is_known_to(name, label))
    assert newest_cuda == cuda


def is_known_to(name: str, label: Version) -> bool:
    entry = GPUS.capabilities[name]
    return is_between(label.line, entry.first_cuda, entry.last_cuda)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("V100", "CUDA 12.9.2, cuDNN 9.10.2, NCCL 2.32.3 and cuTENSOR 2.2.0 are the newest known "),
        ("sm_90a", f"CUDA {newest('cuda')}, cuDNN {newest('cudnn')}, NCCL {newest('nccl')} and "),
        ("K80", "CUDA 11.8.0, cuDNN 8.7.0 and NCCL 2.21.5 are the newest known releases that run "),
        (
            "Jetson Orin",
            "CUDA 13.5.0, cuDNN 9.28.1, NCCL 2.32.3 and cuTENSOR 2.8.1 are the newest known "
            "releases that run together on compute capability 8.7 (linux-sbsa).\nThey have ",
        ),
    ],
)
def test_explain_gpu_begins_with_newest_releases(run: Run, name: str, answer: str) -> None:
    assert run("explain", "gpu", name).stdout.startswith(answer)


@pytest.mark.slow
def test_set_with_native_code_for_volta_selects_older_releases(run: Run) -> None:
    options = ("--gpu", "7.0", "--require-coverage", "native", "--data-dir", DATA)
    made = json.loads(
        run("build", "--cuda", "12.9", "--platform", "linux-x86_64", *options, "--json").stdout
    )
    found = {name: made["redists"][name]["release"] for name in ("cudnn", "cutensor", "nccl")}
    assert found == {"cudnn": "9.10.2", "cutensor": "2.2.0", "nccl": newest("nccl")}
    newer = made["redists"]["cutensor"]["newer_rejected"][0]
    assert newer["reason"].startswith("partial code for 7.0 (0 of 2 files, ptx 1 of 665 modules)")


@pytest.mark.slow
def test_set_of_default_capabilities_has_code_in_every_package(run: Run) -> None:
    options = ("--platform", "linux-x86_64", "--data-dir", DATA, "--json")
    made = json.loads(run("build", "--cuda", "13.0", *options).stdout)
    values = {
        (name, capability): part["value"]
        for name, package in made["packages"].items()
        if package["alias_of"] is None
        for capability, part in package.get("coverage", {}).items()
    }
    assert len({capability for _, capability in values}) >= 7
    assert {key for key, value in values.items() if value in {"none", "unknown"}} == set()
    # cuSPARSELt supports 8.0 and later.
    partial = {key for key, value in values.items() if value == "partial"}
    assert partial == {("libcusparse_lt", "7.5")}


@pytest.mark.parametrize(
    ("old", "new", "gained", "lost"),
    [
        ("12.9.2", "13.0.2", set(), {"5.0", "5.2", "6.0", "6.1", "7.0"}),
        # Shares of leftovers for 7.0 changed, which CUDA 13 does not support.
        pytest.param("13.3.1", "13.4.3", set(), set(), marks=pytest.mark.slow),
        pytest.param(
            *("12.6.3", "12.9.2"),
            {"10.0", "10.3", "10.7", "12.0", "12.1"},
            set(),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_diff_of_releases_lists_capabilities_of_cusparse(
    run: Run, old: str, new: str, gained: set[str], lost: set[str]
) -> None:
    result = run("diff", f"cuda@{old}", f"cuda@{new}", "--data-dir", DATA, "--json")
    (package,) = (
        each for each in json.loads(result.stdout)["packages"] if each["package"] == "libcusparse"
    )
    found = [
        delta
        for delta in package["deltas"]
        if delta["field"] == "coverage" and "linux-x86_64" in delta["places"]
    ]
    assert {name for delta in found for name in delta["added"]} == gained
    assert {name for delta in found for name in delta["gone"]} == lost
