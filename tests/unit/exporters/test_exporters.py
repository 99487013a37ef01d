"""Tests of every export format with golden files and real consumers."""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import REPOSITORY
from packageurl import PackageURL
from support.consumers import read_cyclonedx, read_spdx
from support.golden import Golden
from support.optional_programs import needs
from support.package_sets import (
    HOSTILE,
    NVIDIA,
    archive,
    document,
    example_set,
    hostile_set,
    package,
    packages,
    wheel_set,
)

from cudaredist import __version__
from cudaredist.errors import InvalidFileError, UnknownNameError, UsageError
from cudaredist.exporters import EXPORTERS, find_exporter
from cudaredist.exporters.export_format import ExportedSet, Files, with_addresses
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.registry import read_own_file
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = "/opt/cuda"
BASE = "https://wheels.example/simple"

OTHERS = {"pylock", "requirements", "rules-ml-toolchain"}
"""Formats of wheels or manifests, with their own tests."""
FORMATS = {name: one for name, one in EXPORTERS.items() if name not in OTHERS}
each_format = pytest.mark.parametrize("name", FORMATS)


def exported(name: str, package_set: PackageSet | None = None, root: str | None = None) -> Files:
    return find_exporter(name).files(ExportedSet(package_set or example_set(), root))


def exported_from_file(name: str, entries: dict[str, Any]) -> Files:
    """Export packages of a file, whose paths are checked when it is read, or else at export."""
    data = json.dumps(document(packages=entries)).encode()
    return exported(name, read_own_file(data, PackageSet))


def text_of(name: str, package_set: PackageSet | None = None, root: str | None = None) -> str:
    (content,) = exported(name, package_set, root).values()
    return content.decode()


def root_for(name: str) -> str | None:
    return ROOT if EXPORTERS[name].takes_root else None


# -- every format


@each_format
def test_export_matches_golden_file(golden: Golden, name: str) -> None:
    for path, content in exported(name, root=root_for(name)).items():
        assert content.endswith(b"\n")
        golden.check(f"export-{name}.txt", path, content.decode().removesuffix("\n"))


@each_format
def test_registry_describes_format(name: str) -> None:
    exporter = find_exporter(name)
    files = exported(name)
    assert exporter.name == name
    assert re.fullmatch(r"[A-Z].*[^.]\.", exporter.title)
    assert exporter.file is None or list(files) == [exporter.file]
    assert all(not Path(path).is_absolute() and ".." not in path.split("/") for path in files)


@each_format
def test_order_of_packages_does_not_change_export(name: str) -> None:
    backwards = example_set(packages=dict(reversed(packages().items())))
    assert exported(name, backwards) == exported(name)


@pytest.mark.slow
def test_export_is_the_same_in_other_processes() -> None:
    program = (
        "import hashlib\n"
        "from support.package_sets import example_set\n"
        "from cudaredist.exporters import EXPORTERS\n"
        "from cudaredist.exporters.export_format import ExportedSet\n"
        "exported = ExportedSet(example_set())\n"
        f"formats = [one for name, one in EXPORTERS.items() if name not in {OTHERS}]\n"
        "files = [exporter.files(exported) for exporter in formats]\n"
        "print(hashlib.sha256(repr([list(f.items()) for f in files]).encode()).hexdigest())\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "PYTHONPATH": str(REPOSITORY / "tests"),
                "PYTHONHASHSEED": seed,
                "TZ": zone,
                "LC_ALL": locale,
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone, locale in (("1", "UTC", "C"), ("2", "Asia/Tokyo", "C.UTF-8"))
    }
    exported = ExportedSet(example_set())
    files = [list(exporter.files(exported).items()) for exporter in FORMATS.values()]
    assert printed == {hashlib.sha256(repr(files).encode()).hexdigest() + "\n"}


def test_unknown_format_suggests_similar_name() -> None:
    with pytest.raises(UnknownNameError, match="no export format is called 'cyclone'") as raised:
        find_exporter("cyclone")
    assert "cyclonedx" in str(raised.value.hint)


@each_format
def test_hostile_texts_are_exported(name: str) -> None:
    files = exported(name, hostile_set(), root_for(name) and HOSTILE)
    assert files.keys()
    for path, content in files.items():
        if path.endswith(".json"):
            json.loads(content)


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"env", "cmake", "nixpkgs"}))
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"relative_path": "../x.tar.xz"}, "has '..'"),
        ({"relative_path": "a b.tar.xz"}, "the forbidden character ' '"),
        ({"relative_path": "a\nb.tar.xz"}, "a control character"),
        ({"url": "https://a.example/x\ny"}, "a control character"),
        ({"url": "x.tar.xz"}, "is not a URL"),
        ({"url": 'https://a.example/"'}, "is not a URL"),
    ],
)
def test_archives_with_invalid_paths_are_refused(
    name: str, changes: dict[str, str], message: str
) -> None:
    bad = {"bad": package("bad", archive=archive("bad/bad.tar.xz") | changes)}
    with pytest.raises(InvalidFileError, match=r"packages\.bad\.archive") as raised:
        exported_from_file(name, packages() | bad)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("urls", {"archive": None}, "is null, but the package is available"),
        ("redistrib", {"release": None}, "release"),
        *(
            ("redistrib", {"redist": redist}, "is not the name of a redistributable")
            for redist in ("../etc", "/etc", "a b", "")
        ),
    ],
)
def test_available_package_with_invalid_field_is_refused(
    name: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidFileError, match=message):
        exported_from_file(name, {"bad": package("bad", **changes)})


# -- addresses of wheels


@pytest.mark.parametrize("name", ["nix", "urls"])
def test_formats_with_addresses_require_wheel_base(name: str) -> None:
    with pytest.raises(UsageError, match="unknown URLs of 2 archives") as raised:
        exported(name, wheel_set())
    assert "--wheel-base" in str(raised.value.hint)
    assert exported(name, with_addresses(wheel_set(), BASE))


def test_overlay_package_without_address_suggests_fixups() -> None:
    bad = {"bad": package("bad", archive=archive("bad.tar.xz") | {"url": None})}
    with pytest.raises(UsageError, match=r"1 archive: bad$") as raised:
        exported("urls", example_set(packages=bad))
    assert "fixups.json" in str(raised.value.hint)


@pytest.mark.parametrize("name", ["redistrib", "cyclonedx", "spdx", "sha256sums"])
def test_formats_without_addresses_accept_wheels(name: str) -> None:
    assert exported(name, wheel_set())


def test_missing_addresses_are_added() -> None:
    with_base = with_addresses(wheel_set(), f"{BASE}/")
    assert text_of("urls", with_base).splitlines()[0] == (
        f"{BASE}/nvidia-cuda_cudart/nvidia-cuda_cudart-13.3.33-py3-none-manylinux_2_27_x86_64.whl"
    )
    assert with_addresses(with_base, "https://other.example") == with_base


@pytest.mark.parametrize("base", ["", "wheels.example", "https://a b", "https://a\nb"])
def test_invalid_wheel_base_is_refused(base: str) -> None:
    with pytest.raises(UsageError, match="is not a URL"):
        with_addresses(wheel_set(), base)


def test_bazel_refuses_wheels() -> None:
    with pytest.raises(UsageError, match="rules_cuda requires NVIDIA's archives") as error:
        exported("bazel", with_addresses(wheel_set(), BASE))
    assert re.findall("`([^`]+)`", error.value.hint or "") == [
        "cudaredist download-manifests --redist cuda --version 13.3 --channel redist",
        "cudaredist process-manifests --redist cuda --version 13.3 --platform linux-x86_64 "
        "--channel redist",
        "cudaredist build --cuda 13.3 --platform linux-x86_64 --channel redist",
    ]


# -- lists


def test_sha256sum_accepts_export(tmp_path: Path) -> None:
    content = b"an archive"
    path = "a/linux-x86_64/a-archive.tar.xz"
    entries = {
        "a": package("a", archive=archive(path) | {"sha256": hashlib.sha256(content).hexdigest()})
    }
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(content)
    (tmp_path / "sums").write_text(text_of("sha256sums", example_set(packages=entries)))
    command = ["sha256sum", "--check", "--strict", "sums"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert checked.stdout == f"{path}: OK\n"
    (tmp_path / path).write_bytes(b"another")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_shared_archive_is_listed_once() -> None:
    one = archive("a/one-archive.tar.xz")
    twice = example_set(packages={name: package(name, archive=one) for name in "ab"})
    assert len(text_of("urls", twice).splitlines()) == 1
    assert len(text_of("sha256sums", twice).splitlines()) == 1


# -- redistrib


def test_exported_manifests_are_read_without_warnings() -> None:
    files = exported("redistrib")
    assert list(files) == [
        "acme/redistrib_1.2.0.json",
        "cuda/redistrib_13.3.1.json",
        "cudnn/redistrib_9.13.0.json",
        "cudnn/redistrib_9.20.0.json",
    ]
    expected = {package.archive.sha256 for package in ExportedSet(example_set()).packages}
    hashes = set()
    for path, content in files.items():
        label = Version.parse(path.rpartition("_")[2].removesuffix(".json"))
        manifest = read_manifest(content, label=label)
        assert manifest.shape == "flat"
        assert manifest.platforms == {"linux-x86_64"}
        assert not manifest.warnings
        assert manifest.release_product == path.partition("/")[0]
        hashes |= {entry.sha256 for entry in manifest.archives}
    assert hashes == expected


def test_renamed_package_is_exported_under_expected_name() -> None:
    manifest = json.loads(exported("redistrib")["cuda/redistrib_13.3.1.json"])
    assert manifest["cuda_cccl"] == manifest["cccl"]
    before = packages() | {"cuda_cccl": package("cuda_cccl")}
    before["cccl"] = package("cuda_cccl", attr="cccl", alias_of="cuda_cccl")
    files = exported("redistrib", example_set(packages=before))
    manifest = json.loads(files["cuda/redistrib_13.3.1.json"])
    assert "cuda_cccl" in manifest
    assert "cccl" not in manifest


@pytest.mark.parametrize(
    ("address", "path"),
    [
        (f"{NVIDIA}/cuda/redist/cuda_nvcc/LICENSE.txt", "cuda_nvcc/LICENSE.txt"),
        (f"{NVIDIA}/cuda/redist/", None),
        ("https://docs.nvidia.com/cuda/eula", None),
        (None, None),
    ],
)
def test_license_path_leads_to_file_next_to_archives(address: str | None, path: str | None) -> None:
    nvcc = package("cuda_nvcc")
    nvcc["license"]["url"] = address
    files = exported("redistrib", example_set(packages={"cuda_nvcc": nvcc}))
    (manifest,) = map(json.loads, files.values())
    assert manifest["cuda_nvcc"].get("license_path") == path
    (read,) = read_manifest(*files.values()).packages
    assert read.license_path == path


# -- bazel


def calls(source: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a Starlark file, parsed as Python."""
    parsed_calls = []
    for node in ast.parse(source).body:
        call = node.value if isinstance(node, ast.Expr | ast.Assign) else None
        assert isinstance(call, ast.Call)
        keywords = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
        parsed_calls.append((ast.unparse(call.func), keywords))
    return parsed_calls


def test_bazel_export_parses_and_maps_every_component() -> None:
    parsed = calls(text_of("bazel"))
    components = {k["component_name"]: k for name, k in parsed if name == "cuda.component"}
    (toolkit,) = (keywords for name, keywords in parsed if name == "cuda.toolkit")
    assert toolkit["version"] == "13.3"
    assert toolkit["components_mapping"] == {
        name: f"@{keywords['name']}" for name, keywords in components.items()
    }
    assert {"cccl", "cudart", "nvcc", "crt", "nvvm", "cublas"} == set(components)
    cccl = packages()["cccl"]["archive"]
    assert components["cccl"] == {
        "name": "cuda_cccl",
        "component_name": "cccl",
        "sha256": cccl["sha256"],
        "strip_prefix": "cccl-linux-x86_64-13.3.4.3.1-archive",
        "urls": [cccl["url"]],
        "version": "13.3.4.3.1",
    }


def test_bazel_quotes_hostile_texts() -> None:
    keywords = [k for name, k in calls(text_of("bazel", hostile_set())) if name == "cuda.component"]
    assert {k["strip_prefix"] for k in keywords} == {HOSTILE}


@pytest.mark.parametrize(
    ("release", "lost", "named"),
    [("12.6.3", "cuda_nvcc", "cuda_nvcc"), ("13.3.1", "libnvvm", "libnvvm"), ("12.6.3", "", "")],
)
def test_bazel_requires_compiler(release: str, lost: str, named: str) -> None:
    remaining = {
        name: entry for name, entry in packages().items() if name not in {lost, "cuda_crt"}
    }
    cuda = {**document()["cuda"], "release": release}
    package_set = example_set(packages=remaining, cuda=cuda)
    if not lost:
        assert text_of("bazel", package_set)
        return
    with pytest.raises(UsageError, match=named):
        exported("bazel", package_set)


# -- bills of materials


@pytest.fixture(params=[example_set, hostile_set, wheel_set])
def package_set(request: pytest.FixtureRequest) -> PackageSet:
    make: Callable[[], PackageSet] = request.param
    return make()


@pytest.mark.parametrize(
    ("name", "read", "key"),
    [("cyclonedx", read_cyclonedx, "components"), ("spdx", read_spdx, "packages")],
)
def test_bill_has_one_entry_per_available_package(
    package_set: PackageSet, name: str, read: "Callable[[str], Any]", key: str
) -> None:
    assert len(read(text_of(name, package_set))[key]) == len(ExportedSet(package_set).packages)


def test_bills_drop_dependency_on_package_itself() -> None:
    names = ("a", "b")
    depends = [{"attr": name, "output": "out", "kind": "runtime"} for name in names]
    package_set = example_set(packages={"a": package("a", depends=depends), "b": package("b")})
    entries = read_cyclonedx(text_of("cyclonedx", package_set))["dependencies"]
    depends_on = {entry["ref"]: entry["dependsOn"] for entry in entries}
    assert depends_on["package:a"] == ["package:b"]
    relations = read_spdx(text_of("spdx", package_set))["relationships"]
    pairs = [(r["spdxElementId"], r["relatedSpdxElement"]) for r in relations]
    assert pairs[len(names) :] == [("SPDXRef-a", "SPDXRef-b")]


def wheel_of_cublas() -> PackageSet:
    """Return a set of one wheel with a file name of the package index."""
    text = wheel_set().model_dump_json(by_alias=True)
    name = "nvidia_cublas_cu12-13.3.33-py3"
    return PackageSet.model_validate_json(text.replace("nvidia-libcublas-13.3.33-py3", name))


@pytest.mark.parametrize("make", [example_set, wheel_of_cublas])
def test_package_urls_are_canonical(make: "Callable[[], PackageSet]") -> None:
    for component in read_cyclonedx(text_of("cyclonedx", make()))["components"]:
        assert PackageURL.from_string(component["purl"]).to_string() == component["purl"]


def test_package_urls_of_wheels_name_projects() -> None:
    bom = read_cyclonedx(text_of("cyclonedx", wheel_of_cublas()))
    (cublas,) = [one["purl"] for one in bom["components"] if one["name"] == "libcublas"]
    assert cublas.startswith("pkg:pypi/nvidia-cublas-cu12@13.3.33?checksum=sha256:")
    assert cublas in text_of("spdx", wheel_of_cublas())


def test_bills_state_tool_and_version() -> None:
    tool = json.loads(text_of("cyclonedx"))["metadata"]["tools"]["components"][0]
    assert (tool["name"], tool["version"]) == ("cudaredist", __version__)
    creators = json.loads(text_of("spdx"))["creationInfo"]["creators"]
    assert creators == [f"Tool: cudaredist-{__version__}"]


def test_bills_of_different_sets_have_different_identifiers() -> None:
    other = example_set(packages={"a": package("a")})
    for name, key in (("cyclonedx", "serialNumber"), ("spdx", "documentNamespace")):
        assert json.loads(text_of(name))[key] != json.loads(text_of(name, other))[key]


def test_spdx_identifiers_of_similar_names_differ() -> None:
    """An identifier cannot contain every character, so names are encoded."""
    names = ("a-b", "a.b", "a_b", "a.2d.b", "a.2e.b")
    package_set = example_set(packages={name: package(name) for name in names})
    bill = read_spdx(text_of("spdx", package_set))
    assert len({entry["SPDXID"] for entry in bill["packages"]}) == len(names)


# -- shell and CMake


def sourced(text: str, variable: str, folder: Path, **environment: str) -> str:
    (folder / "env.sh").write_text(text)
    program = f'. ./env.sh; . ./env.sh; printf %s "${variable}"'
    return subprocess.run(
        ["sh", "-euc", program],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("root", [ROOT, HOSTILE])
def test_shell_reads_exported_variables(tmp_path: Path, root: str) -> None:
    text = text_of("env", hostile_set(), root)
    assert sourced(text, "CUDA_HOME", tmp_path) == root
    assert sourced(text, "CUDAToolkit_ROOT", tmp_path) == root
    assert sourced(text, "CUDACXX", tmp_path) == f"{root}/bin/nvcc"
    assert sourced(text, "PATH", tmp_path) == f"{root}/bin:/usr/bin:/bin"
    assert sourced(text, "TORCH_CUDA_ARCH_LIST", tmp_path) == HOSTILE
    assert sourced(text, "CUDAHOSTCXX", tmp_path) == "g++-15"
    assert [path.name for path in tmp_path.iterdir()] == ["env.sh"]


def test_export_without_root_names_no_root() -> None:
    assert "CUDA_HOME" not in text_of("env")
    assert "CUDAToolkit_ROOT" not in text_of("cmake")


@pytest.mark.parametrize(
    "gcc",
    [
        None,
        {"min": 6, "max": 15, "default": 14, "selected": 14, "uses_default": True},
        {"min": None, "max": None, "default": None, "selected": None, "uses_default": False},
        {"min": 6, "max": None, "default": None, "selected": 15, "uses_default": False},
    ],
)
def test_default_compiler_is_not_overridden(gcc: dict[str, object] | None) -> None:
    host = {**document()["host_compiler"], "gcc": gcc, "clang": {"min": None, "max": 9}}
    for name in ("env", "cmake"):
        text = text_of(name, example_set(host_compiler=host))
        assert "g++" not in text
        assert "Clang to 9" in text


def test_compiler_is_named_only_with_nvcc() -> None:
    assert "CUDACXX" not in text_of("env", example_set(packages={}), ROOT)
    windows = {**document()["platform"], "redist_system": "windows-x86_64"}
    text = text_of("cmake", example_set(platform=windows), "C:\\cuda")
    assert 'set(CMAKE_CUDA_COMPILER "C:/cuda/bin/nvcc.exe")' in text
    assert "# No host compiler is accepted." in text


MANIFEST: dict[str, Any] = {
    "kind": "manifest",
    "name": "cuda",
    "label": "13.3.1",
    "sha256": "1" * 64,
    "overlay": False,
}


def cross_text(name: str, **fields: object) -> str:
    platform = {**document()["platform"], "redist_system": "linux-sbsa"}
    target = example_set(platform=platform, **fields)
    host = example_set(inputs=[MANIFEST])
    (content,) = find_exporter(name).files(ExportedSet(target, ROOT, host=host)).values()
    return content.decode()


def test_export_for_target_sets_cross_compilers() -> None:
    env, cmake = cross_text("env"), cross_text("cmake")
    assert "linux-sbsa on linux-x86_64" in env.partition("\n")[0]
    assert "export NVCC_CCBIN=aarch64-linux-gnu-g++-15" in env
    for name, value in (
        ("CMAKE_SYSTEM_PROCESSOR", "aarch64"),
        ("CMAKE_CXX_COMPILER", "aarch64-linux-gnu-g++-15"),
        ("CMAKE_CUDA_HOST_COMPILER", "aarch64-linux-gnu-g++-15"),
        ("CMAKE_CUDA_COMPILER", f"{ROOT}/bin/nvcc"),
    ):
        assert f'set({name} "{value}' in cmake


def test_export_for_target_without_accepted_gcc_names_the_plain_cross_compiler() -> None:
    gcc = {"min": 6, "max": 7, "default": 14, "selected": None, "uses_default": False}
    cmake = cross_text("cmake", host_compiler={**document()["host_compiler"], "gcc": gcc})
    assert 'set(CMAKE_C_COMPILER "aarch64-linux-gnu-gcc")' in cmake
    assert 'set(CMAKE_CXX_COMPILER "aarch64-linux-gnu-g++")' in cmake


def test_bazel_export_for_target_has_manifest_with_both_platforms() -> None:
    parsed = dict(calls(cross_text("bazel")))
    assert parsed["cuda.redist_json"] == {
        "name": "cuda_redist",
        "platforms": ["linux-x86_64", "linux-sbsa"],
        "sha256": MANIFEST["sha256"],
        "urls": [f"{NVIDIA}/cuda/redist/redistrib_13.3.1.json"],
        "version": "13.3.1",
    }
    assert parsed["cuda.toolkit"] == {"name": "cuda"}
    assert "cuda.component" not in parsed


@pytest.mark.parametrize("case", ["overlay", "address", "manifest", "compiler"])
def test_bazel_export_for_target_requires_manifest_of_nvidia(case: str) -> None:
    inputs, entries = [MANIFEST | {"overlay": case == "overlay"}], packages()
    if case == "address":
        entries["cuda_nvcc"]["archive"]["url"] = None
    elif case == "compiler":
        del entries["cuda_nvcc"]
    host = example_set(inputs=[] if case == "manifest" else inputs, packages=entries)
    exported_set = ExportedSet(example_set(), host=host)
    with pytest.raises(UsageError, match="requires NVIDIA's manifest"):
        find_exporter("bazel").files(exported_set)


@needs("cmake")
def test_cmake_reads_exported_variables(tmp_path: Path) -> None:
    root = HOSTILE.replace("\\", "/")
    (tmp_path / "t.cmake").write_text(text_of("cmake", hostile_set(), HOSTILE))
    names = ("CUDAToolkit_ROOT", "CMAKE_CUDA_COMPILER", "CMAKE_CUDA_ARCHITECTURES")
    (tmp_path / "print.cmake").write_text(
        "include(t.cmake)\n"
        + "".join(f'file(WRITE {name} "${{{name}}}")\n' for name in names)
        + 'file(WRITE host "${CMAKE_CUDA_HOST_COMPILER}")\n'
    )
    subprocess.run(
        ["cmake", "-DCMAKE_CUDA_HOST_COMPILER=mine", "-P", "print.cmake"], cwd=tmp_path, check=True
    )
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written["CUDAToolkit_ROOT"] == root
    assert written["CMAKE_CUDA_COMPILER"] == f"{root}/bin/nvcc"
    assert written["CMAKE_CUDA_ARCHITECTURES"] == HOSTILE
    assert written["host"] == "mine"
