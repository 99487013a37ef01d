"""explain: the answers about compilers, GPUs and CUDA releases, before their sources."""

from collections.abc import Iterable, Iterator, Sequence

from cudaredist.formats.tables import CompilerRange, Gpus, NvccCompat, NvccRelease
from cudaredist.tables.explain_nvcc import COMPILER_NAMES
from cudaredist.tables.explanation import Fact, Topic
from cudaredist.tables.nvcc.compilers import visual_studio
from cudaredist.tables.nvcc.nvcc_table import newest_of

_MAIN = ("gcc", "clang", "msvc")


def nvcc_answer(name: str, compat: NvccCompat) -> Iterator[str]:
    """Yield the host compilers of a CUDA release in two lines, those of most people first."""
    label = newest_of(name, compat)
    release = compat.releases[label]
    nvcc = "" if release.nvcc is None else f", nvcc {release.nvcc}"
    yield f"CUDA {label}{nvcc}: {', '.join(_ranges(release, _MAIN)) or 'compilers unknown'}"
    others = [name for name in release.compilers if name not in _MAIN]
    if others:
        yield f"other compilers: {', '.join(_ranges(release, others))}"


def cuda_answer(name: str, compat: NvccCompat, topics: Sequence[Topic]) -> Iterator[str]:
    """Yield the drivers, the compute capabilities and the host compilers of a CUDA release."""
    facts = {fact.name: fact for topic in topics for fact in topic.facts}
    native, lowest = facts.get("driver.native"), facts.get("driver.lowest")
    if native is not None or lowest is not None:
        words = [_driver(native, "all"), _driver(lowest, "limited")]
        yield f"drivers: {'; '.join(filter(None, words))}"
    supported, default = facts.get("supported"), facts.get("default")
    if supported is not None and default is not None:
        yield f"compute capabilities: {_names(supported)}; built by default: {_names(default)}"
    yield from nvcc_answer(name, compat)


def gpu_answer(names: Iterable[str], gpus: Gpus) -> Iterator[str]:
    """Yield a line for each capability with the CUDA releases that support it."""
    for name in names:
        entry = gpus.capabilities[name]
        subject = f"compute capability {name} ({entry.family})"
        if entry.last_cuda is None:
            yield f"CUDA {entry.first_cuda} and later support {subject}."
        else:
            span = f"CUDA {entry.first_cuda} to {entry.last_cuda}"
            yield f"{span} support {subject}, later releases do not."


def _driver(fact: Fact | None, features: str) -> str | None:
    """Return the release and systems of a fact about the lowest driver."""
    if fact is None:
        return None
    words, _, systems = fact.statement.rpartition(": ")
    release = words[words.index("CUDA") :]
    return f"{features} features of {release} from {systems.replace(', ', ' and ')}"


def _names(fact: Fact) -> str:
    return " ".join(fact.value) if isinstance(fact.value, tuple) else str(fact.value)


def _ranges(release: NvccRelease, compilers: Sequence[str]) -> Iterator[str]:
    for compiler in compilers:
        answer = release.compilers.get(compiler)
        title = COMPILER_NAMES.get(compiler, compiler)
        if isinstance(answer, CompilerRange):
            low, high = (_version(value, answer.unit) for value in (answer.min, answer.max))
            if answer.unit == "_MSC_VER":
                title = "Visual Studio"
            yield f"{title} {low or 'any'} to {high or 'any'}"
        elif answer is not None:
            yield f"{title} {answer.status}"


def _version(value: int | None, unit: str) -> str | None:
    if value is not None and unit == "_MSC_VER":
        return visual_studio(value) or str(value)
    return None if value is None else str(value)
