"""Tests of runtime roots: only the libraries that a program needs, also as an OCI image."""

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import binaries
from support.optional_programs import needs
from support.running import expect_error, expect_output
from support.toolkits import STATIC, MadeSet, Materialize, listing, record, shared

LIBRARIES = {
    "cuda_cudart": ["libcudart.so.13"],
    "libcublas": ["libcublas.so.13", "libcublasLt.so.13", "libnvblas.so.13"],
    "cuda_nvrtc": ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"],
    "libcufft": ["libcufft.so.12"],
}
OWNERS = {soname: attr for attr, sonames in LIBRARIES.items() for soname in sonames}
LOADS = {
    "libcublas.so.13": {"needs": ["libcublasLt.so.13", "libc.so.6"]},
    "libcublasLt.so.13": {"opens": ["libnvrtc.so.13"], "optional": ["libcufft.so.12"]},
    # The data names the library without its version.
    "libnvrtc.so.13": {"dlopen": ["libnvrtc-builtins.so"]},
}


def load(path: str, soname: str, kind: str) -> dict[str, Any]:
    owner = next((attr for name, attr in OWNERS.items() if name.startswith(soname)), None)
    by = {"attr": owner, "output": "out"} if owner else {"external": "glibc"}
    load = {"soname": soname, "by_path": path, "satisfied_by": by}
    if kind in {"opens", "optional"}:
        return load | {"is_optional": kind == "optional"}
    return load | {"kind": kind, "output": "out"}


@pytest.fixture
def runtime_set(run: object) -> None:
    """Write a set whose libraries need and open each other."""
    made_set = MadeSet()
    for attr, sonames in LIBRARIES.items():
        files: dict[str, bytes | str] = {
            "LICENSE": b"EULA\n",
            "lib/libx_static.a": STATIC,
            "include/x.h": b"",
        }
        paths = {soname: f"lib/{soname}.96" for soname in sonames}
        for soname, path in paths.items():
            files |= {path: shared(soname), f"lib/{soname}": f"{soname}.96"}
            files[f"lib/{soname.partition('.so')[0]}.so"] = soname
        made_set.add(
            attr,
            files,
            provides=[
                {"soname": soname, "path": path, "output": "out", "stub": False}
                for soname, path in paths.items()
            ],
            needs=[
                load(paths[soname], name, kind)
                for soname in sonames
                for key, kind in (("needs", "needed"), ("dlopen", "dlopen"))
                for name in LOADS.get(soname, {}).get(key, ())
            ],
            opens=[
                load(paths[soname], name, kind)
                for soname in sonames
                for kind in ("opens", "optional")
                for name in LOADS.get(soname, {}).get(kind, ())
            ],
            is_collapsed=True,
        )
    # Not needed, so it is not downloaded.
    made_set.archives = {p: d for p, d in made_set.archives.items() if "cufft" not in p}
    made_set.put()


def program(*needed: str, machine: str = "x86_64") -> Sequence[object]:
    """Write a program, and return the options that select its libraries."""
    data = binaries.elf(kind="program", needed=(*needed, "libc.so.6"), machine=machine)
    Path("program").write_bytes(data)
    return "--component", "runtime", "--for", "program"


def files_of(*sonames: str) -> set[str]:
    return {f"lib/{name}{end}" for name in sonames for end in ("", ".96")} | {
        "version.json",
        ".cudaredist.json",
    }


CUBLAS = ("libcublas.so.13", "libcublasLt.so.13", "libnvrtc.so.13")


@pytest.mark.usefixtures("runtime_set")
def test_runtime_root_has_needed_and_opened_libraries_only(materialize: Materialize) -> None:
    options = program("libcublas.so.13", "libcuda.so.1")
    result = expect_output(materialize(*options, "--json"), 0)
    report = json.loads(result.stdout)
    names = files_of(*CUBLAS, "libnvrtc-builtins.so.13.0") | {"lib/libnvrtc-builtins.so"}
    assert listing(Path("root")).keys() == names
    assert report["optional_libraries"] == ["libcufft.so.12"]
    assert report["libraries"] == [
        *("libcublas.so.13", "libcublasLt.so.13", "libnvrtc-builtins.so"),
        *("libnvrtc-builtins.so.13.0", "libnvrtc.so.13"),
    ]
    assert report["size"] < report["full_size"] + 2000
    assert record()["packages"].keys() == {"libcublas", "cuda_nvrtc"}
    expect_output(materialize(*options), 0, "unchanged")
    (Path("root") / "lib" / "libnvrtc.so.13.96").unlink()
    expect_output(materialize(*options), 0, "written")
    assert (Path("root") / "lib" / "libnvrtc.so.13.96").is_file()


@pytest.mark.usefixtures("runtime_set")
def test_check_of_runtime_root_lists_libraries(materialize: Materialize) -> None:
    options = program("libcublas.so.13", "libcuda.so.1")
    result = expect_output(materialize(*options, "--check"), 1, "at most", "libraries: libcublas.")
    assert "libcudart" not in result.stdout
    expect_output(materialize(*options), 0)
    expect_output(materialize(*options, "--check"), 0, "unchanged")


@pytest.mark.usefixtures("runtime_set")
def test_runtime_root_of_two_programs_has_libraries_of_both(materialize: Materialize) -> None:
    Path("other").write_bytes(binaries.elf(kind="program", needed=("libcudart.so.13",)))
    expect_output(materialize(*program("libnvblas.so.13"), "--for", "other"), 0)
    assert listing(Path("root")).keys() == files_of("libnvblas.so.13", "libcudart.so.13")


@pytest.mark.usefixtures("runtime_set")
def test_runtime_root_for_another_program_requires_replace(materialize: Materialize) -> None:
    expect_output(materialize(*program("libcublas.so.13", "libnvblas.so.13")), 0)
    options = program("libcublas.so.13")
    expect_error(materialize(*options), 2, "has other files of these packages", "--replace")
    assert Path("root/lib/libnvblas.so.13").exists()
    expect_output(materialize(*options, "--replace"), 0, "written")
    assert not Path("root/lib/libnvblas.so.13").exists()


@pytest.mark.usefixtures("runtime_set")
def test_runtime_root_of_set_with_missing_provider_is_refused(materialize: Materialize) -> None:
    document = json.loads(Path("set.json").read_bytes())
    del document["packages"]["cuda_nvrtc"]
    Path("set.json").write_text(json.dumps(document))
    result = materialize(*program("libcublas.so.13"))
    expect_error(result, 5, "cuda_nvrtc, which provides libnvrtc.so.13, is not available")


def test_runtime_root_of_set_for_windows_is_refused(materialize: Materialize) -> None:
    MadeSet(platform="windows-x86_64").put()
    expect_error(materialize(*program("libcublas.so.13")), 2, "requires a package set for Linux")


@pytest.mark.usefixtures("runtime_set")
def test_runtime_root_of_damaged_program_is_refused(materialize: Materialize) -> None:
    options = program()
    Path("program").write_bytes(b"no program")
    expect_error(materialize(*options), 5, "not a program, library or archive")


@pytest.mark.parametrize(
    ("needed", "machine", "words"),
    [
        ("libcublas.so.12", "x86_64", "provides libcublas.so.12 for program"),
        ("libother.so.1", "x86_64", "provides libother.so.1 for program"),
        ("libcublas.so.13", "aarch64", "the programs are for linux-sbsa"),
    ],
)
@pytest.mark.usefixtures("runtime_set")
def test_runtime_root_without_provider_is_refused(
    materialize: Materialize, needed: str, machine: str, words: str
) -> None:
    expect_error(materialize(*program(needed, machine=machine)), 5, words)
    assert not Path("root").exists()


@pytest.mark.usefixtures("runtime_set")
def test_program_with_static_runtime_needs_no_runtime_root(materialize: Materialize) -> None:
    """nvcc links the CUDA runtime statically by default."""
    options = program()
    words = "the programs need no shared library of the set for linux-x86_64"
    assert "-cudart shared" not in expect_error(materialize(*options), 2, words).stderr
    sections = {".nv_fatbin": binaries.fatbin(), ".rodata": b"libcuda.so.1\0"}
    data = binaries.elf(kind="program", needed=("libc.so.6",), sections=sections)
    Path("program").write_bytes(data)
    assert "-cudart shared" in expect_error(materialize(*options), 2, words).stderr
    assert not Path("root").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--layout", "oci"), "--layout oci requires --for"),
        (("--for", "program"), "--for requires --component runtime"),
        (
            ("--for", "program", "--component", "runtime", "--layout", "split"),
            "--for cannot be combined with --target-set or --layout split",
        ),
        (
            ("--for", "program", "--component", "runtime", "--exclude", "libcublas"),
            "--for cannot be combined with --exclude",
        ),
        (("--for", "missing", "--component", "runtime"), "no such file or folder"),
    ],
)
@pytest.mark.usefixtures("runtime_set")
def test_runtime_root_with_other_options_is_refused(
    materialize: Materialize, options: Sequence[str], words: str
) -> None:
    program("libcublas.so.13")
    expect_error(materialize(*options), 2, words)


def blob(root: Path, descriptor: dict[str, Any]) -> bytes:
    """Return a blob that has the descriptor's digest and size."""
    method, _, digest = descriptor["digest"].partition(":")
    data = Path(root, "blobs", str(method), str(digest)).read_bytes()
    assert (hashlib.sha256(data).hexdigest(), len(data)) == (digest, descriptor["size"])
    return data


@pytest.mark.usefixtures("runtime_set")
def test_oci_image_is_complete_and_equal_in_two_runs(materialize: Materialize) -> None:
    options = (*program("libcublas.so.13"), "--layout", "oci")
    expect_output(materialize(*options, root="one"), 0, "layer sha256:")
    expect_output(materialize(*options, root="two"), 0)
    one = Path("one")
    assert listing(one) == listing(Path("two"))
    assert json.loads((one / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    (described,) = json.loads((one / "index.json").read_bytes())["manifests"]
    manifest = json.loads(blob(one, described))
    (layer,) = manifest["layers"]
    config = json.loads(blob(one, manifest["config"]))
    blob(one, layer)
    assert config["rootfs"] == {"type": "layers", "diff_ids": [layer["digest"]]}
    assert (config["architecture"], config["os"]) == ("amd64", "linux")
    assert "LD_LIBRARY_PATH=/usr/local/cuda/lib" in config["config"]["Env"]
    libraries = "libcublas.so.13 libcublasLt.so.13 libnvrtc-builtins.so libnvrtc-builtins.so.13.0"
    assert config["config"]["Labels"]["org.cudaredist.libraries"] == f"{libraries} libnvrtc.so.13"
    digests = {each["digest"][7:] for each in (described, layer, manifest["config"])}
    assert {path.name for path in (one / "blobs" / "sha256").iterdir()} == digests
    with tarfile.open(one / "blobs" / "sha256" / layer["digest"][7:]) as tar:
        members = tar.getmembers()
    assert {(each.mtime, each.uid, each.gid, each.uname) for each in members} == {(0, 0, 0, "")}
    names = [each.name for each in members]
    assert names == sorted(names)
    assert "usr/local/cuda/lib/libcublas.so.13" in names
    assert not any("cudaredist" in name or name.endswith(".json") for name in names)


@pytest.mark.usefixtures("runtime_set")
def test_oci_image_is_created_once(materialize: Materialize) -> None:
    options = (*program("libcublas.so.13"), "--layout", "oci")
    first = json.loads(materialize(*options, "--json").stdout)
    before = listing(Path("root"))
    # A run that was killed at its end is completed by the next one in the same way.
    second = json.loads(materialize(*options, "--json").stdout)
    assert (first["status"], second["status"]) == ("written", "unchanged")
    assert second["image"] == first["image"]
    assert listing(Path("root")) == before
    layer = Path("root/blobs/sha256", first["image"]["layer"].removeprefix("sha256:"))
    for damage in (layer.unlink, Path("root/index.json").unlink, lambda: layer.write_bytes(b"x")):
        damage()
        assert "creating it again" in expect_output(materialize(*options), 0).stderr
        assert listing(Path("root")) == before


@pytest.mark.usefixtures("runtime_set")
def test_oci_image_replaces_another_one_only_if_told(materialize: Materialize) -> None:
    options = (*program("libcublas.so.13"), "--layout", "oci")
    expect_output(materialize(*options), 0)
    before = listing(Path("root"))
    other = (*program("libcudart.so.13"), "--layout", "oci")
    expect_error(materialize(*other), 2, "root has another image", "--replace")
    assert listing(Path("root")) == before
    expect_output(materialize(*other, "--replace"), 0)
    assert listing(Path("root")) != before
    Path("other").mkdir()
    Path("other/file").touch()
    expect_error(materialize(*other, root="other"), 2, "is not an image of cudaredist")


@pytest.mark.usefixtures("runtime_set")
def test_image_does_not_replace_a_root(materialize: Materialize) -> None:
    expect_output(materialize(*program("libcublas.so.13")), 0)
    before = set(Path("root").rglob("*"))
    for more in ((), ("--replace",)):
        result = materialize(*program("libcublas.so.13"), "--layout", "oci", *more)
        expect_error(result, 2, "root is a toolkit root, and cannot become an image")
    assert set(Path("root").rglob("*")) == before


@needs("skopeo", "umoci")
@pytest.mark.usefixtures("runtime_set")
def test_oci_image_is_loaded_by_skopeo_and_umoci(materialize: Materialize) -> None:
    expect_output(materialize(*program("libcublas.so.13"), "--layout", "oci"), 0)
    subprocess.run(["skopeo", "copy", "-q", "oci:root:13.0.2", "oci:copy:x"], check=True)
    unpack = ["umoci", "unpack", "--rootless", "--image", "copy:x", "bundle"]
    subprocess.run(unpack, check=True, capture_output=True)
    library = Path("bundle/rootfs/usr/local/cuda/lib/libcublas.so.13")
    assert library.read_bytes() == shared("libcublas.so.13")
