"""Which packages of a set a toolkit is made of."""

from collections.abc import Iterable, Mapping, Sequence

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.schema import ComponentSet, PackageSet, SetPackage

ALL = "all"


def select_packages(
    package_set: PackageSet,
    components: Sequence[str],
    exclude: Iterable[str],
    sets: Mapping[str, ComponentSet],
) -> dict[str, SetPackage]:
    """Return the packages meant, by name: those named, those of named sets, and what they need.

    `all`, which is also what nothing stands for, is every available package except further versions
    beside the chosen ones. What is excluded is left out although others need it. Raises
    `UsageError` for a package that is not available, with its reasons, and for unknown names.
    """
    packages = package_set.packages
    available = {
        name: package
        for name, package in packages.items()
        if package.alias_of is None and package.status == "available"
    }
    known = {ALL, *sets, *packages}
    chosen: dict[str, SetPackage] = {}
    for component in components or [ALL]:
        if component not in known:
            raise UnknownNameError("component", component, known)
        if component == ALL:
            chosen |= {
                name: package for name, package in available.items() if name == package.pname
            }
        elif component in sets:
            chosen |= _of_set(component, sets[component], packages)
        else:
            chosen |= _single(component, packages)
    excluded = set()
    for name in exclude:
        if name not in packages:
            raise UnknownNameError("package", name, packages)
        excluded.add(packages[name].alias_of or name)
    chosen = {name: package for name, package in chosen.items() if name not in excluded}
    waiting = list(chosen.values())
    while waiting:
        for needed in waiting.pop().depends:
            if needed.attr not in chosen and needed.attr not in excluded:
                chosen[needed.attr] = available[needed.attr]
                waiting.append(available[needed.attr])
    return dict(sorted(chosen.items()))


def _single(component: str, packages: Mapping[str, SetPackage]) -> dict[str, SetPackage]:
    name = packages[component].alias_of or component
    if packages[name].status != "available":
        reasons = "; ".join(reason.text for reason in packages[name].reasons)
        raise UsageError(f"{component} is {packages[name].status}: {reasons}")
    return {name: packages[name]}


def _of_set(
    component: str, members: ComponentSet, packages: Mapping[str, SetPackage]
) -> dict[str, SetPackage]:
    """Return the members of a named set that are available; `UsageError` where none is."""
    names = {packages[name].alias_of or name for name in members.packages if name in packages}
    found = {name: packages[name] for name in names if packages[name].status == "available"}
    if not found:
        raise UsageError(f"this package set has nothing of {component}")
    return found
