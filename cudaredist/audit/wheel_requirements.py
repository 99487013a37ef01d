"""The wheels of NVIDIA's that a program requires."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from packaging.utils import parse_wheel_filename
from packaging.version import Version as WheelVersion

from cudaredist.audit.lowest_release import RequiredRelease
from cudaredist.audit.needs import LibraryNeed
from cudaredist.audit.program import KnownLibrary
from cudaredist.primitives import Version
from cudaredist.reports.audit_reports import PipRequirement


def pip_requirements(
    needs: Iterable[LibraryNeed],
    releases: Iterable[RequiredRelease],
    majors: frozenset[int],
) -> tuple[PipRequirement, ...]:
    """Return the wheels that provide libraries of a program, those it needs first.

    `needs` and `releases` are those of its part for some CUDA majors.
    The lower bound is the version in the lowest release that exports all symbols, or the first one
    with the library if that is unknown. The upper bound is the next major version.
    """
    of_redist = {release.redist: release for release in releases}
    by_projects: dict[tuple[str, ...], list[tuple[LibraryNeed, list[KnownLibrary]]]] = defaultdict(
        list
    )
    for need in needs:
        libraries = [one for one in need.providers if one.project]
        projects = tuple(sorted({str(one.project) for one in libraries}))
        if projects:
            by_projects[projects].append((need, libraries))
    found = []
    for projects, entries in by_projects.items():
        is_guess = all(need.kind == "opened" for need, _ in entries)
        counted = [entry for entry in entries if is_guess or entry[0].kind != "opened"]
        redists = {one.redist for _, libraries in counted for one in libraries}
        is_one = len(redists) == 1 and not is_guess
        release = of_redist.get(next(iter(redists))) if is_one else None
        label = release.lowest if release is not None else None
        found.append(
            PipRequirement(
                cuda_major=next(iter(majors)) if len(majors) == 1 else None,
                project=projects[0] if len(projects) == 1 else None,
                alternatives=projects if len(projects) > 1 else (),
                specifier=_specifier([libraries for _, libraries in counted], label)
                if len(projects) == 1
                else "",
                sonames=tuple(dict.fromkeys(need.soname for need, _ in entries)),
                is_guess=is_guess,
                lower_bound=_lower_bound(release),
            )
        )
    return tuple(sorted(found, key=lambda one: (one.is_guess, one.project or one.alternatives[0])))


def _lower_bound(release: RequiredRelease | None) -> Literal["symbols", "unknown", "none"]:
    if release is None:
        return "unknown"
    return "none" if release.fits_none else "unknown" if release.lowest is None else "symbols"


def _specifier(libraries: Sequence[Sequence[KnownLibrary]], label: Version | None) -> str:
    versions = [list(_versions(known, label)) for known in libraries]
    lower = max(min(each) for each in versions)
    newest = max(max(_versions(known, None)) for known in libraries)
    return f">={lower},<{newest.major + 1}"


def _versions(known: Sequence[KnownLibrary], label: Version | None) -> Iterator[WheelVersion]:
    """Yield the versions of wheels with a library, of one release if that has any."""
    chosen = [one for one in known if one.label == label] or known
    for one in chosen:
        if one.wheel is not None:
            yield parse_wheel_filename(one.wheel.rpartition("/")[2])[1]
