"""Files of a program for different CUDA releases, and their coverage of GPUs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, get_args

from cudaredist.formats.coverage import Coverage, CoverageValue
from cudaredist.primitives import Platform, Version
from cudaredist.programs.gpu_coverage import Code, cover
from cudaredist.programs.program import ProgramFile, paths_of
from cudaredist.programs.report import AuditedAlternative
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules

_BEST_FIRST = get_args(CoverageValue)
_RELEASE = re.compile(r"(?<![a-z])(cu(?:da)?[-_.]?)([0-9]{2}\.?[0-9]?)(?![0-9])", re.IGNORECASE)


def groups_of_alternatives(program: Iterable[ProgramFile]) -> list[dict[str, ProgramFile]]:
    """Return groups of files for different CUDA releases, each by release.

    Their paths differ only by the release. That of `libx_cuda118.so` is `118`.
    """
    by_path: dict[str, dict[str, ProgramFile]] = defaultdict(dict)
    for file in program:
        pattern, release = split_release(file.display_path)
        if release:
            by_path[pattern][release] = file
    return [files for files in by_path.values() if len(files) > 1]


def split_release(name: str) -> tuple[str, str]:
    """Return a name without its CUDA release, and the release, which is empty if it has none."""
    match = _RELEASE.search(name)
    return (name, "") if match is None else (_RELEASE.sub(r"\1*", name), match[2])


def files_by_release(program: Iterable[ProgramFile]) -> dict[str, list[ProgramFile]]:
    """Return the files of each alternative by release."""
    by_release: dict[str, list[ProgramFile]] = defaultdict(list)
    for files in groups_of_alternatives(program):
        for release, file in files.items():
            by_release[release].append(file)
    return dict(sorted(by_release.items()))


class Alternative(NamedTuple):
    """The files for one of several CUDA releases. The program loads those of one release."""

    cuda_major: int
    files: Sequence[ProgramFile]
    loaded: Sequence[ProgramFile]
    """These files, and the files that have no alternative."""


def alternatives(program: Sequence[ProgramFile]) -> tuple[Alternative, ...]:
    """Return the alternatives of a program, if it has any."""
    by_release = files_by_release(file for file in program if file.binary.images)
    all_files = {file for files in by_release.values() for file in files}
    common = [file for file in program if file not in all_files]
    return tuple(
        Alternative(int(release[:2]), files, [*common, *files])
        for release, files in by_release.items()
    )


def fitting(parts: Sequence[Alternative], cuda: Version | None) -> Sequence[Alternative]:
    """Return the alternatives for a CUDA major, or all if there are none for it."""
    chosen = [part for part in parts if cuda is None or part.cuda_major == cuda.components[0]]
    return chosen or parts


def audited_alternatives(
    parts: Iterable[Alternative],
    gpus: Sequence[str],
    rules: CoverageRules | None,
    cuda: Version | None = None,
) -> tuple[AuditedAlternative, ...]:
    """Return the coverage of each alternative."""
    return tuple(
        AuditedAlternative(
            cuda_major=part.cuda_major,
            files=paths_of(part.files),
            coverage=cover(Code(part.loaded), gpus, rules, cuda) or {},
        )
        for part in parts
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


def best_coverage(parts: Iterable[AuditedAlternative]) -> dict[str, Coverage]:
    """Return the best coverage of each GPU. It is empty without alternatives."""
    best: dict[str, Coverage] = {}
    for part in parts:
        for gpu, coverage in part.coverage.items():
            if gpu not in best or _rank(coverage) < _rank(best[gpu]):
                best[gpu] = coverage
    return best


def _rank(coverage: Coverage) -> int:
    """Return the position of a coverage, 0 for the best."""
    return _BEST_FIRST.index(coverage.value)
