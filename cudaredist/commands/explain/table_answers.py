"""explain: the answers about compilers, GPUs and CUDA releases, before their sources."""

from collections.abc import Iterable, Iterator, Sequence

from cudaredist.formats.tables import CompilerRange, Gpus, NvccCompat, NvccRelease, span
from cudaredist.grouping import grouped
from cudaredist.primitives import parse_label
from cudaredist.tables.explain_nvcc import COMPILER_NAMES, glibc_in_words
from cudaredist.tables.explanation import Fact, Topic
from cudaredist.tables.nvcc.compilers import visual_studio
from cudaredist.tables.nvcc.nvcc_table import newest_release

_MAIN = ("gcc", "clang", "msvc")


def nvcc_answer(name: str, compat: NvccCompat) -> Iterator[str]:
    """Yield the host compilers of a CUDA release in two lines, those of most people first."""
    label = newest_release(name, compat)
    release = compat.releases[label]
    chosen = "" if name == label else f", the newest of {name}"
    nvcc = "" if release.nvcc is None else f", nvcc {release.nvcc}"
    ranges = ", ".join([*_ranges(release, _MAIN), glibc_in_words(release.glibc)])
    yield f"CUDA {label}{chosen}{nvcc}: {ranges}"
    others = [name for name in release.compilers if name not in _MAIN]
    if others:
        yield f"other compilers: {', '.join(_ranges(release, others))}"


def cuda_answer(
    name: str, compat: NvccCompat, gpus: Gpus, topics: Sequence[Topic]
) -> Iterator[str]:
    """Yield the host compilers, the drivers and the compute capabilities of a CUDA release."""
    compilers, *others = nvcc_answer(name, compat)
    yield compilers
    label = newest_release(name, compat)
    facts = {fact.name: fact for topic in topics for fact in topic.facts}
    lowest, words = facts.get("driver.lowest"), []
    stated = dict(_driver(f) for topic in topics for f in topic.facts if f.name == "driver.native")
    if stated:
        release = label if label in stated else max(stated, key=parse_label)
        systems = stated[release]
        other = "" if release == label else f" (stated for CUDA {release})"
        words.append(f"all features from {systems}{other}")
    if lowest is not None:
        words.append(f"limited features from {_driver(lowest)[1]}")
    if words:
        yield f"drivers: {'; '.join(words)}"
    supported, default = facts.get("supported"), facts.get("default")
    if supported is not None and default is not None:
        target = facts["nvcc_target"].value or "unknown"
        yield (
            f"compute capabilities: {_names(supported)}; package sets select by default: "
            f"{_names(default)}; nvcc without options: {target}"
        )
        yield from _architectures(_names(supported).split(), gpus)
    yield from others


def _architectures(names: Iterable[str], gpus: Gpus) -> Iterator[str]:
    """Yield the architectures of capabilities, and the meaning of their letters."""
    entries = {name: gpus.capabilities[name] for name in names if name in gpus.capabilities}
    plain = [(entry.family, entry) for entry in entries.values() if entry.variant is None]
    texts = []
    for family, own in grouped(plain).items():
        bases = " ".join(entry.base for entry in own)
        example = next((entry.products[0] for entry in own if entry.products), None)
        texts.append(f"{family} {bases}" + (f" ({example})" if example else ""))
    if texts:
        yield f"architectures: {', '.join(texts)}"
    if any(entry.variant for entry in entries.values()):
        yield "with a: code for this capability only; with f: for its family"


def gpu_sentence(name: str, gpus: Gpus) -> str:
    """Return the CUDA releases that support a capability, in a sentence."""
    entry = gpus.capabilities[name]
    subject = f"compute capability {name} ({entry.family})"
    if entry.last_cuda is None:
        return f"CUDA {entry.first_cuda} and later support {subject}."
    span = f"CUDA {entry.first_cuda} to {entry.last_cuda}"
    return f"{span} support {subject}, later releases do not."


def _driver(fact: Fact) -> tuple[str, str]:
    """Return the release and the systems of a fact about the lowest driver."""
    words, _, systems = fact.statement.rpartition(": ")
    return words.rpartition("CUDA ")[2], systems.replace(", ", " and ")


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
            yield f"{title} {span(low, high)}"
        elif answer is not None:
            yield f"{title} {answer.status}"


def _version(value: int | None, unit: str) -> str | None:
    if value is not None and unit == "_MSC_VER":
        return visual_studio(value) or str(value)
    return None if value is None else str(value)
