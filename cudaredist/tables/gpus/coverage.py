"""Rules that relate device code to GPUs, and shares of modules.

The rules are those of NVIDIA's CUDA programming guide ("Binary compatibility" and "PTX
compatibility", and "Family-specific" and "Architecture-specific features"):

- SASS runs on GPUs of the same major number and the same or a later minor number. For Tegra parts,
  it runs only on the same capability: binaries are not compatible between Tegra and desktop parts,
  or between Tegra parts. Policy has exceptions (`desktop_code`): from CUDA 13.2 on, NVIDIA's builds
  for ARM servers are for Orin, without code for it. Whether Orin runs such code with earlier
  releases is unknown.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import Literal, Protocol, TypeAlias

from cudaredist.binaries.fatbin import empty_size
from cudaredist.formats.coverage import Coverage, CoverageValue
from cudaredist.formats.tables import Gpus, PolicyFact
from cudaredist.primitives import Platform, Version, parse_label
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

_FILES = 5000
"""Maximum number of files, and of packages, whose coverage is cached."""

_Items: TypeAlias = tuple[tuple[str, int], ...]
"""Amounts by images, such as `sm_80 sm_90*2`."""

_WAYS: dict[str, Way] = {"sm": "native", "compute": "ptx", "lto": "lto"}
_architecture = re.compile(r"(sm|compute|lto)_([1-9][0-9]{1,3})([af]?)").fullmatch


def is_without_kernels(modules: _Items, unpacked: _Items) -> bool:
    """Check if a file has only empty images, which nvcc adds to libraries without kernels."""
    counts: dict[str, int] = {}
    sizes = dict(unpacked)
    for text, count in modules:
        for name, times in _images(text):
            counts[name] = counts.get(name, 0) + count * times
    return all(sizes.get(name, 0) <= _empty_size(name) * count for name, count in counts.items())


@cache
def _images(text: str) -> Sequence[tuple[str, int]]:
    """Return the images of a module, each with its count."""
    parts = (image.partition("*") for image in text.split())
    return [(name, int(times or 1)) for name, _, times in parts]


@cache
def _empty_size(architecture: str) -> int:
    """Return the limit for the bytes of an image without kernels."""
    match = _architecture(architecture)
    return 0 if match is None else empty_size(match[1], int(match[2]))


@cache
def _base_of(name: str) -> Capability:
    """Return a capability without its letter."""
    return Capability.parse(name).base


def _newest(architectures: Sequence[str]) -> set[str]:
    """Return the architectures with the highest number, with and without a letter."""
    numbers = {name: int(match[2]) for name in architectures if (match := _architecture(name))}
    newest = max(numbers.values(), default=0)
    return {name for name, number in numbers.items() if number == newest}


def cuda_major_of(redist: str, label: Version, variant: str | None) -> int | None:
    """Return the CUDA major of an archive, or None if unknown."""
    if variant is not None:
        return Version.parse(variant.removeprefix("cuda")).components[0]
    if redist == CUDA:
        return label.components[0]
    return label.suffix[0] if label.suffix else None


class FileImages(Protocol):
    """Device code in a file: that of a feature file, or the same from the index."""

    @property
    def modules(self) -> Mapping[str, int]:
        """Number of modules by the architectures of their images."""

    @property
    def unpacked(self) -> Mapping[str, int]:
        """Decompressed bytes of the images by architecture."""


class CoverageRules:
    """The rules, with Tegra parts and renames from the table."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        plain = {
            Capability.parse(name): entry
            for name, entry in gpus.capabilities.items()
            if entry.variant is None
        }
        self.capabilities = tuple(sorted(plain))
        self._positions = {gpu: position for position, gpu in enumerate(self.capabilities)}
        self._tegra = {capability for capability, entry in plain.items() if entry.jetson}
        self._families = {capability: entry.family for capability, entry in plain.items()}
        self._renamed = {
            capability: fact_of(entry.policy, "renamed_to") for capability, entry in plain.items()
        }
        self._desktop_code = {
            capability: fact
            for capability, entry in plain.items()
            for fact in entry.policy
            if fact.field == "desktop_code"
        }
        self._first_cuda = {capability: entry.first_cuda for capability, entry in plain.items()}
        self._last_cuda = {capability: entry.last_cuda for capability, entry in plain.items()}
        self._last_major = {
            capability: Version.parse(last).components[0]
            for capability, last in self._last_cuda.items()
            if last is not None
        }
        self.way = cache(self._find_way)
        self._best_ways = cache(self._find_best_ways)
        # Many package sets have the same files.
        self._modules = lru_cache(_FILES)(self._count_modules)
        self._supported = lru_cache(_FILES)(_supported_ways)
        self._coverage = lru_cache(_FILES * len(plain))(self._combine)

    def first_cuda(self, gpu: str) -> str | None:
        """Return the first CUDA minor with a capability, None if it is unknown."""
        return self._first_cuda.get(Capability.parse(gpu).base)

    def capabilities_on(self, platform: Platform) -> tuple[Capability, ...]:
        """Return the capabilities of GPUs on a platform."""
        has_tegra, has_desktop = platform in JETSON_PLATFORMS, platform != JETSON_PLATFORMS[0]
        return tuple(
            capability
            for capability in self.capabilities
            if (has_tegra if capability in self._tegra else has_desktop)
        )

    def last_cuda(self, gpu: str) -> str | None:
        """Return the last CUDA minor with a capability, None if the newest one has it."""
        return self._last_cuda.get(Capability.parse(gpu).base)

    def newest_release(self, cuda: int | None) -> Version | None:
        """Return the newest CUDA release of a major in the table of GPUs."""
        labels = map(parse_label, self._gpus.sources)
        return max((label for label in labels if label.components[0] == cuda), default=None)

    def desktop_code(self, gpu: str) -> PolicyFact | None:
        """Return policy's fact that a Tegra part runs code for other GPUs, None for others."""
        return self._desktop_code.get(Capability.parse(gpu).base)

    def runs_desktop_code(self, gpu: str, cuda: Version | None) -> bool:
        """Check if a Tegra part is known to run code for other GPUs with a CUDA release."""
        fact = self.desktop_code(gpu)
        if fact is None or cuda is None:
            return False
        return Version.parse(cuda.line) >= Version.parse(fact.value)

    @cached_property
    def without_tegra(self) -> "CoverageRules":
        """The rules if Tegra parts with policy's fact run all code for their architecture."""
        entries = dict(self._gpus.capabilities)
        for name, entry in entries.items():
            if Capability.parse(name).base in self._desktop_code:
                others = tuple(fact for fact in entry.policy if fact.field != "desktop_code")
                entries[name] = entry.model_copy(update={"jetson": False, "policy": others})
        return CoverageRules(self._gpus.model_copy(update={"capabilities": entries}))

    def rules_for(self, part: Coverage) -> "CoverageRules":
        """Return the rules by which a coverage was determined."""
        return self.without_tegra if part.by_desktop_code else self

    def with_desktop_code(
        self,
        cover: "Callable[[CoverageRules, Sequence[str]], dict[str, Coverage]]",
        capabilities: Iterable[str],
        release: Version | None = None,
    ) -> dict[str, Coverage]:
        """Return the coverage of capabilities, if Tegra parts run code for other GPUs, too.

        `cover` returns the coverage by some rules. `release` is the CUDA release, if it is known.
        Without it, or before the release of policy's fact, the coverage by such code is unknown.
        """
        parts = cover(self, tuple(capabilities))
        lacking = [
            name
            for name, part in parts.items()
            if part.value in {"none", "partial"} and self.desktop_code(name) is not None
        ]
        if not lacking:
            return parts
        for name, other in cover(self.without_tegra, lacking).items():
            if other.value in {"native", "ptx"}:
                is_known = self.runs_desktop_code(name, release)
                part = other if is_known else Coverage(value="unknown")
                parts[name] = part.model_copy(update={"by_desktop_code": True})
        return parts

    def ways(self, module: str, gpu: Capability) -> set[Way]:
        """Return the ways in which a GPU runs a module."""
        found = (self.way(name, gpu) for name, _ in _images(module))
        return {way for way in found if way is not None}

    def runs(self, module: str, gpu: Capability) -> bool:
        """Check if a GPU runs a module, natively or from PTX."""
        return not self.ways(module, gpu).isdisjoint({"native", "ptx"})

    def is_specific(self, module: str) -> bool:
        """Check if all images of a module are for one architecture or family only."""
        return not any(name[-1].isdecimal() for name, _ in _images(module))

    def is_same_architecture(self, module: str, gpu: Capability) -> bool:
        """Check if a module has code for GPUs of the same architecture."""
        for name, _ in _images(module):
            match = _architecture(name)
            if match is not None and not match[3]:
                target = Capability.of_target(match[2], "")
                family = self._families.get(target)
                if target.major == gpu.major and family == self._families.get(gpu):
                    return True
        return False

    def cover(
        self,
        files: Sequence[FileImages],
        capabilities: Iterable[str],
        cuda: int | None = None,
        release: Version | None = None,
    ) -> dict[str, Coverage]:
        """Return the coverage of each capability by the files of one package.

        `cuda` is the CUDA major that the package is built for, and `release` the CUDA release that
        it is used with, if they are known.
        """
        return self.with_desktop_code(
            lambda rules, names: rules.cover_natively(files, names, cuda), capabilities, release
        )

    def cover_natively(
        self, files: Sequence[FileImages], capabilities: Iterable[str], cuda: int | None = None
    ) -> dict[str, Coverage]:
        """Return the coverage as `cover` does, by code for the capabilities themselves."""
        amounts = ((tuple(file.modules.items()), tuple(file.unpacked.items())) for file in files)
        used = tuple(filter(None, (self._modules(*of_file) for of_file in amounts)))
        return {name: self._coverage(used, _base_of(name), cuda) for name in capabilities}

    def used_images(
        self, file: FileImages, capabilities: Iterable[str], *, keeps_portable: bool
    ) -> frozenset[str]:
        """Return the architectures of a file whose images some GPUs may use.

        In each module, a GPU uses the newest machine code that it runs, or else the newest PTX.
        Code for a linker is used if a GPU can use it. `keeps_portable` includes the newest PTX.
        """
        if self._desktop_code:
            # Code that is possibly used counts.
            rules = self.without_tegra
            return rules.used_images(file, capabilities, keeps_portable=keeps_portable)
        gpus = [Capability.parse(name).base for name in capabilities]
        used: set[str] = set()
        for text in file.modules:
            names = [name for name, _ in _images(text)]
            used |= {name for name in names for gpu in gpus if self.way(name, gpu) == "lto"}
            for gpu in gpus:
                native = [name for name in names if self.way(name, gpu) == "native"]
                portable = [name for name in names if self.way(name, gpu) == "ptx"]
                used |= _newest(native or portable)
            if keeps_portable:
                used |= _newest([name for name in names if name.startswith("compute_")])
        return frozenset(used)

    def _find_way(self, architecture: str, gpu: Capability) -> Way | None:
        match = _architecture(architecture)
        if match is None:
            return None
        way, target = _WAYS[match[1]], Capability.of_target(match[2], match[3])
        is_same_line = self._renamed.get(target.base) == self._renamed.get(gpu)
        is_family = target.major == gpu.major and is_same_line
        if way == "native" and target.base != gpu:
            # Machine code without a letter runs in its family, but not on or from Tegra parts.
            is_family &= self._tegra.isdisjoint({target.base, gpu})
            target = target._replace(suffix=target.suffix or "f")
        return way if target.ptx_runs_on(gpu, is_family=is_family) else None

    def _find_best_ways(self, images: str) -> Sequence[tuple[int, int]]:
        """Return the index of the best way and of the GPU, for each GPU that runs a module."""
        names = [name for name, _ in _images(images)]
        return [
            (min(ways), position)
            for position, gpu in enumerate(self.capabilities)
            if (ways := [WAYS.index(way) for name in names if (way := self.way(name, gpu))])
        ]

    def _count_modules(self, *amounts: _Items) -> "_FileModules | None":
        """Return the modules and bytes that each GPU uses, None without kernels."""
        if is_without_kernels(*amounts):
            return None
        row = [0] * (len(self.capabilities) + 1)
        totals = [[row.copy() for _ in WAYS] for _ in amounts]
        for total, of_images in zip(totals, amounts, strict=True):
            for images, amount in of_images:
                for way, gpu in self._best_ways(images):
                    total[way][gpu] += amount
        return _FileModules(*totals)

    def _combine(
        self, files: tuple["_FileModules", ...], gpu: Capability, cuda: int | None
    ) -> Coverage:
        """Combine the coverage of all files. The weakest file determines it."""
        if not files:
            return Coverage(value="host-only")
        if cuda is not None and self._last_major.get(gpu, cuda) < cuda:
            return Coverage(value="none")
        position = self._positions.get(gpu, len(self.capabilities))
        counts = [file.by_gpu[position] for file in files]
        supported = self._supported(files)[position]
        values = [_value(of_file, supported) for of_file in counts]
        covered = [value for value in values if value in WAYS]
        weakest: CoverageValue = max(covered, key=WAYS.index, default="none")
        value = weakest if len(covered) == len(values) else "partial"
        if set(values) == {"none"}:
            value = "none"
        by_lto = [lto > 0 and not native + ptx for native, ptx, lto in counts]
        native, ptx, _ = _sums(counts)
        return Coverage(
            value=value,
            files=len(covered),
            all_files=len(files),
            native=native,
            ptx=ptx,
            lto=sum(lto for (*_, lto), is_lto in zip(counts, by_lto, strict=True) if is_lto),
            modules=sum(
                (0 if is_lto else file.most_without_lto) or file.most
                for file, is_lto in zip(files, by_lto, strict=True)
            ),
        )


@dataclass(frozen=True, eq=False)
class _FileModules:
    """The modules and bytes of one file by way, then by GPU.

    The last number is for GPUs that are not in the table.
    """

    counts: Sequence[Sequence[int]]
    sizes: Sequence[Sequence[int]]

    @cached_property
    def by_gpu(self) -> Sequence[tuple[int, ...]]:
        """The modules by GPU, then by way."""
        return [*zip(*self.counts, strict=True)]

    @cached_property
    def most(self) -> int:
        """The highest number of modules that any GPU uses."""
        return max(_sums(self.counts))

    @cached_property
    def most_without_lto(self) -> int:
        """The highest number of modules that any GPU uses without a linker at run time."""
        return max(_sums(self.counts[:2]))


def _supported_ways(files: Sequence[_FileModules]) -> Sequence[Sequence[Way]]:
    """Return the ways in which each GPU uses enough modules and bytes of all files."""
    modules = _shares([file.counts for file in files])
    sizes = _shares([file.sizes for file in files])
    return [
        [way for way, share in zip(WAYS, shares, strict=True) if min(share) >= _LEAST_SHARE]
        for shares in zip(*map(zip, modules, sizes), strict=True)
    ]


def _shares(amounts: Iterable[Sequence[Sequence[int]]]) -> Iterator[list[float]]:
    """Yield the share of each GPU in the amounts of all files, for each way.

    The amount of a way includes better ways. The GPU that uses the most has the share 1.
    """
    for of_gpus in accumulate(map(_sums, zip(*amounts, strict=True)), lambda *rows: _sums(rows)):
        most = max(1, *of_gpus)
        yield [amount / most for amount in of_gpus]


def _sums(rows: Iterable[Sequence[int]]) -> list[int]:
    return [*map(sum, zip(*rows, strict=True))]


def _value(counts: Sequence[int], supported: Sequence[Way]) -> CoverageValue:
    """Return the best supported way in which a GPU uses a file."""
    best: CoverageValue = "partial" if any(counts) else "none"
    return next(
        (way for way, count in zip(WAYS, counts, strict=True) if count and way in supported), best
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
        by = " (only code for other GPUs)" if coverage.by_desktop_code else ""
        return f"{coverage.value}{by}"
    share = describe_share(coverage)
    share += " for other GPUs" if coverage.by_desktop_code else ""
    return share if share.startswith(coverage.value) else f"{coverage.value}: {share}"
