"""NVIDIA's wheels as a second channel: projects, packages and platforms.

To add a component, add its name to `_PROGRAMS` or `_LIBRARIES`. To add a product, add a line to
`FAMILIES`, with the source of its evidence.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

_PROGRAMS = (
    "cccl",
    "crt",
    "culibos",
    "cuobjdump",
    "cupti",
    "cuxxfilt",
    "nvcc",
    "nvdisasm",
    "nvrtc",
    "opencl",
    "profiler-api",
    "sanitizer-api",
    "tileiras",
)
_LIBRARIES = (
    "cublas",
    "cudla",
    "cufft",
    "cufile",
    "curand",
    "cusolver",
    "cusparse",
    "npp",
    "nvfatbin",
    "nvjitlink",
    "nvjpeg",
    "nvptxcompiler",
    "nvvm",
)
COMPONENTS = {
    **{f"cuda-{name}": f"cuda_{name.replace('-', '_')}" for name in _PROGRAMS},
    **{name: f"lib{name}" for name in _LIBRARIES},
    "cuda-runtime": "cuda_cudart",
    "nvml-dev": "cuda_nvml_dev",
    "nvtx": "cuda_nvtx",
}
"""Packages of CUDA by component: the project without `nvidia-` and `-cu12`."""


class Family(NamedTuple):
    """A product's wheels: its package, and a project per CUDA variant."""

    projects: Mapping[str | None, str]
    package: str | None = None
    """None: the projects are metapackages, whose requirements are the packages."""

    label: str = "{}.{}.{}"
    """The form of NVIDIA's labels."""

    elsewhere: str = ""
    """The reason if the public index has no wheels."""


def _family(package: str | None, project: str, **details: str) -> Family:
    projects: dict[str | None, str] = {None: project}
    if "{}" in project:
        projects = {f"cuda{major}": project.format(major) for major in (11, 12, 13)}
    return Family(projects, package, **details)


# Each comment names a release that has the same versions in NVIDIA's manifest and in the wheels.
FAMILIES = {
    # 0.10.0: libcublasmp 0.10.0.3695.
    "cublasmp": _family("libcublasmp", "nvidia-cublasmp-cu{}"),
    # 13.0.2: the requirements of cuda-toolkit.
    "cuda": _family(None, "cuda-toolkit"),
    "cudnn": _family("cudnn", "nvidia-cudnn-cu{}"),
    "cudss": _family("libcudss", "nvidia-cudss-cu{}"),
    # 11.4.0: Spack's package of cuFFTMp has NVIDIA's archives libcufftmp 11.4.0.6.
    "cufftmp": _family("libcufftmp", "nvidia-cufftmp-cu{}"),
    # 26.09.0: cuquantum 26.09.0.8 is one archive with the libraries that cuquantum-cu12 26.9.0
    # requires. NVIDIA's labels have two digits for the month.
    "cuquantum": _family(None, "cuquantum-cu{}", label="{}.{:02}.{}"),
    # 0.7.1: libcusolvermp 0.7.1.851.
    "cusolvermp": _family("libcusolvermp", "nvidia-cusolvermp-cu{}"),
    "cusparselt": _family("libcusparse_lt", "nvidia-cusparselt-cu{}"),
    "cutensor": _family("libcutensor", "cutensor-cu{}"),
    "nccl": _family("nccl", "nvidia-nccl-cu{}"),
    # 5.3.0: nvcomp 5.3.0.16. Before 5.1, only the wheels of Python's modules have the libraries.
    "nvcomp": _family("nvcomp", "nvidia-libnvcomp-cu{}"),
    # 0.9.0: libnvjpeg_2k 0.9.0.43.
    "nvjpeg2000": _family("libnvjpeg_2k", "nvidia-nvjpeg2k-cu{}"),
    # 25.5: nvpl 25.5 requires projects with the names of the manifest's packages.
    "nvpl": _family(None, "nvpl"),
    "nvshmem": _family("libnvshmem", "nvidia-nvshmem-cu{}"),
    # 0.8.0: libnvtiff 0.8.0.82.
    "nvtiff": _family("libnvtiff", "nvidia-nvtiff-cu{}"),
    # 11.3.0: the package's version is that of the source distributions. Their pyproject.toml has
    # `build-backend = "wheel_stub.buildapi"` with an index of NVIDIA as `index_url`.
    "tensorrt": _family(
        "tensorrt",
        "tensorrt-cu{}-libs",
        elsewhere="PyPI has only source distributions, which download wheels of TensorRT from "
        "NVIDIA's own index",
    ),
}
"""Products with wheels, by the name of the redistributable."""

METAPACKAGES = {
    project: redist
    for redist, family in FAMILIES.items()
    if family.package is None
    for project in family.projects.values()
}
"""Redistributables by the projects whose requirements are their packages."""

OTHERS = {
    "libnvimgcodec.so.0": "nvidia-nvimgcodec-cu{}",
    "libnvinfer.so.10": "tensorrt-cu{}-libs",
    "libnvinfer_plugin.so.10": "tensorrt-cu{}-libs",
    "libnvonnxparser.so.10": "tensorrt-cu{}-libs",
}
"""Projects by library, for CUDA 12 and 13, of products that the shipped data does not contain."""


def other_projects(soname: str, majors: Collection[int]) -> tuple[str, ...]:
    """Return the projects with a library of `OTHERS` for some CUDA majors, or for all."""
    if soname not in OTHERS:
        return ()
    fitting = [major for major in (12, 13) if not majors or major in majors]
    return tuple(OTHERS[soname].format(major) for major in fitting)


def other_project(soname: str) -> str | None:
    """Return the beginning of the projects with a library of `OTHERS`, of any version."""
    stem = soname.partition(".so")[0]
    projects = (name for each, name in OTHERS.items() if each.partition(".so")[0] == stem)
    return next((name.partition("-cu")[0] for name in projects), None)


class WheelPlatform(NamedTuple):
    """A platform in terms of wheels."""

    tags: tuple[str, ...]
    """The tags of its wheels, oldest systems first."""
    environment: Mapping[str, str]
    """The environment for the markers of requirements."""


def _linux(machine: str) -> WheelPlatform:
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(5, 45)]
    tags += [f"manylinux{year}_{machine}" for year in ("1", "2010", "2014")]
    environment = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    return WheelPlatform(tuple(tags), environment | {"platform_machine": machine})


def _windows(tag: str, machine: str) -> WheelPlatform:
    environment = {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"}
    return WheelPlatform((tag,), environment | {"platform_machine": machine})


PLATFORMS = {
    "linux-sbsa": _linux("aarch64"),
    "linux-x86_64": _linux("x86_64"),
    "windows-arm64": _windows("win_arm64", "ARM64"),
    "windows-x86_64": _windows("win_amd64", "AMD64"),
}
"""Platforms of manifests with wheels."""

_PROJECT = re.compile(r"(?:nvidia-)?(.+?)(?:-cu[0-9]+)?")


def package_of(project: str) -> tuple[str, bool]:
    """Return the package of a project, and whether that is certain.

    Projects that `COMPONENTS` does not list keep their own name, in the form of manifests. That is
    not certain for projects of CUDA.
    """
    component = _PROJECT.sub(r"\1", project)
    is_known = component in COMPONENTS or not project.startswith("nvidia-")
    return COMPONENTS.get(component, component.replace("-", "_")), is_known


def package_of_project(name: str) -> str:
    """Return the package with the wheels of a project, such as `libcublas` for nvidia-cublas-cu12.

    A name that is not a project gives a name that no manifest has.
    """
    project = canonical_project(name)
    families = (family for family in FAMILIES.values() if project in family.projects.values())
    package = next((family.package for family in families), None)
    return package or package_of(project)[0]


def canonical_project(name: str) -> str:
    """Return the usual spelling of a project's name, as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()
