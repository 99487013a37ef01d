"""Explain a driver: the CUDA releases that run on it, and the GPUs that it supports.

The rules are in `driver_support.py`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cudaredist.formats.driver_policy import DriverPolicy, ForwardCompatibility, LastBranch
from cudaredist.primitives import Version, parse_label
from cudaredist.tables.driver_support import (
    POLICY_FILE,
    SYSTEMS,
    Support,
    System,
    documented,
    on_systems,
    parse_driver,
    stated_drivers,
    support_of,
)
from cudaredist.tables.explanation import Fact, Origin, Topic, make_fact
from cudaredist.tables.release_spans import release_spans

if TYPE_CHECKING:
    from cudaredist.formats.tables import CapabilityEntry

_WORDS: dict[Support, str] = {
    "native": "run with all features",
    "minor": "run by minor version compatibility, with limited features",
    "some": "run, but no source states whether with all features",
    "none": "do not run",
    "unknown": "have no documented driver",
}


def explain_driver(
    name: str, policy: DriverPolicy, releases: Collection[Version] = ()
) -> tuple[Topic, ...]:
    """Explain a driver or a prefix of its version. Raises `UnknownNameError`.

    The lists contain the documented CUDA releases and the given ones.
    """
    driver = parse_driver(name, policy)
    known = _known(policy, releases)
    branch = str(driver.components[0])
    topics = {
        f"driver {name} on {title}": _releases(driver, known, system, policy)
        for system, title in SYSTEMS.items()
    }
    topics[f"driver branch {branch}"] = _facts_of_branch(branch, policy)
    return tuple(Topic(title=title, facts=tuple(facts)) for title, facts in topics.items())


def gpu_facts(entry: "CapabilityEntry", policy: DriverPolicy) -> Iterator[Fact]:
    """Yield the lowest driver for a capability's first CUDA release, and its last branch.

    The documents are about desktops and servers, not about Jetsons.
    """
    if entry.jetson:
        return
    first = [label for label in policy.releases if parse_label(label).line == entry.first_cuda]
    stated = min(map(parse_label, first), default=None)
    if stated is not None:
        release = policy.releases[str(stated)]
        words = f"the lowest driver of CUDA {stated}, the first release known to support it: "
        words += on_systems(release.linux, release.windows)
        origin = Origin("computed", f"{release.reference} ({POLICY_FILE})")
        yield make_fact("driver.first", words, release.linux, origin)
    last = policy.last_branches.get(entry.family)
    if last is not None:
        words, origin = f"its last driver branch is {last.branch}", documented(last.reference)
        yield make_fact("driver.last_branch", words, last.branch, origin)


def _releases(
    driver: Version, releases: Sequence[Version], system: System, policy: DriverPolicy
) -> Iterator[Fact]:
    by_support = _by_support(driver, releases, system, policy)
    origin = documented("NVIDIA's release notes, by release")
    for support, words in _WORDS.items():
        labels = by_support.get(support)
        if not labels:
            continue
        unstated = [
            str(label) for label in labels if stated_drivers(label, system, policy).native is None
        ]
        reason = None
        if support in {"native", "some"} and unstated:
            names = ", ".join(unstated)
            reason = f"No source states the lowest driver with all features of {names}"
            if support == "native":
                reason += ", but a later release runs with all"
        name, statement = f"driver.{system}.{support}", f"CUDA releases that {words}"
        has_packages = bool(_packages_for(str(driver.components[0]), policy))
        if support == "none" and system == "linux" and has_packages:
            statement += " without cuda_compat"
        fact = make_fact(name, statement, tuple(map(str, labels)), origin, reason)
        spans = ", ".join(release_spans(labels, releases))
        yield fact.changed(statement=f"{statement}: {spans}")


def _packages_for(branch: str, policy: DriverPolicy) -> dict[str, ForwardCompatibility]:
    """Return the packages `cuda_compat` that run on a driver branch, by CUDA minor."""
    return {line: entry for line, entry in policy.forward.items() if branch in entry.branches}


def _by_support(
    driver: Version, releases: Iterable[Version], system: System, policy: DriverPolicy
) -> dict[Support, list[Version]]:
    by_support: dict[Support, list[Version]] = defaultdict(list)
    for label in releases:
        by_support[support_of(driver, label, system, policy)].append(label)
    return by_support


def driver_answer(name: str, policy: DriverPolicy, releases: Collection[Version] = ()) -> str:
    """Return the releases that run on a driver, in a sentence for each system."""
    driver, known = parse_driver(name, policy), _known(policy, releases)
    sentences = [*_newer_than_known(driver, policy)]
    for system, title in SYSTEMS.items():
        words = _runs(driver, known, system, policy)
        sentences.append(f"Driver {name} on {title} runs {words}.")
    return "\n".join(sentences)


def _newer_than_known(driver: Version, policy: DriverPolicy) -> Iterator[str]:
    """Yield a sentence about a driver of a branch after all known ones."""
    drivers = (name for entry in policy.releases.values() for name in (entry.linux, entry.windows))
    branches = {parse_label(name).components[0] for name in drivers if name}
    branches |= {int(branch) for entry in policy.forward.values() for branch in entry.branches}
    branch, newest = driver.components[0], max(branches, default=0)
    if branch > newest:
        yield (
            f"Driver branch {branch} is not in the data, which ends with {newest}. Later drivers "
            "run the releases of earlier ones:"
        )


def _runs(driver: Version, known: Sequence[Version], system: System, policy: DriverPolicy) -> str:
    """Return the releases that run, as the end of a sentence."""
    by_support = _by_support(driver, known, system, policy)
    # The packages of cuda_compat are for Linux.
    forward = _packages_for(str(driver.components[0]), policy) if system == "linux" else {}
    refused = by_support.get("none", [])
    # NVIDIA documents the packages of a release months later.
    unstated = [label for label in refused if forward and label.line not in policy.forward]
    parts = {
        "with all features": by_support.get("native", []),
        "with limited features": by_support.get("minor", []),
        "(whether with all features is unknown)": by_support.get("some", []),
        "with cuda_compat": [label for label in refused if label.line in forward],
        "with cuda_compat is not documented": unstated,
    }
    words = [
        f"{', '.join(release_spans(labels, known))} {how}"
        for how, labels in parts.items()
        if labels
    ]
    never = [label for label in refused if label.line not in forward and label not in unstated]
    spans = ", ".join(release_spans(never, known))
    if not words:
        return f"no known CUDA release ({spans})" if spans else "no known CUDA release"
    return f"CUDA {'; '.join(words)}{f'; not {spans}' if spans else ''}"


def _known(policy: DriverPolicy, releases: Collection[Version]) -> list[Version]:
    return sorted({*map(parse_label, policy.releases), *releases})


def _facts_of_branch(branch: str, policy: DriverPolicy) -> Iterator[Fact]:
    """Yield the compatibility packages for a driver branch, and the GPUs with a last branch."""
    forward = _packages_for(branch, policy)
    words = "forward compatibility packages (cuda_compat) for CUDA"
    if forward:
        lines = sorted(forward, key=parse_label)
        newest = forward[lines[-1]]
        origin = documented(newest.reference)
        yield make_fact("driver.forward", words, tuple(lines), origin, newest.reason)
    else:
        words += ": unknown, or the branch is at the end of its life"
        origin = documented("no package is documented for this branch")
        yield make_fact("driver.forward", words, None, origin)
    dropped: dict[str, LastBranch] = {}
    supported: dict[str, LastBranch] = {}
    for family, last in policy.last_branches.items():
        if int(last.branch) < int(branch):
            dropped[family] = last
        else:
            supported[family] = last
    yield from _family_facts("driver.dropped", "GPUs that it no longer supports", dropped)
    words = "GPUs that a later branch drops, but this one supports"
    yield from _family_facts("driver.supported", words, supported)


def _family_facts(name: str, words: str, families: Mapping[str, LastBranch]) -> Iterator[Fact]:
    """Yield a fact about GPU architectures for each source of their last branches."""
    for source in sorted({last.reference for last in families.values()}):
        texts = tuple(
            f"{family} (until {last.branch})"
            for family, last in families.items()
            if last.reference == source
        )
        yield make_fact(name, words, texts, documented(source))
