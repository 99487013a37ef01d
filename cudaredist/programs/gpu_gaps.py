"""Modules of device code that a GPU does not run.

Libraries contain code for some GPUs only, and select it when they run. A module is certainly
selected if all of its images are for one architecture or family (`sm_90a`, `sm_100f`), and so is a
cubin. Other modules that the GPU does not run are critical in these cases:

- They are in a program that does not belong to a package.
- They are for other GPUs of the same architecture.
- They are more than those that the GPU runs, in the files of the package with code for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cudaredist.binaries.file_facts import DeviceImages
from cudaredist.primitives import natural_order
from cudaredist.programs.program import ProgramFile
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules


class FileGap(NamedTuple):
    """The modules of a file that a GPU does not run."""

    path: str
    modules: Mapping[str, int]
    """Their numbers by the architectures of their images."""
    all_modules: int
    is_critical: bool

    @property
    def title(self) -> str:
        """The file and the architectures, such as `1 of 2 modules of a.so (sm_89)`."""
        names = {name.partition("*")[0] for module in self.modules for name in module.split()}
        title = f"{self.path} ({' '.join(sorted(names, key=natural_order))})"
        count = sum(self.modules.values())
        whole = count == self.all_modules
        return title if whole else f"{count:,} of {self.all_modules:,} modules of {title}"


class GpuGaps(NamedTuple):
    """The device code of a program or package that a GPU does not run."""

    runs: int
    """The number of modules that it runs."""
    files: tuple[FileGap, ...]

    @property
    def is_critical(self) -> bool:
        """Whether the program or package does not work on the GPU."""
        return not self.runs or any(gap.is_critical for gap in self.files)


class _FileModules(NamedTuple):
    """The modules of one file with device code."""

    path: str
    runs: int
    general: dict[str, int]
    """Those that the GPU does not run."""
    selected: dict[str, int]
    """Those that the GPU does not run, but that the program certainly selects by the GPU."""
    cubins: dict[str, int]
    """The cubins that the GPU does not run."""

    @property
    def total(self) -> int:
        """The number of all modules."""
        parts = (self.general, self.selected, self.cubins)
        return self.runs + sum(sum(part.values()) for part in parts)


def find_gaps(
    files: Iterable[ProgramFile], gpu: str, rules: CoverageRules, *, is_package: bool
) -> GpuGaps | None:
    """Return the code that a GPU does not run, None if there is no device code."""
    capability = Capability.parse(gpu).base
    with_code = (file for file in files if file.binary.images or file.binary.cubins)
    split = [_split(file, capability, rules) for file in with_code]
    parts = [part for part in split if part.total]
    if not parts:
        return None
    runs = sum(part.runs for part in parts)
    lacking = sum(sum(part.general.values()) for part in parts if part.runs)
    runs_most = runs > lacking
    gaps = []
    for part in parts:
        is_critical = bool(part.general)
        if is_package:
            is_same = any(rules.is_same_architecture(name, capability) for name in part.general)
            is_critical = is_same or bool(part.general and part.runs and not runs_most)
        # A file without any code for the GPU is named, even if the program selects it.
        modules = Counter(part.general)
        if not part.runs:
            modules.update(part.selected)
        if not runs:
            modules.update(part.cubins)
        if modules:
            gaps.append(FileGap(part.path, modules, part.total, is_critical))
    # Files without any code for the GPU are first.
    gaps.sort(key=lambda gap: sum(gap.modules.values()) < gap.all_modules)
    return GpuGaps(runs, tuple(gaps))


def _split(file: ProgramFile, gpu: Capability, rules: CoverageRules) -> _FileModules:
    """Return the modules of a file by whether a GPU runs them."""
    runs = 0
    general, selected, cubins = dict[str, int](), dict[str, int](), dict[str, int]()
    for module, count in _modules(file.binary.images):
        if rules.runs(module, gpu):
            runs += count
        elif rules.is_specific(module):
            selected[module] = count
        else:
            general[module] = count
    for module, count in _modules(file.binary.cubins):
        if rules.runs(module, gpu):
            runs += count
        else:
            cubins[module] = count
    return _FileModules(file.display_path, runs, general, selected, cubins)


def _modules(images: DeviceImages | None) -> Iterator[tuple[str, int]]:
    """Yield the modules of device code with kernels."""
    if images is None:
        return
    for module, count in images.modules.items():
        with_kernels = count - images.empty.get(module, 0)
        if with_kernels > 0:
            yield module, with_kernels
