"""What the fragments for build systems say of a toolkit: its architectures, its host compiler."""

from cudaredist.exporters.export_format import Subject
from cudaredist.schema import HostRange

NVCC = "cuda_nvcc"


def host_compiler(subject: Subject) -> str | None:
    """Return the host compiler to name; None where the machine's own is meant to do.

    One is named only where the distribution's GCC is known and nvcc does not accept it.
    """
    gcc = subject.package_set.host_compiler.gcc
    if (
        is_windows(subject)
        or gcc is None
        or gcc.default is None
        or gcc.uses_default
        or gcc.selected is None
    ):
        return None
    return f"g++-{gcc.selected}"


def accepted_compilers(subject: Subject) -> str:
    """Say which host compilers nvcc accepts on the set's platform."""
    host = subject.package_set.host_compiler
    ranges: tuple[tuple[str, HostRange | None], ...] = (("GCC", host.gcc), ("Clang", host.clang))
    if is_windows(subject):
        ranges = (("_MSC_VER", host.msvc),)
    known = [f"{name} {_range(accepted)}" for name, accepted in ranges if accepted is not None]
    return f"nvcc accepts {', '.join(known)}." if known else "No host compiler is accepted."


def nvcc_name(subject: Subject) -> str:
    """Return the file name of nvcc on the set's platform."""
    return "nvcc.exe" if is_windows(subject) else "nvcc"


def is_windows(subject: Subject) -> bool:
    """Say whether the toolkit runs on Windows."""
    return subject.package_set.platform.redist_system.startswith("windows-")


def _range(accepted: HostRange) -> str:
    match accepted.min, accepted.max:
        case None, None:
            return "of any version"
        case None, newest:
            return f"to {newest}"
        case oldest, None:
            return f"from {oldest}"
        case oldest, newest:
            return f"{oldest} to {newest}"
