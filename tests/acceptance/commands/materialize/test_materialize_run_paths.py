"""Tests of libraries without run paths to other libraries of a root, and of --run-paths."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import binaries
from support.optional_programs import needs
from support.running import expect_error, expect_output
from support.server import FaultServer
from support.toolkits import MadeSet
from typer.testing import Result

from cudaredist.primitives import sha256_of

ROOT = Path("root")
OPENER = Path("root/lib/libnvrtc.so.13")
USER = Path("root/lib/libcusolverMg.so.12")
MISSING = {
    "lib/libcusolverMg.so.12": {"needs": ["libcublas.so.13"], "opens": [], "folders": ["lib"]},
    "lib/libnvrtc.so.13": {
        "needs": [],
        "opens": ["libnvrtc-builtins.so.13.0"],
        "folders": ["lib"],
    },
}


def compiled(name: str, source: str, *options: str) -> bytes:
    """Return a shared library compiled by gcc."""
    Path("source.c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", "source.c", "-o", name, f"-Wl,-soname,{name}", *options]
    subprocess.run(command, check=True)
    return Path(name).read_bytes()


@pytest.fixture
def source(run: Run, server: FaultServer) -> FaultServer:
    """Serve libraries like those of CUDA 13.0: two lack a run path to their own folder."""
    made_set = MadeSet()
    opened = "libnvrtc-builtins.so.13.0"
    opener = f'#include <dlfcn.h>\nint compile(void) {{ return dlopen("{opened}", 1) ? 0 : 7; }}\n'
    nvrtc = {
        "lib/libnvrtc.so.13": compiled("libnvrtc.so.13", opener),
        f"lib/{opened}": compiled(opened, "int builtin;"),
    }
    made_set.add("cuda_nvrtc", nvrtc)
    blas = compiled("libcublas.so.13", "int multiply(void) { return 0; }")
    made_set.add("libcublas", {"lib/libcublas.so.13": blas})
    user = "int multiply(void);\nint solve(void) { return multiply(); }"
    solver = compiled("libcusolverMg.so.12", user, "-L.", "-l:libcublas.so.13")
    made_set.add("libcusolver", {"lib/libcusolverMg.so.12": solver}, depends=["libcublas"])
    made_set.write(Path("set.json"))
    server.add_folder(made_set.put_archives(Path("source")))
    return server


@pytest.fixture
def materialize(run: Run, source: FaultServer) -> Run:
    def invoke(*options: object) -> Result:
        source.requests.clear()
        return run("materialize", "set.json", "-o", "root", "--base-url", source.url, *options)

    return invoke


def fetched(server: FaultServer) -> set[str]:
    return {path.split("/")[4] for path in server.requests if path.endswith(".tar.xz")}


def loaded(library: Path, function: str, **environment: str) -> int:
    """Return a function's result, or 127 if the library cannot be loaded."""
    load = "#include <dlfcn.h>\nint main(int n, char **a) { void *h = dlopen(a[1], RTLD_NOW); "
    load += "return h ? ((int (*)(void))dlsym(h, a[2]))() : 127; }"
    Path("load.c").write_text(load)
    subprocess.run(["gcc", "load.c", "-o", "load"], check=True)
    command = ["./load", str(library.absolute()), function]
    return subprocess.run(command, check=False, env=os.environ | environment).returncode


def record() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / ".cudaredist.json").read_bytes())
    return document


@needs("gcc")
def test_libraries_without_run_path_are_named(materialize: Run, run: Run) -> None:
    report = json.loads(expect_output(materialize("--json"), 0).stdout)
    assert report["missing_run_paths"] == MISSING
    verified = run("materialize", "--output", "root", "--verify")
    lines = (
        "lib/libcusolverMg.so.12 has no run path to lib, and needs libcublas.so.13",
        "lib/libnvrtc.so.13 has no run path to lib, and may open libnvrtc-builtins.so.13.0",
        "set LD_LIBRARY_PATH with `cudaredist export env`, or ",
    )
    for result in (materialize(), verified):
        expect_output(result, 0, *lines)
    assert "repeat the command that created it with --run-paths" in verified.stdout
    hint = materialize().stdout.partition("or run `cudaredist ")[2].partition("`")[0]
    assert hint.endswith("--run-paths")
    assert loaded(OPENER, "compile") == 7
    assert loaded(USER, "solve") == 127
    search = {"LD_LIBRARY_PATH": str(ROOT.absolute() / "lib")}
    assert [loaded(OPENER, "compile", **search), loaded(USER, "solve", **search)] == [0, 0]


@needs("gcc")
def test_exported_variables_are_those_of_the_root(materialize: Run, run: Run) -> None:
    """The set has cuda_nvcc, but its archive has no nvcc, as in wheels of CUDA 12."""
    set_path = Path("set.json")
    document = json.loads(set_path.read_bytes())
    document["packages"]["cuda_nvcc"] = document["packages"]["cuda_nvrtc"] | {"attr": "cuda_nvcc"}
    set_path.write_text(json.dumps(document))
    before = run("export", "env", "set.json", "--root", "/opt/new").stdout
    assert "/bin/nvcc" in before
    materialize()
    root = ROOT.absolute()
    for form in ("env", "cmake"):
        assert "/bin/nvcc" not in run("export", form, "set.json", "--root", root).stdout
    assert "export LD_LIBRARY_PATH=" in run("export", "env", "set.json", "--root", root).stdout


@needs("gcc", "patchelf")
def test_run_paths_are_added_recorded_and_repaired(
    materialize: Run, source: FaultServer, run: Run
) -> None:
    materialize()
    originals = {path: sha256_of(path.read_bytes()) for path in (OPENER, USER)}
    changed = {f"lib/{path.name}": sha256 for path, sha256 in originals.items()}
    report = json.loads(expect_output(materialize("--run-paths", "--json"), 0).stdout)
    # The content is in the root already.
    assert fetched(source) == set()
    assert (report["changed_files"], report["missing_run_paths"]) == (changed, {})
    assert [loaded(OPENER, "compile"), loaded(USER, "solve")] == [0, 0]
    verified = run("materialize", "--output", "root", "--verify")
    names = ", ".join(changed)
    expect_output(verified, 0, f"run paths added with patchelf: {', '.join(sorted(changed))}")
    assert names
    files = record()["files"]
    for path, sha256 in originals.items():
        file = files[f"lib/{path.name}"]
        assert file["original_sha256"] == sha256 != file["sha256"]
        assert file["sha256"] == sha256_of(path.read_bytes())
    before = record()
    OPENER.write_bytes(b"damaged")
    expect_output(run("materialize", "--output", "root", "--verify"), 4, "was changed")
    expect_output(materialize("--run-paths"), 0, "root: written")
    assert fetched(source) == {"cuda_nvrtc"}
    assert record() == before
    assert materialize("--run-paths").stdout.startswith("root: unchanged")
    # Without the option, the libraries are those of the archives again.
    expect_output(materialize(), 0, "root: written")
    assert fetched(source) == {"cuda_nvrtc", "libcusolver"}
    assert {path: sha256_of(path.read_bytes()) for path in originals} == originals


@needs("gcc", "patchelf")
def test_run_paths_are_added_to_new_split_root(materialize: Run) -> None:
    expect_output(materialize("--layout", "split", "--run-paths"), 0)
    assert loaded(Path("root/libcusolver/lib/lib/libcusolverMg.so.12"), "solve") == 0


@needs("gcc", "patchelf")
def test_run_paths_of_root_without_examination_require_archives(
    materialize: Run, source: FaultServer
) -> None:
    """A root by an earlier version has no missing run paths in its record."""
    materialize()
    document = record()
    del document["missing_run_paths"]
    (ROOT / ".cudaredist.json").write_text(json.dumps(document))
    report = json.loads(expect_output(materialize("--json"), 0).stdout)
    assert (report["status"], report["missing_run_paths"]) == ("unchanged", {})
    expect_output(materialize("--run-paths"), 0, "run paths added with patchelf")
    assert fetched(source) == {"cuda_nvrtc", "libcublas", "libcusolver"}


@needs("gcc")
def test_run_paths_without_patchelf_are_refused(
    materialize: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path.cwd() / "empty"))
    words = ("--run-paths requires patchelf, which is not installed", "apt-get install patchelf")
    expect_error(materialize("--run-paths"), 3, *words)
    assert not ROOT.exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo broken >&2; exit 1", "patchelf cannot add a run path to lib/libb.so.1: broken"),
        ("exit 0", "patchelf changed more than the run path of lib/libb.so.1"),
    ],
)
def test_failure_of_patchelf_leaves_no_root(
    run: Run, script: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_set = MadeSet()
    library = binaries.elf(soname="libb.so.1", needed=["liba.so.1"])
    files = {"lib/libb.so.1": library, "lib/liba.so.1": binaries.elf(soname="liba.so.1")}
    made_set.add("libcublas", files)
    made_set.write(Path("set.json"))
    made_set.put_archives(Path("source"))
    Path("bin").mkdir()
    Path("bin/patchelf").write_text(f"#!/bin/sh\n{script}\n")
    Path("bin/patchelf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path.cwd() / 'bin'}:{os.environ['PATH']}")
    options = ("--output", "root", "--archives", "source", "--offline", "--run-paths")
    expect_error(run("materialize", "set.json", *options), 5, words)
    assert not ROOT.exists()
    assert not Path(".root.cudaredist").exists()


def variable(env: str, **environment: str) -> str:
    """Return LD_LIBRARY_PATH after a shell reads a file of variables twice."""
    Path("env.sh").write_text(env)
    process = subprocess.run(
        ["sh", "-euc", '. ./env.sh; . ./env.sh; printf %s "${LD_LIBRARY_PATH-}"'],
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout


@needs("gcc", "patchelf")
def test_exports_use_record_of_root(materialize: Run, run: Run) -> None:
    root = ROOT.absolute()
    call = ("export", "env", "set.json", "--root", root)
    # It is unknown if a future root needs the variable.
    assert variable(run(*call).stdout) == f"{root}/lib"
    materialize()
    assert variable(run(*call).stdout, LD_LIBRARY_PATH="/x") == f"{root}/lib:/x"
    bills = [("export", form, "set.json", "--root", root) for form in ("cyclonedx", "spdx")]
    for bill in bills:
        assert "patchelf" not in expect_output(run(*bill), 0).stdout
    original = sha256_of(OPENER.read_bytes())
    materialize("--run-paths")
    assert variable(run(*call).stdout) == ""
    changed = sha256_of(OPENER.read_bytes())
    for bill in bills:
        text = expect_output(run(*bill), 0).stdout
        assert all(word in text for word in ("lib/libnvrtc.so.13", original, changed, "patchelf"))
    Path("set.json").write_text(Path("set.json").read_text() + "\n")
    for bill in bills:
        expect_error(run(*bill), 2, "is not a toolkit root of this package set")
