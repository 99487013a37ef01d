"""What is known of a compiler, a GPU or a CUDA release, each fact with its source, as values.

Where documentation or policy says otherwise than the files that NVIDIA ships, both stand there.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.errors import UnknownNameError
from cudaredist.primitives import parse_label
from cudaredist.schema import (
    BinarySource,
    CapabilityEntry,
    CompilerRange,
    CompilerVerdict,
    GpuPolicy,
    Gpus,
    HeaderSource,
    NvccCompat,
    NvccPolicy,
    NvccRelease,
    OwnModel,
    PolicySource,
)
from cudaredist.tables.gpus import Capability, default_capabilities, supported_capabilities
from cudaredist.tables.gpus.gpu_table import fact_of, is_between
from cudaredist.tables.nvcc_compat import newest_of, visual_studio

Value: TypeAlias = str | int | bool | tuple[str, ...] | None
FactBasis: TypeAlias = Literal["derived", "documented", "policy", "computed"]

GPU_POLICY_FILE = "policy/gpus.json"

_COMPILER_NAMES = {
    "gcc": "GCC",
    "clang": "Clang",
    "msvc": "Visual C++",
    "grace-clang": "Grace Clang",
    "horizon-clang": "Horizon OS Clang",
    "icc": "Intel ICC",
    "icx": "Intel ICX",
    "nvhpc": "NVIDIA HPC",
}
_VARIANTS = {
    "a": "code of one architecture only: it runs on this capability and no other",
    "f": "code of one family: it runs on this capability and later ones of its family",
}
_target = re.compile(r"(?:sm|compute)_([1-9][0-9]{1,3})([af]?)").fullmatch
_RULE_OF_TARGETS = "rule of PTX targets, measured with ptxas 12.9.86 and 13.5.37"
_RULE_OF_SUPPORT = "rule: known to ptxas, and not ended by policy"
_RULE_OF_DEFAULTS = "rule: supported, no variant, no Jetson, not past dont_default_after"


class Claim(OwnModel):
    """What another source says of the same thing."""

    value: Value
    source: str
    reason: str | None = None


class Fact(OwnModel):
    """One thing that is known."""

    name: str = Field(description="Such as gcc.max or last_cuda")
    statement: str = Field(description="The fact in words")
    value: Value
    basis: FactBasis
    source: str
    file_sha256: str | None = Field(default=None, description="Of the file it was read from")
    reason: str | None = None
    otherwise: tuple[Claim, ...] = ()


class Topic(OwnModel):
    """What is known of one thing."""

    title: str
    facts: tuple[Fact, ...]


class Explanation(OwnModel):
    """The answer to one question."""

    kind: Literal["nvcc", "gpu", "cuda"]
    asked: str
    topics: tuple[Topic, ...]


def explain_nvcc(asked: str, compat: NvccCompat, policy: NvccPolicy) -> Explanation:
    """Say which host compilers the nvcc of a CUDA release or minor accepts.

    Raises `UnknownNameError`, which suggests the nearest, for a release that is not in the table.
    """
    return Explanation(kind="nvcc", asked=asked, topics=(_nvcc_topic(asked, compat, policy),))


def explain_gpu(asked: str, gpus: Gpus, policy: GpuPolicy) -> Explanation:
    """Say what is known of a capability, or of those of a product or an architecture.

    A product is found by words of its name. Raises `UnknownNameError` for what nothing is called.
    """
    names = _capabilities_called(asked, gpus)
    topics = (_capability_topic(name, gpus, policy) for name in names)
    return Explanation(kind="gpu", asked=asked, topics=tuple(topics))


def explain_cuda(asked: str, compat: NvccCompat, gpus: Gpus, policy: NvccPolicy) -> Explanation:
    """Say which compilers and capabilities a CUDA release or minor supports.

    Raises `UnknownNameError`, which suggests the nearest, for a release that is in no table.
    """
    compilers = _nvcc_topic(asked, compat, policy)
    minor = parse_label(newest_of(asked, compat)).line
    return Explanation(kind="cuda", asked=asked, topics=(compilers, _release_topic(minor, gpus)))


# -- compilers


def _nvcc_topic(asked: str, compat: NvccCompat, policy: NvccPolicy) -> Topic:
    label = newest_of(asked, compat)
    facts = list(_release_facts(label, compat))
    for compiler, answer in compat.releases[label].compilers.items():
        if isinstance(answer, CompilerRange):
            facts += _range_facts(label, compiler, answer, compat, policy)
        else:
            facts.append(_verdict_fact(label, compiler, answer, compat))
    return Topic(title=f"nvcc of CUDA {label}", facts=tuple(facts))


def _release_facts(label: str, compat: NvccCompat) -> Iterator[Fact]:
    release = compat.releases[label]
    if release.nvcc is not None:
        yield _read_fact(release, "nvcc", f"nvcc {release.nvcc}", release.nvcc)
    others = tuple(_siblings(label, compat))
    if others:
        words = "also read of this minor"
        yield _list_fact("releases", words, others, "computed", "nvcc_compat.json")


def _range_facts(
    label: str, compiler: str, answer: CompilerRange, compat: NvccCompat, policy: NvccPolicy
) -> Iterator[Fact]:
    release = compat.releases[label]
    name = _COMPILER_NAMES.get(compiler, compiler)
    stated = answer.documented_by or release.source
    documented = policy.unseen_releases.get(parse_label(label).line)
    for end, value, basis in (
        ("min", answer.min, answer.min_basis),
        ("max", answer.max, answer.max_basis),
    ):
        others = list(_other_answers(label, compiler, end, value, compat))
        reason = None
        if end == "min" and basis == "documented" and compiler in policy.lower_bounds:
            reason = policy.lower_bounds[compiler].reason
        if end == "min" and isinstance(release.source, HeaderSource) and basis == "documented":
            own = answer.header_min
            words = "the header has no lower bound" if own is None else "the header's own bound"
            others.append(Claim(value=own, source=_where(release.source), reason=words))
        if end == "max" and isinstance(release.source, HeaderSource) and documented is not None:
            told = documented.compilers.get(compiler)
            if told is not None and told.max != value:
                others.append(Claim(value=told.max, source=documented.reference, reason=told.note))
        if end == "max" and answer.note is not None:
            told_by = release.source if basis == "derived" else stated
            others.append(Claim(value=answer.note, source=_where(told_by), reason="a note"))
        yield _read_fact(
            release,
            f"{compiler}.{end}",
            _bound_in_words(name, end, value, answer),
            value,
            source=stated if basis == "documented" else release.source,
            reason=reason,
            otherwise=others,
        )


def _bound_in_words(name: str, end: str, value: int | None, answer: CompilerRange) -> str:
    if value is None:
        return f"{name}: no {'oldest' if end == 'min' else 'newest'} version"
    unit = f"{answer.unit} " if answer.unit == "_MSC_VER" else ""
    year = visual_studio(value) if answer.unit == "_MSC_VER" else None
    suffix = f" (Visual Studio {year})" if year else ""
    return f"{name}: {unit}{value}{suffix} is the {'oldest' if end == 'min' else 'newest'} accepted"


def _verdict_fact(label: str, compiler: str, answer: CompilerVerdict, compat: NvccCompat) -> Fact:
    words = {"refused": "every version is refused", "unchecked": "no version is looked at"}
    name = _COMPILER_NAMES.get(compiler, compiler)
    return _read_fact(
        compat.releases[label],
        compiler,
        f"{name}: {words[answer.status]}",
        answer.status,
        reason=answer.note,
        otherwise=_other_answers(label, compiler, "status", answer.status, compat),
    )


def _read_fact(
    release: NvccRelease,
    name: str,
    statement: str,
    value: Value,
    *,
    source: HeaderSource | PolicySource | None = None,
    reason: str | None = None,
    otherwise: Iterable[Claim] = (),
) -> Fact:
    source = source or release.source
    is_header = isinstance(source, HeaderSource)
    return Fact(
        name=name,
        statement=statement,
        value=value,
        basis="derived" if is_header else "documented",
        source=_where(source),
        file_sha256=source.file_sha256 if isinstance(source, HeaderSource) else None,
        reason=reason,
        otherwise=tuple(otherwise),
    )


def _siblings(label: str, compat: NvccCompat) -> Iterator[str]:
    line = parse_label(label).line
    for other in sorted(map(parse_label, compat.releases)):
        if other.line == line and str(other) != label:
            yield str(other)


def _other_answers(
    label: str, compiler: str, field: str, value: Value, compat: NvccCompat
) -> Iterator[Claim]:
    """Yield what other releases of the same minor say, where it is something else."""
    for other in _siblings(label, compat):
        release = compat.releases[other]
        answer = release.compilers.get(compiler)
        told = getattr(answer, field, getattr(answer, "status", None))
        if answer is not None and told != value:
            yield Claim(value=told, source=_where(release.source), reason=f"CUDA {other}")


def _where(source: HeaderSource | PolicySource) -> str:
    if isinstance(source, HeaderSource):
        return f"{source.path} of {source.package} {source.version} ({source.channel})"
    return f"{source.reference} ({source.policy})"


# -- capabilities


def _capabilities_called(asked: str, gpus: Gpus) -> list[str]:
    target = _target(asked)
    name = str(Capability.of_target(target[1], target[2])) if target else asked
    if name in gpus.capabilities:
        return [name]
    words = asked.casefold().split()
    plain = {name: entry for name, entry in gpus.capabilities.items() if entry.variant is None}
    found = [
        name
        for name, entry in plain.items()
        if any(_has_words(title, words) for title in (*entry.products, entry.family))
    ]
    # A chip that was renamed is the same chip: what was called 10.1 is 11.0 now.
    renamed = (fact_of(plain[name].policy, "renamed_to") for name in found)
    found += [name for name in renamed if name in plain and name not in found]
    if not found:
        titles = {title.casefold() for entry in plain.values() for title in entry.products}
        titles |= {entry.family.casefold() for entry in plain.values()}
        # Where nothing is near, a list of every product would help nobody.
        is_near = difflib.get_close_matches(asked.casefold(), titles, cutoff=0.5)
        raise UnknownNameError("GPU", asked, titles if is_near else gpus.capabilities)
    return found


def _has_words(title: str, words: Iterable[str]) -> bool:
    present = set(title.casefold().replace("(", " ").replace(")", " ").replace(",", " ").split())
    wanted = set(words)
    return bool(wanted) and wanted <= present


def _capability_topic(name: str, gpus: Gpus, policy: GpuPolicy) -> Topic:
    entry = gpus.capabilities[name]
    facts = [
        *_read_of_ptxas(entry, gpus),
        Fact(
            name="runs_on",
            statement=f"GPUs that take its PTX: {', '.join(entry.runs_on)}",
            value=entry.runs_on,
            basis="computed",
            source=_RULE_OF_TARGETS,
            reason=_VARIANTS.get(entry.variant or ""),
        ),
        *_policy_facts(entry, policy),
    ]
    return Topic(title=f"compute capability {name} ({entry.family})", facts=tuple(facts))


def _read_of_ptxas(entry: CapabilityEntry, gpus: Gpus) -> Iterator[Fact]:
    labels = sorted(map(parse_label, gpus.sources))
    known = [
        str(label) for label in labels if is_between(label.line, entry.first_cuda, entry.last_cuda)
    ]
    if not known:
        # A table that someone wrote by hand; its own word is all there is.
        return
    oldest, newest = known[0], known[-1]
    yield _ptxas_fact("family", f"its architecture is {entry.family}", entry.family, oldest, gpus)
    yield _first_cuda(entry, oldest, is_oldest_read=oldest == str(labels[0]), gpus=gpus)
    words = f"the newest CUDA release that knows it is {entry.last_cuda}"
    if entry.last_cuda is None:
        words = f"still known to the newest release that was read, CUDA {newest}"
    others = _claims(entry, "last_cuda", entry.last_cuda)
    yield _ptxas_fact("last_cuda", words, entry.last_cuda, newest, gpus, others)


def _first_cuda(entry: CapabilityEntry, oldest: str, *, is_oldest_read: bool, gpus: Gpus) -> Fact:
    words = f"the oldest CUDA release that knows it is {entry.first_cuda}"
    read_since = parse_label(oldest).line
    if is_oldest_read and read_since == entry.first_cuda:
        words += ", the oldest that was read"
    others = list(_claims(entry, "first_cuda", entry.first_cuda))
    stated = next((fact for fact in entry.policy if fact.field == "first_cuda"), None)
    if stated is None or stated.value != entry.first_cuda or read_since == entry.first_cuda:
        return _ptxas_fact("first_cuda", words, entry.first_cuda, oldest, gpus, others)
    claim = Claim(
        value=read_since,
        source=_binary(gpus.sources[oldest], oldest),
        reason="the oldest release that was read, and it knows it already",
    )
    return Fact(
        name="first_cuda",
        statement=words,
        value=entry.first_cuda,
        basis="documented",
        source=f"{stated.reference} ({GPU_POLICY_FILE})",
        reason=stated.reason,
        otherwise=(claim, *others),
    )


def _policy_facts(entry: CapabilityEntry, policy: GpuPolicy) -> Iterator[Fact]:
    overlay = policy.overlay.get(entry.base)
    source = f"{overlay.reference} ({GPU_POLICY_FILE})" if overlay else "no policy names it"
    reason = overlay.reason if overlay else None
    yield Fact(
        name="jetson",
        statement="a Jetson or another Tegra" if entry.jetson else "neither Jetson nor Tegra",
        value=entry.jetson,
        basis="policy",
        source=source,
        reason=reason,
    )
    yield _list_fact("products", "example products", entry.products, "policy", source)
    words = {
        "dont_default_after": "not built by default after CUDA {}",
        "renamed_to": "called {} in later CUDA releases",
    }
    for fact in entry.policy:
        if fact.field in words:
            yield Fact(
                name=fact.field,
                statement=words[fact.field].format(fact.value),
                value=fact.value,
                basis="policy",
                source=f"{fact.reference} ({GPU_POLICY_FILE})",
                reason=fact.reason,
            )


def _claims(entry: CapabilityEntry, field: str, value: str | None) -> Iterator[Claim]:
    for fact in entry.policy:
        if fact.field == field and fact.value != value:
            source = f"{fact.reference} ({GPU_POLICY_FILE})"
            yield Claim(value=fact.value, source=source, reason=fact.reason)


def _ptxas_fact(
    name: str,
    statement: str,
    value: Value,
    label: str,
    gpus: Gpus,
    otherwise: Iterable[Claim] = (),
) -> Fact:
    source = gpus.sources[label]
    return Fact(
        name=name,
        statement=statement,
        value=value,
        basis="derived",
        source=_binary(source, label),
        file_sha256=source.file_sha256,
        otherwise=tuple(otherwise),
    )


def _binary(source: BinarySource, label: str) -> str:
    return f"{source.path} of {source.package} in CUDA {label} ({source.channel})"


# -- releases


def _release_topic(minor: str, gpus: Gpus) -> Topic:
    source, sha256, basis = _source_of_minor(minor, gpus)
    supported, default = supported_capabilities(minor, gpus), default_capabilities(minor, gpus)
    known = tuple(
        name
        for name in sorted(gpus.capabilities, key=Capability.parse)
        if is_between(minor, gpus.capabilities[name].first_cuda, gpus.capabilities[name].last_cuda)
    )
    withheld = _withheld([name for name in known if name not in supported], gpus)
    facts = (
        _list_fact("known", "ptxas knows", known, basis, source, sha256),
        _list_fact(
            "supported", "supported", supported, "computed", _RULE_OF_SUPPORT, None, withheld
        ),
        _list_fact("default", "built by default", default, "computed", _RULE_OF_DEFAULTS),
    )
    return Topic(title=f"compute capabilities of CUDA {minor}", facts=facts)


def _list_fact(
    name: str,
    words: str,
    value: tuple[str, ...],
    basis: FactBasis,
    source: str,
    file_sha256: str | None = None,
    otherwise: Iterable[Claim] = (),
) -> Fact:
    return Fact(
        name=name,
        statement=f"{words}: {', '.join(value) or 'none'}",
        value=value,
        basis=basis,
        source=source,
        file_sha256=file_sha256,
        otherwise=tuple(otherwise),
    )


def _source_of_minor(minor: str, gpus: Gpus) -> tuple[str, str | None, FactBasis]:
    labels = [label for label in map(parse_label, gpus.sources) if label.line == minor]
    if not labels:
        # Of a release between or before those that were read, only the ends of the others speak.
        return "gpus.json; no ptxas of this release was read", None, "computed"
    label = str(max(labels))
    return _binary(gpus.sources[label], label), gpus.sources[label].file_sha256, "derived"


def _withheld(names: Iterable[str], gpus: Gpus) -> Iterator[Claim]:
    """Yield why policy does not count as supported what ptxas knows."""
    for name in names:
        entry = gpus.capabilities[name]
        for claim in _claims(entry, "last_cuda", entry.last_cuda):
            end = entry.last_cuda or "no end seen"
            words = f"{name}: until CUDA {claim.value} by policy, {end} by ptxas"
            yield Claim(value=words, source=claim.source, reason=claim.reason)
