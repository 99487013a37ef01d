"""Explanation of the host compilers that an nvcc accepts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cudaredist.formats.tables import (
    CompilerRange,
    GlibcBound,
    HeaderSource,
    NvccCompat,
    NvccPolicy,
    PolicySource,
)
from cudaredist.primitives import parse_label
from cudaredist.tables.explanation import Claim, Fact, FactValue, Origin, Topic, make_fact
from cudaredist.tables.nvcc.compilers import visual_studio
from cudaredist.tables.nvcc.nvcc_table import newest_release
from cudaredist.words import listed

if TYPE_CHECKING:
    from cudaredist.formats.host_compilers import HostGlibc

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
    if release.glibc is not None:
        facts.append(_glibc_fact(label, release.glibc, release.source, policy))
    return Topic(title=f"nvcc of CUDA {label}", facts=tuple(facts))


def glibc_in_words(glibc: "GlibcBound | HostGlibc | None") -> str:
    """Return the newest glibc that nvcc compiles with, in words."""
    if glibc is None:
        return "glibc unknown"
    return f"glibc up to {glibc.newest}{'' if glibc.clashes else ' at least'}"


def _glibc_fact(
    label: str, glibc: GlibcBound, source: HeaderSource | PolicySource, policy: NvccPolicy
) -> Fact:
    """Return the newest glibc that nvcc compiles with, with the functions that clash."""
    if isinstance(source, HeaderSource):
        source = source.model_copy(update={"path": glibc.path, "file_sha256": glibc.file_sha256})
    if glibc.clashes:
        words = f"glibc: {glibc.newest} is the newest that nvcc compiles with"
        reason = f"the next one declares {listed(glibc.clashes)} with another exception "
        reason += "specification"
    else:
        words = f"glibc: {glibc.newest} and all older known ones compile"
        reason = "no known glibc declares a function with another exception specification"
    if policy.glibc is not None:
        reason += f" ({policy.glibc.reference})"
    return make_fact("glibc.max", words, glibc.newest, _origin(source, label), reason)


def _range_facts(
    label: str, compiler: str, answer: CompilerRange, compat: NvccCompat, policy: NvccPolicy
) -> Iterator[Fact]:
    yield _min_fact(label, compiler, answer, compat, policy)
    yield _max_fact(label, compiler, answer, compat, policy)


def _min_fact(
    label: str, compiler: str, answer: CompilerRange, compat: NvccCompat, policy: NvccPolicy
) -> Fact:
    """Return the oldest accepted compiler version.

    If documentation states it, the header's bound is listed as a differing source.
    """
    source = compat.releases[label].source
    origin = _origin(source, label)
    claims = list(_other_answers(label, compiler, "min", answer.min, compat))
    reason = None
    if answer.min_basis == "documented":
        origin = _origin(answer.documented_by or source, label)
        bound = policy.lower_bounds.get(compiler)
        reason = bound.reason if bound else None
        if isinstance(source, HeaderSource):
            own, header = answer.header_min, _origin(source, label).source
            words = "the header has no lower bound" if own is None else "the header's own bound"
            claims.append(Claim(value=own, source=header, reason=words))
    words = _bound_in_words(compiler, "oldest", answer.min, answer)
    return make_fact(f"{compiler}.min", words, answer.min, origin, reason, claims)


def _max_fact(
    label: str, compiler: str, answer: CompilerRange, compat: NvccCompat, policy: NvccPolicy
) -> Fact:
    """Return the newest accepted compiler version.

    If documentation differs, it is listed as a differing source.
    """
    source = compat.releases[label].source
    origin = _origin(source, label)
    if answer.max_basis == "documented":
        origin = _origin(answer.documented_by or source, label)
    claims = list(_other_answers(label, compiler, "max", answer.max, compat))
    unseen = policy.unseen_releases.get(parse_label(label).line)
    if unseen is not None and isinstance(source, HeaderSource):
        stated = unseen.compilers.get(compiler)
        if stated is not None and stated.max != answer.max:
            claims.append(Claim(value=stated.max, source=unseen.reference, reason=stated.note))
    if answer.note is not None:
        claims.append(Claim(value=answer.note, source=origin.source, reason="a note"))
    words = _bound_in_words(compiler, "newest", answer.max, answer)
    return make_fact(f"{compiler}.max", words, answer.max, origin, otherwise=claims)


def _bound_in_words(compiler: str, end: str, value: int | None, answer: CompilerRange) -> str:
    name = COMPILER_NAMES.get(compiler, compiler)
    if value is None:
        return f"{name}: no {end} version"
    version = str(value)
    if answer.unit == "_MSC_VER":
        year = visual_studio(value)
        version = f"_MSC_VER {value} (Visual Studio {year})" if year else f"_MSC_VER {value}"
    return f"{name}: {version} is the {end} accepted"


def _siblings(label: str, compat: NvccCompat) -> tuple[str, ...]:
    line, releases = parse_label(label).line, sorted(map(parse_label, compat.releases))
    return tuple(
        str(release) for release in releases if release.line == line and str(release) != label
    )


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
