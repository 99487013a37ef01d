"""Known vulnerabilities of packages as text."""

from collections.abc import Iterable, Iterator

from cudaredist.formats.package_vulnerability import PackageVulnerability, VulnerabilityStateName
from cudaredist.grouping import grouped

SERIOUS: tuple[VulnerabilityStateName, ...] = ("affected", "unknown")
"""The states that people must know."""


def vulnerability_lines(
    vulnerabilities: Iterable[PackageVulnerability], *, with_package: bool = False
) -> Iterator[str]:
    """Yield a line for each vulnerability."""
    for one in vulnerabilities:
        package = f"{one.package} " if with_package else ""
        first, last = one.releases[0], one.releases[-1]
        span = first if first == last else f"{first} to {last}"
        name = f" ({', '.join(one.components)})" if one.components else ""
        fixed = f", fixed in {one.fixed}" if one.fixed else ""
        because = f": {one.reason}" if one.state == "unknown" else ""
        score = "" if one.score is None else f" {one.score}"
        yield f"{one.cve}{score}{name}: {package}{span} {one.state}{fixed}{because}"


def counted_states(vulnerabilities: Iterable[PackageVulnerability]) -> str:
    """Return the number of affected and unknown vulnerabilities in words."""
    by_state = grouped((one.state, one.cve) for one in vulnerabilities)
    parts = [f"{len(set(by_state[state]))} {state}" for state in SERIOUS if state in by_state]
    return ", ".join(parts)
