"""Packages of components, such as the compiler."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cudaredist.errors import UnknownNameError, UsageError, find_name
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.formats.toolkit_record import ComponentSet
from cudaredist.hints import again
from cudaredist.sets.request_options import ComponentOptions
from cudaredist.wheel_projects import package_of_project

ALL = "all"


class SelectedPackages(NamedTuple):
    """Packages of a toolkit."""

    packages: dict[str, SetPackage]
    """By name, sorted."""
    required: tuple[ComponentSet, ...]
    """Named sets selected as a whole; all their programs must exist."""
    warnings: tuple[str, ...]
    """One for each broken or withheld package of the named sets, and for required packages that are
    excluded."""


def select(
    package_set: PackageSet,
    components: Sequence[str],
    exclude: Iterable[str],
    sets: Mapping[str, ComponentSet],
    options: ComponentOptions,
    *,
    with_dependencies: bool = True,
) -> SelectedPackages:
    """Return the selected packages and, by default, their dependencies.

    A component is a package or its project in the package index, a named set, or `all`, the
    default. `all` selects every available package in its main version. Excluded packages are
    skipped with a warning if others depend on them. Raises `UsageError` for unknown names, and for
    a package that is not available, with its reasons. Messages and hints name the options.
    """
    packages = package_set.packages
    components = [_without_project(name, package_set) for name in components]
    exclude = [_without_project(name, package_set) for name in exclude]
    component_names = {ALL, *sets, *packages}
    names: set[str] = set()
    warnings: list[str] = []
    for component in components or [ALL]:
        if component not in component_names:
            raise UnknownNameError("component", component, component_names)
        if component == ALL:
            available = package_set.available.items()
            names |= {name for name, package in available if name == package.pname}
        elif component in sets:
            names |= _of_set(component, sets[component], packages, options)
            warnings += _left_out_warnings(component, sets[component], packages)
        else:
            names.add(_single(component, packages, options))
    excluded = {find_name("package", name, packages).alias_of or name for name in exclude}
    names -= excluded
    if with_dependencies:
        names = _closure(names, excluded, packages, options)
        warnings += _excluded_warnings(names, excluded, packages, options)
    if not names:
        call = again(without=[options.exclude])
        raise UsageError("no packages selected", hint=f"run `{call}`")
    required = []
    for component in dict.fromkeys(components):
        if component in sets:
            members = {_real(name, packages) for name in sets[component].packages}
            if members.isdisjoint(excluded):
                required.append(sets[component])
    selected = {name: packages[name] for name in sorted(names)}
    return SelectedPackages(selected, tuple(required), tuple(warnings))


def _without_project(name: str, package_set: PackageSet) -> str:
    """Return the package of a project for the set's CUDA major, other names unchanged."""
    package = package_of_project(name)
    _, of_major, major = name.rpartition("-cu")
    is_for_other = of_major and major != package_set.cuda.release.partition(".")[0]
    return name if is_for_other or package not in package_set.packages else package


def _left_out_warnings(
    component: str, members: ComponentSet, packages: Mapping[str, SetPackage]
) -> Iterator[str]:
    """Yield a warning for each broken or withheld member of a named set."""
    for name in members.packages:
        if name in packages and packages[name].status in {"broken", "withheld"}:
            status, reasons = packages[name].status, _reasons(packages[name])
            yield f"{component} will not include {name}, which is {status}: {reasons}"


def _excluded_warnings(
    names: Iterable[str],
    excluded: set[str],
    packages: Mapping[str, SetPackage],
    options: ComponentOptions,
) -> Iterator[str]:
    """Yield a warning for each excluded package that selected ones require."""
    for name in sorted(excluded):
        users = [
            user
            for user in sorted(names)
            if any(_real(each.attr, packages) == name for each in packages[user].depends)
        ]
        if users:
            required = f"required by {', '.join(users)}"
            yield f"{name} is left out by {options.exclude}, but {required}"


def _closure(
    names: Iterable[str],
    excluded: set[str],
    packages: Mapping[str, SetPackage],
    options: ComponentOptions,
) -> set[str]:
    """Add the dependencies of packages, except excluded ones."""
    closure = set(names)
    pending = sorted(closure)
    while pending:
        package = packages[pending.pop()]
        for dependency in package.depends:
            name = _real(dependency.attr, packages)
            if name not in closure and name not in excluded:
                _require(name, package, packages, options)
                closure.add(name)
                pending.append(name)
    return closure


def _real(name: str, packages: Mapping[str, SetPackage]) -> str:
    """Return the package to which an alias refers. Other names stay unchanged."""
    return packages[name].alias_of or name if name in packages else name


def _single(component: str, packages: Mapping[str, SetPackage], options: ComponentOptions) -> str:
    name = _real(component, packages)
    if packages[name].status != "available":
        message = f"{component} is {packages[name].status}: {_reasons(packages[name])}"
        call = again(without=[options.component])
        hint = f"build a package set for another release, platform or channel, or run `{call}`"
        raise UsageError(message, hint=hint)
    return name


def _of_set(
    component: str,
    members: ComponentSet,
    packages: Mapping[str, SetPackage],
    options: ComponentOptions,
) -> set[str]:
    """Return a named set's available members.

    Raises `UsageError` if no member is available.
    """
    names = {_real(name, packages) for name in members.packages if name in packages}
    available = {name for name in names if packages[name].status == "available"}
    if not available:
        message = f"no package of component {component} is available in this package set"
        install = f"to install all, run `{again(without=[options.component])}`"
        hint = f"{component} is {', '.join(members.packages)}; {install}"
        raise UsageError(message, hint=hint)
    return available


def _require(
    name: str, by: SetPackage, packages: Mapping[str, SetPackage], options: ComponentOptions
) -> None:
    """Raise `UsageError` if a dependency is not available.

    `build` never creates such a set.
    """
    package = packages.get(name)
    if package is None or package.status != "available":
        why = "not in the set" if package is None else _reasons(package) or package.status
        hint = f"run `{again(options.exclude, name)}`" if package else None
        raise UsageError(f"{by.attr} requires {name}, which is not available: {why}", hint=hint)


def _reasons(package: SetPackage) -> str:
    return "; ".join(reason.text for reason in package.reasons)
