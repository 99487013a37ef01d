"""NVIDIA's wheels that a program requires."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from packaging.utils import parse_wheel_filename
from packaging.version import Version as WheelVersion

from cudaredist.primitives import Version
from cudaredist.programs.lowest_release import RequiredRelease
from cudaredist.programs.needs import LibraryNeed
from cudaredist.programs.program import KnownLibrary, Majors
from cudaredist.programs.report import BoundKind, PipRequirement


def pip_requirements(
    needs: Iterable[LibraryNeed],
    releases: Iterable[RequiredRelease],
    majors: Majors,
    labels: Collection[Version] = (),
) -> tuple[PipRequirement, ...]:
    """Return the wheels that provide libraries of a program, those it needs first.

    `needs` and `releases` are those of its part for some CUDA majors.
    The lower bound is the version in the lowest release that exports all symbols, or the first one
    with the library if that is unknown. The upper bound is the next major version. If there are
    labels, only wheels of these releases of CUDA count.
    """
    of_redist = {release.redist: release for release in releases}
    by_projects: dict[tuple[str, ...], list[tuple[LibraryNeed, list[KnownLibrary]]]] = {}
    for need in needs:
        wheels = [lib for lib in need.libraries if lib.project and _is_in(lib, labels)]
        if wheels:
            projects = tuple(sorted({library.project or "" for library in wheels}))
            by_projects.setdefault(projects, []).append((need, wheels))
    requirements = []
    for projects, part in by_projects.items():
        is_guess = all(need.kind == "opened" for need, _ in part)
        counted = [wheels for need, wheels in part if is_guess or need.kind != "opened"]
        redists = {library.redist for wheels in counted for library in wheels}
        is_single = len(redists) == 1 and not is_guess
        release = of_redist.get(redists.pop()) if is_single else None
        lower_bound: BoundKind = "unknown" if release is None else release.lower_bound
        project = projects[0] if len(projects) == 1 else None
        specifier = ""
        if project and lower_bound != "missing":
            lowest = release.lowest if release else None
            specifier = _specifier(counted, lowest, labels)
            if any(_lower(part, lowest)[1] for part in counted):
                lower_bound = "parts"
        requirements.append(
            PipRequirement(
                cuda_major=next(iter(majors)) if len(majors) == 1 else None,
                project=project,
                alternatives=() if project else projects,
                specifier=specifier,
                sonames=tuple(dict.fromkeys(need.soname for need, _ in part)),
                is_guess=is_guess,
                lower_bound=lower_bound,
            )
        )
    return tuple(
        sorted(requirements, key=lambda pip: (pip.is_guess, pip.project or pip.alternatives[0]))
    )


def _is_in(library: KnownLibrary, labels: Collection[Version]) -> bool:
    """Check if a library is in one of some releases of CUDA, or of a product for its major."""
    if not labels or library.label in labels:
        return True
    majors = {None, *(label.components[0] for label in labels)}
    return library.redist != "cuda" and library.major in majors


def _specifier(
    wheels: Sequence[Sequence[KnownLibrary]], label: Version | None, labels: Collection[Version]
) -> str:
    lower = max(_lower(known, label)[0] for known in wheels)
    newest = max(max(_versions(known)) for known in wheels)
    if labels and wheels[0][0].redist == "cuda":
        return f"=={lower}" if lower == newest else f">={lower},<={newest}"
    return f">={lower},<{newest.major + 1}"


def _lower(known: Sequence[KnownLibrary], label: Version | None) -> tuple[WheelVersion, bool]:
    """Return the lowest version of a wheel, and whether it was raised.

    It is that of a release if the library is in that. It is raised to the first version that finds
    the libraries of its own package.
    """
    of_label = [library for library in known if library.label == label] or [*known]
    lowest = min(_versions(of_label))
    later = (lib for lib in known if lib.finds_parts and lib.label >= of_label[0].label)
    fitting = [lib for lib in of_label if lib.finds_parts] or [*later]
    raised = min(_versions(fitting), default=lowest)
    return raised, raised != lowest


def _versions(known: Iterable[KnownLibrary]) -> Iterator[WheelVersion]:
    return filter(None, map(wheel_version, known))


def wheel_version(library: KnownLibrary) -> WheelVersion | None:
    """Return the version of the wheel with a library."""
    if library.wheel is None:
        return None
    return parse_wheel_filename(library.wheel.rpartition("/")[2])[1]
