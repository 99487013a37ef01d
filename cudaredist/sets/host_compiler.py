"""Host compiler of a set."""

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.host_compilers import HostCompiler, HostGcc, HostGlibc, HostRange
from cudaredist.formats.tables import CompilerRange, NvccRelease
from cudaredist.hints import again, command_line
from cudaredist.sets.spec import SetSpec
from cudaredist.tables.nvcc.nvcc_table import newest_release


def choose_host(spec: SetSpec) -> HostCompiler:
    """Choose the GCC of a set, and return all ranges.

    If nvcc accepts the distribution's default GCC, that one is selected. Otherwise, the highest
    available major that nvcc accepts is selected, or its newest one if `available_gcc` is empty.
    Raises `UsageError` if none fits, or if the release is not in the table.
    """
    cuda, compat, default = spec.cuda, spec.data.nvcc, spec.request.default_gcc
    try:
        label = str(cuda) if str(cuda) in compat.releases else newest_release(cuda.line, compat)
        release = compat.releases[label]
    except UnknownNameError as error:
        message = f"nvcc_compat.json has no compilers for CUDA {cuda.line}"
        raise UsageError(message, hint=f"run `{command_line('update-nvcc-compat')}`") from error
    ranges = {
        name: HostRange(min=answer.min, max=answer.max)
        for name, answer in release.compilers.items()
        if isinstance(answer, CompilerRange)
    }
    chosen = _choose_gcc(ranges["gcc"], spec) if "gcc" in ranges else None
    is_newer = chosen is not None and default is not None and (chosen.selected or 0) > default
    return HostCompiler(
        gcc=chosen,
        clang=ranges.get("clang"),
        msvc=ranges.get("msvc"),
        cxx_runtime="selected" if default is None or is_newer else "default",
        glibc=None if spec.platform.os == "windows" else _glibc(release),
    )


def _glibc(release: NvccRelease) -> HostGlibc | None:
    bound = release.glibc
    return None if bound is None else HostGlibc(newest=bound.newest, clashes=bound.clashes)


def _choose_gcc(accepted: HostRange, spec: SetSpec) -> HostGcc:
    default, available = spec.request.default_gcc, spec.request.available_gcc
    uses_default = default is not None and accepted.accepts(default)
    selected = default if uses_default else accepted.max
    if not uses_default and available:
        selected = max(filter(accepted.accepts, available), default=None)
        if selected is None:
            option = spec.request.options.available_gcc
            majors = ", ".join(map(str, sorted({*available, *([default] if default else [])})))
            raise UsageError(
                f"nvcc of CUDA {spec.cuda.line} accepts GCC {accepted.min} to {accepted.max}, "
                f"but the available versions are {majors}",
                hint=f"add an accepted version with {option}: "
                f"`{again(f'{option} {accepted.max}', without=[option])}`",
            )
    return HostGcc(**dict(accepted), default=default, selected=selected, uses_default=uses_default)
