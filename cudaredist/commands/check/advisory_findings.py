"""Findings about known vulnerabilities and new bulletins."""

from collections.abc import Iterator, Sequence

from cudaredist.cli.configuration import sets_given
from cudaredist.commands.build.declared_sets import declared_sets
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding, FindingKind
from cudaredist.errors import CudaRedistError
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.primitives import Version
from cudaredist.sets.read_set import indexed_sets, read_package_set
from cudaredist.store.data_folder import Store
from cudaredist.store.known_vulnerabilities import (
    known_vulnerabilities,
    read_advisories,
    read_advisory_policy,
)
from cudaredist.store.local_manifests import load_manifest
from cudaredist.tables.advisories.answers import vulnerabilities_of, vulnerabilities_of_set
from cudaredist.tables.advisories.products import is_undecided
from cudaredist.tables.advisories.states import KnownVulnerabilities
from cudaredist.tables.advisories.texts import vulnerability_lines
from cudaredist.words import shown


def bulletin_findings(store: Store) -> Iterator[Finding]:
    """Yield the bulletins and products without a decision in the policy.

    A bulletin that changed after the decisions may need other ones.
    """
    try:
        table = read_advisories(store)
        policy = read_advisory_policy(store)
    except CudaRedistError as error:
        yield finding("invalid", error.message, path="advisories.json", hint=error.hint)
        return
    if table is None:
        return
    numbers = {one.bulletin for one in table.vulnerabilities}
    for number, bulletin in sorted(table.bulletins.items()):
        for name in bulletin.unmapped:
            if is_undecided(name, policy):
                message = f"bulletin {number} is about {shown(name)}, maybe a supported product"
                hint = f"read {bulletin.url}, and add it to `products` in policy/advisories.json"
                yield finding("new-bulletin", message, path="advisories.json", hint=hint)
        if number not in numbers:
            continue
        reviewed = policy.reviewed.get(number)
        hint = f"read {bulletin.url}, and add it to `reviewed` in policy/advisories.json"
        if reviewed is None:
            message = f"bulletin {number} is new: policy has no decisions about it"
            yield finding("new-bulletin", message, path="advisories.json", hint=hint)
        elif reviewed != bulletin.sha256:
            message = f"bulletin {number} changed (version {bulletin.version})"
            yield finding("changed-bulletin", message, path="advisories.json", hint=hint)


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
