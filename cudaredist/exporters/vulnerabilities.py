"""Known vulnerabilities of a package set: for CycloneDX, as VEX, and for Nix."""

from collections.abc import Collection, Iterator, Mapping
from uuid import NAMESPACE_URL, uuid5

from cudaredist.exporters.cyclonedx_ids import TOOL, document_id, package_reference
from cudaredist.exporters.export_format import ExportedSet, Files, exporter, without_nulls
from cudaredist.formats.package_vulnerability import PackageVulnerability, VulnerabilityStateName
from cudaredist.grouping import grouped
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import sha256_of

_ANALYSIS: Mapping[VulnerabilityStateName, str] = {
    "affected": "exploitable",
    "unknown": "in_triage",
    "fixed": "resolved",
    "not-affected": "not_affected",
}
"""States of CycloneDX."""
_VERSION_STATUS: Mapping[VulnerabilityStateName, str] = {
    "affected": "affected",
    "unknown": "unknown",
    "fixed": "unaffected",
    "not-affected": "unaffected",
}
_SEVERITIES = {9.0: "critical", 7.0: "high", 4.0: "medium", 0.1: "low", 0.0: "none"}
_METHODS = {"CVSS:3.0": "CVSSv3", "CVSS:3.1": "CVSSv31", "CVSS:4.0": "CVSSv4"}


@exporter("vex", "vex.cdx.json", takes_advisories=True)
def vex(exported: ExportedSet) -> Files:
    """The state of each package for each known vulnerability, as VEX in CycloneDX 1.6."""
    bom = document_id(exported)
    vulnerabilities = describe_vulnerabilities(exported, _ANALYSIS, f"urn:cdx:{bom}/1#")
    # The same set has other vulnerabilities after new bulletins.
    content = sha256_of(canonical_json(vulnerabilities))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'urn:sha256:{content}:{bom}')}",
        "metadata": {"tools": {"components": [TOOL]}},
        "vulnerabilities": vulnerabilities,
    }
    return {"vex.cdx.json": canonical_json(document)}


def describe_vulnerabilities(
    exported: ExportedSet, states: Collection[VulnerabilityStateName], document: str = ""
) -> list[dict[str, object]]:
    """Return the entries of CycloneDX, one for each vulnerability and state.

    `document` is the beginning of references to another document.
    """
    entries = grouped(
        ((one.cve, one.bulletin, one.state, one.reason), (package.attr, one))
        for package in exported.packages
        for one in exported.vulnerabilities.get(package.attr, ())
        if one.state in states
    )
    return [_entry([*own], document) for _, own in sorted(entries.items())]


def _entry(own: list[tuple[str, PackageVulnerability]], document: str) -> dict[str, object]:
    """Return the entry for packages with the same state."""
    first = own[0][1]
    state = first.state
    packages = [
        {
            "ref": f"{document}{package_reference(attr)}",
            "versions": [{"version": one.releases[0], "status": _VERSION_STATUS[state]}],
        }
        for attr, one in own
    ]
    analysis = {
        "state": _ANALYSIS[state],
        "justification": "code_not_present" if state == "not-affected" else None,
        "response": ["update"] if state == "affected" and first.fixed else None,
        "detail": first.reason,
    }
    update = f"Update to {first.redist} {first.fixed}." if first.fixed else None
    entry = {
        "id": first.cve,
        "source": {"name": "NVIDIA", "url": first.url},
        "ratings": [*_ratings(first)] or None,
        "recommendation": update if state in {"affected", "unknown"} else None,
        "analysis": without_nulls(analysis),
        "affects": packages,
    }
    return without_nulls(entry)


def _ratings(one: PackageVulnerability) -> Iterator[dict[str, object]]:
    if one.score is None:
        return
    severity = next(name for least, name in _SEVERITIES.items() if one.score >= least)
    method = _METHODS.get((one.vector or "")[:8], "other")
    rating = {
        "source": {"name": "NVIDIA"},
        "score": one.score,
        "severity": severity,
        "method": method,
        "vector": one.vector,
    }
    yield without_nulls(rating)


def known_vulnerabilities_for_nix(exported: ExportedSet) -> bytes:
    """Return the texts of `meta.knownVulnerabilities` by attribute, as JSON.

    An unknown state is no text, because each text makes nixpkgs refuse the package.
    """
    texts = {
        attr: [_nix_text(one) for one in own if one.state == "affected"]
        for attr, own in exported.vulnerabilities.items()
    }
    return canonical_json({attr: own for attr, own in texts.items() if own})


def _nix_text(one: PackageVulnerability) -> str:
    fixed = f", fixed in {one.redist} {one.fixed}" if one.fixed else ""
    return f"{one.cve} ({one.url}){fixed}"
