"""The table of capabilities: made from many releases and policy, and what follows from it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudaredist.errors import UnknownNameError
from cudaredist.primitives import Version, parse_label
from cudaredist.schema.tables import (
    BinarySource,
    CapabilityEntry,
    GpuPolicy,
    Gpus,
    OverlayEntry,
    PolicyFact,
)
from cudaredist.tables.gpus.capability import Capability

GpuFindingKind: TypeAlias = Literal[
    "overlay-lacks", "family-differs", "patches-differ", "gone-in-between"
]

_NO_OVERLAY = OverlayEntry(jetson=False, products=(), reason="", reference="")
_SHARED_FACTS = frozenset({"renamed_to"})


@dataclass(frozen=True, slots=True)
class KnownGpus:
    """What the `ptxas` of one release knows."""

    source: BinarySource
    families: Mapping[Capability, str]


@dataclass(frozen=True, slots=True)
class GpuFinding:
    """Something about a capability that a maintainer has to look at."""

    kind: GpuFindingKind
    capability: str
    message: str


def make_table(
    releases: Mapping[str, KnownGpus], policy: GpuPolicy
) -> tuple[Gpus, tuple[GpuFinding, ...]]:
    """Make the table of all releases, by label, and say what is odd about it.

    A CUDA minor is spoken for by its newest release. `last_cuda` is null for what the newest minor
    knows; `first_cuda` is the documented one where the oldest minor that was read knows it already.
    """
    findings: list[GpuFinding] = []
    by_minor = _by_minor(releases, findings)
    known = sorted({name for families in by_minor.values() for name in families})
    entries = {str(name): _entry(name, known, by_minor, policy, findings) for name in known}
    sources = {label: releases[label].source for label in releases}
    return Gpus(schema_version=1, capabilities=entries, sources=sources), tuple(findings)


def known_of_table(gpus: Gpus) -> dict[str, KnownGpus]:
    """Return what a table was made from: releases can be added without reading these again."""
    result = {}
    for label, source in gpus.sources.items():
        minor = parse_label(label).line
        families = {
            Capability.parse(name): entry.family
            for name, entry in gpus.capabilities.items()
            if is_between(minor, entry.first_cuda, entry.last_cuda)
        }
        result[label] = KnownGpus(source=source, families=families)
    return result


def merge_gpus(base: Gpus, local: Gpus, policy: GpuPolicy) -> Gpus:
    """Return two tables as one, release by release; the local entry wins.

    A capability that no release of either explains is kept as it is.
    """
    merged, _ = make_table(known_of_table(base) | known_of_table(local), policy)
    capabilities = base.capabilities | local.capabilities | merged.capabilities
    return merged.model_copy(update={"capabilities": capabilities})


def is_between(minor: str, first: str, last: str | None) -> bool:
    """Say whether a CUDA minor lies between two, both inclusive; None is no end."""
    at = Version.parse(minor)
    return Version.parse(first) <= at and (last is None or at <= Version.parse(last))


def takers(
    target: Capability, plain: Iterable[Capability], policy: GpuPolicy
) -> Iterator[Capability]:
    """Yield the plain capabilities whose GPUs take PTX that is built for a target.

    Plain PTX is taken by every later capability; that of an `a` target by its own only; that of an
    `f` target by later ones of its family, which are those of the same major number. A capability
    that was renamed later is of no family but its own.
    """

    def group(capability: Capability) -> tuple[int, str | None]:
        overlay = policy.overlay.get(str(capability), _NO_OVERLAY)
        return capability.major, fact_of(overlay.facts, "renamed_to")

    for capability in plain:
        if (
            (target.variant is None and capability >= target)
            or capability == target.base
            or (
                target.variant == "f"
                and capability > target.base
                and group(capability) == group(target.base)
            )
        ):
            yield capability


def fact_of(facts: Iterable[PolicyFact], field: str) -> str | None:
    """Return what policy says of a field; None where it says nothing."""
    return next((fact.value for fact in facts if fact.field == field), None)


def _by_minor(
    releases: Mapping[str, KnownGpus], findings: list[GpuFinding]
) -> dict[str, Mapping[Capability, str]]:
    """Return the families of each minor's newest release, in ascending order."""
    newest: dict[str, Mapping[Capability, str]] = {}
    for label in sorted(map(parse_label, releases)):
        families = releases[str(label)].families
        before = newest.get(label.line, families)
        findings += (
            GpuFinding("patches-differ", str(name), f"not in every release of {label.line}")
            for name in sorted(before.keys() ^ families.keys())
        )
        newest[label.line] = families
    return newest


def _family(
    name: Capability, known: Iterable[Mapping[Capability, str]], findings: list[GpuFinding]
) -> str:
    """Return the oldest release's name of an architecture, which cannot be a left-over one."""
    names = list(dict.fromkeys(families[name] for families in known))
    if len(names) > 1:
        message = f"called {', later '.join(names)}; the first was kept"
        findings.append(GpuFinding("family-differs", str(name), message))
    return names[0]


def _entry(
    name: Capability,
    known: Iterable[Capability],
    by_minor: Mapping[str, Mapping[Capability, str]],
    policy: GpuPolicy,
    findings: list[GpuFinding],
) -> CapabilityEntry:
    is_plain = name.variant is None
    overlay = policy.overlay.get(str(name.base))
    if overlay is None and is_plain:
        message = "policy/gpus.json says nothing of it"
        findings.append(GpuFinding("overlay-lacks", str(name), message))
    overlay = overlay or _NO_OVERLAY
    minors = list(by_minor)
    at = [index for index, minor in enumerate(minors) if name in by_minor[minor]]
    first, last = minors[at[0]], minors[at[-1]]
    if len(at) != at[-1] - at[0] + 1:
        message = f"known in {first} and {last}, and not always in between"
        findings.append(GpuFinding("gone-in-between", str(name), message))
    facts = tuple(fact for fact in overlay.facts if is_plain or fact.field in _SHARED_FACTS)
    documented = fact_of(facts, "first_cuda")
    if at[0] == 0 and documented and Version.parse(documented) < Version.parse(first):
        first = documented
    plain = [capability for capability in known if capability.variant is None]
    return CapabilityEntry(
        family=_family(name, [by_minor[minors[index]] for index in at], findings),
        base=str(name.base),
        variant=name.variant,
        first_cuda=first,
        last_cuda=None if last == minors[-1] else last,
        jetson=overlay.jetson,
        dont_default_after=fact_of(facts, "dont_default_after"),
        products=overlay.products,
        policy=facts,
        runs_on=tuple(map(str, takers(name, plain, policy))),
    )


def is_supported(entry: CapabilityEntry, cuda_minor: str) -> bool:
    """Say whether a CUDA release supports a capability, by its `ptxas` and by policy as well."""
    end_by_policy = fact_of(entry.policy, "last_cuda")
    return is_between(cuda_minor, entry.first_cuda, entry.last_cuda) and (
        end_by_policy is None or Version.parse(cuda_minor) <= Version.parse(end_by_policy)
    )


def supported_capabilities(cuda_minor: str, gpus: Gpus) -> tuple[str, ...]:
    """Return what a CUDA release supports, sorted; `UnknownNameError` for one beyond the table."""
    _check_is_known(cuda_minor, gpus)
    supported = (
        name for name, entry in gpus.capabilities.items() if is_supported(entry, cuda_minor)
    )
    return tuple(sorted(supported, key=Capability.parse))


def default_capabilities(cuda_minor: str, gpus: Gpus) -> tuple[str, ...]:
    """Return what a CUDA release is built for when nothing else is asked for.

    That is every supported capability without a letter that is no Jetson's and that policy has not
    taken from the defaults.
    """
    names = supported_capabilities(cuda_minor, gpus)
    entries = {name: gpus.capabilities[name] for name in names}
    return tuple(
        name
        for name, entry in entries.items()
        if entry.variant is None
        and not entry.jetson
        and is_between(cuda_minor, entry.first_cuda, entry.dont_default_after)
    )


def _check_is_known(cuda_minor: str, gpus: Gpus) -> None:
    minors = sorted({parse_label(label).line for label in gpus.sources}, key=Version.parse)
    try:
        is_known = bool(minors) and Version.parse(cuda_minor) <= Version.parse(minors[-1])
    except ValueError:
        is_known = False
    if not is_known:
        raise UnknownNameError("CUDA release of the table", cuda_minor, minors)
