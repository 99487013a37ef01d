"""NVIDIA's wheels as a second channel: which project holds which package, on which platform.

To add a component, add a line in `COMPONENTS`; to add a product, one in `FAMILIES`. Nothing here
asks an index.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from cudaredist.jsontext import canonical_json

METAPACKAGE = "cuda-toolkit"
"""The project whose requirements state which components make up a CUDA release."""

COMPONENTS = {
    "cublas": "libcublas",
    "cuda-cccl": "cuda_cccl",
    "cuda-crt": "cuda_crt",
    "cuda-culibos": "cuda_culibos",
    "cuda-cuobjdump": "cuda_cuobjdump",
    "cuda-cupti": "cuda_cupti",
    "cuda-cuxxfilt": "cuda_cuxxfilt",
    "cuda-nvcc": "cuda_nvcc",
    "cuda-nvdisasm": "cuda_nvdisasm",
    "cuda-nvrtc": "cuda_nvrtc",
    "cuda-opencl": "cuda_opencl",
    "cuda-profiler-api": "cuda_profiler_api",
    "cuda-runtime": "cuda_cudart",
    "cuda-sanitizer-api": "cuda_sanitizer_api",
    "cuda-tileiras": "cuda_tileiras",
    "cudla": "libcudla",
    "cufft": "libcufft",
    "cufile": "libcufile",
    "curand": "libcurand",
    "cusolver": "libcusolver",
    "cusparse": "libcusparse",
    "npp": "libnpp",
    "nvfatbin": "libnvfatbin",
    "nvjitlink": "libnvjitlink",
    "nvjpeg": "libnvjpeg",
    "nvml-dev": "cuda_nvml_dev",
    "nvptxcompiler": "libnvptxcompiler",
    "nvtx": "cuda_nvtx",
    "nvvm": "libnvvm",
}
"""Components of CUDA: the project without `nvidia-` and `-cu12`, and the package of manifests."""


@dataclass(frozen=True, slots=True)
class Family:
    """One product besides CUDA: its package, and the project of each CUDA variant."""

    package: str
    projects: Mapping[str, str]


def _family(package: str, project: str) -> Family:
    return Family(package, {f"cuda{n}": f"{project}-cu{n}" for n in (11, 12, 13)})


FAMILIES = {
    "cudnn": _family("cudnn", "nvidia-cudnn"),
    "cudss": _family("libcudss", "nvidia-cudss"),
    "cusparselt": _family("libcusparse_lt", "nvidia-cusparselt"),
    "cutensor": _family("libcutensor", "cutensor"),
    "nccl": _family("nccl", "nvidia-nccl"),
    "nvshmem": _family("libnvshmem", "nvidia-nvshmem"),
}
"""Products with wheels besides CUDA, by the name of the redistributable."""


class WheelPlatform(NamedTuple):
    """A platform as wheels know it."""

    tags: tuple[str, ...]
    """Every tag that pip may take; with too few it silently falls to a placeholder."""
    environment: Mapping[str, str]
    """What the markers of requirements see there."""


def _linux(machine: str) -> WheelPlatform:
    tags = [f"manylinux_2_{n}_{machine}" for n in range(5, 45)]
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
"""Platforms of manifests that wheels are made for."""

_PROJECT = re.compile(r"nvidia-(?P<component>.+?)(?:-cu[0-9]+)?")
_LABEL_NUMBERS = 3


def package_of(project: str) -> tuple[str, bool]:
    """Return the package that a component's project holds, and whether it stands in the table.

    One that does not gets its own name, in the manner of manifests.
    """
    match = _PROJECT.fullmatch(project)
    component = match["component"] if match else project
    known = COMPONENTS.get(component)
    return (known, True) if known else (component.replace("-", "_"), False)


def newest_builds(versions: Iterable[str]) -> dict[str, str]:
    """Return the newest version for each label: its first three numbers."""
    newest: dict[str, Version] = {}
    for text in versions:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        numbers = version.release[:_LABEL_NUMBERS]
        if version.is_prerelease or version.epoch or len(numbers) < 2:  # noqa: PLR2004 - a label has two
            continue
        label = ".".join(map(str, numbers))
        if label not in newest or version > newest[label]:
            newest[label] = version
    return {label: str(version) for label, version in newest.items()}


def requirements_on(platform: str, requires: Iterable[str]) -> dict[str, SpecifierSet]:
    """Return the projects that a release is made of on a platform, whatever extra asks for them.

    Markers are evaluated for that platform, not for this machine; unreadable lines are left out.
    """
    environment = dict(PLATFORMS[platform].environment)
    found: dict[str, SpecifierSet] = {}
    for line in requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        marker = requirement.marker
        extras = {"", *_extras_in(marker)}
        if marker is None or any(marker.evaluate(environment | {"extra": x}) for x in extras):
            found[requirement.name] = requirement.specifier
    return found


def _extras_in(marker: Marker | None) -> set[str]:
    return set(re.findall(r"extra == ['\"]([^'\"]+)['\"]", str(marker or "")))


def lower_bound(specifier: SpecifierSet) -> str | None:
    """Return the lowest version that a requirement names, so that no later day gives another."""
    bounds = [
        Version(part.version.removesuffix(".*"))
        for part in specifier
        if part.operator in {"==", ">=", "~=", "==="}
    ]
    return str(max(bounds)) if bounds else None


def platform_of(file_name: str) -> str | None:
    """Return the platform that a wheel's tags name; `any` for every one, None for no known one."""
    try:
        *_, tags = parse_wheel_filename(file_name)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    platforms = {tag.platform for tag in tags}
    if "any" in platforms:
        return "any"
    for name, platform in PLATFORMS.items():
        if platforms & set(platform.tags):
            return name
    return None


class Wheel(NamedTuple):
    """One wheel that an index has."""

    project: str
    version: str
    file_name: str
    sha256: str
    summary: str
    license: str
    requires: tuple[str, ...]
    is_yanked: bool


def manifest_bytes(
    redist: str, label: str, wheels: Mapping[str, Mapping[tuple[str, str | None], Wheel]]
) -> bytes:
    """Return the manifest of wheels by package, platform and variant; equal for equal wheels.

    A wheel's size is not stated: an index need not tell it.
    """
    document: dict[str, object] = {"release_label": label, "release_product": redist}
    for package, places in wheels.items():
        newest = max(places.values(), key=lambda wheel: Version(wheel.version))
        entry: dict[str, object] = {
            "name": newest.summary,
            "license": newest.license,
            "version": ".".join(map(str, Version(newest.version).release)),
        }
        variants = sorted({variant for _, variant in places if variant is not None})
        if variants:
            entry["cuda_variant"] = [variant.removeprefix("cuda") for variant in variants]
        archives: dict[str, dict[str | None, dict[str, str]]] = {}
        for (platform, variant), wheel in places.items():
            archives.setdefault(platform, {})[variant] = {
                "relative_path": f"{wheel.project}/{wheel.file_name}",
                "sha256": wheel.sha256,
            }
        for platform, by_variant in archives.items():
            entry[platform] = by_variant.get(None, by_variant)
        document[package] = entry
    return canonical_json(document)
