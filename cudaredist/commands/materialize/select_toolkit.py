"""Select the packages of a toolkit root from a package set."""

from pathlib import Path
from typing import NamedTuple

from cudaredist.cli.session import Session
from cudaredist.commands.materialize.components import check_nvcc, select_packages
from cudaredist.commands.materialize.install import Toolkit
from cudaredist.commands.materialize.merge import CrossTarget
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.patchelf import find_patchelf
from cudaredist.commands.materialize.runtime import RuntimeLibraries, runtime_libraries
from cudaredist.formats.toolkit_record import ComponentSet
from cudaredist.sets.cross import read_target_set
from cudaredist.sets.read_set import read_package_set
from cudaredist.sets.request_options import PairOptions


class SelectedToolkit(NamedTuple):
    """The contents of a root."""

    toolkit: Toolkit
    runtime: RuntimeLibraries | None
    """The libraries that programs need. None: the root has whole packages."""
    required: tuple[ComponentSet, ...]
    """Selected named sets; all their programs must exist."""


def select_toolkit(
    options: MaterializeOptions, package_set: Path, session: Session
) -> SelectedToolkit:
    """Return the contents of a root from the options.

    Raises `UsageError` for packages that cannot be selected, and `InvalidFileError`.
    """
    value, sha256 = read_package_set(package_set)
    target = None
    if options.target_set is not None:
        arguments = PairOptions("SET", "--target-set")
        target = CrossTarget(*read_target_set(value, options.target_set, arguments))
    runtime = runtime_libraries(value, options, session) if options.programs else None
    libraries = () if runtime is None else tuple(runtime.paths)
    selection = select_packages(value, target, options, libraries)
    check_nvcc(selection, value)
    toolkit = Toolkit(
        package_set=value,
        set_sha256=sha256,
        packages=selection.packages,
        target=target,
        layout=options.tree,
        with_static=options.static,
        libraries=tuple(sorted(runtime.names)) if runtime else (),
        patchelf=find_patchelf() if options.run_paths else None,
    )
    return SelectedToolkit(toolkit, runtime, selection.required)
