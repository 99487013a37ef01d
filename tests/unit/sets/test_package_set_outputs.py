"""Tests of outputs, propagation, addresses and licenses of sets (build-rules 3, 8)."""

import base64
import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from support.set_inputs import (
    LINUX,
    STATIC,
    WINDOWS,
    Release,
    archive_of,
    build,
    cuda,
    elf,
    features_of,
    library,
    package,
    rule,
    set_data_of,
    texts,
    valid,
)

from cudaredist.errors import UsageError
from cudaredist.exporters import EXPORTERS
from cudaredist.exporters.export_format import ExportedSet
from cudaredist.formats.features import ArchiveFeatures, WholeFeatures
from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import SetPackage
from cudaredist.primitives import ArchiveId, join_address, sri_of
from cudaredist.redists import REDISTS
from cudaredist.sets.file_outputs import ORDER
from cudaredist.sets.inputs import InputFeatures, SetData
from cudaredist.sets.outputs import order_outputs, propagated

LIB = elf("libx.so.1", "libc.so.6")
EVERYTHING = {
    "LICENSE": None,
    "bin/tool": elf(),
    "include/x.h": None,
    "lib/libx.so.1": LIB,
    "lib/libx_static.a": STATIC,
    "lib/stubs/libx.so": elf("libx.so.1"),
    "pkg-config/x-12.9.pc": None,
    "python/x.whl": None,
    "samples/a.cu": None,
    "share/doc/x.txt": None,
}

A = "a" * 64
B = "b" * 64


def libx(features: ArchiveFeatures, name: str = "libx", **more: Any) -> SetPackage:
    data = set_data_of(cuda(features={name: features}, packages={name: [LINUX]}), **more)
    return valid(build(data)).packages[name]


# -- outputs: sections 3.1 and 3.4


def test_outputs_are_in_nixpkgs_order() -> None:
    entry = libx(features_of(EVERYTHING))
    assert entry.outputs == ORDER
    assert {name: part.files for name, part in entry.contents.items()} == dict.fromkeys(ORDER, 1)
    assert entry.outputs.index("lib") < entry.outputs.index("static")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["lib", "out"], ["out", "lib"]),
        (["stubs", "static", "lib"], ["out", "lib", "static", "stubs"]),
        (["sample"], ["out", "samples"]),
        (["samples", "sample"], ["out", "samples"]),
        (["unheard", "dev"], ["out", "dev"]),
        ([], ["out"]),
    ],
)
def test_order_outputs_sorts_and_renames_sample(names: list[str], expected: list[str]) -> None:
    assert order_outputs(names) == tuple(expected)


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ("doc", "share/doc/x.txt"),
        ("samples", "samples/a.cu"),
        ("python", "python/x.whl"),
        ("bin", "bin/tool"),
        ("dev", "pkg-config/x-12.9.pc"),
        ("include", "include/x.h"),
        ("lib", "lib/libx.so.1"),
        ("static", "lib/libx_static.a"),
        ("stubs", "lib/stubs/libx.so"),
    ],
)
def test_output_without_files_is_not_declared(output: str, path: str) -> None:
    rest = {name: content for name, content in EVERYTHING.items() if name != path}
    assert libx(features_of(rest)).outputs == tuple(name for name in ORDER if name != output)


def test_unexamined_package_has_one_output() -> None:
    entry = package(set_data_of(cuda(libx=[LINUX])), "libx")
    assert (entry.status, entry.outputs, entry.contents) == ("available", ("out",), {})
    assert (entry.provides, entry.needs, entry.gpu_architectures) == ((), (), {})


@pytest.mark.parametrize(
    "name", ["cuda_cccl", "cuda_compat", "cuda_crt", "cuda_cudart", "cuda_nvcc", "libnvvm"]
)
def test_collapsed_package_has_one_output(name: str) -> None:
    features = features_of({**EVERYTHING, "lib/libx.so.1": elf("libx.so.1")})
    data = set_data_of(cuda(features={name: features}, packages={name: [LINUX]}))
    entry = package(data, name, allow_hollow=True)
    (output,) = entry.contents.values()
    assert entry.outputs == ("out",)
    assert (output.files, output.bytes) == (len(EVERYTHING), 100 * len(EVERYTHING))
    assert entry.collapsed == data.policies.outputs.collapse[name].reason
    assert {provided.output for provided in entry.provides} == {"out"}
    assert entry.propagates == {}


def test_package_with_one_output_is_not_collapsed() -> None:
    data = set_data_of(cuda(features={"cuda_crt": features_of({"x": None})}, cuda_crt=[LINUX]))
    assert package(data, "cuda_crt").collapsed is None


# -- lib folders for CUDA releases: section 3.3


NESTED = {
    "LICENSE": None,
    "include/x.h": None,
    "lib/10.2/libx.so.1": elf("libx.so.1", "libcudart.so.10.2"),
    "lib/11/libx.so.1": elf("libx.so.1", "libcudart.so.11.0"),
    "lib/11/libx_static.a": STATIC,
    "lib/12/libx.so.1.5": elf("libx.so.1", "libc.so.6", device_code=()),
    "lib/12/libx.so.1": "libx.so.1.5",
    "lib/12/libx_tool": elf(None, "libm.so.6"),
    "lib/11/libx_tool": elf(None, "libcudart.so.11.0"),
    "lib/12/stubs/libx.so": elf("libx.so.1"),
}


def nested_data(*labels: str, files: Mapping[str, Any] = NESTED) -> SetData:
    return set_data_of(
        *(cuda(label, features={"libx": features_of(files)}, libx=[LINUX]) for label in labels)
    )


def test_lib_folder_of_major_replaces_lib() -> None:
    entry = package(nested_data("12.9.1"), "libx")
    assert entry.status == "available"
    assert [change.model_dump(by_alias=True) for change in entry.normalise] == [
        {"op": "lift", "from": "lib/12", "to": "lib"}
    ]
    assert entry.outputs == ("out", "include", "lib", "stubs")
    assert [(p.soname, p.path, p.output, p.stub) for p in entry.provides] == [
        ("libx.so.1", "lib/libx.so.1.5", "lib", False),
        ("libx.so.1", "lib/stubs/libx.so", "stubs", True),
    ]
    needed = {(need.soname, need.by_path) for need in entry.needs}
    assert needed == {("libc.so.6", "lib/libx.so.1.5"), ("libm.so.6", "lib/libx_tool")}


@pytest.mark.parametrize(
    ("label", "folder"), [("11.8.0", "lib/11"), ("12.0.1", "lib/12"), ("12.9.1", "lib/12")]
)
def test_lib_folder_depends_on_cuda_release(label: str, folder: str) -> None:
    entry = package(nested_data(label), "libx", cuda=label)
    assert entry.normalise[0].source == folder


def test_lib_folder_of_minor_is_preferred() -> None:
    files = {"lib/12/libx.so.1": elf("old.so.1"), "lib/12.9/libx.so.1": elf("new.so.1")}
    for label, soname in (("12.9.1", "new.so.1"), ("12.6.3", "old.so.1")):
        entry = package(nested_data(label, files=files), "libx", cuda=label)
        assert [provided.soname for provided in entry.provides] == [soname]


def test_package_without_lib_folder_of_major_is_unsupported() -> None:
    entry = package(nested_data("13.0.2"), "libx", cuda="13.0.2")
    assert (entry.status, entry.archive, entry.outputs) == ("unsupported", None, ("out",))
    assert entry.reasons[0].code == "cuda-version-unsupported"
    assert entry.reasons[0].text == "its libraries are for CUDA 10.2, 11, 12"
    assert (entry.normalise, entry.provides, entry.needs) == ((), (), ())


def test_lib_folder_of_other_number_is_kept() -> None:
    files = {"lib/3/libx.so.1": elf("libx.so.1"), "lib/libx.so.1": elf("libx.so.1")}
    entry = package(nested_data("12.9.1", files=files), "libx")
    assert entry.normalise == ()
    assert len(entry.provides) == 2


def architectures(**code: tuple[str, str]) -> dict[str, str]:
    """Return the architectures of folders with declared and embedded code."""

    def parts(text: str) -> dict[str, list[str]]:
        names = text.split()
        kinds = {"sass": "sm_", "ptx": "compute_", "lto": "lto_"}
        return {kind: [n for n in names if n.startswith(x)] for kind, x in kinds.items()}

    document = {
        folder.replace("_", "/"): {"declared": parts(declared), "embedded": parts(embedded)}
        for folder, (declared, embedded) in code.items()
    }
    dumped = features_of(NESTED).model_dump(mode="json") | {"device_code": document}
    features = WholeFeatures.model_validate_json(json.dumps(dumped))
    data = set_data_of(cuda(features={"libx": features}, libx=[LINUX]))
    found = package(data, "libx").gpu_architectures
    return {folder: " ".join(names) for folder, names in found.items()}


def test_gpu_architectures_follow_lib_folder() -> None:
    found = architectures(
        lib_11=("sm_50", "compute_90"), lib_12=("sm_90", "compute_90"), bin=("sm_80", "compute_90")
    )
    assert found == {"lib": "sm_90 compute_90", "bin": "sm_80 compute_90"}


def test_gpu_architectures_are_merged_in_natural_order() -> None:
    declared = "sm_100 sm_120f compute_100 lto_100"
    found = architectures(bin=(declared, "sm_75 sm_100a compute_90 lto_90"))
    expected = "sm_75 sm_100 sm_100a sm_120f compute_90 compute_100 lto_90 lto_100"
    assert found == {"bin": expected}


# -- changes by policy: section 3.3


def changes_of(name: str, label: str, version: str, features: ArchiveFeatures) -> SetPackage:
    release = cuda(label, packages={name: [LINUX]})
    data = set_data_of(release._replace(features={name: features}, versions={name: version}))
    return package(data, name, cuda=label)


@pytest.mark.parametrize(
    ("name", "label", "version", "changes"),
    [
        ("cuda_nvcc", "12.9.1", "12.9.86", [("rename", "nvvm/lib64", "nvvm/lib")]),
        ("cuda_nvcc", "13.0.2", "13.0.88", []),
        ("libnvvm", "13.0.2", "13.0.88", [("lift", "nvvm", ".")]),
        ("cuda_cccl", "12.9.1", "12.9.27", []),
        ("cuda_cccl", "13.0.2", "13.0.85", [("lift", "include/cccl", "include")]),
        ("cccl", "13.4.2", "13.4.3.3.1", [("lift", "include/cccl", "include")]),
    ],
)
def test_policy_changes_tree_by_release(
    name: str, label: str, version: str, changes: list[tuple[str, str, str]]
) -> None:
    entry = changes_of(name, label, version, features_of({"x/y": None}))
    assert [(c.op, c.source, c.to) for c in entry.normalise] == changes


def test_files_dropped_by_policy_are_in_no_output() -> None:
    features = features_of(
        {
            "lib/libnvinfer.so.10": elf("libnvinfer.so.10", "libc.so.6"),
            "lib/libnvinfer_builder_resource_win.so.10.13": elf("resource", "libwin.so"),
            "lib/stubs/libnvinfer.so": elf("libnvinfer.so.10"),
            "lib/libnvinfer_static.a": STATIC,
        }
    )
    release = Release("tensorrt", "10.13.0", {"tensorrt": [LINUX]}, {"tensorrt": features})
    entry = package(set_data_of(cuda(), release), "tensorrt")
    assert entry.status == "available"
    assert entry.outputs == ("out", "lib", "static"), "its stubs are of its own libraries"
    assert [provided.path for provided in entry.provides] == ["lib/libnvinfer.so.10"]
    assert [need.soname for need in entry.needs if need.kind == "needed"] == ["libc.so.6"]
    assert {change.op for change in entry.normalise} == {"lift", "drop"}


# -- propagation: section 3.5


@pytest.mark.parametrize(
    ("name", "outputs", "of_dev", "of_out"),
    [
        ("x", "out", "", ""),
        ("x", "out bin dev include lib static stubs", "bin include lib", "bin include lib"),
        ("x", "out dev lib", "out lib", "lib"),
        ("x", "out dev", "out", ""),
        ("x", "out lib static", "", "lib"),
        ("x", "out doc samples", "", ""),
        (
            *("cuda_cudart", "out dev include lib static stubs"),
            *("out include lib static stubs", "include lib static stubs"),
        ),
        ("cuda_nvml_dev", "out dev include stubs", "out include stubs", "include stubs"),
        ("cuda_nvml_dev", "out include", "", "include"),
    ],
)
def test_propagated_outputs_depend_on_package(
    name: str, outputs: str, of_dev: str, of_out: str
) -> None:
    names = cast("list[OutputName]", outputs.split())
    propagation = propagated(name, names, set_data_of().policies.outputs)
    expected = {"dev": of_dev.split(), "out": of_out.split()}
    assert {key: list(value) for key, value in propagation.items()} == {
        key: value for key, value in expected.items() if value
    }
    edges = {(source, target) for source, targets in propagation.items() for target in targets}
    assert not {(b, a) for a, b in edges} & edges, "one way only"
    assert all(target in names and target != source for source, target in edges)


# -- degraded mode: section 9


def legacy_data(outputs: Mapping[str, tuple[OutputName, ...]], *names: str) -> SetData:
    release = cuda(packages={name: [LINUX] for name in names})
    legacy = {ArchiveId(name, LINUX, None): value for name, value in outputs.items()}
    features = InputFeatures("e" * 64, is_overlay=False, examined={}, unexamined={}, legacy=legacy)
    return set_data_of(release, read_features=lambda *_: features)


def test_legacy_feature_files_declare_outputs() -> None:
    whole: tuple[OutputName, ...] = ("bin", "dev", "lib", "out", "static")
    outputs = {"libx": ("dev", "lib", "out", "samples"), "cuda_nvcc": whole, "cuda_cudart": whole}
    package_set = build(legacy_data(outputs, "libx", "liby"))
    packages = package_set.packages
    assert packages["libx"].outputs == ("out", "samples", "dev", "lib")
    assert packages["libx"].contents == {}
    assert packages["cuda_nvcc"].outputs == ("out",), "policy counts here, too"
    assert packages["liby"].outputs == ("out",)
    (text,) = texts(package_set, "features-missing")
    assert text.startswith("1 packages were not examined")
    assert text.endswith(": liby")


# -- addresses, hashes: section 8


@pytest.mark.parametrize(
    ("redist", "folder"),
    [
        ("cuda", "compute/cuda/redist"),
        ("cudnn", "compute/cudnn/redist"),
        ("nvshmem", "compute/nvshmem/redist"),
        ("tensorrt", "compute/machine-learning"),
    ],
)
def test_archive_address_depends_on_redist(redist: str, folder: str) -> None:
    data = set_data_of(cuda(libx=[LINUX]), Release(redist, "12.9.1", {"libz": [LINUX]}))
    if redist == "cuda":
        data = set_data_of(cuda(libz=[LINUX]))
    archive = archive_of(data, "libz")
    base = f"https://developer.download.nvidia.com/{folder}"
    assert archive.url == f"{base}/{archive.relative_path}"
    assert package(data, "libz").license.url == f"{base}/libz/LICENSE.txt"
    assert archive.size == 1000 + len(archive.relative_path)
    assert type(archive.size) is int


def test_every_redistributable_has_an_address() -> None:
    for name in REDISTS:
        if name != "cuda":
            data = set_data_of(cuda(), Release(name, "0.1.0", {"libz": [LINUX]}))
            url = archive_of(data, "libz").url or ""
            assert url.startswith("https://developer.download.nvidia.com/compute/")


@pytest.mark.parametrize(
    ("address", "path", "expected"),
    [
        ("https://h/compute/cuda/redist/", "a/b.zip", "https://h/compute/cuda/redist/a/b.zip"),
        ("https://h/compute/cuda/redist/", "../../../pool/a.zip", "https://h/pool/a.zip"),
        ("s3://bucket/mirror/", "a/b.zip", "s3://bucket/mirror/a/b.zip"),
        ("file:///srv/x/", "a/b.zip", "file:///srv/x/a/b.zip"),
    ],
)
def test_join_address_resolves_path(address: str, path: str, expected: str) -> None:
    assert join_address(address, path) == expected


@pytest.mark.parametrize("address", ["https://h/", "https://h/a/b/", "s3://bucket/", "file:///x/"])
def test_path_above_root_of_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="leads above the root"):
        join_address(address, "../../../pool/a.zip")


def test_hash_is_written_in_sri_form() -> None:
    sha256 = "0123456789abcdef" * 4
    assert sri_of(sha256) == "sha256-ASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8="
    archive = archive_of(set_data_of(cuda()), "cuda_nvcc")
    assert base64.b64decode(archive.sri.removeprefix("sha256-")).hex() == archive.sha256


def test_archive_format_and_prefix_follow_platform() -> None:
    data = set_data_of(cuda(platforms=(LINUX, WINDOWS)))
    for platform, form in ((LINUX, "tar.xz"), (WINDOWS, "zip")):
        archive = archive_of(data, "cuda_nvcc", platform=platform)
        assert archive.format == form
        assert archive.strip_prefix == f"cuda_nvcc-{platform}-12.9.1-archive"


def test_wheel_addresses_require_wheel_base() -> None:
    data = set_data_of(cuda(), channel="wheels")
    assert archive_of(data, "cuda_nvcc").url is None
    for base in ("https://pypi.example/files", "https://pypi.example/files/"):
        archive = archive_of(data, "cuda_nvcc", wheel_base=base)
        assert archive.url == f"https://pypi.example/files/{archive.relative_path}"


# -- licenses and metadata: section 8

TERMS = (None, False, False)
"""No SPDX identifier, neither free nor redistributable."""


@pytest.mark.parametrize(
    ("redist", "name", "word", "expected"),
    [
        ("cuda", "libx", "CUDA Toolkit", ("CUDA EULA", None, False, True)),
        ("cuda", "libx", "MIT", ("MIT", "MIT", True, True)),
        ("cuda", "cccl", "CCCL EULA", ("CUDA EULA", None, False, True)),
        ("cudnn", "cudnn", "cudnn", ("cuDNN EULA", *TERMS)),
        ("cusparselt", "libcusparse_lt", "cuSPARSELt", ("cuSPARSELt EULA", *TERMS)),
        ("cutensor", "libcutensor", "cuTensor", ("cuTENSOR EULA", *TERMS)),
        ("tensorrt", "tensorrt", "TensorRT", ("TensorRT EULA", *TERMS)),
        (*("cublasmp", "libcublasmp", "cuBLASMp library"), ("NVIDIA Math SDK SLA", *TERMS)),
        ("cuda", "libx", "NVIDIA Proprietary Software", ("CUDA EULA", None, False, True)),
        ("cudnn", "cudnn", "LicenseRef-NVIDIA-Proprietary", ("cuDNN EULA", *TERMS)),
        ("cuda", "cuda_nvtx", "Other 1.0", ("Other 1.0", *TERMS)),
        ("cuda", "fabricmanager", "NVIDIA Driver", ("NVIDIA Driver", *TERMS)),
        ("nvcomp", "nvcomp", "nvCOMP library", ("nvCOMP library", *TERMS)),
        ("nccl", "nccl", "NVIDIA NVTX", ("NVIDIA NVTX", *TERMS)),
        ("mine", "mine", "whatever", ("whatever", *TERMS)),
    ],
)
def test_license_depends_on_redist_and_manifest(
    redist: str, name: str, word: str, expected: tuple[object, ...]
) -> None:
    more = {"license": word}
    if redist == "cuda":
        data = set_data_of(cuda(packages={name: [LINUX]})._replace(more=more))
    else:
        data = set_data_of(cuda(), Release(redist, "0.1.0", {name: [LINUX]}, more=more))
    terms = package(data, name).license
    assert (terms.short_name, terms.spdx, terms.free, terms.redistributable) == expected
    assert (terms.manifest, terms.source) == (word, "policy/licenses.json")


def test_license_files_of_archive_are_listed() -> None:
    features = features_of({"include/x.h": None}).model_copy(
        update={"license_files": {"LICENSE": A}}
    )
    data = set_data_of(cuda(libx=[LINUX], features={"libx": features}, platforms=(LINUX,)))
    license_entry = package(data, "libx").license
    assert license_entry.files == {"LICENSE": A}
    assert license_entry.manifest_path == "libx/LICENSE.txt"
    assert package(data, "cuda_nvcc").license.files is None


TEXT = rule(
    title="The good license, 2026",
    files=[A],
    spdx="MIT",
    short_name="Good",
    url=None,
    free=True,
    redistributable=True,
)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"LICENSE": A}, ("The good license, 2026", "Good", True)),
        ({"NOTICE": B, "LICENSE": A}, ("The good license, 2026", "Good", True)),
        ({"x/LICENSE": B, "LICENSE": A}, ("The good license, 2026", "Good", True)),
        ({"LICENSE": B}, ("unknown", "CUDA EULA", None)),
        ({"NOTICE": A}, (None, "CUDA EULA", True)),
        ({}, (None, "CUDA EULA", True)),
        (None, (None, "CUDA EULA", True)),
    ],
)
def test_license_depends_on_text_in_archive(
    files: dict[str, str] | None, expected: tuple[object, ...]
) -> None:
    features = features_of({"include/x.h": None}).model_copy(update={"license_files": files})
    data = set_data_of(
        cuda(libx=[LINUX], features={"libx": features}, platforms=(LINUX,)),
        policies={"licenses": {"texts": {"c" * 64: TEXT}}},
    )
    terms = package(data, "libx").license
    assert (terms.text, terms.short_name, terms.redistributable) == expected


def test_package_metadata_comes_from_policy() -> None:
    data = set_data_of(cuda(cuda_gdb=[LINUX], libx=[LINUX]))
    gdb, other = package(data, "cuda_gdb"), package(data, "libx")
    assert (gdb.meta.main_program, gdb.meta.fhs_exempt) == ("cuda-gdb", True)
    assert (other.meta.main_program, other.meta.fhs_exempt) == (None, False)
    assert other.meta.homepage == "https://developer.nvidia.com/cuda-toolkit"
    assert (other.description, other.version, other.release) == ("LIBX", "12.9.1", "12.9.1")
    assert other.platforms == (LINUX,)


def test_driver_run_path_is_set_for_binaries() -> None:
    features = {"cuda_cccl": features_of({"include/x.h": None}), "libx": library("libx.so.1")}
    data = set_data_of(cuda(features=features, cuda_cccl=[LINUX], libx=[LINUX]))
    packages = build(data).packages
    assert not packages["cuda_cccl"].driver_runpath, "nothing in it can load anything"
    assert packages["libx"].driver_runpath
    assert packages["cuda_nvcc"].driver_runpath, "not examined"
    windows = set_data_of(cuda(platforms=(WINDOWS,)))
    assert not package(windows, "cuda_nvcc", platform=WINDOWS).driver_runpath


def test_outputs_without_libraries_are_reported_and_exported_as_unexamined() -> None:
    """Sets from feature files in nixpkgs' form have no needs."""
    outputs: dict[str, tuple[OutputName, ...]] = dict.fromkeys(
        ("libx", "cuda_nvcc", "cuda_cudart"), ("lib", "out")
    )
    package_set = build(legacy_data(outputs, "libx", "liby"))
    assert texts(package_set, "outputs-only") == [
        "only the outputs of 3 packages are known, from a feature file in nixpkgs' form; their "
        "libraries and dependencies are unknown: cuda_cudart, cuda_nvcc, libx"
    ]
    exported = ExportedSet(package_set)
    skipped = {name: EXPORTERS[name].skipped(exported) for name in ("outputs", "ignore-missing")}
    assert skipped["ignore-missing"] == {"cuda_cudart", "cuda_nvcc", "libx", "liby"}
    assert skipped["outputs"] == {"cuda_cudart", "cuda_nvcc", "liby"}
    table = json.loads(EXPORTERS["outputs"].files(exported)["outputs.json"])
    assert table == {"libx": ["out", "lib"]}
