"""Rules that relate device code to GPUs, and shares of modules.

The rules are those of NVIDIA's CUDA programming guide ("Binary compatibility" and "PTX
compatibility", and "Family-specific" and "Architecture-specific features"):

- SASS runs on GPUs of the same major number and the same or a later minor number. For Tegra parts,
  it runs only on the same capability: binaries are not compatible between Tegra and desktop parts,
  or between Tegra parts.
- `sm_XYa` runs on X.Y only, `sm_XYf` on X.Y and later GPUs of its family.
- PTX is compiled by the driver for any GPU of the same or a later capability, with `a` only for the
  same one, with `f` for its family. LTO code follows the same rule, but needs a linker.

A library contains kernels for some GPUs only, so no GPU uses all modules of a file. The share of a
GPU is relative to the GPU that uses the most modules. Files have leftovers of formerly supported
GPUs: cuTENSOR 2.8 has one module with PTX for 5.0, and 660 for 12.0. A GPU counts as
supported only with 4 % of the modules and 1 % of the bytes. In the releases of 2024 to 2026, the
least that a supported GPU has is 4.7 % (cuBLASLt 12.9 on 5.0) and 1.1 % (cuDNN 9.10 on 5.0). The
largest leftovers are 2.8 % (cuTENSOR 2.3 on 7.0), or 0.9 % of the bytes (cuSPARSE 13.5 on 7.0).
nvcc adds one empty image to libraries without kernels (libnppc, libcufftw), which does not count.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudaredist.primitives import Platform
from cudaredist.schema.features import FileCode
from cudaredist.schema.packageset import Coverage, CoverageValue
from cudaredist.schema.tables import Gpus
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import fact_of

Way: TypeAlias = Literal["native", "ptx", "lto"]
"""How a GPU runs an image: directly, compiled by the driver, or compiled by a linker."""

WAYS: tuple[Way, ...] = ("native", "ptx", "lto")
"""Best first."""

JETSON_PLATFORMS = (Platform("linux-aarch64"), Platform("linux-sbsa"))
"""Platforms with libraries for Jetsons. The first one is only for Jetsons."""

_LEAST_MODULES, _LEAST_BYTES = 0.04, 0.01
"""The least shares of a file's modules and bytes that a supported GPU has."""

_EMPTY_IMAGE = 2048
"""Limit for the bytes of an image without kernels: 872 in CUDA 12.9, 1,888 in CUDA 13.5."""

_WAYS: dict[str, Way] = {"sm": "native", "compute": "ptx", "lto": "lto"}
_architecture = re.compile(r"(sm|compute|lto)_([1-9][0-9]{1,3})([af]?)").fullmatch


def is_without_kernels(code: FileCode) -> bool:
    """Check if a file has only nvcc's empty image."""
    is_one = sum(code.modules.values()) == 1
    return is_one and max(code.unpacked.values(), default=0) <= _EMPTY_IMAGE


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
        self._known: dict[tuple[str, Capability], Way | None] = {}

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

    def cover(self, files: Sequence[FileCode], capabilities: Iterable[str]) -> dict[str, Coverage]:
        """Return the coverage of each capability by a package's files."""
        modules = [self._modules(code) for code in files if not is_without_kernels(code)]
        return {name: _combine(modules, Capability.parse(name).base) for name in capabilities}

    def _find_way(self, architecture: str, gpu: Capability) -> Way | None:
        match = _architecture(architecture)
        if match is None:
            return None
        way, target = _WAYS[match[1]], Capability.of_target(match[2], match[3])
        if target.base == gpu:
            return way
        if target.variant == "a" or gpu < target.base:
            return None
        is_family = target.major == gpu.major and self._is_same_line(target.base, gpu)
        if way != "native":
            return way if target.variant is None or is_family else None
        is_tegra = target.base in self._tegra or gpu in self._tegra
        return way if is_family and not is_tegra else None

    def _is_same_line(self, first: Capability, second: Capability) -> bool:
        return self._renamed.get(first) == self._renamed.get(second)

    def _modules(self, code: FileCode) -> "_FileModules":
        counts: dict[Capability, Counter[Way]] = {gpu: Counter() for gpu in self.capabilities}
        for text, count in code.modules.items():
            images = [image.partition("*")[0] for image in text.split()]
            for gpu, ways in counts.items():
                present = {self.way(image, gpu) for image in images}
                best = next((way for way in WAYS if way in present), None)
                if best is not None:
                    ways[best] += count
        sizes: dict[Capability, Counter[Way]] = {gpu: Counter() for gpu in self.capabilities}
        for image, size in code.unpacked.items():
            for gpu, ways in sizes.items():
                way = self.way(image, gpu)
                if way is not None:
                    ways[way] += size
        return _FileModules(counts, sizes)


@dataclass(frozen=True, slots=True)
class _FileModules:
    """The modules and bytes of one file that each GPU uses."""

    counts: dict[Capability, Counter[Way]]
    sizes: dict[Capability, Counter[Way]]

    def most(self, ways: Sequence[Way]) -> int:
        """Return the highest number of modules that any GPU uses."""
        return max(_total(counts, ways) for counts in self.counts.values())

    def value(self, gpu: Capability) -> CoverageValue:
        """Return the best way that is more than a leftover."""
        counts, sizes = self.of(gpu), self.sizes.get(gpu, Counter[Way]())
        for number, way in enumerate(WAYS, 1):
            ways = WAYS[:number]
            most_bytes = max(_total(each, ways) for each in self.sizes.values())
            if (
                counts[way]
                and _total(counts, ways) >= _LEAST_MODULES * self.most(ways)
                and _total(sizes, ways) >= _LEAST_BYTES * most_bytes
            ):
                return way
        return "partial" if counts.total() else "none"

    def of(self, gpu: Capability) -> Counter[Way]:
        """Return the modules that a GPU uses, by way."""
        return self.counts.get(gpu, Counter[Way]())


def _total(counts: Counter[Way], ways: Sequence[Way]) -> int:
    return sum(counts[way] for way in ways)


def _combine(files: Sequence[_FileModules], gpu: Capability) -> Coverage:
    """Return the coverage by all files, which is the weakest one's."""
    if not files:
        return Coverage(value="host-only")
    values = [file.value(gpu) for file in files]
    covered = [value for value in values if value in WAYS]
    weakest: CoverageValue = max(covered, key=_rank, default="none")
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
            (0 if is_lto else file.most(WAYS[:2])) or file.most(WAYS)
            for file, is_lto in zip(files, by_lto, strict=True)
        ),
    )


def _rank(value: CoverageValue) -> int:
    return WAYS.index(value) if value in WAYS else len(WAYS)


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
