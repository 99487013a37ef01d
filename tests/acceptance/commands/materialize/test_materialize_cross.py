"""Tests of cross toolkits: compilers of one platform, libraries of another."""

import json
from pathlib import Path

import pytest
from conftest import Run
from support.running import expect_error, expect_output, succeed
from support.toolkits import PROGRAM, STATIC, MadeSet, Materialize, listing, put_packages, record

SBSA, JETSON = "linux-sbsa", "linux-aarch64"
FOLDERS = {SBSA: "targets/sbsa-linux", JETSON: "targets/aarch64-linux"}
FILES = {
    *("bin/crt/link.stub", "bin/fatbinary", "bin/nvcc", "bin/ptxas", "nvvm/bin/cicc"),
    *("nvvm/lib64/libnvvm.so.4", "version.json", ".cudaredist.json"),
    *(f"share/licenses/{name}/LICENSE" for name in ("cuda_crt", "cuda_nvcc")),
}
TARGET_FILES = {
    *("include/crt/host.h", "include/cublas.h", "include/cuda.h", "lib/libcublas.so.13"),
    *("lib/libcublas_static.a", "lib/libcudart.so.13.0.96", "lib/libcudart_static.a"),
    *("lib/stubs/libcuda.so", "share/pkgconfig/cublas-13.0.pc"),
    *(f"share/licenses/{name}/LICENSE" for name in ("cuda_crt", "cuda_nvcc")),
    *(f"share/licenses/{name}/LICENSE" for name in ("cuda_cudart", "libcublas")),
}
TARGET_LINKS = {
    "lib64": "lib",
    "lib/libcublas.so": "libcublas.so.13",
    "lib/libcudart.so": "libcudart.so.13.0.96",
    "lib/libcudart.so.13": "libcudart.so.13.0.96",
    "share/pkgconfig/cublas.pc": "cublas-13.0.pc",
}


def put_target(platform: str = SBSA) -> Path:
    """Write a set for a target, and its archives."""
    made_set = put_packages(MadeSet(platform=platform))
    made_set.put_archives(Path("source"))
    return made_set.write(Path("target.json"))


@pytest.mark.parametrize("platform", FOLDERS)
@pytest.mark.usefixtures("made_set")
def test_cross_root_has_compilers_of_host_and_libraries_of_target(
    materialize: Materialize, run: Run, platform: str
) -> None:
    target, folder = put_target(platform), FOLDERS[platform]
    expect_output(materialize("--target-set", target), 0, f"linux-x86_64 with target {platform}")
    contents = listing(Path("root"))
    files = {path for path, content in contents.items() if isinstance(content, bytes)}
    assert files == FILES | {f"{folder}/{path}" for path in TARGET_FILES}
    links = {f"{folder}/{path}": end for path, end in TARGET_LINKS.items()}
    links |= {"include": f"{folder}/include", "lib": f"{folder}/lib", "lib64": f"{folder}/lib"}
    assert {path: contents[path] for path in contents.keys() - files} == links
    pkg_config = contents[f"{folder}/share/pkgconfig/cublas-13.0.pc"]
    assert isinstance(pkg_config, bytes)
    assert b"\nlibdir=${pcfiledir}/../../lib\n" in pkg_config
    packages = record()["packages"]
    assert {"cuda_nvcc", f"libcublas:{platform}"} <= packages.keys()
    assert "libcublas" not in packages
    assert "libcublas" in json.loads((Path("root") / "version.json").read_bytes())
    assert run("validate", "root/.cudaredist.json").exit_code == 0
    expect_output(run("materialize", "--output", "root", "--verify"), 0, f"with target {platform}")
    expect_output(materialize("--target-set", target), 0, "unchanged")
    (Path("root") / folder / "include" / "cuda.h").unlink()
    expect_output(materialize("--target-set", target), 0, "written")
    assert listing(Path("root")) == contents


@pytest.mark.usefixtures("made_set")
def test_cross_root_selects_packages_of_target(materialize: Materialize) -> None:
    options = ("--target-set", put_target(JETSON), "-o", "jetson", "--component", "cuda_cudart")
    expect_output(materialize(*options), 0)
    files = listing(Path("jetson"))
    assert {f"{FOLDERS[JETSON]}/include/cuda.h", "bin/nvcc"} <= files.keys()
    # nvcc requires its headers for the target.
    assert f"{FOLDERS[JETSON]}/include/crt/host.h" in files
    assert not any("cublas" in path for path in files)


@pytest.mark.usefixtures("made_set")
def test_cross_root_of_another_target_replaces_packages(materialize: Materialize) -> None:
    expect_output(materialize("--target-set", put_target()), 0)
    target = put_target(JETSON)
    expect_error(materialize("--target-set", target), 2, "libcublas:linux-sbsa", "--replace")
    expect_output(materialize("--target-set", target, "--replace"), 0, f"with target {JETSON}")
    assert not (Path("root") / FOLDERS[SBSA]).exists()


@pytest.mark.real
def test_real_pair_for_jetsons_is_exported_and_needs_archives_of_both(
    run: Run, real_manifests: Path
) -> None:
    data = ("--data-dir", "data", "--quiet")
    succeed("download-manifests", "--base-url", real_manifests, "--version", "12.6.3", *data)
    platforms = ("--platform", "linux-x86_64", "--target", JETSON)
    succeed("build", "--cuda", "12.6.3", *platforms, "--allow-missing-features", *data)
    host = Path(f"build/linux-x86_64/cuda-12.6.3-to-{JETSON}.json")
    target = Path(f"build/{JETSON}/cuda-12.6.3-from-linux-x86_64.json")
    assert json.loads(target.read_bytes())["capabilities"]["effective"] == ["8.7"]
    for form, words in (
        ("cmake", ("aarch64-linux-gnu-g++", '_ARCHITECTURES "87"')),
        ("env", ("CUDAARCHS=87", "aarch64-linux-gnu-g++")),
        ("bazel", (f'"{JETSON}"', '"linux-x86_64"')),
    ):
        expect_output(run("export", form, host, "--target-set", target), 0, *words)
    Path("archives").mkdir()
    options = ("-o", "root", "--component", "libcublas", "--archives", "archives", "--offline")
    result = run("materialize", host, "--target-set", target, *options, *data)
    expect_error(result, 3, "linux-x86_64-12.6", "archives: lacks ", "archives: ")
    result = run("materialize", target, "--target-set", host, *options, *data)
    expect_error(result, 2, "exchange SET and --target-set")


@pytest.mark.usefixtures("made_set")
def test_removed_package_of_target_is_named_in_hint(materialize: Materialize) -> None:
    target = put_target()
    assert materialize("--target-set", target).exit_code == 0
    result = materialize("--target-set", target, "--component", "cuda_cudart")
    expect_error(result, 2, "would be removed: libcublas:linux-sbsa", "--component libcublas`")


def test_cross_root_downloads_no_library_of_host(materialize: Materialize) -> None:
    made_set = put_packages(MadeSet())
    made_set.add("cuda_crt", {"bin/crt/link.stub": b"// stub\n"}, depends=["cuda_cudart"])
    made_set.add("libnvptxcompiler", {"lib/libnvptxcompiler_static.a": STATIC})
    libraries = {"cuda_cudart", "libnvptxcompiler"}
    made_set.archives = {
        path: data
        for path, data in made_set.archives.items()
        if path.partition("/")[0] not in libraries
    }
    made_set.put()
    expect_output(materialize("--target-set", put_target()), 0)
    names = record()["packages"].keys()
    assert {"cuda_crt", "cuda_cudart:linux-sbsa"} <= names
    assert not libraries & names


def test_cross_root_downloads_no_program_of_target(materialize: Materialize) -> None:
    files = {"LICENSE": b"EULA\n", "bin/cuobjdump": PROGRAM}
    for platform, path in (("linux-x86_64", "set.json"), ("linux-sbsa", "target.json")):
        made_set = put_packages(MadeSet(platform=platform))
        tool = made_set.add("cuda_cuobjdump", files)
        if path == "target.json":
            del made_set.archives[tool]
        made_set.write(Path(path))
        made_set.put_archives(Path("source"))
    expect_output(materialize("--target-set", "target.json"), 0)
    assert "cuda_cuobjdump:linux-sbsa" not in record()["packages"]
    assert "bin/cuobjdump" in listing(Path("root"))


def test_cross_root_has_nvvm_of_host_for_link_time_optimization(materialize: Materialize) -> None:
    """A wheel has the library in `lib`."""
    files: dict[str, bytes | str] = {"lib/libnvvm.so.4": b"host", "lib/libnvvm.so": "libnvvm.so.4"}
    for made_set, path in (
        (MadeSet(), "set.json"),
        (MadeSet(platform="linux-sbsa"), "target.json"),
    ):
        put_packages(made_set)
        library = f"lib of {made_set.platform}".encode()
        made_set.add("libnvvm", files | {"lib/libnvvm.so.4": library, "lib64": "lib"})
        made_set.packages["cuda_nvcc"]["depends"] = []
        made_set.write(Path(path))
        made_set.put_archives(Path("source"))
    expect_output(materialize("--target-set", "target.json", "--exclude", "cuda_nvcc"), 0)
    root = listing(Path("root"))
    assert root["nvvm/lib64/libnvvm.so.4"] == b"lib of linux-x86_64"
    assert root["nvvm/lib64/libnvvm.so"] == "libnvvm.so.4"
    assert root[f"{FOLDERS[SBSA]}/lib/libnvvm.so.4"] == b"lib of linux-sbsa"


@pytest.mark.usefixtures("made_set")
def test_cross_root_excludes_package_of_both_sets(materialize: Materialize) -> None:
    expect_output(materialize("--target-set", put_target(), "--exclude", "cuda_crt"), 0)
    assert not {"cuda_crt", "cuda_crt:linux-sbsa"} & record()["packages"].keys()


PAIRS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "swapped": (
        {"platform": "linux-sbsa"},
        {"platform": "linux-x86_64"},
        "exchange SET and --target-set",
    ),
    "same platform": ({}, {"platform": "linux-x86_64"}, "no compilers for linux-x86_64 on"),
    "Windows": ({}, {"platform": "windows-x86_64"}, "no compilers for windows-x86_64 on"),
    "swapped Jetson": ({"platform": JETSON}, {"platform": "linux-x86_64"}, "exchange SET"),
    "target on ARM": ({"platform": SBSA}, {"platform": JETSON}, f"no compilers for {JETSON} on"),
    "release": ({}, {"cuda": "13.0.3"}, "differ: CUDA 13.0.2 and 13.0.3"),
    "channel": ({}, {"channel": "wheels"}, "differ: channel redist and wheels"),
}


@pytest.mark.parametrize("case", PAIRS)
def test_cross_root_of_mixed_sets_is_refused(run: Run, materialize: Materialize, case: str) -> None:
    host, target, words = PAIRS[case]
    MadeSet(**host).write(Path("set.json"))
    MadeSet(**{"platform": "linux-sbsa", **target}).write(Path("target.json"))
    result = materialize("--target-set", "target.json")
    expect_error(result, 2, words)
    assert not Path("root").exists()


@pytest.mark.parametrize(
    ("host", "target", "words"),
    [(SBSA, "linux-x86_64", "exchange"), ("linux-x86_64", JETSON, "one pair")],
)
@pytest.mark.parametrize("command", ["materialize", "export"])
def test_set_of_another_pair_is_refused(
    run: Run, materialize: Materialize, command: str, host: str, target: str, words: str
) -> None:
    pair = {"host": "linux-x86_64", "target": "linux-sbsa"}
    for path, platform in (("set.json", host), ("target.json", target)):
        document = MadeSet(platform=platform).document() | {"cross": pair}
        Path(path).write_text(json.dumps(document))
    result = (
        materialize("--target-set", "target.json")
        if command == "materialize"
        else run("export", "env", "set.json", "--target-set", "target.json")
    )
    expect_error(result, 2, "host linux-x86_64 and the target linux-sbsa, but SET is for", words)


@pytest.mark.parametrize("attr", ["cuda_nvcc", "libnvvm", "cccl"])
def test_cross_root_with_different_compiler_is_refused(
    run: Run, materialize: Materialize, attr: str
) -> None:
    for name, platform, version in (
        ("set.json", "linux-x86_64", "1.2.3"),
        ("target.json", "linux-sbsa", "1.2.4"),
    ):
        made_set = MadeSet(platform=platform)
        made_set.add(attr, {"include/a.h": b"//\n"}, version=version)
        made_set.write(Path(name))
    result = materialize("--target-set", "target.json")
    expect_error(result, 2, f"differ: {attr} 1.2.3 and 1.2.4", "--platform linux-sbsa")
