"""Table of accepted compilers, from headers and policy, and its changes."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.errors import NotInDataError, UnknownNameError
from cudaredist.formats.tables import (
    CompilerAnswer,
    CompilerRange,
    GlibcBound,
    HeaderSource,
    NvccCompat,
    NvccPolicy,
    NvccRelease,
    PolicySource,
    UnseenRelease,
)
from cudaredist.primitives import Version, find_release, parse_label

POLICY_FILE = "policy/nvcc.json"

BoundField: TypeAlias = Literal["status", "min", "max"]


class BoundFinding(NamedTuple):
    """A changed bound that a maintainer has to review."""

    kind: Literal["goes-down", "changed"]
    """`goes-down`: lower than in the release before. `changed`: differs from the old table."""
    release: str
    compiler: str
    field: BoundField
    old: int | str | None
    new: int | str | None
    before: str | None = None
    """The release before, which has the `old` bound. None if the old table has it."""

    def __str__(self) -> str:
        since = f" in {self.before}" if self.before else ""
        old, new = ("none" if end is None else end for end in (self.old, self.new))
        return f"{self.release}: {self.compiler} {self.field} was {old}{since} and is {new}"


def make_release(
    nvcc: str | None,
    source: HeaderSource,
    answers: Mapping[str, CompilerAnswer],
    policy: NvccPolicy,
) -> NvccRelease:
    """Return the entry of a release from its header and policy.

    A documented lower bound replaces the header's only if it is higher.
    """
    compilers = {name: _with_lower_bound(name, answer, policy) for name, answer in answers.items()}
    return NvccRelease(nvcc=nvcc, source=source, compilers=compilers)


def make_compat(releases: Mapping[str, NvccRelease], policy: NvccPolicy) -> NvccCompat:
    """Return the table of these releases and of documented minors.

    If a header of such a minor is known, it replaces the documentation.
    """
    read = {
        label: release
        for label, release in releases.items()
        if isinstance(release.source, HeaderSource)
    }
    documented = {minor: _documented(unseen) for minor, unseen in policy.unseen_releases.items()}
    return _table(documented | read)


def merge_compat(base: NvccCompat, local: NvccCompat) -> NvccCompat:
    """Return two tables as one, with local entries preferred.

    A header in either table replaces the documentation of its minor.
    """
    return _table(base.releases | local.releases)


def _table(releases: Mapping[str, NvccRelease]) -> NvccCompat:
    """Return the table of releases. Headers replace the documentation of their minors."""
    of_headers = {
        label for label, release in releases.items() if isinstance(release.source, HeaderSource)
    }
    minors = {parse_label(label).line for label in of_headers}
    used = {
        label: release
        for label, release in releases.items()
        if label in of_headers or parse_label(label).line not in minors
    }
    return NvccCompat(schema_version=1, releases=used)


def newest_release(text: str, compat: NvccCompat) -> str:
    """Return the release with a label, or the newest one with a prefix.

    Raises `NotInDataError` if the release is not in the table, and `UnknownNameError` for other
    words. Both suggest the nearest.
    """
    labels = [parse_label(label) for label in compat.releases]
    release = find_release(text, labels)
    if release is None:
        known = {*compat.releases, *(label.line for label in labels)}
        with suppress(ValueError):
            label = parse_label(text)
            raise NotInDataError(f"CUDA {label}", str(label), known)
        raise UnknownNameError("CUDA release", text, known)
    return str(release)


def compiles_with(bound: GlibcBound | None, glibc: Version) -> bool | None:
    """Return whether nvcc compiles with a glibc, None if it is unknown."""
    if bound is None:
        return None
    if glibc <= Version.parse(bound.newest):
        return True
    return False if bound.clashes else None


def findings(old: NvccCompat | None, new: NvccCompat) -> tuple[BoundFinding, ...]:
    """Return bounds that differ from the old table or go down.

    A bound goes down if a release has a lower one than the release before, or refuses a compiler
    that the release before accepts. Such a step is ignored if the old table has it too, even
    between other releases.
    """
    old_releases = {} if old is None else old.releases
    return (*_changed(old_releases, new.releases), *_going_down(old_releases, new.releases))


def hold_back(
    old: NvccCompat | None,
    made: Mapping[str, NvccRelease],
    policy: NvccPolicy,
    *,
    accept_new: bool = False,
) -> tuple[NvccCompat, AbstractSet[str]]:
    """Return the table without findings, and the releases left out.

    With `accept_new`, only changes to releases in the old table count.

    A release left out keeps its entry in the old table, or has none. The releases after it are then
    compared to the one before it. If a bound goes down, the later release is left out, or the
    earlier one if the later one is in the old table.
    """
    old_releases = {} if old is None else old.releases
    left_out: set[str] = set()
    while True:
        read = {label: release for label, release in made.items() if label not in left_out}
        table = make_compat({**old_releases, **read}, policy)
        # Releases that only policy has are not in `made`, so this can remove their entries too.
        entries = {
            label: old_releases[label] if label in left_out else release
            for label, release in table.releases.items()
            if label not in left_out or label in old_releases
        }
        table = table.model_copy(update={"releases": entries})
        kinds = {"changed"} if accept_new else {"changed", "goes-down"}
        serious = (finding for finding in findings(old, table) if finding.kind in kinds)
        finding = next(serious, None)
        if finding is None:
            return table, left_out
        # One at a time: leaving out a release can add findings and remove others.
        before = finding.before if finding.release in old_releases else None
        left_out.add(before or finding.release)


def _with_lower_bound(compiler: str, answer: CompilerAnswer, policy: NvccPolicy) -> CompilerAnswer:
    bound = policy.lower_bounds.get(compiler)
    if bound is None or not isinstance(answer, CompilerRange):
        return answer
    if answer.min is not None and answer.min >= bound.min:
        return answer.model_copy(update={"header_min": None})
    source = PolicySource(policy=POLICY_FILE, reference=bound.reference)
    update = {"min": bound.min, "min_basis": "documented", "documented_by": source}
    return answer.model_copy(update=update)


def _documented(unseen: UnseenRelease) -> NvccRelease:
    source = PolicySource(policy=POLICY_FILE, reference=unseen.reference)
    return NvccRelease(
        nvcc=None,
        source=source,
        compilers={
            compiler: CompilerRange(
                status="range",
                min=bound.min,
                max=bound.max,
                min_basis=None if bound.min is None else "documented",
                max_basis=None if bound.max is None else "documented",
                documented_by=source,
                note=bound.note,
            )
            for compiler, bound in unseen.compilers.items()
        },
    )


def _changed(
    old_releases: Mapping[str, NvccRelease], releases: Mapping[str, NvccRelease]
) -> Iterator[BoundFinding]:
    for label in sorted(old_releases.keys() & releases.keys(), key=Version.parse):
        before, after = old_releases[label].compilers, releases[label].compilers
        for compiler in sorted(before.keys() | after.keys()):
            old, new = before.get(compiler), after.get(compiler)
            # If the status differs, the bounds differ too and are not reported.
            is_same = getattr(old, "status", None) == getattr(new, "status", None)
            fields: tuple[BoundField, ...] = ("min", "max") if is_same else ("status",)
            for field in fields:
                was, is_now = getattr(old, field, None), getattr(new, field, None)
                if was != is_now:
                    yield BoundFinding("changed", label, compiler, field, was, is_now)
        had, has = old_releases[label].glibc, releases[label].glibc
        if had is not None and (has is None or had.newest != has.newest):
            newest = None if has is None else has.newest
            yield BoundFinding("changed", label, "glibc", "max", had.newest, newest)


def _going_down(
    old_releases: Mapping[str, NvccRelease], releases: Mapping[str, NvccRelease]
) -> Iterator[BoundFinding]:
    labels = sorted(releases, key=Version.parse)
    for before, after in pairwise(labels):
        known_old, known_new = _around(old_releases, before, after)
        old = releases[before].compilers
        for compiler, new in sorted(releases[after].compilers.items()):
            known = set(_steps_down(known_old.get(compiler), known_new.get(compiler)))
            for step in _steps_down(old.get(compiler), new):
                if step not in known:
                    field, was, is_now = step
                    yield BoundFinding("goes-down", after, compiler, field, was, is_now, before)


def _around(
    old_releases: Mapping[str, NvccRelease], before: str, after: str
) -> tuple[Mapping[str, CompilerAnswer], Mapping[str, CompilerAnswer]]:
    """Return the old answers for two releases or the nearest outside."""
    upto = [label for label in old_releases if Version.parse(label) <= Version.parse(before)]
    since = [label for label in old_releases if Version.parse(label) >= Version.parse(after)]
    if not upto or not since:
        return {}, {}
    nearest = max(upto, key=Version.parse), min(since, key=Version.parse)
    return old_releases[nearest[0]].compilers, old_releases[nearest[1]].compilers


def _steps_down(
    old: CompilerAnswer | None, new: CompilerAnswer | None
) -> Iterator[tuple[BoundField, int | str | None, int | str | None]]:
    if old is None or new is None:
        return
    if new.status == "refused" and old.status != "refused":
        yield "status", old.status, new.status
    if not isinstance(old, CompilerRange) or not isinstance(new, CompilerRange):
        return
    # A missing lower bound is lower than any, and a missing upper bound higher.
    if old.min is not None and (new.min is None or new.min < old.min):
        yield "min", old.min, new.min
    if new.max is not None and (old.max is None or new.max < old.max):
        yield "max", old.max, new.max
