"""A fragment for CMake, as a toolchain file or included before `project`."""

from collections.abc import Iterator

from cudaredist.exporters.export_format import Exporter, Files, Subject
from cudaredist.exporters.toolchain import NVCC, accepted_compilers, host_compiler, nvcc_name

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "$": "\\$"})


def _files(subject: Subject) -> Files:
    lines = [
        f"# {subject.title}: for CMAKE_TOOLCHAIN_FILE, made by cudaredist.",
        f"# {accepted_compilers(subject)}",
    ]
    for name, value in _variables(subject):
        # What the caller has set stays.
        lines += [f"if(NOT DEFINED {name})", f"  set({name} {quoted(value)})", "endif()"]
    return {"cuda-toolchain.cmake": "".join(f"{line}\n" for line in lines).encode()}


def quoted(text: str) -> str:
    """Return a text as one argument of CMake's that means exactly this text."""
    return f'"{text.translate(_ESCAPES)}"'


def _variables(subject: Subject) -> Iterator[tuple[str, str]]:
    if subject.root is not None:
        # CMake takes a backslash for an escape in places where no quoting helps.
        root = subject.root.replace("\\", "/")
        yield "CUDAToolkit_ROOT", root
        if subject.is_available(NVCC):
            yield "CMAKE_CUDA_COMPILER", f"{root}/bin/{nvcc_name(subject)}"
    flags = subject.package_set.capabilities
    yield "CMAKE_CUDA_ARCHITECTURES", flags.cmake_architectures_real_virtual
    compiler = host_compiler(subject)
    if compiler is not None:
        yield "CMAKE_CUDA_HOST_COMPILER", compiler


CMAKE = Exporter(
    name="cmake",
    title="A toolchain file of CMake: root, architectures, host compiler.",
    files=_files,
    file="cuda-toolchain.cmake",
    takes_root=True,
)
