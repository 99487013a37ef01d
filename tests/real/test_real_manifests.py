"""Tests of NVIDIA's real manifests, compared with an independent reader."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REAL_MANIFESTS, REPOSITORY, Run
from support.server import FaultServer

from cudaredist.errors import InvalidFileError
from cudaredist.formats.registry import schema_problems
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import label_of_manifest_name
from cudaredist.redists import REDISTS
from cudaredist.wheel_projects import PLATFORMS

pytestmark = pytest.mark.real

FILES = sorted(REAL_MANIFESTS.rglob("redistrib_*.json"))


def listed() -> list[object]:
    if not FILES:
        return [pytest.param(None, marks=pytest.mark.skip(f"nothing at {REAL_MANIFESTS}"))]
    return [pytest.param(path, id=path.relative_to(REAL_MANIFESTS).as_posix()) for path in FILES]


Row = tuple[str, str, str, str | None, str, str | None, str | None, int | None]


def plainly_read(document: dict[str, dict[str, object]]) -> Iterator[Row]:
    """Read a manifest in the simplest way, independently of the reader."""
    for package, value in document.items():
        if package.startswith("release_"):
            continue
        if "version" in value:
            for platform, entry in value.items():
                if isinstance(entry, dict):
                    candidates = {None: entry, **entry}
                    for variant, item in candidates.items():
                        if isinstance(item, dict) and "relative_path" in item:
                            size = int(item["size"]) if "size" in item else None
                            yield (
                                *(package, str(value["version"]), platform, variant),
                                *(item["relative_path"], item["sha256"], item.get("md5"), size),
                            )
        else:
            for version, platforms in value.items():
                assert isinstance(platforms, dict)
                for platform, path in platforms.items():
                    if platform != "release_date":
                        yield (package, version, platform, None, path, None, None, None)


def test_corpus_is_complete() -> None:
    if not FILES:
        pytest.skip(f"nothing at {REAL_MANIFESTS}")
    handwritten = [path for path in FILES if "handwritten" in path.parts]
    assert (len(FILES) - len(handwritten), len(handwritten)) == (164, 18)


@pytest.mark.parametrize("path", listed())
def test_manifest_agrees_with_independent_reader(path: Path) -> None:
    data = path.read_bytes()
    manifest = read_manifest(data, label=label_of_manifest_name(path.name))
    document = json.loads(data)
    rows = [
        (a.package, str(a.version), a.platform, a.variant, a.relative_path, a.sha256, a.md5, a.size)
        for a in manifest.archives
    ]
    expected = list(plainly_read(document))
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert [p.name for p in manifest.packages] == [k for k in document if k[:8] != "release_"]
    assert (
        {a.platform for a in manifest.archives}
        == {row[2] for row in expected}
        == manifest.platforms
    )
    declared = {name: v.get("cuda_variant") for name, v in document.items() if isinstance(v, dict)}
    for package in manifest.packages:
        assert package.variants == tuple(f"cuda{n}" for n in declared[package.name] or ())
    assert manifest.warnings == ()
    assert manifest.unknown == ()
    assert str(manifest.label) == document.get(
        "release_label", path.stem.removeprefix("redistrib_")
    )
    redist = REDISTS[path.parent.name if "handwritten" in path.parts else path.parts[-3]]
    product = manifest.release_product
    assert product is None or redist.accepts_product(product)


def test_most_flipped_bits_in_manifests_are_refused() -> None:
    if not FILES:
        pytest.skip(f"nothing at {REAL_MANIFESTS}")
    chance = random.Random(7)
    refused = flips = 0
    for path in FILES:
        data = path.read_bytes()
        for bit in chance.sample(range(len(data) * 8), 20):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            flips += 1
            try:
                read_manifest(bytes(damaged), label=label_of_manifest_name(path.name))
            except InvalidFileError:
                refused += 1
    assert refused / flips > 0.85


def test_every_manifest_is_downloaded_unchanged(
    run: Run, server: FaultServer, real_manifests: Path
) -> None:
    server.add_folder(real_manifests)
    result = run("download-manifests", "--base-url", server.url, "--version", "all", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "", "no warnings about NVIDIA's own files"
    compute = [path for path in FILES if "compute" in path.parts]
    assert len(report["manifests"]) == len(compute)
    for path in compute:
        local = Path("data/manifests") / path.parts[-3] / path.name
        assert local.read_bytes() == path.read_bytes()


def test_folder_source_includes_tensorrt(run: Run, real_manifests: Path) -> None:
    result = run("download-manifests", "--base-url", real_manifests, "--version", "all", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert len(report["manifests"]) == len(FILES)
    absent = {r["redist"] for r in report["redists"] if r["status"] == "absent"}
    assert absent == {"cufftmp", "nvidia-driver", "nvidia-hpc-benchmarks"}
    local = Path("data/manifests/tensorrt/redistrib_8.6.1.json")
    assert local.read_bytes() == (real_manifests / "handwritten/tensorrt" / local.name).read_bytes()


def test_check_of_all_manifests_finds_only_missing_features_and_tables(
    run: Run, real_manifests: Path
) -> None:
    run("download-manifests", "--base-url", real_manifests, "--version", "all")
    result = run("check", "--base-url", real_manifests, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    kinds = {finding["kind"] for finding in report["findings"]}
    assert kinds == {"no-features", "table-missing", "platform-lost"}
    lost = {(f["redist"], f["release"]) for f in report["findings"] if f["kind"] == "platform-lost"}
    assert ("cudnn", "8.9.7") in lost


def test_documented_positional_call_stores_real_manifest(
    run: Run, server: FaultServer, real_manifests: Path
) -> None:
    server.add_folder(real_manifests)
    result = run(
        *("download-manifests", "--log-level", "DEBUG", "--version", "12.9.1"),
        *(f"{server.url}/compute/cuda/redist", "./manifests"),
    )
    assert result.exit_code == 0
    local = Path("manifests/redistrib_12.9.1.json")
    published = real_manifests / "compute/cuda/redist" / local.name
    assert local.read_bytes() == published.read_bytes()


def test_every_real_manifest_is_valid(run: Run, real_manifests: Path) -> None:
    files = sorted(real_manifests.rglob("redistrib_*.json"))
    assert run("validate", "--strict", *files).exit_code == 0


@pytest.mark.parametrize("path", listed())
def test_manifest_schema_accepts_real_manifest(path: Path) -> None:
    assert schema_problems(json.loads(path.read_bytes()), "manifest") == []


Places = set[tuple[str, str | None]]


def places_of(path: Path) -> dict[str, tuple[str, Places]]:
    """Return the version of each package, and its platforms with wheels and variants."""
    rows: dict[str, tuple[str, Places]] = {}
    for package, version, platform, variant, *_ in plainly_read(json.loads(path.read_bytes())):
        places = rows.setdefault(package, (version, set()))[1]
        places |= {(platform, variant)} if platform in PLATFORMS else set()
    return rows


def test_shipped_wheels_have_versions_and_variants_of_archives() -> None:
    """CUDA's wheels are left out, because many have a newer build.

    Versions of some wheels lack the last number, and older wheels lack variants and platforms.
    """
    releases = [
        (wheels, archives)
        for wheels in (REPOSITORY / "data/manifests/wheels").rglob("redistrib_*.json")
        for archives in REAL_MANIFESTS.rglob(wheels.name)
        if archives.parent.parent.name == wheels.parent.name != "cuda"
    ]
    if not releases:
        pytest.skip(f"nothing at {REAL_MANIFESTS}")
    equal = set()
    for wheels, archives in releases:
        ours, theirs = places_of(wheels), places_of(archives)
        if wheels.parent.name == "cuquantum":
            assert ours.keys() > {"custatevec", "cutensornet", "cudensitymat"}
            theirs = {name: (ours[name][0], theirs["cuquantum"][1]) for name in ours}
        for name, (version, places) in ours.items():
            of_archives, archive_places = theirs[name]
            numbers = of_archives.split(".")[:3]
            assert version.split(".")[:3] == numbers, (wheels, name)
            is_flat = {variant for _, variant in archive_places} == {None}
            assert is_flat or places <= archive_places, (wheels, name)
        if all(of_wheels == theirs[name] for name, of_wheels in ours.items()):
            equal.add(f"{wheels.parent.name} {wheels.stem.removeprefix('redistrib_')}")
    new = ("cublasmp 0.10.0", "cuquantum 26.09.0", "nvcomp 5.3.0", "nvpl 25.5", "nvtiff 0.8.0")
    assert equal >= {*new}
