"""A bill of materials in CycloneDX 1.6, as JSON, without a time, so that bytes repeat."""

import re

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

_is_license_id = re.compile(r"[A-Za-z0-9.+-]+").fullmatch


def _files(subject: Subject) -> Files:
    package_set = subject.package_set
    root = package_set.cuda.attribute
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": f"urn:uuid:{document_id(subject)}",
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "cudaredist"}]},
            "component": {
                "type": "platform",
                "bom-ref": f"set:{root}",
                "name": root,
                "version": package_set.cuda.release,
                "description": subject.title,
            },
        },
        "components": [_component(item) for item in subject.items],
        "dependencies": [
            {"ref": f"set:{root}", "dependsOn": [_ref(item.attr) for item in subject.items]},
            *(
                {
                    "ref": _ref(item.attr),
                    "dependsOn": [_ref(name) for name in depends_on(item, subject)],
                }
                for item in subject.items
            ),
        ],
    }
    return {"bom.cdx.json": canonical_json(document)}


def _ref(attr: str) -> str:
    return f"package:{attr}"


def _component(item: Item) -> dict[str, object]:
    package, archive = item.package, item.archive
    component: dict[str, object] = {
        "type": "library" if package.meta.main_program is None else "application",
        "bom-ref": _ref(item.attr),
        "name": package.pname,
        "purl": package_url(item),
        "hashes": _hashes(item),
        "licenses": [_license(package.license)],
        "properties": [
            {"name": f"cudaredist:{name}", "value": value} for name, value in _properties(item)
        ],
    }
    if package.version is not None:
        component["version"] = package.version
    if package.description is not None:
        component["description"] = package.description
    if is_nvidias(item):
        component["supplier"] = {"name": SUPPLIER}
    references = [
        ("distribution", archive.url),
        ("website", package.meta.homepage),
        ("release-notes", package.meta.changelog),
    ]
    component["externalReferences"] = [
        {"type": kind, "url": url} for kind, url in references if url is not None
    ]
    return component


def _hashes(item: Item) -> list[dict[str, str]]:
    hashes = [{"alg": "SHA-256", "content": item.archive.sha256}]
    if item.archive.md5 is not None:
        hashes.append({"alg": "MD5", "content": item.archive.md5})
    return hashes


def _license(stated: SetLicense) -> dict[str, object]:
    if stated.spdx is not None:
        if _is_license_id(stated.spdx):
            return {"license": {"id": stated.spdx}}
        return {"expression": stated.spdx}
    named = {"name": stated.short_name}
    if stated.url is not None:
        named["url"] = stated.url
    return {"license": named}


def _properties(item: Item) -> list[tuple[str, str]]:
    package, archive = item.package, item.archive
    found = {
        "attr": item.attr,
        "redist": package.redist,
        "release": package.release,
        "path": archive.relative_path,
        "size": None if archive.size is None else str(archive.size),
        "platform": archive.platform,
        "cuda-variant": archive.cuda_variant,
        "outputs": " ".join(package.outputs),
        "license-redistributable": {True: "yes", False: "no", None: "unknown"}[
            package.license.redistributable
        ],
    }
    return [(name, value) for name, value in found.items() if value is not None]


CYCLONEDX = Exporter(
    name="cyclonedx",
    title="A bill of materials, CycloneDX 1.6 as JSON.",
    files=_files,
    file="bom.cdx.json",
)
