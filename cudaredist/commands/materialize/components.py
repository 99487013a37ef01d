"""Select the packages of a toolkit from a package set."""

import logging
from collections.abc import Sequence

from cudaredist.commands.materialize.merge import CrossTarget
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.errors import UsageError
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.toolkit_record import ComponentPolicy, PackageName
from cudaredist.sets.components import SelectedPackages, select
from cudaredist.sets.request_options import ComponentOptions
from cudaredist.store.data_folder import Store
from cudaredist.store.locate import data_folder

_log = logging.getLogger(__name__)

_OPTIONS = ComponentOptions("--component", "--exclude")
_COMPILER = "compiler"
_STATIC_LIBRARY = "libnvptxcompiler"
"""The package of the component `compiler` that only programs for the target use."""
_PROGRAM_OUTPUTS = frozenset({"out", "bin", "doc", "samples", "python"})


def select_packages(
    package_set: PackageSet,
    target: CrossTarget | None,
    options: MaterializeOptions,
    of_runtime: Sequence[str],
) -> SelectedPackages:
    """Select packages by the data folder's component policy.

    If there is a target, the options select its packages, and the host provides the compiler
    without the packages of headers and libraries that it requires. Both sets have no excluded ones.
    Packages of a runtime root are selected without others. Raises `UsageError`, and
    `InvalidFileError` if the policy is invalid.
    """
    if of_runtime:
        return select(package_set, of_runtime, (), {}, _OPTIONS, with_dependencies=False)
    store = Store(data_folder(options.data_dir, writing=False))
    policy = read_own_file(store.read_policy("components"), ComponentPolicy)
    names, excluded, sets = options.component or (), options.exclude or (), policy.components
    if target is None:
        selection = select(package_set, names, excluded, sets, _OPTIONS)
    else:
        if names:
            # nvcc also requires its own headers for the target.
            names = [*names, _COMPILER]
        selection = select(target.package_set, names, excluded, sets, _OPTIONS)
        compiler = select(
            package_set, [_COMPILER], excluded, sets, _OPTIONS, with_dependencies=False
        )
        packages: dict[str, SetPackage] = {
            PackageName.of_target(attr, target.platform): entry
            for attr, entry in selection.packages.items()
            if not _has_programs_only(entry)
        }
        tools = {attr: p for attr, p in compiler.packages.items() if attr != _STATIC_LIBRARY}
        selection = SelectedPackages(
            tools | packages,
            compiler.required + selection.required,
            compiler.warnings + selection.warnings,
        )
    for warning in selection.warnings:
        _log.warning("%s", warning)
    return selection


def _has_programs_only(package: SetPackage) -> bool:
    """Check if a package certainly has no headers or libraries."""
    is_unclear = package.collapsed or package.normalise or not package.contents
    return not is_unclear and package.contents.keys() <= _PROGRAM_OUTPUTS


def check_nvcc(selection: SelectedPackages, package_set: PackageSet) -> None:
    """Raise `UsageError` if a component requires nvcc, and its package lacks it.

    NVIDIA's wheels of CUDA 12 do. Other programs are checked after the archives are read.
    """
    wanted = any("nvcc" in component.programs for component in selection.required)
    if wanted and "cuda_nvcc" in selection.packages and package_set.lacks_nvcc:
        raise without_programs(["nvcc"], package_set)


def without_programs(names: Sequence[str], package_set: PackageSet) -> UsageError:
    """Return the error of a component without programs that it requires."""
    release = f"CUDA {package_set.cuda.release} in the {package_set.channel} channel"
    message = f"the packages of {release} do not include {', '.join(names)}"
    option = "select single packages with --component NAME"
    return UsageError(message, hint=f"try another release or channel, or {option}")
