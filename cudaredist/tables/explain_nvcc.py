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
from cudaredist.tables.nvcc.nvcc_table import newest_of

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
_VERDICTS = {"refused": "every version is refused", "unchecked": "nvcc does not check the version"}


def explain_nvcc(name: str, compat: NvccCompat, policy: NvccPolicy) -> Topic:
    """Explain the host compilers accepted by a CUDA release or minor.

    Raises `UnknownNameError`, which suggests the nearest, if the release is not in the table.
    """
    label = newest_of(name, compat)
    release = compat.releases[label]
    origin = _origin(release.source, label)
    facts: list[Fact] = []
    if release.nvcc is not None:
        facts.append(make_fact("nvcc", f"nvcc {release.nvcc}", release.nvcc, origin))
    others = tuple(_siblings(label, compat))
    if others:
        table = Origin("computed", "nvcc_compat.json", release=label)
        facts.append(make_fact("releases", "other releases of this minor", others, table))
    for compiler, answer in release.compilers.items():
        if isinstance(answer, CompilerRange):
            facts += _range_facts(label, compiler, answer, compat, policy)
        else:
            words = f"{_COMPILER_NAMES.get(compiler, compiler)}: {_VERDICTS[answer.status]}"
            claims = _other_answers(label, compiler, "status", answer.status, compat)
            facts.append(make_fact(compiler, words, answer.status, origin, answer.note, claims))
    return Topic(title=f"nvcc of CUDA {label}", facts=tuple(facts))


def _range_facts(
    label: str, compiler: str, answer: CompilerRange, compat: NvccCompat, policy: NvccPolicy
) -> Iterator[Fact]:
    release = compat.releases[label]
    name = _COMPILER_NAMES.get(compiler, compiler)
    is_header = isinstance(release.source, HeaderSource)
    origin = _origin(release.source, label)
    documentation = _origin(answer.documented_by or release.source, label)
    unseen = policy.unseen_releases.get(parse_label(label).line) if is_header else None
    stated = unseen.compilers.get(compiler) if unseen is not None else None
    ends = (
        ("min", "oldest", answer.min, answer.min_basis),
        ("max", "newest", answer.max, answer.max_basis),
    )
    for field, end, value, basis in ends:
        is_documented = basis == "documented"
        claims, bound = list(_other_answers(label, compiler, field, value, compat)), None
        if field == "min" and is_documented:
            bound = policy.lower_bounds.get(compiler)
            if is_header:
                own = answer.header_min
                words = "the header has no lower bound" if own is None else "the header's own bound"
                claims.append(Claim(value=own, source=origin.source, reason=words))
        if field == "max" and unseen is not None and stated is not None and stated.max != value:
            claims.append(Claim(value=stated.max, source=unseen.reference, reason=stated.note))
        if field == "max" and answer.note is not None:
            source = origin.source if basis == "derived" else documentation.source
            claims.append(Claim(value=answer.note, source=source, reason="a note"))
        yield make_fact(
            f"{compiler}.{field}",
            _bound_in_words(name, end, value, answer),
            value,
            documentation if is_documented else origin,
            bound.reason if bound is not None else None,
            claims,
        )


def _bound_in_words(name: str, end: str, value: int | None, answer: CompilerRange) -> str:
    if value is None:
        return f"{name}: no {end} version"
    unit = f"{answer.unit} " if answer.unit == "_MSC_VER" else ""
    year = visual_studio(value) if answer.unit == "_MSC_VER" else None
    suffix = f" (Visual Studio {year})" if year else ""
    return f"{name}: {unit}{value}{suffix} is the {end} accepted"


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
            source = _origin(release.source, other).source
            yield Claim(value=other_value, source=source, reason=f"CUDA {other}")


def _origin(source: HeaderSource | PolicySource, label: str) -> Origin:
    if isinstance(source, HeaderSource):
        path = f"{source.path} of {source.package} {source.version} ({source.channel})"
        return Origin("derived", path, source.file_sha256, label)
    return Origin("documented", f"{source.reference} ({source.policy})", release=label)
