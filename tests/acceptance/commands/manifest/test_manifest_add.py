"""Tests of `manifest add`: archives of TensorRT, which has no manifests of NVIDIA's."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.archives import gz, tar_member, tar_of
from support.patching import Patch
from support.running import expect_error, expect_output
from support.server import FaultServer, breaking_after, status

FOLDER = "/downloads/compute/machine-learning"
PATH = "tensorrt/10.16.1/tars/TensorRT-10.16.1.11.Linux.{}-gnu.cuda-{}.tar.gz"
MANIFEST = Path("data/handwritten/tensorrt/redistrib_10.16.1.json")


def archive(*tops: str, data: bytes = b"") -> bytes:
    """Return an archive with a library in each top folder."""
    names = tops or ("TensorRT-10.16.1.11",)
    return gz(tar_of(*(tar_member(f"./{top}/lib/libnvinfer.so.10", data) for top in names)))


ARCHIVE = archive(data=bytes(range(256)) * 2000)
X86, ARM = PATH.format("x86_64", "12.9"), PATH.format("aarch64", "13.0")


def option(server: FaultServer, path: str = X86, place: str = "linux-x86_64+cuda12.9") -> list[str]:
    return ["--archive", f"{place}={server.url}{FOLDER}/{path}"]


def stated(data: bytes, path: str) -> dict[str, str]:
    return {
        "relative_path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
        "size": str(len(data)),
    }


@pytest.fixture
def add(run: Run, server: FaultServer) -> Any:
    """Serve two archives, and return a function that adds archives."""
    server.files |= {f"{FOLDER}/{X86}": ARCHIVE, f"{FOLDER}/{ARM}": archive()}
    return lambda *more, label="10.16.1": run("manifest", "add", "tensorrt", label, *more)


def test_add_writes_manifest_that_is_a_source(run: Run, server: FaultServer, add: Any) -> None:
    both = [*option(server), *option(server, ARM, "linux-sbsa+cuda13")]
    report = json.loads(expect_output(add(*both, "--json"), 0).stdout)
    assert (report["version"], report["status"]) == ("10.16.1.11", "written")
    assert json.loads(MANIFEST.read_bytes()) == {
        "release_label": "10.16.1",
        "release_product": "tensorrt",
        "tensorrt": {
            "name": "NVIDIA TensorRT",
            "license": "TensorRT",
            "version": "10.16.1.11",
            "cuda_variant": ["12", "13"],
            "linux-x86_64": {"cuda12": stated(ARCHIVE, X86)},
            "linux-sbsa": {"cuda13": stated(archive(), ARM)},
        },
    }
    assert "unchanged" in add(*both).stdout
    assert server.requests[f"{FOLDER}/{X86}"] == 2
    assert run("validate", MANIFEST).exit_code == 0
    program, *words = report["next"].split()
    assert program == "cudaredist"
    expect_output(run(*words), 0)
    copy = Path("data/manifests/tensorrt/redistrib_10.16.1.json")
    assert copy.read_bytes() == MANIFEST.read_bytes()


def test_add_keeps_other_archives_of_manifest(server: FaultServer, add: Any) -> None:
    assert add(*option(server)).exit_code == 0
    assert add(*option(server, ARM, "linux-sbsa+cuda13")).exit_code == 0
    package = json.loads(MANIFEST.read_bytes())["tensorrt"]
    assert package["linux-x86_64"] == {"cuda12": stated(ARCHIVE, X86)}
    assert package["linux-sbsa"].keys() == {"cuda13"}


def test_manifest_has_form_of_other_manifests(server: FaultServer, add: Any) -> None:
    both = [*option(server), *option(server, ARM, "linux-sbsa+cuda13")]
    assert add(*both, "--release-date", "2026-03-31").exit_code == 0
    text = MANIFEST.read_text("utf-8")
    lines = [line.partition(":")[0].rstrip(",") for line in text.splitlines() if '"' in line]
    fields = ['"md5"', '"relative_path"', '"sha256"', '"size"']
    assert [line.strip() for line in lines] == [
        *('"release_date"', '"release_label"', '"release_product"', '"tensorrt"', '"name"'),
        *('"license"', '"version"', '"cuda_variant"', '"12"', '"13"'),
        *('"linux-sbsa"', '"cuda13"', *fields, '"linux-x86_64"', '"cuda12"', *fields),
    ]
    assert text.startswith('{\n    "release_date": "2026-03-31",\n')
    assert text.endswith("\n}\n")
    assert add(*both).exit_code == 0
    assert MANIFEST.read_text("utf-8") == text


def test_add_without_cuda_writes_flat_manifest(server: FaultServer, add: Any) -> None:
    assert add(*option(server, place="linux-x86_64")).exit_code == 0
    package = json.loads(MANIFEST.read_bytes())["tensorrt"]
    assert package["linux-x86_64"] == stated(ARCHIVE, X86)
    assert "cuda_variant" not in package


@pytest.mark.parametrize("places", [("", "+cuda12"), ("+cuda12", "")])
def test_add_with_and_without_cuda_is_refused(
    server: FaultServer, add: Any, places: tuple[str, str]
) -> None:
    first, second = (option(server, place=f"linux-x86_64{place}") for place in places)
    assert add(*first).exit_code == 0
    before = MANIFEST.read_bytes()
    expect_error(add(*second), 2, "must all have a CUDA release")
    assert MANIFEST.read_bytes() == before


def test_add_to_manifest_with_cuda_minor_is_sorted(server: FaultServer, add: Any) -> None:
    assert add(*option(server)).exit_code == 0
    manifest = json.loads(MANIFEST.read_bytes())
    manifest["tensorrt"]["cuda_variant"] = ["12.9", "8"]
    MANIFEST.write_text(json.dumps(manifest))
    assert add(*option(server, ARM, "linux-sbsa+cuda13")).exit_code == 0
    package = json.loads(MANIFEST.read_bytes())["tensorrt"]
    assert package["cuda_variant"] == ["8", "12.9", "13"]


def test_add_to_manifest_of_another_package_is_refused(server: FaultServer, add: Any) -> None:
    assert add(*option(server)).exit_code == 0
    MANIFEST.write_text(MANIFEST.read_text().replace('"tensorrt": {', '"trt": {'))
    before = MANIFEST.read_bytes()
    expect_error(add(*option(server)), 5, "has no package tensorrt, but 'trt'")
    assert MANIFEST.read_bytes() == before


def test_add_of_local_file_needs_its_path_on_server(add: Any, tmp_path: Path) -> None:
    path = tmp_path / FOLDER[1:] / X86
    path.parent.mkdir(parents=True)
    path.write_bytes(ARCHIVE)
    assert add("--archive", f"linux-x86_64+cuda12={path}").exit_code == 0
    package = json.loads(MANIFEST.read_bytes())["tensorrt"]
    assert package["linux-x86_64"]["cuda12"] == stated(ARCHIVE, X86)


def test_add_resumes_after_break(server: FaultServer, add: Any) -> None:
    server.misbehave(f"{FOLDER}/{X86}", breaking_after(500), times=1)
    assert add(*option(server)).exit_code == 0
    package = json.loads(MANIFEST.read_bytes())["tensorrt"]
    assert package["linux-x86_64"]["cuda12"] == stated(ARCHIVE, X86)


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (archive("TensorRT-10.16.0.5"), 5, "contains TensorRT-10.16.0.5, not TensorRT 10.16.1"),
        (archive("cudnn-10.16.1.11"), 5, "contains cudnn-10.16.1.11, not TensorRT 10.16.1"),
        (archive("TensorRT-10.16.1.11", "other"), 5, "expected one folder NAME-VERSION"),
        (archive("lib"), 5, "expected one folder NAME-VERSION, but contains 'lib'"),
        (ARCHIVE[:-9], 5, "truncated"),
        (b"<html>", 5, "gzip"),
    ],
)
def test_add_of_wrong_archive_writes_nothing(
    server: FaultServer, add: Any, data: bytes, code: int, message: str
) -> None:
    server.files[f"{FOLDER}/{X86}"] = data
    expect_error(add(*option(server)), code, message)
    assert not Path("data").exists()


def test_add_of_missing_archive_exits_3(server: FaultServer, add: Any) -> None:
    server.misbehave(f"{FOLDER}/{X86}", status(404))
    assert add(*option(server)).exit_code == 3
    assert not Path("data").exists()


def test_add_of_several_versions_is_refused(server: FaultServer, add: Any) -> None:
    server.files[f"{FOLDER}/{ARM}"] = archive("TensorRT-10.16.1.12")
    both = [*option(server), *option(server, ARM, "linux-sbsa+cuda13")]
    expect_error(add(*both), 5, "several versions: 10.16.1.11, 10.16.1.12")


@pytest.mark.parametrize("data", [archive(data=b"other"), archive("TensorRT-10.16.1.12")])
def test_add_of_other_bytes_keeps_manifest(
    server: FaultServer, add: Any, data: bytes, patch: Patch
) -> None:
    opened = patch.count("cudaredist.commands.manifest.add_manifest.open_archive")
    assert add(*option(server)).exit_code == 0
    before = MANIFEST.read_bytes()
    server.files[f"{FOLDER}/{X86}"] = data
    message = "the manifest's linux-x86_64/cuda12 has"
    expect_error(add(*option(server)), 4, message, "--replace")
    # An archive with another hash than the recorded one is not opened.
    assert opened.number == 1
    assert MANIFEST.read_bytes() == before
    assert add(*option(server), "--replace").exit_code == 0
    package = json.loads(MANIFEST.read_bytes())["tensorrt"]
    assert package["linux-x86_64"]["cuda12"] == stated(data, X86)


def test_add_of_other_version_keeps_manifest(server: FaultServer, add: Any) -> None:
    assert add(*option(server)).exit_code == 0
    before = MANIFEST.read_bytes()
    server.files[f"{FOLDER}/{ARM}"] = archive("TensorRT-10.16.1.12")
    arm = option(server, ARM, "linux-sbsa+cuda13")
    expect_error(add(*arm), 4, "and the manifest has 10.16.1.11", "--replace")
    assert MANIFEST.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tensorrt", "10.16.1"], "--archive"),
        (["cudnn", "9.1.0", "--archive", "x"], "NVIDIA publishes manifests of cuDNN"),
        (["tensort", "10.16.1", "--archive", "x"], "did you mean tensorrt"),
        (["tensorrt", "ten", "--archive", "x"], "is not a label"),
        (["tensorrt", "10.16.1", "--archive", "x"], "is not PLATFORM=URL"),
        (["tensorrt", "10.16.1", "--archive", "linux-x86_65=x"], "did you mean linux-x86_64"),
        (["tensorrt", "10.16.1", "--archive", "x", "--release-date", "1"], "not a date"),
        (["tensorrt", "10.16.1", "--archive", "linux-x86_64=https://x/y"], "has no path below"),
        (
            ["tensorrt", "10.16.1", "--archive", f"linux-x86_64=https://x{FOLDER}/a?t=SECRET"],
            "has no path below",
        ),
        (
            ["tensorrt", "10.16.1", "--archive", f"linux-x86_64+cuda13=https://x{FOLDER}/{X86}"],
            "is for CUDA 12.9, not 13",
        ),
        (
            ["tensorrt", "10.16.1", "--archive", f"linux-x86_64+cuda12=http://x.y{FOLDER}/{X86}"],
            "download the file and use its path",
        ),
    ],
)
def test_add_with_invalid_arguments_is_refused(run: Run, words: list[str], message: str) -> None:
    result = expect_error(run("manifest", "add", *words), 2, message)
    assert "SECRET" not in result.stderr.partition("hint:")[0]
    assert not Path("data").exists()
