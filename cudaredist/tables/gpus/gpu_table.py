"""Table of capabilities, from many releases and policy."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cudaredist.errors import UnknownNameError
from cudaredist.formats.tables import (
    BinarySource,
    CapabilityEntry,
    GpuPolicy,
    Gpus,
    OverlayEntry,
    PolicyFact,
    TableFinding,
    TableFindingKind,
)
from cudaredist.primitives import Version, parse_label
from cudaredist.tables.gpus.capability import Capability

_NO_OVERLAY = OverlayEntry(jetson=False, products=(), reason="none", reference="")
_SHARED_FACTS = frozenset({"renamed_to"})


class KnownGpus(NamedTuple):
    """The capabilities in the `ptxas` of one release."""

    source: BinarySource
    families: Mapping[Capability, str]


def make_table(
    releases: Mapping[str, KnownGpus], policy: GpuPolicy
) -> tuple[Gpus, tuple[TableFinding, ...]]:
    """Return the table of all releases, and findings about it.

    A minor has the capabilities of its newest release. `last_cuda` is null if the newest minor has
    the capability. `first_cuda` is the documented value if even the oldest minor read has it.
    """
    maker = _TableMaker(releases, policy)
    entries = {str(name): maker.entry(name) for name in maker.known}
    sources = {label: release.source for label, release in releases.items()}
    return Gpus(schema_version=1, capabilities=entries, sources=sources), tuple(maker.findings)


def known_of_table(gpus: Gpus) -> dict[str, KnownGpus]:
    """Return the input of a table, to add further releases."""
    result = {}
    for label, source in gpus.sources.items():
        names = known_to(parse_label(label).line, gpus)
        families = {Capability.parse(name): gpus.capabilities[name].family for name in names}
        result[label] = KnownGpus(source, families)
    return result


def known_to(minor: str, gpus: Gpus) -> list[str]:
    """Return the capabilities that the ptxas of a CUDA release knows."""
    entries = gpus.capabilities.items()
    return [name for name, entry in entries if is_between(minor, entry.first_cuda, entry.last_cuda)]


def merge_gpus(base: Gpus, local: Gpus, policy: GpuPolicy) -> Gpus:
    """Return two tables as one, with local entries preferred.

    A capability without a release in either table is copied unchanged.
    """
    merged, _ = make_table(known_of_table(base) | known_of_table(local), policy)
    capabilities = base.capabilities | local.capabilities | merged.capabilities
    return merged.model_copy(update={"capabilities": capabilities})


def is_between(minor: str, first: str, last: str | None) -> bool:
    """Check if a minor is in an inclusive range (None: open)."""
    at = Version.parse(minor)
    return Version.parse(first) <= at and (last is None or at <= Version.parse(last))


def fact_of(facts: Iterable[PolicyFact], field: str) -> str | None:
    """Return the value that policy has for a field, or None."""
    return next((fact.value for fact in facts if fact.field == field), None)


class _TableMaker:
    """Makes the entries of a table, and collects findings about them."""

    def __init__(self, releases: Mapping[str, KnownGpus], policy: GpuPolicy) -> None:
        self._policy = policy
        self._newest: dict[str, Mapping[Capability, str]] = {}
        """The families of each minor's newest release, in ascending order."""
        self.findings: list[TableFinding] = []
        for label in sorted(map(parse_label, releases)):
            families = releases[str(label)].families
            before = self._newest.get(label.line, families)
            for name in sorted(before.keys() ^ families.keys()):
                self._find("patches-differ", name, f"not in every release of {label.line}")
            self._newest[label.line] = families
        self.known = sorted({name for families in self._newest.values() for name in families})
        """The capabilities of all releases."""

    def _find(self, kind: TableFindingKind, name: Capability, message: str) -> None:
        self.findings.append(TableFinding(kind=kind, about=str(name), message=message))

    def _family(self, name: Capability, minors: Iterable[str]) -> str:
        """Return the architecture's name in the oldest release.

        Names in newer releases can be leftovers of other architectures.
        """
        names = list(dict.fromkeys(self._newest[minor][name] for minor in minors))
        if len(names) > 1:
            message = f"has the names {', later '.join(names)}; the first is used"
            self._find("family-differs", name, message)
        return names[0]

    def _group(self, name: Capability) -> tuple[int, str | None]:
        """Return the family of a capability: its major number.

        A capability with a later rename is a family of its own.
        """
        overlay = self._policy.overlay.get(str(name.base), _NO_OVERLAY)
        return name.major, fact_of(overlay.facts, "renamed_to")

    def entry(self, name: Capability) -> CapabilityEntry:
        """Return the entry of a capability."""
        is_plain = name.variant is None
        overlay = self._policy.overlay.get(str(name.base))
        if overlay is None and is_plain:
            self._find("overlay-lacks", name, "policy/gpus.json has no entry for it")
        overlay = overlay or _NO_OVERLAY
        minors = list(self._newest)
        known_in = [minor for minor in minors if name in self._newest[minor]]
        first, last = known_in[0], known_in[-1]
        if known_in != minors[minors.index(first) : minors.index(last) + 1]:
            message = f"in {first} and {last}, but not in all releases between"
            self._find("gone-in-between", name, message)
        facts = tuple(fact for fact in overlay.facts if is_plain or fact.field in _SHARED_FACTS)
        documented = fact_of(facts, "first_cuda")
        is_oldest = first == minors[0]
        if is_oldest and documented and Version.parse(documented) < Version.parse(first):
            first = documented
        gpus = [gpu for gpu in self.known if gpu.variant is None]
        family = [gpu for gpu in gpus if self._group(gpu) == self._group(name)]
        return CapabilityEntry(
            family=self._family(name, known_in),
            base=str(name.base),
            variant=name.variant,
            first_cuda=first,
            last_cuda=None if last == minors[-1] else last,
            jetson=overlay.jetson,
            dont_default_after=fact_of(facts, "dont_default_after"),
            products=overlay.products,
            policy=facts,
            runs_on=tuple(
                str(gpu) for gpu in gpus if name.ptx_runs_on(gpu, is_family=gpu in family)
            ),
        )


def is_supported(entry: CapabilityEntry, cuda_minor: str) -> bool:
    """Check if ptxas and policy support a capability in a release."""
    return is_between(cuda_minor, entry.first_cuda, last_release(entry))


def last_release(entry: CapabilityEntry) -> str | None:
    """Return the last CUDA minor that supports a capability, by ptxas and by policy."""
    ends = filter(None, (fact_of(entry.policy, "last_cuda"), entry.last_cuda))
    return min(ends, key=Version.parse, default=None)


def supported_capabilities(cuda_minor: str, gpus: Gpus) -> tuple[str, ...]:
    """Return the capabilities supported by a CUDA release, sorted.

    Raises `UnknownNameError` if the release is newer than the table.
    """
    minors = sorted({parse_label(label).line for label in gpus.sources}, key=Version.parse)
    if not minors or Version.parse(minors[-1]) < Version.parse(cuda_minor):
        raise UnknownNameError("CUDA release of the table", cuda_minor, minors)
    supported = (
        name for name, entry in gpus.capabilities.items() if is_supported(entry, cuda_minor)
    )
    return tuple(sorted(supported, key=Capability.parse))


def default_capabilities(cuda_minor: str, gpus: Gpus) -> tuple[str, ...]:
    """Return the default capabilities of a CUDA release.

    That is every supported capability without a letter, except Jetsons and those that policy has
    removed from the defaults.
    """
    names = []
    for name in supported_capabilities(cuda_minor, gpus):
        entry = gpus.capabilities[name]
        if entry.variant is not None or entry.jetson:
            continue
        if is_between(cuda_minor, entry.first_cuda, entry.dont_default_after):
            names.append(name)
    return tuple(names)
