"""Which packages of a set a toolkit is made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.schema.packageset import PackageSet, SetPackage
from cudaredist.schema.toolkit_record import ComponentSet

ALL = "all"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a toolkit is made of."""

    packages: dict[str, SetPackage]
    """By name, sorted."""
    required: tuple[ComponentSet, ...]
    """Named sets that were asked for as a whole: their programs must be there."""
    warnings: tuple[str, ...]
    """What of the named sets is broken or withheld, and so left out."""


def choose(
    package_set: PackageSet,
    components: Sequence[str],
    exclude: Iterable[str],
    sets: Mapping[str, ComponentSet],
) -> Chosen:
    """Return the packages meant: those named, those of named sets, and what they need.

    `all`, which is also what nothing stands for, is every available package except further versions
    beside the chosen ones. What is excluded is left out although others need it. Raises
    `UsageError` for a package that is not available, with its reasons, and for unknown names.
    """
    packages = package_set.packages
    known = {ALL, *sets, *packages}
    names: set[str] = set()
    warnings: list[str] = []
    for component in components or [ALL]:
        if component not in known:
            raise UnknownNameError("component", component, known)
        if component == ALL:
            names |= {name for name, package in packages.items() if _is_main(name, package)}
        elif component in sets:
            names |= _of_set(component, sets[component], packages)
            warnings += _left_out(component, sets[component], packages)
        else:
            names.add(_single(component, packages))
    excluded = set()
    for name in exclude:
        if name not in packages:
            raise UnknownNameError("package", name, packages)
        excluded.add(_real(name, packages))
    names = _closure(names - excluded, excluded, packages)
    if not names:
        raise UsageError("nothing is left to lay out", hint="--exclude takes everything away")
    required = (sets[name] for name in dict.fromkeys(components) if name in sets)
    whole = (
        entry
        for entry in required
        if excluded.isdisjoint(_real(name, packages) for name in entry.packages)
    )
    return Chosen({name: packages[name] for name in sorted(names)}, tuple(whole), tuple(warnings))


def _closure(
    names: Iterable[str], excluded: set[str], packages: Mapping[str, SetPackage]
) -> set[str]:
    """Return packages and all that they need, without those excluded."""
    found = set(names)
    waiting = sorted(found)
    while waiting:
        package = packages[waiting.pop()]
        for needed in package.depends:
            name = _real(needed.attr, packages)
            if name not in found and name not in excluded:
                _require(name, package, packages)
                found.add(name)
                waiting.append(name)
    return found


def _is_main(name: str, package: SetPackage) -> bool:
    """Check if a package is available and no further version or other name of one."""
    is_own = package.alias_of is None and name == package.pname
    return is_own and package.status == "available"


def _real(name: str, packages: Mapping[str, SetPackage]) -> str:
    return packages[name].alias_of or name if name in packages else name


def _single(component: str, packages: Mapping[str, SetPackage]) -> str:
    name = _real(component, packages)
    if packages[name].status != "available":
        raise UsageError(
            f"{component} is {packages[name].status}: {_reasons(packages[name])}",
            hint="another release, platform or channel may have it",
        )
    return name


def _of_set(component: str, members: ComponentSet, packages: Mapping[str, SetPackage]) -> set[str]:
    """Return the available members of a named set, or raise `UsageError` if there are none."""
    names = {_real(name, packages) for name in members.packages if name in packages}
    found = {name for name in names if packages[name].status == "available"}
    if not found:
        raise UsageError(
            f"this package set has nothing of {component}",
            hint=f"{component} means {', '.join(members.packages)}",
        )
    return found


def _left_out(
    component: str, members: ComponentSet, packages: Mapping[str, SetPackage]
) -> list[str]:
    return [
        f"{component} is laid out without {name}, which is {packages[name].status}: "
        f"{_reasons(packages[name])}"
        for name in members.packages
        if name in packages and packages[name].status in {"broken", "withheld"}
    ]


def _require(name: str, by: SetPackage, packages: Mapping[str, SetPackage]) -> None:
    """Raise `UsageError` if a needed package is not available; `build` makes no such set."""
    package = packages.get(name)
    if package is None or package.status != "available":
        why = "not in the set" if package is None else _reasons(package) or package.status
        raise UsageError(
            f"{by.attr} needs {name}, which is not available: {why}",
            hint=f"leave it out with --exclude {name}" if package else None,
        )


def _reasons(package: SetPackage) -> str:
    return "; ".join(reason.text for reason in package.reasons)
