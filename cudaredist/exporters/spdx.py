"""A bill of materials in SPDX 2.3, as JSON."""

import re
from collections import defaultdict
from typing import Any

from cudaredist.exporters.cyclonedx import (
    SUPPLIER,
    depends_on,
    document_id,
    is_nvidias,
    package_url,
)
from cudaredist.exporters.export_format import (
    ExportedPackage,
    ExportedSet,
    Files,
    exporter,
    without_nulls,
)
from cudaredist.jsontext import canonical_json
from cudaredist.schema.packageset import SetLicense

_CREATED = "1970-01-01T00:00:00Z"
"""SPDX wants a time, and a set has none: the same set must give the same bytes."""

_is_reference = re.compile(r"LicenseRef-[A-Za-z0-9.-]+").fullmatch
_UNKNOWN = "NOASSERTION"
_DOCUMENT = "SPDXRef-DOCUMENT"


@exporter("spdx", "bom.spdx.json")
def spdx(exported: ExportedSet) -> Files:
    """A bill of materials, SPDX 2.3 as JSON."""
    package_set = exported.package_set
    name = f"{package_set.cuda.attribute}-{package_set.platform.redist_system}"
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": _DOCUMENT,
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{_id(name)}-{document_id(exported)}",
        "creationInfo": {"created": _CREATED, "creators": ["Tool: cudaredist"]},
        "packages": [_package(package) for package in exported.packages],
        "hasExtractedLicensingInfos": _licenses(exported),
        "relationships": [
            *(
                _relation(_DOCUMENT, "DESCRIBES", _ref(package.attr))
                for package in exported.packages
            ),
            *(
                _relation(_ref(package.attr), "DEPENDS_ON", _ref(name))
                for package in exported.packages
                for name in depends_on(package, exported)
            ),
        ],
    }
    return {"bom.spdx.json": canonical_json(document)}


def _package(package: ExportedPackage) -> dict[str, object]:
    entry, archive = package.entry, package.archive
    hashes = without_nulls({"SHA256": archive.sha256, "MD5": archive.md5})
    known: dict[str, object] = {
        "licenseComments": _license_comment(entry.license),
        "versionInfo": entry.version,
        "summary": entry.description,
        "homepage": entry.meta.homepage,
    }
    return {
        "SPDXID": _ref(package.attr),
        "name": entry.pname,
        "packageFileName": archive.relative_path.rpartition("/")[2],
        "downloadLocation": archive.url or _UNKNOWN,
        "filesAnalyzed": False,
        "checksums": [
            {"algorithm": algorithm, "checksumValue": value} for algorithm, value in hashes.items()
        ],
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": _license(entry.license),
        "copyrightText": _UNKNOWN,
        "supplier": f"Organization: {SUPPLIER}" if is_nvidias(package) else _UNKNOWN,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": package_url(package),
            }
        ],
        **without_nulls(known),
    }


def _license(stated: SetLicense) -> str:
    if stated.spdx is not None:
        return stated.spdx
    if _is_reference(stated.short_name):
        return stated.short_name
    return f"LicenseRef-NVIDIA-{_id(stated.short_name.removeprefix('NVIDIA '))}"


def _license_comment(stated: SetLicense) -> str | None:
    """Return the manifest's word for a licence, and the licence files of the archive."""
    parts = [] if stated.manifest is None else [f"The manifest says: {stated.manifest}."]
    parts += [
        f"The archive has {path}, SHA-256 {sha256}."
        for path, sha256 in sorted((stated.files or {}).items())
    ]
    return " ".join(parts) or None


def _licenses(exported: ExportedSet) -> list[dict[str, Any]]:
    """Return the licences that SPDX does not know; their texts lie at the addresses."""
    names: dict[str, str] = {}
    addresses: dict[str, set[str]] = defaultdict(set)
    for package in exported.packages:
        stated = package.entry.license
        if stated.spdx is None:
            names[_license(stated)] = stated.short_name
            addresses[_license(stated)].update([stated.url] if stated.url else [])
    return [
        {
            "licenseId": identifier,
            "name": names[identifier],
            "extractedText": f"{names[identifier]}: terms of NVIDIA's, at the addresses named here "
            "where they are known.",
            **({"seeAlsos": sorted(addresses[identifier])} if addresses[identifier] else {}),
        }
        for identifier in sorted(names)
    ]


def _ref(attr: str) -> str:
    return f"SPDXRef-{_id(attr)}"


def _id(text: str) -> str:
    """Return a text in the letters of SPDX's identifiers, other texts never the same."""
    plain = re.sub(r"[^A-Za-z0-9_ ]", lambda match: f".{ord(match[0]):x}.", text)
    return plain.replace("_", "-").replace(" ", "-")


def _relation(element: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": other}
