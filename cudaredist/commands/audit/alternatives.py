"""Coverage of GPUs by a program, and by files of which it loads those of one CUDA release."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import get_args

from cudaredist.cli.text import grouped
from cudaredist.commands.audit.program import ProgramFile, paths_of
from cudaredist.commands.audit.report import AuditedAlternative
from cudaredist.formats.features import FileCode
from cudaredist.formats.packageset import Coverage, CoverageValue
from cudaredist.primitives import Platform, Version
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules

_BEST_FIRST = get_args(CoverageValue)
_RELEASE = re.compile(r"(?<![a-z])(cu(?:da)?[-_.]?)([0-9]{2}\.?[0-9]?)(?![0-9])", re.IGNORECASE)


def files_by_release(program: Iterable[ProgramFile]) -> dict[str, list[ProgramFile]]:
    """Return the files of each alternative by release, `118` for `libx_cuda118.so`.

    The paths of alternatives differ only by the release.
    """
    by_path: dict[str, dict[str, ProgramFile]] = defaultdict(dict)
    for file in program:
        match = _RELEASE.search(file.display_path)
        if match is not None:
            by_path[_RELEASE.sub(r"\1*", file.display_path)][match[2]] = file
    found = grouped(item for files in by_path.values() if len(files) > 1 for item in files.items())
    return dict(sorted(found.items()))


def alternatives(
    program: Sequence[ProgramFile], gpus: Sequence[str], rules: CoverageRules | None
) -> tuple[AuditedAlternative, ...]:
    """Return the coverage of each alternative, together with the files that have none."""
    by_release = files_by_release(file for file in program if file.binary.images)
    all_files = {file for files in by_release.values() for file in files}
    common = [file for file in program if file not in all_files]
    return tuple(
        AuditedAlternative(
            cuda_major=int(release[:2]),
            files=paths_of(files),
            coverage=cover([*common, *files], gpus, rules) or {},
        )
        for release, files in by_release.items()
    )


def gpus_on(
    platforms: Iterable[str], required: Iterable[str], rules: CoverageRules | None
) -> list[str]:
    """Return the capabilities of the GPUs on some platforms, and required ones."""
    if rules is None:
        return []
    known = [gpu for name in platforms for gpu in rules.capabilities_on(Platform(name))]
    chosen = {*(known or rules.capabilities), *map(Capability.parse, required)}
    return [str(gpu) for gpu in sorted(chosen) if gpu in rules.capabilities]


def cover(
    program: Sequence[ProgramFile], gpus: Sequence[str], rules: CoverageRules | None
) -> dict[str, Coverage] | None:
    """Return the coverage of GPUs by a program.

    It is unknown if no readable file has device code and another one cannot be read.
    """
    if rules is None:
        return None
    codes = codes_of(program)
    native = (file.binary for file in program if file.binary.kind in {"elf", "pe"})
    if not codes and any("needed" in binary.unread for binary in native):
        return {name: Coverage(value="unknown") for name in gpus}
    return rules.cover(codes, gpus)


def codes_of(program: Iterable[ProgramFile]) -> list[FileCode]:
    """Return the device code of each file that has any."""
    return [FileCode.of("lib", file.binary.images) for file in program if file.binary.images]


def best_coverage(parts: Sequence[AuditedAlternative], cuda: Version | None) -> dict[str, Coverage]:
    """Return the best coverage of each GPU, by the alternatives for a CUDA major if there are any.

    It is empty without alternatives.
    """
    fitting = [part for part in parts if cuda is None or part.cuda_major == cuda.components[0]]
    chosen = [part.coverage for part in fitting or parts]
    return {
        gpu: min((each[gpu] for each in chosen), key=lambda part: _BEST_FIRST.index(part.value))
        for gpu in (chosen[0] if chosen else ())
    }
