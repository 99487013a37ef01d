"""The wheels of NVIDIA's that a program requires."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from packaging.utils import parse_wheel_filename
from packaging.version import Version as WheelVersion

from cudaredist.commands.audit.lowest_release import RequiredRelease
from cudaredist.commands.audit.needs import LibraryNeed
from cudaredist.commands.audit.program import KnownLibrary
from cudaredist.commands.audit.report import PipRequirement
from cudaredist.primitives import Version


def pip_requirements(
    needs: Iterable[LibraryNeed],
    releases: Iterable[RequiredRelease],
    majors: frozenset[int],
    labels: Collection[Version] = (),
) -> tuple[PipRequirement, ...]:
    """Return the wheels that provide libraries of a program, those it needs first.

    `needs` and `releases` are those of its part for some CUDA majors.
    The lower bound is the version in the lowest release that exports all symbols, or the first one
    with the library if that is unknown. The upper bound is the next major version. If there are
    labels, only wheels of these releases of CUDA count.
    """
    if labels:
        needs = _of_releases(needs, labels)
    of_redist = {release.redist: release for release in releases}
    by_projects: dict[tuple[str, ...], list[LibraryNeed]] = defaultdict(list)
    for need in needs:
        projects = tuple(sorted({library.project for library in need.libraries if library.project}))
        if projects:
            by_projects[projects].append(need)
    found = []
    for projects, part in by_projects.items():
        is_guess = all(need.kind == "opened" for need in part)
        counted = [
            [library for library in need.libraries if library.project]
            for need in part
            if is_guess or need.kind != "opened"
        ]
        redists = {library.redist for libraries in counted for library in libraries}
        is_single = len(redists) == 1 and not is_guess
        release = of_redist.get(redists.pop()) if is_single else None
        project = projects[0] if len(projects) == 1 else None
        found.append(
            PipRequirement(
                cuda_major=next(iter(majors)) if len(majors) == 1 else None,
                project=project,
                alternatives=() if project else projects,
                specifier=_specifier(counted, release.lowest if release else None, labels)
                if project and not (release and release.lacks_library)
                else "",
                sonames=tuple(dict.fromkeys(need.soname for need in part)),
                is_guess=is_guess,
                lower_bound=_lower_bound(release),
            )
        )
    return tuple(sorted(found, key=lambda pip: (pip.is_guess, pip.project or pip.alternatives[0])))


def _lower_bound(
    release: RequiredRelease | None,
) -> Literal["symbols", "oldest", "unknown", "missing", "none"]:
    if release is None:
        return "unknown"
    if release.lowest is not None:
        return "symbols" if release.decisive else "oldest"
    if release.lacks_library:
        return "missing"
    return "none" if release.fits_none else "unknown"


def _of_releases(
    needs: Iterable[LibraryNeed], labels: Collection[Version]
) -> Iterator[LibraryNeed]:
    """Yield the libraries in some releases of CUDA, and those of other products for its major."""
    majors = {label.components[0] for label in labels}
    for need in needs:
        libraries = tuple(
            library
            for library in need.libraries
            if library.label in labels
            or (library.redist != "cuda" and library.major in {None, *majors})
        )
        yield need.model_copy(update={"libraries": libraries})


def _specifier(
    libraries: Sequence[Sequence[KnownLibrary]], label: str | None, labels: Collection[Version]
) -> str:
    versions = [list(_versions(known, label)) for known in libraries]
    lower = max(min(each) for each in versions)
    newest = max(max(_versions(known, None)) for known in libraries)
    if labels and libraries[0][0].redist == "cuda":
        return f"=={lower}" if lower == newest else f">={lower},<={newest}"
    return f">={lower},<{newest.major + 1}"


def _versions(known: Sequence[KnownLibrary], label: str | None) -> Iterator[WheelVersion]:
    """Yield the versions of wheels with a library, of one release if that has any."""
    for library in [library for library in known if str(library.label) == label] or known:
        version = wheel_version(library)
        if version is not None:
            yield version


def wheel_version(library: KnownLibrary) -> WheelVersion | None:
    """Return the version of the wheel with a library."""
    if library.wheel is None:
        return None
    return parse_wheel_filename(library.wheel.rpartition("/")[2])[1]
