"""Tests of a toolkit root's contents and of package selection."""

import json
import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support import archives, binaries
from support.optional_programs import needs
from support.releases import release
from support.running import expect_error, expect_output
from support.server import FaultServer
from support.toolkits import (
    FOLDER,
    PC,
    PROGRAM,
    STATIC,
    MadeSet,
    Materialize,
    assert_nothing_left,
    listing,
    modes,
    modes_of_all,
    record,
    shared,
)
from support.wheels import put_wheel, wheel

pytestmark = pytest.mark.usefixtures("made_set")

MERGED = {
    "bin/crt/link.stub",
    "bin/fatbinary",
    "bin/nvcc",
    "bin/ptxas",
    "docs/README",
    "include/crt/host.h",
    "include/cublas.h",
    "include/cuda.h",
    "lib/libcublas.so.13",
    "lib/libcublas_static.a",
    "lib/libcudart.so.13.0.96",
    "lib/libcudart_static.a",
    "lib/stubs/libcuda.so",
    "nvvm/bin/cicc",
    "nvvm/lib64/libnvvm.so.4",
    "share/licenses/cuda_crt/LICENSE",
    "share/licenses/cuda_cudart/LICENSE",
    "share/licenses/cuda_nvcc/LICENSE",
    "share/licenses/libcublas/LICENSE",
    "share/pkgconfig/cublas-13.0.pc",
}
LINKS = {
    "lib/libcublas.so": "libcublas.so.13",
    "lib/libcudart.so": "libcudart.so.13.0.96",
    "lib/libcudart.so.13": "libcudart.so.13.0.96",
    "lib64": "lib",
    "share/pkgconfig/cublas.pc": "cublas-13.0.pc",
}


# -- contents


@pytest.mark.usefixtures("strict_umask")
@pytest.mark.parametrize("layout", ["merged", "split"])
def test_root_is_readable_for_all_users(materialize: Materialize, layout: str) -> None:
    assert materialize("--layout", layout).exit_code == 0
    assert modes_of_all(Path("root")) == {0o755, 0o644}


def test_merged_root_contains_files_of_all_packages(materialize: Materialize, run: Run) -> None:
    expect_output(materialize(), 0)
    contents = listing(Path("root"))
    files = {path for path, content in contents.items() if isinstance(content, bytes)}
    assert files == {*MERGED, "version.json", ".cudaredist.json"}
    assert {path: contents[path] for path in contents.keys() - files} == LINKS
    assert contents["lib/libcublas.so.13"] == shared("libcublas.so.13")
    assert contents["share/licenses/cuda_nvcc/LICENSE"] == b"EULA of nvcc\n"
    programs = {path for path, mode in modes(Path("root")).items() if mode == 0o755}
    assert programs == {p for p in MERGED if p.startswith("bin/")} | {"nvvm/bin/cicc"}
    assert set(modes(Path("root")).values()) <= {0o755, 0o644}
    versions = json.loads((Path("root") / "version.json").read_bytes())
    assert versions["cuda"] == {"name": "CUDA SDK", "version": "13.0.2"}
    assert versions["libcublas"] == {"name": "LIBCUBLAS", "version": "1.2.3"}
    assert run("validate", "root/.cudaredist.json").exit_code == 0
    assert run("materialize", "--output", "root", "--verify").exit_code == 0
    assert_nothing_left("root")


def test_split_root_matches_sizes_in_set(
    made_set: MadeSet, materialize: Materialize, run: Run
) -> None:
    assert materialize("--layout", "split").exit_code == 0
    counts: dict[str, dict[str, dict[str, int]]] = defaultdict(
        lambda: defaultdict(lambda: {"files": 0, "bytes": 0})
    )
    for path, file in record()["files"].items():
        if file["package"] == "cudaredist":
            continue
        attr, output, below = path.split("/", 2)
        counts[attr][output]["files"] += 1
        # The pkg-config files contain the path of the libraries.
        is_rewritten = below.endswith(".pc")
        counts[attr][output]["bytes"] += len(PC) if is_rewritten else file["size"]
        assert attr == file["package"]
    assert counts == {
        attr: {output: size for output, size in package["contents"].items() if size["files"]}
        for attr, package in made_set.packages.items()
        if package["status"] == "available"
    }
    assert run("materialize", "--output", "root", "--verify").exit_code == 0
    assert Path("root/libcublas/lib/lib/libcublas.so").resolve().is_file()


@needs("pkg-config")
@pytest.mark.parametrize("layout", ["merged", "split"])
def test_pkg_config_resolves_paths_in_root(materialize: Materialize, layout: str) -> None:
    materialize("--layout", layout)
    # The root is relocatable.
    Path("root").rename("moved")
    (folder,) = {path.parent for path in Path("moved").rglob("cublas.pc")}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "cublas"],
        env={**os.environ, "PKG_CONFIG_PATH": str(folder.resolve())},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    include, lib = (Path(word[2:]) for word in flags if word.startswith(("-I", "-L")))
    assert (include / "cublas.h").is_file()
    assert (lib / "libcublas.so").is_file()


def test_windows_root_is_created_on_any_host(run: Run, materialize: Materialize) -> None:
    made_set = MadeSet(platform="windows-x86_64")
    made_set.add(
        "cuda_cudart",
        {
            "LICENSE": b"EULA\n",
            "bin/x64/cudart64_13.dll": binaries.pe(name="cudart64_13.dll"),
            "lib/x64/cudart_static.lib": STATIC,
            "include/cuda.h": b"//\n",
        },
    )
    made_set.add("cuda_nvcc", {"bin/nvcc.exe": binaries.pe(name=None), "bin/nvcc.profile": b"x"})
    made_set.put()
    expect_output(materialize(), 0)
    assert set(listing(Path("root"))) == {
        ".cudaredist.json",
        "bin/nvcc.exe",
        "bin/nvcc.profile",
        "bin/x64/cudart64_13.dll",
        "include/cuda.h",
        "lib/x64/cudart_static.lib",
        "share/licenses/cuda_cudart/LICENSE",
        "version.json",
    }
    assert materialize("--no-static").exit_code == 0
    assert not Path("root/lib").exists()


def test_hard_link_is_unpacked_as_a_file(run: Run, materialize: Materialize) -> None:
    made_set = MadeSet()
    made_set.add("x", data=archives.gz(archives.plain_tar()), suffix="tar.gz")
    made_set.put()
    assert materialize().exit_code == 0
    assert "lib/again" in listing(Path("root"))


def test_packages_with_same_archive_are_both_created(run: Run, materialize: Materialize) -> None:
    made_set = MadeSet()
    path = made_set.add("one", {"lib/data": b"content"})
    made_set.add("two", data=made_set.archives[path])
    made_set.put()
    expect_error(materialize("-j", 4, "--layout", "split"), 0, "1 archive; ")
    assert Path("root/one/out/lib/data").read_bytes() == b"content"
    assert Path("root/two/out/lib/data").read_bytes() == b"content"


# -- selection


@pytest.mark.parametrize(
    ("options", "packages"),
    [
        (["--component", "libcublas"], ["cuda_cudart", "libcublas"]),
        (["--component", "compiler"], ["cuda_crt", "cuda_nvcc"]),
        (
            ["--component", "compiler", "--component", "runtime"],
            ["cuda_crt", "cuda_cudart", "cuda_nvcc"],
        ),
        (["--component", "math", "--exclude", "cuda_cudart"], ["libcublas"]),
        (["--exclude", "cuda_nvcc"], ["cuda_crt", "cuda_cudart", "libcublas"]),
    ],
)
def test_component_options_limit_packages_and_download(
    made_set: MadeSet,
    materialize: Materialize,
    server: FaultServer,
    options: list[str],
    packages: list[str],
) -> None:
    server.add_folder(Path("source"))
    result = expect_output(materialize(*options, "--json", base=server.url), 0)
    report = json.loads(result.stdout)
    assert report["packages"] == packages
    expected = {
        f"/{FOLDER}/{made_set.packages[name]['archive']['relative_path']}" for name in packages
    }
    assert dict(server.requests) == dict.fromkeys(expected, 1)
    size = sum(made_set.packages[name]["archive"]["size"] for name in packages)
    assert report["fetched_bytes"] == size
    assert f"{len(packages)} archive" in result.stderr
    assert f"; {size:,} bytes to download; " in result.stderr


def test_excluded_package_that_others_require_is_a_warning(materialize: Materialize) -> None:
    options = ("--component", "libcublas", "--exclude", "cuda_cudart")
    assert "warning: cuda_cudart is left out by --exclude, but required by libcublas\n" in (
        materialize(*options).stderr
    )


def test_no_static_keeps_only_static_cudart(materialize: Materialize) -> None:
    materialize("--no-static")
    assert {p for p in listing(Path("root")) if p.endswith(".a")} == {"lib/libcudart_static.a"}
    assert record()["static"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--exclude", "libcubla"], "did you mean libcublas"),
        (["--max-download", "1k"], "exceed --max-download 1,000"),
        (["--max-download", "much"], "invalid size"),
        (["--archives", "nowhere"], "no such folder"),
    ],
)
def test_invalid_selection_exits_2(
    materialize: Materialize, options: list[str], words: str
) -> None:
    expect_error(materialize(*options), 2, words)
    assert_nothing_left()


def test_compiler_missing_from_channel_is_named(run: Run, materialize: Materialize) -> None:
    made_set = MadeSet(cuda="12.9.1")
    made_set.add(
        "cuda_nvcc", {"bin/ptxas": PROGRAM, "share/doc/nvcc": b"x", "nvvm/bin/cicc": PROGRAM}
    )
    made_set.put()
    result = expect_output(materialize("--component", "compiler"), 2)
    assert "the packages of CUDA 12.9.1 in the redist channel do not include nvcc, fatbinary" in (
        result.stderr
    )
    assert_nothing_left()
    assert materialize("--component", "cuda_nvcc").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["set.json"], 2, "--output"),
        (["nothing.json", "--output", "root"], 2, "no such file"),
        (["broken.json", "--output", "root"], 5, "broken.json"),
        (["--output", "nothing", "--verify"], 2, "no toolkit root at nothing"),
        (["--output", "nothing", "--remove"], 2, "no toolkit root at nothing"),
        (["--output", "source", "--remove"], 2, "not a cudaredist toolkit root"),
        (["set.json", "--output", "/", "--base-url", "source"], 2, "cannot be a toolkit root"),
        (["set.json", "--output", "root", "--offline"], 2, "--archives"),
    ],
)
def test_invalid_arguments_are_rejected(
    run: Run, arguments: list[str], code: int, words: str
) -> None:
    Path("broken.json").write_text('{"schema_version": 1}')
    expect_error(run("materialize", *arguments), code, words)
    assert_nothing_left("broken.json")


# -- wheels


WHEEL = {
    "nvidia/cu13/bin/nvcc": PROGRAM,
    "nvidia/cu13/bin/nvcc.profile": b"TOP = $(_HERE_)/..\n",
    "nvidia/cu13/lib/libnvvm.so.4": shared("libnvvm.so.4"),
    "nvidia/__init__.py": b"",
}


def test_root_from_wheels_equals_root_from_archives(
    run: Run, materialize: Materialize, pip_folder: Path
) -> None:
    tag = "manylinux2014_x86_64"
    made_set = MadeSet(channel="wheels")
    made_set.add("cuda_nvcc", data=wheel("nvidia-cuda-nvcc", "1.2.3", WHEEL))
    path = f"nvidia-cuda-nvcc/nvidia_cuda_nvcc-1.2.3-py3-none-{tag}.whl"
    made_set.packages["cuda_nvcc"]["archive"]["relative_path"] = path
    made_set.write(Path("set.json"))
    put_wheel(pip_folder, "nvidia-cuda-nvcc", "1.2.3", WHEEL, tag=tag)
    expect_output(materialize(base=None), 0)
    expected = {
        ".cudaredist.json": None,
        "bin/nvcc": 0o755,
        "bin/nvcc.profile": 0o644,
        "lib/libnvvm.so.4": 0o644,
        "share/licenses/cuda_nvcc/LICENSE": 0o644,
        "version.json": 0o644,
    }
    assert modes(Path("root")).keys() == expected.keys()
    assert {p: m for p, m in modes(Path("root")).items() if expected[p]} == {
        p: m for p, m in expected.items() if m
    }
    assert Path("root/lib64/libnvvm.so").resolve().name == "libnvvm.so.4"
    # A local file, by its name alone and without an index.
    expect_output(materialize("--archives", pip_folder, "--offline", base=None, root="two"), 0)
    assert listing(Path("two")) == listing(Path("root"))
    # A mirror of wheels.
    name = path.rpartition("/")[2]
    missing = materialize("--offline", base="source", root="three")
    expect_error(missing, 3, f"source: lacks 1 archive: {name}")
    mirrored = Path("source/simple") / path
    mirrored.parent.mkdir(parents=True)
    shutil.copy(pip_folder / name, mirrored)
    expect_output(materialize("--offline", base="source", root="three"), 0)
    assert listing(Path("three")) == listing(Path("root"))


# -- from data files to a root


@pytest.fixture
def data(run: Run) -> Path:
    """Create a data folder with the shipped tables."""
    folder = Path("data")
    (folder / "manifests").mkdir(parents=True)
    for name in ("gpus.json", "nvcc_compat.json"):
        shutil.copy(REPOSITORY / "data" / name, folder / name)
    return folder


def test_root_is_created_from_manifests(run: Run, data: Path, server: FaultServer) -> None:
    files = release(
        "12.9.1",
        {
            "cuda_nvcc": {"linux-x86_64": {"bin/nvcc": PROGRAM, "LICENSE": b"x"}},
            "cuda_cudart": {
                "linux-x86_64": {
                    "lib/libcudart.so.12": shared("libcudart.so.12"),
                    "lib/libcudart_static.a": STATIC,
                    "include/cuda.h": b"//",
                }
            },
            "libcublas": {
                "linux-x86_64": {
                    "lib/libcublas.so.12": binaries.elf(
                        soname="libcublas.so.12", needed=("libcudart.so.12",)
                    ),
                    "lib/libcublas_static.a": STATIC,
                    "include/cublas.h": b"//",
                }
            },
        },
    )
    for path, content in files.items():
        place = Path("source", FOLDER, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    for command in ("download-manifests", "process-manifests"):
        version = ("--version", "12.9.1") if command.startswith("download") else ()
        expect_output(run(command, "--base-url", "source", "--redist", "cuda", *version), 0)
    options = ("--cuda", "12.9.1", "--platform", "linux-x86_64", "--output", "set.json")
    expect_output(run("build", *options), 0)
    result = run(
        *("materialize", "set.json", "--output", "root", "--base-url", "source"),
        *("--component", "libcublas", "--layout", "split"),
    )
    assert result.exit_code == 0, result.output
    assert set(listing(Path("root"))) == {
        ".cudaredist.json",
        "cuda_cudart/out/include/cuda.h",
        "cuda_cudart/out/lib/libcudart.so.12",
        # cudart's headers include headers of nvcc.
        "cuda_nvcc/out/bin/nvcc",
        "cuda_nvcc/out/share/licenses/cuda_nvcc/LICENSE",
        "cuda_cudart/out/lib/libcudart_static.a",
        "libcublas/include/include/cublas.h",
        "libcublas/lib/lib/libcublas.so.12",
        "libcublas/static/lib/libcublas_static.a",
        "version.json",
    }
