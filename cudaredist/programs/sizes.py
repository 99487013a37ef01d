"""The sizes of a program's files and of their device code."""

from collections import Counter
from collections.abc import Collection, Iterable

from cudaredist.formats.features import FileCode
from cudaredist.primitives import natural_order
from cudaredist.programs.gpu_coverage import codes_of
from cudaredist.programs.program import ProgramFile
from cudaredist.programs.report import AuditedSizes, FileSizes
from cudaredist.tables.gpus.coverage import CoverageRules


def audited_sizes(
    files: Iterable[ProgramFile], gpus: Collection[str], rules: CoverageRules | None
) -> AuditedSizes:
    """Return the sizes of files, largest first, and the device code that some GPUs do not use."""
    sizes: list[FileSizes] = []
    total = Counter[str]()
    unknown: list[str] = []
    unused = 0
    for file in files:
        code = Counter[str]()
        unused_of_file: int | None = 0 if gpus and rules is not None else None
        for part in codes_of([file]):
            # Images that are compressed together have no size of their own.
            if 0 in part.bytes.values():
                unknown.append(file.display_path)
                unused_of_file = None
                continue
            code.update(part.bytes)
            if unused_of_file is not None and rules is not None:
                unused_of_file += _unused(part, gpus, rules)
        total.update(code)
        unused += unused_of_file or 0
        sizes.append(
            FileSizes(
                path=file.display_path,
                size=file.size,
                code=code.total(),
                unused=unused_of_file,
            )
        )
    sizes.sort(key=lambda each: (-each.size, each.path))
    return AuditedSizes(
        size=sum(each.size for each in sizes),
        code={name: total[name] for name in sorted(total, key=natural_order)},
        gpus=tuple(gpus),
        unused=unused if gpus and rules is not None else None,
        unknown=tuple(sorted(unknown)),
        files=tuple(sizes),
    )


def _unused(code: FileCode, gpus: Collection[str], rules: CoverageRules) -> int:
    used = rules.used_images(code, gpus, keeps_portable=False)
    return sum(size for name, size in code.bytes.items() if name not in used)
