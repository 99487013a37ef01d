"""Bill of materials in CycloneDX 1.6, as JSON.

It has no time, so that equal sets result in equal bytes.
"""

import re
from urllib.parse import quote

from packaging.utils import canonicalize_name

from cudaredist.exporters.cyclonedx_ids import TOOL, document_id, package_reference
from cudaredist.exporters.export_format import (
    ExportedPackage,
    ExportedSet,
    Files,
    exporter,
    without_nulls,
)
from cudaredist.exporters.vulnerabilities import describe_vulnerabilities
from cudaredist.formats.packageset import SetLicense
from cudaredist.formats.toolkit_record import ToolkitFile
from cudaredist.jsontext import canonical_json
from cudaredist.redists import REDISTS
from cudaredist.wheels import parse_wheel

SUPPLIER = "NVIDIA Corporation"
CHANGE = "cudaredist added run paths with patchelf."
"""The reason for changed files of a toolkit root."""
_ANSWERS = {True: "yes", False: "no", None: "unknown"}

_is_license_id = re.compile(r"[A-Za-z0-9.+-]+").fullmatch


@exporter(
    "cyclonedx",
    "bom.cdx.json",
    takes_addresses=True,
    takes_root=True,
    reads_root=True,
    takes_advisories=True,
)
def cyclonedx(exported: ExportedSet) -> Files:
    """A bill of materials, CycloneDX 1.6 as JSON."""
    package_set = exported.package_set
    root = package_set.cuda.attribute
    dependencies = {f"set:{root}": [*exported.dependencies]}
    dependencies |= {
        package_reference(attr): names for attr, names in exported.dependencies.items()
    }
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": f"urn:uuid:{document_id(exported)}",
        "metadata": {
            "tools": {"components": [TOOL]},
            "component": {
                "type": "platform",
                "bom-ref": f"set:{root}",
                "name": root,
                "version": package_set.cuda.release,
                "description": exported.title,
            },
        },
        "components": [_component(package, exported) for package in exported.packages],
        "dependencies": [
            {"ref": name, "dependsOn": [*map(package_reference, names)]}
            for name, names in dependencies.items()
        ],
    }
    vulnerabilities = describe_vulnerabilities(exported, {"affected", "unknown"})
    if vulnerabilities:
        document["vulnerabilities"] = vulnerabilities
    return {"bom.cdx.json": canonical_json(document)}


def _component(package: ExportedPackage, exported: ExportedSet) -> dict[str, object]:
    entry, archive = package.entry, package.archive
    meta = entry.meta
    urls = {"distribution": archive.url, "website": meta.homepage, "release-notes": meta.changelog}
    references = without_nulls(urls)
    hashes = without_nulls({"SHA-256": archive.sha256, "MD5": archive.md5})
    component: dict[str, object] = {
        "type": "library" if meta.main_program is None else "application",
        "bom-ref": package_reference(package.attr),
        "name": entry.pname,
        "purl": package_url(package),
        "hashes": [{"alg": name, "content": content} for name, content in hashes.items()],
        "licenses": [_license(entry.license)],
        "properties": [
            {"name": f"cudaredist:{name}", "value": value}
            for name, value in _properties(package, exported).items()
        ],
        "externalReferences": [{"type": kind, "url": url} for kind, url in references.items()],
        "supplier": {"name": SUPPLIER} if is_by_nvidia(package) else None,
        "components": [
            _changed_file(path, file) for path, file in exported.changed_files(package.attr).items()
        ]
        or None,
        "version": entry.version,
        "description": entry.description,
    }
    return without_nulls(component)


def _changed_file(path: str, file: ToolkitFile) -> dict[str, object]:
    """Return a file of the root to which run paths were added."""

    def with_hash(sha256: str | None) -> dict[str, object]:
        return {"type": "file", "name": path, "hashes": [{"alg": "SHA-256", "content": sha256}]}

    pedigree = {"ancestors": [with_hash(file.original_sha256)], "notes": CHANGE}
    return with_hash(file.sha256) | {"pedigree": pedigree}


def _license(terms: SetLicense) -> dict[str, object]:
    if terms.spdx is not None:
        if _is_license_id(terms.spdx):
            return {"license": {"id": terms.spdx}}
        return {"expression": terms.spdx}
    return {"license": without_nulls({"name": terms.short_name, "url": terms.url})}


def _properties(package: ExportedPackage, exported: ExportedSet) -> dict[str, str]:
    entry, archive = package.entry, package.archive
    files = sorted((entry.license.files or {}).items())
    properties = {
        "attr": package.attr,
        "redist": entry.redist,
        "release": entry.release,
        "path": archive.relative_path,
        "size": None if archive.size is None else str(archive.size),
        "platform": archive.platform,
        "cuda-variant": archive.cuda_variant,
        "outputs": " ".join(entry.outputs),
        "opens": " ".join(exported.opened(package.attr)) or None,
        "opens-optional": " ".join(exported.optional_dependencies(package.attr)) or None,
        "license-redistributable": _ANSWERS[entry.license.redistributable],
        "license-manifest": entry.license.manifest,
        "license-text": entry.license.text,
        **{
            f"license-distribution:{path}": kind
            for path, kind in entry.license.distribution.items()
        },
        **{f"license-file:{path}": f"sha256:{sha256}" for path, sha256 in files},
    }
    return without_nulls(properties)


# -- also used for SPDX


def package_url(package: ExportedPackage) -> str:
    """Return a package's purl, with qualifiers in canonical order.

    A wheel has the name and version of its project in the package index, which scanners know.
    """
    archive, version = package.archive, package.entry.version
    file_name = archive.relative_path.rpartition("/")[2]
    wheel = parse_wheel(file_name, archive.url or "")
    qualifiers = {
        "checksum": f"sha256:{archive.sha256}",
        "download_url": archive.url,
        "file_name": file_name if wheel else None,
        "platform": archive.platform,
    }
    name = "generic/nvidia/" + quote(package.entry.pname, safe=":")
    if wheel is not None:
        name, version = f"pypi/{canonicalize_name(wheel.project)}", str(wheel.version)
    known = without_nulls(qualifiers)
    query = "&".join(f"{key}={quote(value, safe=':/')}" for key, value in known.items())
    return f"pkg:{name}{'' if version is None else '@' + quote(version, safe=':')}?{query}"


def is_by_nvidia(package: ExportedPackage) -> bool:
    """Check if NVIDIA publishes the package, rather than the user."""
    return package.entry.redist in REDISTS
