"""Coverage of GPUs by the device code of a program or package.

NVIDIA's libraries select their kernels by the GPU, so shares of their modules decide, as in package
sets. Other programs also need all modules that they do not select (see `gpu_gaps`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cudaredist.binaries.file_facts import DeviceImages
from cudaredist.formats.coverage import Coverage
from cudaredist.formats.features import FileCode
from cudaredist.primitives import Version
from cudaredist.programs.gpu_gaps import find_gaps, modules_of
from cudaredist.programs.program import NvidiaBuild, ProgramFile
from cudaredist.tables.gpus.coverage import CoverageRules

RUNS = frozenset({"native", "ptx"})
"""Coverage by device code that runs without a linker."""


class Code(NamedTuple):
    """The files with device code that are loaded together."""

    files: Sequence[ProgramFile]
    nvidia: NvidiaBuild | None = None
    """The build of NVIDIA's libraries, if the files are these."""


def cover(
    code: Code, gpus: Sequence[str], rules: CoverageRules | None, cuda: Version | None = None
) -> dict[str, Coverage] | None:
    """Return the coverage of GPUs by a program.

    It is unknown if no readable file has device code and another one cannot be read. `cuda` is the
    CUDA release that the program is used with, if it is known.
    """
    if rules is None:
        return None
    return rules.with_desktop_code(lambda own, names: _cover(code, names, own), gpus, cuda)


def _cover(code: Code, gpus: Sequence[str], rules: CoverageRules) -> dict[str, Coverage]:
    """Return the coverage of GPUs by a program's code for them."""
    files = code.files
    codes = _codes_of_nvidia(files) if code.nvidia else codes_of(files)
    native = (file.binary for file in files if file.binary.kind in {"elf", "pe"})
    if not codes and any("needed" in binary.unread for binary in native):
        return {name: Coverage(value="unknown") for name in gpus}
    if code.nvidia is not None:
        return rules.cover_natively(codes, gpus, code.nvidia.cuda)
    return {
        name: _with_gaps(part, files, name, rules)
        for name, part in rules.cover_natively(codes, gpus).items()
    }


def _with_gaps(
    part: Coverage, files: Sequence[ProgramFile], gpu: str, rules: CoverageRules
) -> Coverage:
    """Return the coverage of a program that needs all modules that it does not select."""
    is_package = all(file.is_packaged for file in files)
    gaps = find_gaps(files, gpu, rules, is_package=is_package)
    if gaps is None:
        return part
    counts = {"native": gaps.native, "ptx": gaps.ptx, "modules": gaps.modules}
    if part.value in RUNS and gaps.is_critical:
        return part.model_copy(update={"value": "partial", **counts})
    if part.value not in RUNS and gaps.runs and not gaps.files:
        # For example, the driver links the code when it loads the file.
        value = "ptx" if gaps.ptx else "native"
        return part.model_copy(update={"value": value, "files": part.all_files, **counts})
    return part


def codes_of(program: Iterable[ProgramFile]) -> list[FileCode]:
    """Return the code with kernels of each file that has any. All files with only cubins are one.

    The input of the device linker does not count in linked files.
    """
    codes: list[FileCode] = []
    only_cubins: list[DeviceImages] = []
    for file in program:
        images, cubins = file.binary.images, file.binary.cubins
        if images is not None:
            summed = _sum([images, cubins] if cubins else [images])
            modules = modules_of(file.binary).loaded
            codes.append(FileCode.of("lib", DeviceImages(sizes=summed.sizes, modules=modules)))
        elif cubins is not None:
            only_cubins.append(cubins)
    if only_cubins:
        codes.append(FileCode.of("lib", _sum(only_cubins)))
    return codes


def _codes_of_nvidia(program: Iterable[ProgramFile]) -> list[FileCode]:
    """Return the device code of NVIDIA's files, as the features of their archives have it."""
    found = (file.binary.images for file in program)
    return [FileCode.of("lib", images) for images in found if images is not None]


def _sum(parts: Sequence[DeviceImages]) -> DeviceImages:
    """Return device code of several files or kinds as one."""
    packed, unpacked, modules = Counter[str](), Counter[str](), Counter[str]()
    for part in parts:
        for name, (packed_size, unpacked_size) in part.sizes.items():
            packed[name] += packed_size
            unpacked[name] += unpacked_size
        modules.update(part.modules)
    sizes = {name: (packed[name], unpacked[name]) for name in packed}
    return DeviceImages(sizes=sizes, modules=dict(modules))
