"""A bill of materials in SPDX 2.3, as JSON."""

import re
from collections import defaultdict
from typing import Any

from cudaredist.exporters.export_format import Exporter, Files, Item, Subject
from cudaredist.exporters.sbom import (
    SUPPLIER,
    depends_on,
    document_id,
    is_nvidias,
    package_url,
)
from cudaredist.jsontext import canonical_json
from cudaredist.schema import SetLicense

_CREATED = "1970-01-01T00:00:00Z"
"""SPDX wants a time, and a set has none: the same set must give the same bytes."""

_UNKNOWN = "NOASSERTION"
_DOCUMENT = "SPDXRef-DOCUMENT"


def _files(subject: Subject) -> Files:
    package_set = subject.package_set
    name = f"{package_set.cuda.attribute}-{package_set.platform.redist_system}"
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": _DOCUMENT,
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{_id(name)}-{document_id(subject)}",
        "creationInfo": {"created": _CREATED, "creators": ["Tool: cudaredist"]},
        "packages": [_package(item) for item in subject.items],
        "hasExtractedLicensingInfos": _licenses(subject),
        "relationships": [
            *(_relation(_DOCUMENT, "DESCRIBES", _ref(item.attr)) for item in subject.items),
            *(
                _relation(_ref(item.attr), "DEPENDS_ON", _ref(name))
                for item in subject.items
                for name in depends_on(item, subject)
            ),
        ],
    }
    return {"bom.spdx.json": canonical_json(document)}


def _package(item: Item) -> dict[str, object]:
    package, archive = item.package, item.archive
    checksums = [{"algorithm": "SHA256", "checksumValue": archive.sha256}]
    if archive.md5 is not None:
        checksums.append({"algorithm": "MD5", "checksumValue": archive.md5})
    known: dict[str, object] = {
        "versionInfo": package.version,
        "summary": package.description,
        "homepage": package.meta.homepage,
    }
    return {
        "SPDXID": _ref(item.attr),
        "name": package.pname,
        "packageFileName": archive.relative_path.rpartition("/")[2],
        "downloadLocation": archive.url or _UNKNOWN,
        "filesAnalyzed": False,
        "checksums": checksums,
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": _license(package.license),
        "copyrightText": _UNKNOWN,
        "supplier": f"Organization: {SUPPLIER}" if is_nvidias(item) else _UNKNOWN,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": package_url(item),
            }
        ],
        **{key: value for key, value in known.items() if value is not None},
    }


def _license(stated: SetLicense) -> str:
    if stated.spdx is not None:
        return stated.spdx
    return f"LicenseRef-NVIDIA-{_id(stated.short_name.removeprefix('NVIDIA '))}"


def _licenses(subject: Subject) -> list[dict[str, Any]]:
    """Return the licences that SPDX does not know; their texts lie at the addresses."""
    names: dict[str, str] = {}
    addresses: dict[str, set[str]] = defaultdict(set)
    for item in subject.items:
        stated = item.package.license
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


def _relation(subject: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other}


SPDX = Exporter(
    name="spdx",
    title="A bill of materials, SPDX 2.3 as JSON.",
    files=_files,
    file="bom.spdx.json",
)
