"""`site`: the folder of a web site, a second run, and refusals."""

import errno
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.patching import Patch, patching
from support.running import expect_error, expect_output, snapshot
from support.set_inputs import LINUX as LINUX_64
from support.set_inputs import cuda, put_data
from support.set_inputs import library as features_of_library
from support.small_sets import LINUX, make_data, make_sets
from support.toolkits import modes_of_all

from cudaredist.store.data_folder import shipped_data

pytestmark = pytest.mark.slow

CALL = ("site", "-o", "site", "--no-shipped-data", "--json", "--data-dir")


def write_site(run: Run, *options: object) -> dict[str, Any]:
    """Write the site of a data folder to `site/`, and return the report."""
    result = run(*CALL, *options)
    assert result.exit_code == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a few releases, examined."""
    root = tmp_path_factory.mktemp("site")
    make_data(root)
    return root / "data"


def test_check_writes_nothing_and_counts_the_changes(run: Run, data: Path) -> None:
    new = run(*CALL, data, "--check")
    assert new.exit_code == 1
    assert not Path("site").exists()
    report = json.loads(new.stdout)
    assert report["is_check"] is True
    assert report["written"] == report["files"] > 0
    first = write_site(run, data)
    assert json.loads(run(*CALL, data, "--check").stdout)["written"] == 0
    before = snapshot(Path("site"))
    Path("site/index.html").unlink()
    listed = json.loads(Path("site/files.json").read_text())
    listed["files"].append("old.html")
    Path("site/files.json").write_text(json.dumps(listed))
    Path("site/old.html").write_text("x")
    changed = run(*CALL, data, "--check")
    assert changed.exit_code == 1
    assert (json.loads(changed.stdout)["written"], json.loads(changed.stdout)["removed"]) == (1, 1)
    text = run(*[word for word in CALL if word != "--json"], data, "--check").stdout
    assert text.endswith(": 1 to write, 1 to remove\n")
    assert write_site(run, data)["files"] == first["files"]
    assert snapshot(Path("site")) == before


def test_site_is_rendered_only_after_a_change(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    patch("cudaredist.store.documents._SETTLED_NS", 0)
    own, page = tmp_path / "own", Path("site/cuda/12.9.1/index.html")
    shutil.copytree(data, own)
    first = write_site(run, own)
    assert first["written"] == first["files"] > first["pages"] > 0
    whole = snapshot(Path("site"))

    def is_rendered() -> bool:
        with monkeypatch.context() as context:
            context.setattr("cudaredist.commands.site.render_site.site_files", dict.fromkeys)
            return run(*CALL, own).exit_code != 0

    assert write_site(run, own) == first | {"written": 0}
    assert not is_rendered()
    page.write_bytes(b"x" * page.stat().st_size)
    assert is_rendered()
    assert write_site(run, own)["written"] == 1
    page.unlink()
    assert is_rendered()
    assert write_site(run, own)["written"] == 1
    assert snapshot(Path("site")) == whole
    with monkeypatch.context() as context:
        context.setattr("cudaredist.store.index_database.__version__", "0")
        assert is_rendered()
    (own / "policy").mkdir()
    (own / "policy/outputs.json").write_bytes((shipped_data() / "policy/outputs.json").read_bytes())
    assert is_rendered()
    manifest = own / "manifests/cudnn/redistrib_9.10.2.json"
    manifest.rename(tmp_path / "kept.json")
    assert is_rendered()
    removed = write_site(run, own)
    assert removed["removed"] > 0
    assert run("site", "-o", "new", "--no-shipped-data", "--data-dir", own).exit_code == 0
    assert snapshot(Path("site")) == snapshot(Path("new"))
    (tmp_path / "kept.json").rename(manifest)
    added = write_site(run, own)
    assert 0 < added["written"] < added["files"]
    assert snapshot(Path("site")) == whole


@pytest.mark.usefixtures("strict_umask")
def test_site_is_readable_for_all_users(run: Run, data: Path) -> None:
    write_site(run, data)
    assert modes_of_all(Path("site")) == {0o755, 0o644}


def test_site_removes_pages_of_releases_that_are_gone(run: Run, data: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    folder = own / "manifests/cudnn"
    folder.mkdir(parents=True)
    for label in ("8.9.7", "9.10.2"):
        name = f"redistrib_{label}.json"
        (folder / name).write_bytes((data / "manifests/cudnn" / name).read_bytes())
    write_site(run, own)
    (folder / "redistrib_8.9.7.json").unlink()
    # With the comparison, which needs two releases.
    assert write_site(run, own)["removed"] == 5
    assert not Path("site/cudnn/8.9.7/index.html").exists()
    assert Path("site/cudnn/9.10.2/index.html").exists()


@pytest.mark.parametrize(("last", "earlier"), [(0, False), (1, False), (9, True)])
def test_site_resumes_after_a_full_disk_or_a_kill(
    run: Run, data: Path, *, last: int, earlier: bool
) -> None:
    assert run("site", "-o", "whole", "--data-dir", data, "--no-shipped-data").exit_code == 0
    if earlier:
        Path("site").mkdir()
        Path("site/files.json").write_text('{"files": ["gone.html"]}')
        Path("site/gone.html").write_text("old")
    steps, replace = itertools.count(), Path.replace

    def replaced(path: Path, target: Path) -> Path:
        if next(steps) >= last:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(path, target)

    with patching() as patch:
        patch(Path, "replace", replaced)
        # Nothing is removed, as if the run had been killed.
        patch(Path, "unlink", lambda *_, **__: None)
        assert run(*CALL, data).exit_code == 3
    assert list(Path("site").rglob(".*.tmp"))
    write_site(run, data)
    assert snapshot(Path("site")) == snapshot(Path("whole"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("notes.txt", "site has files, but no files.json of an earlier site"),
        ("files.json", "files.json is not the file list of a site"),
    ],
)
def test_site_in_a_folder_with_other_files_is_refused(
    run: Run, data: Path, name: str, message: str
) -> None:
    Path("site").mkdir()
    Path("site", name).write_text("[]")
    expect_error(run(*CALL, data), 2, message)
    assert [path.name for path in Path("site").iterdir()] == [name]


def test_list_of_an_earlier_site_cannot_name_files_elsewhere(run: Run, data: Path) -> None:
    Path("mine.txt").write_text("mine")
    Path(".mine.tmp").touch()
    Path("site").mkdir()
    Path("site/gone.html").write_text("old")
    for name in ("../mine.txt", "."):
        listing = {"schema_version": 1, "files": [name, "gone.html"]}
        Path("site/files.json").write_text(json.dumps(listing))
        expect_error(run(*CALL, data), 2, f"{name!r} is not a relative path without `..`")
    Path("site/linked").symlink_to("..")
    listing = {"schema_version": 1, "files": ["linked/mine.txt", "gone.html"]}
    Path("site/files.json").write_text(json.dumps(listing))
    write_site(run, data)
    assert Path("mine.txt").read_text() == "mine"
    assert Path(".mine.tmp").exists()
    assert not Path("site/gone.html").exists()


def test_list_of_an_earlier_site_with_a_loop_of_links_exits_3(run: Run, data: Path) -> None:
    Path("site").mkdir()
    Path("site/loop").symlink_to("loop")
    Path("site/files.json").write_text('{"schema_version": 1, "files": ["loop/x"]}')
    expect_error(run(*CALL, data), 3, "cannot write site/loop/x")


def test_site_is_rendered_after_a_change_of_sets(run: Run, data: Path, patch: Patch) -> None:
    patch("cudaredist.store.documents._SETTLED_NS", 0)
    make_sets(data.parent)
    path = data.parent / "sets/linux-x86_64/cuda-12.9.1.json"
    first = write_site(run, data)
    assert write_site(run, data, "--set", path)["files"] == first["files"] + 4
    page = Path("site/sets/cudaPackages_12_9-linux-x86_64/index.html")
    assert "linux-x86_64" in page.read_text()
    assert write_site(run, data, "--set", path)["written"] == 0
    other = json.loads(path.read_text())
    other["packages"]["libcublas"]["version"] = "99.1"
    Path("other.json").write_text(json.dumps(other))
    assert write_site(run, data, "--set", "other.json")["written"] == 3
    assert "99.1" in page.read_text()
    assert write_site(run, data)["removed"] == 4


def test_site_links_sets_of_one_attribute_and_refuses_one_platform_twice(
    run: Run, data: Path
) -> None:
    make_sets(data.parent)
    x86, arm = (data.parent / f"sets/{name}/cuda-12.9.1.json" for name in LINUX)
    error = "two package sets for linux-x86_64 are called cudaPackages_12_9"
    expect_error(run(*CALL, data, "--set", x86, "--set", x86), 2, error, str(x86))
    assert not Path("site").exists()
    write_site(run, data, "--set", x86, "--set", arm)
    page = Path("site/sets/cudaPackages_12_9-linux-x86_64/index.html").read_text()
    assert 'href="../../sets/cudaPackages_12_9-linux-sbsa/index.html">linux-sbsa</a>' in page


@pytest.mark.parametrize(("text", "code"), [(None, 2), ("{}", 5), ("no JSON", 5)])
def test_site_of_a_file_that_is_not_a_set_is_refused(
    run: Run, data: Path, text: str | None, code: int
) -> None:
    if text is not None:
        Path("set.json").write_text(text)
    expect_error(run(*CALL, data, "--set", "set.json"), code, "set.json")
    assert not Path("site").exists()


def test_site_without_manifests_names_a_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    expect_error(run(*CALL, tmp_path / "empty"), 2, "download-manifests")
    assert not Path("site").exists()


def test_site_of_wheels_without_cuda_names_shipped_releases(run: Run) -> None:
    folder = Path("data/manifests/wheels/cudnn")
    folder.mkdir(parents=True)
    shutil.copy(REPOSITORY / "data/manifests/wheels/cudnn/redistrib_9.10.2.json", folder)
    expect_output(run("site", "--data-dir", "data", "--output", "site"), 0)
    page = Path("site/gpus/9.0/index.html").read_text()
    assert "Newest that runs on" in page
    assert "CUDA 13" in page


def test_release_without_rows_in_tables_does_not_block_the_site(run: Run) -> None:
    toolkit = cuda("13.4.7", [LINUX_64], features={"cuda_nvcc": features_of_library("libx.so.1")})
    put_data(Path("data"), toolkit)
    call = ("--data-dir", "data", "--channel", "redist")
    expect_output(run("site", *call, "--output", "site"), 0)
    page = Path("site/cuda/13.4.7/index.html").read_text()
    assert "Compilers and GPUs are unknown: run <code>cudaredist update-nvcc-compat</code>" in page
    result = expect_output(run("explain", "cuda", "13.4.7", "--data-dir", "data"), 3)
    assert "its host compilers are unknown: run `cudaredist update-nvcc-compat" in result.stdout
