"""Tests of package sets from real manifests, including two worked examples."""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import REAL_MANIFESTS, SHARED
from support.running import succeed
from support.set_inputs import build, put_policy

from cudaredist.commands.build.build_sets import build_one, specs_for
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.primitives import Platform, Version
from cudaredist.sets.closures import closure_of
from cudaredist.sets.flags import release_defaults
from cudaredist.sets.invariants.documents import check_run, check_set
from cudaredist.sets.load import read_set_data
from cudaredist.sets.spec import Request
from cudaredist.store.data_folder import Store
from cudaredist.store.locate import store_to_read
from cudaredist.store.selection import ALL

pytestmark = pytest.mark.real

EXAMPLES = SHARED / "docs" / "examples" / "package-sets.json"
CUDNN = "9.13.0"


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with every manifest of the corpus."""
    if not REAL_MANIFESTS.is_dir():
        pytest.skip(f"NVIDIA's manifests are not at {REAL_MANIFESTS}")
    folder = tmp_path_factory.mktemp("real") / "data"
    options = ("--base-url", REAL_MANIFESTS, "--version", "all", "--data-dir", folder)
    succeed("download-manifests", *options)
    return folder


def test_every_set_of_every_release_satisfies_invariants(data_folder: Path) -> None:
    data = read_set_data(store_to_read(data_folder, "redist"))
    specs = specs_for(Request(allow_missing_features=True), data, [ALL])
    sets = [build_one(spec, data) for spec in specs]
    labels = data.cuda_labels
    assert (str(labels[0]), str(labels[-1])) == ("11.4.2", "13.4.2")
    assert len(sets) == sum(len(data.cuda_platforms(label)) for label in labels)
    assert all(package_set.canonical().startswith(b"{") for package_set in sets)
    violations = {
        f"{found.cuda.release} {found.platform.redist_system}": [str(v) for v in check_set(found)]
        for found in sets
    }
    assert {name: found for name, found in violations.items() if found} == {}
    # Without features, the sizes are unknown, and not zero.
    for package_set in sets:
        for name, package in package_set.packages.items():
            if package.status == "available":
                assert closure_of(package_set, name) is None
    assert [found for found in check_run(sets) if found] == []


# -- selection by availability, without pins


@pytest.mark.parametrize(
    ("system", "capabilities", "expected"),
    [
        ("x86_64-linux", (), {"12.6": "11.3.0", "12.9": "11.3.0", "13.0": "11.3.0"}),
        ("aarch64-linux", (), {"12.6": "10.13.0", "12.9": "10.13.0", "13.0": "11.3.0"}),
        ("aarch64-linux", ("8.7",), {"12.6": "10.7.0", "12.9": "10.7.0", "13.0": "10.14.1"}),
        ("aarch64-linux", ("11.0",), {"13.0": "10.14.1", "13.4": "10.14.1"}),
    ],
)
def test_tensorrt_release_follows_availability(
    data_folder: Path, system: str, capabilities: tuple[str, ...], expected: Mapping[str, str]
) -> None:
    """The manifests give the releases that nixpkgs maintains by hand for each platform."""
    data = read_set_data(store_to_read(data_folder, "redist"))
    for cuda, release in expected.items():
        found = build(data, cuda, system=system, capabilities=capabilities)
        assert found.redists["tensorrt"].release == release
        assert found.packages["tensorrt"].status == "available"


@pytest.mark.parametrize(
    ("cuda", "expected"),
    [
        ("11.8", {"cublasmp": "0.2.1", "cudnn": "9.10.2", "cusparselt": "0.5.2"}),
        ("12.4", {"cudnn": "9.14.0", "cudss": "0.7.1", "cusparselt": "0.6.3"}),
        ("12.8", {"cusparselt": "0.7.1"}),
        ("12.9", {"cusparselt": "0.8.1", "nccl": "2.29.2-cuda12.9"}),
        ("13.0", {"nccl": "2.32.3-cuda13.4"}),
    ],
)
def test_other_releases_follow_availability(
    data_folder: Path, cuda: str, expected: Mapping[str, str]
) -> None:
    data = read_set_data(store_to_read(data_folder, "redist"))
    redists = build(data, cuda, Platform("linux-x86_64")).redists
    assert {name: redists[name].release for name in expected} == expected


def test_compat_run_path_is_set_for_each_minor(data_folder: Path) -> None:
    data = read_set_data(store_to_read(data_folder, "redist"))
    compat_by_minor = {}
    for label in data.cuda_labels:
        if "linux-aarch64" in data.cuda_platforms(label):
            package_set = build(data, str(label), Platform("linux-aarch64"), capabilities=("8.7",))
            compat_by_minor[label.line] = package_set.packages["cuda_nvcc"].compat_runpath
    assert compat_by_minor == dict.fromkeys(
        ("11.8", "12.0", "12.1", "12.2", "12.4", "12.5", "12.6", "12.8", "12.9"), True
    )


# -- the worked examples


def examples() -> list[Any]:
    if not EXAMPLES.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(f"nothing at {EXAMPLES}"))]
    document = json.loads(EXAMPLES.read_bytes())
    return [pytest.param(example, id=example["id"]) for example in document["examples"]]


@pytest.fixture(scope="session")
def with_cudnn(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an overlay with a manifest of cuDNN 9.13.0, which is not in the corpus.

    It is the manifest of 9.13.1 with the version and hashes of the examples.
    """
    folder = tmp_path_factory.mktemp("overlay")
    manifest_path = data_folder / "manifests/cudnn/redistrib_9.13.1.json"
    manifest = json.loads(manifest_path.read_bytes()) | {"release_label": CUDNN}
    for package in manifest.values():
        if isinstance(package, dict):
            package["version"] = f"{CUDNN}.50"
    for example in json.loads(EXAMPLES.read_bytes())["examples"]:
        for entry in example["expect"]["available"]:
            if entry["redist"] == "cudnn":
                platform = manifest[entry["pname"]][entry["redist_system"]]
                platform[entry["cuda_variant"]]["sha256"] = entry["sha256"]
    path = folder / f"manifests/cudnn/redistrib_{CUDNN}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(manifest))
    reason = {"reason": "nvshmem was not packaged then", "reference": "the examples"}
    put_policy(folder, "withheld", withheld={"libcublasmp": reason})
    return folder


def example_set(data_folder: Path, overlay: Path, inputs: Any) -> PackageSet:
    data = read_set_data(store_to_read(data_folder, "redist"), [Store(overlay)])
    return build(
        data,
        inputs["cuda"],
        system=inputs["nix_system"],
        capabilities=tuple(inputs["requested_capabilities"] or ()),
        forward_compat=inputs["forward_compat"],
        pins={k: v for k, v in inputs["redist_versions"].items() if k != "cuda"},
        default_gcc=inputs["default_gcc"],
        available_gcc=tuple(inputs["available_gcc"]),
    )


def outlined(package: SetPackage) -> dict[str, Any]:
    """Return an available package with the keys of the examples."""
    archive = package.archive
    assert archive is not None
    return {
        "pname": package.pname,
        "redist": package.redist,
        "version": package.version,
        "redist_system": archive.platform,
        "cuda_variant": archive.cuda_variant,
        "sha256": archive.sha256,
    }


@pytest.mark.parametrize("example", examples())
def test_worked_example_is_reproduced(data_folder: Path, with_cudnn: Path, example: Any) -> None:
    universe = json.loads(EXAMPLES.read_bytes())["universe"]
    expect = example["expect"]
    found = example_set(data_folder, with_cudnn, example["inputs"])

    by_status: dict[str, list[SetPackage]] = defaultdict(list)
    for name in universe:
        by_status[found.packages[name].status].append(found.packages[name])
    assert {status: len(entries) for status, entries in by_status.items()} == expect["counts"]
    assert [outlined(entry) for entry in by_status["available"]] == sorted(
        expect["available"], key=lambda entry: entry["pname"]
    )
    unsupported = [
        {"pname": e.pname, "redist": e.redist, "version": e.version, "reason": e.reasons[0].code}
        for e in by_status["unsupported"]
    ]
    keys = ("pname", "redist", "version", "reason")
    assert unsupported == sorted(
        ({key: entry[key] for key in keys} for entry in expect["unsupported"]),
        key=lambda entry: str(entry["pname"]),
    )
    assert [entry.attr for entry in by_status["withheld"]] == sorted(expect["withheld"])

    assert found.platform.redist_system == expect["redist_system"]
    assert found.cuda.attribute == expect["package_set_attribute"]
    assert found.cuda.name_prefix == expect["name_prefix"]
    flags = found.capabilities.model_dump(mode="json")
    # nixpkgs has one list for all platforms. The list of a Jetson build has only its Jetsons.
    gpus = read_set_data(store_to_read(data_folder, "redist")).gpus
    of_release = list(release_defaults(Version.parse(found.cuda.release), gpus))
    assert of_release == expect["default_capabilities"]
    is_jetson = found.platform.jetson
    assert flags["default"] == (expect["effective_capabilities"] if is_jetson else of_release)
    assert flags["effective"] == expect["effective_capabilities"]
    expected_flags = dict(expect["flags"])
    assert flags["effective"] == expected_flags.pop("capabilities")
    assert {name: flags[name] for name in expected_flags} == expected_flags
    gcc, clang = found.host_compiler.gcc, found.host_compiler.clang
    assert gcc is not None
    assert clang is not None
    assert gcc.model_dump(exclude={"default"}) == expect["host_gcc"]
    assert clang.model_dump() == expect["host_clang_range"]
    compat = {
        entry.compat_runpath for entry in by_status["available"] if entry.attr != "cuda_compat"
    }
    assert compat == {expect["cuda_compat_runpath"]}
    assert check_set(found) == []
