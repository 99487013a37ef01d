"""NVIDIA's wheels as a second channel: which project holds which package, on which platform.

To add a component, add a line in `COMPONENTS`; to add a product, one in `FAMILIES`. Nothing here
asks an index.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
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
    """Every tag of wheels for it; those for the oldest systems come first."""
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
_is_plain_name = re.compile(r"[A-Za-z0-9_.+!-]+").fullmatch


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
    for requirement in filter(None, map(_requirement, requires)):
        marker = requirement.marker
        extras = {"", *_extras_in(marker)}
        if marker is None or any(marker.evaluate(environment | {"extra": x}) for x in extras):
            found[canonicalize_name(requirement.name)] = requirement.specifier
    return found


@functools.cache
def _requirement(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


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


class Wheel(NamedTuple):
    """One wheel as an index lists it."""

    project: str
    version: Version
    file_name: str
    tags: frozenset[str]
    """The platforms that its name states."""
    url: str
    sha256: str | None = None
    size: int | None = None
    is_yanked: bool = False
    metadata_sha256: str | None = None
    """The hash of the metadata file next to it; empty for one without a hash, None for no file."""

    def rank_on(self, platform: str) -> int | None:
        """Return its order among the wheels of its version, None if it is for other platforms.

        Wheels for the oldest systems come first, those for every platform last.
        """
        known = PLATFORMS[platform].tags
        ranks = (known.index(tag) for tag in self.tags if tag in known)
        return min(ranks, default=len(known) if "any" in self.tags else None)


def parse_wheel(file_name: str, url: str) -> Wheel | None:
    """Return a wheel by its name, None if manifests cannot contain it.

    They contain no extension modules, and no other platforms. Wheels of version 0.0.0 only reserve
    the name of a project.
    """
    if not _is_plain_name(file_name):
        return None
    try:
        project, version, _, tags = parse_wheel_filename(file_name)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    platforms = frozenset(tag.platform for tag in tags)
    wheel = Wheel(project, version, file_name, platforms, url)
    is_plain = all(tag.abi == "none" for tag in tags) and version.release[:3] != (0, 0, 0)
    is_known = any(wheel.rank_on(platform) is not None for platform in PLATFORMS)
    return wheel if is_plain and is_known else None


def best_wheel(wheels: Iterable[Wheel], platform: str, versions: SpecifierSet) -> Wheel | None:
    """Return a platform's wheel of the lowest version that a requirement names.

    If the platform lacks that version, it is the lowest one that fits. A yanked wheel is only
    taken for the named version, and if there is no other one.
    """
    named = lower_bound(versions)
    if named is None:
        return None
    on_platform = [wheel for wheel in wheels if wheel.rank_on(platform) is not None]
    candidates = [wheel for wheel in on_platform if wheel.version == Version(named)]
    if not candidates:
        fitting = [wheel for wheel in on_platform if wheel.version in versions]
        fitting = [wheel for wheel in fitting if not wheel.is_yanked]
        lowest = min((wheel.version for wheel in fitting), default=None)
        candidates = [wheel for wheel in fitting if wheel.version == lowest]
    return min(
        candidates,
        key=lambda wheel: (wheel.is_yanked, wheel.rank_on(platform) or 0),
        default=None,
    )


class Metadata(NamedTuple):
    """The fields of a wheel's metadata that manifests are made of."""

    summary: str
    license: str
    requires: tuple[str, ...]


def newest_wheel(places: Mapping[tuple[str, str | None], Wheel]) -> Wheel:
    """Return the wheel whose metadata and version describe a package."""
    return max(places.values(), key=lambda wheel: wheel.version)


def manifest_bytes(
    redist: str,
    label: str,
    wheels: Mapping[str, Mapping[tuple[str, str | None], Wheel]],
    metadata: Mapping[str, Metadata],
) -> bytes:
    """Return the manifest of wheels by package, platform and variant; equal for equal wheels.

    A wheel's size is not stated: not every index states it.
    """
    document: dict[str, object] = {"release_label": label, "release_product": redist}
    for package, places in wheels.items():
        entry: dict[str, object] = {
            "name": metadata[package].summary,
            "license": metadata[package].license,
            "version": ".".join(map(str, newest_wheel(places).version.release)),
        }
        variants = sorted({variant for _, variant in places if variant is not None})
        if variants:
            entry["cuda_variant"] = [variant.removeprefix("cuda") for variant in variants]
        archives: dict[str, dict[str | None, dict[str, str | None]]] = {}
        for (platform, variant), wheel in places.items():
            archives.setdefault(platform, {})[variant] = {
                "relative_path": f"{wheel.project}/{wheel.file_name}",
                "sha256": wheel.sha256,
            }
        for platform, by_variant in archives.items():
            entry[platform] = by_variant.get(None, by_variant)
        document[package] = entry
    return canonical_json(document)
