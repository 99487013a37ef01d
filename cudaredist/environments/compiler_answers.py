"""Answers to messages of compilers that do not know a GPU, such as nvcc, ptxas and NVRTC."""

from collections.abc import Iterator, Sequence

from packaging.specifiers import SpecifierSet

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.primitives import Version
from cudaredist.programs.finding import some_of
from cudaredist.programs.program import AuditData, paths_of
from cudaredist.programs.report import ErrorAnswer

_COMPILERS = frozenset({"nvcc", "ptxas"})
_NVRTC = "libnvrtc.so."


def compiler_answers(
    gpus: Sequence[str], environment: JudgedEnvironment, data: AuditData
) -> Iterator[ErrorAnswer]:
    """Yield the CUDA releases whose compilers know each GPU, and the installed compilers."""
    if not gpus:
        message = f"the compiler does not know the GPU; the environment has {_titles(environment)}"
        message += ". Name your GPU with --require-gpu (host: that of this machine)"
        yield ErrorAnswer(kind="gpu", name=None, message=message)
    for gpu in gpus:
        first = None if data.rules is None else data.rules.first_cuda(gpu)
        last = None if data.rules is None or first is None else data.rules.last_cuda(gpu)
        message = f"code for capability {gpu} needs a compiler of CUDA {first or 'a later release'}"
        if first is not None:
            message += f" to {last}" if last else " or later"
        installed = environment.compilers()
        message += f"; the environment has {_titles(environment)}"
        hint = None
        if installed and first is not None:
            versions = SpecifierSet(f">={first}" if last is None else f"<{_next_minor(last)}")
            package, minor = installed[0]
            is_known = Version.parse(first) <= Version.parse(minor)
            is_known &= last is None or Version.parse(minor) <= Version.parse(last)
            if is_known:
                message += f". {package.title} knows it, so another compiler is used"
            else:
                repair = environment.repairs.install(package.project, versions)
                hint = None if repair is None else repair.command
        yield ErrorAnswer(kind="gpu", name=gpu, message=message, hint=hint)


def _titles(environment: JudgedEnvironment) -> str:
    """Return the installed compilers, also those in packages of others, such as triton."""
    titles = [package.title for package, _ in environment.compilers()]
    if titles:
        return some_of(titles)
    files = [
        file
        for file in environment.environment.files
        if file.name in _COMPILERS or file.name.startswith(_NVRTC)
    ]
    owners = sorted({environment.owners.title_of(file) for file in files} - {""})
    if not owners:
        return "no compiler, so that of the system is used"
    return f"{some_of(paths_of(files))} of {some_of(owners)}, of which another release may know it"


def _next_minor(minor: str) -> str:
    """Return the release line after a CUDA minor."""
    major, _, number = minor.partition(".")
    return f"{major}.{int(number) + 1}"
