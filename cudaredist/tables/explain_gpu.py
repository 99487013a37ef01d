"""Explanation of compute capabilities, and their support in CUDA releases."""

from collections.abc import Iterable, Iterator

from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.tables import (
    CapabilityEntry,
    GpuPolicy,
    Gpus,
    NvccCompat,
    NvccPolicy,
    OverlayEntry,
    PolicyFact,
)
from cudaredist.primitives import parse_label
from cudaredist.tables.explain_driver import gpu_facts
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Claim, Fact, Origin, Topic, make_fact
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import (
    default_capabilities,
    is_between,
    known_to,
    supported_capabilities,
)
from cudaredist.tables.nvcc.nvcc_table import newest_release

GPU_POLICY_FILE = "policy/gpus.json"
_VARIANTS = {
    "a": "code of one architecture only: it runs on this capability and no other",
    "f": "code of one family: it runs on this capability and later ones of its family",
}
_TARGETS = Origin("computed", "rule of PTX targets, measured with ptxas 12.9.86 and 13.5.37")
_SUPPORT = Origin("computed", "rule: listed in ptxas, unless policy/gpus.json ends it earlier")
_DEFAULTS = Origin(
    "computed",
    "rule: supported, without a letter, not a Jetson, and not ended by dont_default_after in "
    "policy/gpus.json",
)
_POLICY_WORDS = {
    "dont_default_after": "package sets do not select it by default after CUDA {}",
    "renamed_to": "called {} in later CUDA releases",
    "desktop_code": "runs code for other GPUs of its architecture from CUDA {} on; before, it is "
    "unknown",
}


def explain_cuda(
    asked: str, compat: NvccCompat, gpus: Gpus, policy: NvccPolicy
) -> tuple[Topic, ...]:
    """Explain the compilers and capabilities of a CUDA release.

    Raises `UnknownNameError`, which suggests the nearest, if the release is in no table.
    """
    minor = parse_label(newest_release(asked, compat)).line
    return explain_nvcc(asked, compat, policy), _release_topic(minor, gpus, policy)


# -- capabilities


def explain_gpu(
    name: str, gpus: Gpus, policy: GpuPolicy, drivers: DriverPolicy | None = None
) -> Topic:
    """Explain one capability, with its drivers if their policy is given."""
    entry = gpus.capabilities[name]
    overlay = policy.overlay.get(entry.base)
    origin = Origin("policy", _policy_path(overlay) if overlay else "no policy names it")
    reason = overlay.reason if overlay else None
    kind = "GPU of a Jetson or another Tegra system" if entry.jetson else "not a Tegra GPU"
    by_letter = _VARIANTS.get(entry.variant or "")
    facts = [
        *_facts_of_ptxas(entry, gpus),
        make_fact("runs_on", "GPUs that run its PTX", entry.runs_on, _TARGETS, by_letter),
        make_fact("jetson", kind, entry.jetson, origin, reason),
        make_fact("products", "example products", entry.products, origin),
    ]
    for fact in entry.policy:
        if fact.field in _POLICY_WORDS:
            words = _POLICY_WORDS[fact.field].format(fact.value)
            origin = Origin("policy", _policy_path(fact))
            facts.append(make_fact(fact.field, words, fact.value, origin, fact.reason))
    facts += gpu_facts(entry, drivers) if drivers is not None else ()
    return Topic(title=f"compute capability {name} ({entry.family})", facts=tuple(facts))


def _facts_of_ptxas(entry: CapabilityEntry, gpus: Gpus) -> Iterator[Fact]:
    labels = sorted(map(parse_label, gpus.sources))
    known = [label for label in labels if is_between(label.line, entry.first_cuda, entry.last_cuda)]
    if not known:
        # A table written by hand has no release with the capability.
        return
    oldest, newest = (_ptxas(str(label), gpus) for label in (known[0], known[-1]))
    yield make_fact("family", f"architecture: {entry.family}", entry.family, oldest)
    words = f"the oldest CUDA release that knows it is {entry.first_cuda}"
    claims = list(_policy_claims(entry, "first_cuda", entry.first_cuda))
    origin, reason = oldest, None
    read_since = known[0].line
    stated = [
        fact
        for fact in entry.policy
        if fact.field == "first_cuda" and fact.value == entry.first_cuda
    ]
    if read_since == entry.first_cuda:
        if known[0] == labels[0]:
            words += ", the oldest that was read"
    elif stated:
        origin, reason = Origin("documented", _policy_path(stated[0])), stated[0].reason
        because = "the oldest release that was read already knows it"
        claims.insert(0, Claim(value=read_since, source=oldest.source, reason=because))
    yield make_fact("first_cuda", words, entry.first_cuda, origin, reason, claims)
    words = f"the newest CUDA release that knows it is {entry.last_cuda}"
    if entry.last_cuda is None:
        words = f"still known to the newest release that was read, CUDA {known[-1]}"
    claims = list(_policy_claims(entry, "last_cuda", entry.last_cuda))
    yield make_fact("last_cuda", words, entry.last_cuda, newest, otherwise=claims)


def _policy_claims(entry: CapabilityEntry, field: str, value: str | None) -> Iterator[Claim]:
    for fact in entry.policy:
        if fact.field == field and fact.value != value:
            yield Claim(value=fact.value, source=_policy_path(fact), reason=fact.reason)


def _policy_path(stated: OverlayEntry | PolicyFact) -> str:
    return f"{stated.reference} ({GPU_POLICY_FILE})"


def _ptxas(label: str, gpus: Gpus) -> Origin:
    binary = gpus.sources[label]
    source = f"{binary.path} of {binary.package} in CUDA {label} ({binary.channel})"
    return Origin("derived", source, binary.file_sha256, label)


# -- releases


def _release_topic(minor: str, gpus: Gpus, policy: NvccPolicy) -> Topic:
    supported, default = supported_capabilities(minor, gpus), default_capabilities(minor, gpus)
    known = tuple(sorted(known_to(minor, gpus), key=Capability.parse))
    withheld = _withheld([name for name in known if name not in supported], gpus)
    labels = [label for label in map(parse_label, gpus.sources) if label.line == minor]
    # Without its own ptxas, a release has only the ranges from other releases.
    origin = Origin("computed", "gpus.json; no ptxas of this release was read")
    if labels:
        origin = _ptxas(str(max(labels)), gpus)
    facts = (
        make_fact("known", "ptxas knows", known, origin),
        make_fact("supported", "supported", supported, _SUPPORT, otherwise=withheld),
        make_fact("default", "package sets select by default", default, _DEFAULTS),
        _nvcc_target(minor, policy),
    )
    return Topic(title=f"compute capabilities of CUDA {minor}", facts=facts)


def _nvcc_target(minor: str, policy: NvccPolicy) -> Fact:
    """Return the capability for which nvcc compiles without options."""
    words = "nvcc without options compiles for"
    for target in policy.targets:
        if is_between(minor, target.first_cuda, target.last_cuda):
            origin = Origin("policy", f"{target.reference} (policy/nvcc.json)")
            return make_fact("nvcc_target", words, target.capability, origin, target.reason)
    origin = Origin("policy", "no entry in policy/nvcc.json")
    return make_fact("nvcc_target", f"{words}: unknown", None, origin)


def _withheld(names: Iterable[str], gpus: Gpus) -> Iterator[Claim]:
    """Yield policy's reasons against capabilities that ptxas knows."""
    for name in names:
        entry = gpus.capabilities[name]
        for claim in _policy_claims(entry, "last_cuda", entry.last_cuda):
            end = entry.last_cuda or "no end seen"
            words = f"{name}: until CUDA {claim.value} by policy, {end} by ptxas"
            yield Claim(value=words, source=claim.source, reason=claim.reason)
