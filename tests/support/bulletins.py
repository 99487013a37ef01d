"""Small bulletins and CVE records, in the form of NVIDIA's repository."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cudaredist.formats.advisories import Advisories
from cudaredist.formats.registry import read_own_file
from cudaredist.primitives import sha256_of
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.known_vulnerabilities import read_advisory_policy
from cudaredist.tables.advisories.read_bulletin import (
    DOCUMENT_LIMIT,
    ReadBulletin,
    compare_records,
    read_bulletin,
)
from cudaredist.tables.advisories.states import KnownVulnerabilities

POLICY = read_advisory_policy(Store(shipped_data()))
Row = tuple[str, str, str, str]
"""Platform, product, affected versions and fixed versions."""
TOOLKIT: Row = (
    "Windows, Linux",
    "NVIDIA CUDA Toolkit",
    "All versions prior to CUDA Toolkit 13.1",
    "CUDA Toolkit 13.1",
)


def bulletin(
    number: str = "9001",
    rows: Sequence[Row] = (TOOLKIT,),
    description: str = "The CUDA Toolkit contains a vulnerability in the cuobjdump binary.",
    cve: str = "CVE-2030-1000",
    version: str = "1.0.0",
) -> dict[str, Any]:
    """Return a bulletin with one vulnerability."""
    branches: dict[str, list[dict[str, Any]]] = {}
    status: dict[str, list[str]] = {"known_affected": [], "fixed": []}
    for platform, product, *texts in rows:
        for state, text in zip(status, texts, strict=True):
            identifier = f"{platform}_{product}_{text}"
            if text and identifier not in status[state]:
                status[state].append(identifier)
            leaf = {"name": text, "product_id": identifier}
            branch = {"category": "product_version", "name": product, "product": leaf}
            branches.setdefault(platform, []).append(branch)
    vector = "CVSS:3.1/AV:L/AC:L/PR:N/UI:R/S:U/C:N/I:N/A:L"
    return {
        "document": {
            "title": "Security Bulletin",
            "tracking": {
                "id": number,
                "initial_release_date": "2030-01-20T00:00:00Z",
                "current_release_date": "2030-01-21T00:00:00Z",
                "version": version,
            },
        },
        "product_tree": {
            "branches": [
                {"category": "architecture", "name": name, "branches": own}
                for name, own in branches.items()
            ]
        },
        "vulnerabilities": [
            {
                "cve": cve,
                "cwe": {"id": "CWE-125", "name": "Out-of-bounds Read"},
                "notes": [{"category": "summary", "text": description}],
                "product_status": status,
                "scores": [{"cvss_v3": {"baseScore": 3.3, "vectorString": vector}}],
            }
        ],
    }


def cve_record(cve: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the record of a vulnerability."""
    affected = [
        {
            "product": product,
            "platforms": [platform],
            "versions": [{"status": "affected", "version": text}],
        }
        for platform, product, text, _ in rows
    ]
    return {"cveMetadata": {"cveId": cve}, "containers": {"cna": {"affected": affected}}}


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a bulletin after a change."""
    document = bulletin()
    change(document)
    return json.dumps(document).encode()


def two_products(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the versions of a bulletin with other texts, under the same identifiers."""
    branches: list[dict[str, Any]] = copy.deepcopy(
        document["product_tree"]["branches"][0]["branches"]
    )
    for branch in branches:
        branch["product"]["name"] = "All versions prior to 1.0"
    return branches


HOSTILE: Mapping[str, bytes] = {
    "no JSON": b"<html>",
    "list": b"[]",
    "deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "not UTF-8": b'{"document": "\xff"}',
    "repeated key": b'{"document": {}, "document": {}}',
    "huge number": changed(lambda d: d["document"]["tracking"].update(version="9" * 400)),
    "escape sequence in version": changed(
        lambda d: d["product_tree"]["branches"][0]["branches"][0]["product"].update(
            name="\x1b[31m1"
        )
    ),
    "escape sequence in product": changed(
        lambda d: d["product_tree"]["branches"][0]["branches"][0].update(name="\x1b]0;x\x07")
    ),
    "long product": changed(
        lambda d: d["product_tree"]["branches"][0]["branches"][0].update(name="x" * 10_000)
    ),
    "number as product": changed(
        lambda d: d["product_tree"]["branches"][0]["branches"][0].update(name=7)
    ),
    "other status": changed(
        lambda d: d["vulnerabilities"][0]["product_status"].update(under_investigation=["x"])
    ),
    "unknown product": changed(
        lambda d: d["vulnerabilities"][0]["product_status"]["fixed"].append("x")
    ),
    "path as number": changed(lambda d: d["document"]["tracking"].update(id="../../1")),
    "path as CVE": changed(lambda d: d["vulnerabilities"][0].update(cve="../CVE-2030-1000")),
    "score": changed(
        lambda d: d["vulnerabilities"][0]["scores"][0]["cvss_v3"].update(baseScore=1e9)
    ),
    "true as score": changed(
        lambda d: d["vulnerabilities"][0]["scores"][0]["cvss_v3"].update(baseScore=True)
    ),
    "date": changed(lambda d: d["document"]["tracking"].update(initial_release_date="soon")),
    "no vulnerabilities": changed(lambda d: d.update(vulnerabilities="none")),
    "many vulnerabilities": changed(lambda d: d.update(vulnerabilities=[{}] * 5000)),
    "no tree": changed(lambda d: d.pop("product_tree")),
    "one id for two products": changed(
        lambda d: d["product_tree"]["branches"].append(
            {"category": "architecture", "name": "Linux", "branches": two_products(d)}
        )
    ),
    "branch that is its own list": changed(
        lambda d: d["product_tree"]["branches"][0].update(branches={"branches": []})
    ),
    "deep branches": b'{"branches": [' * 200 + b"]}" * 200,
    "infinite score": json.dumps(bulletin()).replace("3.3", "1e999").encode(),
    "large document": b" " * (DOCUMENT_LIMIT + 1),
}
"""Invalid bulletins."""


def write_document(path: Path, document: object) -> bytes:
    """Write a document with its checksum, and return its bytes."""
    data = document if isinstance(document, bytes) else json.dumps(document, indent=4).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    Path(f"{path}.sha256").write_text(sha256_of(data))
    return data


def write_bulletin(root: Path, rows: Sequence[Row] = (TOOLKIT,), **more: str) -> Mapping[str, Any]:
    """Write a bulletin and its CVE record to a folder, and return the bulletin."""
    document = bulletin(rows=rows, **more)
    number = document["document"]["tracking"]["id"]
    folder = root / "2030" / number
    write_document(folder / f"{number}.json", document)
    cve = document["vulnerabilities"][0]["cve"]
    write_document(folder / f"{cve}.json", cve_record(cve, rows))
    return document


def read(document: object, records: Mapping[str, object] | None = None) -> ReadBulletin:
    """Read a bulletin with the shipped decisions, and compare CVE records."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    result = read_bulletin(data, "0" * 64, POLICY)
    if records is None:
        return result
    encoded = {cve: json.dumps(record).encode() for cve, record in records.items()}
    return compare_records(result, encoded, POLICY)


def known(*rows: Row, **about: str) -> KnownVulnerabilities:
    """Return the known vulnerabilities of one bulletin."""
    document = read(bulletin(rows=rows or (TOOLKIT,), **about))
    fields = {
        "schema_version": 1,
        "source": "",
        "newest": "2030-01-21",
        "bulletins": {document.id: document.bulletin},
        "vulnerabilities": document.vulnerabilities,
    }
    table = Advisories.model_validate(fields)
    assert read_own_file(table.canonical(), Advisories) == table
    return KnownVulnerabilities(table, POLICY)
