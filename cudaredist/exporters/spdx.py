"""Bill of materials in SPDX 2.3, as JSON."""

import re
from collections import defaultdict
from typing import Any

from cudaredist import __version__
from cudaredist.exporters.cyclonedx import (
    CHANGE,
    SUPPLIER,
    is_by_nvidia,
    package_url,
)
from cudaredist.exporters.cyclonedx_ids import document_id
from cudaredist.exporters.export_format import (
    ExportedPackage,
    ExportedSet,
    Files,
    exporter,
    without_nulls,
)
from cudaredist.features.distributions import distribution_in_words
from cudaredist.formats.packageset import SetLicense
from cudaredist.jsontext import canonical_json

_CREATED = "1970-01-01T00:00:00Z"
"""SPDX requires a time. It is constant, because equal sets must result in equal bytes."""

_is_reference = re.compile(r"LicenseRef-[A-Za-z0-9.-]+").fullmatch
_UNKNOWN = "NOASSERTION"
_DOCUMENT = "SPDXRef-DOCUMENT"


@exporter("spdx", "bom.spdx.json", takes_addresses=True, takes_root=True, reads_root=True)
def spdx(exported: ExportedSet) -> Files:
    """A bill of materials, SPDX 2.3 as JSON."""
    package_set = exported.package_set
    name = f"{package_set.cuda.attribute}-{package_set.platform.redist_system}"
    relations = [(_DOCUMENT, "DESCRIBES", attr) for attr in exported.dependencies]
    for attr, names in exported.dependencies.items():
        optional = exported.optional_dependencies(attr)
        relations += ((_ref(attr), "DEPENDS_ON", other) for other in names if other not in optional)
        relations += ((_ref(other), "OPTIONAL_DEPENDENCY_OF", attr) for other in optional)
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": _DOCUMENT,
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{_id(name)}-{document_id(exported)}",
        "creationInfo": {"created": _CREATED, "creators": [f"Tool: cudaredist-{__version__}"]},
        "packages": [_package(package, exported) for package in exported.packages],
        "hasExtractedLicensingInfos": _licenses(exported),
        "relationships": [
            {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": _ref(other)}
            for element, kind, other in relations
        ],
    }
    return {"bom.spdx.json": canonical_json(document)}


def _package(package: ExportedPackage, exported: ExportedSet) -> dict[str, object]:
    entry, archive = package.entry, package.archive
    hashes = without_nulls({"SHA256": archive.sha256, "MD5": archive.md5})
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl"}
    fields: dict[str, object] = {
        "SPDXID": _ref(package.attr),
        "name": entry.pname,
        "packageFileName": archive.relative_path.rpartition("/")[2],
        "downloadLocation": archive.url or _UNKNOWN,
        "filesAnalyzed": False,
        "checksums": [
            {"algorithm": name, "checksumValue": value} for name, value in hashes.items()
        ],
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": _license(entry.license),
        "copyrightText": _UNKNOWN,
        "supplier": f"Organization: {SUPPLIER}" if is_by_nvidia(package) else _UNKNOWN,
        "externalRefs": [reference | {"referenceLocator": package_url(package)}],
        "licenseComments": _license_comment(entry.license),
        "annotations": [
            {
                "annotationDate": _CREATED,
                "annotationType": "OTHER",
                "annotator": f"Tool: cudaredist-{__version__}",
                "comment": f"{path} has SHA-256 {file.sha256} in the toolkit root, and "
                f"{file.original_sha256} in the archive: {CHANGE}",
            }
            for path, file in exported.changed_files(package.attr).items()
        ]
        or None,
        "versionInfo": entry.version,
        "summary": entry.description,
        "homepage": entry.meta.homepage,
    }
    return without_nulls(fields)


def _license(terms: SetLicense) -> str:
    if terms.spdx is not None:
        return terms.spdx
    if _is_reference(terms.short_name):
        return terms.short_name
    return f"LicenseRef-NVIDIA-{_id(terms.short_name.removeprefix('NVIDIA '))}"


def _license_comment(terms: SetLicense) -> str | None:
    """Return the manifest's license, and the archive's license text and files."""
    parts = [] if terms.manifest is None else [f"License in the manifest: {terms.manifest}."]
    parts += [] if terms.text is None else [f"License text in the archive: {terms.text}."]
    if words := distribution_in_words(terms.distribution):
        parts.append(f"Libraries that the text lists as distributable: {words}.")
    files = sorted((terms.files or {}).items())
    parts += [f"The archive has {path}, SHA-256 {sha256}." for path, sha256 in files]
    return " ".join(parts) or None


def _licenses(exported: ExportedSet) -> list[dict[str, Any]]:
    """Return licenses that are not in the SPDX list."""
    all_terms = [package.entry.license for package in exported.packages]
    names = {_license(terms): terms.short_name for terms in all_terms if terms.spdx is None}
    addresses: dict[str, set[str]] = defaultdict(set)
    for terms in all_terms:
        addresses[_license(terms)].update(filter(None, [terms.url]))
    licenses = []
    for identifier, name in sorted(names.items()):
        text = f"{name}: terms of NVIDIA. The text is at the URLs in seeAlsos, if known."
        urls = sorted(addresses[identifier]) or None
        fields = {"licenseId": identifier, "name": name, "extractedText": text, "seeAlsos": urls}
        licenses.append(without_nulls(fields))
    return licenses


def _ref(attr: str) -> str:
    return f"SPDXRef-{_id(attr)}"


def _id(text: str) -> str:
    """Encode a text as an SPDX identifier, unique for each text."""
    plain = re.sub(r"[^A-Za-z0-9_ ]", lambda match: f".{ord(match[0]):x}.", text)
    return plain.replace("_", "-").replace(" ", "-")
