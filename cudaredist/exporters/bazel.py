"""Bazel: a fragment of MODULE.bazel that makes a toolkit of rules_cuda from the set's archives."""

import json
from collections.abc import Iterator

from cudaredist.errors import UsageError
from cudaredist.exporters.export_format import ExportedPackage, ExportedSet, Files, exporter
from cudaredist.primitives import Version

RULES_CUDA_PACKAGES = {
    "cccl": "cuda_cccl",
    "crt": "cuda_crt",
    "cublas": "libcublas",
    "cudart": "cuda_cudart",
    "cufft": "libcufft",
    "cufile": "libcufile",
    "culibos": "cuda_culibos",
    "cupti": "cuda_cupti",
    "curand": "libcurand",
    "cusolver": "libcusolver",
    "cusparse": "libcusparse",
    "npp": "libnpp",
    "nvcc": "cuda_nvcc",
    "nvjitlink": "libnvjitlink",
    "nvjpeg": "libnvjpeg",
    "nvml": "cuda_nvml_dev",
    "nvrtc": "cuda_nvrtc",
    "nvtx": "cuda_nvtx",
    "nvvm": "libnvvm",
}
"""Package of each component that rules_cuda has targets for."""

_REQUIRED = ("cccl", "cudart", "nvcc")
_REQUIRED_SINCE_13 = ("crt", "nvvm")
_SPLIT = 13
"""The CUDA major from which nvcc's headers and optimiser are packages of their own."""

_HEAD = """\
# {title}: a part of MODULE.bazel, made by cudaredist.
# It goes behind bazel_dep(name = "rules_cuda", ...).
cuda = use_extension("@rules_cuda//cuda:extensions.bzl", "toolchain")
"""
_COMPONENT = """\
cuda.component(
    name = {repository},
    component_name = {component},
    sha256 = {sha256},
    strip_prefix = {strip_prefix},
    urls = [{url}],
    version = {version},
)
"""
_TOOLKIT = """\
cuda.toolkit(
    name = "cuda",
    components_mapping = {{
{mapping}    }},
    version = {version},
)
use_repo(cuda, "cuda")
"""


@exporter("bazel", "cuda.MODULE.bazel")
def bazel(exported: ExportedSet) -> Files:
    """A part of MODULE.bazel: the components and the toolkit of rules_cuda."""
    package_set = exported.package_set
    if package_set.channel == "wheels":
        raise UsageError(
            "rules_cuda takes NVIDIA's archives, and this set is made of wheels",
            hint="build the set without --channel wheels",
        )
    components = dict(_components(exported))
    is_split = Version.parse(package_set.cuda.release).components[0] >= _SPLIT
    required = [*_REQUIRED, *(_REQUIRED_SINCE_13 if is_split else ())]
    lacking = [RULES_CUDA_PACKAGES[name] for name in required if name not in components]
    if lacking:
        raise UsageError(f"rules_cuda needs {', '.join(lacking)}, which the set cannot have")
    exported.require_addresses()
    parts = [_HEAD.format(title=exported.title)]
    parts += [_component(name, package) for name, package in components.items()]
    mapping = "".join(
        f"        {_quoted(name)}: {_quoted(f'@cuda_{name}')},\n" for name in components
    )
    version = _quoted(package_set.cuda.major_minor)
    parts.append(_TOOLKIT.format(mapping=mapping, version=version))
    return {"cuda.MODULE.bazel": "\n".join(parts).encode()}


def _components(exported: ExportedSet) -> Iterator[tuple[str, ExportedPackage]]:
    packages = {package.attr: package for package in exported.packages}
    for component, name in RULES_CUDA_PACKAGES.items():
        entry = exported.package_set.packages.get(name)
        if entry is not None and (entry.alias_of or name) in packages:
            yield component, packages[entry.alias_of or name]


def _component(name: str, package: ExportedPackage) -> str:
    return _COMPONENT.format(
        repository=_quoted(f"cuda_{name}"),
        component=_quoted(name),
        sha256=_quoted(package.archive.sha256),
        strip_prefix=_quoted(package.archive.strip_prefix or ""),
        url=_quoted(package.archive.url or ""),
        version=_quoted(package.entry.version or ""),
    )


def _quoted(text: str) -> str:
    """Return a text as Starlark writes it; JSON writes it the same but for letters beyond ASCII."""
    return json.dumps(text, ensure_ascii=False)
