"""Rules that relate device code to GPUs, and shares of modules.

The rules are those of NVIDIA's CUDA programming guide ("Binary compatibility" and "PTX
compatibility", and "Family-specific" and "Architecture-specific features"):

- SASS runs on GPUs of the same major number and the same or a later minor number. For Tegra parts,
  it runs only on the same capability: binaries are not compatible between Tegra and desktop parts,
  or between Tegra parts.
- `sm_XYa` runs on X.Y only, `sm_XYf` on X.Y and later GPUs of its family.
- PTX is compiled by the driver for any GPU of the same or a later capability, with `a` only for the
  same one, with `f` for its family. LTO code follows the same rule, but needs a linker.

A library contains kernels for some GPUs only, so no GPU uses all modules of a package. The share of
a GPU is counted against the GPU that uses the most. A package can contain leftovers for GPUs that
it does not support. These rules separate them from support:

- A package for a CUDA major that no longer knows a GPU does not support it, whatever code is left.
  The table of GPUs has the last release of CUDA that knows each of them, as read from ptxas. CUDA
  13 removed 5.0 to 7.2, and cuSPARSE 13.5 still has 34 of 171 modules for 7.0.
- A file without code for a GPU makes the package partial. The release notes of cuDNN 9.11 end the
  support of Maxwell, Pascal and Volta, and one of its five files still has code for 7.0.
- A supported GPU uses at least 2 % of the modules, and 2 % of their bytes, of all files together.
  In the shipped data, desktop GPUs have at least 4.6 % of both if the package supports them
  (cuSPARSELt 0.7.1 on 8.0), and at most 1.1 % of one of the two if it does not (cuTENSOR 2.3.1 on
  7.0). Shares of single files do not separate them: cuDNN 9.3 supports 7.5, but one file of it has
  1 of 18 modules and 0.1 % of the bytes for 7.5, because most of its kernels require 8.0.

nvcc adds empty images to libraries without kernels (libnppc, libcufftw), which do not count.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from cudaredist.formats.features import FileCode
from cudaredist.formats.packageset import Coverage, CoverageValue
from cudaredist.formats.tables import Gpus
from cudaredist.primitives import Platform, Version
from cudaredist.redists import CUDA
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import fact_of

Way: TypeAlias = Literal["native", "ptx", "lto"]
"""How a GPU runs an image: directly, compiled by the driver, or compiled by a linker."""

WAYS: tuple[Way, ...] = ("native", "ptx", "lto")
"""Best first."""

JETSON_PLATFORMS = (Platform("linux-aarch64"), Platform("linux-sbsa"))
"""Platforms with libraries for Jetsons. The first one is only for Jetsons."""

_LEAST_SHARE = 0.02
"""The share of a package's modules, and of its bytes, that a supported GPU uses at least."""

_EMPTY_IMAGE = {"sm": 2048, "compute": 88, "lto": 1800}
"""Limits for the bytes of an image without kernels.

CUDA 11.8 to 13.5 write 584 to 1,888 bytes for `sm`, 56 to 82 for `compute` and 1,600 for `lto`.
Images with one kernel that only returns have at least 1,864 bytes for `sm` (1,544 for `sm_50` in
CUDA 12.0), 93 for `compute` and 1,972 for `lto`.
"""
_EMPTY_IMAGE_SINCE_100 = 2560
"""The limit since `sm_100`. Images have 2,248 bytes without kernels, and 4,848 with one."""

_WAYS: dict[str, Way] = {"sm": "native", "compute": "ptx", "lto": "lto"}
_architecture = re.compile(r"(sm|compute|lto)_([1-9][0-9]{1,3})([af]?)").fullmatch


def is_without_kernels(code: FileCode) -> bool:
    """Check if a file has only empty images, which nvcc adds to libraries without kernels."""
    counts = Counter[str]()
    for text, count in code.modules.items():
        for image in text.split():
            name, _, times = image.partition("*")
            counts[name] += count * int(times or 1)
    return all(code.unpacked.get(name, 0) <= _empty_size(name) * counts[name] for name in counts)


def _empty_size(architecture: str) -> int:
    """Return the limit for the bytes of an image without kernels."""
    match = _architecture(architecture)
    if match is None:
        return 0
    if match[1] == "sm" and int(match[2]) >= 100:  # noqa: PLR2004 - see the limit
        return _EMPTY_IMAGE_SINCE_100
    return _EMPTY_IMAGE[match[1]]


def cuda_major_of(redist: str, label: Version, variant: str | None) -> int | None:
    """Return the CUDA major of an archive, or None if unknown."""
    if variant is not None:
        return Version.parse(variant.removeprefix("cuda")).components[0]
    if redist == CUDA:
        return label.components[0]
    return label.suffix[0] if label.suffix else None


class CoverageRules:
    """The rules, with Tegra parts and renames from the table."""

    def __init__(self, gpus: Gpus) -> None:
        plain = {
            Capability.parse(name): entry
            for name, entry in gpus.capabilities.items()
            if entry.variant is None
        }
        self.capabilities = tuple(sorted(plain))
        self._tegra = {capability for capability, entry in plain.items() if entry.jetson}
        self._renamed = {
            capability: fact_of(entry.policy, "renamed_to") for capability, entry in plain.items()
        }
        self._last_major = {
            capability: Version.parse(entry.last_cuda).components[0]
            for capability, entry in plain.items()
            if entry.last_cuda is not None
        }
        self._known: dict[tuple[str, Capability], Way | None] = {}
        self._of_images: dict[str, Mapping[Capability, Way]] = {}

    def way(self, architecture: str, gpu: Capability) -> Way | None:
        """Return the way a GPU runs an image, or None."""
        key = (architecture, gpu)
        if key not in self._known:
            self._known[key] = self._find_way(architecture, gpu)
        return self._known[key]

    def capabilities_on(self, platform: Platform) -> tuple[Capability, ...]:
        """Return the capabilities of GPUs on a platform."""
        has_tegra, has_desktop = platform in JETSON_PLATFORMS, platform != JETSON_PLATFORMS[0]
        return tuple(
            capability
            for capability in self.capabilities
            if (has_tegra if capability in self._tegra else has_desktop)
        )

    def cover(
        self, files: Sequence[FileCode], capabilities: Iterable[str], cuda: int | None = None
    ) -> dict[str, Coverage]:
        """Return the coverage of each capability by the files of one package.

        `cuda` is the CUDA major that the package is built for, if it is known.
        """
        modules = [self._modules(code) for code in files if not is_without_kernels(code)]
        supported = _supported_ways(modules)
        bases = {name: Capability.parse(name).base for name in capabilities}
        return {
            name: Coverage(value="none")
            if modules and cuda is not None and self._last_major.get(base, cuda) < cuda
            else _combine(modules, base, supported.get(base, ()))
            for name, base in bases.items()
        }

    def _find_way(self, architecture: str, gpu: Capability) -> Way | None:
        match = _architecture(architecture)
        if match is None:
            return None
        way, target = _WAYS[match[1]], Capability.of_target(match[2], match[3])
        if target.base == gpu:
            return way
        if target.variant == "a" or gpu < target.base:
            return None
        is_same_line = self._renamed.get(target.base) == self._renamed.get(gpu)
        is_family = target.major == gpu.major and is_same_line
        if way != "native":
            return way if target.variant is None or is_family else None
        is_tegra = target.base in self._tegra or gpu in self._tegra
        return way if is_family and not is_tegra else None

    def _best_ways(self, images: str) -> Mapping[Capability, Way]:
        """Return how each GPU runs a module, such as `sm_80 sm_90*2`.

        Results are stored, because many files have modules with the same images.
        """
        if images not in self._of_images:
            names = [image.partition("*")[0] for image in images.split()]
            ways = {gpu: {self.way(name, gpu) for name in names} for gpu in self.capabilities}
            self._of_images[images] = {
                gpu: next(way for way in WAYS if way in present)
                for gpu, present in ways.items()
                if present != {None}
            }
        return self._of_images[images]

    def _modules(self, code: FileCode) -> "_FileModules":
        counts: dict[Capability, Counter[Way]] = {gpu: Counter() for gpu in self.capabilities}
        sizes: dict[Capability, Counter[Way]] = {gpu: Counter() for gpu in self.capabilities}
        for totals, amounts in ((counts, code.modules), (sizes, code.unpacked)):
            for images, amount in amounts.items():
                for gpu, way in self._best_ways(images).items():
                    totals[gpu][way] += amount
        return _FileModules(counts, sizes)


@dataclass(frozen=True)
class _FileModules:
    """The modules and bytes of one file that each GPU uses."""

    counts: dict[Capability, Counter[Way]]
    sizes: dict[Capability, Counter[Way]]

    @cached_property
    def most(self) -> int:
        """The highest number of modules that any GPU uses."""
        return max(counts.total() for counts in self.counts.values())

    @cached_property
    def most_without_lto(self) -> int:
        """The highest number of modules that any GPU uses without a linker at run time."""
        return max(counts["native"] + counts["ptx"] for counts in self.counts.values())

    def of(self, gpu: Capability) -> Counter[Way]:
        """Return the modules that a GPU uses, by way."""
        return self.counts.get(gpu, Counter[Way]())

    def value(self, gpu: Capability, supported: Sequence[Way]) -> CoverageValue:
        """Return the best way in which a GPU uses the file, of those in which it is supported."""
        counts = self.of(gpu)
        best: CoverageValue = "partial" if counts.total() else "none"
        return next((way for way in supported if counts[way]), best)


def _supported_ways(files: Sequence[_FileModules]) -> dict[Capability, tuple[Way, ...]]:
    """Return the ways in which each GPU uses more of a package than leftovers."""
    supported: dict[Capability, tuple[Way, ...]] = {}
    modules, sizes = _totals(file.counts for file in files), _totals(file.sizes for file in files)
    for number, way in enumerate(WAYS, 1):
        shares = [_shares(totals, WAYS[:number]) for totals in (modules, sizes)]
        for gpu in modules:
            if min(share[gpu] for share in shares) >= _LEAST_SHARE:
                supported[gpu] = (*supported.get(gpu, ()), way)
    return supported


_Totals: TypeAlias = Mapping[Capability, Counter[Way]]


def _totals(parts: Iterable[_Totals]) -> _Totals:
    """Return the sums of all files."""
    totals: dict[Capability, Counter[Way]] = {}
    for part in parts:
        for gpu, counts in part.items():
            totals.setdefault(gpu, Counter()).update(counts)
    return totals


def _shares(totals: _Totals, ways: Sequence[Way]) -> dict[Capability, float]:
    """Return each GPU's part of all files, against the GPU that uses the most."""
    sums = {gpu: sum(counts[way] for way in ways) for gpu, counts in totals.items()}
    most = max((1, *sums.values()))
    return {gpu: total / most for gpu, total in sums.items()}


def _combine(files: Sequence[_FileModules], gpu: Capability, supported: Sequence[Way]) -> Coverage:
    """Return the coverage by all files, which is the weakest one's."""
    if not files:
        return Coverage(value="host-only")
    values = [file.value(gpu, supported) for file in files]
    covered = [value for value in values if value in WAYS]
    weakest: CoverageValue = max(covered, key=WAYS.index, default="none")
    value = weakest if len(covered) == len(values) else "partial"
    if set(values) == {"none"}:
        value = "none"
    counts = [file.of(gpu) for file in files]
    by_lto = [count["lto"] > 0 and not count["native"] + count["ptx"] for count in counts]
    return Coverage(
        value=value,
        files=len(covered),
        all_files=len(files),
        native=sum(count["native"] for count in counts),
        ptx=sum(count["ptx"] for count in counts),
        lto=sum(count["lto"] for count, is_lto in zip(counts, by_lto, strict=True) if is_lto),
        modules=sum(
            (0 if is_lto else file.most_without_lto) or file.most
            for file, is_lto in zip(files, by_lto, strict=True)
        ),
    )


def describe_share(coverage: Coverage) -> str:
    """Describe files and modules: `1 of 6 files, native 349 of 1,853 modules`."""
    ways = [(name, getattr(coverage, name)) for name in WAYS]
    used = ", ".join(f"{name} {count:,}" for name, count in ways if count)
    modules = f"{used or 0} of {coverage.modules:,} modules"
    if coverage.value in WAYS:
        return modules
    return f"{coverage.files} of {coverage.all_files} files, {modules}"


def describe_coverage(coverage: Coverage) -> str:
    """Describe coverage: `native 412 of 412 modules`, `partial: 1 of 6 files, ...`."""
    if not coverage.all_files:
        return coverage.value
    share = describe_share(coverage)
    return share if share.startswith(coverage.value) else f"{coverage.value}: {share}"
