"""Tests of the distributable files that license texts list, on the shipped data."""

import json
from pathlib import Path

import pytest
from conftest import Run
from support.binaries import elf

from cudaredist.features.distributions import distribution_of
from cudaredist.formats.license_policy import LicensePolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.sets.licenses import find_text
from cudaredist.store.data_folder import shipped_data


def rows_of(run: Run, sql: str) -> list[list[str]]:
    rows: list[list[str]] = json.loads(run("query", sql, "--json", "--max-rows", "100000").stdout)[
        "rows"
    ]
    return rows


def test_query_agrees_with_the_lists_for_every_library_and_library_to_link(run: Run) -> None:
    """The view and the function have the same rule."""
    policy = read_own_file((shipped_data() / "policy/licenses.json").read_bytes(), LicensePolicy)
    texts = {
        sha256: find_text({"LICENSE": sha256}, policy)
        for text in policy.texts.values()
        for sha256 in text.files
    }
    sql = """
        SELECT DISTINCT path, license_sha256, distribution
        FROM distributions JOIN contents ON id = contents
        WHERE output IN ('lib', 'static', 'stubs', 'include') AND name GLOB '*[.aolhp]'
            OR name LIKE '%.so%' OR name LIKE '%.dll' OR name LIKE '%.lib'"""
    rows = rows_of(run, sql)
    assert len(rows) > 8_000
    wrong = [
        (path, status)
        for path, sha256, status in rows
        if status != distribution_of(path, texts.get(sha256, "unknown"))
    ]
    assert wrong == []


def test_libraries_of_cuda_that_the_text_does_not_list_are_known(run: Run) -> None:
    sql = """
        SELECT DISTINCT name FROM distributions JOIN downloads USING (contents)
        WHERE redist = 'cuda' AND label = '12.9.2' AND platform = 'linux-x86_64' AND output = 'lib'
            AND distribution = 'not-listed' AND name LIKE '%.so%' ORDER BY name"""
    names = {name for (name,) in rows_of(run, sql)}
    assert len(names) == 18
    assert {"libcusolverMg.so.11", "libcufile.so.0", "libOpenCL.so.1", "libcheckpoint.so"} < names


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("libcusolverMg.so.11", "license texts: not listed as distributable"),
        ("libcudart.so.12", "license texts: listed as distributable"),
        ("libcudart_static.a", "license texts: listed as distributable"),
        ("libnccl.so.2", "license texts: without a list of distributable files"),
    ],
)
def test_which_states_whether_license_texts_list_a_file(run: Run, name: str, line: str) -> None:
    assert line in run("which", name).stdout.splitlines()


def test_which_reports_distribution_of_each_archive(run: Run) -> None:
    hits = json.loads(run("which", "libcusolver*.so.12", "--json").stdout)["hits"]
    assert {
        (hit["path"].rpartition("/")[2], hit["distribution"]) for hit in hits if hit["distribution"]
    } == {
        ("libcusolver.so.12", "listed"),
        ("libcusolverMg.so.12", "not-listed"),
    }


def test_which_knows_nothing_about_texts_of_archives_that_were_not_examined(run: Run) -> None:
    hits = json.loads(run("which", "libcudart.so.12", "--json").stdout)["hits"]
    assert {hit["distribution"] for hit in hits if hit["is_by_wheel"]} <= {None}


def test_set_and_its_exports_state_whether_texts_list_a_library(run: Run, tmp_path: Path) -> None:
    call = ("build", "--cuda", "12.9.2", "--platform", "linux-x86_64", "--output", tmp_path)
    assert run(*call).exit_code == 0
    (path,) = (tmp_path / "linux-x86_64").glob("*.json")
    terms = json.loads(path.read_bytes())["packages"]["libcusolver"]["license"]
    assert terms["distribution"] == {
        "lib/libcusolver.so.11": "listed",
        "lib/libcusolverMg.so.11": "not-listed",
    }
    text = run("explain", "set", path).stdout
    assert "\nlibraries by the license texts: 41 listed as distributable, 31 not listed" in text
    assert ", libcusolver (libcusolverMg.so.11), " in text
    lines = run("explain", "set", path, "libcusolver").stdout.splitlines()
    assert "listed as distributable: libcusolver.so.11; not listed: libcusolverMg.so.11" in lines
    for name in ("cyclonedx", "spdx"):
        assert run("export", name, path, "--output", tmp_path / name).exit_code == 0
    components = json.loads((tmp_path / "cyclonedx").read_bytes())["components"]
    properties = {
        one["name"]: one["value"]
        for component in components
        if component["name"] == "libcusolver"
        for one in component["properties"]
    }
    kind = "cudaredist:license-distribution:lib/libcusolverMg.so.11"
    assert properties[kind] == "not-listed"
    words = "Libraries that the text lists as distributable: libcusolver.so.11; not listed: "
    assert f"{words}libcusolverMg.so.11." in (tmp_path / "spdx").read_text()


def test_audit_notes_the_texts_about_copies_of_libraries(run: Run, tmp_path: Path) -> None:
    for name in ("libcusolverMg.so.11", "libcudart.so.12", "libown.so.1"):
        (tmp_path / name).write_bytes(elf(soname=name))
    notes = json.loads(run("audit", tmp_path, "--json").stdout)["notes"]
    assert notes == [
        "by NVIDIA's license texts, libcudart.so.12 (cuda_cudart): listed as distributable",
        "by NVIDIA's license texts, libcusolverMg.so.11 (libcusolver): not listed as distributable",
    ]


def test_audit_without_copies_has_no_notes_about_texts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "libown.so.1").write_bytes(elf(soname="libown.so.1", needed=["libcudart.so.12"]))
    assert json.loads(run("audit", tmp_path, "--json").stdout)["notes"] == []
