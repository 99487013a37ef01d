"""Explain a driver: the CUDA releases that run on it, and the GPUs that it supports.

The rules are in `driver_support.py`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from cudaredist.formats.policy import DriverPolicy
from cudaredist.formats.tables import CapabilityEntry
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


def gpu_facts(entry: CapabilityEntry, policy: DriverPolicy) -> Iterator[Fact]:
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
        if labels := by_support.get(support):
            unstated = [str(x) for x in labels if stated_drivers(x, system, policy).native is None]
            reason = None
            if support in {"native", "some"} and unstated:
                reason = "No source states the lowest driver with all features of "
                reason += ", ".join(unstated)
                reason += ", but a later release runs with all" * (support == "native")
            name, statement = f"driver.{system}.{support}", f"CUDA releases that {words}"
            fact = make_fact(name, statement, tuple(map(str, labels)), origin, reason)
            spans = ", ".join(_spans(labels, releases))
            yield fact.model_copy(update={"statement": f"{statement}: {spans}"})


def _by_support(
    driver: Version, releases: Iterable[Version], system: System, policy: DriverPolicy
) -> dict[Support, list[Version]]:
    by_support: dict[Support, list[Version]] = defaultdict(list)
    for label in releases:
        by_support[support_of(driver, label, system, policy)].append(label)
    return by_support


def _spans(labels: Collection[Version], known: Sequence[Version]) -> list[str]:
    """Return releases as ranges, such as `11.0 to 12.2`: minors if all of their patches count."""
    spans: list[list[Version]] = []
    for number, label in enumerate(known):
        if label not in labels:
            continue
        if number and spans and spans[-1][-1] == known[number - 1]:
            spans[-1].append(label)
        else:
            spans.append([label])
    lines = {line: [label for label in known if label.line == line] for line in _lines(known)}

    def name(label: Version, span: Sequence[Version]) -> str:
        return label.line if {*lines[label.line]} <= {*span} else str(label)

    ends = [dict.fromkeys((name(span[0], span), name(span[-1], span))) for span in spans]
    return [" to ".join(each) for each in ends]


def _lines(labels: Iterable[Version]) -> set[str]:
    return {label.line for label in labels}


def driver_answer(name: str, policy: DriverPolicy, releases: Collection[Version] = ()) -> str:
    """Return the releases that run on a driver, in a sentence for each system."""
    driver, known = parse_driver(name, policy), _known(policy, releases)
    sentences = []
    for system, title in SYSTEMS.items():
        words = _runs(driver, known, system, policy)
        sentences.append(f"Driver {name} on {title} runs {words}.")
    return "\n".join(sentences)


def _runs(driver: Version, known: Sequence[Version], system: System, policy: DriverPolicy) -> str:
    """Return the releases that run, as the end of a sentence."""
    by_support = _by_support(driver, known, system, policy)
    branch = str(driver.components[0])
    # The packages of cuda_compat are for Linux.
    packages = policy.forward if system == "linux" else {}
    forward = {line for line, entry in packages.items() if branch in entry.branches}
    refused = by_support.get("none", [])
    # NVIDIA documents the packages of a release months later.
    unstated = [x for x in refused if forward and x.line not in packages]
    parts = {
        "with all features": by_support.get("native", []),
        "with limited features": by_support.get("minor", []),
        "perhaps with limited features": by_support.get("some", []),
        "with cuda_compat": [x for x in refused if x.line in forward],
        "with cuda_compat is not documented": unstated,
    }
    words = [f"{', '.join(_spans(x, known))} {how}" for how, x in parts.items() if x]
    never = [x for x in refused if x.line not in forward and x not in unstated]
    spans = ", ".join(_spans(never, known))
    if not words:
        return f"no known CUDA release ({spans})" if spans else "no known CUDA release"
    return f"CUDA {'; '.join(words)}{f'; not {spans}' if spans else ''}"


def _known(policy: DriverPolicy, releases: Collection[Version]) -> list[Version]:
    return sorted({*map(parse_label, policy.releases), *releases})


def _facts_of_branch(branch: str, policy: DriverPolicy) -> Iterator[Fact]:
    """Yield the compatibility packages for a driver branch, and the GPUs with a last branch."""
    forward = {name: entry for name, entry in policy.forward.items() if branch in entry.branches}
    newest = sorted(forward, key=parse_label)
    entry = forward[newest[-1]] if newest else None
    source = entry.reference if entry else "no package is documented for this branch"
    words = "forward compatibility packages (cuda_compat) for CUDA"
    yield make_fact(
        "driver.forward",
        words if newest else f"{words}: unknown, or the branch is at the end of its life",
        tuple(newest) or None,
        documented(source),
        entry.reason if entry else None,
    )
    for name, words, is_dropped in (
        ("driver.dropped", "GPUs that it no longer supports", True),
        ("driver.supported", "GPUs that a later branch drops, but this one supports", False),
    ):
        families = {
            family: last
            for family, last in policy.last_branches.items()
            if (int(last.branch) < int(branch)) == is_dropped
        }
        for source in sorted({last.reference for last in families.values()}):
            named = (f"{n} (until {last.branch})" for n, last in families.items())
            yield make_fact(name, words, tuple(named), documented(source))
