"""Tests of materialize into an existing root: other selections and repairs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import binaries
from support.releases import packed
from support.running import expect_output
from support.server import FaultServer
from support.toolkits import MadeSet, listing, shared
from typer.testing import Result

PC = b"prefix=/usr\nlibdir=${prefix}/lib\nincludedir=${prefix}/include\n\nName: math\n"


@pytest.fixture
def made_set(run: Run) -> MadeSet:
    """Return a set of three packages.

    Two packages share a file, and one has every kind of file that is rewritten."""
    made_set = MadeSet()
    made_set.add(
        "cuda_nvcc", {"LICENSE": b"EULA\n", "bin/nvcc": b"nvcc", "include/same.h": b"//\n"}
    )
    made_set.add("cuda_cudart", {"lib/libcudart.so.13": shared("libcudart.so.13")})
    made_set.add(
        "libcublas",
        {
            "include/same.h": b"//\n",
            "lib/libcublas.so.13": shared("libcublas.so.13"),
            "lib/libcublas.so": "libcublas.so.13",
            "lib/libcublas_static.a": binaries.ar({"a.o": b"object"}),
            "pkg-config/cublas-13.0.pc": PC,
        },
        depends=["cuda_cudart"],
    )
    made_set.write(Path("set.json"))
    return made_set


@pytest.fixture
def source(made_set: MadeSet, server: FaultServer) -> FaultServer:
    """Serve the archives of the set."""
    server.add_folder(made_set.put_archives(Path("source")))
    return server


@pytest.fixture
def materialize(run: Run, source: FaultServer) -> Run:
    """Return a function that creates `root` from `set.json` and the server.

    Each call clears the requests of earlier calls."""

    def invoke(*options: object) -> Result:
        source.requests.clear()
        return run("materialize", "set.json", "-o", "root", "--base-url", source.url, *options)

    return invoke


def packages(root: Path = Path("root")) -> set[str]:
    record: dict[str, Any] = json.loads((root / ".cudaredist.json").read_bytes())
    return set(record["packages"])


def fetched(server: FaultServer) -> set[str]:
    """Return the packages with a downloaded archive."""
    return {path.split("/")[4] for path in server.requests if path.endswith(".tar.xz")}


def test_materialize_without_replace_refuses_to_remove_packages(materialize: Run) -> None:
    assert materialize("--component", "cuda_nvcc").exit_code == 0
    before = listing(Path("root"))
    result = expect_output(materialize("--component", "libcublas"), 2)
    words = " ".join(result.stderr.split())
    assert "root has packages that are not selected and would be removed: cuda_nvcc" in words
    assert "--component cuda_nvcc" in words
    assert "--replace" in words
    assert listing(Path("root")) == before
    assert not Path(".root.cudaredist").exists()


def test_materialize_of_more_packages_adds_packages(materialize: Run) -> None:
    materialize("--component", "cuda_nvcc")
    expect_output(materialize("--component", "cuda_nvcc", "--component", "cuda_cudart"), 0)
    assert packages() == {"cuda_nvcc", "cuda_cudart"}


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--layout", "split"), ("--no-static",)])
@pytest.mark.parametrize(
    ("names", "needed"),
    [
        ({"libcudart.so.13"}, {"cuda_cudart"}),
        ({"same.h"}, {"cuda_nvcc"}),
        ({"cublas-13.0.pc"}, {"libcublas"}),
        ({"libcublas.so"}, set()),
        ({"version.json"}, set()),
        ({"nvcc", "libcublas.so.13"}, {"cuda_nvcc", "libcublas"}),
    ],
)
def test_repair_downloads_only_archives_of_damaged_files(
    materialize: Run,
    source: FaultServer,
    names: set[str],
    needed: set[str],
    options: tuple[str, ...],
) -> None:
    assert materialize(*options).exit_code == 0
    shutil.copytree("root", "whole", symlinks=True)
    damaged = [path for path in Path("root").rglob("*") if path.name in names]
    assert len(damaged) >= len(names)
    for path in damaged:
        path.unlink()
    expect_output(materialize(*options), 0)
    if "--layout" not in options or names != {"same.h"}:
        assert fetched(source) == needed
    assert listing(Path("root")) == listing(Path("whole"))
    assert materialize(*options, "--replace").stdout.startswith("root: unchanged")


def test_replace_restores_file_of_same_size(
    materialize: Run, source: FaultServer, run: Run
) -> None:
    materialize()
    Path("root/bin/nvcc").write_bytes(b"NVCC")
    assert materialize().stdout.startswith("root: unchanged")
    verified = expect_output(run("materialize", "--output", "root", "--verify"), 4)
    restore = "to restore it, repeat the command that created it with --replace"
    assert restore in verified.stdout
    assert materialize("--replace").exit_code == 0
    assert Path("root/bin/nvcc").read_bytes() == b"nvcc"
    assert fetched(source) == {"cuda_nvcc"}


def test_repair_of_forged_record_creates_root_from_all_archives(
    materialize: Run, source: FaultServer
) -> None:
    """The record contains a file that is in no archive."""
    materialize()
    expected = listing(Path("root"))
    path = Path("root/.cudaredist.json")
    record = json.loads(path.read_bytes())
    record["files"]["lib/other"] = record["files"]["bin/nvcc"]
    path.write_text(json.dumps(record))
    assert materialize().exit_code == 0
    assert listing(Path("root")) == expected
    assert fetched(source) == {"cuda_nvcc", "cuda_cudart", "libcublas"}


def test_repair_with_wrong_archive_does_not_change_root(
    materialize: Run, source: FaultServer
) -> None:
    materialize()
    Path("root/bin/nvcc").unlink()
    before = listing(Path("root"))
    (path,) = (path for path in source.files if "cuda_nvcc" in path)
    source.files[path] = packed("cuda_nvcc.tar.xz", {"bin/nvcc": b"other"})
    assert materialize("--retries", 0).exit_code == 4
    assert listing(Path("root")) == before
