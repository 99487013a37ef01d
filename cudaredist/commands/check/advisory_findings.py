"""Findings about known vulnerabilities."""

from collections.abc import Iterator, Sequence

from cudaredist.cli.configuration import declared_sets, sets_given
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding, FindingKind
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.primitives import Version
from cudaredist.sets.read_set import indexed_sets, read_package_set
from cudaredist.store.data_folder import Store
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.store.local_manifests import load_manifest
from cudaredist.tables.advisories.answers import vulnerabilities_of, vulnerabilities_of_set
from cudaredist.tables.advisories.states import KnownVulnerabilities
from cudaredist.tables.advisories.texts import vulnerability_lines


def vulnerability_findings(store: Store) -> Iterator[Finding]:
    """Yield the known vulnerabilities of declared sets, else of the newest local releases."""
    known = known_vulnerabilities(store)
    if declared_sets() is not None:
        for index in sets_given(None):
            for path in indexed_sets(index):
                package_set, _ = read_package_set(path)
                platform = package_set.platform.redist_system
                title = f"{package_set.full_name} for {platform}"
                yield from _findings(title, vulnerabilities_of_set(known, package_set))
        return
    for redist in known.redists():
        labels = store.manifests(redist).labels()
        if labels:
            yield from _release_findings(known, store, redist, labels[-1])


def _release_findings(
    known: KnownVulnerabilities, store: Store, redist: str, label: Version
) -> Iterator[Finding]:
    """Yield the known vulnerabilities of a release's packages."""
    manifest = load_manifest(store, redist, label)
    entries = [
        entry
        for package in manifest.packages
        for entry in vulnerabilities_of(known, redist, package.name, [label])
    ]
    yield from _findings(f"{redist} {label}", entries, redist=redist, label=label)


def _findings(
    title: str,
    entries: Sequence[PackageVulnerability],
    redist: str | None = None,
    label: Version | None = None,
) -> Iterator[Finding]:
    """Yield a finding for the affected packages, and one for those with an unknown state."""
    kinds: dict[FindingKind, str] = {
        "vulnerability": "has known vulnerabilities",
        "unknown-vulnerability": "may have known vulnerabilities",
    }
    for kind, words in kinds.items():
        own = [one for one in entries if (one.state == "affected") == (kind == "vulnerability")]
        if own:
            names = ", ".join(sorted({entry.package for entry in own}))
            details = tuple(vulnerability_lines(own, with_package=True))
            message = f"{title} {words}: {names}"
            yield finding(kind, message, redist=redist, label=label, details=details)
