"""Modules of device code that a GPU does not run.

Libraries contain code for some GPUs only, and select it when they run. A module is certainly
selected if all of its images are for one architecture or family (`sm_90a`, `sm_100f`), or if it is
outside of the sections whose code is registered when the library is loaded. So is a cubin. Other
modules that the GPU does not run are critical in these cases:

- They are in a program that does not belong to a package.
- They are for other GPUs of the same architecture.
- They are more than those that the GPU runs, in the files of the package with code for it.

The section `__nv_relfatbin` of a linked file has the input of the device linker. If no linked code
is for a GPU, the driver links PTX and machine code of the input again when it loads the file, but
not LTO code ("JIT Linking Support" in NVIDIA's documentation of nvcc).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cudaredist.binaries.file_facts import Binary
from cudaredist.primitives import natural_order
from cudaredist.programs.program import ProgramFile
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules

_LINKER_INPUT = frozenset({"__nv_relfatbin", "__nv_rel"})
"""Sections with the input of the device linker. Windows shortens the name."""


class CodeModules(NamedTuple):
    """The modules with kernels of one file, by the architectures of their images."""

    registered: Mapping[str, int]
    """Those in sections whose code is registered when the file is loaded."""
    selected: Mapping[str, int]
    """Those in other sections. The file selects and loads some of them."""
    linker_input: Mapping[str, int]
    """The input of the device linker, in a file that it linked."""
    cubins: Mapping[str, int]

    @property
    def loaded(self) -> Counter[str]:
        """The modules that GPUs may run."""
        return Counter(self.registered) + Counter(self.selected) + Counter(self.cubins)


def modules_of(binary: Binary) -> CodeModules:
    """Return the modules of a file. Objects and archives are not linked."""
    registered, selected, linker_input = Counter[str](), Counter[str](), Counter[str]()
    for section in binary.device_code:
        if section.section in _LINKER_INPUT and binary.kind in {"elf", "pe"}:
            linker_input.update(section.kernels)
        elif section.is_declared or not section.section:
            registered.update(section.kernels)
        else:
            selected.update(section.kernels)
    if not registered:
        registered, linker_input = linker_input, registered
    cubins = {} if binary.cubins is None else binary.cubins.modules
    return CodeModules(registered, selected, linker_input, cubins)


class FileGap(NamedTuple):
    """The modules of a file that a GPU does not run."""

    path: str
    architectures: Sequence[str]
    """Those of their images."""
    lacking: int
    """The number of modules that the GPU does not run."""
    all_modules: int
    is_critical: bool

    @property
    def title(self) -> str:
        """The file and the architectures, such as `1 of 2 modules of a.so (sm_89)`."""
        title = f"{self.path} ({' '.join(self.architectures)})"
        if self.lacking == self.all_modules:
            return title
        return f"{self.lacking:,} of {self.all_modules:,} modules of {title}"


class GpuGaps(NamedTuple):
    """The device code of a program or package that a GPU runs, and that it does not run."""

    native: int
    """The number of modules that it runs unchanged."""
    ptx: int
    """The number of modules that the driver compiles or links for it."""
    modules: int
    files: tuple[FileGap, ...]

    @property
    def runs(self) -> int:
        """The number of modules that it runs."""
        return self.native + self.ptx

    @property
    def is_critical(self) -> bool:
        """Whether the program or package does not work on the GPU."""
        return not self.runs or any(gap.is_critical for gap in self.files)


class _FileModules(NamedTuple):
    """The modules of one file with device code."""

    path: str
    native: int
    ptx: int
    general: Counter[str]
    """Those that the GPU does not run."""
    selected: Counter[str]
    """Those that the GPU does not run, but that the program certainly selects by the GPU."""
    cubins: Counter[str]
    """The cubins that the GPU does not run."""

    @property
    def runs(self) -> int:
        """The number of modules that the GPU runs."""
        return self.native + self.ptx

    @property
    def lacking(self) -> Counter[str]:
        """All modules that the GPU does not run."""
        return self.general + self.selected + self.cubins

    @property
    def total(self) -> int:
        """The number of all modules."""
        return self.runs + self.lacking.total()


def find_gaps(
    files: Iterable[ProgramFile], gpu: str, rules: CoverageRules, *, is_package: bool
) -> GpuGaps | None:
    """Return the code that a GPU does not run, None if there is no device code."""
    capability = Capability.parse(gpu).base
    with_code = (file for file in files if file.binary.device_code or file.binary.cubins)
    split = [_split(file, capability, rules) for file in with_code]
    parts = [part for part in split if part.total]
    if not parts:
        return None
    runs = sum(part.runs for part in parts)
    runs_most = runs > sum(part.general.total() for part in parts if part.runs)
    gaps = []
    for part in parts:
        is_critical = bool(part.general)
        if is_package:
            is_same = any(rules.is_same_architecture(name, capability) for name in part.general)
            is_critical = is_same or bool(part.general and part.runs and not runs_most)
        # A file without any code for the GPU is named, even if the program selects it.
        is_gap = part.general or (part.selected and not part.runs) or (part.cubins and not runs)
        if is_gap:
            lacking = part.lacking
            names = {name.partition("*")[0] for module in lacking for name in module.split()}
            architectures = sorted(names, key=natural_order)
            count = lacking.total()
            gaps.append(FileGap(part.path, architectures, count, part.total, is_critical))
    # Files without any code for the GPU are first.
    gaps.sort(key=lambda gap: gap.lacking < gap.all_modules)
    return GpuGaps(
        native=sum(part.native for part in parts),
        ptx=sum(part.ptx for part in parts),
        modules=sum(part.total for part in parts),
        files=tuple(gaps),
    )


def _split(file: ProgramFile, gpu: Capability, rules: CoverageRules) -> _FileModules:
    """Return the modules of a file by whether a GPU runs them."""
    modules = modules_of(file.binary)
    native = ptx = 0
    general, selected, cubins = Counter[str](), Counter[str](), Counter[str]()
    for module, count in modules.loaded.items():
        ways = rules.ways(module, gpu)
        if "native" in ways:
            native += count
        elif "ptx" in ways:
            ptx += count
        else:
            # A module may be both registered and in another section.
            cubins[module] = modules.cubins.get(module, 0)
            rest = count - cubins[module]
            certain = rest if rules.is_specific(module) else modules.selected.get(module, 0)
            selected[module], general[module] = certain, rest - certain
    linker_input = modules.linker_input
    if linker_input and all(rules.runs(module, gpu) for module in linker_input):
        ptx += general.total()
        general.clear()
    path = file.display_path
    return _FileModules(path, native, ptx, +general, +selected, +cubins)
