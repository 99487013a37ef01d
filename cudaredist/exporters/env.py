"""Variables of a POSIX shell, for build systems that read the environment."""

from collections.abc import Iterator
from shlex import quote

from cudaredist.exporters.export_format import Exporter, Files, Subject
from cudaredist.exporters.toolchain import NVCC, accepted_compilers, host_compiler, nvcc_name


def _files(subject: Subject) -> Files:
    return {"cuda-env.sh": "".join(f"{line}\n" for line in _lines(subject)).encode()}


def _lines(subject: Subject) -> Iterator[str]:
    flags = subject.package_set.capabilities
    yield f"# {subject.title}: variables for a shell, made by cudaredist."
    yield "# Read it with: . ./cuda-env.sh"
    if subject.root is not None:
        yield f"export CUDA_HOME={quote(subject.root)}"
        yield 'export CUDA_PATH="$CUDA_HOME"'
        yield 'export CUDAToolkit_ROOT="$CUDA_HOME"'
        yield 'case ":$PATH:" in'
        yield '  *":$CUDA_HOME/bin:"*) ;;'
        yield '  *) export PATH="$CUDA_HOME/bin${PATH:+:$PATH}" ;;'
        yield "esac"
        if subject.is_available(NVCC):
            yield f'export CUDACXX="$CUDA_HOME/bin/{nvcc_name(subject)}"'
    yield f"export CUDAARCHS={quote(flags.cmake_architectures_real_virtual)}"
    yield f"export TORCH_CUDA_ARCH_LIST={quote(flags.torch_cuda_arch_list)}"
    yield f"# {accepted_compilers(subject)}"
    compiler = host_compiler(subject)
    if compiler is not None:
        yield f"export CUDAHOSTCXX={quote(compiler)}"
        yield f"export NVCC_CCBIN={quote(compiler)}"


ENV = Exporter(
    name="env",
    title="Variables for a shell: root, architectures, host compiler.",
    files=_files,
    file="cuda-env.sh",
    takes_root=True,
)
