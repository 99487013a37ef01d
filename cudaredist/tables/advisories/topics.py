"""Known vulnerabilities of CUDA releases and drivers, as facts of explain."""

from collections.abc import Iterator

from cudaredist.grouping import grouped
from cudaredist.primitives import Version
from cudaredist.tables.advisories.states import KnownVulnerabilities, VulnerabilityState
from cudaredist.tables.advisories.texts import SERIOUS
from cudaredist.tables.driver_support import SYSTEMS
from cudaredist.tables.explanation import Fact, Origin, Topic, make_fact
from cudaredist.words import plural


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
