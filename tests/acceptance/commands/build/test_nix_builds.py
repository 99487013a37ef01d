"""Tests of `export nix` with real Nix.

A stand-in for nixpkgs provides the stdenv that builds the packages."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.nix_builds import (
    build_package,
    contents,
    host_gcc,
    materialized,
    needs_nix_builds,
    nix_build,
    run_path_of,
    stand_in,
)
from support.optional_programs import needs
from support.running import expect_output
from support.toolkits import MadeSet
from support.wheels import wheel

pytestmark = [pytest.mark.slow, needs_nix_builds, needs("gcc")]

TEXT = b"text\n"
PC = b"cudaroot=/usr/local/cuda-13.0\nlibdir=${cudaroot}/targets/x86_64-linux/lib\n"
PC += b"includedir=${cudaroot}/targets/x86_64-linux/include\nName: a\nLibs: -L${libdir} -la\n"
PLACED: dict[str, bytes | str] = {
    "LICENSE": TEXT,
    "odd name's $file": TEXT,
    "bin/tool": TEXT,
    "docs/index.html": TEXT,
    "include/a.h": TEXT,
    "include/deep/b.h": TEXT,
    "lib/cmake/a/config.cmake": TEXT,
    "lib/liba.so.13": TEXT,
    "lib/liba.so": "liba.so.13",
    "lib/liba_static.a": TEXT,
    "lib/stubs/libcuda.so": TEXT,
    "lib64": "lib",
    "lib/extra/a.cmake": TEXT,
    "pkg-config/a-13.0.pc": PC,
    "python/a-1-py3-none-any.whl": TEXT,
    "samples/a.cu": TEXT,
    "share/man/man1/tool.1": TEXT,
    "src/a.cpp": TEXT,
}
NESTED: dict[str, bytes | str] = {
    "LICENSE": TEXT,
    "include/cccl/cub.h": b"lifted\n",
    "include/cub.h": b"replaced\n",
    "lib/12/liba.so.12": TEXT,
    "lib/13/liba.so.13": TEXT,
    "lib/13/liba.so": "liba.so.13",
    "lib/x_win32.so": TEXT,
    "nvvm/lib64/libb.so": TEXT,
    "nvvm/bin/cicc": TEXT,
    "gone/deep/file": TEXT,
}
CHANGES: list[dict[str, str | None]] = [
    {"op": "lift", "from": "lib/13", "to": "lib"},
    {"op": "lift", "from": "include/cccl", "to": "include"},
    {"op": "rename", "from": "nvvm/lib64", "to": "nvvm/lib"},
    {"op": "drop", "from": "gone"},
    {"op": "symlink", "from": "nvvm/bin/cicc", "to": "bin/cicc"},
]
ORDERED = ["out", "doc", "samples", "python", "bin", "dev", "include", "lib", "static", "stubs"]


def export(run: Run, made_set: MadeSet, gcc: int | None = None) -> None:
    base = Path("source").absolute().as_uri()
    for package in made_set.packages.values():
        archive = package["archive"]
        archive["url"] = f"{base}/{archive['relative_path'].rpartition('/')[2]}"
    made_set.put_archives(Path("source"), is_flat=True)
    document = made_set.document()
    document["platform"]["nix_system"] = "x86_64-linux"
    if gcc is not None:
        ranges = {"min": None, "max": None, "default": gcc, "selected": gcc}
        document["host_compiler"]["gcc"] = {**ranges, "uses_default": True}
    Path("set.json").write_text(json.dumps(document))
    assert run("export", "nix", "set.json", "-o", "cuda").exit_code == 0


def outputs_of(run: Run, made_set: MadeSet, attr: str) -> dict[str, dict[str, str]]:
    """Return a package's output contents after comparing them with `materialize`."""
    export(run, made_set)
    options = ("--archives", "source", "--output", "root", "--layout", "split")
    expect_output(run("materialize", "set.json", *options, "--component", attr), 0)
    built = build_package(Path.cwd(), attr, made_set.packages[attr]["outputs"])
    output_contents = {output: contents(path) for output, path in built.items()}
    assert output_contents == {
        output: materialized(Path("root"), attr, output) for output in output_contents
    }
    return output_contents


def test_archive_files_are_moved_to_their_outputs(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("a", PLACED)
    assert made_set.packages["a"]["outputs"] == ORDERED
    output_contents = outputs_of(run, made_set, "a")
    assert output_contents["lib"] == {
        "lib/extra/a.cmake": "file",
        "lib/liba.so": "-> lib/liba.so.13",
        "lib/liba.so.13": "file",
    }
    assert output_contents["stubs"] == {"lib/stubs/libcuda.so": "file"}
    assert "odd name's $file" in output_contents["out"]


def test_cmake_files_in_lib_are_moved_to_dev(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("a", {"lib/extra/a.cmake": TEXT, "lib/data": TEXT, "bin/data": TEXT})
    output_contents = outputs_of(run, made_set, "a")
    assert output_contents["dev"] == {"lib/extra/a.cmake": "file"}
    assert "lib/data" in output_contents["out"]


@pytest.mark.parametrize("outputs", [["out"], ["out", "lib"], ["out", "dev", "lib", "static"]])
def test_files_of_undeclared_outputs_stay_in_out_output(run: Run, outputs: list[str]) -> None:
    made_set = MadeSet()
    made_set.add("a", PLACED, outputs=outputs)
    output_contents = outputs_of(run, made_set, "a")
    assert "include/a.h" in output_contents["out"]
    assert sorted(output_contents) == sorted(outputs)


def test_tree_changes_are_applied_before_split(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("a", NESTED, normalise=CHANGES, outputs=["out", "include", "lib"])
    output_contents = outputs_of(run, made_set, "a")
    assert output_contents["lib"].keys() == {"lib/liba.so", "lib/liba.so.13"}
    assert output_contents["include"].keys() == {"include/cub.h"}
    assert output_contents["out"].keys() == {
        "LICENSE",
        "nvvm/lib/libb.so",
        "nvvm/bin/cicc",
        "bin/cicc",
    }


def test_drop_pattern_removes_files_in_every_folder(run: Run) -> None:
    made_set = MadeSet()
    changes: list[dict[str, str | None]] = [{"op": "drop", "from": "lib/*_win*"}]
    made_set.add("a", NESTED, normalise=changes, outputs=["out", "lib"])
    assert "lib/x_win32.so" not in outputs_of(run, made_set, "a")["lib"]


def test_wheel_is_unpacked_like_an_archive(run: Run) -> None:
    made_set = MadeSet(channel="wheels")
    made_set.add(
        "a",
        data=wheel(
            "nvidia-a",
            "1.2.3",
            {
                "nvidia/__init__.py": b"",
                "nvidia/a/__init__.py": b"",
                "nvidia/a/bin/tool": TEXT,
                "nvidia/a/include/a.h": TEXT,
                "nvidia/a/lib/liba.so.13": TEXT,
                "nvidia/a/python/b/__init__.py": b"",
                "nvidia/a/python/b/c.py": b"",
                "nvidia/a/space d/file": TEXT,
            },
        ),
    )
    output_contents = outputs_of(run, made_set, "a")
    assert output_contents["out"].keys() >= {"LICENSE", "python/b/__init__.py", "space d/file"}
    assert not any("dist-info" in path for output in output_contents.values() for path in output)


def test_dependent_package_finds_headers_and_pkg_config(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("base", {"include/base.h": TEXT})
    made_set.add("a", PLACED)
    made_set.packages["a"] |= {
        "propagates": {"dev": ["include", "lib", "static"], "out": ["include", "lib"]},
        "depends": [{"attr": "base", "output": "include", "kind": "header"}],
    }
    export(run, made_set)
    outputs = build_package(Path.cwd(), "a", ["out", "dev", "include", "lib", "static"])
    base = build_package(Path.cwd(), "base", ["include"])["include"]
    record = "nix-support/propagated-build-inputs"
    dev, out = (outputs[name].joinpath(record).read_text().split() for name in ("dev", "out"))
    assert dev == [str(base), *(str(outputs[name]) for name in ("include", "lib", "static"))]
    assert out == [str(outputs[name]) for name in ("include", "lib")]
    text = (outputs["dev"] / "share/pkgconfig/a.pc").read_text()
    assert text.splitlines()[:3] == [
        f"cudaroot={outputs['dev']}",
        f"libdir={outputs['lib']}/lib",
        f"includedir={outputs['include']}/include",
    ]


def test_declared_output_without_files_fails_build(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("a", {"include/a.h": TEXT}, outputs=["out", "include", "static"])
    export(run, made_set)
    process = nix_build(Path.cwd(), f"(import ./cuda {{ pkgs = {stand_in()}; }}).a")
    assert process.returncode != 0
    assert "output static is empty" in process.stderr


# -- nvcc

PROFILE = b'TOP = $(_HERE_)/..\nINCLUDES += "-I$(TOP)/include"\nLIBRARIES =+ "-L$(TOP)/lib64"\n'
NVCC = b'#!/bin/sh\necho "$0" "$@"\n'


@pytest.mark.parametrize("optimizer", ["cuda_nvcc", "libnvvm"])
def test_nvcc_uses_headers_libraries_and_compiler_of_set(run: Run, optimizer: str) -> None:
    made_set = MadeSet()
    cicc = {"bin/cicc": TEXT} if optimizer == "libnvvm" else {"nvvm/bin/cicc": TEXT}
    tools = {"bin/nvcc": NVCC, "bin/nvcc.profile": PROFILE, "include/crt/host_config.h": TEXT}
    libraries = {"include/cuda.h": TEXT, "lib/libcudart.so": TEXT, "lib/stubs/libcuda.so": TEXT}
    made_set.add("cuda_nvcc", tools if optimizer == "libnvvm" else {**tools, **cicc})
    made_set.add("cuda_cudart", libraries)
    if optimizer == "libnvvm":
        made_set.add("libnvvm", cicc, outputs=["out"])
    # The packages include each other's headers.
    for name, other in (("cuda_nvcc", "cuda_cudart"), ("cuda_cudart", "cuda_nvcc")):
        made_set.packages[name] |= {
            "outputs": ["out"],
            "depends": [{"attr": other, "output": "out", "kind": "header"}],
        }
    export(run, made_set, host_gcc())
    out, cudart = (
        build_package(Path.cwd(), name, ["out"])["out"] for name in ("cuda_nvcc", "cuda_cudart")
    )
    profile = (out / "bin/nvcc.profile").read_text()
    (includes,) = re.findall("^INCLUDES .*", profile, re.MULTILINE)
    (paths,) = re.findall("^LIBRARIES .*", profile, re.MULTILINE)
    assert f'"-I{out}/include"' in includes
    assert {"cuda.h", "crt"} <= {path.name for path in (out / "include").iterdir()}
    assert f'"-L{cudart}/lib/stubs" "-L{cudart}/lib"' in paths
    (compiler,) = re.findall("^compiler-bindir = (.*)", profile, re.MULTILINE)
    assert Path(compiler, "g++").exists()
    assert (out / "nvvm/bin/cicc").read_bytes() == TEXT
    Path("link").symlink_to(out / "bin/nvcc")
    output = subprocess.run(["./link", "a b"], capture_output=True, text=True, check=True).stdout
    assert output.split()[1:] == ["a", "b"]
    (record,) = (cudart / "nix-support/propagated-build-inputs").read_text().split()
    assert (Path(record) / "include/crt/host_config.h").exists()


def test_missing_host_compiler_is_named(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("cuda_nvcc", {"bin/nvcc": NVCC, "bin/nvcc.profile": PROFILE}, outputs=["out"])
    export(run, made_set, 3)
    process = nix_build(Path.cwd(), f"(import ./cuda {{ pkgs = {stand_in()}; }}).cuda_nvcc")
    assert "nixpkgs has no gcc3" in process.stderr


# -- run paths


def compiled(soname: str, *needed: Path) -> bytes:
    """Return a shared library that needs other libraries.

    The needed libraries may be missing at load time."""
    Path("x.c").write_text("int f(void) { return 1; }\n")
    options = ("-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{soname}", "-Wl,--no-as-needed")
    subprocess.run(["gcc", *options, "-o", soname, "x.c", *needed], check=True)
    return Path(soname).read_bytes()


def need(soname: str, satisfied_by: dict[str, str], kind: str = "needed") -> dict[str, Any]:
    names = {"soname": soname, "by_path": "lib/libtop.so.1", "output": "lib"}
    return {**names, "satisfied_by": satisfied_by, "kind": kind}


@pytest.fixture
def linked(run: Run) -> MadeSet:
    """Return a set with a library that needs two others and the driver.

    The library also loads a third library."""
    made_set = MadeSet()
    for name in ("near", "far", "loaded", "optional"):
        made_set.add(
            name, {f"lib/lib{name}.so.1": compiled(f"lib{name}.so.1"), "include/x.h": TEXT}
        )
    compiled("libcuda.so.1")
    libraries = [Path(f"lib{name}.so.1") for name in ("near", "far", "cuda")]
    made_set.add("top", {"lib/libtop.so.1": compiled("libtop.so.1", *libraries), "LICENSE": TEXT})
    made_set.packages["top"] |= {
        "driver_runpath": True,
        "needs": [
            *(need(f"lib{n}.so.1", {"attr": n, "output": "lib"}) for n in ("near", "far")),
            need("libcuda.so.1", {"external": "driver"}),
            need("libloaded.so.1", {"attr": "loaded", "output": "lib"}, "dlopen"),
        ],
        "depends": [
            *({"attr": n, "output": "lib", "kind": "runtime"} for n in ("near", "far")),
            {"attr": "loaded", "output": "lib", "kind": "dlopen"},
            {"attr": "optional", "output": "lib", "kind": "dlopen", "is_optional": True},
        ],
    }
    return made_set


@pytest.mark.parametrize("compat", [None, "cuda_compat", "cuda_compat_orin"])
def test_run_paths_contain_driver_and_needed_libraries(
    run: Run, linked: MadeSet, compat: str | None
) -> None:
    if compat is not None:
        linked.add(compat, {"compat/libcuda.so.1": compiled("libcuda.so.1")})
        linked.packages["top"]["compat_runpath"] = True
    export(run, linked)
    library = build_package(Path.cwd(), "top", ["lib"])["lib"] / "lib/libtop.so.1"
    folders = [
        str(build_package(Path.cwd(), name, ["lib"])["lib"] / "lib")
        for name in ("near", "far", "loaded", "optional")
    ]
    expected = ["/run/opengl-driver/lib", *folders[:2], str(library.parent), *folders[2:]]
    if compat is not None:
        expected.insert(0, str(build_package(Path.cwd(), compat, ["out"])["out"] / "compat"))
    assert run_path_of(library) == expected


def test_missing_library_fails_build(run: Run, linked: MadeSet) -> None:
    linked.packages["top"]["depends"].pop(1)
    export(run, linked)
    process = nix_build(Path.cwd(), f"(import ./cuda {{ pkgs = {stand_in()}; }}).top")
    assert process.returncode != 0
    assert "could not satisfy dependency libfar.so.1" in process.stderr


# -- tests of built packages


def build_tests(attr: str, test: str) -> "subprocess.CompletedProcess[str]":
    return nix_build(Path.cwd(), f"(import ./cuda {{ pkgs = {stand_in()}; }}).tests.{attr}.{test}")


def test_built_libraries_are_tested(run: Run, linked: MadeSet) -> None:
    library = {"output": "lib", "stub": False}
    for name in ("top", "near"):
        path = f"lib/lib{name}.so.1"
        linked.packages[name]["provides"] = [{**library, "path": path, "soname": path[4:]}]
    export(run, linked)
    process = build_tests("top", "libraries")
    assert process.returncode == 0, process.stderr
    assert "skipped" in process.stderr
    assert "libcuda.so.1: cannot open shared object file" in process.stderr
    # A library that cannot be loaded for another reason fails the test.
    linked.packages["near"]["provides"][0]["path"] = "lib/libgone.so.1"
    export(run, linked)
    process = build_tests("near", "libraries")
    assert process.returncode != 0
    assert "libgone.so.1: missing: cannot open shared object file" in process.stderr


@pytest.mark.parametrize(
    ("output", "exit_code"), [("tool 13.0", 0), ("no version", 100), ("13.0; exit 3", 100)]
)
def test_built_programs_print_their_versions(run: Run, output: str, exit_code: int) -> None:
    made_set = MadeSet()
    made_set.add("a", {"bin/tool": f"#!/bin/bash\necho {output}\n".encode()}, outputs=["out"])
    made_set.packages["a"]["meta"] |= {"main_program": "tool"}
    export(run, made_set)
    assert build_tests("a", "programs").returncode == exit_code
