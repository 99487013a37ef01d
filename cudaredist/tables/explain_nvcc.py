"""Explanation of the host compilers that an nvcc accepts."""

from collections.abc import Iterable, Iterator

from cudaredist.primitives import parse_label
from cudaredist.schema.tables import (
    CompilerRange,
    CompilerVerdict,
    HeaderSource,
    NvccCompat,
    NvccPolicy,
    NvccRelease,
    PolicySource,
)
from cudaredist.tables.explanation import Claim, Fact, FactValue, Topic, list_fact
from cudaredist.tables.nvcc_compat.compilers import visual_studio
from cudaredist.tables.nvcc_compat.nvcc_table import newest_of

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


def explain_nvcc(name: str, compat: NvccCompat, policy: NvccPolicy) -> Topic:
    """Explain the host compilers accepted by a CUDA release or minor.

    Raises `UnknownNameError`, which suggests the nearest, if the release is not in the table.
    """
    label = newest_of(name, compat)
    release = compat.releases[label]
    facts: list[Fact] = []
    if release.nvcc is not None:
        facts.append(_read_fact(release, "nvcc", f"nvcc {release.nvcc}", release.nvcc))
    others = tuple(_siblings(label, compat))
    if others:
        words = "other releases of this minor"
        facts.append(list_fact("releases", words, others, "computed", "nvcc_compat.json"))
    for compiler, answer in release.compilers.items():
        if isinstance(answer, CompilerRange):
            facts += _range_facts(label, compiler, answer, compat, policy)
        else:
            facts.append(_verdict_fact(label, compiler, answer, compat))
    labeled = (fact.model_copy(update={"release": label}) for fact in facts)
    return Topic(title=f"nvcc of CUDA {label}", facts=tuple(labeled))


def _range_facts(
    label: str, compiler: str, answer: CompilerRange, compat: NvccCompat, policy: NvccPolicy
) -> Iterator[Fact]:
    release = compat.releases[label]
    name = _COMPILER_NAMES.get(compiler, compiler)
    own_source = answer.documented_by or release.source
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
            others.append(Claim(value=own, source=_place(release.source), reason=words))
        if end == "max" and isinstance(release.source, HeaderSource) and documented is not None:
            bound = documented.compilers.get(compiler)
            if bound is not None and bound.max != value:
                source = documented.reference
                others.append(Claim(value=bound.max, source=source, reason=bound.note))
        if end == "max" and answer.note is not None:
            place = _place(release.source if basis == "derived" else own_source)
            others.append(Claim(value=answer.note, source=place, reason="a note"))
        yield _read_fact(
            release,
            f"{compiler}.{end}",
            _bound_in_words(name, end, value, answer),
            value,
            source=own_source if basis == "documented" else release.source,
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
    words = {"refused": "every version is refused", "unchecked": "nvcc does not check the version"}
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
    value: FactValue,
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
        source=_place(source),
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
    label: str, compiler: str, field: str, value: FactValue, compat: NvccCompat
) -> Iterator[Claim]:
    """Yield different answers from other releases of the same minor."""
    for other in _siblings(label, compat):
        release = compat.releases[other]
        answer = release.compilers.get(compiler)
        other_value = getattr(answer, field, getattr(answer, "status", None))
        if answer is not None and other_value != value:
            place = _place(release.source)
            yield Claim(value=other_value, source=place, reason=f"CUDA {other}")


def _place(source: HeaderSource | PolicySource) -> str:
    if isinstance(source, HeaderSource):
        return f"{source.path} of {source.package} {source.version} ({source.channel})"
    return f"{source.reference} ({source.policy})"
