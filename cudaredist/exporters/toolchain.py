"""Settings for shells and CMake: toolkit root, architectures, host compiler."""

from cudaredist.exporters.export_format import ExportedSet, Files, exporter, filled_template
from cudaredist.formats.host_compilers import HostRange
from cudaredist.primitives import Platform

_MACHINE = "aarch64"
"""The machine of all targets of cross toolkits."""


@exporter("env", "cuda-env.sh", takes_root=True, takes_target=True)
def env(exported: ExportedSet) -> Files:
    """Shell variables: root, architectures, host compiler."""
    return {"cuda-env.sh": filled_template("cuda-env.sh", **_settings(exported))}


@exporter("cmake", "cuda-toolchain.cmake", takes_root=True, takes_target=True)
def cmake(exported: ExportedSet) -> Files:
    """A CMake toolchain file: root, architectures, host compiler."""
    return {"cuda-toolchain.cmake": filled_template("cuda-toolchain.cmake", **_settings(exported))}


def _settings(exported: ExportedSet) -> dict[str, object]:
    return {
        "title": exported.title,
        "root": exported.root,
        "nvcc": _nvcc(exported),
        "machine": _MACHINE if exported.host else None,
        "flags": exported.package_set.capabilities,
        "accepted": _accepted_compilers(exported),
        "compiler": _host_compiler(exported),
        "library_folders": _library_folders(exported),
    }


def _nvcc(exported: ExportedSet) -> str | None:
    """Return the file name of nvcc, or None if the root has no nvcc.

    NVIDIA's wheels of CUDA 12 have a package cuda_nvcc without this program.
    """
    package_set = exported.host or exported.package_set
    package = package_set.packages.get("cuda_nvcc")
    if package is None or package.status != "available":
        return None
    name = "nvcc.exe" if _is_windows(exported) else "nvcc"
    if exported.record is None:
        return None if package_set.lacks_nvcc else name
    return name if f"bin/{name}" in exported.record.files else None


def _library_folders(exported: ExportedSet) -> list[str]:
    """Return the folders of the root in which the loader must search for libraries.

    They are unknown if the root does not exist yet. Libraries of a target do not run.
    """
    if exported.root is None or exported.host is not None or _is_windows(exported):
        return []
    record = exported.record
    if record is None or record.missing_run_paths is None:
        return ["lib"]
    return sorted({folder for gap in record.unreached.values() for folder in gap.folders})


def _host_compiler(exported: ExportedSet) -> str | None:
    """Return the host compiler to set, if any.

    Returns None if nvcc accepts the distribution's GCC, or if that is unknown. For a target, it is
    always a cross compiler.
    """
    gcc = exported.package_set.host_compiler.gcc
    version = None
    if gcc is not None and not _is_windows(exported):
        is_default_refused = gcc.default is not None and not gcc.uses_default
        version = gcc.selected if is_default_refused else None
    if exported.host is None:
        return None if version is None else f"g++-{version}"
    cross_compiler = f"{_MACHINE}-linux-gnu-g++"
    return cross_compiler if version is None else f"{cross_compiler}-{version}"


def _accepted_compilers(exported: ExportedSet) -> str:
    """Describe the host compilers that nvcc accepts on the set's platform."""
    host = exported.package_set.host_compiler
    ranges: tuple[tuple[str, HostRange | None], ...] = (("GCC", host.gcc), ("Clang", host.clang))
    if _is_windows(exported):
        ranges = (("_MSC_VER", host.msvc),)
    compilers = [f"{name} {_range(bounds)}" for name, bounds in ranges if bounds is not None]
    return f"nvcc accepts {', '.join(compilers)}." if compilers else "No host compiler is accepted."


def _range(bounds: HostRange) -> str:
    oldest, newest = bounds.min, bounds.max
    if oldest is None:
        return "of any version" if newest is None else f"to {newest}"
    return f"from {oldest}" if newest is None else f"{oldest} to {newest}"


def _is_windows(exported: ExportedSet) -> bool:
    return Platform(exported.package_set.platform.redist_system).os == "windows"
