"""Known vulnerabilities of packages, releases and drivers, as models of reports and as facts."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.grouping import grouped
from cudaredist.primitives import Version, natural_order
from cudaredist.tables.advisories.states import KnownVulnerabilities, State, VulnerabilityState
from cudaredist.tables.advisories.texts import SERIOUS
from cudaredist.tables.driver_support import SYSTEMS
from cudaredist.tables.explanation import Fact, Origin, Topic, make_fact
from cudaredist.words import plural

if TYPE_CHECKING:
    from cudaredist.formats.packageset import PackageSet


def vulnerabilities_of(
    known: KnownVulnerabilities,
    redist: str,
    package: str,
    labels: Iterable[Version],
    platform: str | None = None,
    states: Collection[State] = SERIOUS,
) -> tuple[PackageVulnerability, ...]:
    """Return the vulnerabilities of a package in some releases, each state with its releases."""
    answers = grouped(
        ((answer.cve, answer.state), (label, answer))
        for label in sorted(set(labels))
        for answer in known.of_package(redist, package, label, platform)
        if answer.state in states
    )
    entries = []
    for own in answers.values():
        answer = own[0][1]
        releases = tuple(str(label) for label, _ in own)
        entries.append(_entry(known, answer, redist, package, releases))
    return tuple(sorted(entries, key=lambda one: (-(one.score or 0), natural_order(one.cve))))


def vulnerabilities_of_set(
    known: KnownVulnerabilities, package_set: "PackageSet"
) -> tuple[PackageVulnerability, ...]:
    """Return the vulnerabilities that affect a set's available packages, or may affect them."""
    by_attr = vulnerabilities_by_attr(known, package_set, SERIOUS)
    return tuple(one for own in by_attr.values() for one in own)


def vulnerabilities_by_attr(
    known: KnownVulnerabilities, package_set: "PackageSet", states: Collection[State]
) -> dict[str, tuple[PackageVulnerability, ...]]:
    """Return the vulnerabilities of each available package of a set."""
    platform = package_set.platform.redist_system
    by_attr = {}
    for attr, package in sorted(package_set.available.items()):
        if package.redist is not None and package.release is not None:
            labels = [Version.parse(package.release)]
            by_attr[attr] = vulnerabilities_of(
                known, package.redist, package.pname, labels, platform, states
            )
    return by_attr


def _entry(
    known: KnownVulnerabilities,
    answer: VulnerabilityState,
    redist: str,
    package: str,
    releases: tuple[str, ...],
) -> PackageVulnerability:
    own = answer.vulnerability
    return PackageVulnerability(
        cve=own.cve,
        bulletin=own.bulletin,
        url=known.advisories.bulletins[own.bulletin].url,
        score=own.score,
        vector=own.vector,
        components=answer.components,
        redist=redist,
        package=package,
        state=answer.state,
        reason=answer.reason,
        fixed=answer.fixed,
        releases=releases,
    )


def described_source(known: KnownVulnerabilities) -> str:
    """Return the bulletins that were read, as the end of a title."""
    count = plural(len(known.advisories.bulletins), "bulletin")
    return f"{count} until {known.advisories.newest}"


def driver_topics(known: KnownVulnerabilities, driver: Version) -> Iterator[Topic]:
    """Yield the known vulnerabilities of a display driver, for each operating system."""
    for system, title in SYSTEMS.items():
        answers = known.of_driver(driver, system)
        facts = [fact for answer in answers for fact in _facts(known, answer, f"{system}.")]
        counts = {state: sum(a.state == state for a in answers) for state in SERIOUS}
        words = f"{counts['affected']} affected, {counts['unknown']} unknown"
        source = described_source(known)
        if known.advisories.bulletins:
            name = f"known vulnerabilities of driver {driver} on {title}: {words} ({source})"
            yield Topic(title=name, facts=tuple(facts))


def release_topic(known: KnownVulnerabilities, label: Version) -> Topic | None:
    """Return the known vulnerabilities of a CUDA release, None if nothing is known."""
    if not known.advisories.bulletins:
        return None
    facts = [fact for answer in known.of_toolkit(label) for fact in _facts(known, answer, "")]
    title = f"known vulnerabilities of CUDA {label} ({described_source(known)})"
    return Topic(title=title, facts=tuple(facts))


def release_answer(known: KnownVulnerabilities, label: Version) -> str | None:
    """Return a CUDA release's known vulnerabilities in one line, None if nothing is known."""
    if not known.advisories.bulletins:
        return None
    answers = [a for a in known.of_toolkit(label) if a.state in SERIOUS]
    names = grouped((name, a.cve) for a in answers for name in a.components or ("no component",))
    parts = ", ".join(f"{name} {len(cves)}" for name, cves in names.items())
    total = f"{len(answers)} in {parts}" if answers else "none"
    return f"known vulnerabilities of CUDA {label}: {total} ({described_source(known)})"


def _facts(known: KnownVulnerabilities, answer: VulnerabilityState, prefix: str) -> Iterator[Fact]:
    """Yield the fact about an affected or unknown version."""
    own = answer.vulnerability
    if answer.state not in SERIOUS:
        return
    name = f" ({', '.join(answer.components)})" if answer.components else ""
    fixed = f", fixed in {answer.fixed}" if answer.fixed else ""
    score = "" if own.score is None else f" {own.score}"
    because = f": {answer.reason}" if answer.state == "unknown" else ""
    words = f"{own.cve}{score}{name}: {answer.state}{fixed}{because}"
    origin = Origin("documented", known.advisories.bulletins[own.bulletin].url)
    yield make_fact(f"vulnerability.{prefix}{own.cve}", words, answer.state, origin, answer.reason)
