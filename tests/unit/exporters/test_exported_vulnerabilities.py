"""Tests of exports of known vulnerabilities, validated with the library of CycloneDX."""

import json
from typing import Any

from support.package_sets import example_set

from cudaredist.exporters import find_exporter
from cudaredist.exporters.cyclonedx_ids import document_id
from cudaredist.exporters.export_format import ExportedSet
from cudaredist.formats.package_vulnerability import PackageVulnerability, VulnerabilityStateName


def vulnerability(
    state: VulnerabilityStateName, cve: str = "CVE-2030-1000", fixed: str | None = "13.1.0"
) -> PackageVulnerability:
    return PackageVulnerability(
        cve=cve,
        bulletin="9001",
        url="https://nvidia.custhelp.com/app/answers/detail/a_id/9001",
        score=7.8,
        vector="CVSS:3.1/AV:L/AC:L/PR:N/UI:R/S:U/C:H/I:H/A:H",
        components=("nvJPEG",),
        redist="cuda",
        package="libnvjpeg",
        state=state,
        reason="the bulletin states this version",
        fixed=fixed,
        releases=("13.0.0",),
    )


def exported(*own: PackageVulnerability, name: str = "vex") -> tuple[ExportedSet, Any]:
    """Return a set with vulnerabilities of its first package, and its document."""
    package_set = example_set()
    attr = ExportedSet(package_set).packages[0].attr
    with_them = ExportedSet(package_set, vulnerabilities={attr: own})
    files = find_exporter(name).files(with_them)
    return with_them, json.loads(next(iter(files.values())))


def validate(document: object) -> None:
    """Validate a document of CycloneDX 1.6."""
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415 - slow to import
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415 - likewise

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is None


def test_vex_has_every_state() -> None:
    states: dict[VulnerabilityStateName, str] = {
        "affected": "exploitable",
        "unknown": "in_triage",
        "fixed": "resolved",
        "not-affected": "not_affected",
    }
    own = [vulnerability(state, f"CVE-2030-{n}000") for n, state in enumerate(states, 1)]
    given, document = exported(*own)
    validate(document)
    entries = document["vulnerabilities"]
    assert [entry["analysis"]["state"] for entry in entries] == list(states.values())
    attr = given.packages[0].attr
    references = {one["ref"] for entry in entries for one in entry["affects"]}
    assert references == {f"urn:cdx:{document_id(given)}/1#package:{attr}"}
    assert entries[0]["ratings"][0]["severity"] == "high"
    assert entries[0]["recommendation"] == "Update to cuda 13.1.0."
    assert entries[3]["analysis"]["justification"] == "code_not_present"


def test_vex_without_vulnerabilities_is_valid() -> None:
    _, document = exported()
    validate(document)
    assert document["vulnerabilities"] == []


def test_vex_is_equal_for_equal_sets() -> None:
    assert exported(vulnerability("affected"))[1] == exported(vulnerability("affected"))[1]
    other = exported(vulnerability("unknown"))[1]
    assert other["serialNumber"] != exported(vulnerability("affected"))[1]["serialNumber"]


def test_cyclonedx_has_serious_vulnerabilities_of_its_components() -> None:
    own = vulnerability("affected"), vulnerability("fixed", "CVE-2030-2000")
    given, document = exported(*own, name="cyclonedx")
    validate(document)
    assert [entry["id"] for entry in document["vulnerabilities"]] == ["CVE-2030-1000"]
    references = {component["bom-ref"] for component in document["components"]}
    assert document["vulnerabilities"][0]["affects"][0]["ref"] in references
    assert "vulnerabilities" not in json.loads(
        find_exporter("cyclonedx").files(ExportedSet(given.package_set))["bom.cdx.json"]
    )


def test_nix_has_texts_of_affected_packages_only() -> None:
    own = vulnerability("affected"), vulnerability("unknown", "CVE-2030-2000")
    package_set = example_set()
    attr = ExportedSet(package_set).packages[0].attr
    files = find_exporter("nix").files(ExportedSet(package_set, vulnerabilities={attr: own}))
    texts = json.loads(files["known-vulnerabilities.json"])
    url = "https://nvidia.custhelp.com/app/answers/detail/a_id/9001"
    assert texts == {attr: [f"CVE-2030-1000 ({url}), fixed in cuda 13.1.0"]}
    without = find_exporter("nix").files(ExportedSet(package_set))
    assert json.loads(without["known-vulnerabilities.json"]) == {}
