"""Fragments for build systems: a toolkit's root, architectures and host compiler."""

from collections.abc import Iterator
from shlex import quote

from cudaredist.exporters.export_format import ExportedSet, Files, exporter
from cudaredist.primitives import Platform
from cudaredist.schema.packageset import HostRange

_NVCC = "cuda_nvcc"
_CMAKE_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "$": "\\$"})


# -- variables of a POSIX shell


@exporter("env", "cuda-env.sh", takes_root=True)
def env(exported: ExportedSet) -> Files:
    """Variables for a shell: root, architectures, host compiler."""
    return {"cuda-env.sh": "".join(f"{line}\n" for line in _env_lines(exported)).encode()}


def _env_lines(exported: ExportedSet) -> Iterator[str]:
    flags = exported.package_set.capabilities
    yield f"# {exported.title}: variables for a shell, made by cudaredist."
    yield "# Read it with: . ./cuda-env.sh"
    if exported.root is not None:
        yield f"export CUDA_HOME={quote(exported.root)}"
        yield 'export CUDA_PATH="$CUDA_HOME"'
        yield 'export CUDAToolkit_ROOT="$CUDA_HOME"'
        yield 'case ":$PATH:" in'
        yield '  *":$CUDA_HOME/bin:"*) ;;'
        yield '  *) export PATH="$CUDA_HOME/bin${PATH:+:$PATH}" ;;'
        yield "esac"
        if exported.is_available(_NVCC):
            yield f'export CUDACXX="$CUDA_HOME/bin/{_nvcc_name(exported)}"'
    yield f"export CUDAARCHS={quote(flags.cmake_architectures_real_virtual)}"
    yield f"export TORCH_CUDA_ARCH_LIST={quote(flags.torch_cuda_arch_list)}"
    yield f"# {_accepted_compilers(exported)}"
    compiler = _host_compiler(exported)
    if compiler is not None:
        yield f"export CUDAHOSTCXX={quote(compiler)}"
        yield f"export NVCC_CCBIN={quote(compiler)}"


# -- a fragment for CMake, as a toolchain file or included before `project`


@exporter("cmake", "cuda-toolchain.cmake", takes_root=True)
def cmake(exported: ExportedSet) -> Files:
    """A toolchain file of CMake: root, architectures, host compiler."""
    lines = [
        f"# {exported.title}: for CMAKE_TOOLCHAIN_FILE, made by cudaredist.",
        f"# {_accepted_compilers(exported)}",
    ]
    for name, value in _cmake_variables(exported):
        # What the caller has set stays.
        quoted = f'"{value.translate(_CMAKE_ESCAPES)}"'
        lines += [f"if(NOT DEFINED {name})", f"  set({name} {quoted})", "endif()"]
    return {"cuda-toolchain.cmake": "".join(f"{line}\n" for line in lines).encode()}


def _cmake_variables(exported: ExportedSet) -> Iterator[tuple[str, str]]:
    if exported.root is not None:
        # CMake takes a backslash for an escape in places where no quoting helps.
        root = exported.root.replace("\\", "/")
        yield "CUDAToolkit_ROOT", root
        if exported.is_available(_NVCC):
            yield "CMAKE_CUDA_COMPILER", f"{root}/bin/{_nvcc_name(exported)}"
    flags = exported.package_set.capabilities
    yield "CMAKE_CUDA_ARCHITECTURES", flags.cmake_architectures_real_virtual
    compiler = _host_compiler(exported)
    if compiler is not None:
        yield "CMAKE_CUDA_HOST_COMPILER", compiler


# -- both


def _host_compiler(exported: ExportedSet) -> str | None:
    """Return the host compiler to name, or None if the machine's own is good enough.

    It is named only if the distribution's GCC is known and nvcc does not accept it.
    """
    gcc = exported.package_set.host_compiler.gcc
    if _is_windows(exported) or gcc is None or gcc.default is None or gcc.uses_default:
        return None
    return None if gcc.selected is None else f"g++-{gcc.selected}"


def _accepted_compilers(exported: ExportedSet) -> str:
    """Describe the host compilers that nvcc accepts on the set's platform."""
    host = exported.package_set.host_compiler
    ranges: tuple[tuple[str, HostRange | None], ...] = (("GCC", host.gcc), ("Clang", host.clang))
    if _is_windows(exported):
        ranges = (("_MSC_VER", host.msvc),)
    known = [f"{name} {_range(accepted)}" for name, accepted in ranges if accepted is not None]
    return f"nvcc accepts {', '.join(known)}." if known else "No host compiler is accepted."


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


def _nvcc_name(exported: ExportedSet) -> str:
    return "nvcc.exe" if _is_windows(exported) else "nvcc"


def _is_windows(exported: ExportedSet) -> bool:
    return Platform(exported.package_set.platform.redist_system).os == "windows"
