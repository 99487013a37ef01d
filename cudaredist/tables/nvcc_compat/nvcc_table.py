"""From the header of each release, and policy, to one table; and what changed in it."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from cudaredist.errors import UnknownNameError
from cudaredist.primitives import Version, parse_label
from cudaredist.schema.tables import (
    CompilerRange,
    CompilerVerdict,
    HeaderSource,
    NvccCompat,
    NvccPolicy,
    NvccRelease,
    PolicySource,
    UnseenRelease,
)

POLICY_FILE = "policy/nvcc.json"

CompilerAnswer: TypeAlias = CompilerRange | CompilerVerdict
BoundField: TypeAlias = Literal["status", "min", "max"]


@dataclass(frozen=True, slots=True)
class BoundFinding:
    """A bound that a maintainer has to look at before it is written."""

    kind: Literal["goes-down", "changed"]
    """`goes-down`: less than in the release before; `changed`: other than what was held."""
    release: str
    compiler: str
    field: BoundField
    old: int | str | None
    new: int | str | None
    before: str | None = None
    """The release before, of which `old` is; None where `old` was held for this one."""

    def __str__(self) -> str:
        since = f" in {self.before}" if self.before else ""
        old, new = ("none" if end is None else end for end in (self.old, self.new))
        return f"{self.release}: {self.compiler} {self.field} was {old}{since} and is {new}"


def make_release(
    nvcc: str | None, source: HeaderSource, found: Mapping[str, CompilerAnswer], policy: NvccPolicy
) -> NvccRelease:
    """Return what is known of one release: what its header states, and older bounds of policy's.

    A documented lower bound replaces the header's only where it is the stricter one.
    """
    compilers = {
        compiler: _with_lower_bound(compiler, answer, policy) for compiler, answer in found.items()
    }
    return NvccRelease(nvcc=nvcc, source=source, compilers=compilers)


def make_compat(releases: Mapping[str, NvccRelease], policy: NvccPolicy) -> NvccCompat:
    """Return the table of these releases, and of the minors that only documentation speaks of.

    Where a release of such a minor was read, its own header is what counts.
    """
    read = {
        label: release
        for label, release in releases.items()
        if isinstance(release.source, HeaderSource)
    }
    minors = {parse_label(label).line for label in read}
    documented = {
        minor: _documented(unseen)
        for minor, unseen in policy.unseen_releases.items()
        if minor not in minors
    }
    return NvccCompat(schema_version=1, releases=documented | read)


def merge_compat(base: NvccCompat, local: NvccCompat) -> NvccCompat:
    """Return two tables as one, release by release; the local entry wins.

    A header that either has read replaces the documentation of its minor.
    """
    releases = base.releases | local.releases
    read = {
        parse_label(label).line
        for label, release in releases.items()
        if isinstance(release.source, HeaderSource)
    }
    kept = {
        label: release
        for label, release in releases.items()
        if isinstance(release.source, HeaderSource) or parse_label(label).line not in read
    }
    return NvccCompat(schema_version=1, releases=kept)


def newest_of(minor: str, compat: NvccCompat) -> str:
    """Return the label that speaks for a CUDA minor, or the release itself if it is one.

    Raises `UnknownNameError`, which suggests the nearest, for a release that is not in the table.
    """
    if minor in compat.releases:
        return minor
    labels = [parse_label(label) for label in compat.releases]
    of_line = [label for label in labels if label.line == minor]
    if not of_line:
        known = {*compat.releases, *(label.line for label in labels)}
        raise UnknownNameError("CUDA release", minor, known)
    return str(max(of_line))


def findings(old: NvccCompat | None, new: NvccCompat) -> tuple[BoundFinding, ...]:
    """Return bounds that changed for a release already held, and those that go down.

    A bound goes down where a release has a lower one than the release before, or refuses what that
    one took. Such a step is no finding where the old table has it, if between other releases.
    """
    held = {} if old is None else old.releases
    return (*_changed(held, new.releases), *_going_down(held, new.releases))


def hold_back(
    old: NvccCompat | None,
    made: Mapping[str, NvccRelease],
    policy: NvccPolicy,
    *,
    accept_new: bool = False,
) -> tuple[NvccCompat, AbstractSet[str]]:
    """Return the table without anything that is a finding, and the releases that were left out.

    With `accept_new`, only changes of releases that the old table has count.

    A release that was left out keeps what the old table has of it, or is not in the new one; the
    releases after it are then compared with the one before it. Of a step down, the later release
    is left out, or the earlier one where the later was there before.
    """
    held = {} if old is None else old.releases
    left_out: set[str] = set()
    while True:
        read = {label: release for label, release in made.items() if label not in left_out}
        table = make_compat({**held, **read}, policy)
        # What only policy has is not among what was made, and is left out here.
        kept = {
            label: held[label] if label in left_out else release
            for label, release in table.releases.items()
            if label not in left_out or label in held
        }
        table = table.model_copy(update={"releases": kept})
        found = [
            finding
            for finding in findings(old, table)
            if finding.kind == "changed" or not accept_new
        ]
        if not found:
            return table, left_out
        # One at a time: without it, others may be findings, or be none any more.
        left_out.add(_blamed(found[0], held))


def _blamed(finding: BoundFinding, held: Mapping[str, NvccRelease]) -> str:
    """Return the release without which a finding would be none."""
    if finding.before is not None and finding.release in held:
        return finding.before
    return finding.release


def _with_lower_bound(compiler: str, answer: CompilerAnswer, policy: NvccPolicy) -> CompilerAnswer:
    bound = policy.lower_bounds.get(compiler)
    if bound is None or not isinstance(answer, CompilerRange):
        return answer
    if answer.min is not None and answer.min >= bound.min:
        return answer.model_copy(update={"header_min": None})
    source = PolicySource(policy=POLICY_FILE, reference=bound.reference)
    return answer.model_copy(
        update={"min": bound.min, "min_basis": "documented", "documented_by": source}
    )


def _documented(unseen: UnseenRelease) -> NvccRelease:
    source = PolicySource(policy=POLICY_FILE, reference=unseen.reference)
    return NvccRelease(
        nvcc=None,
        source=source,
        compilers={
            compiler: CompilerRange(
                status="range",
                min=stated.min,
                max=stated.max,
                min_basis=None if stated.min is None else "documented",
                max_basis=None if stated.max is None else "documented",
                documented_by=source,
                note=stated.note,
            )
            for compiler, stated in unseen.compilers.items()
        },
    )


def _changed(
    held: Mapping[str, NvccRelease], releases: Mapping[str, NvccRelease]
) -> Iterator[BoundFinding]:
    for label in sorted(held.keys() & releases.keys(), key=Version.parse):
        before, after = held[label].compilers, releases[label].compilers
        for compiler in sorted(before.keys() | after.keys()):
            old, new = before.get(compiler), after.get(compiler)
            # If the verdict itself is another, that its bounds are gone says nothing more.
            is_same = getattr(old, "status", None) == getattr(new, "status", None)
            fields: tuple[BoundField, ...] = ("min", "max") if is_same else ("status",)
            for field in fields:
                was, is_now = getattr(old, field, None), getattr(new, field, None)
                if was != is_now:
                    yield BoundFinding("changed", label, compiler, field, was, is_now)


def _going_down(
    held: Mapping[str, NvccRelease], releases: Mapping[str, NvccRelease]
) -> Iterator[BoundFinding]:
    labels = sorted(releases, key=Version.parse)
    for before, after in pairwise(labels):
        held_old, held_new = _around(held, before, after)
        old = releases[before].compilers
        for compiler, new in sorted(releases[after].compilers.items()):
            known = set(_steps_down(held_old.get(compiler), held_new.get(compiler)))
            for step in _steps_down(old.get(compiler), new):
                if step not in known:
                    field, was, is_now = step
                    yield BoundFinding("goes-down", after, compiler, field, was, is_now, before)


def _around(
    held: Mapping[str, NvccRelease], before: str, after: str
) -> tuple[Mapping[str, CompilerAnswer], Mapping[str, CompilerAnswer]]:
    """Return the answers held for two releases, or for the nearest ones on their far sides."""
    upto = [label for label in held if Version.parse(label) <= Version.parse(before)]
    since = [label for label in held if Version.parse(label) >= Version.parse(after)]
    if not upto or not since:
        return {}, {}
    nearest = max(upto, key=Version.parse), min(since, key=Version.parse)
    return held[nearest[0]].compilers, held[nearest[1]].compilers


def _steps_down(
    old: CompilerAnswer | None, new: CompilerAnswer | None
) -> Iterator[tuple[BoundField, int | str | None, int | str | None]]:
    if old is None or new is None:
        return
    if new.status == "refused" and old.status != "refused":
        yield "status", old.status, new.status
    if not isinstance(old, CompilerRange) or not isinstance(new, CompilerRange):
        return
    # No lower bound is lower than any, and no upper bound higher.
    if old.min is not None and (new.min is None or new.min < old.min):
        yield "min", old.min, new.min
    if new.max is not None and (old.max is None or new.max < old.max):
        yield "max", old.max, new.max
