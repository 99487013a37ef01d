"""Compare the table of vulnerabilities by release with one made from the CVE records alone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import REAL_MANIFESTS, REPOSITORY, SHARED, Run

from cudaredist.primitives import parse_label
from cudaredist.store.data_folder import Store
from cudaredist.store.known_vulnerabilities import known_vulnerabilities, read_advisories

DOCUMENTS = SHARED / "advisories"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="NVIDIA's bulletins are missing"),
]
POLICY = json.loads((REPOSITORY / "data/policy/advisories.json").read_bytes())
PRODUCTS = {
    "CUDA Toolkit": "cuda",
    "NVIDIA CUDA Toolkit": "cuda",
    "nvJPEG2000": "nvjpeg2000",
    "nvJPEG2000 Library": "nvjpeg2000",
    "nvTIFF Library": "nvtiff",
    "TensorRT": "tensorrt",
}
PACKAGES = {"cuda": "cuda_cuobjdump", "nvjpeg2000": "libnvjpeg_2k", "nvtiff": "libnvtiff"}


def numbers(text: str) -> list[int]:
    """Return the numbers of the last version in a text: "12.6U1" is 12.6.1."""
    version, update = re.findall(r"(\d+(?:\.\d+)+|\d+)(?:\.x)?(?: ?(?:Update |U)(\d+))?$", text)[-1]
    found = [int(part) for part in version.split(".")]
    if update:
        found = [*found[:2], int(update)]
    return [*found, 0, 0, 0][:4]


def is_affected(text: str, bulletin: str, release: str) -> bool:
    """Decide if a CVE record's text includes a release."""
    version = numbers(release)
    for decision in POLICY["versions"]:
        if (decision["bulletin"], decision["stated"]) == (bulletin, text):
            if "before" in decision:
                return version < numbers(decision["before"])
            return version <= numbers(decision["through"])
    if "including" in text or " - " in text:
        return version <= numbers(text)
    if "prior to" in text:
        return version < numbers(text)
    raise AssertionError(text)


def records() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the bulletin and CVE of each record, with an entry for a product of packages."""
    for path in sorted(DOCUMENTS.glob("*/*/CVE-*.json")):
        document = json.loads(path.read_bytes())
        for entry in document["containers"]["cna"]["affected"]:
            if entry["product"] in PRODUCTS:
                yield path.parent.name, document["cveMetadata"]["cveId"], entry


def labels_of(redist: str) -> list[str]:
    """Return the labels of all known releases."""
    folders = (
        REPOSITORY / "data/manifests/wheels" / redist,
        REAL_MANIFESTS / "compute" / redist / "redist",
        REAL_MANIFESTS / "handwritten" / redist,
    )
    names = {path.stem for folder in folders for path in folder.glob("redistrib_*.json")}
    found = {name.removeprefix("redistrib_") for name in names}
    return sorted(label for label in found if re.fullmatch(r"[0-9.]+", label))


def test_table_of_bulletins_equals_table_of_cve_records(run: Run) -> None:
    assert run("update-advisories", "--source", DOCUMENTS).exit_code == 0
    known = known_vulnerabilities(Store(Path("data")))
    expected: dict[tuple[str, str, str], bool] = {}
    for bulletin, cve, entry in records():
        redist = PRODUCTS[entry["product"]]
        for version in entry["versions"]:
            for label in labels_of(redist):
                affected = is_affected(version["version"], bulletin, label)
                key = cve, redist, label
                expected[key] = expected.get(key, False) or affected
    states = {
        (cve, redist, label): state
        for redist in known.redists()
        for label in labels_of(redist)
        for cve, state in known.of_release(redist, parse_label(label)).items()
    }
    assert states.keys() == expected.keys()
    assert len({cve for cve, _, _ in expected}) == 41
    assert {redist for _, redist, _ in expected} == {*PRODUCTS.values()}
    undecided = {key for key, state in states.items() if state == "unknown"}
    decided = {(one["cve"], one["redist"], one["release"]) for one in POLICY["releases"]}
    assert undecided <= decided
    differences = {
        key for key, affected in expected.items() if affected != (states[key] == "affected")
    }
    assert not differences


def test_every_vulnerability_of_records_is_in_table(run: Run) -> None:
    assert run("update-advisories", "--source", DOCUMENTS).exit_code == 0
    table = read_advisories(Store(Path("data")))
    assert table is not None
    own = {(one.bulletin, one.cve) for one in table.vulnerabilities}
    assert own == {(path.parent.name, path.stem) for path in DOCUMENTS.glob("*/*/CVE-*.json")}
    assert not any(one.differences for one in table.vulnerabilities)


def test_update_of_unchanged_bulletins_gives_same_bytes(run: Run) -> None:
    assert run("update-advisories", "--source", DOCUMENTS).exit_code == 0
    before = Path("data/advisories.json").read_bytes()
    result = run("update-advisories", "--source", DOCUMENTS, "--check")
    assert result.exit_code == 0, result.output
    assert run("update-advisories", "--source", DOCUMENTS).exit_code == 0
    assert Path("data/advisories.json").read_bytes() == before


def test_shipped_data_has_the_facts_of_all_bulletins(run: Run) -> None:
    assert run("update-advisories", "--source", DOCUMENTS).exit_code == 0
    table = read_advisories(Store(Path("data")))
    shipped = read_advisories(Store(REPOSITORY / "data"))
    assert table is not None
    assert shipped is not None
    of_shipped = {one for one in shipped.vulnerabilities if one.bulletin in table.bulletins}
    assert set(table.vulnerabilities) == of_shipped
