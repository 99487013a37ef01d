"""Support of drivers for CUDA releases and PTX.

`explain driver`, `audit --require-driver`, `check --driver` and the web site apply these rules. The
drivers are those of `policy/drivers.json`.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.hints import command_line
from cudaredist.primitives import Version, find_release, parse_label
from cudaredist.tables.explanation import Origin
from cudaredist.words import shown

System: TypeAlias = Literal["linux", "windows"]
Support: TypeAlias = Literal["native", "minor", "some", "none", "unknown"]
"""How programs of a CUDA release run on a driver.

- `native`: with all features
- `minor`: by minor version compatibility, with limited features
- `some`: they run, but no source states whether with all features
- `none`: they do not run
- `unknown`: no source states a driver
"""
SYSTEMS: dict[System, str] = {"linux": "Linux", "windows": "Windows"}
POLICY_FILE = "policy/drivers.json"

_find_version = re.compile(r"(?<![0-9])[0-9]{3}(\.[0-9]{1,9})*(?![0-9])").search
_is_version = re.compile(r"[0-9]{3}(\.[0-9]{1,9})*").fullmatch


def parse_driver(name: str, policy: DriverPolicy) -> Version:
    """Return a driver's version. Raises `UnknownNameError` with suggestions."""
    stated = {entry.linux: None for entry in policy.releases.values() if entry.linux}
    if not _is_version(name):
        if find_release(name, map(parse_label, policy.releases)) is not None:
            hint = f"it is a release of CUDA: run `{command_line('explain cuda', name)}`"
            raise UsageError(f"no driver is called {shown(name)}", hint=hint)
        raise UnknownNameError("driver", name, stated, _similar_drivers(name, stated))
    return Version.parse(name)


def _similar_drivers(name: str, stated: Collection[str]) -> Sequence[str]:
    """Return the stated drivers that begin with the version in a text, else this version."""
    version = _find_version(name)
    if version is None:
        return ()
    longer = [driver for driver in stated if driver.startswith(f"{version[0]}.")]
    return longer if longer and version[1] else (version[0],)


def support_of(driver: Version, cuda: Version, system: System, policy: DriverPolicy) -> Support:
    """Return how programs of a CUDA release run on a driver, without a compatibility package.

    Later releases need no older driver. So a release without a stated driver needs at most that of
    the next stated one, and at least that of the one before.
    """
    native, minor = stated_drivers(cuda, system, policy)
    if native is not None and _reaches(driver, native):
        return "native"
    before, after = (None, None) if native else _neighbors(cuda, system, policy)
    if after is not None and _reaches(driver, after):
        return "native"
    if minor is not None and _reaches(driver, minor):
        return "some" if before is not None and _reaches(driver, before) else "minor"
    return "none" if native or minor else "unknown"


def _neighbors(
    cuda: Version, system: System, policy: DriverPolicy
) -> tuple[str | None, str | None]:
    """Return the stated drivers of the releases before and after one, with all features."""
    stated = {
        label: native
        for label in map(parse_label, policy.releases)
        if (native := stated_drivers(label, system, policy).native) is not None
    }
    before = max((label for label in stated if label < cuda), default=None)
    after = min((label for label in stated if label > cuda), default=None)
    return (
        None if before is None else stated[before],
        None if after is None else stated[after],
    )


def ptx_support(driver: Version, ptx: Version, system: System, policy: DriverPolicy) -> Support:
    """Return whether a driver compiles PTX of a version: `native`, `none` or `unknown`."""
    compiled: set[Version] = set()
    not_compiled: set[Version] = set()
    for label in map(parse_label, policy.releases):
        native = stated_drivers(label, system, policy).native
        entry = policy.ptx.get(label.line)
        if native is not None and entry is not None:
            versions = compiled if _reaches(driver, native) else not_compiled
            versions.add(Version.parse(entry.version))
    if any(version >= ptx for version in compiled):
        return "native"
    # A driver that does not compile an older PTX does not compile this one.
    is_too_new = any(version <= ptx for version in not_compiled - compiled)
    return "none" if is_too_new else "unknown"


def lowest_ptx_driver(ptx: Version, system: System, policy: DriverPolicy) -> str | None:
    """Return the lowest stated driver that compiles a version of PTX, or None if unknown."""
    drivers = [
        native
        for label in map(parse_label, policy.releases)
        if (entry := policy.ptx.get(label.line)) is not None
        and Version.parse(entry.version) >= ptx
        and (native := stated_drivers(label, system, policy).native) is not None
    ]
    return min(drivers, key=Version.parse, default=None)


def release_of_ptx(ptx: Version, policy: DriverPolicy) -> str | None:
    """Return the first CUDA minor that writes a version of PTX, None if it is unknown."""
    minors = [name for name, entry in policy.ptx.items() if Version.parse(entry.version) >= ptx]
    return min(minors, key=Version.parse, default=None)


def lowest_driver(cuda: Version, system: System, policy: DriverPolicy) -> str | None:
    """Return the lowest driver that runs programs of a CUDA release, or None if it is unknown."""
    drivers = filter(None, stated_drivers(cuda, system, policy))
    return min(drivers, key=Version.parse, default=None)


def refusals(
    name: str, releases: Iterable[Version], platforms: Iterable[str], policy: DriverPolicy
) -> Iterator[tuple[Support, str]]:
    """Yield the support of each CUDA release that is not known to run on a driver, and the reason.

    Raises `UnknownNameError` if the driver is not a version.
    """
    driver = parse_driver(name, policy)
    systems = {"windows" if text.startswith("windows") else "linux" for text in platforms}
    selected = [(system, title) for system, title in SYSTEMS.items() if system in systems]
    for cuda, (system, title) in product(releases, selected):
        support = support_of(driver, cuda, system, policy)
        if support == "unknown":
            yield support, f"the drivers of CUDA {cuda} on {title} are unknown"
        elif support == "none":
            minor = stated_drivers(cuda, system, policy).minor
            words = f": {minor} is the lowest for its major" if minor else ""
            yield support, f"CUDA {cuda} does not run on driver {name} on {title}{words}"


def on_systems(linux: str | None, windows: str | None) -> str:
    """Return the known drivers with their operating systems."""
    drivers = {"Linux": linux, "Windows": windows}
    return ", ".join(f"{driver} on {title}" for title, driver in drivers.items() if driver)


def documented(reference: str) -> Origin:
    """Return the origin of a fact that the policy of drivers states."""
    return Origin("documented", f"{reference} ({POLICY_FILE})")


def _reaches(driver: Version, lowest: str) -> bool:
    """Check if a driver is new enough. A prefix means the newest driver that begins with it."""
    required = Version.parse(lowest)
    return required.begins_with(driver) or driver >= required


class StatedDrivers(NamedTuple):
    """The lowest drivers for a CUDA release that NVIDIA states, None if it states none."""

    native: str | None
    """With all features."""
    minor: str | None
    """With minor version compatibility."""


def stated_drivers(cuda: Version, system: System, policy: DriverPolicy) -> StatedDrivers:
    """Return the lowest drivers for a CUDA release."""
    of_release = policy.releases.get(str(cuda))
    of_major = policy.lowest.get(str(cuda.components[0]))
    if system == "windows":
        return StatedDrivers(
            of_release.windows if of_release else None, of_major.windows if of_major else None
        )
    return StatedDrivers(
        of_release.linux if of_release else None, of_major.version if of_major else None
    )
