"""Known vulnerabilities of packages, releases and drivers, as models of reports and as facts."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.grouping import grouped
from cudaredist.primitives import Version, natural_order
from cudaredist.tables.advisories.states import KnownVulnerabilities, State, VulnerabilityState
from cudaredist.tables.advisories.texts import SERIOUS

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
