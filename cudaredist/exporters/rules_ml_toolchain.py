"""Tables of rules_ml_toolchain for Bazel: manifests, and templates of distributions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cudaredist.exporters.export_format import Files, exporter, filled_template
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.primitives import join_address
from cudaredist.redists import NVIDIA_BASE, REDISTS

_FILE = "cuda_redist_versions.bzl"
_CUDA_FOLDER = "//gpu/cuda/build_templates"
_ANY = "any"


class ExportedManifest(NamedTuple):
    """A local manifest of a release with the hash of its bytes."""

    redist: str
    manifest: Manifest
    sha256: str
    is_preview: bool
    """Whether the release is early access, or only on NVIDIA's second server."""


class NcclWheel(NamedTuple):
    """A wheel of NCCL and its address in the package index."""

    cuda: str
    """The CUDA major."""
    platform: str
    version: str
    url: str
    sha256: str | None


class ToolchainFacts(NamedTuple):
    """The facts in the tables of rules_ml_toolchain."""

    manifests: Iterable[ExportedManifest]
    wheels: Sequence[NcclWheel] = ()
    """In ascending order."""
    ptx: Mapping[str, Mapping[str, str]] = {}
    """The newest version of PTX by compiler and its release."""


class _Distribution(NamedTuple):
    """A package of manifests, as rules_ml_toolchain uses it."""

    repo_name: str
    source_dirs: tuple[str, ...] = ("include", "lib")
    template: str | None = None
    """The name of its template. Default: `repo_name`."""
    is_versioned: bool = True
    """Whether it lists its major versions, not `any`."""
    package: str | None = None
    """The package in manifests. Default: the name of the distribution."""
    folder: str = _CUDA_FOLDER
    templates: tuple[tuple[str, str], ...] = ()
    """Other templates by major version."""

    def versions(self, majors: Iterable[int]) -> dict[str, str]:
        """Return the label of each major version's template, newest first."""
        usual = self.template or f"{self.repo_name}.BUILD.tpl"
        names = sorted(majors, reverse=True) if self.is_versioned else [_ANY]
        other = dict(self.templates)
        return {str(name): f"{self.folder}:{other.get(str(name), usual)}" for name in names}


def _program(name: str) -> _Distribution:
    return _Distribution(name, ("bin",), f"{name}.BUILD", is_versioned=False)


_TRIPLES = {
    "linux-x86_64": "x86_64-unknown-linux-gnu",
    "linux-sbsa": "aarch64-unknown-linux-gnu",
}
_LIBRARY = ("include", "lib")
_DISTRIBUTIONS = {
    "nvidia_driver": _Distribution("cuda_driver", ("bin", "lib")),
    "cuda_nccl": _Distribution("cuda_nccl", package="nccl", folder="//gpu/nccl"),
    "cudnn": _Distribution("cuda_cudnn", templates=(("8", "cuda_cudnn8.BUILD.tpl"),)),
    "libcublas": _Distribution("cuda_cublas"),
    "cuda_cudart": _Distribution("cuda_cudart"),
    "cuda_culibos": _Distribution("cuda_culibos"),
    "libcufft": _Distribution("cuda_cufft"),
    "cuda_cupti": _Distribution("cuda_cupti"),
    "libcurand": _Distribution("cuda_curand"),
    "libcusolver": _Distribution("cuda_cusolver"),
    "libcusparse": _Distribution("cuda_cusparse"),
    "libnvjitlink": _Distribution("cuda_nvjitlink"),
    "cuda_nvrtc": _Distribution("cuda_nvrtc"),
    "cuda_cccl": _Distribution("cuda_cccl", is_versioned=False),
    "cuda_crt": _Distribution("cuda_crt", ("include",), is_versioned=False),
    "cuda_nvcc": _Distribution("cuda_nvcc", ("include", "bin", "nvvm"), is_versioned=False),
    "libnvvm": _Distribution("cuda_nvvm", ("nvvm",), "cuda_nvvm.BUILD", is_versioned=False),
    "cuda_nvdisasm": _program("cuda_nvdisasm"),
    "cuda_nvml_dev": _Distribution("cuda_nvml", (*_LIBRARY, "nvml")),
    "cuda_nvprune": _program("cuda_nvprune"),
    "cuda_profiler_api": _Distribution(
        "cuda_profiler_api", ("include",), "cuda_profiler.BUILD.tpl", is_versioned=False
    ),
    "cuda_nvtx": _Distribution("cuda_nvtx", is_versioned=False),
    "libnvptxcompiler": _Distribution("cuda_nvptxcompiler", is_versioned=False),
    "libnvfatbin": _Distribution("cuda_nvfatbin"),
}
_OF_NVSHMEM = {
    "libnvshmem": _Distribution("nvidia_nvshmem", (*_LIBRARY, "bin"), folder="//gpu/nvshmem")
}


@exporter("rules-ml-toolchain", _FILE, reads_manifests=True, reads_data=True, takes_index=True)
def rules_ml_toolchain(facts: ToolchainFacts) -> Files:
    """Bazel: the tables of rules_ml_toolchain, from all local manifests.

    Manifests of the early form, which contain no hashes, and those of early-access releases are
    skipped. A distribution is skipped if no manifest has its package.
    """
    tables: dict[str, dict[str, tuple[str, str]]]
    tables = {f"{name.upper()}_REDIST_JSON_DICT": {} for name in ("cuda", "cudnn", "nvshmem")}
    majors: dict[str, set[int]] = defaultdict(set)
    for redist, manifest, sha256, is_preview in facts.manifests:
        if manifest.shape == "early" or is_preview:
            continue
        table = tables.get(f"{redist.upper()}_REDIST_JSON_DICT")
        if table is not None:
            folder = f"{NVIDIA_BASE}/{REDISTS[redist].manifest_folders[0]}/"
            address = join_address(folder, f"redistrib_{manifest.label}.json")
            table[str(manifest.label)] = address, sha256
        for package in manifest.packages:
            majors[package.name] |= {version.components[0] for version in package.versions}
    distributions = {
        "REDIST_VERSIONS_TO_BUILD_TEMPLATES": _rows(_DISTRIBUTIONS, majors),
        "NVSHMEM_REDIST_VERSIONS_TO_BUILD_TEMPLATES": _rows(_OF_NVSHMEM, majors),
    }
    of_cuda: dict[str, dict[str, list[NcclWheel]]] = defaultdict(lambda: defaultdict(list))
    for wheel in facts.wheels:
        if wheel.platform not in _TRIPLES:
            continue
        of_cuda[wheel.cuda][_TRIPLES[wheel.platform]].append(wheel)
    rows = {"manifests": tables, "distributions": distributions}
    return {_FILE: filled_template(_FILE, **rows, wheels=of_cuda, ptx=facts.ptx)}


def _rows(
    distributions: Mapping[str, _Distribution], majors: Mapping[str, set[int]]
) -> list[tuple[str, _Distribution, dict[str, str]]]:
    """Return the distributions of known packages, with their templates by version."""
    rows = []
    for name, distribution in distributions.items():
        package = distribution.package or name
        if package in majors:
            rows.append((name, distribution, distribution.versions(majors[package])))
    return rows
