"""materialize as a user sees it: what lies in a root, what is fetched, and what is refused."""

import errno
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support import archives, binaries
from support import server as faults
from support.releases import release
from support.server import FaultServer
from support.toolkits import FOLDER, MadeSet, listing, modes
from support.wheels import put_wheel, wheel
from typer.testing import Result

from cudaredist.pipeline.toolkit import unpack

PROGRAM = binaries.elf(kind="program", needed=("libc.so.6",))
STATIC = binaries.ar({"a.o": b"object"})
PC = b"cudaroot=/usr/local/cuda-13.0\nlibdir=${cudaroot}/targets/x86_64-linux/lib\n"
PC += b"includedir=${cudaroot}/targets/x86_64-linux/include\n\nName: cublas\nDescription: x\n"
PC += b"Version: 13.0\nLibs: -L${libdir} -lcublas\nCflags: -I${includedir}\n"

Materialize = Callable[..., Result]


def shared(name: str) -> bytes:
    return binaries.elf(soname=name, needed=("libc.so.6",))


def put_packages(made: MadeSet) -> MadeSet:
    """Put the smallest packages in which everything happens into a set."""
    made.add(
        "cuda_nvcc",
        {
            "LICENSE": b"EULA of nvcc\n",
            "bin/nvcc": PROGRAM,
            "bin/ptxas": PROGRAM + b"ptxas",
            "bin/fatbinary": PROGRAM + b"fatbinary",
            "bin/crt/link.stub": b"// stub\n",
            "nvvm/bin/cicc": PROGRAM + b"cicc",
            "nvvm/lib64/libnvvm.so.4": shared("libnvvm.so.4"),
            "include/crt/host.h": b"// same\n",
        },
        depends=["cuda_crt"],
        is_collapsed=True,
    )
    made.add("cuda_crt", {"LICENSE": b"EULA\n", "include/crt/host.h": b"// same\n"})
    made.add(
        "cuda_cudart",
        {
            "LICENSE": b"EULA\n",
            "lib/libcudart.so.13.0.96": shared("libcudart.so.13"),
            "lib/libcudart.so.13": "libcudart.so.13.0.96",
            "lib/libcudart.so": "libcudart.so.13",
            "lib/libcudart_static.a": STATIC,
            "lib/stubs/libcuda.so": shared("libcuda.so.1"),
            "lib64": "lib",
            "include/cuda.h": b"// cuda\n",
        },
        is_collapsed=True,
    )
    made.add(
        "libcublas",
        {
            "LICENSE": b"EULA\n",
            "docs/README": b"read\n",
            "lib/11/libcublas.so.11": shared("libcublas.so.11"),
            "lib/13/libcublas.so.13": shared("libcublas.so.13"),
            "lib/13/libcublas.so": "libcublas.so.13",
            "lib/13/libcublas_static.a": STATIC,
            "include/cublas.h": b"// cublas\n",
            "pkg-config/cublas-13.0.pc": PC,
        },
        depends=["cuda_cudart"],
        normalise=[{"op": "lift", "from": "lib/13", "to": "lib"}],
        outputs=["out", "doc", "dev", "include", "lib", "static"],
        contents={
            "out": {"files": 1, "bytes": 5},
            "doc": {"files": 1, "bytes": 5},
            "dev": {"files": 1, "bytes": len(PC)},
            "include": {"files": 1, "bytes": 10},
            "lib": {"files": 1, "bytes": len(shared("libcublas.so.13"))},
            "static": {"files": 1, "bytes": len(STATIC)},
        },
    )
    made.refuse("cuda_gdb", "CUDA 13.0.2 has no cuda_gdb for linux-x86_64")
    return made


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


@pytest.fixture
def made(run: Run) -> MadeSet:
    """A set whose document is `set.json`, and whose archives lie below `source`."""
    made = put_packages(MadeSet())
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    return made


@pytest.fixture
def materialize(run: Run) -> Materialize:
    """Lay out `set.json` below `root`, from `source`."""

    def invoke(*options: object, base: object = "source", root: object = "root") -> Result:
        source = () if base is None else ("--base-url", base)
        return run("materialize", "set.json", "--root", root, *source, *options)

    return invoke


def record(root: Path = Path("root")) -> Any:
    return json.loads((root / ".cudaredist.json").read_bytes())


def assert_nothing_left(*others: str) -> None:
    """Assert that neither a root nor a workshop is there."""
    assert {path.name for path in Path().iterdir()} == {"set.json", "source", *others}


# -- what lies there


def test_one_tree_of_all_packages(made: MadeSet, materialize: Materialize, run: Run) -> None:
    result = materialize()
    assert result.exit_code == 0, result.output
    found = listing(Path("root"))
    files = {path for path, content in found.items() if isinstance(content, bytes)}
    assert files == {*MERGED, "version.json", ".cudaredist.json"}
    assert {path: found[path] for path in found.keys() - files} == LINKS
    assert found["lib/libcublas.so.13"] == shared("libcublas.so.13")
    assert found["share/licenses/cuda_nvcc/LICENSE"] == b"EULA of nvcc\n"
    programs = {path for path, mode in modes(Path("root")).items() if mode == 0o755}
    assert programs == {p for p in MERGED if p.startswith("bin/")} | {"nvvm/bin/cicc"}
    assert set(modes(Path("root")).values()) <= {0o755, 0o644}
    versions = json.loads((Path("root") / "version.json").read_bytes())
    assert versions["cuda"] == {"name": "CUDA SDK", "version": "13.0.2"}
    assert versions["libcublas"] == {"name": "LIBCUBLAS", "version": "1.2.3"}
    assert run("validate", "root/.cudaredist.json").exit_code == 0
    assert run("materialize", "--root", "root", "--verify").exit_code == 0
    assert_nothing_left("root")


def test_every_output_in_a_folder_of_its_own_holds_what_the_set_says(
    made: MadeSet, materialize: Materialize, run: Run
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
        # Where its libraries are is written into pkg-config's files.
        is_rewritten = below.endswith(".pc")
        counts[attr][output]["bytes"] += len(PC) if is_rewritten else file["size"]
        assert attr == file["package"]
    assert counts == {
        attr: {output: size for output, size in package["contents"].items() if size["files"]}
        for attr, package in made.packages.items()
        if package["status"] == "available"
    }
    assert run("materialize", "--root", "root", "--verify").exit_code == 0
    assert Path("root/libcublas/lib/lib/libcublas.so").resolve().is_file()


@pytest.mark.parametrize("layout", ["merged", "split"])
def test_pkg_config_itself_finds_what_lies_there(
    made: MadeSet, materialize: Materialize, layout: str
) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config here")
    materialize("--layout", layout)
    # Wherever the root is brought to.
    Path("root").rename("moved")
    (folder,) = {path.parent for path in Path("moved").rglob("cublas.pc")}
    found = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "cublas"],
        env={**os.environ, "PKG_CONFIG_PATH": str(folder.resolve())},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    include, lib = (Path(word[2:]) for word in found if word.startswith(("-I", "-L")))
    assert (include / "cublas.h").is_file()
    assert (lib / "libcublas.so").is_file()


def test_archives_for_windows_on_any_host(run: Run, materialize: Materialize) -> None:
    made = MadeSet(platform="windows-x86_64")
    made.add(
        "cuda_cudart",
        {
            "LICENSE": b"EULA\n",
            "bin/x64/cudart64_13.dll": binaries.pe(name="cudart64_13.dll"),
            "lib/x64/cudart_static.lib": STATIC,
            "include/cuda.h": b"//\n",
        },
    )
    made.add("cuda_nvcc", {"bin/nvcc.exe": binaries.pe(name=None), "bin/nvcc.profile": b"x"})
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    result = materialize()
    assert result.exit_code == 0, result.output
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


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.zst", "zip"])
def test_every_format_of_archive(run: Run, materialize: Materialize, suffix: str) -> None:
    made = MadeSet()
    if suffix == "zip":
        made.add("x", {"lib/data": b"content"}, suffix=suffix)
        path = "lib/data"
    else:
        pack = archives.COMPRESSIONS[f".{suffix}"]
        made.add("x", data=pack(archives.plain_tar()), suffix=suffix)
        path = "lib/libx.so.1.2"
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    assert materialize().exit_code == 0
    assert path in listing(Path("root"))
    assert not list(Path().glob(".root*"))


def test_a_hard_link_is_one_more_name_of_a_file(run: Run, materialize: Materialize) -> None:
    made = MadeSet()
    made.add("x", data=archives.gz(archives.plain_tar()), suffix="tar.gz")
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    materialize()
    assert Path("root/lib/again").read_bytes() == b"read me\n"
    assert run("materialize", "--root", "root", "--verify").exit_code == 0


def test_two_packages_may_be_one_archive(run: Run, materialize: Materialize) -> None:
    made = MadeSet()
    path = made.add("one", {"lib/data": b"content"})
    made.add("two", data=made.archives[path])
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    result = materialize("-j", 4, "--layout", "split")
    assert result.exit_code == 0, result.output
    assert "1 archives; " in result.stderr
    assert Path("root/one/out/lib/data").read_bytes() == b"content"
    assert Path("root/two/out/lib/data").read_bytes() == b"content"


# -- what is chosen


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
def test_a_small_toolkit_is_a_small_download(
    made: MadeSet,
    materialize: Materialize,
    server: FaultServer,
    options: list[str],
    packages: list[str],
) -> None:
    server.add_folder(Path("source"))
    result = materialize(*options, "--json", base=server.url)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["packages"] == packages
    wanted = {f"/{FOLDER}/{made.packages[name]['archive']['relative_path']}" for name in packages}
    assert dict(server.requests) == dict.fromkeys(wanted, 1)
    size = sum(made.packages[name]["archive"]["size"] for name in packages)
    assert report["fetched_bytes"] == size
    assert f"{len(packages)} archives; {size:,} bytes to fetch; " in result.stderr


def test_no_static_leaves_static_libraries_out_but_those_of_cudart(
    made: MadeSet, materialize: Materialize
) -> None:
    materialize("--no-static")
    assert {p for p in listing(Path("root")) if p.endswith(".a")} == {"lib/libcudart_static.a"}
    assert record()["static"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--component", "libcublass"], "did you mean libcublas"),
        (["--component", "compilers"], "did you mean compiler"),
        (["--exclude", "libcubla"], "did you mean libcublas"),
        (["--component", "cuda_gdb"], "cuda_gdb is unsupported: CUDA 13.0.2 has no cuda_gdb"),
        (["--max-download", "1k"], "more than --max-download 1,000"),
        (["--max-download", "much"], "is no size"),
        (["--archives", "nowhere"], "no such folder"),
        (["--verify", "--remove"], "cannot be combined with"),
        (["--verify"], "cannot be combined with SET"),
        (["--remove"], "cannot be combined with SET"),
    ],
)
def test_calls_that_cannot_be_carried_out(
    made: MadeSet, materialize: Materialize, options: list[str], words: str
) -> None:
    result = materialize(*options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert_nothing_left()


def test_a_compiler_that_the_channel_lacks_is_named(run: Run, materialize: Materialize) -> None:
    made = MadeSet(cuda="12.9.1")
    made.add("cuda_nvcc", {"bin/ptxas": PROGRAM, "share/doc/nvcc": b"x", "nvvm/bin/cicc": PROGRAM})
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    result = materialize("--component", "compiler")
    assert result.exit_code == 2
    assert "the packages of CUDA 12.9.1 in the redist channel have no nvcc, fatbinary" in (
        result.stderr
    )
    assert_nothing_left()
    assert materialize("--component", "cuda_nvcc").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["set.json"], 2, "--root"),
        (["--root", "root"], 2, "name the package set"),
        (["nothing.json", "--root", "root"], 2, "no such file"),
        (["broken.json", "--root", "root"], 5, "broken.json"),
        (["--root", "nothing", "--verify"], 2, "no toolkit root of ours"),
        (["--root", "nothing", "--remove"], 2, "nothing is there"),
        (["--root", "source", "--remove"], 2, "no toolkit root of ours"),
        (["set.json", "--root", "/", "--base-url", "source"], 2, "cannot be a toolkit root"),
        (["set.json", "--root", "root", "--offline"], 2, "--archives"),
    ],
)
def test_calls_that_make_no_sense(
    made: MadeSet, run: Run, arguments: list[str], code: int, words: str
) -> None:
    Path("broken.json").write_text('{"schema_version": 1}')
    result = run("materialize", *arguments)
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert_nothing_left("broken.json")


# -- again


def test_a_second_run_asks_for_nothing_and_changes_nothing(
    made: MadeSet, materialize: Materialize, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_folder(Path("source"))
    assert materialize(base=server.url).exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in Path("root").rglob("*")}
    server.requests.clear()
    for module in ("unpack", "root"):
        name = f"cudaredist.pipeline.toolkit.{module}.hash_of"
        monkeypatch.setattr(name, lambda _: pytest.fail("read a file"))
    result = materialize(base=server.url)
    assert result.exit_code == 0
    assert result.stdout.startswith("root: unchanged; CUDA 13.0.2 for linux-x86_64, 4 packages")
    assert not server.requests
    assert {path: path.stat().st_mtime_ns for path in Path("root").rglob("*")} == before


@pytest.mark.parametrize(
    "options",
    [
        ["--component", "cuda_cudart"],
        ["--layout", "split"],
        ["--no-static"],
        ["--exclude", "cuda_crt"],
    ],
)
def test_another_selection_takes_the_roots_place(
    made: MadeSet, materialize: Materialize, run: Run, options: list[str]
) -> None:
    materialize()
    result = materialize(*options)
    assert result.exit_code == 0, result.output
    assert "root: written" in result.stdout
    again = materialize(*options, root="other")
    assert again.exit_code == 0
    assert listing(Path("root")) == listing(Path("other"))
    assert materialize(*options).stdout.startswith("root: unchanged")
    assert_nothing_left("root", "other")


def test_what_somebody_put_into_a_root_is_never_thrown_away(
    made: MadeSet, materialize: Materialize
) -> None:
    materialize("--component", "cuda_cudart")
    Path("root/lib/mine.so").write_bytes(b"mine")
    before = listing(Path("root"))
    result = materialize()
    assert result.exit_code == 2
    assert "holds what was not laid out there: lib/mine.so" in result.stderr
    assert listing(Path("root")) == before
    assert_nothing_left("root")
    # As it was asked for, it is still there.
    assert materialize("--component", "cuda_cudart").exit_code == 0


@pytest.mark.parametrize("damage", ["missing", "size", "link", "folder"])
def test_a_damaged_root_is_made_anew(
    made: MadeSet, materialize: Materialize, run: Run, damage: str
) -> None:
    materialize()
    expected = listing(Path("root"))
    match damage:
        case "missing":
            Path("root/bin/nvcc").unlink()
        case "size":
            Path("root/bin/nvcc").write_bytes(b"x")
        case "link":
            Path("root/lib64").unlink()
            Path("root/lib64").symlink_to("bin")
        case "folder":
            shutil.rmtree("root/include")
        case _:
            pytest.fail(damage)
    result = materialize()
    assert result.exit_code == 0
    assert "it is made anew" in result.stderr
    assert listing(Path("root")) == expected


def test_any_number_of_jobs_gives_the_same_bytes(made: MadeSet, materialize: Materialize) -> None:
    materialize("-j", 1)
    materialize("-j", 8, root="other")
    assert listing(Path("root")) == listing(Path("other"))
    assert modes(Path("root")) == modes(Path("other"))


def test_the_same_from_every_kind_of_source(
    made: MadeSet, materialize: Materialize, server: FaultServer
) -> None:
    materialize(root="folder")
    server.add_folder(Path("source"))
    materialize(base=server.url, root="http")
    made.put_archives(Path("flat"), is_flat=True)
    assert (
        materialize("--archives", "flat", "--offline", base=None, root="flat-root").exit_code == 0
    )
    assert listing(Path("folder")) == listing(Path("http")) == listing(Path("flat-root"))


# -- archives at hand


@pytest.mark.parametrize("is_flat", [True, False])
def test_archives_at_hand_are_not_fetched(
    made: MadeSet, materialize: Materialize, server: FaultServer, *, is_flat: bool
) -> None:
    server.add_folder(Path("source"))
    made.put_archives(Path("hand"), is_flat=is_flat)
    next(Path("hand").rglob("libcublas*.xz")).unlink()
    size = made.packages["libcublas"]["archive"]["size"]
    # Only what is fetched counts.
    options = ("--archives", "hand", "--max-download", size, "--json")
    result = materialize(*options, base=server.url)
    assert result.exit_code == 0, result.output
    assert [path.rpartition("/")[2].partition("-")[0] for path in server.requests] == ["libcublas"]
    assert json.loads(result.stdout)["fetched_bytes"] == size
    assert f"4 archives, 3 of them here; {size:,} bytes to fetch" in result.stderr


def test_a_wrong_archive_at_hand_is_fetched_instead(
    made: MadeSet, materialize: Materialize, server: FaultServer
) -> None:
    server.add_folder(Path("source"))
    made.put_archives(Path("hand"), is_flat=True)
    for path in Path("hand").iterdir():
        path.write_bytes(bytes(path.stat().st_size))
    assert materialize("--archives", "hand", base=server.url).exit_code == 0
    assert server.requests.total() == 4
    assert materialize("--archives", "hand", "--offline", base=None, root="two").exit_code == 4
    # What is wrong says more than what is not there.
    for path in Path("source").rglob("*.xz"):
        path.unlink()
    assert materialize("--archives", "hand", root="two").exit_code == 4
    assert not Path("two").exists()


def test_without_network_what_is_missing_is_said(made: MadeSet, materialize: Materialize) -> None:
    made.put_archives(Path("hand"), is_flat=True)
    next(Path("hand").glob("cuda_crt*")).unlink()
    result = materialize("--archives", "hand", "--offline", base=None)
    assert result.exit_code == 3
    assert "cuda_crt-linux-x86_64-1.2.3-archive.tar.xz" in result.stderr
    # What was finished is kept for the next run.
    result = materialize("--archives", "hand", "--offline")
    assert result.exit_code == 0, result.output


# -- limits, and going on


def test_sizes_that_are_not_known_are_not_said_to_be_nothing(
    made: MadeSet, materialize: Materialize
) -> None:
    made.packages["libcublas"]["contents"] = {}
    made.write(Path("set.json"))
    result = materialize()
    assert result.exit_code == 0, result.output
    assert "bytes unpacked, not counting 1 that were never examined\n" in result.stderr


def test_what_came_before_a_limit_is_kept_for_the_next_run(
    run: Run, materialize: Materialize, server: FaultServer
) -> None:
    made = put_packages(MadeSet())
    for package in made.packages.values():
        if package["archive"]:
            package["archive"]["size"] = None
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    server.add_folder(Path("source"))
    limit = len(made.archives[made.packages["cuda_crt"]["archive"]["relative_path"]])
    result = materialize("--max-download", limit, "-j", 1, base=server.url)
    assert result.exit_code == 3
    assert f"more than --max-download {limit:,} bytes came" in result.stderr
    assert "4 of unknown size" in result.stderr
    assert not Path("root").exists()
    (workshop,) = Path().glob(".root*")
    assert len(list((workshop / "archives").iterdir())) == 1
    assert stat.S_IMODE(workshop.stat().st_mode) == 0o700
    server.requests.clear()
    result = materialize(base=server.url)
    assert result.exit_code == 0
    assert "4 archives, 1 of them here" in result.stderr
    assert server.requests.total() == 3
    assert not workshop.exists()


@pytest.mark.parametrize("is_altered", [False, True])
def test_an_archive_that_broke_off_is_gone_on_with(
    made: MadeSet, materialize: Materialize, server: FaultServer, *, is_altered: bool
) -> None:
    server.add_folder(Path("source"))
    path = next(path for path in server.files if "libcublas" in path)
    size = len(server.files[path])
    server.misbehave(path, faults.truncated)
    assert materialize("--retries", 0, "-j", 1, base=server.url).exit_code == 3
    (part,) = Path(".root.cudaredist/fetched").iterdir()
    half = part.stat().st_size
    assert 0 < half < size
    if is_altered:
        part.write_bytes(bytes(half))
    server.behaviours.clear()
    server.requests.clear()
    server.headers.clear()
    result = materialize("--json", base=server.url)
    assert result.exit_code == 0, result.output
    assert f"4 archives, 3 of them here; {size - half:,} bytes to fetch" in result.stderr
    asked = [headers.get("Range") for _, headers in server.headers]
    # What is found wrong in the end comes anew.
    assert asked == [f"bytes={half}-", *[None] * is_altered]
    fetched = size - half + size * is_altered
    assert json.loads(result.stdout)["fetched_bytes"] == fetched
    materialize(root="other")
    assert listing(Path("root")) == listing(Path("other"))
    assert_nothing_left("root", "other")


def test_a_folder_as_a_source_is_not_copied(
    made: MadeSet, materialize: Materialize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudaredist.pipeline.archives.PartialArchive", None)
    assert materialize().exit_code == 0


def test_what_an_interrupted_run_left_is_proved_again(
    made: MadeSet, materialize: Materialize, server: FaultServer
) -> None:
    server.add_folder(Path("source"))
    missing = next(path for path in server.files if "libcublas" in path)
    data = server.files.pop(missing)
    assert materialize("-j", 1, base=server.url).exit_code == 3
    (workshop,) = Path().glob(".root*")
    kept = sorted((workshop / "archives").iterdir())
    assert len(kept) == 3
    # A machine lost power: names are there, and content is not.
    next(path for path in kept[0].iterdir() if path.name.isdigit()).write_bytes(b"")
    next(path for path in kept[1].iterdir() if path.name.isdigit()).unlink()
    (kept[2] / "index.json").write_bytes(b"{}")
    server.files[missing] = data
    server.requests.clear()
    assert materialize(base=server.url).exit_code == 0
    assert server.requests.total() == 4
    assert materialize(root="other").exit_code == 0
    assert listing(Path("root")) == listing(Path("other"))


def test_a_root_put_aside_by_a_killed_run_comes_back(
    made: MadeSet, materialize: Materialize, run: Run
) -> None:
    materialize()
    expected = listing(Path("root"))

    def kill_between_both_steps() -> None:
        Path(".root.cudaredist").mkdir()
        Path("root").rename(".root.cudaredist/old")

    kill_between_both_steps()
    result = run("materialize", "--root", "root", "--verify")
    assert "interrupted" in result.stderr
    # Even a run that can do nothing brings it back.
    assert materialize("--max-download", "1", "--layout", "split").exit_code == 2
    assert listing(Path("root")) == expected
    kill_between_both_steps()
    assert materialize().stdout.startswith("root: unchanged")
    kill_between_both_steps()
    assert materialize("--layout", "split").exit_code == 0
    assert Path("root/cuda_nvcc/out/bin/nvcc").is_file()
    kill_between_both_steps()
    assert run("materialize", "--root", "root", "--remove").exit_code == 0
    assert_nothing_left()


def test_what_a_killed_run_left_beside_a_whole_root_goes(
    made: MadeSet, materialize: Materialize
) -> None:
    materialize()
    left = Path(".root.cudaredist")
    shutil.copytree("root", left / "old")
    (left / "rubbish/half").mkdir(parents=True)
    assert materialize().stdout.startswith("root: unchanged")
    assert_nothing_left("root")


# -- wheels


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


WHEEL = {
    "nvidia/cu13/bin/nvcc": PROGRAM,
    "nvidia/cu13/bin/nvcc.profile": b"TOP = $(_HERE_)/..\n",
    "nvidia/cu13/lib/libnvvm.so.4": shared("libnvvm.so.4"),
    "nvidia/__init__.py": b"",
}


def test_wheels_are_laid_out_as_archives_are(
    run: Run, materialize: Materialize, index: Path
) -> None:
    tag = "manylinux2014_x86_64"
    made = MadeSet(channel="wheels")
    made.add("cuda_nvcc", data=wheel("nvidia-cuda-nvcc", "1.2.3", WHEEL))
    path = f"nvidia-cuda-nvcc/nvidia_cuda_nvcc-1.2.3-py3-none-{tag}.whl"
    made.packages["cuda_nvcc"]["archive"]["relative_path"] = path
    made.write(Path("set.json"))
    put_wheel(index, "nvidia-cuda-nvcc", "1.2.3", WHEEL, tag=tag)
    result = materialize(base=None)
    assert result.exit_code == 0, result.output
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
    # At hand, by its name alone, and without pip.
    at_hand = materialize("--archives", index, "--offline", base=None, root="two")
    assert at_hand.exit_code == 0, at_hand.output
    assert listing(Path("two")) == listing(Path("root"))
    result = materialize(base="source", root="three")
    assert result.exit_code == 2
    assert "--base-url cannot be combined with" in result.stderr


# -- conflicts and refusals


@pytest.mark.parametrize(("path", "code"), [("include/a.h", 5), ("LICENSE", 0), ("lib/libx.so", 5)])
def test_different_files_under_one_path_name_both_owners(
    run: Run, materialize: Materialize, path: str, code: int
) -> None:
    made = MadeSet()
    made.add("one", {path: b"1", "include/same.h": b"same"})
    made.add("two", {path: b"2", "include/same.h": b"same"})
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    result = materialize()
    assert result.exit_code == code, result.output
    if code:
        assert f"{path} is in one and in two, and not the same" in result.stderr
        assert "--layout split" in result.stderr
        assert_nothing_left()
        assert materialize("--layout", "split").exit_code == 0
        assert materialize("--exclude", "two", root="other").exit_code == 0


def tar_with(*members: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)) if member.isreg() else None)
    return archives.gz(out.getvalue())


def info(name: str, **fields: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


HONEST = info("top/include/a.h", size=3)
HOSTILE = {
    "name above": (tar_with(HONEST, info("top/../../evil", size=1)), "unsafe name"),
    "absolute name": (tar_with(HONEST, info("/evil", size=1)), "unsafe name"),
    "link above": (
        tar_with(HONEST, info("top/x", type=tarfile.SYMTYPE, linkname="../../../evil")),
        "leads outside",
    ),
    "absolute link": (
        tar_with(HONEST, info("top/x", type=tarfile.SYMTYPE, linkname="/etc/passwd")),
        "leads outside",
    ),
    "through a link": (
        tar_with(
            HONEST,
            info("top/x", type=tarfile.SYMTYPE, linkname="include"),
            info("top/x/evil", size=1),
        ),
        "below something that is no folder",
    ),
    "hard link above": (
        tar_with(HONEST, info("top/x", type=tarfile.LNKTYPE, linkname="../evil")),
        "leads outside",
    ),
    "device": (tar_with(HONEST, info("top/null", type=tarfile.CHRTYPE)), "neither file"),
    "pipe": (tar_with(HONEST, info("top/pipe", type=tarfile.FIFOTYPE)), "neither file"),
    "set-user-id": (tar_with(HONEST, info("top/bin/x", mode=0o4755, size=1)), "set-id bit"),
    "set-group-id": (tar_with(HONEST, info("top/bin/x", mode=0o2755, size=1)), "set-id bit"),
    "no archive": (b"not an archive at all", "is no valid gzip"),
    "cut": (archives.gz(archives.plain_tar()[:2000]), "ends in the middle"),
    "ratio": (archives.gz(bytes(200 << 20)), "times its"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_archives_leave_nothing_behind(
    run: Run, materialize: Materialize, what: str
) -> None:
    data, words = HOSTILE[what]
    made = MadeSet()
    made.add("honest", {"include/b.h": b"x"})
    made.add("hostile", data=data, suffix="tar.gz")
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    result = materialize(root="deep/root")
    assert result.exit_code == 5, result.output
    assert words in result.stderr
    assert "hostile-linux-x86_64" in result.stderr
    assert_nothing_left()
    assert not Path("../evil").exists()


def test_a_hostile_archive_leaves_the_root_that_is_there(
    run: Run, materialize: Materialize
) -> None:
    made = MadeSet()
    made.add("honest", {"include/b.h": b"x"})
    made.add("hostile", data=HOSTILE["link above"][0], suffix="tar.gz")
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    assert materialize("--component", "honest").exit_code == 0
    before = listing(Path("root"))
    assert materialize().exit_code == 5
    assert listing(Path("root")) == before
    assert_nothing_left("root")


def test_archives_have_bounds(
    run: Run, materialize: Materialize, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MadeSet()
    made.add("x", {"lib/a": bytes(3000), "lib/b": bytes(3000)})
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    monkeypatch.setattr(unpack, "UNPACKED_LIMIT", 5000)
    result = materialize()
    assert result.exit_code == 5
    assert "unpacks to more than 5,000 bytes" in result.stderr
    assert_nothing_left()


@pytest.mark.parametrize("change", ["sha256", "size", "content"])
def test_wrong_bytes_leave_nothing_behind(
    made: MadeSet, materialize: Materialize, change: str
) -> None:
    archive = made.packages["libcublas"]["archive"]
    if change == "sha256":
        archive["sha256"] = "0" * 64
    elif change == "size":
        archive["size"] += 1
    else:
        path = Path("source", FOLDER, archive["relative_path"])
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    made.write(Path("set.json"))
    result = materialize()
    assert result.exit_code == 4, result.output
    assert "size" if change == "size" else "SHA-256" in result.stderr
    assert_nothing_left()


@pytest.mark.parametrize("where", ["write", "open", "link", "rename"])
def test_a_full_disk_is_said_and_leaves_nothing(
    made: MadeSet, materialize: Materialize, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if where == "link":
        monkeypatch.setattr(os, "link", full)
        monkeypatch.setattr(shutil, "copyfileobj", full)
    elif where == "rename":
        monkeypatch.setattr(Path, "rename", full)
    else:
        real = getattr(os, where)

        def in_workshop(place: Any, *rest: Any, **more: Any) -> Any:
            if where == "write":
                is_meant = "/archives/" in os.readlink(f"/proc/self/fd/{place}")  # noqa: PTH115
            else:
                is_meant = "/archives/" in str(place) and rest[0] & os.O_CREAT
            return full() if is_meant else real(place, *rest, **more)

        monkeypatch.setattr(os, where, in_workshop)
    result = materialize()
    assert result.exit_code == 3, result.output
    assert "No space left on device" in result.stderr
    assert "--root" in result.stderr
    assert_nothing_left()


def test_a_disk_that_is_too_small_is_said_before_anything_is_fetched(
    made: MadeSet, materialize: Materialize, server: FaultServer
) -> None:
    made.packages["libcublas"]["contents"]["lib"]["bytes"] = 1 << 60
    made.write(Path("set.json"))
    result = materialize(base=server.url)
    assert result.exit_code == 3
    assert "bytes more, and" in result.stderr
    assert not server.requests
    assert_nothing_left()


def test_without_hard_links_files_are_copied(
    made: MadeSet, materialize: Materialize, monkeypatch: pytest.MonkeyPatch
) -> None:
    materialize(root="linked")

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert materialize().exit_code == 0
    assert listing(Path("root")) == listing(Path("linked"))


# -- where it goes


def test_a_root_that_is_not_ours_is_not_touched(made: MadeSet, materialize: Materialize) -> None:
    Path("root").mkdir()
    Path("root/mine").write_bytes(b"mine")
    result = materialize()
    assert result.exit_code == 2
    assert "no toolkit root of ours" in result.stderr
    assert listing(Path("root")) == {"mine": b"mine"}
    assert_nothing_left("root")


def test_a_root_that_is_a_file_is_not_touched(made: MadeSet, materialize: Materialize) -> None:
    Path("root").write_bytes(b"mine")
    assert materialize().exit_code == 2
    assert Path("root").read_bytes() == b"mine"
    assert_nothing_left("root")


def test_an_empty_folder_may_become_a_root(made: MadeSet, materialize: Materialize) -> None:
    Path("root").mkdir()
    assert materialize().exit_code == 0
    assert_nothing_left("root")


def test_the_folder_one_stands_in_may_become_a_root(
    made: MadeSet, materialize: Materialize, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Path.cwd()
    Path("root").mkdir()
    monkeypatch.chdir("root")
    result = run("materialize", base / "set.json", "--root", ".", "--base-url", base / "source")
    assert result.exit_code == 0, result.output
    assert (base / "root/bin/nvcc").is_file()


def test_a_link_to_a_root_stays_one(made: MadeSet, materialize: Materialize, run: Run) -> None:
    Path("current").symlink_to("cuda-13.0")
    assert materialize(root="current").exit_code == 0
    assert materialize("--layout", "split", root="current").exit_code == 0
    assert Path("current").readlink() == Path("cuda-13.0")
    assert Path("cuda-13.0/cuda_nvcc").is_dir()
    assert run("materialize", "--root", "current", "--verify").exit_code == 0
    assert_nothing_left("current", "cuda-13.0")


def test_a_place_that_cannot_be_written(made: MadeSet, materialize: Materialize) -> None:
    Path("file").write_bytes(b"")
    result = materialize(root="file/root")
    assert result.exit_code == 3
    assert "cannot write" in result.stderr
    assert "--root" in result.stderr
    if sys.platform == "linux":
        # Nobody can make a folder there.
        assert materialize(root="/proc/cudaredist/root").exit_code == 3
    assert_nothing_left("file")


def test_a_place_that_cannot_be_looked_at(made: MadeSet, materialize: Materialize) -> None:
    # No file system has such names.
    assert materialize(root="x" * 250).exit_code == 3
    assert materialize(root="x" * 300).exit_code == 3
    Path("loop").symlink_to("loop")
    assert materialize(root="loop").exit_code == 3
    assert_nothing_left("loop")


def test_a_folder_that_may_not_be_written(made: MadeSet, materialize: Materialize) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    Path("locked").mkdir(mode=0o555)
    assert materialize(root="locked/root").exit_code == 3
    assert not list(Path("locked").iterdir())


def test_a_broken_record_is_said(made: MadeSet, materialize: Materialize, run: Run) -> None:
    materialize()
    Path("root/.cudaredist.json").write_bytes(b"{")
    for result in (materialize(), run("materialize", "--root", "root", "--remove")):
        assert result.exit_code == 5
        assert "root/.cudaredist.json" in result.stderr
    assert Path("root/bin/nvcc").is_file()


# -- proving and taking away


def altered(path: str) -> None:
    place = Path("root") / path
    data = bytearray(place.read_bytes())
    data[0] ^= 1
    place.write_bytes(data)


def swapped(path: str) -> None:
    place = Path("root") / path
    place.rename("elsewhere")
    place.symlink_to(Path("elsewhere").resolve())


def replaced(path: str, target: str | None) -> None:
    place = Path("root") / path
    place.unlink()
    if target is None:
        place.write_bytes(b"")
    else:
        place.symlink_to(target)


DAMAGES: dict[str, tuple[Callable[[], object], str]] = {
    "altered": (lambda: altered("bin/nvcc"), "bin/nvcc: was changed"),
    "longer": (lambda: Path("root/include/cuda.h").write_bytes(b"//"), "cuda.h: was changed"),
    "missing": (lambda: Path("root/bin/ptxas").unlink(), "bin/ptxas: is missing"),
    "not executable": (lambda: Path("root/bin/nvcc").chmod(0o644), "nvcc: its mode was changed"),
    "executable": (lambda: Path("root/include/cuda.h").chmod(0o755), "cuda.h: its mode was"),
    "set-user-id": (lambda: Path("root/bin/nvcc").chmod(0o4755), "nvcc: its mode was changed"),
    "file is a link": (lambda: swapped("bin/nvcc"), "bin/nvcc: is no file any more"),
    "folder is a link": (lambda: swapped("include"), "include/cuda.h: is missing"),
    "link is gone": (lambda: Path("root/lib64").unlink(), "lib64: is not the link"),
    "link leads elsewhere": (lambda: replaced("lib64", "bin"), "lib64: is not the link"),
    "link is a file": (lambda: replaced("lib64", None), "lib64: is not the link"),
    "version": (lambda: altered("version.json"), "version.json: was changed"),
}


def test_verify_names_what_is_not_as_laid_out(
    made: MadeSet, materialize: Materialize, run: Run
) -> None:
    materialize(root="whole")
    for change, words in DAMAGES.values():
        shutil.copytree("whole", "root", symlinks=True)
        result = run("materialize", "--root", "root", "--verify")
        assert result.stdout.startswith("root: verified; CUDA 13.0.2"), words
        change()
        result = run("materialize", "--root", "root", "--verify", "--json")
        assert result.exit_code == 4
        report = json.loads(result.stdout)
        assert report["status"] == "altered"
        assert words in " ".join(report["problems"])
        assert report["exit_code"] == 4
        shutil.rmtree("root")
        shutil.rmtree("elsewhere", ignore_errors=True)
        Path("elsewhere").unlink(missing_ok=True)


def test_what_cannot_be_read_is_a_problem_and_no_crash(
    made: MadeSet, materialize: Materialize, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    materialize()

    def refuse(_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("cudaredist.pipeline.toolkit.root.hash_of", refuse)
    result = run("materialize", "--root", "root", "--verify")
    assert result.exit_code == 4
    assert "bin/nvcc: cannot be read: Permission denied" in result.stdout


def test_foreign_files_are_named_and_left(
    made: MadeSet, materialize: Materialize, run: Run
) -> None:
    materialize()
    Path("root/lib/mine").mkdir()
    for number in range(25):
        Path(f"root/lib/mine/{number:02}").write_bytes(b"mine")
    Path("root/lib/link").symlink_to("/etc")
    Path("root/empty/inner").mkdir(parents=True)
    result = run("materialize", "--root", "root", "--verify")
    assert result.exit_code == 0
    assert "not ours: empty/inner/" in result.stdout
    assert "not ours: and 7 more" in result.stdout
    result = run("materialize", "--root", "root", "--remove")
    assert result.exit_code == 1
    assert "root: removed" in result.stdout
    found = {path.relative_to("root").as_posix() for path in Path("root").rglob("*")}
    assert found == {"lib", "lib/mine", "lib/link", "empty", "empty/inner"} | {
        f"lib/mine/{number:02}" for number in range(25)
    }
    assert_nothing_left("root")


def test_remove_takes_everything_away(made: MadeSet, materialize: Materialize, run: Run) -> None:
    materialize()
    result = run("materialize", "--root", "root", "--remove")
    assert result.exit_code == 0
    assert_nothing_left()


def test_remove_takes_what_an_interrupted_run_left(
    made: MadeSet, materialize: Materialize, run: Run
) -> None:
    shutil.rmtree(next(Path("source", FOLDER).glob("libcublas")))
    assert materialize().exit_code == 3
    assert list(Path().glob(".root*"))
    result = run("materialize", "--root", "root", "--remove")
    assert result.exit_code == 0
    assert result.stdout == "root: removed; what an interrupted run left\n"
    assert_nothing_left()


def test_a_root_that_cannot_be_moved_is_taken_away_file_by_file(
    made: MadeSet, materialize: Materialize, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    materialize()

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", busy)
        patch.setattr("cudaredist.pipeline.toolkit.staging._exchange", lambda *_: False)
        result = materialize("--layout", "split")
        assert result.exit_code == 3
        assert "busy" in result.stderr
        assert run("materialize", "--root", "root", "--verify").exit_code == 0
        assert run("materialize", "--root", "root", "--remove").exit_code == 0
    assert_nothing_left()


@pytest.mark.parametrize("path", ["../precious", "link/precious", "/precious"])
def test_a_forged_record_reaches_nothing_outside_the_root(
    made: MadeSet, materialize: Materialize, run: Run, path: str
) -> None:
    materialize()
    Path("precious").write_bytes(b"precious")
    Path("root/link").symlink_to("..")
    document = record()
    document["files"][path] = document["files"]["bin/nvcc"]
    Path("root/.cudaredist.json").write_text(json.dumps(document))
    result = run("materialize", "--root", "root", "--verify")
    assert f"{path}: is missing" in result.stdout
    assert run("materialize", "--root", "root", "--remove").exit_code == 1
    assert Path("precious").read_bytes() == b"precious"


# -- a broken network


@pytest.mark.parametrize(
    ("behaviour", "times", "code"),
    [
        pytest.param(faults.reset_in_the_middle, 1, 0, id="reset"),
        pytest.param(faults.truncated, 1, 0, id="truncated"),
        pytest.param(faults.truncated, None, 3, id="always truncated"),
        pytest.param(faults.status(404), None, 3, id="not there"),
        pytest.param(faults.body(b"other bytes"), None, 4, id="other bytes"),
    ],
)
def test_a_server_that_fails(
    made: MadeSet,
    materialize: Materialize,
    server: FaultServer,
    behaviour: Any,
    times: int | None,
    code: int,
) -> None:
    server.add_folder(Path("source"))
    path = next(path for path in server.files if "libcublas" in path)
    server.misbehave(path, behaviour, times)
    result = materialize("--retries", 1, base=server.url)
    assert result.exit_code == code, result.output
    assert Path("root").exists() is (code == 0)
    if code == 4:
        assert_nothing_left()
    server.behaviours.clear()
    assert materialize(base=server.url).exit_code == 0
    materialize(root="other")
    assert listing(Path("root")) == listing(Path("other"))


# -- from data files to a root


@pytest.fixture
def data(run: Run) -> Path:
    """A data folder with the tables that are shipped."""
    folder = Path("data")
    (folder / "manifests").mkdir(parents=True)
    for name in ("gpus.json", "nvcc_compat.json"):
        shutil.copy(REPOSITORY / "data" / name, folder / name)
    return folder


def test_from_manifests_to_a_root(run: Run, data: Path, server: FaultServer) -> None:
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
        result = run(command, "--base-url", "source", "--redist", "cuda", *version)
        assert result.exit_code == 0, result.output
    options = ("--cuda", "12.9.1", "--platform", "linux-x86_64", "--output", "set.json")
    result = run("build", *options)
    assert result.exit_code == 0, result.output
    result = run(
        *("materialize", "set.json", "--root", "root", "--base-url", "source"),
        *("--component", "libcublas", "--layout", "split"),
    )
    assert result.exit_code == 0, result.output
    assert set(listing(Path("root"))) == {
        ".cudaredist.json",
        "cuda_cudart/out/include/cuda.h",
        "cuda_cudart/out/lib/libcudart.so.12",
        # cudart's headers need those that are nvcc's.
        "cuda_nvcc/out/bin/nvcc",
        "cuda_nvcc/out/share/licenses/cuda_nvcc/LICENSE",
        "cuda_cudart/out/lib/libcudart_static.a",
        "libcublas/include/include/cublas.h",
        "libcublas/lib/lib/libcublas.so.12",
        "libcublas/static/lib/libcublas_static.a",
        "version.json",
    }
