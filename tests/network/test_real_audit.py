"""audit of real wheels with GPU code, compared with readelf, cuobjdump, ldd and pip."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import REPOSITORY
from packaging.requirements import Requirement
from support.cuobjdump import download_cuobjdump
from support.running import ask_index, cudaredist

from cudaredist.primitives import parse_label
from tools.mirrors import Comparison

pytestmark = pytest.mark.network

DATA = REPOSITORY / "data"
WHEELS = {
    "torchaudio": "2.11.0",
    "torchcodec": "0.17.0",
    "torchvision": "0.29.1",
    "jax-cuda12-plugin": "0.10.2",
    "xformers": "0.0.35",
}
MORE = {
    "bitsandbytes": "0.50.2",
    "cupy-cuda11x": "13.6.0",
    "cupy-cuda12x": "14.2.0",
    "cupy-cuda13x": "14.2.0",
    "faiss-gpu-cu12": "1.14.1.post1",
    "lmdeploy": "0.18.0",
    "onnxruntime-gpu": "1.31.1",
    "pennylane-lightning-gpu": "0.45.0",
    "sgl-kernel": "0.3.21",
    "torch": "2.15.0",
    "transformer-engine-cu12": "2.20.2",
    "vllm": "0.33.0",
    "xgboost": "3.2.0",
}
"""Wheels that need many gigabytes. By hand, `AUDITED_WHEELS=all` reads them too."""
CHOSEN = WHEELS | MORE if os.environ.get("AUDITED_WHEELS") == "all" else WHEELS
PLATFORM = [
    *("--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux2014_x86_64"),
    *(word for n in range(5, 29) for word in ("--platform", f"manylinux_2_{n}_x86_64")),
]
PIP = [sys.executable, "-m", "pip"]
REFUSED = {"libbitsandbytes_cuda121.so"}
"""Files that cuobjdump calls an invalid ELF file."""

_is_cuda = re.compile(
    r"_*(?:cuda|cu(?:blas|dnn|fft|rand|solver|sparse|tensor|pti|File)"
    r"|nccl|nvrtc|nvJitLink|nvjpeg|nvshmem)"
).match
_find_symbols = re.compile(r"(?:undefined symbol: |^symbol )(\w+)", re.MULTILINE).findall
_find_libraries = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE).findall


class Audited(NamedTuple):
    """A wheel, its unpacked files, and the report on it."""

    wheel: Path
    files: Path
    answer: Any


def download(folder: Path, project: str, version: str) -> Path:
    ask_index(*PIP, "download", "-q", "--no-deps", *PLATFORM, "-d", folder, f"{project}=={version}")
    (wheel,) = folder.glob(f"{project.replace('-', '_')}-{version}-*.whl")
    return wheel


@pytest.fixture(scope="module", params=CHOSEN)
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp("audited")
    wheel = download(folder, request.param, CHOSEN[request.param])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "files")
    return Audited(
        wheel, folder / "files", json.loads(cudaredist(folder, "audit", wheel, "--json", code=None))
    )


def test_needed_libraries_of_a_wheel_equal_those_of_readelf(audited: Audited) -> None:
    needed, glibc = readelf(audited.files)
    answer = audited.answer
    libraries = {
        one["soname"]: set(one["by"]) for one in answer["libraries"] if one["kind"] == "needed"
    }
    assert libraries == needed
    assert answer["glibc"]["version"] == ".".join(map(str, max(glibc)))


def readelf(folder: Path) -> tuple[dict[str, set[str]], set[tuple[int, ...]]]:
    """Return the files by the library that they need, and the needed versions of glibc."""
    needed: dict[str, set[str]] = defaultdict(set)
    glibc: set[tuple[int, ...]] = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            done = subprocess.run(
                ["readelf", "-dVW", path], check=True, capture_output=True, text=True
            )
            for soname in re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout):
                needed[soname].add(path.relative_to(folder).as_posix())
            versions = re.findall(r"Name: GLIBC_([0-9.]+)", done.stdout)
            glibc |= {tuple(map(int, version.split("."))) for version in versions}
    return dict(needed), glibc


@pytest.fixture(scope="module")
def cuobjdump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_cuobjdump(tmp_path_factory.mktemp("cuobjdump"))


def test_device_code_of_a_wheel_equals_that_of_cuobjdump(audited: Audited, cuobjdump: Path) -> None:
    """Cuobjdump prints the suffix of `sm_100f` in headings, but not in its list of files."""
    comparison = Comparison(cuobjdump)
    comparison.device_code_below(audited.files)
    refused = [name for name in REFUSED if list(audited.files.rglob(name))]
    assert set(comparison.differences) == {
        f"{mode} cannot read {name}" for name in refused for mode in ("cuobjdump", "cuobjdump -all")
    }
    assert comparison.counts["cuobjdump: images"] > 0
    assert audited.answer["device_code"]


def test_requirements_of_a_wheel_provide_its_libraries(audited: Audited, tmp_path: Path) -> None:
    """Pip accepts them, and the wheels that it would install have all needed libraries."""
    text = cudaredist(tmp_path, "audit", audited.wheel, "--format", "requirements", code=None)
    provided = {
        one["soname"]: {provider["project"] for provider in one["providers"]}
        for one in audited.answer["libraries"]
        if one["status"] == "provided" and one["kind"] != "opened"
    }
    assert all(projects & set(names(text)) for projects in provided.values())
    found: set[str] = set()
    for number, part in enumerate(re.split(r"^# CUDA [0-9]+:$", text, flags=re.MULTILINE)):
        if names(part):
            found |= installed_files(part, tmp_path / str(number))
    assert found >= provided.keys()


def names(text: str) -> list[str]:
    """Return the projects of requirements."""
    lines = (line.partition("  #")[0] for line in text.splitlines())
    return [Requirement(line).name for line in lines if line and not line.startswith("#")]


def installed_files(requirements: str, folder: Path) -> set[str]:
    """Return the names of the files in the wheels that pip would install."""
    folder.mkdir()
    listed, report, wheels = folder / "list.txt", folder / "report.json", folder / "wheels"
    listed.write_text(requirements)
    options = ["--dry-run", "--ignore-installed", "--target", folder / "none", "--report", report]
    ask_index(*PIP, "install", "-q", *options, *PLATFORM, "-r", listed)
    chosen = [entry["metadata"] for entry in json.loads(report.read_bytes())["install"]]
    pins = [f"{one['name']}=={one['version']}" for one in chosen]
    ask_index(*PIP, "download", "-q", "--no-deps", *PLATFORM, "-d", wheels, *pins)
    found = set()
    for path in wheels.iterdir():
        with zipfile.ZipFile(path) as wheel:
            found |= {name.rpartition("/")[2] for name in wheel.namelist()}
        path.unlink()
    return found


def test_run_paths_of_a_wheel_lead_to_its_libraries(audited: Audited, tmp_path: Path) -> None:
    """The loader finds libraries in installed wheels of NVIDIA, except those that are reported."""
    text = cudaredist(tmp_path, "audit", audited.wheel, "--format", "requirements", code=None)
    listed, site = tmp_path / "list.txt", tmp_path / "site"
    listed.write_text(text)
    install = [*PIP, "install", "-q", "--no-deps", "--target", site, *PLATFORM]
    ask_index(*install, audited.wheel, "-r", listed)
    libraries = [
        one
        for one in audited.answer["libraries"]
        if one["cuda"] and one["kind"] == "needed" and one["status"] in {"bundled", "provided"}
    ]
    needed = {name for one in audited.answer["libraries"] for name in one["bundled"]}
    for path in sorted({path for one in libraries for path in one["by"]}):
        found = libraries_in(site, ldd([site / path], [], []))
        sonames = {one["soname"] for one in libraries if path in one["by"]}
        reported = {one["soname"] for one in libraries if path in one["not_found_by"]}
        assert not reported & found, path
        # A library that another file needs also uses the run paths of that file.
        assert path in needed or sonames - found == reported, path


def libraries_in(folder: Path, output: str) -> set[str]:
    """Return the libraries that ldd finds in a folder, and not in the system."""
    return {name for name, path in _find_libraries(output) if Path(path).is_relative_to(folder)}


def test_lowest_release_of_a_wheel_has_its_symbols(audited: Audited, tmp_path: Path) -> None:
    assert_lowest_releases(audited.answer, audited.files, tmp_path)


def test_release_before_the_lowest_one_lacks_symbols(tmp_path: Path) -> None:
    """One library of cupy needs NCCL only, from a release with `ncclCommSplit`."""
    wheel = download(tmp_path, "cupy-cuda12x", MORE["cupy-cuda12x"])
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.startswith("cupy_backends/cuda/libs/nccl."))
        path = Path(archive.extract(name, tmp_path))
    answer = json.loads(cudaredist(tmp_path, "audit", path, "--json", code=None))
    assert [(one["redist"], one["decisive"]) for one in answer["releases"]] == [
        ("nccl", ["ncclCommSplit"])
    ]
    assert assert_lowest_releases(answer, path.parent, tmp_path) == 1


def assert_lowest_releases(answer: Any, files: Path, folder: Path) -> int:
    """Load files with their lowest releases, and with the previous release of each.

    Return the number of comparisons with a previous release. The first release with all libraries
    has none.
    """
    compared = 0
    for major in answer["cuda_majors"] or [None]:
        releases = [
            one for one in answer["releases"] if one["cuda_majors"] == ([major] if major else [])
        ]
        if not releases:
            continue
        lowest = {one["redist"]: one["lowest"] for one in releases}
        libraries = [one for one in answer["libraries"] if is_for(one, releases)]
        paths = sorted({files / path for one in libraries for path in one["by"]})
        root = library_folder(folder, lowest, packages(libraries))
        unlinked = [root / one["soname"] for one in libraries if one["kind"] == "unlinked"]
        sonames = {one["soname"] for one in libraries}
        output = ldd(paths, [root], unlinked)
        assert {*filter(_is_cuda, _find_symbols(output))} == set()
        assert sonames - {path.name for path in unlinked} <= libraries_in(root, output)
        for one in releases:
            before = label_before(one["not_fitting"], one["lowest"])
            if before is None:
                # No release before it has all of the libraries.
                assert_first_release(one, major)
                continue
            names = packages(libraries, one["redist"])
            older = library_folder(folder, {**lowest, one["redist"]: before}, names)
            lacking = {*filter(_is_cuda, _find_symbols(ldd(paths, [older, root], unlinked)))}
            assert lacking >= set(one["decisive"]) > set()
            compared += 1
    return compared


def is_for(library: Any, releases: Sequence[Any]) -> bool:
    """Check if a library is one of those that some releases provide."""
    return library["kind"] in {"needed", "unlinked"} and any(
        library["soname"] in one["sonames"] for one in releases
    )


def packages(libraries: Sequence[Any], redist: str | None = None) -> list[str]:
    """Return the packages with some libraries."""
    providers = (provider for one in libraries for provider in one["providers"])
    return sorted({p["package"] for p in providers if redist in {None, p["redist"]}})


def library_folder(folder: Path, labels: Mapping[str, str], chosen: Sequence[str]) -> Path:
    """Return the folder of libraries in a new root with packages of some releases."""
    name = "-".join(f"{redist}-{label}" for redist, label in sorted(labels.items()))
    description, root = folder / f"{name}.json", folder / name
    others = [f"--redist={name}={label}" for name, label in labels.items() if name != "cuda"]
    data = ("--data-dir", DATA)
    options = ("--channel", "wheels", "--platform", "linux-x86_64", *data, *others)
    release = labels.get("cuda", "12.9.1")
    cudaredist(folder, "build", *options, "--cuda", release, "--output", description)
    selection = [f"--component={name}" for name in chosen]
    cudaredist(folder, "materialize", description, *data, "-o", root, "--no-static", *selection)
    return root / "lib64"


def ldd(files: Sequence[Path], folders: Sequence[Path], loaded: Sequence[Path]) -> str:
    """Return the output of `ldd -r` for files, if some libraries are loaded before."""
    environment = os.environ | {
        "LD_LIBRARY_PATH": ":".join(map(str, folders)),
        "LD_PRELOAD": ":".join(map(str, loaded)),
    }
    outputs = (
        subprocess.run(
            ["ldd", "-r", path],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
        ).stdout
        for path in files
    )
    return b"".join(outputs).decode(errors="replace")


def label_before(labels: Sequence[str], lowest: str) -> str | None:
    """Return the newest of some releases that are before the lowest one."""
    before = [label for label in labels if parse_label(label) < parse_label(lowest)]
    return max(before, key=parse_label, default=None)


def assert_first_release(release: Any, major: int | None) -> None:
    """Assert that the release before the lowest one does not have all of the libraries."""
    folder = DATA / "features" / "wheels" / release["redist"]
    labels = [path.stem.removeprefix("feature_") for path in folder.glob("feature_*.json")]
    before = label_before(labels, release["lowest"])
    if before is not None:
        document = json.loads((folder / f"feature_{before}.json").read_bytes())
        assert not set(release["sonames"]) <= set(sonames_of(document, major)), before


def sonames_of(document: Any, major: int | None) -> Iterator[str]:
    """Yield the libraries of a release for a CUDA major on Linux."""
    for package in document["packages"].values():
        for archive in package["archives"]:
            if archive["platform"] == "linux-x86_64" and archive["variant"] in {
                None,
                f"cuda{major}",
            }:
                yield from (one["soname"] for one in archive["libraries"])
