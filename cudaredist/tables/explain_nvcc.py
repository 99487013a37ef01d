"""Explanation of the host compilers that an nvcc accepts."""

from collections.abc import Iterator

from cudaredist.formats.tables import (
    CompilerRange,
    HeaderSource,
    NvccCompat,
    NvccPolicy,
    PolicySource,
)
from cudaredist.primitives import parse_label
from cudaredist.tables.explanation import Claim, Fact, FactValue, Origin, Topic, make_fact
from cudaredist.tables.nvcc.compilers import visual_studio
from cudaredist.tables.nvcc.nvcc_table import newest_release

COMPILER_NAMES = {
    "gcc": "GCC",
    "clang": "Clang",
    "msvc": "Visual C++",
    "grace-clang": "Grace Clang",
    "horizon-clang": "Horizon OS Clang",
    "icc": "Intel ICC",
    "icx": "Intel ICX",
    "nvhpc": "NVIDIA HPC",
}
"""The titles of compilers."""
_VERDICTS = {"refused": "every version is refused", "unchecked": "nvcc does not check the version"}


def explain_nvcc(name: str, compat: NvccCompat, policy: NvccPolicy) -> Topic:
    """Explain the host compilers accepted by a CUDA release or minor.

    Raises `UnknownNameError`, which suggests the nearest, if the release is not in the table.
    """
    label = newest_release(name, compat)
    release = compat.releases[label]
    origin = _origin(release.source, label)
    facts: list[Fact] = []
    if release.nvcc is not None:
        facts.append(make_fact("nvcc", f"nvcc {release.nvcc}", release.nvcc, origin))
    if others := _siblings(label, compat):
        table = Origin("computed", "nvcc_compat.json", release=label)
        facts.append(make_fact("releases", "other releases of this minor", others, table))
    for compiler, answer in release.compilers.items():
        if isinstance(answer, CompilerRange):
            facts += _range_facts(label, compiler, answer, compat, policy)
        else:
            words = f"{COMPILER_NAMES.get(compiler, compiler)}: {_VERDICTS[answer.status]}"
            claims = _other_answers(label, compiler, "status", answer.status, compat)
            facts.append(make_fact(compiler, words, answer.status, origin, answer.note, claims))
    return Topic(title=f"nvcc of CUDA {label}", facts=tuple(facts))


def _range_facts(
    label: str, compiler: str, answer: CompilerRange, compat: NvccCompat, policy: NvccPolicy
) -> Iterator[Fact]:
    header = compat.releases[label].source
    is_header = isinstance(header, HeaderSource)
    unseen = policy.unseen_releases.get(parse_label(label).line) if is_header else None
    stated = unseen and unseen.compilers.get(compiler)
    for field, end in (("min", "oldest"), ("max", "newest")):
        value = getattr(answer, field)
        is_documented = getattr(answer, f"{field}_basis") == "documented"
        origin = _origin((is_documented and answer.documented_by) or header, label)
        claims, bound = list(_other_answers(label, compiler, field, value, compat)), None
        if field == "min" and is_documented:
            bound = policy.lower_bounds.get(compiler)
            if is_header:
                own, source = answer.header_min, _origin(header, label).source
                words = "the header has no lower bound" if own is None else "the header's own bound"
                claims.append(Claim(value=own, source=source, reason=words))
        if field == "max" and unseen and stated and stated.max != value:
            claims.append(Claim(value=stated.max, source=unseen.reference, reason=stated.note))
        if field == "max" and answer.note is not None:
            claims.append(Claim(value=answer.note, source=origin.source, reason="a note"))
        words = _bound_in_words(COMPILER_NAMES.get(compiler, compiler), end, value, answer)
        reason = bound.reason if bound else None
        yield make_fact(f"{compiler}.{field}", words, value, origin, reason, claims)


def _bound_in_words(name: str, end: str, value: int | None, answer: CompilerRange) -> str:
    if value is None:
        return f"{name}: no {end} version"
    version = str(value)
    if answer.unit == "_MSC_VER":
        year = visual_studio(value)
        version = f"_MSC_VER {value} (Visual Studio {year})" if year else f"_MSC_VER {value}"
    return f"{name}: {version} is the {end} accepted"


def _siblings(label: str, compat: NvccCompat) -> tuple[str, ...]:
    line, others = parse_label(label).line, sorted(map(parse_label, compat.releases))
    return tuple(str(x) for x in others if x.line == line and str(x) != label)


def _other_answers(
    label: str, compiler: str, field: str, value: FactValue, compat: NvccCompat
) -> Iterator[Claim]:
    """Yield different answers from other releases of the same minor."""
    for other in _siblings(label, compat):
        release = compat.releases[other]
        answer = release.compilers.get(compiler)
        other_value = getattr(answer, field, getattr(answer, "status", None))
        if answer is not None and other_value != value:
            source = _origin(release.source, other).source
            yield Claim(value=other_value, source=source, reason=f"CUDA {other}")


def _origin(source: HeaderSource | PolicySource, label: str) -> Origin:
    if isinstance(source, HeaderSource):
        path = f"{source.path} of {source.package} {source.version} ({source.channel})"
        return Origin("derived", path, source.file_sha256, label)
    return Origin("documented", f"{source.reference} ({source.policy})", release=label)
