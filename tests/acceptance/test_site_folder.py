"""`site`: the folder of a web site, a second run, and refusals."""

import json
from pathlib import Path

import pytest
from conftest import Run
from support.small_sets import make_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a few releases, examined."""
    root = tmp_path_factory.mktemp("site")
    make_data(root)
    return root / "data"


def test_site_is_written_and_a_second_run_changes_nothing(run: Run, data: Path) -> None:
    first = json.loads(run("site", "-o", "site", "--data-dir", data, "--json").stdout)
    assert first["written"] == first["files"] > first["pages"] > 0
    assert Path("site/cuda/12.9.1/index.html").is_file()
    second = json.loads(run("site", "-o", "site", "--data-dir", data, "--json").stdout)
    assert (second["written"], second["removed"]) == (0, 0)
    assert second["size"] == first["size"]


def test_site_removes_pages_of_releases_that_are_gone(run: Run, data: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    folder = own / "manifests/cudnn"
    folder.mkdir(parents=True)
    for label in ("8.9.7", "9.10.2"):
        name = f"redistrib_{label}.json"
        (folder / name).write_bytes((data / "manifests/cudnn" / name).read_bytes())
    assert run("site", "-o", "site", "--data-dir", own).exit_code == 0
    (folder / "redistrib_8.9.7.json").unlink()
    result = json.loads(run("site", "-o", "site", "--data-dir", own, "--json").stdout)
    assert result["removed"] == 2
    assert not Path("site/cudnn/8.9.7/index.html").exists()
    assert Path("site/cudnn/9.10.2/index.html").exists()


def test_site_in_a_folder_with_other_files_is_refused(run: Run, data: Path) -> None:
    Path("site").mkdir()
    Path("site/notes.txt").write_text("mine")
    result = run("site", "-o", "site", "--data-dir", data)
    assert result.exit_code == 2
    assert "site has files, but no files.json of an earlier site" in result.stderr
    assert [path.name for path in Path("site").iterdir()] == ["notes.txt"]


def test_list_of_an_earlier_site_cannot_name_files_elsewhere(run: Run, data: Path) -> None:
    Path("mine.txt").write_text("mine")
    Path("site").mkdir()
    listing = {"schema_version": 1, "files": ["../mine.txt", "gone.html"]}
    Path("site/files.json").write_text(json.dumps(listing))
    Path("site/gone.html").write_text("old")
    assert run("site", "-o", "site", "--data-dir", data).exit_code == 0
    assert Path("mine.txt").read_text() == "mine"
    assert not Path("site/gone.html").exists()


def test_broken_list_of_an_earlier_site_is_refused(run: Run, data: Path) -> None:
    Path("site").mkdir()
    Path("site/files.json").write_text("[]")
    result = run("site", "-o", "site", "--data-dir", data)
    assert result.exit_code == 2
    assert "files.json is not the list of a site" in result.stderr


def test_site_without_manifests_names_a_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run("site", "-o", "site", "--data-dir", tmp_path / "empty", "--no-shipped-data")
    assert result.exit_code == 2
    assert "download-manifests" in result.stderr
    assert not Path("site").exists()
