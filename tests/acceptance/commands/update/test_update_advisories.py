"""Tests of update-advisories on small bulletins."""

import hashlib
import json
from pathlib import Path
from typing import Any

from conftest import Run
from support.bulletins import HOSTILE, bulletin, write_bulletin, write_document
from support.running import report
from support.server import FaultServer

SOURCE = Path("bulletins")
TABLE = Path("data/advisories.json")


def update(run: Run, *options: object, source: object = SOURCE) -> Any:
    return run("update-advisories", "--source", source, *options)


def table() -> Any:
    return json.loads(TABLE.read_bytes())


def statuses(run: Run, *options: object) -> tuple[int, dict[str, str]]:
    result = update(run, "--json", *options)
    found = json.loads(result.stdout)
    return result.exit_code, {one["bulletin"]: one["status"] for one in found["bulletins"]}


def test_update_writes_facts_once(run: Run) -> None:
    write_bulletin(SOURCE)
    assert statuses(run) == (0, {"9001": "new"})
    before = TABLE.read_bytes()
    assert b"vulnerability in" not in before
    assert statuses(run) == (0, {"9001": "known"})
    assert TABLE.read_bytes() == before
    assert update(run, "--check").exit_code == 0


def test_check_writes_nothing(run: Run) -> None:
    write_bulletin(SOURCE)
    assert update(run, "--check").exit_code == 1
    assert not TABLE.exists()


def test_changed_bulletin_needs_permission(run: Run) -> None:
    write_bulletin(SOURCE)
    update(run)
    before = TABLE.read_bytes()
    write_bulletin(SOURCE, version="1.1.0")
    assert statuses(run) == (1, {"9001": "changed"})
    assert TABLE.read_bytes() == before
    assert "--replace" in update(run).stderr
    assert statuses(run, "--replace") == (0, {"9001": "replaced"})
    assert table()["bulletins"]["9001"]["version"] == "1.1.0"


def test_bulletin_that_source_does_not_have_stays(run: Run) -> None:
    write_bulletin(SOURCE)
    update(run)
    write_bulletin(Path("other"), number="9002", cve="CVE-2030-2000")
    assert update(run, source="other").exit_code == 0
    assert list(table()["bulletins"]) == ["9001", "9002"]


def test_wrong_checksum_skips_only_its_document(run: Run) -> None:
    write_bulletin(SOURCE)
    write_bulletin(SOURCE, number="9002", cve="CVE-2030-2000")
    record = SOURCE / "2030/9001/CVE-2030-1000.json.sha256"
    record.write_text("0" * 64)
    assert statuses(run) == (4, {"9001": "failed", "9002": "new"})
    record.unlink()
    assert statuses(run) == (3, {"9001": "failed", "9002": "known"})


def test_checksums_of_windows_text_and_sha512_are_accepted(run: Run) -> None:
    write_bulletin(SOURCE)
    path = SOURCE / "2030/9001/9001.json"
    data = path.read_bytes()
    windows = data.replace(b"\n", b"\r\n")
    checksums = (hashlib.sha512(data), hashlib.sha256(windows), hashlib.sha512(windows))
    for checksum in checksums:
        Path(f"{path}.sha256").write_text(f"{checksum.hexdigest()}  9001.json\n")
        assert update(run).exit_code == 0


def test_invalid_bulletin_is_content_error(run: Run) -> None:
    write_bulletin(SOURCE)
    document = bulletin("9002")
    document["vulnerabilities"][0]["product_status"] = []
    write_document(SOURCE / "2030/9002/9002.json", document)
    assert statuses(run) == (5, {"9001": "new", "9002": "failed"})


def test_hostile_bulletins_skip_only_themselves(run: Run) -> None:
    write_bulletin(SOURCE)
    numbers = [str(number) for number, _ in enumerate(HOSTILE, 9002)]
    for number, data in zip(numbers, HOSTILE.values(), strict=True):
        write_document(SOURCE / "2030" / number / f"{number}.json", data)
    result = update(run, "--json")
    found = json.loads(result.stdout)["bulletins"]
    expected = {"9001": "new"} | dict.fromkeys(numbers, "failed")
    assert {one["bulletin"]: one["status"] for one in found} == expected
    assert result.exit_code == 5
    assert all(f"bulletin {number}: " in result.stderr for number in numbers)
    assert result.stderr.replace("\n", "").isprintable()
    assert [one["cve"] for one in table()["vulnerabilities"]] == ["CVE-2030-1000"]


def test_bulletin_with_number_of_another_is_refused(run: Run) -> None:
    write_document(SOURCE / "2030/9002/9002.json", bulletin("9001", rows=()))
    assert statuses(run) == (4, {"9002": "failed"})


def test_folder_without_bulletins_is_incomplete(run: Run) -> None:
    SOURCE.mkdir()
    assert update(run).exit_code == 3


def test_bulletins_are_read_from_server(run: Run, server: FaultServer) -> None:
    write_bulletin(SOURCE)
    root = SOURCE / "2030"
    for path in root.rglob("*"):
        if path.is_file():
            server.files[f"/2022/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    server.files["/2022/README.md"] = b"| [9001](9001/9001.md) | [CVE](9001/CVE-2030-1000.json) |\n"
    found = report(update(run, "--json", "--retries", 0, source=server.url))
    assert [one["status"] for one in found["bulletins"]] == ["new"]
