"""NVIDIA's wheels as a second channel: projects, packages and platforms.

To add a component, add its name to `_PROGRAMS` or `_LIBRARIES`. To add a product, add a line to
`FAMILIES`, with the source of its evidence. This module sends no requests.
"""

import functools
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from email.message import Message
from operator import attrgetter
from typing import Any, NamedTuple

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from cudaredist.jsontext import canonical_json
from cudaredist.primitives import ArchiveId

SIMPLE = "simple"
"""The folder of wheels in a mirror, with one folder per project."""

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
_is_plain_name = re.compile(r"[A-Za-z0-9_.+!-]{1,255}").fullmatch
_LINE_LIMIT, _PARENTHESES_LIMIT = 1000, 50
"""Maximum characters and opening parentheses of a requirement, against hostile metadata."""


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
    project = canonicalize_name(name)
    families = (family for family in FAMILIES.values() if project in family.projects.values())
    package = next((family.package for family in families), None)
    return package or package_of(project)[0]


def requirements_on(platform: str, requires: Iterable[str]) -> dict[str, SpecifierSet]:
    """Return the projects of a release on a platform, including all extras.

    Markers are evaluated for that platform, not for this machine. Invalid lines are skipped.
    """
    projects: dict[str, SpecifierSet] = {}
    for requirement in filter(None, map(_requirement, requires)):
        if applies_on(requirement, platform):
            projects[canonicalize_name(requirement.name)] = requirement.specifier
    return projects


def applies_on(requirement: Requirement, platform: str | None) -> bool:
    """Check if a requirement, or any extra with it, applies on a platform.

    Requirements apply on platforms without wheels.
    """
    marker = requirement.marker
    if marker is None or platform not in PLATFORMS:
        return True
    environment = dict(PLATFORMS[platform].environment)
    extras = {"", *re.findall(r"extra == ['\"]([^'\"]+)['\"]", str(marker))}
    return any(evaluate_marker(marker, environment | {"extra": extra}) for extra in extras)


def evaluate_marker(marker: Marker, environment: dict[str, str]) -> bool:
    """Return whether a marker applies.

    A marker with an undefined comparison does not apply.
    """
    try:
        return marker.evaluate(environment)
    except ValueError:  # such as os_name ~= "posix"
        return False


def parse_requirements(metadata: Message) -> list[Requirement]:
    """Return the valid requirements of a wheel's METADATA."""
    lines = map(str, metadata.get_all("Requires-Dist", ()))
    return list(filter(None, map(_requirement, lines)))


@functools.cache
def _requirement(line: str) -> Requirement | None:
    """Return a requirement, None if it is invalid or too long."""
    if len(line) > _LINE_LIMIT or line.count("(") > _PARENTHESES_LIMIT:
        return None
    with suppress(InvalidRequirement):
        return Requirement(line)
    return None


def lower_bound(specifier: SpecifierSet) -> str | None:
    """Return the lowest version in a requirement.

    Unlike the newest one, it does not change when new wheels are published.
    """
    lower = [part.version for part in specifier if part.operator in {"==", ">=", "~=", "==="}]
    bounds = [Version(text.removesuffix(".*")) for text in lower]
    return str(max(bounds)) if bounds else None


class Wheel(NamedTuple):
    """A wheel in an index."""

    project: str
    version: Version
    file_name: str
    tags: frozenset[str]
    """The platforms in its name."""
    url: str
    sha256: str | None = None
    size: int | None = None
    is_yanked: bool = False
    metadata_sha256: str | None = None
    """The hash of its metadata file: empty if the hash is unknown, None without a file."""
    uploaded: str | None = None
    """The day of its upload, such as 2026-11-04, if the index states it."""

    def rank_on(self, platform: str) -> int | None:
        """Return the rank of a wheel on a platform, None for other platforms.

        Wheels for the oldest systems rank first, those for every platform last.
        """
        known = PLATFORMS[platform].tags
        ranks = [known.index(tag) for tag in self.tags if tag in known]
        if ranks:
            return min(ranks)
        return len(known) if "any" in self.tags else None


def parse_wheel(file_name: str, url: str) -> Wheel | None:
    """Parse a wheel's name, and return None if manifests cannot contain it.

    Manifests contain no extension modules and no other platforms. Wheels of version 0.0.0 are
    skipped, because they only reserve a project's name.
    """
    if not _is_plain_name(file_name):
        return None
    stem, _, platforms = file_name.rpartition("-none-")
    try:
        # Tags are combinations of all parts, so a hostile name would have too many of them.
        project, version, _, _ = parse_wheel_filename(f"{stem}-none-any.whl")
    except (InvalidWheelFilename, InvalidVersion):
        return None
    tags = frozenset(platforms.removesuffix(".whl").lower().split("."))
    wheel = Wheel(project, version, file_name, tags, url)
    is_known = any(wheel.rank_on(platform) is not None for platform in PLATFORMS)
    is_wheel = file_name.endswith(".whl") and version.release[:3] != (0, 0, 0)
    return wheel if is_wheel and is_known else None


def newest_builds(wheels: Iterable[Wheel], form: str = "{}.{}.{}") -> dict[str, list[Wheel]]:
    """Return the wheels of the newest build for each label (its first three numbers).

    Yanked wheels are skipped.
    """
    builds: dict[str, list[Wheel]] = {}
    for wheel in wheels:
        version, numbers = wheel.version, wheel.version.release
        if wheel.is_yanked or version.is_prerelease or version.epoch or len(numbers) < 2:  # noqa: PLR2004 - a label has two
            continue
        label = ".".join(form.split(".")[: len(numbers)]).format(*numbers)
        newest = builds.setdefault(label, [wheel])[0]
        if version > newest.version:
            builds[label] = [wheel]
        elif wheel is not newest and str(version) == str(newest.version):
            builds[label].append(wheel)
    return builds


def best_wheel(wheels: Iterable[Wheel], platform: str, versions: SpecifierSet) -> Wheel | None:
    """Return a platform's wheel for the lowest version in a requirement.

    If the platform lacks that version, the lowest matching one is used. A yanked wheel is used only
    for the version in the requirement, and only if there is no other wheel.
    """
    lowest_text = lower_bound(versions)
    if lowest_text is None:
        return None
    on_platform = [wheel for wheel in wheels if wheel.rank_on(platform) is not None]
    candidates = [wheel for wheel in on_platform if wheel.version == Version(lowest_text)]
    if not candidates:
        fitting = [
            wheel for wheel in on_platform if wheel.version in versions and not wheel.is_yanked
        ]
        lowest = min((wheel.version for wheel in fitting), default=None)
        candidates = [wheel for wheel in fitting if wheel.version == lowest]
    return min(
        candidates, key=lambda wheel: (wheel.is_yanked, wheel.rank_on(platform) or 0), default=None
    )


class Metadata(NamedTuple):
    """The fields of a wheel's metadata that manifests use."""

    summary: str
    license: str
    requires: tuple[str, ...]


def newest_wheels(wheels: Mapping[ArchiveId, Wheel]) -> dict[str, Wheel]:
    """Return the wheel with the metadata and version of each package."""
    newest: dict[str, Wheel] = {}
    for archive, wheel in wheels.items():
        other = newest.get(archive.package, wheel)
        newest[archive.package] = max(other, wheel, key=attrgetter("version"))
    return newest


def release_date(
    wheels: Mapping[ArchiveId, Wheel], listed: Mapping[str, Iterable[Wheel]]
) -> str | None:
    """Return the day on which the last package of a release had its first wheel.

    Wheels for further platforms and repackaged builds (`.post1`), which NVIDIA often adds later, do
    not change it. `listed` has all wheels of each project.
    """
    first: dict[str, str] = {}
    for archive, wheel in wheels.items():
        builds = (
            other
            for other in listed[wheel.project]
            if other.version.release == wheel.version.release and not other.version.is_prerelease
        )
        days = [build.uploaded for build in builds if build.uploaded is not None]
        if archive.package in first:
            days.append(first[archive.package])
        if days:
            first[archive.package] = min(days)
    has_all = first.keys() == {archive.package for archive in wheels}
    return max(first.values(), default=None) if has_all else None


def manifest_bytes(
    redist: str,
    label: str,
    wheels: Mapping[ArchiveId, Wheel],
    metadata: Mapping[str, Metadata],
    day: str | None = None,
) -> bytes:
    """Return a deterministic manifest of wheels, with the day of the release if it is known.

    It has no sizes, because not every index has them.
    """
    document: dict[str, Any] = {"release_label": label, "release_product": redist}
    if day is not None:
        document["release_date"] = day
    for package, newest in newest_wheels(wheels).items():
        document[package] = {
            "name": metadata[package].summary,
            "license": metadata[package].license,
            "version": ".".join(map(str, newest.version.release)),
        }
    for (package, platform, variant), wheel in wheels.items():
        entry = document[package]
        archive = {"relative_path": f"{wheel.project}/{wheel.file_name}", "sha256": wheel.sha256}
        if variant is None:
            entry[platform] = archive
        else:
            entry.setdefault(platform, {})[variant] = archive
            variants = {*entry.get("cuda_variant", ()), variant.removeprefix("cuda")}
            entry["cuda_variant"] = sorted(variants)
    return canonical_json(document)
