"""Read a bulletin (CSAF 2.0) and its CVE records.

The documents are untrusted. A field of another type, an unknown product or a text of another form
makes the whole document invalid, because a lost version would hide a vulnerability.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.formats.advisories import (
    AdvisoryPolicy,
    Bulletin,
    ComponentMention,
    StatedVersions,
    System,
    Vulnerability,
)
from cudaredist.formats.registry import validation_problems
from cudaredist.grouping import grouped
from cudaredist.jsontext import parse_json_parts
from cudaredist.tables.advisories.products import product_called
from cudaredist.words import shown

DOCUMENT_LIMIT = 4 << 20
"""Maximum size of a document in bytes. The largest known one has 170 kB."""
_MOST_VULNERABILITIES = 2000
_MOST_PROBLEMS = 500
"""Maximum number of texts with control characters. Known documents have fewer than 50."""
_ADDRESS = "https://nvidia.custhelp.com/app/answers/detail/a_id/{}"
_is_cve = re.compile(r"CVE-[0-9]{4}-[0-9]{4,19}").fullmatch
_is_id = re.compile(r"[0-9]{4,6}").fullmatch
_SYSTEMS: dict[System, re.Pattern[str]] = {
    "linux": re.compile(r"\bfor (Windows (and|or) )?Linux\b"),
    "windows": re.compile(r"\bfor (Linux (and|or) )?Windows\b"),
}


class ReadBulletin(NamedTuple):
    """A bulletin, and its vulnerabilities in our products."""

    id: str
    bulletin: Bulletin
    vulnerabilities: tuple[Vulnerability, ...]


class _Version(NamedTuple):
    platform: str
    product: str
    text: str


def read_bulletin(data: bytes, sha256: str, policy: AdvisoryPolicy) -> ReadBulletin:
    """Return the facts of a bulletin. Raises `InvalidFileError`."""
    document = _Document(_parsed(data, "bulletin"))
    about = document.part(document.root, "document")
    tracking = document.part(about, "document", "tracking")
    bulletin_id = document.text(tracking, "document.tracking", "id")
    if not _is_id(bulletin_id):
        document.refuse("document.tracking.id", f"{shown(bulletin_id)} is not a number")
    versions = document.versions()
    products = {version.product for version in versions.values()}
    ours = {name for name in products if product_called(name, policy) is not None}
    vulnerabilities = []
    listed = document.items(document.root, "", "vulnerabilities")
    if len(listed) > _MOST_VULNERABILITIES:
        document.refuse("vulnerabilities", f"more than {_MOST_VULNERABILITIES:,} entries")
    for number, entry in enumerate(listed):
        path = f"vulnerabilities[{number}]"
        vulnerability = document.vulnerability(entry, path, versions, ours, policy)
        if vulnerability is None:
            continue
        fields = vulnerability | {"bulletin": bulletin_id}
        vulnerabilities.append(_model(Vulnerability, fields, path))
    released = document.day(tracking, "document.tracking", "initial_release_date")
    bulletin = {
        "year": released[:4],
        "released": released,
        "changed": document.day(tracking, "document.tracking", "current_release_date"),
        "version": document.text(tracking, "document.tracking", "version"),
        "sha256": sha256,
        "url": _ADDRESS.format(bulletin_id),
        "unmapped": tuple(sorted(products - ours)),
    }
    return ReadBulletin(bulletin_id, _model(Bulletin, bulletin, "document"), tuple(vulnerabilities))


def compare_records(
    read: ReadBulletin, records: Mapping[str, bytes], policy: AdvisoryPolicy
) -> ReadBulletin:
    """Return a bulletin with its differences from CVE records. Raises `InvalidFileError`."""
    compared = (
        one.model_copy(update={"differences": tuple(_differences(records[one.cve], one, policy))})
        for one in read.vulnerabilities
    )
    return read._replace(vulnerabilities=tuple(compared))


class _Document:
    """A parsed document, and typed access to its fields."""

    def __init__(self, root: object, what: str = "bulletin") -> None:
        self.what = what
        if not isinstance(root, dict):
            self.refuse("", "expected an object")
        self.root: dict[str, Any] = root

    def refuse(self, path: str, message: str) -> NoReturn:
        raise InvalidFileError(self.what, [Problem(path, message)])

    def part(self, owner: Mapping[str, Any], path: str, name: str = "") -> dict[str, Any]:
        """Return an object. Without `name`, `path` is the name in the root."""
        value = owner.get(name or path)
        if not isinstance(value, dict):
            self.refuse(_join(path, name), "expected an object")
        return value

    def items(self, owner: Mapping[str, Any], path: str, name: str) -> list[dict[str, Any]]:
        """Return a list of objects, empty if the field is missing."""
        value = owner.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.refuse(_join(path, name), "expected a list of objects")
        return value

    def texts(self, owner: Mapping[str, Any], path: str, name: str) -> list[str]:
        """Return a list of texts, empty if the field is missing."""
        value = owner.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(_join(path, name), "expected a list of texts")
        return value

    def text(self, owner: Mapping[str, Any], path: str, name: str) -> str:
        """Return a text in one line. It may be printed, so it has no control characters."""
        text = " ".join(self.prose(owner, path, name).split())
        if not text or not text.isprintable():
            self.refuse(_join(path, name), "expected a text of printable characters")
        return text

    def prose(self, owner: Mapping[str, Any], path: str, name: str) -> str:
        """Return a text that is searched, but neither stored nor printed."""
        value = owner.get(name)
        if not isinstance(value, str):
            self.refuse(_join(path, name), "expected a text")
        return value

    def lines(self, owner: Mapping[str, Any], path: str, name: str) -> list[str]:
        """Return a list of texts in one line each."""
        return [" ".join(text.split()) for text in self.texts(owner, path, name)]

    def day(self, owner: Mapping[str, Any], path: str, name: str) -> str:
        text = self.text(owner, path, name)
        try:
            return datetime.fromisoformat(text).date().isoformat()
        except ValueError:
            self.refuse(_join(path, name), f"{shown(text)} is not a date")

    def versions(self) -> dict[str, _Version]:
        """Return the product versions by identifier."""
        tree = self.part(self.root, "product_tree")
        branches = self.items(tree, "product_tree", "branches")
        versions: dict[str, _Version] = {}
        for identifier, version in self._versions(branches, "product_tree", ""):
            if versions.setdefault(identifier, version) != version:
                self.refuse("product_tree", f"{shown(identifier)} is the id of two products")
        return versions

    def _versions(
        self, branches: list[dict[str, Any]], path: str, platform: str
    ) -> Iterator[tuple[str, _Version]]:
        for number, branch in enumerate(branches):
            own = f"{path}.branches[{number}]"
            category, name = self.text(branch, own, "category"), self.text(branch, own, "name")
            if category == "product_version":
                product = self.part(branch, own, "product")
                text = self.text(product, f"{own}.product", "name")
                identifier = self.text(product, f"{own}.product", "product_id")
                yield identifier, _Version(platform or "not stated", name, text)
            below = name if category == "architecture" else platform
            yield from self._versions(self.items(branch, own, "branches"), own, below)

    def vulnerability(
        self,
        entry: dict[str, Any],
        path: str,
        versions: Mapping[str, _Version],
        ours: set[str],
        policy: AdvisoryPolicy,
    ) -> dict[str, Any] | None:
        """Return the fields of a vulnerability, None if it is not in our products."""
        cve = self.text(entry, path, "cve")
        if not _is_cve(cve):
            self.refuse(f"{path}.cve", f"{shown(cve)} is not a CVE")
        status = self.part(entry, path, "product_status")
        unknown = sorted(status.keys() - {"known_affected", "fixed"})
        if unknown:
            self.refuse(f"{path}.product_status", f"{shown(unknown[0])} is not supported")
        texts = {
            state: grouped(
                ((row.platform, row.product), row.text)
                for row in self._rows(status, f"{path}.product_status", state, versions)
                if row.product in ours
            )
            for state in ("known_affected", "fixed")
        }
        keys = dict.fromkeys(key for of_state in texts.values() for key in of_state)
        if not keys:
            return None
        stated = {
            key: tuple(tuple(sorted({*of_state.get(key, ())})) for of_state in texts.values())
            for key in keys
        }
        score, vector = self._score(entry, path)
        return {
            "cve": cve,
            "score": score,
            "vector": vector,
            "cwe": self._cwe(entry, path),
            "versions": tuple(_joined(stated)),
            "components": tuple(self._components(entry, path, policy)),
            "systems": self._systems(entry, path),
        }

    def _rows(
        self, status: Mapping[str, Any], path: str, name: str, versions: Mapping[str, _Version]
    ) -> list[_Version]:
        rows = []
        for identifier in self.texts(status, path, name):
            if identifier not in versions:
                self.refuse(f"{path}.{name}", f"unknown product {shown(identifier)}")
            rows.append(versions[identifier])
        return rows

    def _score(self, entry: dict[str, Any], path: str) -> tuple[float | None, str | None]:
        """Return the highest base score, and its vector."""
        scores = []
        for number, score in enumerate(self.items(entry, path, "scores")):
            own = f"{path}.scores[{number}]"
            for name in ("cvss_v3", "cvss_v4"):
                if name in score:
                    cvss = self.part(score, own, name)
                    base = cvss.get("baseScore")
                    if isinstance(base, bool) or not isinstance(base, int | float):
                        self.refuse(f"{own}.{name}.baseScore", "expected a number")
                    if not 0 <= base <= 10:  # noqa: PLR2004 - the range of CVSS
                        self.refuse(f"{own}.{name}.baseScore", "expected a number from 0 to 10")
                    scores.append((float(base), self.text(cvss, f"{own}.{name}", "vectorString")))
        return max(scores, default=(None, None))

    def _cwe(self, entry: dict[str, Any], path: str) -> str | None:
        return (
            self.text(self.part(entry, path, "cwe"), f"{path}.cwe", "id")
            if "cwe" in entry
            else None
        )

    def _summaries(self, entry: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
        """Yield the descriptions with their paths."""
        for number, note in enumerate(self.items(entry, path, "notes")):
            own = f"{path}.notes[{number}]"
            if self.text(note, own, "category") == "summary":
                yield f"{own}.text", self.prose(note, own, "text")

    def _components(
        self, entry: dict[str, Any], path: str, policy: AdvisoryPolicy
    ) -> Iterator[ComponentMention]:
        for field, text in self._summaries(entry, path):
            for name, component in policy.components.items():
                for spelling in component.spellings:
                    match = _whole_word(spelling, text)
                    if match is not None:
                        yield ComponentMention(component=name, text=match, field=field)

    def _systems(self, entry: dict[str, Any], path: str) -> tuple[System, ...]:
        """Return the operating systems that a description names, if it is only one."""
        text = " ".join(text for _, text in self._summaries(entry, path))
        systems = tuple(name for name, find in _SYSTEMS.items() if find.search(text))
        return systems if len(systems) == 1 else ()


def _parsed(data: bytes, what: str) -> object:
    """Parse a document. Raises `InvalidFileError`.

    Descriptions and names contain tabs and line ends, so the fields are checked when they are read.
    """
    document, problems = parse_json_parts(data, what=what, limit=DOCUMENT_LIMIT)
    serious = [one for one in problems if one.message == "repeated key"]
    if serious or len(problems) > _MOST_PROBLEMS:
        raise InvalidFileError(what, serious or problems)
    return document


def _joined(
    stated: Mapping[tuple[str, str], tuple[tuple[str, ...], ...]],
) -> Iterator[StatedVersions]:
    """Yield the stated versions. Products with the same ones on a platform have one entry."""
    by_content = grouped(
        ((platform, texts), product) for (platform, product), texts in stated.items()
    )
    for (platform, (affected, fixed)), products in sorted(by_content.items()):
        yield _model(
            StatedVersions,
            {
                "products": tuple(sorted(products)),
                "platform": platform,
                "affected": affected,
                "fixed": fixed,
            },
            "product_status",
        )


def _differences(
    data: bytes, vulnerability: Vulnerability, policy: AdvisoryPolicy
) -> Iterator[str]:
    """Yield the fields of a CVE record that differ from the bulletin."""
    record = _Document(_parsed(data, "CVE record"), "CVE record")
    cve = record.text(record.part(record.root, "cveMetadata"), "cveMetadata", "cveId")
    if cve != vulnerability.cve:
        record.refuse("cveMetadata.cveId", f"{shown(cve)} instead of {vulnerability.cve}")
    path = "containers.cna"
    cna = record.part(record.part(record.root, "containers"), "containers", "cna")
    stated = {
        (platform, record.text(one, f"{path}.affected", "product"), text)
        for one in record.items(cna, path, "affected")
        for platform in record.lines(one, f"{path}.affected", "platforms") or ["not stated"]
        for version in record.items(one, f"{path}.affected", "versions")
        if version.get("status") == "affected"
        for text in [record.text(version, f"{path}.affected.versions", "version")]
    }
    of_bulletin = {
        (row.platform, product, text)
        for row in vulnerability.versions
        for product in row.products
        for text in row.affected
    }
    is_ours = cache(lambda name: product_called(name, policy) is not None)
    if {row for row in stated if is_ours(row[1])} != of_bulletin:
        yield "containers.cna.affected"
    vectors = {
        record.text(value, f"{path}.metrics", "vectorString")
        for metric in record.items(cna, path, "metrics")
        for name, value in metric.items()
        if name.startswith("cvss") and isinstance(value, dict)
    }
    if vectors and vulnerability.vector not in vectors:
        yield "containers.cna.metrics"


def _whole_word(spelling: str, text: str) -> str | None:
    """Return a name as it is spelled in a text, None if it is not a word of its own."""
    match = re.search(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])", text, re.IGNORECASE)
    return None if match is None else match[0]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _model(kind: type[Any], fields: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - an instance of `kind`
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        problems = [Problem(_join(path, own), text) for own, text in validation_problems(error)]
        raise InvalidFileError("bulletin", problems) from None
