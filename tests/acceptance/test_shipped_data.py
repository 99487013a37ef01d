"""Tests of the shipped data: contents, validity and package sets."""

import json
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from pydantic import TypeAdapter
from support.running import expect_output

from cudaredist.commands.build.build_sets import build_one, specs_for
from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.diff.text import diff_text
from cudaredist.formats.packageset import PackageSet
from cudaredist.sets.closures import closure_of
from cudaredist.sets.file_outputs import resolve
from cudaredist.sets.inputs import SetData
from cudaredist.sets.invariants.documents import check_run, check_set
from cudaredist.sets.library_names import key_of
from cudaredist.sets.load import read_set_data
from cudaredist.sets.spec import Request
from cudaredist.store.data_folder import Store
from cudaredist.store.selection import ALL

DATA = REPOSITORY / "data"
MANIFESTS, FEATURES = DATA / "manifests/wheels", DATA / "features/wheels"
PLATFORMS = {"linux-x86_64", "linux-sbsa", "windows-x86_64"}
ONLY_ON_LINUX = ("cublasmp", "cufftmp", "cuquantum", "cusolvermp", "nccl", "nvshmem")
LIBRARIES = ("cudnn", "cusparselt", "cutensor", "nvcomp", "nvjpeg2000", "nvtiff", *ONLY_ON_LINUX)


# These have no wheels of nvcc and NVRTC, so that `build` refuses them.
HOLLOW = {("12.3.1", "linux-sbsa")}


@cache
def set_data() -> SetData:
    return read_set_data(Store(DATA, "wheels"))


@pytest.fixture(scope="module")
def sets() -> list[PackageSet]:
    """Build every shipped release of CUDA for each of its platforms."""
    data = set_data()
    specs = specs_for(Request(), data, [ALL])
    return [
        build_one(spec, data) for spec in specs if (str(spec.cuda), spec.platform) not in HOLLOW
    ]


def labels(folder: Path, prefix: str) -> set[str]:
    return {path.stem.removeprefix(prefix) for path in folder.glob(f"{prefix}*.json")}


def features() -> list[tuple[str, Any]]:
    paths = sorted(FEATURES.glob("*/feature_*.json"))
    return [(f"{p.parent.name} {p.stem}", json.loads(p.read_bytes())) for p in paths]


@pytest.mark.slow
def test_shipped_files_are_valid_and_canonical(run: Run) -> None:
    paths = sorted(DATA.rglob("*.json"))
    assert {path for path in DATA.rglob("*") if path.is_file()} == set(paths)
    result = expect_output(run("validate", *paths), 0)
    assert "not in canonical form" not in result.stdout
    # The lines of warnings are indented.
    lines = [line for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert len(lines) == len(paths)


def test_shipped_data_is_complete_unchanged_and_small(run: Run) -> None:
    result = run("check", "--offline", "--data-dir", DATA, "--channel", "wheels")
    assert (result.exit_code, "0 findings" in result.stdout) == (0, True), result.stdout
    paths = (path for path in DATA.rglob("*.json") if path.parent.name not in {"api", "symbols"})
    assert sum(path.stat().st_size for path in paths) < 30_000_000


def test_shipped_data_contains_required_releases() -> None:
    cuda_labels = labels(MANIFESTS / "cuda", "redistrib_")
    assert {"12.9.1", "13.0.2"} <= cuda_labels
    newest = max(cuda_labels, key=lambda label: [int(part) for part in label.split(".")])
    for label in ("12.9.1", "13.0.2", newest):
        manifest = json.loads((MANIFESTS / f"cuda/redistrib_{label}.json").read_bytes())
        packages = {name: entry for name, entry in manifest.items() if "version" in entry}
        assert {p for entry in packages.values() for p in entry if "-" in p} >= PLATFORMS
        assert {"cuda_nvcc", "cuda_cudart", "libcublas", "libcufft"} <= packages.keys()
    for folder in MANIFESTS.iterdir():
        if folder.is_dir():
            of_features = labels(FEATURES / folder.name, "feature_")
            assert of_features == labels(folder, "redistrib_"), folder.name


@pytest.mark.parametrize("redist", LIBRARIES)
def test_shipped_libraries_cover_both_cuda_majors_and_every_platform(redist: str) -> None:
    variants = set()
    for path in (MANIFESTS / redist).glob("redistrib_*.json"):
        for entry in json.loads(path.read_bytes()).values():
            if isinstance(entry, dict):
                variants |= {(p, v) for p, part in entry.items() if "-" in p for v in part}
    platforms = PLATFORMS - {"windows-x86_64"} if redist in ONLY_ON_LINUX else PLATFORMS
    assert variants >= {(p, v) for p in platforms for v in ("cuda12", "cuda13")}


def test_every_shipped_archive_is_examined() -> None:
    for name, document in features():
        for package, entry in document["packages"].items():
            for archive in entry["archives"]:
                assert archive["status"] == "examined", (name, package, archive["platform"])


@pytest.mark.slow
def test_every_shipped_set_satisfies_every_invariant(sets: list[PackageSet]) -> None:
    releases = {package_set.cuda.release for package_set in sets}
    assert releases == labels(MANIFESTS / "cuda", "redistrib_")
    for package_set in sets:
        context = f"{package_set.cuda.release} {package_set.platform.redist_system}"
        assert [str(violation) for violation in check_set(package_set)] == [], context
    assert [violation for violation in check_run(sets) if violation] == []


@pytest.mark.slow
def test_no_shipped_package_is_broken(sets: list[PackageSet]) -> None:
    broken = {
        (package_set.cuda.release, package_set.platform.redist_system, name): entry.reasons[0].text
        for package_set in sets
        for name, entry in package_set.packages.items()
        if entry.status == "broken"
    }
    assert broken == {}


@pytest.mark.slow
def test_every_needed_library_has_a_provider(sets: list[PackageSet]) -> None:
    """Read the needs from the feature files instead of the set."""
    binaries = {
        archive["sha256"]: [*archive["libraries"], *archive["programs"]]
        for _, document in features()
        for entry in document["packages"].values()
        for archive in entry["archives"]
    }
    checked = 0
    for package_set in sets:
        provided = {
            key_of(soname)
            for soname, providers in package_set.sonames.items()
            if not all(provider.stub for provider in providers)
        }
        for entry in package_set.available.values():
            assert entry.archive is not None
            owned = {key_of(n.soname) for n in entry.needs if n.satisfied_by is not None}
            dropped = [c.source for c in entry.normalise if c.op == "drop"]
            for binary in binaries[entry.archive.sha256]:
                path = binary["path"]
                if any(fnmatch(path, way) for name in dropped for way in (name, f"{name}/*")):
                    continue
                for soname in binary["needed"]:
                    checked += 1
                    assert key_of(soname) in provided | owned, (entry.attr, binary["path"], soname)
    assert checked > 1000


@pytest.mark.slow
def test_every_closure_has_own_libraries(sets: list[PackageSet]) -> None:
    """The libraries are those in the feature files, by the hash of the archive."""
    libraries = {
        archive["sha256"]: [each for each in archive["libraries"] if not each["stub"]]
        for _, document in features()
        for package in document["packages"].values()
        for archive in package["archives"]
        if archive["status"] == "examined"
    }
    count = 0
    for package_set in sets:
        for name, package in package_set.packages.items():
            if package.status != "available" or package.archive is None:
                continue
            own = {library["output"] for library in libraries[package.archive.sha256]}
            # A package that policy keeps whole has one output.
            outputs = {resolve((output,), package.outputs) for output in own}
            size = sum(package.contents[output].bytes for output in outputs)
            closure = closure_of(package_set, name)
            assert closure is not None, name
            assert closure.size >= size, (package_set.cuda.release, name)
            assert size or not own, (package_set.cuda.release, name)
            empty = {output for output, part in package.contents.items() if not part.files}
            assert empty <= {"out"}, name
            count += bool(own)
    assert count > 2_000


def test_every_table_entry_has_a_source() -> None:
    releases = labels(MANIFESTS / "cuda", "redistrib_")
    compilers = json.loads((DATA / "nvcc_compat.json").read_bytes())["releases"]
    assert releases <= compilers.keys()
    sources = json.loads((DATA / "gpus.json").read_bytes())["sources"]
    assert releases <= sources.keys()
    for label in releases:
        for source in (compilers[label]["source"], sources[label]):
            assert re.fullmatch("[0-9a-f]{64}", source["archive_sha256"]), label
            assert re.fullmatch("[0-9a-f]{64}", source["file_sha256"]), label


def test_makefile_lists_shipped_releases() -> None:
    text = (REPOSITORY / "Makefile").read_text().replace("\\\n", " ")
    variables = dict(re.findall(r"^([A-Z]+) = ([0-9. \t]+)$", text, re.MULTILINE))
    downloads = dict(re.findall(r"\$\(call download,([a-z0-9]+),\$\(([A-Z]+)\)\)", text))
    listed = {redist: set(variables[name].split()) for redist, name in downloads.items()}
    folders = [folder for folder in MANIFESTS.iterdir() if folder.is_dir()]
    assert listed == {folder.name: labels(folder, "redistrib_") for folder in folders}


@pytest.mark.parametrize(
    ("claim", "outputs"),
    [
        ("only programs", {"out", "bin"}),
        ("header-only", {"out", "dev", "include"}),
        ("one static library", {"out", "include", "static"}),
    ],
)
def test_reasons_for_one_output_match_shipped_features(claim: str, outputs: set[str]) -> None:
    """For example, `cuda_sanitizer_api` has headers and libraries, not only programs."""
    collapse = set_data().policies.outputs.collapse
    claimed = {name for name, entry in collapse.items() if claim in entry.reason}
    for path in FEATURES.glob("*/feature_*.json"):
        packages = json.loads(path.read_bytes())["packages"]
        for name in claimed & packages.keys():
            for archive in packages[name]["archives"]:
                beyond = archive.get("outputs", {}).keys() - outputs
                assert not beyond, (path.name, name, archive["platform"])


def test_commit_message_of_shipped_releases_is_complete(run: Run) -> None:
    """A CUDA major changes most packages and sizes."""
    result = run("diff", "cuda@12.9.2", "cuda@13.0.3", "--json")
    difference = TypeAdapter(DiffReport).validate_json(result.stdout)
    lines = list(diff_text(difference, is_commit=True))
    sizes = lines[lines.index("sizes:") + 1 :]
    platforms = [line.split(":")[0].strip() for line in sizes if line.startswith("  linux")]
    assert platforms == ["linux-sbsa", "linux-x86_64"]
    assert not [line for line in lines if " size [" in line or re.search(r"and \d+ more", line)]
    for package in difference.packages:
        assert any(re.match(rf"  {package.package}\b", line) for line in lines)


def test_warnings_of_several_sets_are_printed_once(run: Run) -> None:
    lines = run("build", "--cuda", "12.3", "--cuda", "12.4", "--check").stdout.splitlines()
    warnings = [line for line in lines if "warning: " in line]
    texts = [line.partition("warning: ")[2] for line in warnings]
    assert len(texts) == len(set(texts))
    assert "3 sets: warning: libcusparse_lt: no code for 6.0, 6.1, 7.0, 7.5" in warnings
    sets = [line for line in lines if line.startswith("cuda ")]
    assert lines.index(sets[-1]) < lines.index(warnings[-1])
